//! What all say of what waits: for what, and whether anything begins by itself.

use crate::Ctx;
use crate::base::watch;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::spec::TargetRequest;

/// On what a job is to begin, in words.
pub fn wants(target: &TargetRequest) -> String {
    match target {
        TargetRequest::Named(name) => name.clone(),
        TargetRequest::Any(any_of) => any_of.in_words(),
    }
}

/// That nothing of the queue begins by itself, where that is so.
pub fn nobody_starts(ctx: &Ctx) -> Vec<String> {
    if let Some(note) = watch::running(ctx) {
        let watches =
            |why| format!("nothing starts automatically while the daemon only watches: {why}");
        return note.watches.map(watches).into_iter().collect();
    }
    let is_made = |entry: &QueueEntry| entry.applies && entry.held.is_none();
    let said = if ctx.data().is_ok_and(|data| data.queues().entries.iter().any(is_made)) {
        "no target is created and nothing starts automatically while the daemon does not run: tpu daemon start"
    } else {
        "nothing starts automatically while the daemon does not run: tpu daemon start, or tpu queue run"
    };
    vec![said.to_owned()]
}
