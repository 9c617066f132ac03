//! Whether locks hold where the data file is. On some network file systems every process gets every lock;
//! then two commands at the same time lose one of two changes, and nobody sees it happen.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tpu_system::store::disk::{Lock, Locked};
use tpu_system::sys::proc::{self, Spawn};

use super::doctor::{Finding, fine, warning};
use crate::Ctx;

/// The option of `tpu doctor` with which the second process is started.
pub(crate) const PROBE: &str = "--probe-lock";

/// How long the second process may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Takes a lock beside the data file and asks a second process whether it gets it too. `None` where that
/// cannot be tried: what then is wrong is found by others.
pub fn look(ctx: &Ctx) -> Option<Finding> {
    let probe = probe(ctx);
    let mut second = None;
    let locked = ctx.store.disk().with_lock(of(&probe), b"", &mut || {
        let words = ["doctor".as_ref(), PROBE.as_ref(), probe.as_os_str()];
        second = proc::run(&Spawn::new(&ctx.tpu).args(words).timeout(PATIENCE)).ok();
    });
    drop(ctx.store.disk().remove(&probe));
    let (Ok(Locked::Done { .. }), Some(second)) = (locked, second) else { return None };
    let dir = ctx.store.paths().dir().display();
    match second.status.shell_code() {
        0 => Some(warning(
            format!("locks do not hold in {dir}: two commands at the same time can lose a change"),
            "put the data file on a file system with locks: tpu --data FILE, or $TPU_DATA",
        )),
        code if code == i32::from(BUSY) => Some(fine(format!("locks hold in {dir}"))),
        _ => None,
    }
}

/// Exit code of the second process that does not get the lock.
pub const BUSY: u8 = 4;

/// The second process: whether the lock is to be had.
pub fn is_free(ctx: &Ctx, probe: &Path) -> bool {
    matches!(ctx.store.disk().with_lock(of(probe), b"", &mut || {}), Ok(Locked::Done { .. }))
}

fn of(path: &Path) -> Lock<'_> {
    Lock { path, mode: 0o600, guarded: None }
}

/// A file of this process's own beside the data file.
fn probe(ctx: &Ctx) -> PathBuf {
    ctx.store.paths().dir().join(format!(".tpu-lock-probe-{}", ctx.env.pid))
}
