//! The look of the real tmux, and what is read in the same call.
//!
//! One `tmux` process lists the panes, prints a mark, and goes on with the commands in a pipe of ours, which
//! are written when it is known which panes are worth reading. They end with a mark and the name of the next
//! pipe: the next look is written into that, five seconds later, and is spared what a new client costs a
//! server with a thousand windows (it walks all of them for each of three messages before the first command,
//! for one before the first answer and for one at the end; seen with tmux 3.3a, about a millisecond each).
//!
//! Of a pane that such a look finds in its place, with its program and of its launch, window and job are not
//! asked for again. Only a person's hand changes those; the process is not kept for long ([`MOST_PARTS`]), and
//! the server compares window and launch before anything is done to a pane.
//!
//! To the server that is one client without a session: nobody sees it in `list-clients`, and no session is
//! attached by it. What depends on it: a server without a window ends only when it has gone, which is at the
//! next look or pulse (of a stopped `tpu`: once that goes on), and one that is told to end waits for it to
//! answer (one that is frozen, as in a paused container, never does). It ends with us, as its pipe does.

use std::os::unix::fs::MetadataExt as _;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use super::{OneShot, in_our_words, run};
use crate::model::facts::TmuxFact;
use crate::sys::dialog::{Dialog, NamedPipe};
use crate::sys::proc::{Output, ProcError};
use crate::tmux::{Rest, Rows, Tmux as _, TmuxError, commands, formats};

/// A process that was told of more pipes is not asked for another look. Each pipe is named in the one before,
/// and is one file deeper to tmux: 3.3a keeps half a kilobyte for each until the process ends (measured over
/// 8 000), and later ones refuse the fiftieth ("too many nested files").
const MOST_PARTS: u32 = 40;

/// After so many calls in a row that did not go on, none is asked to: the server may not see our `/proc`.
const MOST_BROKEN: u32 = 3;

