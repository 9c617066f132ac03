//! What is everybody's: users, targets, hosts, what happens by itself, and what it has cost.

use crate::model::ids::UserName;
use crate::model::target::Machines;
use crate::model::time::{self, Timestamp};
use crate::model::view::Whose;
use crate::ops::board::rooms;
use crate::ops::inventory;
use crate::ops::preview;
use crate::ops::stats::{self, StatsRequest};
use crate::ops::{Error, hosts};
use crate::plan::stats::By;
use crate::text;
use crate::wire::daemon::PlanDocument;
use crate::wire::hosts::HostsDocument;
use crate::wire::stats::StatsDocument;
use crate::wire::targets::{InUsePart, ListedTargetPart, SilentZonePart, TargetsDocument};
use crate::wire::users::{UserPart, UsersDocument};

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::route::{Gives, Route, shape};
use super::takes::Parameter;

const TARGETS: [Parameter; 1] =
    [Parameter::word("format", "json, or text for curl", &["json", "text"])];
const USAGE: [Parameter; 3] = [
    Parameter::word(
        "by",
        "what a row stands for; user without",
        &["user", "target", "type", "zone", "tag", "week", "kind"],
    ),
    Parameter::text("since", "so long ago, as in 30d; from the first attempt on without"),
    Parameter::text("user", "whose; everybody's without"),
];

/// What is read of the lab.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/users", "Lists users", Gives::Json(shape::<UsersDocument<'_>>), users),
        Route::get(
            "/api/v1/targets",
            "Lists targets, and what they cost",
            Gives::Json(shape::<TargetsDocument<'_>>),
            targets,
        )
        .with(&TARGETS),
        Route::get(
            "/api/v1/hosts",
            "Lists machines of one's own, and who is there",
            Gives::Json(shape::<HostsDocument<'_>>),
            hosts,
        ),
        Route::get(
            "/api/v1/plan",
            "Says what happens by itself next",
            Gives::Json(shape::<PlanDocument<'_>>),
            plan,
        ),
        Route::get(
            "/api/v1/usage",
            "Counts what ran: hours, cost, goodput, preemptions",
            Gives::Json(shape::<StatsDocument<'_>>),
            usage,
        )
        .with(&USAGE),
    ]
}

fn users(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let data = asked.ctx.data()?;
    let seen = data.users().iter().filter(|user| asked.who.rights.may_see(&user.name));
    Ok(Answer::document(&UsersDocument { users: seen.map(UserPart::from).collect() }))
}

/// Targets and machines say whose jobs are there: whoever may not see everybody's may not see them.
fn sees_everybody(asked: &Asked<'_>) -> Result<(), Failure> {
    if asked.who.rights.sees_everybody() {
        return Ok(());
    }
    let what = format!("{} may not see who is where", asked.who.name);
    Err(Failure::forbidden(what, "it takes a token that is not about some users alone"))
}

fn targets(asked: &Asked<'_>) -> Result<Answer, Failure> {
    sees_everybody(asked)?;
    let ctx = asked.ctx;
    let mut seen = rooms::look(ctx)?;
    seen.targets.retain(|row| row.fact.machines != Machines::Here);
    seen.targets.sort_by(|a, b| (&a.zone, &a.target).cmp(&(&b.zone, &b.target)));
    if asked.text("format") == Some("text") {
        let rows = seen.targets.iter().map(|row| {
            let zone = row.zone.as_deref().unwrap_or("-");
            let kind = row.told_type().unwrap_or("-");
            format!("{:<40} {zone:<20} {kind:<12} {}\n", row.target.as_str(), row.standing.as_str())
        });
        let rows: String = rows.collect();
        return Ok(Answer::text(text::harmless(&rows).into_owned()));
    }
    let prices = ctx.provider_settings().prices;
    let sums = inventory::sums(&seen, &prices);
    let listed = |row| ListedTargetPart::of(row, &prices, seen.at);
    Ok(Answer::document(&TargetsDocument {
        targets: seen.targets.iter().map(listed).collect(),
        in_use: sums.iter().map(InUsePart::from).collect(),
        silent: seen.silent.iter().map(SilentZonePart::from).collect(),
    }))
}

fn hosts(asked: &Asked<'_>) -> Result<Answer, Failure> {
    sees_everybody(asked)?;
    let hosts = hosts::list(asked.ctx, &[])?;
    Ok(Answer::document(&HostsDocument::at(&hosts, asked.ctx.clock.now())))
}

fn plan(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let mut plan = preview::plan(asked.ctx)?;
    plan.jobs.retain(|entry| asked.who.rights.may_see(&entry.view.id.user));
    Ok(Answer::document(&PlanDocument::from(&plan)))
}

fn usage(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let ctx = asked.ctx;
    let by = By::parse(asked.text("by").unwrap_or("user"))
        .ok_or_else(|| Error::usage("by: nothing is counted by that"))?;
    let since = asked.text("since").map(|span| since(span, ctx.clock.now())).transpose()?;
    let rights = &asked.who.rights;
    let whose = match asked.text("user").map(UserName::from) {
        Some(user) if rights.may_see(&user) => Whose::of([user]),
        Some(user) => {
            let what = format!("{} may not see {user}'s jobs", asked.who.name);
            return Err(Failure::forbidden(what, "it takes a token that is about that user"));
        }
        None if rights.sees_everybody() => Whose::default(),
        None => Whose::of(rights.users.clone()),
    };
    let zone = ctx.zone(&ctx.settings(None)?);
    let report = stats::report(ctx, &StatsRequest { whose, by, since, until: None }, &zone)?;
    Ok(Answer::document(&StatsDocument::from(&report)))
}

fn since(span: &str, now: Timestamp) -> Result<Timestamp, Error> {
    let seconds = time::parse_age(span).and_then(|seconds| i64::try_from(seconds).ok());
    seconds
        .map(|seconds| now.plus_seconds(-seconds))
        .ok_or_else(|| Error::usage(format!("since={span}: no span")).hint("as in 90m, 12h or 30d"))
}
