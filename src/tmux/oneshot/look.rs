//! The look of the real tmux, and what is read in the same call.
//!
//! One `tmux` process lists the panes, prints a mark, and then reads commands from its standard input, which
//! are written when it is known which panes are worth reading. To the server that is one client without a
//! session: nobody sees it, and nothing of theirs depends on it. It ends with the call.

use super::{OneShot, in_our_words, run};
use crate::model::facts::TmuxFact;
use crate::sys::dialog::Dialog;
use crate::sys::proc::{Output, ProcError};
use crate::tmux::{Rest, Rows, Tmux as _, TmuxError, commands, formats};

impl OneShot {
    /// Looks in a call of its own.
    pub(super) fn try_look(&self) -> Result<TmuxFact, TmuxError> {
        let chain = commands::look();
        let name = chain.name();
        let output = run(&name, &self.spawn(chain.into_args()))?;
        self.answer_to_look(&name, &output)
    }

    /// What a look says that came to its end.
    fn answer_to_look(&self, name: &str, output: &Output) -> Result<TmuxFact, TmuxError> {
        // The server has introduced itself, and then there is not one pane that could be "current".
        let is_empty = output.complaint() == "no current target" && !output.stdout.is_empty();
        if !output.status.success() && !is_empty {
            return Err(self.refusal(name, output));
        }
        self.seen(&output.stdout)
    }

    /// Reads the server and its panes.
    fn seen(&self, listed: &[u8]) -> Result<TmuxFact, TmuxError> {
        let text = String::from_utf8_lossy(listed);
        let mut lines = text.lines();
        let place = formats::server(lines.next().unwrap_or_default(), &self.here)
            .map_err(|problem| self.unreadable("list-panes", &problem))?;
        let panes = lines
            .map(formats::pane)
            .collect::<Result<_, _>>()
            .map_err(|problem| self.unreadable("list-panes", &problem))?;
        Ok(TmuxFact::Up { place, panes })
    }

    /// Looks in a call that goes on; one that failed is a fact too.
    pub(super) fn begin_look(&self) -> (TmuxFact, ReadOn<'_>) {
        self.try_look_and_read_on()
            .unwrap_or_else(|error| (self.failure(&error), ReadOn { tmux: self, dialog: None }))
    }

    fn try_look_and_read_on(&self) -> Result<(TmuxFact, ReadOn<'_>), TmuxError> {
        let chain = commands::look_and_wait(&self.mark);
        let name = chain.name();
        let spawn = self.spawn(chain.into_args());
        let mark = self.end_of_part();
        let in_our_words = |error: ProcError| in_our_words(&name, &error);
        let mut dialog = Dialog::begin(&spawn).map_err(in_our_words)?;
        let said = dialog.hear(|said| said.ends_with(&mark)).map_err(in_our_words)?;
        if let Some(listed) = said.strip_suffix(&*mark) {
            return Ok((self.seen(listed)?, ReadOn { tmux: self, dialog: Some(dialog) }));
        }
        // It has ended before: there is nothing to read, or no server.
        let output = dialog.finish(&[]).map_err(in_our_words)?;
        let output = Output { stdout: said, ..output };
        let fact = self.answer_to_look(&name, &output)?;
        if output.status.success() {
            let message = "it ended in the middle of its answer".to_owned();
            return Err(TmuxError::Failed { command: name, message });
        }
        Ok((fact, ReadOn { tmux: self, dialog: None }))
    }

    /// What ends a part of what a call says.
    fn end_of_part(&self) -> Vec<u8> {
        format!("{}\n", self.mark).into_bytes()
    }

    /// A look that failed, as a fact.
    pub(super) fn failure(&self, error: &TmuxError) -> TmuxFact {
        match error {
            TmuxError::NoServer { .. } => TmuxFact::Down { place: self.here.clone() },
            other => TmuxFact::Unknown { reason: other.to_string() },
        }
    }
}

/// The rest of a look: the `tmux` process waits for commands on its standard input.
pub(super) struct ReadOn<'a> {
    tmux: &'a OneShot,
    /// `None` if it does not wait: there was nothing to look at.
    dialog: Option<Dialog>,
}

impl Rest for ReadOn<'_> {
    fn rows(mut self: Box<Self>, wanted: &[Rows]) -> Result<Option<Vec<Vec<u8>>>, TmuxError> {
        let Some(dialog) = self.dialog.take() else {
            return if wanted.is_empty() { Ok(Some(Vec::new())) } else { self.tmux.rows(wanted) };
        };
        let said = self.ask(dialog, &commands::rows_lines(wanted))?;
        Ok(said.and_then(|rows| rows_in(&rows, wanted)))
    }
}

impl ReadOn<'_> {
    /// Lets the call read these commands and no more; what the server says to them, `None` if that broke off.
    fn ask(&self, mut dialog: Dialog, lines: &str) -> Result<Option<Vec<u8>>, TmuxError> {
        let mark = self.tmux.end_of_part();
        let script = lines.to_owned() + &commands::end_line(&self.tmux.mark);
        let said = dialog
            .answer(script.as_bytes(), |said| said.ends_with(&mark))
            .map_err(|error| in_our_words("capture-pane", &error))?;
        // The server has said all: to hear from it how the process ends would be two questions more.
        Ok(said.strip_suffix(&*mark).map(<[u8]>::to_vec))
    }
}

impl Drop for ReadOn<'_> {
    /// Nothing more is to be read. The server is still told so: it keeps what waits for a client that went
    /// without a word (5 kB each with tmux 3.3a, measured over 1 500 calls).
    fn drop(&mut self) {
        if let Some(dialog) = self.dialog.take() {
            drop(self.ask(dialog, ""));
        }
    }
}

/// The rows in an answer, if all are there.
///
/// A command that fails prints nothing, and none prints more than it was asked for: as many rows as were
/// asked for in all are those of each.
pub(super) fn rows_in(said: &[u8], wanted: &[Rows]) -> Option<Vec<Vec<u8>>> {
    formats::blocks(said, wanted.iter().map(Rows::count))
}
