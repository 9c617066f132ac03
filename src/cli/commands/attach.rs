//! `tpu attach`: goes to a job where it runs; `tpu unhold`: lets it begin there.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::print::Output;
use tpu_ops::Error;
use tpu_ops::act::attach;
use tpu_ops::waiting::unhold as held;
use tpu_ops::waiting::whose::Purpose;
use tpu_system::sys::proc::{self, Spawn};
use tpu_wire::jobs::{JobIdDocument, JobIdPart};

use super::queue;

/// Switches the client inside tmux, attaches outside.
pub(in crate::cli) fn attach(app: &App, words: &[String]) -> Outcome {
    let id = app.requester()?.one_job(words, Purpose::Look)?;
    let argv = attach::argv(app.ctx()?, &id)?;
    let Some((program, args)) = argv.split_first() else {
        return Err(Error::failed("there is no way to attach")
            .hint("`tpu check` shows how the job is; then try again"));
    };
    if !app.on_terminal() {
        return Err(Error::usage("attach needs a terminal").hint(argv.join(" ")));
    }
    if app.global.dry_run {
        return Ok(Output::would(&format!("show {id}")));
    }
    let status = proc::run_in_foreground(&Spawn::new(program).args(args))?;
    if status.success() {
        Ok(Output::new("", &JobIdDocument { job: JobIdPart::from(&id) }))
    } else {
        Err(Error::unreachable(format!("{id} could not be shown")).hint(argv.join(" ")))
    }
}

/// `unhold`.
pub(in crate::cli) fn unhold(app: &App, words: &[String]) -> Outcome {
    if let Some(output) = queue::unhold(app, words)? {
        return Ok(output);
    }
    let id = app.requester()?.one_job(words, Purpose::Change)?;
    if app.global.dry_run {
        return Ok(Output::would(&format!("let {id} begin")));
    }
    held::unhold(app.ctx()?, &id)?;
    let text = format!("{id} is held back no longer.");
    Ok(Output::new(text, &JobIdDocument { job: JobIdPart::from(&id) }))
}
