//! The fleet beyond the board: what it costs, one target in full, and how what the control plane has is
//! brought into the data file. Which targets there are, and how each stands, is [`crate::act::board`]'s.

use std::collections::{BTreeMap, BTreeSet};

use tpu_core::model::accelerators;
use tpu_core::model::data::Data;
use tpu_core::model::facts::{TargetFact, TargetState};
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::prices::{self, Prices};
use tpu_core::model::target::{Machines, Pricing, ProviderAt, Registration, Target};
use tpu_core::model::time::Timestamp;
use tpu_core::plan::board::Row;
use tpu_engine::provider::{ProviderError, TargetAt, Trouble};

use crate::act::board::{Board, rooms};
use crate::base::names;
use crate::base::providers::Places;
use crate::observe::fleet::ProviderFacts;
use crate::observe::snapshot;
use crate::{Ctx, Error};

/// The origin of a registration that an import made.
pub(crate) const IMPORTED: &str = "imported";

/// Whether somebody pays for a target now.
fn is_in_use(fact: &TargetFact) -> bool {
    let is_pending = fact.state == TargetState::Pending;
    fact.state == TargetState::Ready || is_pending && !fact.endpoints.is_empty()
}

/// All targets but this machine, by zone and name.
pub fn seen(ctx: &Ctx) -> Result<Board, Error> {
    let mut seen = rooms::look(ctx)?;
    seen.targets.retain(|row| row.fact.machines != Machines::Here);
    seen.targets.sort_unstable_by(|a, b| (&a.zone, &a.target).cmp(&(&b.zone, &b.target)));
    Ok(seen)
}

/// The hours since a target was created, where the control plane says when that was.
pub fn hours(fact: &TargetFact, now: Timestamp) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "seconds of some years")]
    let seconds = now.seconds_since(fact.created_at?) as f64;
    Some(seconds / 3600.0)
}

/// How many chips a target has, and what an hour of it costs by a table of prices.
pub fn worth(row: &Row, prices: &Prices) -> (Option<u32>, Option<f64>) {
    let Some(kind) = row.told_type() else { return (None, None) };
    let chips = accelerators::chips(kind);
    (chips, prices::per_hour(prices, (kind, chips), row.pricing))
}

fn alias_of(data: &Data, name: &TargetName) -> Option<String> {
    let label = data.target_label(name);
    (label != name.as_str()).then_some(label)
}

/// Targets of one type, in one zone, paid for in one way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sum {
    /// How many there are.
    pub targets: usize,
    /// Their chips; `None` if the type of one is not known.
    pub chips: Option<u32>,
    /// What they cost in an hour; `None` if the table in the settings does not say.
    pub per_hour: Option<f64>,
    /// Their hours so far; `None` if nobody says since when one is there.
    pub hours: Option<f64>,
    /// What they have cost so far.
    pub so_far: Option<f64>,
}

