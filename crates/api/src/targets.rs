//! `/api/v1/targets`: which there are and what they cost, who keeps which, and how they are made.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard, PoisonError};

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use tpu_core::model::data::Data;
use tpu_core::model::ids::{TargetName, UserName};
use tpu_core::model::target::Pricing;
use tpu_core::text;
use tpu_ops::act::target_spec::Wish;
use tpu_ops::act::{board, provision, selection};
use tpu_ops::base::{reservations, watch};
use tpu_ops::front::{dry_run, inventory};
use tpu_ops::{Ctx, Error};
use tpu_wire::board::{ReleasedDocument, ReservedDocument};
use tpu_wire::targets::{TargetBegunDocument, TargetPlanDocument, TargetsDocument};
use tpu_wire::words::{TimePart, Word};

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::limited;
use super::route::{Gives, Route, shape};
use super::served::Served;
use super::takes::{Needs, Parameter};

const TARGET: [Parameter; 1] = [Parameter::text("target", "its name, or an alias of it")];

const MAKE: [Parameter; 2] =
    [TARGET[0], Parameter::flag("dry_run", "say what would be done, and do nothing")];

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

/// What is asked for; what is not said is as it is known, or as it was.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TargetWish {
    /// The zone.
    zone: Option<String>,
    /// The accelerator type.
    r#type: Option<String>,
    /// How it is paid for.
    #[schemars(with = "Option<Word<Pricing>>")]
    pricing: Option<Pricing>,
    /// The runtime version.
    version: Option<String>,
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
        make("/api/v1/targets/{target}/apply", "Makes a target that is not there", |asked| {
            begin(asked, Making::Apply)
        }),
        make(
            "/api/v1/targets/{target}/reapply",
            "Deletes a target with all that is on it, and makes it again",
            |asked| begin(asked, Making::Reapply),
        ),
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

fn make(
    path: &'static str,
    says: &'static str,
    run: fn(&Asked<'_>) -> Result<Answer, Failure>,
) -> Route {
    let begun = Gives::Begun(shape::<TargetPlanDocument<'_>>, shape::<TargetBegunDocument<'_>>);
    let route = Route::post(path, says, begun, run).with(&MAKE);
    route.takes(shape::<TargetWish>).needs(Needs::Targets)
}

/// How a target is made.
#[derive(Clone, Copy)]
enum Making {
    /// What is there stays.
    Apply,
    /// It is deleted before.
    Reapply,
}

/// Begins to make a target, which takes minutes: what would be refused is refused at once, and events tell of the rest.
fn begin(asked: &Asked<'_>, making: Making) -> Result<Answer, Failure> {
    let TargetWish { zone, r#type, pricing, version } = asked.json()?;
    let wish = Wish { zone, accelerator: r#type, pricing, runtime_version: version, queued: None };
    let (verb, is_anew) = match making {
        Making::Apply => ("apply", false),
        Making::Reapply => ("reapply", true),
    };
    let (ctx, typed) = (asked.ctx, asked.text("target").unwrap_or_default());
    let data = ctx.data()?;
    // What is not known here is registered first: its name and its place are somebody's decision.
    let name = selection::target(&data, typed, verb)?.name;
    may_make(asked, &data, &name)?;
    limited::may_become(asked, (&*data, &name), wish.accelerator.as_deref())?;
    let plan = dry_run::remake(ctx, &name, &wish, is_anew)?;
    if asked.is_trial() {
        return Ok(Answer::document(&TargetPlanDocument::from(&plan)));
    }
    let room = Arc::clone(&asked.served.makers).try_acquire_owned().map_err(|_| {
        let error = Error::refused("too many targets are being made").hint("come later");
        Failure::from(error).status(StatusCode::SERVICE_UNAVAILABLE).header("retry-after", "60")
    })?;
    if !made_now(asked.served).insert(name.clone()) {
        let error = Error::refused(format!("{name} is being made already"));
        return Err(error.hint("events tell how it goes").into());
    }
    let answer = Answer::document(&TargetBegunDocument { target: &name, begun: verb });
    let (own, served) = (asked.served.ctx_of(asked.who, false), Arc::clone(asked.served));
    drop(tokio::task::spawn_blocking(move || {
        let made =
            catch_unwind(AssertUnwindSafe(|| provision::provide(&own, &name, &wish, is_anew)));
        let inside = || Error::failed("an error inside tpu");
        let made = made.unwrap_or_else(|_| Err(inside())).map(|fact| fact.raw_state);
        made_now(&served).remove(&name);
        tell(&own, &name, made);
        drop(room);
    }));
    Ok(answer.status(StatusCode::ACCEPTED))
}

/// Tells of those that are still being made that the end of the server cut them off.
pub(super) fn tell_cut_off(served: &Served) {
    for name in &*made_now(served) {
        let text =
            format!("{name}: the server ended while it was being made; look whether it is there");
        drop(watch::note(&served.ctx, "api", "not-made", &text));
    }
}

/// Those that are made just now.
fn made_now(served: &Served) -> MutexGuard<'_, BTreeSet<TargetName>> {
    served.making.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses what somebody else keeps than those for whom whoever asks may act.
fn may_make(asked: &Asked<'_>, data: &Data, name: &TargetName) -> Result<(), Failure> {
    let rights = &asked.who.rights;
    if rights.may_administer() {
        return Ok(());
    }
    let now = asked.ctx.clock.now();
    let mut refused = None;
    for user in &rights.users {
        match reservations::may_take(data, name, user, now) {
            Ok(()) => return Ok(()),
            Err(error) => refused = Some(error),
        }
    }
    refused.map_or(Ok(()), |error| Err(error.into()))
}

/// Tells the journal how it went: nobody waits for the answer.
fn tell(ctx: &Ctx, name: &TargetName, made: Result<String, Error>) {
    let (kind, text) = match made {
        Ok(state) => ("made", format!("{name} is {state}")),
        Err(error) => ("not-made", format!("{name}: {}", error.message)),
    };
    // Whoever reads the targets sees it all the same.
    drop(watch::note(ctx, &ctx.actor, kind, &text));
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
    Ok(Answer::document(&TargetsDocument::from((&seen, &sums, &prices))))
}

fn reserve(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let Reservation { for_user, seconds } = asked.json()?;
    let user = asked.acting_for(for_user.map(UserName::new), "for_user: NAME, in the body")?;
    let typed = asked.text("target").unwrap_or_default();
    let (target, until) = board::reserve(asked.ctx, typed, &user, seconds)?;
    Ok(Answer::document(&ReservedDocument { target: &target, user: &user, until: TimePart(until) }))
}

fn release(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let Return { for_user } = asked.json()?;
    let user = asked.acting_for(for_user.map(UserName::new), "for_user: NAME, in the body")?;
    let typed = asked.text("target").unwrap_or_default();
    let (target, was_taken) = board::release(asked.ctx, typed, Some(&user))?;
    Ok(Answer::document(&ReleasedDocument { target: &target, was_taken }))
}
