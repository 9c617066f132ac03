//! The person at the terminal at which `tpu run` starts a job or waits in line.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::cli::app::{App, asked_to_end};
use crate::cli::args::Run;
use crate::cli::console;
use crate::cli::progress::Progress;
use tpu_core::model::spec::TargetRequest;
use tpu_ops::Error;
use tpu_ops::act::launch::RunRequest;
use tpu_ops::observe::fleet;
use tpu_ops::waiting::queue::keep::{Attendant, Stop};
use tpu_system::sys::env::Env;
use tpu_system::sys::proc::{self, Spawn};

/// Who has typed `run`.
pub(super) struct PersonThere<'a> {
    app: &'a App,
    /// Whether it was typed that the target is made usable first.
    applies: bool,
    /// Shows that a target is looked for.
    progress: Option<Progress>,
    /// Whether a signal asked this process to wait no more, where it waits.
    told_to_end: Option<Arc<AtomicBool>>,
}

impl<'a> PersonThere<'a> {
    pub(super) fn new(app: &'a App, args: &Run, request: &RunRequest) -> Result<Self, Error> {
        let looks = matches!(request.spec.target, TargetRequest::Any(_)) && !app.global.dry_run;
        let waits = looks && args.wait;
        let told_to_end = waits.then(|| asked_to_end(&[SIGINT, SIGHUP, SIGTERM])).transpose()?;
        let progress = looks.then(|| Progress::new(app, "looking for a target"));
        Ok(Self { app, applies: args.apply, progress, told_to_end })
    }
}

impl Attendant for PersonThere<'_> {
    fn makes_usable(&self, target: &str) -> Result<bool, Error> {
        make_usable(self.app, target, self.applies)
    }

    fn sees_step(&self, step: Option<&str>) {
        show_step(self.app, step);
    }

    fn is_in_line(&self, line: String) {
        if let Some(progress) = &self.progress {
            progress.announce(self.app, line);
        }
    }

    /// A machine that goes down ends its processes too: then the place is kept.
    fn stops(&self) -> Option<Stop> {
        let is_told = self.told_to_end.as_ref().is_some_and(|told| told.load(Ordering::Relaxed));
        let env = &self.app.ctx().ok()?.env;
        is_told.then(|| if goes_down(env) { Stop::GoesDown } else { Stop::Told })
    }
}

/// Shows how far a target is that is made usable: on a terminal in the one line that turns, else a line for each step.
pub(super) fn show_step(app: &App, step: Option<&str>) {
    match (app.ctx(), step) {
        (Ok(ctx), _) if console::shows_progress() => ctx.onlooker.show(step),
        (_, Some(step)) => app.tell(step),
        (_, None) => {}
    }
}

/// Whether this machine is on its way down, where its system says so.
fn goes_down(env: &Env) -> bool {
    let mut ask = Spawn::new("systemctl").arg("is-system-running").timeout(Duration::from_secs(2));
    ask = ask.env_clear();
    for (name, value) in &env.vars {
        ask = ask.env(name, value);
    }
    proc::run(&ask).is_ok_and(|answer| answer.text().trim() == "stopping")
}

/// Whether the target is to be made usable first: it is not, and somebody wants it.
pub(super) fn make_usable(app: &App, target: &str, apply: bool) -> Result<bool, Error> {
    let is_wanted = apply || app.global.yes;
    // The launch says itself what is in the way; whoever cannot be asked need not hear it before.
    if !is_wanted && !app.may_ask() {
        return Ok(false);
    }
    let Some(obstacle) = fleet::obstacle(app.ctx()?, target)? else { return Ok(false) };
    Ok(is_wanted || app.may_ask() && app.confirm(&format!("{obstacle}. Make it usable first?"))?)
}
