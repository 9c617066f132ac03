//! `/api/v1/targets`: which there are and what they cost, and who keeps which.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::model::ids::UserName;
use crate::ops::{Error, board, inventory};
use crate::text;
use crate::wire::board::{ReleasedDocument, ReservedDocument};
use crate::wire::targets::TargetsDocument;
use crate::wire::words::TimePart;

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::route::{Gives, Route, shape};
use super::takes::{Needs, Parameter};

const TARGET: [Parameter; 1] = [Parameter::text("target", "its name, or an alias of it")];

const TARGETS: [Parameter; 1] =
    [Parameter::word("format", "json, or text for curl", &["json", "text"])];

/// Who is to have it, and for how long.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Reservation {
    /// For whom; without a word for the only user of the token.
    for_user: Option<String>,
    /// For so many seconds: at most seven days.
    seconds: u64,
}

/// For whom it is given back.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Return {
    /// For whom; without a word for the only user of the token.
    for_user: Option<String>,
}

/// What is read of targets and done with them.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/api/v1/targets",
            "Lists targets, and what they cost",
            Gives::TextOr("text/plain; charset=utf-8", shape::<TargetsDocument<'_>>),
            list,
        )
        .with(&TARGETS),
        Route::post(
            "/api/v1/targets/{target}/reserve",
            "Keeps a target for a user",
            Gives::Json(shape::<ReservedDocument<'_>>),
            reserve,
        )
        .with(&TARGET)
        .takes(shape::<Reservation>)
        .needs(Needs::Targets),
        Route::post(
            "/api/v1/targets/{target}/release",
            "Gives back what is kept for a user",
            Gives::Json(shape::<ReleasedDocument<'_>>),
            release,
        )
        .with(&TARGET)
        .takes(shape::<Return>)
        .needs(Needs::Targets),
    ]
}

fn list(asked: &Asked<'_>) -> Result<Answer, Failure> {
    asked.who.sees_everybody()?;
    let seen = inventory::seen(asked.ctx)?;
    if asked.text("format") == Some("text") {
        let rows = seen.targets.iter().map(|row| {
            let zone = row.zone.as_deref().unwrap_or("-");
            let kind = row.told_type().unwrap_or("-");
            format!("{:<40} {zone:<20} {kind:<12} {}\n", row.target.as_str(), row.standing.as_str())
        });
        return Ok(Answer::text(text::harmless(&rows.collect::<String>())));
    }
    let prices = asked.ctx.provider_settings().prices;
    let sums = inventory::sums(&seen, &prices);
    Ok(Answer::document(&TargetsDocument::of(&seen, &sums, &prices)))
}

/// The user who is meant, if the token is about that one.
fn for_whom(asked: &Asked<'_>, named: Option<&str>) -> Result<UserName, Failure> {
    let rights = &asked.who.rights;
    let user = named.map(UserName::from).or_else(|| rights.only_user().cloned());
    let user = user.ok_or_else(|| {
        Error::usage("for_user: nobody is named").hint("the token is about several, or everybody")
    })?;
    if rights.may_act_for(&user) {
        return Ok(user);
    }
    let what = format!("{} may not act for {user}", asked.who.name);
    Err(Failure::forbidden(what, "it takes a token that is about that user, or an admin's"))
}

fn reserve(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let Reservation { for_user, seconds } = asked.json()?;
    let user = for_whom(asked, for_user.as_deref())?;
    let typed = asked.text("target").unwrap_or_default();
    let (target, until) = board::reserve(asked.ctx, typed, &user, seconds)?;
    Ok(Answer::document(&ReservedDocument { target: &target, user: &user, until: TimePart(until) }))
}

fn release(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let Return { for_user } = asked.json()?;
    let user = for_whom(asked, for_user.as_deref())?;
    let typed = asked.text("target").unwrap_or_default();
    let (target, was_taken) = board::release(asked.ctx, typed, Some(&user))?;
    Ok(Answer::document(&ReleasedDocument { target: &target, was_taken }))
}