/// What a sum is about: zone, type, pricing.
pub type Class = (String, String, &'static str);

/// What is in use, by zone, type and pricing.
pub fn sums(board: &Board, prices: &Prices) -> BTreeMap<Class, Sum> {
    let mut sums: BTreeMap<Class, Sum> = BTreeMap::new();
    for row in board.targets.iter().filter(|row| is_in_use(&row.fact)) {
        let text = |text: Option<&str>| text.unwrap_or("-").to_owned();
        let class = (text(row.zone.as_deref()), text(row.told_type()), row.pricing.as_str());
        let (chips, per_hour) = worth(row, prices);
        let hours = hours(&row.fact, board.at);
        let so_far = hours.zip(per_hour).map(|(hours, price)| hours * price);
        let sum = sums.entry(class).or_insert_with(|| Sum {
            targets: 0,
            chips: Some(0),
            per_hour: Some(0.0),
            hours: Some(0.0),
            so_far: Some(0.0),
        });
        sum.targets += 1;
        sum.chips = sum.chips.zip(chips).map(|(sum, chips)| sum.saturating_add(chips));
        sum.per_hour = sum.per_hour.zip(per_hour).map(|(sum, price)| sum + price);
        sum.hours = sum.hours.zip(hours).map(|(sum, hours)| sum + hours);
        sum.so_far = sum.so_far.zip(so_far).map(|(sum, cost)| sum + cost);
    }
    sums
}

/// One target in full.
#[derive(Clone, Debug)]
pub struct Description {
    /// What the control plane says.
    pub fact: TargetFact,
    /// What the data file says.
    pub registered: Option<Registration>,
    /// Its aliases.
    pub aliases: Vec<String>,
    /// Jobs at work there.
    pub jobs: Vec<JobId>,
    /// Chips, and workers by its type.
    pub size: (Option<u32>, Option<u32>),
}

impl Description {
    /// How many workers it has: its own addresses say so; before they are there, its type does.
    pub fn workers(&self) -> Option<usize> {
        match self.fact.endpoints.len() {
            0 => self.size.1.and_then(|workers| usize::try_from(workers).ok()),
            count => Some(count),
        }
    }
}

/// Asks about one target.
pub fn describe(ctx: &Ctx, target: &Target) -> Result<Description, Error> {
    let data = ctx.data()?;
    let name = &target.name;
    let provider = ctx.places().of(&data, name).into_owned();
    let is_watched = target.machines == Machines::Provided && !provider.name.is_none();
    let fact = if is_watched && ctx.kinds.of(target).is_ok() {
        let at = TargetAt::new(name.of_provider(), target.zone.clone());
        match ctx.provider(&provider).describe(&at) {
            Ok(fact) => TargetFact { name: name.clone(), ..fact },
            // Of a target that is not there it says no more than that.
            Err(error) if error.trouble == Trouble::NotFound => {
                ProviderFacts::ask_all(ctx, std::slice::from_ref(&provider)).fact(&data, name)
            }
            Err(error) => return Err(error.into()),
        }
    } else {
        ProviderFacts::unasked(ctx).fact(&data, name)
    };
    let fact = fact.with_registered(Some(target));
    let kind = fact.accelerator.as_deref();
    let aliases = data.registry().aliases().filter(|(_, full)| *full == name);
    Ok(Description {
        registered: data.registration(name).cloned(),
        aliases: aliases.map(|(alias, _)| alias.to_owned()).collect(),
        jobs: snapshot::users_of_target(ctx, &data, name).live,
        size: (kind.and_then(accelerators::chips), kind.and_then(accelerators::workers)),
        fact,
    })
}

/// What an import would do with one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Full name.
    pub name: TargetName,
    /// What differs, in words; what is new says what it is.
    pub differences: Vec<String>,
    /// What is registered until then.
    pub before: Option<Registration>,
    /// What will be registered.
    pub registration: Registration,
    /// The alias it will get.
    pub alias: Option<String>,
    /// Whether the data file does not know it yet.
    pub is_new: bool,
}

/// What an import would do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Targets that are new or told differently.
    pub changes: Vec<Change>,
    /// Known targets that the control plane does not have. They stay.
    pub absent: Vec<TargetName>,
    /// Zones that said nothing, and why: nothing follows about their targets.
    pub silent: Vec<(String, String)>,
    /// How many targets the control plane has.
    pub seen: usize,
}

/// What an import is to bring, and how.
#[derive(Clone, Debug, Default)]
pub struct Wish<'a> {
    /// From this provider alone; else from each that some target has, and from that of the settings.
    pub provider: Option<ProviderAt>,
    /// What this kind of target finds by itself, with what is said to it; no provider is asked then.
    pub like: Option<Registration>,
    /// The template of the aliases.
    pub alias: Option<&'a str>,
}

/// Compares what the providers list, or what a kind of target finds, with what the data file says. Aliases are
/// none of `commands`.
pub fn compare(ctx: &Ctx, wish: &Wish<'_>, commands: &[String]) -> Result<Plan, Error> {
    let data = ctx.data()?;
    if let Some(like) = &wish.like {
        return compare_found(ctx, &data, like, (wish.alias, commands));
    }
    let places = ctx.places();
    let asked = match &wish.provider {
        Some(told) => vec![places.asked(told)],
        None => places.all(&data),
    };
    if asked.iter().all(|at| at.name.is_none()) {
        return Err(ProviderError::new(
            Trouble::NoProvider,
            "import targets",
            "no cloud is set up",
        )
        .into());
    }
    let fleet = ProviderFacts::ask_all(ctx, &asked);
    let silent = fleet.silent();
    let mut facts: Vec<(&ProviderAt, &TargetFact)> = fleet.targets().collect();
    facts.sort_unstable_by(|(_, a), (_, b)| (&a.zone, &a.name).cmp(&(&b.zone, &b.name)));
    if facts.is_empty() && !silent.is_empty() {
        let why = silent.iter().map(|(_, why)| why.as_str()).collect::<Vec<_>>().join("; ");
        return Err(Error::unreachable(format!("nothing can be imported: {why}"))
            .hint("nothing was changed; try again when the control plane answers"));
    }
    let mut taken = taken_names(&data);
    let mut changes: Vec<Change> = Vec::new();
    let mut listed = BTreeSet::new();
    for (at, fact) in &facts {
        let name = called(&data, &places, (at, fact), &listed);
        listed.insert(name.clone());
        let fact = TargetFact { name, ..(*fact).clone() };
        let alias = match wish.alias {
            Some(template) if alias_of(&data, &fact.name).is_none() => {
                Some(free_alias(template, &fact, commands, &mut taken)?)
            }
            _ => None,
        };
        changes.extend(change(&data, (&places, at), &fact, alias));
    }
    let names = data.registry().names().into_iter().filter(|name| !listed.contains(name));
    let absent = names.filter(|name| fleet.fact(&data, name).state == TargetState::Gone).collect();
    Ok(Plan { changes, absent, silent, seen: facts.len() })
}

