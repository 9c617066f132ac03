//! Whether something has happened that is worth a look: another version of the data file (an exit, an
//! `ack`, a command), or another set of windows. Cheap enough to be asked ten times a second.

use std::time::Duration;

use tpu_ops::Ctx;
use tpu_ops::observe::{runners, wake};

/// Between two questions to tmux, which cost a process each.
const TMUX_EVERY: Duration = Duration::from_millis(500);

/// What was there at the last beat.
#[derive(Debug, Default)]
pub(super) struct Wake {
    data: Option<u64>,
    windows: Option<u64>,
    asked: Option<Duration>,
    /// Whether any job may be at work; without one no window matters.
    pub(super) has_live_jobs: bool,
}

impl Wake {
    /// Whether anything differs from the last beat. The first one does.
    pub(super) fn beat(&mut self, ctx: &Ctx, now: Duration) -> bool {
        let data = Some(wake::data(ctx));
        let mut changed = data != self.data;
        self.data = data;
        let is_due = self.asked.is_none_or(|asked| now >= asked + TMUX_EVERY);
        if self.has_live_jobs && is_due {
            self.asked = Some(now);
            let windows = Some(runners::wakes(ctx));
            changed |= windows != self.windows;
            self.windows = windows;
        }
        changed
    }
}
