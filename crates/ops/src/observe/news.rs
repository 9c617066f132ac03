//! What has happened since a user last asked: the journal behind a mark that each user has.

use tpu_core::model::ids::UserName;
use tpu_core::model::time::Timestamp;
use tpu_system::store::{Event, atomic};

use crate::{Ctx, Error};

/// Mode of a mark: the lab's group shares it.
const MODE: u32 = 0o660;

/// What is new.
#[derive(Debug)]
pub struct News {
    /// The newest events, oldest first.
    pub events: Vec<Event>,
    /// How many older ones are new as well.
    pub more: usize,
    /// The mark they stand behind; `None` the first time.
    pub since: Option<Timestamp>,
}

/// The events about a user's affairs since the last call for that user, and puts the mark behind them.
pub fn since_last(ctx: &Ctx, user: &UserName, most: usize) -> Result<News, Error> {
    let path = ctx.store.paths().seen(user.as_str());
    let disk = &**ctx.store.disk();
    let read = disk.read(&path).ok();
    let since: Option<Timestamp> = read.and_then(|mark| serde_json::from_slice(&mark.bytes).ok());
    let mut events: Vec<Event> = Vec::new();
    let mut more = 0;
    for event in ctx.store.events() {
        let event = event?;
        if since.is_some_and(|since| event.at <= since) {
            break;
        }
        if event.user.as_ref() != Some(user) {
            continue;
        }
        if events.len() < most { events.push(event) } else { more += 1 }
    }
    if let Some(newest) = events.first().filter(|_| !ctx.store.is_dry_run()) {
        ctx.store.state_dir()?;
        // To the nanosecond: what follows within the same second is new.
        let mark = serde_json::to_vec(&newest.at).unwrap_or_default();
        atomic::write_file(disk, &path, &mark, MODE)?;
    }
    events.reverse();
    Ok(News { events, more, since })
}
