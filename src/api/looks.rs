//! How jobs are, for all who ask: one look serves everybody, and is made anew while somebody asks.
//!
//! Each job is written as JSON once a look, with its version beside it, so that an answer is a matter of putting pieces
//! together. Whoever has changed something sees it: [`Looks::after_change`] lets the next one wait for a new look.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::model::view::{JobView, Snapshot, Whose};
use crate::ops::queue::shown::{self, WaitingMembers};
use crate::ops::snapshot::LookMemory;
use crate::ops::{Ctx, Error};
use crate::text::fnv1a;
use crate::wire::jobs::JobPart;

/// A look serves so long.
const SERVES: Duration = Duration::from_secs(1);
/// So long after the last question nobody is looked for any more.
const ATTENDS: Duration = Duration::from_secs(10);

/// A look, and each of its jobs as it leaves.
pub(super) struct Seen {
    /// The look.
    pub(super) snapshot: Snapshot,
    /// Its jobs as JSON, in its order.
    pub(super) parts: Vec<Part>,
    /// When it was made, by the monotonic clock.
    made: Duration,
}

/// A job as it leaves.
pub(super) struct Part {
    /// A JSON object.
    pub(super) json: String,
    /// Changes with it, but not with what only grows older.
    pub(super) version: u64,
}

#[derive(Default)]
struct State {
    seen: Option<Arc<Seen>>,
    memory: LookMemory,
    /// When somebody asked last.
    asked: Option<Duration>,
    /// Looks that began before this moment are not enough.
    after: Duration,
    /// Whether somebody looks just now.
    looking: bool,
    /// What became of the last look that failed, for those who waited for it.
    failed: Option<Error>,
}

/// The last look, and who waits for the next.
#[derive(Default)]
pub(super) struct Looks {
    state: Mutex<State>,
    changed: Condvar,
}

impl Looks {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last look if it serves; else a new one, made by one of those who want it.
    pub(super) fn now(&self, ctx: &Ctx) -> Result<Arc<Seen>, Error> {
        let began = ctx.clock.monotonic();
        let mut state = self.state();
        state.asked = Some(began);
        loop {
            let least = state.after.max(began.saturating_sub(SERVES * 2));
            if let Some(seen) = state.seen.as_ref().filter(|seen| seen.made >= least) {
                return Ok(Arc::clone(seen));
            }
            if !state.looking {
                return self.look(ctx, state);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            if let Some(error) = &state.failed {
                return Err(error.again());
            }
        }
    }

    /// Looks. Whoever wants the same meanwhile waits for it.
    fn look(&self, ctx: &Ctx, mut state: MutexGuard<'_, State>) -> Result<Arc<Seen>, Error> {
        state.looking = true;
        state.failed = None;
        let mut memory = std::mem::take(&mut state.memory);
        drop(state);
        let made = ctx.clock.monotonic();
        // Whoever waits for this look waits for its end, whatever that is.
        let looked = catch_unwind(AssertUnwindSafe(|| {
            let whose = Whose::default();
            let snapshot = shown::look(ctx, &mut memory, &whose, WaitingMembers::Folded)?;
            Ok(Arc::new(Seen::of(snapshot, made)))
        }));
        let looked = looked.unwrap_or_else(|_| {
            memory = LookMemory::default();
            Err(Error::failed("an error inside tpu").hint("please report it"))
        });
        let mut state = self.state();
        state.memory = memory;
        state.looking = false;
        match &looked {
            Ok(seen) => state.seen = Some(Arc::clone(seen)),
            Err(error) => state.failed = Some(error.again()),
        }
        drop(state);
        self.changed.notify_all();
        looked
    }

    /// Something was changed: who asks from now on waits for a look that knows it.
    pub(super) fn after_change(&self, ctx: &Ctx) {
        self.state().after = ctx.clock.monotonic();
    }

    /// Looks again where the last look grows old and somebody still asks; to be called every now and then.
    pub(super) fn keep_fresh(&self, ctx: &Ctx) {
        let now = ctx.clock.monotonic();
        let state = self.state();
        let is_attended = state.asked.is_some_and(|at| now.saturating_sub(at) < ATTENDS);
        let is_old = state.seen.as_ref().is_none_or(|seen| now.saturating_sub(seen.made) >= SERVES);
        if is_attended && is_old && !state.looking {
            // What went wrong is said to those who ask.
            drop(self.look(ctx, state));
        }
    }
}

impl Seen {
    fn of(snapshot: Snapshot, made: Duration) -> Self {
        let parts = snapshot.jobs.iter().map(Part::of).collect();
        Self { snapshot, parts, made }
    }
}

impl Part {
    fn of(view: &JobView) -> Self {
        let json = serde_json::to_string(&JobPart::from(view)).unwrap_or_default();
        let mut value: Value = serde_json::from_str(&json).unwrap_or_default();
        without_ages(&mut value);
        let version = fnv1a(value.to_string().bytes());
        Self { json, version }
    }
}

/// Takes out what is another number a second later although nothing has happened.
pub(super) fn without_ages(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for name in ["age_s", "in_s", "generated_at"] {
                members.shift_remove(name);
            }
            members.values_mut().for_each(without_ages);
        }
        Value::Array(parts) => parts.iter_mut().for_each(without_ages),
        _ => {}
    }
}
