//! Targets through their control plane: state, creation, deletion.

use std::time::Duration;

use crate::cli::Outcome;
use crate::cli::app::{App, UNDONE};
use crate::cli::args::{Apply, CheckStatus, Insist};
use crate::cli::print::Output;
use crate::cli::progress::Progress;
use tpu_core::model::facts::TargetFact;
use tpu_core::model::ids::TargetName;
use tpu_core::model::target::{Pricing, Target};
use tpu_core::model::time;
use tpu_ops::act::provision::{self, Change, Insistence};
use tpu_ops::act::selection;
use tpu_ops::act::target_spec::Wish;
use tpu_ops::base::named::resolve_target;
use tpu_ops::front::dry_run::{self, Remake};
use tpu_ops::observe::fleet::ProviderFacts;
use tpu_ops::{Error, Kind};
use tpu_wire::targets::{TargetFactDocument, TargetFactsDocument, TargetPart, TargetPlanDocument};

use super::inventory::silences;

/// `apply`: creates a target that is not there, or waits for one that is on its way.
pub(in crate::cli) fn apply(app: &App, args: &Apply) -> Outcome {
    provide(app, args, ("apply", false, Insistence::ONCE))
}

/// `reapply`: deletes a target and creates it again.
pub(in crate::cli) fn reapply(app: &App, args: &Apply) -> Outcome {
    provide(app, args, ("reapply", true, Insistence::ONCE))
}

/// `applyy`: asks again and again while there is no capacity.
pub(in crate::cli) fn insist(app: &App, args: &Insist) -> Outcome {
    let mut insistence = Insistence { times: 2_000, every: Duration::from_secs(10) };
    for word in &args.words {
        let wrong = || {
            Error::usage(format!("'{word}' is neither t=SECONDS nor m=TIMES"))
                .hint("as in: tpu applyy v2-32-p2 t=30 m=100")
        };
        let (key, value) = word.split_once('=').ok_or_else(wrong)?;
        match key {
            "t" => insistence.every = Duration::from_secs(value.parse().map_err(|_| wrong())?),
            "m" => insistence.times = value.parse().ok().filter(|m| *m > 0).ok_or_else(wrong)?,
            _ => return Err(wrong()),
        }
    }
    provide(app, &args.apply, ("applyy", false, insistence))
}

fn provide(app: &App, args: &Apply, (verb, anew, insistence): (&str, bool, Insistence)) -> Outcome {
    let ctx = app.ctx()?;
    selection::no_job(&*ctx.data()?, &args.target, verb)?;
    // A name that nothing knows yet may be asked for.
    let name = match ctx.data()?.resolve_target(&args.target) {
        Some(target) => target.name,
        None => TargetName::new(args.target.clone()),
    };
    let pricing = match (args.spot, args.pre, args.norm) {
        (true, ..) => Some(Pricing::Spot),
        (_, true, _) => Some(Pricing::Preemptible),
        (.., true) => Some(Pricing::OnDemand),
        _ => None,
    };
    let wish = Wish {
        zone: args.zone.clone(),
        accelerator: args.accelerator.clone(),
        pricing,
        runtime_version: args.version.clone(),
        queued: args.queued.then_some(true),
    };
    if app.global.dry_run {
        return Ok(dry_run_of(&dry_run::remake(ctx, &name, &wish, anew)?, ctx.take_warnings()));
    }
    if anew && app.asks() {
        // What would be refused is refused before anybody is asked.
        provision::may_change(ctx, &name, Change::Delete)?;
        dry_run::remake(ctx, &name, &wish, anew)?;
    }
    if anew && app.asks() && !provision::loses_nothing(ctx, &name)? {
        let question = format!("Delete {name} and everything on it, and create it again?");
        app.agree(&question, UNDONE)?;
    }
    let verb = if anew { "deleting and creating" } else { "creating" };
    let progress = Progress::new(app, format!("{verb} {name}"));
    let mut tell = |line: &str| progress.say(line);
    let fact = provision::insist(ctx, &name, &wish, (anew, insistence), &mut tell)?;
    drop(progress);
    Ok(Output::new(format!("{name} is {}.", fact.raw_state), &described(&fact)))
}

/// What would be done to a target.
fn dry_run_of(plan: &Remake, notes: Vec<String>) -> Output {
    Output::new(plan.to_text(), &TargetPlanDocument::from(plan)).notes(notes)
}

