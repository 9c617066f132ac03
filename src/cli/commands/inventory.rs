//! All targets and one target: what there is, what it costs, what the data file should know.

use std::collections::BTreeMap;

use crate::cli::Outcome;
use crate::cli::app::{App, UNDONE};
use crate::cli::args::{Describe, Import, Targets, TargetsStep};
use crate::cli::legacy;
use crate::cli::print::Output;
use crate::cli::print::table::columns;
use tpu_core::model::facts::TargetFact;
use tpu_core::model::ids::TargetName;
use tpu_core::model::prices::Prices;
use tpu_core::model::target::{Machines, ProviderAt, ProviderName, Registration};
use tpu_core::model::time;
use tpu_core::plan::board::Row;
use tpu_core::text::counted;
use tpu_ops::Error;
use tpu_ops::act::board::Board;
use tpu_ops::act::{selection, targets};
use tpu_ops::front::dry_run;
use tpu_ops::front::inventory::{self, Change, Class, Description, Sum};
use tpu_wire::targets::{
    DescribeDocument, DescribeMachinesDocument, DescribedTargetPart, ImportDocument,
    TargetsDocument,
};
use tpu_wire::workers::StepPart;

use super::workers;

/// For whoever has no targets yet.
const NONE: &str = "No targets. `tpu register NAME` makes one known, `tpu targets import` all that the \
    cloud has.";

/// `targets`.
pub(in crate::cli) fn targets(app: &App, args: &Targets) -> Outcome {
    if let Some(TargetsStep::Import(args)) = &args.step {
        return import(app, &wish(app, args)?);
    }
    let ctx = app.ctx()?;
    let seen = inventory::seen(ctx)?;
    let prices = ctx.provider_settings().prices;
    let sums = inventory::sums(&seen, &prices);
    let text = match (seen.targets.is_empty(), args.cost) {
        (true, _) => NONE.to_owned(),
        (_, true) => costs(&sums),
        (_, false) => table(&seen, &prices),
    };
    let document = TargetsDocument::from((&seen, &sums, &prices));
    Ok(Output::new(text, &document).notes(silences(&seen.silent)))
}

/// The zones that said nothing, and why.
pub(super) fn silences(silent: &[(String, String)]) -> Vec<String> {
    let line = |(zone, why): &(String, String)| match zone.as_str() {
        "-" => format!("the cloud said nothing: {why}"),
        zone => format!("zone {zone} said nothing: {why}"),
    };
    silent.iter().map(line).collect()
}

fn table(seen: &Board, prices: &Prices) -> String {
    let head = ["NAME", "ALIAS", "TYPE", "CHIPS", "ZONE", "PRICING", "JOBS", "STATE"];
    let row = |row: &Row| {
        let (chips, _) = inventory::worth(row, prices);
        vec![
            row.target.as_str().to_owned(),
            dash(row.alias()),
            dash(row.told_type()),
            chips.map_or_else(|| "-".to_owned(), |chips| chips.to_string()),
            dash(row.zone.as_deref()),
            dash(row.fact.told_pricing(row.pricing)),
            row.jobs.len().to_string(),
            state(&row.fact, seen.at),
        ]
    };
    columns(&head, &seen.targets.iter().map(row).collect::<Vec<_>>())
}

