//! The first contact with the workers of a launch: until one of them has answered nothing can have begun there.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::LaunchToken;
use tpu_core::model::login;
use tpu_engine::runner::window::beside;
use tpu_system::remote::{Remote, RemoteError, Worker};

use super::{Control, FIRST_WAIT, LAST_WAIT, PATIENCE, rest};

/// A machine of one's own was asked a moment ago: what keeps it from answering now is more than a hiccup.
const OF_OWN: Duration = Duration::from_secs(5);

/// Waits until a worker has answered, however it answered; why nothing can begin, if no connection came to be. Whoever
/// is to stop has nothing to wait for.
pub(super) fn first(
    control: &Control<'_>,
    door: &dyn Remote,
    workers: &[Worker],
    (stop, out): (&AtomicBool, &mut dyn Write),
) -> Result<(), String> {
    let clock = &control.ctx.clock;
    // One of a provider may have been made a moment ago: its ssh and its keys come up after it is READY.
    let patience = if control.is_fixed { OF_OWN } else { PATIENCE };
    let deadline = clock.monotonic() + patience;
    let mut wait = FIRST_WAIT;
    let mut is_told = false;
    loop {
        let mut reason = None;
        for (_, said) in door.probe(workers) {
            match said {
                Err(error @ RemoteError::NotReached { .. }) => reason = Some(error.to_string()),
                Ok(_) | Err(_) => return Ok(()),
            }
        }
        let Some(reason) = reason.filter(|_| !stop.load(Ordering::Relaxed)) else { return Ok(()) };
        let is_final = control.is_fixed && login::remedy(&reason).is_some()
            || workers.iter().all(|worker| control.has_switched_off(worker));
        if is_final || clock.monotonic() >= deadline {
            return Err(reason);
        }
        if !std::mem::replace(&mut is_told, true) {
            // Whoever looks at the window may be gone.
            drop(writeln!(out, "tpu: {reason}; it is tried again"));
        }
        rest(control.ctx, wait, stop);
        wait = (wait * 2).min(LAST_WAIT);
    }
}

/// Says that nothing has begun, in the window and for whoever writes down the end.
pub(super) fn failed(control: &Control<'_>, token: &LaunchToken, why: &str, out: &mut dyn Write) {
    let cause = (ErrorKind::Launch, why);
    let id = control.job.id();
    if let Err(error) = beside::record_cause(&control.ctx.effects, &id, token, cause) {
        control.ctx.warn([error.to_string()]);
    }
    // Whoever looks at the window may be gone.
    drop(writeln!(out, "tpu: it was not started: {why}"));
}
