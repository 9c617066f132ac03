//! Whether something has changed since the last look, cheaply: numbers to be compared with their
//! predecessors. The screen and MONITOR ask here before they look in earnest; nothing is read or decided.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use crate::model::facts::TmuxFact;

use super::Ctx;

/// All of it in one number; costs one question to tmux.
pub fn all(ctx: &Ctx) -> u64 {
    let mut hasher = DefaultHasher::new();
    (data(ctx), windows(&ctx.tmux.look())).hash(&mut hasher);
    hasher.finish()
}

/// Which version of the data file is there; the same number as long as none can be seen.
pub fn data(ctx: &Ctx) -> u64 {
    let mut hasher = DefaultHasher::new();
    if let Ok(stat) = ctx.store.disk().stat(ctx.store.paths().data()) {
        (stat.file, stat.size, stat.modified).hash(&mut hasher);
    }
    hasher.finish()
}

/// Which windows there are, and which of them have ended.
pub fn windows(tmux: &TmuxFact) -> u64 {
    let mut hasher = DefaultHasher::new();
    match tmux {
        TmuxFact::Up { place, panes } => {
            (place.server_pid, place.server_start).hash(&mut hasher);
            for pane in panes {
                (&pane.pane_id, pane.dead, pane.exit).hash(&mut hasher);
            }
        }
        TmuxFact::Down { .. } => 0_u8.hash(&mut hasher),
        TmuxFact::Unknown { reason } => (1_u8, reason).hash(&mut hasher),
    }
    hasher.finish()
}
