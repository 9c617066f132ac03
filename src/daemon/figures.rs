//! Figures of the machines on which jobs are at work, kept while nobody looks: whoever looks later sees them at once.
//! Asked for beside the turns, which wait for no machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tpu_ops::Ctx;
use tpu_ops::act::hosts::figures::{self, Whom};

/// From one look, whether a machine is to be asked, to the next.
const EVERY: Duration = Duration::from_secs(10);

/// Before the first: a daemon that only comes and goes asks nobody.
const FIRST: Duration = Duration::from_secs(3);

/// When machines were looked at, and whether they are being asked now.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    next: Option<Duration>,
    is_asking: Arc<AtomicBool>,
}

/// Says that nobody is asked any more, however the round ended.
struct Asking(Arc<AtomicBool>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Rounds {
    /// Begins a round if it is time and a job may be at work.
    pub(super) fn run(&mut self, ctx: &Arc<Ctx>, now: Duration, has_live_jobs: bool) {
        // A simulated machine says nothing of itself.
        if !ctx.procs.can_tell() || now < *self.next.get_or_insert(now + FIRST) {
            return;
        }
        self.next = Some(now + EVERY);
        if !has_live_jobs || self.is_asking.swap(true, Ordering::Relaxed) {
            return;
        }
        let (ctx, asking) = (Arc::clone(ctx), Asking(Arc::clone(&self.is_asking)));
        ctx.clone().threads.spawn(Box::new(move || {
            // Without figures jobs are as they are: the next round may have better luck.
            drop(figures::round(&ctx, Whom::AtWork));
            drop(asking);
        }));
    }
}
