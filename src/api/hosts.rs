//! `/api/v1/hosts`: machines of one's own, and who is there.

use crate::ops::hosts;
use crate::wire::hosts::HostsDocument;

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::route::{Gives, Route, shape};

/// What is read of machines.
pub(super) fn routes() -> Vec<Route> {
    vec![Route::get(
        "/api/v1/hosts",
        "Lists machines of one's own, and who is there",
        Gives::Json(shape::<HostsDocument<'_>>),
        list,
    )]
}

fn list(asked: &Asked<'_>) -> Result<Answer, Failure> {
    asked.who.sees_everybody()?;
    let hosts = hosts::list(asked.ctx, &[])?;
    Ok(Answer::document(&HostsDocument::at(&hosts, asked.ctx.clock.now())))
}