/// `delete`, `start`, `stop`, `restart`.
pub(in crate::cli) fn change(app: &App, (verb, typed): (&str, &str), change: Change) -> Outcome {
    let ctx = app.ctx()?;
    let target = selection::target(&*ctx.data()?, typed, verb)?;
    let nothing = match change {
        Change::Delete => provision::nothing_to_delete(ctx, &target)?,
        Change::Start | Change::Stop | Change::Restart => None,
    };
    if app.global.dry_run {
        provision::may_change(ctx, &target.name, change)?;
        let would = Output::would(&format!("{} {}", change.verb(), target.name));
        return Ok(would.notes(nothing.into_iter().collect()));
    }
    if change != Change::Start && app.asks() {
        // What would be refused is refused before anybody is asked.
        provision::may_change(ctx, &target.name, change)?;
    }
    let loses_nothing = || match change {
        Change::Delete => provision::loses_nothing(ctx, &target.name),
        Change::Start | Change::Stop | Change::Restart => Ok(false),
    };
    if change != Change::Start && app.asks() && !loses_nothing()? {
        let question = format!("{} {}? What runs there ends.", change.verb(), target.name);
        app.agree(&question, UNDONE)?;
    }
    let progress = Progress::new(app, format!("{} {}", change.verb(), target.name));
    let fact = provision::change(ctx, &target, change)?;
    drop(progress);
    let said = match nothing {
        Some(_) => "is not there: it is registered, and has no machine".to_owned(),
        None => format!("is {}", fact.raw_state),
    };
    Ok(Output::new(format!("{} {said}.", target.name), &described(&fact))
        .notes(nothing.into_iter().collect()))
}

/// `check-status`.
pub(in crate::cli) fn check_status(app: &App, args: &CheckStatus) -> Outcome {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let (names, asked) = match &args.target {
        Some(typed) => {
            let name = target(app, typed)?.name;
            let asked = ProviderFacts::ask_of(ctx, &data, &name);
            (vec![name], asked)
        }
        None => (data.registry().names(), ProviderFacts::ask(ctx)),
    };
    let asked = asked.remembering(ctx);
    let mut is_silent = false;
    let said = |name| {
        let fact = asked.fact(&data, name).with_registered(data.target(name).as_ref());
        match asked.doubt(&data, &fact, ctx.clock.now()) {
            None => fact,
            Some(doubt) => {
                is_silent = true;
                TargetFact { raw_state: format!("unknown: {doubt}"), ..fact }
            }
        }
    };
    let facts: Vec<TargetFact> = names.iter().map(said).collect();
    let text = if facts.is_empty() { "No targets.".to_owned() } else { table(&facts) };
    let output = Output::new(text, &listed(&facts)).notes(silences(&asked.silent()));
    // In a list the others are as they are.
    let is_unanswered = is_silent && args.target.is_some();
    Ok(if is_unanswered { output.code(Kind::Unreachable.exit_code()) } else { output })
}

fn target(app: &App, typed: &str) -> Result<Target, Error> {
    resolve_target(&*app.ctx()?.data()?, typed)
}

/// Targets as a table.
pub(in crate::cli) fn table(facts: &[TargetFact]) -> String {
    let width = facts.iter().map(|fact| fact.name.as_str().len()).max().unwrap_or(0);
    let mut text = String::new();
    for fact in facts {
        let zone = fact.zone.as_deref().unwrap_or("-");
        let accelerator = fact.accelerator.as_deref().unwrap_or("-");
        let since = fact
            .since
            .map(|since| format!(" for {}", time::age(fact.observed_at.seconds_since(since))))
            .unwrap_or_default();
        text += &format!(
            "{:<width$}  {accelerator:<10} {zone:<16} {:<11} {}{since}\n",
            fact.name,
            fact.told_pricing(fact.pricing).unwrap_or("-"),
            tpu_core::text::escape(&fact.raw_state),
        );
    }
    text
}

fn described(fact: &TargetFact) -> TargetFactDocument<'_> {
    TargetFactDocument { target: TargetPart::from(fact) }
}

/// Targets as a document.
pub(in crate::cli) fn listed(facts: &[TargetFact]) -> TargetFactsDocument<'_> {
    TargetFactsDocument { targets: facts.iter().map(TargetPart::from).collect() }
}