fn costs(sums: &BTreeMap<Class, Sum>) -> String {
    let money = |amount: Option<f64>| amount.map_or_else(|| "-".to_owned(), |a| format!("{a:.2}"));
    let head = ["ZONE", "TYPE", "PRICING", "TARGETS", "CHIPS", "HOURS", "PER HOUR", "SO FAR"];
    let mut rows = Vec::new();
    let mut total = Some(0.0);
    for ((zone, kind, pricing), sum) in sums {
        total = total.zip(sum.per_hour).map(|(total, price)| total + price);
        rows.push(vec![
            zone.clone(),
            kind.clone(),
            (*pricing).to_owned(),
            sum.targets.to_string(),
            sum.chips.map_or_else(|| "-".to_owned(), |chips| chips.to_string()),
            sum.hours.map_or_else(|| "-".to_owned(), |hours| format!("{hours:.1}")),
            money(sum.per_hour),
            money(sum.so_far),
        ]);
    }
    let end = match total {
        Some(total) => format!("Together {total:.2} per hour.\n"),
        None => "Not all prices are known; as in: tpu set-settings prices '{\"v4\": {\"spot\": 1.2}, \"v2-8\": 4}'\n".to_owned(),
    };
    if sums.is_empty() {
        return "Nothing is in use.".to_owned();
    }
    columns(&head, &rows) + &end
}

fn dash(text: Option<&str>) -> String {
    text.map_or_else(|| "-".to_owned(), |text| tpu_core::text::escape(text).into_owned())
}

/// The state in words: the control plane's own, for how long, what is wrong, what it waits for.
fn state(fact: &TargetFact, now: time::Timestamp) -> String {
    let mut text = tpu_core::text::escape(&fact.raw_state).into_owned();
    if let Some(since) = fact.since {
        text += &format!(" for {}", time::age(now.seconds_since(since)));
    }
    if fact.stuck_for_s(now).is_some() {
        text += " (stuck)";
    }
    if let Some(room) = &fact.room {
        text += &format!(": {}", tpu_core::text::escape(&room.in_words()));
    }
    if fact.is_flagged() || fact.machines == Machines::Engine && !fact.symptoms.is_empty() {
        text += &format!(" ({})", tpu_core::text::escape(&fact.complaint()));
    }
    if let Some(queued) = &fact.queued {
        let word = tpu_core::text::escape(&queued.raw_state).into_owned();
        text += &format!(" [{} {word}]", queued.name);
    }
    text
}

/// What is to be imported: what a provider has, or what a kind of target finds by itself.
fn wish<'a>(app: &App, args: &'a Import) -> Result<inventory::Wish<'a>, Error> {
    let Import { alias, provider, project, endpoint, kind, of_kind } = args;
    let provider = provider.as_ref().map(|name| ProviderAt {
        name: ProviderName::new(name),
        project: project.clone(),
        endpoint: endpoint.clone(),
    });
    let is_of_a_kind = kind.is_some() || !of_kind.said.is_empty();
    let like = is_of_a_kind.then(|| {
        let said: Vec<&str> = of_kind.said.names().collect();
        let kind = targets::kind(app.ctx()?, kind.as_deref(), &said)?;
        Ok::<_, Error>(Registration {
            kind,
            options: of_kind.said.clone(),
            ..Registration::default()
        })
    });
    Ok(inventory::Wish { provider, like: like.transpose()?, alias: alias.as_deref() })
}

/// `targets import`.
fn import(app: &App, wish: &inventory::Wish<'_>) -> Outcome {
    let ctx = app.ctx()?;
    let plan = inventory::compare(ctx, wish, &legacy::command_words())?;
    let mut text: String = plan.changes.iter().map(difference).collect();
    if plan.changes.is_empty() {
        let seen = counted(plan.seen, "target");
        text = format!("Nothing to import: of {seen} each is known as it is.\n");
    }
    let mut notes = silences(&plan.silent);
    if !plan.absent.is_empty() {
        let names: Vec<&str> = plan.absent.iter().map(TargetName::as_str).collect();
        notes.push(format!(
            "known and not in the cloud: {} (`tpu del-registered NAME` forgets one)",
            names.join(", ")
        ));
    }
    let answer = |imported: bool, text: String| {
        Ok(Output::new(text, &ImportDocument::from((&plan, imported))).notes(notes.clone()))
    };
    if plan.changes.is_empty() || app.global.dry_run {
        return answer(false, text);
    }
    app.tell(text.trim_end());
    let targets = counted(plan.changes.len(), "target");
    app.agree(&format!("Register {targets} so?"), UNDONE)?;
    let left = inventory::import(ctx, &plan)?;
    if left.is_empty() {
        return answer(true, format!("Imported {targets}."));
    }
    let targets = counted(plan.changes.len() - left.len(), "target");
    let left: Vec<&str> = left.iter().map(TargetName::as_str).collect();
    let left = left.join(", ");
    answer(true, format!("Imported {targets}. Registered meanwhile and left as it is: {left}."))
}

