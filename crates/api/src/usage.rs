//! `/api/v1/usage`: what ran, and what it has cost.

use tpu_core::model::ids::UserName;
use tpu_core::model::view::Whose;
use tpu_core::plan::stats::By;
use tpu_ops::Error;
use tpu_ops::observe::stats::{self, StatsRequest};
use tpu_wire::stats::StatsDocument;

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::route::{Gives, Route, shape};
use super::takes::Parameter;

const USAGE: [Parameter; 3] = [
    Parameter::word(
        "by",
        "what a row stands for; user without",
        &["user", "target", "type", "zone", "tag", "week", "kind"],
    ),
    Parameter::text("since", "so long ago, a day or an instant; from the first attempt on without"),
    Parameter::text("user", "whose; everybody's without"),
];

/// What is counted.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/api/v1/usage",
            "Counts what ran: hours, cost, goodput, preemptions",
            Gives::Json(shape::<StatsDocument<'_>>),
            count,
        )
        .with(&USAGE),
    ]
}

fn count(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let ctx = asked.ctx;
    let by = By::parse(asked.text("by").unwrap_or("user"))
        .ok_or_else(|| Error::usage("by: nothing is counted by that"))?;
    let data = ctx.data()?;
    let about = asked.text("user").map(UserName::from).and_then(|name| data.user(&name));
    let zone = ctx.zone(&ctx.settings(about)?);
    let since = asked.text("since").map(|word| {
        zone.moment(word, ctx.clock.now()).ok_or_else(|| {
            Error::usage(format!("since={word}: neither a span nor a day"))
                .hint("as in 90m, 12h, 30d, 2026-11-01 or 2026-11-01T14:00:00Z")
        })
    });
    let since = since.transpose()?;
    let rights = &asked.who.rights;
    let whose = match asked.text("user").map(UserName::from) {
        Some(user) => {
            asked.who.sees(&user)?;
            Whose::of([user])
        }
        None if rights.sees_everybody() => Whose::default(),
        None => Whose::of(rights.users.clone()),
    };
    let report = stats::report(ctx, &StatsRequest { whose, by, since, until: None }, &zone)?;
    Ok(Answer::document(&StatsDocument::from(&report)))
}
