//! The set-up of a job that runs on this machine, in its window and at its terminal.

use std::ffi::OsString;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::ctx::job_of;
use crate::base::records;
use crate::{Ctx, Error};
use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::{JobId, LaunchToken};
use tpu_engine::runner::window::beside;
use tpu_system::sys::proc::Spawn;
use tpu_system::sys::talk::{self, Heard as Said, Stdin};

use super::{FAILED, Hearing, SetUp, SetUpLine, said_in};

/// Exit code of what somebody has ended by Ctrl-C, as shells have it.
const STOPPED: i32 = 130;

/// What came of a set-up on this machine.
pub enum SetUpHere {
    /// All of it is so: the command that is to begin.
    Ready(Vec<OsString>),
    /// It is over: the exit code.
    Ended(i32),
}

/// Sets up what the job of a launch wants. Why it has failed is written down beside the launcher, also where nothing of it
/// could begin.
pub fn set_up_here(
    ctx: &Ctx,
    token: &LaunchToken,
    out: &mut dyn Write,
    stop: &AtomicBool,
) -> Result<SetUpHere, Error> {
    let id = records::launched(ctx, token)?;
    let come = set_up(ctx, (&id, token), out, stop);
    if let Err(error) = &come {
        beside::record_cause(ctx, &id, token, (ErrorKind::Setup, &error.message))?;
    }
    come
}

fn set_up(
    ctx: &Ctx,
    (id, token): (&JobId, &LaunchToken),
    out: &mut dyn Write,
    stop: &AtomicBool,
) -> Result<SetUpHere, Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    let command = beside::work(ctx, id);
    let Some(setup) = SetUp::of(ctx, &data, job)? else { return Ok(SetUpHere::Ready(command)) };
    let state = ctx.store.state_dir()?;
    let dir = tempfile::tempdir_in(&state).map_err(|e| {
        Error::state(format!("cannot make a directory in {}: {e}", state.display()))
    })?;
    setup.lay(ctx, dir.path(), "", true)?;
    let failed =
        |e: &dyn std::fmt::Display| Error::failed(format!("the set-up cannot be run: {e}"));
    // What it says on either output is one text.
    let spawn = Spawn::new("bash")
        .args(["-c", "exec bash \"$0\" 2>&1"])
        .arg(dir.path().join("setup.sh"))
        .env("TPU_WORKER", "0");
    let (mut voice, mut hold) = talk::begin(&spawn, Stdin::Ends).map_err(|e| failed(&e))?;
    let mut hearing = Hearing::new(&setup, &id.to_string(), job.log_dir.as_deref(), &[0]);
    let (mut buffer, mut partial) = ([0; 1 << 14], Vec::new());
    'said: while let Said::Out(count) | Said::Err(count) =
        voice.listen(&mut buffer).map_err(|e| failed(&e))?
    {
        partial.extend_from_slice(buffer.get(..count).unwrap_or_default());
        while let Some(end) = memchr::memchr2(b'\n', b'\r', &partial) {
            let rest = partial.split_off(end + 1);
            let line = std::mem::replace(&mut partial, rest);
            let (shown, is_over) = match hearing.hear(0, line, ctx.clock.monotonic()) {
                SetUpLine::SetUp(shown) => (shown, false),
                SetUpLine::AllReady(line) | SetUpLine::Failed(_, line) => (Some(line), true),
                SetUpLine::Command(_) => (None, true),
            };
            if let Some(said) = shown.as_deref().and_then(said_in).filter(|_| !is_over) {
                beside::record_progress(ctx, id, token, &said);
            }
            // Nobody who looks is no reason to stop.
            drop(shown.map(|shown| out.write_all(&shown).and_then(|()| out.flush())));
            // What a step has left running may hold its output for ever.
            if is_over {
                break 'said;
            }
        }
    }
    let status = hold.wait().map_err(|e| failed(&e))?;
    if stop.load(Ordering::Relaxed) {
        return Ok(SetUpHere::Ended(if status.success() { STOPPED } else { status.shell_code() }));
    }
    if status.success() {
        beside::record_begin(ctx, id, token)?;
        return Ok(SetUpHere::Ready(setup.within(command)));
    }
    if let Some((_, line)) = hearing.ended(0, &format!("ended with {}", status.shell_code())) {
        drop(out.write_all(&line));
    }
    let why = hearing.failed().unwrap_or("nobody knows why");
    beside::record_cause(ctx, id, token, (ErrorKind::Setup, why))?;
    Ok(SetUpHere::Ended(FAILED))
}
