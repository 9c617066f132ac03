//! The streams of this process: what is printed on the way, and what a person is asked.

use std::io::{self, IsTerminal as _, Read as _};

use crate::ops::{Error, Kind};
use crate::text;

/// Whether a person can be asked.
pub(super) fn may_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether results go to a person's terminal.
pub(super) fn is_terminal() -> bool {
    io::stdout().is_terminal() && io::stdin().is_terminal()
}

/// Whether a line that turns can be seen.
pub(super) fn shows_progress() -> bool {
    io::stderr().is_terminal()
}

/// Columns of the terminal that reads the results.
pub(super) fn columns() -> Option<usize> {
    let stdout = io::stdout();
    let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok()).flatten();
    size.map(|size| usize::from(size.ws_col))
}

/// Writes a part of a result. What came from outside loses what would work on a terminal.
pub(super) fn out(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let is_terminal = out.is_terminal();
    write_shown(&mut out, bytes, is_terminal)
}

/// Writes what a person should know, in the same way.
pub(super) fn err(bytes: &[u8]) -> io::Result<()> {
    let mut err = io::stderr().lock();
    let is_terminal = err.is_terminal();
    write_shown(&mut err, bytes, is_terminal)
}

/// What is piped in, all of it.
pub(super) fn read_all() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Asks for a line.
pub(super) fn ask(question: &str) -> Result<String, Error> {
    let mut line = String::new();
    let read = err(question.as_bytes()).ok().and_then(|()| io::stdin().read_line(&mut line).ok());
    match read {
        None | Some(0) => Err(Error::new(Kind::Interrupted, "no answer").hint(
            "run it where it can ask, or give everything on the command line (`tpu help COMMAND`)",
        )),
        Some(_) => Ok(line.trim_end_matches('\n').to_owned()),
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
