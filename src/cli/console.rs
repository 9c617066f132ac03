//! Where a command reads and writes: the streams of this process, or the screen, which has the terminal for
//! itself and shows what a command said once it has ended.

use std::cell::RefCell;
use std::io::{self, IsTerminal as _, Read as _};
use std::rc::Rc;

use crate::ops::{Error, Kind};
use crate::text;

/// What a command has for a terminal.
#[derive(Debug)]
pub(super) enum Console {
    /// The streams of this process.
    Streams,
    /// Nothing: it runs inside the screen, which keeps what it says.
    Screen(Rc<RefCell<Said>>),
}

/// What a command inside the screen has said on its way.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Results.
    pub(super) out: Vec<u8>,
    /// What a person should know.
    pub(super) err: Vec<u8>,
}

impl Console {
    /// Whether a person can be asked.
    pub(super) fn may_ask(&self) -> bool {
        self.has_streams() && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Whether results go to a person's terminal.
    pub(super) fn is_terminal(&self) -> bool {
        self.has_streams() && io::stdout().is_terminal() && io::stdin().is_terminal()
    }

    /// Whether a line that turns can be seen.
    pub(super) fn shows_progress(&self) -> bool {
        self.has_streams() && io::stderr().is_terminal()
    }

    /// Columns of the terminal that reads the results.
    pub(super) fn columns(&self) -> Option<usize> {
        let stdout = io::stdout();
        let is_shown = self.has_streams() && stdout.is_terminal();
        let size = is_shown.then(|| rustix::termios::tcgetwinsize(&stdout).ok()).flatten();
        size.map(|size| usize::from(size.ws_col))
    }

    /// Refuses a command that prints as it goes, reads keys or never ends, where the screen has the terminal.
    pub(super) fn streams(&self) -> Result<(), Error> {
        if self.has_streams() {
            return Ok(());
        }
        Err(Error::failed("this command needs the terminal").hint("leave the screen to run it"))
    }

    /// Writes a part of a result. What came from outside loses what would work on a terminal.
    pub(super) fn out(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Streams => {
                let mut out = io::stdout().lock();
                let is_terminal = out.is_terminal();
                write_shown(&mut out, bytes, is_terminal)
            }
            Self::Screen(said) => {
                said.borrow_mut().out.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Writes what a person should know, in the same way.
    pub(super) fn err(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Streams => {
                let mut err = io::stderr().lock();
                let is_terminal = err.is_terminal();
                write_shown(&mut err, bytes, is_terminal)
            }
            Self::Screen(said) => {
                said.borrow_mut().err.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// What is piped in, all of it; nothing inside the screen.
    pub(super) fn read_all(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if self.has_streams() {
            io::stdin().lock().read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }

    /// Asks for a line.
    pub(super) fn ask(&self, question: &str) -> Result<String, Error> {
        let asked = self.err(question.as_bytes()).ok().filter(|()| self.has_streams());
        let mut line = String::new();
        let read = asked.and_then(|()| io::stdin().read_line(&mut line).ok());
        match read {
            None | Some(0) => Err(Error::new(Kind::Interrupted, "no answer").hint(
                "run it where it can ask, or give everything on the command line (`tpu help COMMAND`)",
            )),
            Some(_) => Ok(line.trim_end_matches('\n').to_owned()),
        }
    }

    fn has_streams(&self) -> bool {
        matches!(self, Self::Streams)
    }
}

fn write_shown(to: &mut impl io::Write, bytes: &[u8], is_terminal: bool) -> io::Result<()> {
    if is_terminal {
        to.write_all(text::harmless(&String::from_utf8_lossy(bytes)).as_bytes())?;
    } else {
        to.write_all(bytes)?;
    }
    to.flush()
}
