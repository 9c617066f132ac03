//! Targets that jobs of the queue have made for them: each gets its name in the step in which its job enters, and is made
//! as any other that is known and not there ([`super::supply`]).

use std::collections::HashSet;

use crate::act::targets::checked_name;
use crate::observe::fleet::ProviderFacts;
use crate::observe::seen_before::seen_before;
use crate::{Ctx, Error};
use tpu_core::model::accelerators;
use tpu_core::model::data::Data;
use tpu_core::model::facts::{TargetFact, TargetState};
use tpu_core::model::ids::{TargetName, UserName};
use tpu_core::model::job::Job;
use tpu_core::model::options::KindOptions;
use tpu_core::model::order::{Numbered, STARTUP_SCRIPT, TargetOrder, TypeInZone};
use tpu_core::model::prices;
use tpu_core::model::spec::{AnyOf, TargetRequest};
use tpu_core::model::target::Registration;
use tpu_core::plan::budget::comes_back;
use tpu_core::plan::preferred::{self, KnownOf};

/// The name of the variable in which a machine finds what it runs when it starts (Cloud TPU documentation, startup
/// scripts).
const STARTUP: &str = "startup-script=";

/// Who has made a target known that a job asked for.
const ORIGIN: &str = "job file";

/// An order of which all is known that can be known before somebody waits for it.
pub(super) struct ReadyOrder {
    order: TargetOrder,
    /// Why what would do is tried in that order.
    why: Option<String>,
    /// Targets that are there and that nobody here knows by name: they are somebody else's.
    strangers: HashSet<TargetName>,
}

impl ReadyOrder {
    /// Whether what is made goes with its job.
    pub(super) fn goes_with_its_job(&self) -> bool {
        self.order.goes_with_its_job
    }
}

/// The same with what would do in the order in which it is tried, and why, where somebody prefers some of it.
pub fn preferred(
    ctx: &Ctx,
    user: &UserName,
    order: &TargetOrder,
) -> Result<Option<(TargetOrder, String)>, Error> {
    let Some(preferred) = order.preferred.filter(|_| order.candidates.len() > 1) else {
        return Ok(None);
    };
    let prices = ctx.settings(ctx.data()?.user(user))?.prices;
    let seen = seen_before(ctx)?;
    let known = |of: &TypeInZone| {
        let chips = accelerators::chips(&of.accelerator);
        let per_hour = prices::per_hour(&prices, (&of.accelerator, chips), order.pricing);
        KnownOf { per_hour, seen: seen.of(of, order.pricing) }
    };
    let (candidates, why) = preferred::order(&order.candidates, preferred, known);
    Ok(Some((TargetOrder { candidates, ..order.clone() }, why)))
}

/// What is read of this machine for an order, and what its control plane says of it, before anybody waits for it.
pub(super) fn ready(ctx: &Ctx, user: &UserName, order: &TargetOrder) -> Result<ReadyOrder, Error> {
    let mut order = order.clone();
    let why = preferred(ctx, user, &order)?.map(|(sorted, why)| {
        order = sorted;
        why
    });
    let mut options = KindOptions::default();
    for (name, value) in order.options.pairs() {
        if name == STARTUP_SCRIPT {
            let path = ctx.env.cwd.join(value);
            let script = ctx.store.disk().read(&path).map_err(|e| {
                Error::not_found(format!("startup_script: cannot read {value}: {e}"))
                    .hint("its path begins where the file is")
            })?;
            let text = String::from_utf8_lossy(&script.bytes).into_owned();
            options.say("metadata", format!("{STARTUP}{text}"));
        } else {
            options.say(name, value);
        }
    }
    order.options = options;
    let data = ctx.data()?;
    if ctx.places().usual().name.is_none() {
        return Err(Error::refused(format!("nobody makes a TPU here: {}", order.in_words()))
            .hint("say whose they are: tpu set-settings cloud google USER, or name a target that is there"));
    }
    let Some(first) = order.candidates.first() else {
        return Err(Error::usage("nothing is asked for").hint("name an accelerator and a zone"));
    };
    let provider = ctx.provider_of(&name_of(&order, first, None))?;
    for TypeInZone { accelerator, zone } in &order.candidates {
        provider.may_make(accelerator, zone)?;
    }
    // One answer says of all zones what there is, also what nobody here knows by name.
    let said = ProviderFacts::ask_of(ctx, &data, &name_of(&order, first, None));
    let wanted = |zone: &str| order.candidates.iter().any(|candidate| candidate.zone == zone);
    if let Some((zone, why)) = said.silent().into_iter().find(|(zone, _)| wanted(zone)) {
        let what = format!("which TPUs there are in {zone} is unknown: {why}");
        return Err(Error::unreachable(what).hint("try again when its control plane answers"));
    }
    let there: Vec<&TargetFact> =
        said.targets().map(|(_, fact)| fact).filter(|fact| is_there(fact.state)).collect();
    if order.numbered != Numbered::Auto {
        for candidate in &order.candidates {
            let name = name_of(&order, candidate, None);
            let Some(fact) = there.iter().find(|fact| fact.name == name) else { continue };
            let differs = |what: &str, found: Option<&String>, wanted: &str| {
                let found = found.filter(|found| *found != wanted)?;
                Some(format!("its {what} is {found}, and {wanted} is asked for"))
            };
            let differs = differs("type", fact.accelerator.as_ref(), &candidate.accelerator)
                .or_else(|| differs("zone", fact.zone.as_ref(), &candidate.zone));
            if let Some(differs) = differs {
                return Err(other(&name, &differs));
            }
        }
    }
    let strangers = there.iter().map(|fact| fact.name.clone());
    let strangers = strangers.filter(|name| data.registration(name).is_none()).collect();
    Ok(ReadyOrder { order, why, strangers })
}

