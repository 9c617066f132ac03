//! `/api/v1/events`: what happens, as it happens.

use axum::http::{Method, StatusCode};

use crate::model::ids::UserName;
use crate::ops::Error;

use super::asked::Asked;
use super::failure::Failure;
use super::flow::Flow;
use super::pulse::{self, Following};
use super::route::{Gives, Route, Run};
use super::takes::{Needs, Parameter};

const FOLLOW: [Parameter; 1] = [Parameter::text("user", "whose; everybody's without")];

/// What flows.
pub(super) fn routes() -> Vec<Route> {
    vec![Route {
        method: Method::GET,
        path: "/api/v1/events",
        says: "Streams what happens; Last-Event-ID asks for what came behind an event",
        needs: Needs::Seeing,
        parameters: &FOLLOW,
        body: None,
        gives: Gives::Events,
        run: Run::Flowing(follow),
    }]
}

fn follow(asked: &Asked<'_>) -> Result<Flow, Failure> {
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
    let pieces = asked.served.pulse.follow(asked.ctx, following)?.ok_or_else(|| {
        let error = Error::refused("too many follow already").hint("close some, or come later");
        Failure::from(error).status(StatusCode::SERVICE_UNAVAILABLE).header("retry-after", "10")
    })?;
    Ok(Flow { kind: "text/event-stream", pieces })
}
