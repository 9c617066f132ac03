//! The demo's lab: two users with a directory each, on a tmux server of their own; and how it is taken
//! down again.

use std::fs;
use std::path::Path;

use crate::model::facts::TmuxFact;
use crate::model::ids::UserName;
use crate::ops::users::NewUser;
use crate::ops::{Ctx, Error, dirs, processes, users};

/// The researcher whose job is interrupted.
pub const ALICE: &str = "alice";
/// The researcher whose jobs go wrong.
pub const BOB: &str = "bob";

/// What the demo's jobs run: the training that is part of this program.
const TRAIN: &str = "#!/bin/bash\n\
    # A small training that is part of tpu itself: it writes checkpoints and can go on from them.\n\
    exec \"$TPU_BIN\" demo-train --workdir=\"$TPU_LOG_DIR\" \"$@\"\n";

/// Lays the lab out below `root`.
pub fn lay_out(ctx: &Ctx, root: &Path) -> Result<(), Error> {
    for name in [ALICE, BOB] {
        let code = root.join("code").join(name);
        let made = fs::create_dir_all(&code).and_then(|()| script(&code.join("train.sh")));
        made.map_err(|e| Error::state(format!("cannot lay out {}: {e}", code.display())))?;
        users::add(
            ctx,
            &NewUser {
                name: name.to_owned(),
                tmux_name: None,
                dir: None,
                time_zone: None,
                reserved: Vec::new(),
            },
        )?;
        dirs::set(ctx, &UserName::from(name), 1, &code)?;
    }
    Ok(())
}

/// Writes the training script, executable.
fn script(path: &Path) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(path)?;
    file.write_all(TRAIN.as_bytes())
}

/// Stops every job and ends the lab's own tmux server. The directory is the caller's.
pub fn take_down(ctx: &Ctx) -> Result<(), Error> {
    if let Ok(data) = ctx.data() {
        for job in data.jobs() {
            processes::stop(ctx, job, None)?;
        }
    }
    if let TmuxFact::Up { place, .. } = ctx.tmux.look() {
        ctx.tmux.end_server(place.server_pid)?;
    }
    Ok(())
}
