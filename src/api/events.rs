//! `/api/v1/events`: what happens, as it happens.

use crate::model::ids::UserName;
use crate::ops::Error;

use super::asked::Asked;
use super::failure::Failure;
use super::flow::Flow;
use super::pulse::{self, Following};
use super::route::{Either, Gives, Route};
use super::takes::Parameter;

const FOLLOW: [Parameter; 1] = [Parameter::text("user", "whose; everybody's without")];

/// What flows.
pub(super) fn routes() -> Vec<Route> {
    let says = "Streams what happens; Last-Event-ID asks for what came behind an event";
    vec![Route::either("/api/v1/events", says, Gives::Events, follow).with(&FOLLOW)]
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