fn difference(change: &Change) -> String {
    let sign = if change.is_new { '+' } else { '~' };
    let what = tpu_core::text::escape(&change.differences.join(", ")).into_owned();
    format!("{sign} {}  {what}\n", change.name)
}

/// `describe TARGET`.
pub(in crate::cli) fn describe(app: &App, of: &Describe) -> Outcome {
    let ctx = app.ctx()?;
    let target = selection::target(&*ctx.data()?, &of.target, "describe")?;
    let seen = inventory::describe(ctx, &target)?;
    let zone = app.zone(&*ctx.data()?, None)?;
    let text = paragraphs(&seen, ctx.clock.now(), &zone);
    let described = DescribedTargetPart::from(&seen);
    if !of.machines {
        return Ok(Output::new(text, &DescribeDocument { target: described }));
    }
    let request = workers::request(target, "describe", false);
    let (outcomes, asked) = if app.global.dry_run {
        let before = dry_run::line("target", request.target.name.as_str());
        (None, workers::dry_run_of(app, &request, &before)?)
    } else {
        let outcomes = workers::follow_recipe(app, &request)?;
        let asked = workers::told(&request, &outcomes);
        (Some(outcomes), asked)
    };
    let machines = outcomes.as_ref().map(|all| all.iter().map(StepPart::from).collect());
    let document = DescribeMachinesDocument { target: described, machines };
    let text = format!("{text}\n{}", asked.text);
    Ok(Output::new(text, &document).code(asked.code).notes(asked.notes))
}

fn paragraphs(seen: &Description, now: time::Timestamp, zone: &time::Zone) -> String {
    let fact = &seen.fact;
    let list = |items: &[String]| {
        let items: Vec<&str> =
            items.iter().map(|item| if item.is_empty() { "-" } else { item }).collect();
        dash(Some(items.join(", ")).as_deref().filter(|text| !text.is_empty()))
    };
    let jobs: Vec<String> = seen.jobs.iter().map(ToString::to_string).collect();
    let number = |n: Option<usize>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let chips = seen.size.0.and_then(|chips| usize::try_from(chips).ok());
    let at = |at: Option<time::Timestamp>| at.map_or_else(|| "-".to_owned(), |at| zone.stamp(at));
    let origin = match &seen.registered {
        Some(known) => known.origin.clone().unwrap_or_else(|| "by hand".to_owned()),
        None => "no".to_owned(),
    };
    let lines = [
        ("target", fact.name.as_str().to_owned()),
        ("aliases", list(&seen.aliases)),
        ("state", state(fact, now)),
        ("health", dash(fact.health.as_deref())),
        ("symptoms", list(&fact.symptoms)),
        ("type", dash(fact.accelerator.as_deref())),
        ("chips", number(chips)),
        ("workers", number(seen.workers())),
        ("addresses", list(&fact.endpoints)),
        ("zone", dash(fact.zone.as_deref())),
        ("pricing", dash(fact.told_pricing(fact.pricing))),
        ("created", at(fact.created_at)),
        ("request", dash(fact.request.as_deref())),
        ("registered", origin),
        ("used by", list(&jobs)),
        ("said by", format!("{}, {}", fact.source, zone.stamp(fact.observed_at))),
    ];
    let lines = lines.map(|(name, value)| format!("{name:<11}{value}"));
    lines.join("\n") + "\n"
}
