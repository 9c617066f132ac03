//! Where launches lay what they need: the copies of the code, the log directories, and the names of both.

use std::path::Path;

use tpu_core::model::data::{Data, User};
use tpu_core::model::ids::{JobNumber, LaunchToken, UserName};
use tpu_core::model::target::Target;
use tpu_core::model::time::Timestamp;
use tpu_system::sys::shared::{self, Unwritable};

use crate::{Ctx, Error};

/// Directories below which native mode makes its own.
#[derive(Clone, Debug)]
pub struct Roots {
    /// For copies of the code.
    pub stage: String,
    /// For logs and checkpoints.
    pub log: String,
}

/// Where native mode stages and logs for this user.
pub fn roots(ctx: &Ctx, user: &User) -> Result<Roots, Error> {
    let settings = ctx.settings(Some(user))?;
    let below = |name: &str| ctx.store.paths().state().join(name).to_string_lossy().into_owned();
    Ok(Roots {
        stage: settings.stage_root.unwrap_or_else(|| below("stage")),
        log: settings.log_root.unwrap_or_else(|| below("logs")),
    })
}

/// The same for what runs on a target: what was said of that comes first.
pub(crate) fn roots_at(
    ctx: &Ctx,
    data: &Data,
    user: &User,
    target: &Target,
) -> Result<Roots, Error> {
    let usual = roots(ctx, user)?;
    let (Ok(kind), Some(registration)) = (ctx.kinds.of(target), data.registration(&target.name))
    else {
        return Ok(usual);
    };
    let own = kind.roots(registration);
    Ok(Roots { stage: own.stage.unwrap_or(usual.stage), log: own.log.unwrap_or(usual.log) })
}

impl Roots {
    /// Refuses what could not log on this machine, or copy its code where it `copies`: its window would only say so to
    /// itself.
    pub(crate) fn may_be_used(&self, user: &UserName, copies: bool) -> Result<(), Error> {
        for root in std::iter::once(&self.log).chain(copies.then_some(&self.stage)) {
            let dir = Path::new(root).join(user.as_str());
            if let Err(Unwritable { place, why }) = shared::may_write_below(&dir) {
                let what = if place == dir {
                    format!("cannot write in {}: {why}", dir.display())
                } else {
                    format!("cannot make {} in {}: {why}", dir.display(), place.display())
                };
                return Err(Error::state(what)
                    .hint("nothing was started; `tpu doctor` says whose it is and what to do"));
            }
        }
        Ok(())
    }
}

/// Where code of a user is copied to.
pub(crate) fn stage_dir(roots: &Roots, user: &UserName, name: &str) -> String {
    format!("{}/{user}/{name}", roots.stage)
}

/// `20261120_140211-7-9f3a01`: sorts by time, and no two launches share it.
pub(crate) fn directory_name(number: JobNumber, token: &LaunchToken, now: Timestamp) -> String {
    let token: String = token.as_str().chars().take(6).collect();
    format!("{}-{number}-{token}", now.compact())
}
