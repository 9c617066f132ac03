//! Long work shows itself: a line on stderr that turns while something is waited for. Only on a terminal;
//! in a pipe, and with `--json`, nothing is printed but what is announced.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::app::App;
use super::console;
use tpu_system::effects::Onlooker;

/// Between two turns of the line.
const TURN: Duration = Duration::from_millis(120);

/// The person at the terminal, who sees a line for as long as something takes.
pub(super) fn onlooker(is_json: bool) -> Onlooker {
    if is_json || !console::shows_progress() {
        return Onlooker::default();
    }
    let line: Mutex<Option<Progress>> = Mutex::default();
    Onlooker::new(move |what| {
        let mut line = line.lock().unwrap_or_else(PoisonError::into_inner);
        match (what, &*line) {
            (Some(what), Some(line)) => line.say(what),
            (Some(what), None) => *line = Some(Progress::line(false, what)),
            (None, _) => *line = None,
        }
    })
}

/// Something that is being waited for. The line goes away with it.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// Shows what is going on, and for how long by now.
    pub(super) fn new(app: &App, what: impl Into<String>) -> Self {
        Self::line(app.global.json || !console::shows_progress(), what)
    }

    fn line(quiet: bool, what: impl Into<String>) -> Self {
        let target =
            if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} · {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(what.into());
        if !quiet {
            bar.enable_steady_tick(TURN);
        }
        Self(bar)
    }

    /// Says something that is to be known also where nobody sees the line turn: there it is printed.
    pub(super) fn announce(&self, app: &App, what: String) {
        if self.0.is_hidden() {
            app.tell(&what);
        }
        self.say(what);
    }

    /// Says what is going on now.
    pub(super) fn say(&self, what: impl Into<String>) {
        self.0.set_message(what.into());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Bytes on their way: a bar that fills, on a terminal only.
pub(super) struct Transfer(ProgressBar);

impl Transfer {
    /// Nothing of so many bytes has arrived yet.
    pub(super) fn new(app: &App, total: u64) -> Self {
        let quiet = app.global.json || app.global.dry_run || !console::shows_progress();
        let target =
            if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        let template =
            "{bar:30} {decimal_bytes}/{decimal_total_bytes} · {decimal_bytes_per_sec} · {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// So many have arrived by now.
    pub(super) fn at(&mut self, there: u64) {
        self.0.set_position(there);
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
