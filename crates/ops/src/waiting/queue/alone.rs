//! One pass over the queue at a time, on behalf of all who ask for one meanwhile.
//!
//! A process that has changed something leaves a note, then asks for the right to pass. The right is a lock of the system,
//! one for each data file and place, and ends with its holder. The holder removes the note before it reads the queue, and
//! looks for a new one after it has given the right back. So either the holder sees a note, or the process that left it gets
//! the right. If a holder is killed, the next process that asks does all that is left.

use std::io::ErrorKind;
use std::time::Duration;

use crate::base::watch;
use crate::{Ctx, Error};

/// Mode of the note: the lab's group may remove it.
const NOTE_MODE: u32 = 0o660;

/// A holder that has passed for longer keeps nobody else from passing: it may be stopped, or wait for something that never
/// comes. Two passes at once start nothing twice, since each claim is checked in its own transaction; they only cost more.
const STUCK_S: u64 = 600;

/// A holder needs less to write down since when it has held the right.
const SETTLE: Duration = Duration::from_millis(20);

/// A person who has changed something waits so long for another process, to hear what has started.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why a process wants a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A job has ended.
    End,
    /// A command has changed something that may let a job start.
    Command,
    /// The process looks from time to time.
    Poll,
}

/// Calls `pass` until nothing has changed since the last call began. While another process passes, `pass` is not called:
/// the other one does the work.
pub(super) fn in_turn(
    ctx: &Ctx,
    cause: Cause,
    pass: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<(), Error> {
    let place = watch::place(ctx);
    let is_noted = cause != Cause::Poll && leave_note(ctx, &place)?;
    let patience = if cause == Cause::Command { PATIENCE } else { Duration::ZERO };
    let deadline = ctx.clock.monotonic() + patience;
    let waits = || ctx.clock.monotonic() < deadline;
    let mut is_stuck = false;
    loop {
        let mut is_removed = false;
        let done = ctx.store.passing(&place, &waits, || {
            is_removed = remove_note(ctx, &place);
            pass()
        })?;
        match done {
            Ok(done) if is_removed && has_note(ctx, &place) => drop(done),
            Ok(done) => return done,
            Err(holder) if holder.age_s.is_some_and(|age_s| age_s >= STUCK_S) => {
                // A new holder may not have written down yet that it is the holder.
                if std::mem::replace(&mut is_stuck, true) {
                    return pass();
                }
                ctx.clock.sleep(SETTLE);
            }
            // A change without a note would be seen by nobody.
            Err(_) if cause != Cause::Poll && !is_noted => return pass(),
            Err(_) => return Ok(()),
        }
    }
}

/// Whether the note could be written: a full disk is no reason to start nothing.
fn leave_note(ctx: &Ctx, place: &str) -> Result<bool, Error> {
    ctx.store.state_dir()?;
    let note = ctx.store.paths().pass_note(place);
    Ok(ctx.store.disk().append(&note, b"", NOTE_MODE, false).is_ok())
}

/// Whether there is no note any more.
fn remove_note(ctx: &Ctx, place: &str) -> bool {
    match ctx.store.disk().remove(&ctx.store.paths().pass_note(place)) {
        Ok(()) => true,
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

fn has_note(ctx: &Ctx, place: &str) -> bool {
    ctx.store.disk().stat(&ctx.store.paths().pass_note(place)).is_ok()
}
