//! Has the daemon run behind commands that begin something, where that depends on it, and says so.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::print::Output;
use tpu_core::model::time::Timestamp;
use tpu_ops::Error;
use tpu_ops::front::autostart::{self, Autostart};

/// A command that begins something: when all of it is written down, the daemon is started that it needs.
pub(in crate::cli) fn attended(run: impl FnOnce(&App) -> Outcome) -> impl FnOnce(&App) -> Outcome {
    move |app| {
        let since = now(app)?;
        let output = run(app)?;
        Ok(attend(app, since, output))
    }
}

/// When a command begins, as the records of what it begins tell it.
pub(in crate::cli) fn now(app: &App) -> Result<Timestamp, Error> {
    // Records hold whole seconds.
    Ok(app.ctx()?.clock.now().plus_seconds(-1))
}

/// Starts the daemon if something depends on it that has begun since then, and adds that to what is said.
pub(in crate::cli) fn attend(app: &App, since: Timestamp, mut output: Output) -> Output {
    let Ok(ctx) = app.ctx() else { return output };
    let Autostart { notes, outdated } = autostart::attend(ctx, since, &app.flags());
    output.notes.retain(|note| !outdated.contains(note));
    output.notes(notes)
}
