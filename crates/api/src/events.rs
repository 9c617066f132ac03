//! `/api/v1/events`: what happens, as it happens; `/api/v1/journal`: what has happened.

use tpu_core::model::ids::UserName;
use tpu_ops::Error;
use tpu_ops::observe::journal::{self, Event};
use tpu_wire::events::EventsDocument;

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::flow::Flow;
use super::pulse::{self, Following};
use super::route::{Either, Gives, Route, shape};
use super::takes::Parameter;

/// Events where nobody says how many.
const NEWEST: usize = 200;
/// So far back is looked for what somebody may see who sees some users alone.
const FARTHEST: usize = 20_000;

const JOURNAL: [Parameter; 2] = [
    Parameter::text("user", "whose; everybody's without"),
    Parameter::number("limit", "how many; 200 without", (1, 2_000)),
];

const FOLLOW: [Parameter; 1] = [Parameter::text("user", "whose; everybody's without")];

/// What flows.
pub(super) fn routes() -> Vec<Route> {
    let says = "Streams what happens; Last-Event-ID asks for what came behind an event";
    vec![
        Route::either("/api/v1/events", says, Gives::Events, follow).with(&FOLLOW),
        Route::get(
            "/api/v1/journal",
            "Says what has happened, the newest last",
            Gives::Json(shape::<EventsDocument<'_>>),
            journal,
        )
        .with(&JOURNAL),
    ]
}

/// The newest of what whoever asks may see.
fn journal(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let user = asked.text("user").map(UserName::from);
    if let Some(user) = &user {
        asked.who.sees(user)?;
    }
    let most =
        asked.number("limit").and_then(|limit| usize::try_from(limit).ok()).unwrap_or(NEWEST);
    let rights = &asked.who.rights;
    let may_see = |event: &Event| match &event.user {
        Some(user) => rights.may_see(user),
        None => rights.sees_everybody(),
    };
    let events = if user.is_some() || rights.sees_everybody() {
        journal::newest(asked.ctx, user.as_ref(), None, most)?
    } else {
        // Of what others have done a viewer of some users sees nothing.
        let mut events = journal::newest(asked.ctx, None, None, FARTHEST)?;
        events.retain(may_see);
        events.split_off(events.len().saturating_sub(most))
    };
    Ok(Answer::document(&EventsDocument::from(&*events)))
}

fn follow(asked: &Asked<'_>) -> Result<Either, Failure> {
    let heard = match asked.header("last-event-id") {
        None | Some("") => None,
        Some(id) => Some(pulse::place(id).ok_or_else(|| {
            Error::usage(format!("Last-Event-ID: {id}")).hint("take it from the `id` of an event")
        })?),
    };
    let user = asked.text("user").map(UserName::from);
    if let Some(user) = &user {
        asked.who.sees(user)?;
    }
    let (rights, token) = (asked.who.rights.clone(), asked.who.token.clone());
    let following = Following { rights, user, token, heard };
    let pieces = asked.served.pulse.follow(asked.ctx, following)?;
    let pieces = pieces.ok_or_else(Failure::too_many_follow)?;
    Ok(Either::Flowing(Flow { kind: "text/event-stream", pieces }))
}