/// How long a process that has nothing more to read may take to end.
const ENDING: Duration = Duration::from_secs(1);

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
        self.look_on()
            .and_then(|looked| looked.map_or_else(|| self.look_anew(), Ok))
            .unwrap_or_else(|error| (self.failure(&error), ReadOn { tmux: self, reader: None }))
    }

    /// What an answer to [`commands::look_again_lines`] says. `None` unless the server and all its panes are
    /// those that are `known`.
    fn seen_again(&self, listed: &[u8], known: &TmuxFact) -> Option<TmuxFact> {
        let TmuxFact::Up { place: known_place, panes: known } = known else { return None };
        let text = String::from_utf8_lossy(listed);
        let mut lines = text.lines();
        let place = formats::server(lines.next()?, &self.here).ok()?;
        let panes: Vec<_> =
            known.iter().map_while(|pane| formats::pane_again(lines.next()?, pane)).collect();
        let is_all = panes.len() == known.len() && lines.next().is_none();
        (is_all && place == *known_place).then_some(TmuxFact::Up { place, panes })
    }

    /// Looks with the call of the last look. `None` if that cannot be, or if it leaves a doubt.
    fn look_on(&self) -> Result<Option<(TmuxFact, ReadOn<'_>)>, TmuxError> {
        let Some(mut reader) = self.to_be_asked() else { return Ok(None) };
        let mut fact = None;
        if let Some(known) = reader.known.take() {
            let lines = commands::look_again_lines();
            let Some((said, next)) = self.ask_on(reader, "list-panes", &lines)? else {
                return Ok(None);
            };
            (fact, reader) = (self.seen_again(&said, &known), next);
        }
        if fact.is_none() {
            let lines = commands::look_lines();
            let Some((said, next)) = self.ask_on(reader, "list-panes", &lines)? else {
                return Ok(None);
            };
            (fact, reader) = (self.seen(&said).ok(), next);
        }
        // Whether there is no pane, or the list failed, only the end of a call tells; and a server that has
        // lost its last window waits for this one.
        let Some(fact) = fact.filter(|fact| !has_no_pane(fact)) else {
            reader.end();
            return Ok(None);
        };
        reader.known = Some(fact.clone());
        Ok(Some((fact, ReadOn { tmux: self, reader: Some(reader) })))
    }

    /// Takes the pulse with the call of the last look, in the words of [`commands::pulse`].
    pub(super) fn pulse_on(&self) -> Option<Result<Vec<u8>, TmuxError>> {
        let reader = self.to_be_asked()?;
        match self.ask_on(reader, "list-panes", &commands::pulse_lines()).transpose()? {
            // As in a look: no pane is a doubt, and perhaps a server that waits.
            Ok((said, reader)) if said.is_empty() => {
                reader.end();
                None
            }
            Ok((said, reader)) => {
                self.keep(reader);
                Some(Ok(said))
            }
            Err(error) => Some(Err(error)),
        }
    }

    /// The call of the last look, if there is one to ask in.
    fn to_be_asked(&self) -> Option<Reader> {
        let reader = self.kept().take()?;
        // Whoever has another server now under this name would be told of the old one.
        if reader.parts > MOST_PARTS || reader.socket != self.socket_id() {
            reader.end();
            return None;
        }
        Some(reader)
    }

    /// Asks in a call that goes on. `None` if it has come to its end, however that was.
    fn ask_on(
        &self,
        reader: Reader,
        name: &str,
        lines: &str,
    ) -> Result<Option<(Vec<u8>, Reader)>, TmuxError> {
        match self.ask(reader, lines) {
            Ok(answered) => Ok(answered),
            Err(error @ ProcError::TimedOut { .. }) => Err(in_our_words(name, &error)),
            // Another process may have more luck, or else says what it is.
            Err(_) => Ok(None),
        }
    }

    /// Asks; `None` if the process has ended since, with its server or by somebody's hand.
    fn ask(&self, reader: Reader, lines: &str) -> Result<Option<(Vec<u8>, Reader)>, ProcError> {
        let is_first = reader.parts == 1;
        let answered = reader.ask(lines, &self.mark)?;
        match &answered {
            Some(_) => self.broken.store(0, Ordering::Relaxed),
            None if is_first => drop(self.broken.fetch_add(1, Ordering::Relaxed)),
            None => {}
        }
        Ok(answered)
    }

    /// What tells one socket from another of the same name.
    fn socket_id(&self) -> Option<SocketId> {
        let found = std::fs::metadata(&self.here.socket).ok()?;
        Some((found.dev(), found.ino(), found.ctime(), found.ctime_nsec()))
    }

    /// Leaves a call for the next look. Of two that were made at once one is enough.
    fn keep(&self, reader: Reader) {
        let other = self.kept().replace(reader);
        if let Some(other) = other {
            other.end();
        }
    }

    fn look_anew(&self) -> Result<(TmuxFact, ReadOn<'_>), TmuxError> {
        let goes_on = self.broken.load(Ordering::Relaxed) < MOST_BROKEN;
        let Some(pipe) = NamedPipe::new().ok().filter(|_| goes_on) else {
            return Ok((self.try_look()?, ReadOn { tmux: self, reader: None }));
        };
        let socket = self.socket_id();
        let chain = commands::look_and_read(&self.mark, pipe.path());
        let name = chain.name();
        // A group of its own: it is neither stopped nor interrupted with us.
        let spawn = self.spawn(chain.into_args()).own_group();
        let in_our_words = |error: ProcError| in_our_words(&name, &error);
        let mut dialog = Dialog::begin(&spawn, Stdio::null()).map_err(in_our_words)?;
        let mark = end_of_part(&self.mark);
        let said = dialog.hear(|said| said.ends_with(&mark)).map_err(in_our_words)?;
        if let Some(listed) = said.strip_suffix(&*mark) {
            let fact = self.seen(listed)?;
            let known = Some(fact.clone());
            let reader = Reader { dialog, pipe, socket, parts: 1, known };
            return Ok((fact, ReadOn { tmux: self, reader: Some(reader) }));
        }
        // It has ended before: there is nothing to read, or no server.
        let output = dialog.finish(&[]).map_err(in_our_words)?;
        let output = Output { stdout: said, ..output };
        let fact = self.answer_to_look(&name, &output)?;
        if output.status.success() {
            let message = "it ended in the middle of its answer".to_owned();
            return Err(TmuxError::Failed { command: name, message });
        }
        Ok((fact, ReadOn { tmux: self, reader: None }))
    }

    /// The call of the last look.
    fn kept(&self) -> MutexGuard<'_, Option<Reader>> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A look that failed, as a fact.
    pub(super) fn failure(&self, error: &TmuxError) -> TmuxFact {
        match error {
            TmuxError::NoServer { .. } => TmuxFact::Down { place: self.here.clone() },
            other => TmuxFact::Unknown { reason: other.to_string() },
        }
    }
}

