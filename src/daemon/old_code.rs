//! Code of jobs that were archived long ago, removed from time to time beside the turns: a disk may be slow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tpu_core::text::{bytes, counted};
use tpu_ops::Ctx;
use tpu_ops::base::watch;
use tpu_ops::front::old_code;

/// When code was removed last, and whether it is being removed now.
#[derive(Debug, Default)]
pub(super) struct OldCode {
    ran: Option<Duration>,
    is_removing: Arc<AtomicBool>,
}

/// Says that nothing is removed any more, however that ended.
struct Removing(Arc<AtomicBool>);

impl Drop for Removing {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl OldCode {
    /// Removes what is due if it is time, as often as the checks run. The first time is one interval after the start.
    pub(super) fn run(&mut self, ctx: &Arc<Ctx>, now: Duration) {
        // A simulated machine has no disk with copies.
        if !ctx.procs.can_tell() {
            return;
        }
        let Ok(data) = ctx.data() else { return };
        let every = Duration::from_secs(u64::from(data.monitor_config().test_freq));
        if now < *self.ran.get_or_insert(now) + every {
            return;
        }
        self.ran = Some(now);
        if self.is_removing.swap(true, Ordering::Relaxed) {
            return;
        }
        let (ctx, removing) = (Arc::clone(ctx), Removing(Arc::clone(&self.is_removing)));
        ctx.clone().threads.spawn(Box::new(move || {
            // What cannot be removed now is removed the next time.
            if let Ok(gone) = old_code::remove_due(&ctx)
                && gone.copies > 0
            {
                let (jobs, bytes) = (counted(gone.copies, "old job"), bytes(gone.bytes));
                let line = format!("removed the code of {jobs} ({bytes}); what they wrote stays");
                // That it was removed is seen all the same.
                drop(watch::note(&ctx, watch::ACTOR, "daemon", &line));
            }
            drop(removing);
        }));
    }
}
