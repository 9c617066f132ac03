//! `/api/v1/targets/{target}/{reserve|release}`: who keeps which target.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::model::ids::UserName;
use crate::ops::{Error, board};
use crate::wire::board::{ReleasedDocument, ReservedDocument};
use crate::wire::words::TimePart;

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::route::{Gives, Route, shape};
use super::takes::{Needs, Parameter};

const TARGET: [Parameter; 1] = [Parameter::text("target", "its name, or an alias of it")];

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

/// What is done with targets.
pub(super) fn routes() -> Vec<Route> {
    vec![
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