impl Drop for OneShot {
    fn drop(&mut self) {
        if let Some(reader) = self.kept().take() {
            reader.let_go();
        }
    }
}

fn has_no_pane(fact: &TmuxFact) -> bool {
    matches!(fact, TmuxFact::Up { panes, .. } if panes.is_empty())
}

/// What ends a part of what a call says.
fn end_of_part(mark: &str) -> Vec<u8> {
    format!("{mark}\n").into_bytes()
}

/// Device, inode, and when that was last changed: seconds and nanoseconds.
type SocketId = (u64, u64, i64, i64);

/// A `tmux` process that waits for commands in a pipe.
#[derive(Debug)]
pub(super) struct Reader {
    // It ends before the name of its pipe does.
    dialog: Dialog,
    pipe: NamedPipe,
    /// The socket that it has connected to.
    socket: Option<SocketId>,
    /// Pipes that it has been told of.
    parts: u32,
    /// What its last look has seen: most of it need not be asked for again.
    known: Option<TmuxFact>,
}

impl Reader {
    /// Has these commands carried out; what the server says to them. `None` if that broke off. A process that
    /// has not answered is not asked again.
    fn ask(self, lines: &str, mark: &str) -> Result<Option<(Vec<u8>, Self)>, ProcError> {
        let next = match NamedPipe::new() {
            Ok(next) => next,
            Err(source) => {
                self.end();
                return Err(ProcError::Io { program: "tmux".to_owned(), source });
            }
        };
        let Self { dialog, pipe, socket, parts, known } = self;
        let (_name, pipe) = pipe.split();
        // Where it fails it has ended before its pipes lose their names.
        let mut dialog = dialog;
        let script =
            lines.to_owned() + &commands::end_line(mark) + &commands::read_line(next.path());
        let end = end_of_part(mark);
        let said = dialog.answer(pipe, script.as_bytes(), |said| said.ends_with(&end))?;
        let said = said.strip_suffix(&*end).map(<[u8]>::to_vec);
        let parts = parts + 1;
        Ok(said.map(|said| (said, Self { dialog, pipe: next, socket, parts, known })))
    }

    /// Ends it, and waits for that: a client that is killed while it could read leaves something in the
    /// server for good (5 kB each with tmux 3.3a, measured over 1 500 calls).
    fn end(self) {
        let (_name, pipe) = self.pipe.split();
        drop(pipe);
        drop(self.dialog.with_timeout(ENDING).finish(&[]));
    }

    /// Lets it end by itself, with us.
    fn let_go(self) {
        let (name, pipe) = self.pipe.split();
        self.dialog.let_go();
        drop(pipe);
        name.keep();
    }
}

/// The rest of a look: the `tmux` process waits for commands.
pub(super) struct ReadOn<'a> {
    tmux: &'a OneShot,
    /// `None` if it does not wait: there was nothing to look at.
    reader: Option<Reader>,
}

impl Rest for ReadOn<'_> {
    fn rows(mut self: Box<Self>, wanted: &[Rows]) -> Result<Option<Vec<Vec<u8>>>, TmuxError> {
        if wanted.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let Some(reader) = self.reader.take() else {
            return self.tmux.rows(wanted);
        };
        let said = self.tmux.ask(reader, &commands::rows_lines(wanted));
        let said = said.map_err(|error| in_our_words("capture-pane", &error))?;
        Ok(said.and_then(|(rows, reader)| {
            self.reader = Some(reader);
            rows_in(&rows, wanted)
        }))
    }
}

impl Drop for ReadOn<'_> {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.take() {
            self.tmux.keep(reader);
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
