//! The limits that a job has been given on its time, kept beside its window: no daemon is needed for them. Whoever
//! relays what it prints watches them, and is begun again should it be killed.
//!
//! Time begins when the command does: what is set up before has limits of its own. Silence is a log that does not grow,
//! whatever the screen shows.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tpu_core::classify::own_line;
use tpu_core::model::data::Data;
use tpu_core::model::execution::Execution;
use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::JobId;
use tpu_core::model::job::Job;
use tpu_core::model::time::age;
use tpu_engine::runner::window::beside;
use tpu_engine::runner::window::launcher::LIMITED;
use tpu_engine::runner::{RunRef, StopOrder, StopPart, Unreached};

use crate::base::ctx::{job_of, user_of};
use crate::observe::runners;
use crate::{Ctx, Error};

/// Between two looks.
const POLL: Duration = Duration::from_millis(250);

/// Between two tries to stop what cannot be reached.
const AGAIN: Duration = Duration::from_secs(10);

/// Whether a launcher says that limits are set on the time of its job; `spool` lies beside it.
pub fn are_beside(spool: &Path) -> bool {
    spool.with_file_name(LIMITED).exists()
}

/// A limit that is over.
struct Over {
    kind: ErrorKind,
    why: String,
}

/// What of a job is known when its limits are watched.
struct Watched {
    job: Job,
    execution: Execution,
    session: String,
}

/// The job of a window, if limits are set on its time.
fn watched(data: &Data, id: &JobId) -> Option<Watched> {
    let job = job_of(data, id).ok()?.clone();
    let execution = job.execution().filter(|execution| execution.is_limited())?.clone();
    let session = user_of(data, &id.user).ok()?.tmux_name.clone();
    Some(Watched { job, execution, session })
}

/// Keeps the limits of a job until it is over. `log` is what it prints, `heard` counts the bytes of that, also of those
/// that are not in the log yet.
pub fn keep(ctx: &Ctx, id: &JobId, (log, heard): (&Path, &AtomicU64), over: &AtomicBool) {
    let watched = loop {
        match ctx.data().ok() {
            Some(data) => match watched(&data, id) {
                Some(watched) => break watched,
                None => return,
            },
            None if over.load(Ordering::Relaxed) => return,
            None => ctx.clock.sleep(POLL),
        }
    };
    let said =
        || (std::fs::metadata(log).map(|about| about.len()).ok(), heard.load(Ordering::Relaxed));
    let (mut before, mut grown) = (said(), ctx.clock.monotonic());
    while !over.load(Ordering::Relaxed) {
        ctx.clock.sleep(POLL);
        let begun = beside::begun_at(ctx, &watched.job);
        // Whoever cannot be heard is not silent.
        if said() != before || begun.is_none() || !beside::are_heard(ctx, &watched.job) {
            (before, grown) = (said(), ctx.clock.monotonic());
        }
        let Some(begun) = begun else { continue };
        let silent = ctx.clock.monotonic().saturating_sub(grown).as_secs();
        let lasted = ctx.clock.now().seconds_since(begun);
        let Some(limit) = reached(&watched.execution, lasted, silent) else { continue };
        let is_silent = || said() == before;
        if end(ctx, &watched, &limit, (over, &is_silent)) {
            return;
        }
    }
}

/// The limit that is over after so many seconds, of which the last so many were silent.
fn reached(execution: &Execution, lasted: u64, silent: u64) -> Option<Over> {
    if let Some(most) = execution.timeout_s.filter(|most| lasted >= *most) {
        let why = format!("its time is over: timeout: {}", age(most));
        return Some(Over { kind: ErrorKind::Timeout, why });
    }
    let most = execution.idle_timeout_s.filter(|most| silent >= *most)?;
    let why = format!("it has printed nothing for {}: idle_timeout", age(most));
    Some(Over { kind: ErrorKind::Stalled, why })
}

/// Writes down why it ends, and stops it; as often as it takes. Whether that is over: what speaks again before it could be
/// stopped has not stalled.
fn end(
    ctx: &Ctx,
    watched: &Watched,
    limit: &Over,
    (over, is_silent): (&AtomicBool, &dyn Fn() -> bool),
) -> bool {
    let Watched { job, session, .. } = watched;
    let (id, Some(launch)) = (job.id(), &job.launch) else { return true };
    if let Err(error) = beside::record_cause(ctx, &id, &launch.token, (limit.kind, &limit.why)) {
        ctx.warn([error.to_string()]);
    }
    ctx.warn([own_line(&id.to_string(), &limit.why)]);
    let stop = StopOrder { part: StopPart::Program, unreached: Unreached::Refuse };
    while !over.load(Ordering::Relaxed) {
        match runners::of(ctx, job).stop(RunRef { job, session }, stop) {
            Ok(_) => return true,
            Err(error) => ctx.warn([Error::from(error).to_string()]),
        }
        let until = ctx.clock.monotonic() + AGAIN;
        while ctx.clock.monotonic() < until && !over.load(Ordering::Relaxed) {
            ctx.clock.sleep(POLL);
        }
        if limit.kind == ErrorKind::Stalled && !is_silent() {
            beside::forget_cause(ctx, &id);
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_over_when_its_time_is_and_not_before() {
        let of = |timeout_s, idle_timeout_s| Execution {
            timeout_s,
            idle_timeout_s,
            ..Execution::default()
        };
        assert!(reached(&of(Some(60), None), 59, 1_000).is_none());
        let over = reached(&of(Some(60), Some(60)), 60, 60).unwrap();
        assert_eq!(
            (over.kind, over.why.as_str()),
            (ErrorKind::Timeout, "its time is over: timeout: 1m")
        );
        let over = reached(&of(None, Some(90)), 1_000, 90).unwrap();
        assert_eq!(over.kind, ErrorKind::Stalled);
        assert!(reached(&of(None, Some(90)), 1_000, 89).is_none());
    }
}
