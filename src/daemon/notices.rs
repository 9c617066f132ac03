//! Has people told of what happens, beside the turns: reading the journal on is a round on a thread of its own, and so
//! is each delivery. A receiver that hangs keeps nobody waiting but itself.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tpu_ops::act::notices::{self, Follower, PhaseSeen};
use tpu_ops::observe::wake;
use tpu_ops::{Ctx, Error};
use tpu_system::sys::clock::Clock;
use tpu_wire::notices::body;

use super::wait_at_most;

/// From one round to the next, if nothing happens: what waits in the outbox may have been put there by nobody's doing
/// that is seen here, as a setting that was changed.
const AT_LEAST_EVERY: Duration = Duration::from_secs(5);

/// What this daemon remembers of it.
#[derive(Default)]
pub(super) struct Notices {
    shared: Arc<Shared>,
    /// The journal as it was when the last round began.
    journal: Option<u64>,
    next: Duration,
}

/// What rounds and deliveries share with the loop.
#[derive(Default)]
struct Shared {
    follower: Mutex<Follower>,
    phases: Mutex<Vec<PhaseSeen>>,
    is_reading: AtomicBool,
    is_due: AtomicBool,
    at_work: AtomicUsize,
    /// When something is due again, on the monotonic clock.
    wakes: Mutex<Option<Duration>>,
    trouble: Mutex<Option<String>>,
}

fn held<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says that a round or a delivery is over, however it ended.
struct AtWork(Arc<Shared>, bool);

impl AtWork {
    fn begin(shared: &Arc<Shared>, is_round: bool) -> Self {
        shared.at_work.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(shared), is_round)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        if self.1 {
            self.0.is_reading.store(false, Ordering::SeqCst);
        } else {
            // What waits behind it may be due.
            self.0.is_due.store(true, Ordering::SeqCst);
        }
        self.0.at_work.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Notices {
    /// Takes note of what a turn has seen.
    pub(super) fn saw(&self, phases: Vec<PhaseSeen>) {
        let mut before = held(&self.shared.phases);
        if *before != phases {
            *before = phases;
            self.shared.is_due.store(true, Ordering::SeqCst);
        }
    }

    /// Begins a round if something has happened or is due.
    pub(super) fn run(&mut self, ctx: &Arc<Ctx>, now: Duration) {
        // A simulation has nobody to tell.
        if !ctx.procs.can_tell() {
            return;
        }
        let journal = Some(wake::journal(ctx));
        let wakes = held(&self.shared.wakes).is_some_and(|wakes| now >= wakes);
        let is_due = self.shared.is_due.load(Ordering::SeqCst);
        if journal == self.journal && now < self.next && !wakes && !is_due {
            return;
        }
        if self.shared.is_reading.swap(true, Ordering::SeqCst) {
            return;
        }
        self.shared.is_due.store(false, Ordering::SeqCst);
        (self.journal, self.next) = (journal, now + AT_LEAST_EVERY);
        let (ctx, shared) = (Arc::clone(ctx), Arc::clone(&self.shared));
        let round = AtWork::begin(&shared, true);
        ctx.clone().threads.spawn(Box::new(move || {
            let done = read(&ctx, &shared);
            *held(&shared.trouble) = done.err().map(|error| error.message);
            drop(round);
        }));
    }

    /// What went wrong in the last round.
    pub(super) fn trouble(&self) -> Option<String> {
        held(&self.shared.trouble).clone()
    }

    /// Waits for what is on its way, but not for ever: what then is, is sent again by the next one, under the same id.
    pub(super) fn finish(&self, clock: &dyn Clock, patience: Duration) {
        wait_at_most(clock, patience, || self.shared.at_work.load(Ordering::SeqCst) == 0);
    }
}

/// One round: reads on, and sets a thread to each delivery.
fn read(ctx: &Arc<Ctx>, shared: &Arc<Shared>) -> Result<(), Error> {
    let phases = held(&shared.phases).clone();
    let round = notices::round(ctx, &mut held(&shared.follower), &phases)?;
    let now = ctx.clock.now();
    let wakes = round.next.map(|at| {
        let pause = Duration::from_secs(at.seconds_since(now)).max(Duration::from_millis(200));
        ctx.clock.monotonic() + pause
    });
    *held(&shared.wakes) = wakes;
    for delivery in round.deliveries {
        let (ctx, at_work) = (Arc::clone(ctx), AtWork::begin(shared, false));
        ctx.clone().threads.spawn(Box::new(move || {
            // What cannot be noted is tried again, under the same id, once nobody can be sending it any more.
            drop(notices::deliver(&ctx, &delivery, &body));
            drop(at_work);
        }));
    }
    Ok(())
}
