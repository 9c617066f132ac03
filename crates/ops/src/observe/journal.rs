//! What has happened: the journal, newest events, of everybody, of one user or of one job.

use tpu_core::model::ids::{JobNumber, UserName};

pub use tpu_system::store::Event;

use crate::{Ctx, Error};

/// The newest `most` events, oldest first; of one user and one window if they are given.
pub fn newest(
    ctx: &Ctx,
    user: Option<&UserName>,
    window: Option<JobNumber>,
    most: usize,
) -> Result<Vec<Event>, Error> {
    let mut events = Vec::new();
    for event in ctx.store.events() {
        if events.len() == most {
            break;
        }
        let event = event?;
        let wanted = user.is_none_or(|name| event.user.as_ref() == Some(name))
            && window.is_none_or(|window| event.job == Some(window));
        if wanted {
            events.push(event);
        }
    }
    events.reverse();
    Ok(events)
}