/// Names that no alias may have, for other targets or users have them.
fn taken_names(data: &Data) -> BTreeSet<String> {
    let aliases = data.registry().aliases().map(|(alias, _)| alias.to_owned());
    aliases.chain(data.users().iter().map(|user| user.name.as_str().to_owned())).collect()
}

/// The same for what a kind of target finds by itself. One whose name something else has becomes `NAME@KIND`.
fn compare_found(
    ctx: &Ctx,
    data: &Data,
    like: &Registration,
    (template, commands): (Option<&str>, &[String]),
) -> Result<Plan, Error> {
    let kind = ctx.kinds.of_registration(like).map_err(|e| Error::usage(e.to_string()))?;
    let found = kind.found(like, &ctx.effects)?;
    let seen = found.len();
    let mut taken = taken_names(data);
    let mut changes = Vec::new();
    for (name, mut registration) in found {
        kind.register(&mut registration, &ctx.env)?;
        registration.origin = Some(IMPORTED.to_owned());
        let others = (1_u32..).map(|number| match number {
            1 => TargetName::new(format!("{name}@{}", kind.word())),
            _ => TargetName::new(format!("{name}@{}{number}", kind.word())),
        });
        let is_free_or_its = |name: &TargetName| match data.registration(name) {
            Some(known) => known.options == registration.options && known.kind == registration.kind,
            None => data.target(name).is_none(),
        };
        let mut names = std::iter::once(name.clone()).chain(others);
        let name = names.find(is_free_or_its).unwrap_or_else(|| name.clone());
        if data.registration(&name).is_some() {
            continue;
        }
        let fact = TargetFact::new(name.clone(), TargetState::Unknown, "", ctx.clock.now());
        let fact = TargetFact { accelerator: registration.accelerator.clone(), ..fact };
        let alias = template
            .map(|template| free_alias(template, &fact, commands, &mut taken))
            .transpose()?;
        let said = registration.options.pairs().map(|(name, value)| format!("{name} {value}"));
        let called = alias.iter().map(|alias| format!("alias {alias}"));
        let differences = said.chain(called).collect();
        let before = None;
        changes.push(Change { name, differences, before, registration, alias, is_new: true });
    }
    Ok(Plan { changes, absent: Vec::new(), silent: Vec::new(), seen })
}

/// What the data file calls a target of a provider, or is to call it: as its provider does; where another
/// provider's target has that name, `NAME@PROVIDER`, and with the same provider `NAME@PROJECT`.
fn called(
    data: &Data,
    places: &Places,
    (at, fact): (&ProviderAt, &TargetFact),
    listed: &BTreeSet<TargetName>,
) -> TargetName {
    let is_its = |name: &TargetName| *places.of(data, name) == *at;
    let mut known = data.registry().names().into_iter();
    if let Some(name) = known.find(|name| name.of_provider() == fact.name && is_its(name)) {
        return name;
    }
    let is_free = |name: &TargetName| data.target(name).is_none() && !listed.contains(name);
    let holder = places.of(data, &fact.name);
    let words = [at.name.as_str().to_owned()].into_iter();
    let words = words.filter(|_| holder.name != at.name).chain(at.project.clone());
    let numbered = (2_u32..).map(|number| format!("{}{number}", at.name));
    let others = words.chain(numbered).map(|word| TargetName::new(format!("{}@{word}", fact.name)));
    let mut names = std::iter::once(fact.name.clone()).chain(others);
    names.find(is_free).unwrap_or_else(|| fact.name.clone())
}