/// Whether something has that name.
fn is_there(state: TargetState) -> bool {
    use TargetState::{Deleting, Pending, Preempted, Ready, Stopped};
    matches!(state, Ready | Pending | Preempted | Stopped | Deleting)
}

/// Names what is asked for, and makes it known; in one step with the entry that waits for it.
pub(super) fn enter(data: &mut Data, ready: &ReadyOrder) -> Result<TargetRequest, Error> {
    let order = &ready.order;
    let number = match order.numbered {
        Numbered::Not => None,
        Numbered::With(number) => Some(number),
        Numbered::Auto => Some(free_number(data, ready)),
    };
    let mut names = Vec::new();
    for candidate in &order.candidates {
        let name = name_of(order, candidate, number);
        checked_name(name.as_str())?;
        if data.resolve_target(name.as_str()).is_some_and(|target| target.name != name) {
            return Err(other(&name, "it stands for another target"));
        }
        let wanted = registration(order, candidate);
        match data.registration(&name) {
            Some(known) => {
                if let Some(differs) = difference(known, &wanted) {
                    return Err(other(&name, &differs));
                }
                // What it is to be made with is what the newest file says.
                if is_ordered(known) && !is_in_use(data, &name) {
                    data.registry_mut().register(name.clone(), wanted);
                }
            }
            None if data.target(&name).is_some() => {
                return Err(other(&name, "nobody has said what it is"));
            }
            None => data.registry_mut().register(name.clone(), wanted),
        }
        names.push(name.as_str().to_owned());
    }
    Ok(match <[String; 1]>::try_from(names) {
        Ok([only]) => TargetRequest::Named(only),
        Err(among) => {
            let order = ready.why.clone();
            TargetRequest::Any(AnyOf { among, order, ..AnyOf::default() })
        }
    })
}

fn other(name: &TargetName, why: &str) -> Error {
    Error::refused(format!("{name} is there already, and is another one: {why}"))
        .hint("give it another name, or number: auto; what is known of it: tpu describe NAME")
}

fn name_of(order: &TargetOrder, candidate: &TypeInZone, number: Option<u32>) -> TargetName {
    let number = match order.numbered {
        Numbered::With(number) => Some(number),
        Numbered::Not | Numbered::Auto => number,
    };
    TargetName::from(order.full_name(candidate, number).as_str())
}

fn registration(order: &TargetOrder, candidate: &TypeInZone) -> Registration {
    Registration {
        zone: Some(candidate.zone.clone()),
        accelerator: Some(candidate.accelerator.clone()),
        pricing: order.pricing,
        runtime_version: order.runtime_version.clone(),
        queued: order.is_queued,
        ssh_user: order.login.clone(),
        options: order.options.clone(),
        origin: Some(ORIGIN.to_owned()),
        ..Registration::default()
    }
}

/// Whether a target is known because a job asked for it.
fn is_ordered(known: &Registration) -> bool {
    known.origin.as_deref() == Some(ORIGIN)
}

/// Whether what a job has run on was made for it, and is made again where it is not there any more.
pub(super) fn was_made_for(data: &Data, name: &TargetName) -> bool {
    data.registration(name).is_some_and(is_ordered)
}

/// In what a target that is known differs from what is asked for.
fn difference(known: &Registration, wanted: &Registration) -> Option<String> {
    let differs = |what: &str, known: &Option<String>, wanted: &Option<String>| {
        let shown = |said: &Option<String>| said.clone().unwrap_or_else(|| "unknown".to_owned());
        (known != wanted)
            .then(|| format!("its {what} is {}, and {} is asked for", shown(known), shown(wanted)))
    };
    differs("type", &known.accelerator, &wanted.accelerator)
        .or_else(|| differs("zone", &known.zone, &wanted.zone))
        .or_else(|| {
            let is_said = wanted.runtime_version.is_some();
            differs("version", &known.runtime_version, &wanted.runtime_version).filter(|_| is_said)
        })
        .or_else(|| {
            (known.pricing != wanted.pricing).then(|| "it is paid for differently".to_owned())
        })
}

/// The smallest number whose targets are new, or known as what is asked for and nobody's.
fn free_number(data: &Data, ReadyOrder { order, strangers, .. }: &ReadyOrder) -> u32 {
    let is_free = |number: &u32| {
        order.candidates.iter().all(|candidate| {
            let name = name_of(order, candidate, Some(*number));
            let fits = match data.registration(&name) {
                Some(known) => difference(known, &registration(order, candidate)).is_none(),
                None => data.target(&name).is_none(),
            };
            fits && !is_in_use(data, &name) && !strangers.contains(&name)
        })
    };
    (1..u32::MAX).find(is_free).unwrap_or(u32::MAX)
}

/// Whether a job has a target, waits for it, or has it made.
pub(super) fn is_in_use(data: &Data, name: &TargetName) -> bool {
    let waits = |spec: &TargetRequest| match spec {
        TargetRequest::Named(named) => named == name.as_str(),
        TargetRequest::Any(any) => any.among.iter().any(|named| named == name.as_str()),
    };
    let queues = data.queues();
    let holds = |job: &Job| job.status.is_live() || comes_back(job);
    data.jobs().any(|job| job.tpu == *name && job.child.is_none() && holds(job))
        || queues.entries.iter().any(|entry| waits(&entry.spec.target))
        || queues.makings.iter().any(|making| making.target == *name)
}
