//! How jobs are, for all who ask: one look serves everybody, and is made anew while somebody asks.
//!
//! Jobs stand in the order of their names, which stays whatever begins, ends and waits meanwhile: pages go by it. Whoever has
//! changed something sees it: [`Looks::after_change`] lets the next one wait for a new look.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::Value;

use tpu_core::model::ids::JobId;
use tpu_core::model::view::{JobView, Snapshot, Whose};
use tpu_core::text::fnv1a;
use tpu_ops::observe::snapshot::LookMemory;
use tpu_ops::waiting::queue::shown::{self, WaitingMembers};
use tpu_ops::{Ctx, Error};
use tpu_wire::jobs::JobPart;

/// A look serves so long.
const SERVES: Duration = Duration::from_secs(1);
/// Nobody waits longer for a look that somebody else makes; one that some machines are silent to takes ten.
const PATIENCE: Duration = Duration::from_secs(30);
/// So long after the last question nobody is looked for any more.
const ATTENDS: Duration = Duration::from_secs(10);

/// A look.
pub(super) struct Seen {
    /// What was seen, the jobs by user and number.
    pub(super) snapshot: Snapshot,
    /// The versions of its jobs, in their order, as far as somebody has asked.
    versions: Vec<OnceLock<u64>>,
    /// When it was made, by the monotonic clock.
    made: Duration,
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
            let waited = self.changed.wait_timeout(state, PATIENCE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if let Some(error) = &state.failed {
                return Err(error.again());
            }
            let serves = state.seen.as_ref().is_some_and(|seen| seen.made >= least);
            if !serves && ctx.clock.monotonic().saturating_sub(began) >= PATIENCE {
                return Err(Error::unreachable("a look at the jobs does not come to its end")
                    .hint("something does not answer: `tpu doctor` says what"));
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
    fn of(mut snapshot: Snapshot, made: Duration) -> Self {
        snapshot.jobs.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        let versions = snapshot.jobs.iter().map(|_| OnceLock::new()).collect();
        Self { snapshot, versions, made }
    }

    /// A job of it.
    pub(super) fn job(&self, id: &JobId) -> Option<&JobView> {
        let at = self.snapshot.jobs.binary_search_by(|job| job.id.cmp(id)).ok()?;
        self.snapshot.jobs.get(at)
    }

    /// The jobs behind one, which need not be there any more, each with its place; all without one.
    pub(super) fn behind(&self, last: Option<&JobId>) -> impl Iterator<Item = (usize, &JobView)> {
        let begin =
            last.map_or(0, |last| self.snapshot.jobs.partition_point(|job| job.id <= *last));
        self.snapshot.jobs.iter().enumerate().skip(begin)
    }

    /// The version of the job at a place: it changes with what is said of it, but not with what only grows older.
    pub(super) fn version(&self, at: usize) -> u64 {
        let of = |job| version(&serde_json::to_value(JobPart::from(job)).unwrap_or_default());
        match (self.snapshot.jobs.get(at), self.versions.get(at)) {
            (Some(job), Some(known)) => *known.get_or_init(|| of(job)),
            _ => 0,
        }
    }
}

/// A number that changes with a document, but not with what of it only grows older.
pub(super) fn version(document: &Value) -> u64 {
    let mut document = document.clone();
    without_ages(&mut document);
    fnv1a(document.to_string().bytes())
}

/// Takes out what is another number a second later although nothing has happened.
fn without_ages(value: &mut Value) {
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