/// What changes about one target; `None` if nothing does.
fn change(
    data: &Data,
    (places, at): (&Places, &ProviderAt),
    fact: &TargetFact,
    alias: Option<String>,
) -> Option<Change> {
    let old = data.registration(&fact.name);
    let known = data.target(&fact.name);
    let mut registration = old.cloned().unwrap_or_default();
    if *places.told(&registration) != *at {
        registration.provider = Some(at.name.clone());
        registration.project.clone_from(&at.project);
        registration.endpoint.clone_from(&at.endpoint);
    }
    let mut differences = Vec::new();
    let mut tell = |what: &str, was: Option<&str>, is: Option<&str>| {
        let Some(is) = is.filter(|is| Some(*is) != was) else { return };
        differences.push(match was {
            Some(was) => format!("{what} {was} -> {is}"),
            None => format!("{what} {is}"),
        });
    };
    let was = known.as_ref();
    tell("zone", was.and_then(|was| was.zone.as_deref()), fact.zone.as_deref());
    tell("type", was.and_then(|was| was.accelerator.as_deref()), fact.accelerator.as_deref());
    tell("pricing", was.map(|was| was.pricing.as_str()), Some(fact.pricing.as_str()));
    let whose = |of: Option<&Registration>| {
        of.filter(|of| of.provider.is_some()).map(|of| places.told(of).to_string())
    };
    tell("of", whose(old).as_deref(), whose(Some(&registration)).as_deref());
    tell("alias", None, alias.as_deref());
    registration.zone = fact.zone.clone().or(registration.zone);
    registration.accelerator = fact.accelerator.clone().or(registration.accelerator);
    registration.pricing = fact.pricing;
    if differences.is_empty() {
        return None;
    }
    registration.origin = Some(IMPORTED.to_owned());
    Some(Change {
        name: fact.name.clone(),
        differences,
        before: old.cloned(),
        registration,
        alias,
        is_new: known.is_none(),
    })
}

/// The alias that a template gives a target: `{type}`, `{family}`, `{zone}`, `{pricing}` and `{name}` stand
/// for what it is, `{n}` for the first number that is free.
fn free_alias(
    template: &str,
    fact: &TargetFact,
    commands: &[String],
    taken: &mut BTreeSet<String>,
) -> Result<String, Error> {
    let kind = fact.accelerator.as_deref().unwrap_or("target");
    let family = kind.rsplit_once('-').map_or(kind, |(family, _)| family);
    let pricing = match fact.pricing {
        Pricing::OnDemand => "n",
        Pricing::Preemptible => "p",
        Pricing::Spot => "s",
    };
    let filled = template
        .replace("{type}", kind)
        .replace("{family}", family)
        .replace("{zone}", fact.zone.as_deref().unwrap_or("-"))
        .replace("{pricing}", pricing)
        .replace("{name}", fact.name.as_str());
    let wrong = |what: &str| {
        Error::usage(format!("'{template}' makes no alias for {}: {what}", fact.name))
            .hint("as in: tpu targets import --alias '{type}-{pricing}{n}'")
    };
    let plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    let check = |alias: &str| {
        if alias.is_empty() || alias.starts_with('-') || !alias.chars().all(plain) {
            return Err(wrong("letters, digits, '_', '-' and '.', and no '-' in front"));
        }
        Ok(names::meaning_in_grammar(alias, commands))
    };
    if !filled.contains("{n}") {
        if let Some(meaning) = check(&filled)? {
            return Err(wrong(&format!("'{filled}' already means something: {meaning}")));
        }
        if taken.insert(filled.clone()) {
            return Ok(filled);
        }
        return Err(wrong(&format!("'{filled}' is taken; add {{n}}")));
    }
    for number in 1_u32.. {
        let alias = filled.replace("{n}", &number.to_string());
        if check(&alias)?.is_none() && taken.insert(alias.clone()) {
            return Ok(alias);
        }
    }
    Err(wrong("every number is taken"))
}

/// Carries a plan out, in one step, and says what somebody has registered himself meanwhile: that stays as it is,
/// and so does an alias that somebody took.
pub fn import(ctx: &Ctx, plan: &Plan) -> Result<Vec<TargetName>, Error> {
    ctx.transact(|tx| {
        let registry = tx.data.registry_mut();
        let mut left = Vec::new();
        for change in &plan.changes {
            if registry.registration(&change.name) != change.before.as_ref() {
                left.push(change.name.clone());
                continue;
            }
            registry.register(change.name.clone(), change.registration.clone());
            if let Some(alias) = &change.alias
                && !registry.aliases().any(|(taken, _)| taken == alias)
            {
                registry.set_alias(alias, change.name.clone());
            }
        }
        Ok(left)
    })
}
