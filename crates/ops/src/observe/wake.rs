//! Whether something has changed since the last look, cheaply: numbers to be compared with their
//! predecessors. The screen and the daemon ask here before they look in earnest; nothing is read or decided.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::time::Duration;

use super::runners;
use crate::Ctx;

/// Of this many parts of the time, one may be spent on waiting for tmux.
const SPARING: u32 = 100;

/// Whatever an answer took (a server that hung, a process that was stopped), the next question comes by then.
const LONGEST: Duration = Duration::from_secs(10);

/// Which version of the data file is there; the same number as long as none can be seen.
pub fn data(ctx: &Ctx) -> u64 {
    mark_of(ctx, &[ctx.store.paths().data()])
}

/// How long the journal is, and when it was last written to; the same number as long as nothing is added.
pub fn journal(ctx: &Ctx) -> u64 {
    mark_of(ctx, &[&ctx.store.paths().events()])
}

/// Data file, journal and archive in one number: all that is known of what ran.
pub fn history(ctx: &Ctx) -> u64 {
    let paths = ctx.store.paths();
    mark_of(ctx, &[paths.data(), &paths.events(), &paths.archive()])
}

/// Which versions of some files are there.
fn mark_of(ctx: &Ctx, files: &[&Path]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in files {
        let stat = ctx.store.disk().stat(file).ok();
        stat.map(|stat| (stat.file, stat.size, stat.modified)).hash(&mut hasher);
    }
    hasher.finish()
}

/// The pulse of the screen, which is open all day: the more windows a server has to go through for an
/// answer, the less often it is asked.
#[derive(Debug, Default)]
pub struct Wake {
    windows: u64,
    /// When the server may be asked again, on the monotonic clock.
    due: Duration,
}

impl Wake {
    /// Data file and windows in one number. What it says of the windows is as old as a hundred times what
    /// the last answer took, and [`LONGEST`] at most.
    pub fn all(&mut self, ctx: &Ctx) -> u64 {
        let now = ctx.clock.monotonic();
        if now >= self.due {
            self.windows = runners::wakes(ctx);
            let took = ctx.clock.monotonic().saturating_sub(now);
            self.due = now + took.saturating_mul(SPARING).min(LONGEST);
        }
        let mut hasher = DefaultHasher::new();
        (data(ctx), self.windows).hash(&mut hasher);
        hasher.finish()
    }
}
