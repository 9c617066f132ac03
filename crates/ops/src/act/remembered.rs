//! The lines that somebody has typed behind `:` on the screen, remembered from one screen to the next: one file
//! for each user, a line each, the newest last. The caller leaves out lines that name a secret
//! (`screen::typed::names_a_secret`).

use tpu_core::model::ids::UserName;
use tpu_system::store::disk::Lock;
use tpu_system::store::{Who, atomic, lock};

use crate::{Ctx, Error};

/// So many lines are remembered, on the screen and in the file.
pub const MOST: usize = 200;
/// Mode of the file: what people type is their own affair.
const MODE: u32 = 0o600;

/// The lines of a user, oldest first; of nobody in particular for those who look at everybody's jobs.
pub fn lines(ctx: &Ctx, user: Option<&UserName>) -> Result<Vec<String>, Error> {
    let path = ctx.store.paths().remembered(user.map(UserName::as_str));
    match ctx.store.disk().read(&path) {
        Ok(contents) => {
            let text = String::from_utf8_lossy(&contents.bytes);
            Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(Error::state(format!("cannot read {}: {e}", path.display()))
            .hint("what is typed is remembered until the screen is left")),
    }
}

/// Remembers a line as the newest; the same line from before goes. Under a lock of its own, so that of two
/// screens neither loses what the other remembers.
pub fn remember(ctx: &Ctx, user: Option<&UserName>, line: &str) -> Result<(), Error> {
    if ctx.store.is_dry_run() {
        return Ok(());
    }
    let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    ctx.store.state_dir()?;
    let path = ctx.store.paths().remembered(user.map(UserName::as_str));
    let guard = path.with_extension("lock");
    let who = Who {
        pid: ctx.env.pid,
        host: ctx.env.hostname.clone(),
        command: format!("tpu {}", ctx.actor),
    };
    let disk = &**ctx.store.disk();
    let lock = Lock { path: &guard, mode: MODE, guarded: Some(&path) };
    lock::with(disk, &*ctx.clock, &who, lock, || {
        let mut all = lines(ctx, user)?;
        all.retain(|other| *other != line);
        all.push(line);
        let surplus = all.len().saturating_sub(MOST);
        let text: String = all.drain(surplus..).flat_map(|line| [line, "\n".to_owned()]).collect();
        Ok(atomic::write_file(disk, &path, text.as_bytes(), MODE)?)
    })?
}
