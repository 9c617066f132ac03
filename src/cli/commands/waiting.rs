//! What all say of what waits: for what, why, and what has begun.

use crate::model::data::Data;
use crate::model::entry::{Priority, QueueEntry};
use crate::model::ids::JobId;
use crate::model::spec::TargetRequest;
use crate::ops::called::WaitingCalled;
use crate::ops::queue;
use crate::ops::queue::field::Avoided;
use crate::ops::queue::pass::{self, Passage};
use crate::ops::queue::places;
use crate::ops::{Ctx, Error, watch};
use crate::plan::queue::EntryStanding;

/// Reads how urgent something is.
pub(super) fn priority(text: &str) -> Result<Priority, Error> {
    Priority::parse(text).ok_or_else(|| {
        Error::usage(format!("priority {text}: no number from 0 to 100"))
            .hint("higher ones come first; without a word it is 50")
    })
}

/// On what a job is to begin, in words.
pub(super) fn wants(target: &TargetRequest) -> String {
    match target {
        TargetRequest::Named(name) => name.clone(),
        TargetRequest::Any(any_of) => any_of.in_words(),
    }
}

/// Lets what waits have a look, behind a change that is made: what goes wrong there is said, and is no failure of the
/// change.
pub(super) fn look_after(ctx: &Ctx) -> Passage {
    match pass::unless_watched(ctx, usize::MAX) {
        Ok(passage) => passage.unwrap_or_default(),
        Err(error) => {
            ctx.warn([format!("what waits was not looked at: {}", error.message)]);
            Passage::default()
        }
    }
}

/// Says what has begun.
pub(super) fn started_lines(passage: &Passage) -> Vec<String> {
    passage.started.iter().map(|(_, launched, _)| launched.in_words()).collect()
}

/// The jobs that have begun.
pub(super) fn begun(passage: &Passage) -> Vec<JobId> {
    passage.started.iter().map(|(_, launched, _)| launched.job.clone()).collect()
}

/// That an entry waits, and why.
pub(super) fn waits_line(entry: &QueueEntry, why: &str) -> String {
    match entry.waiting() {
        1 => format!("It waits: {why}"),
        waiting => format!("{waiting} wait: {why}"),
    }
}

/// That something was taken out.
pub(super) fn never_began(called: &WaitingCalled) -> String {
    format!("{called} {} no more, and never began.", called.waits())
}

/// That nothing of the queue begins by itself, where that is so.
pub(super) fn nobody_starts(ctx: &Ctx) -> Vec<String> {
    let is_watched = watch::running(ctx).is_some();
    let said = (!is_watched).then(|| {
        let data = ctx.data().ok();
        let is_made = |entry: &QueueEntry| entry.applies && entry.held.is_none();
        let makes = data.is_some_and(|data| data.queues().entries.iter().any(is_made));
        let said = if makes { "; only MONITOR makes targets" } else { "" };
        format!(
            "nothing begins by itself while MONITOR does not run: tpu daemon start, or tpu queue run{said}"
        )
    });
    said.into_iter().collect()
}

/// Where an entry stands in its queue, and why it waits.
pub(super) fn standing_of(
    ctx: &Ctx,
    data: &Data,
    id: &JobId,
) -> Result<Option<(usize, String)>, Error> {
    let at = data.queues().entries.iter().position(|entry| entry.id() == *id);
    let mut standings = queue::standings(ctx, data, &Avoided::new())?;
    places::tell(ctx, data, &mut standings, &|entry| entry.id() == *id);
    let own = standings.into_iter().find(|standing| Some(standing.entry) == at);
    Ok(own.map(|own| (own.position, why(ctx, &own))))
}

/// Why an entry has not begun, for people.
pub(super) fn why<P>(ctx: &Ctx, standing: &EntryStanding<P>) -> String {
    match &standing.waits {
        Some(reason) => reason.to_string(),
        None if watch::running(ctx).is_none() => "nothing is in its way".to_owned(),
        None => "it begins at the next look".to_owned(),
    }
}
