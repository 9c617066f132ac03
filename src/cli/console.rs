//! The streams of this process: what is printed on the way, and what a person is asked.

use std::io::{self, IsTerminal as _, Read as _, Write as _};

use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex};

use tpu_core::text;
use tpu_ops::{Error, Kind};

/// Whether a person can be asked.
pub(super) fn may_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether what is read is typed by a person, seen or not.
pub(super) fn is_typed() -> bool {
    io::stdin().is_terminal()
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
    let size = stdout.is_terminal().then(|| termios::tcgetwinsize(&stdout).ok()).flatten();
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

/// Says something between two questions.
pub(super) fn say(text: &str) -> Result<(), Error> {
    err(text.as_bytes()).map_err(|e| Error::state(format!("cannot write to the terminal: {e}")))
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

/// Asks for a line that nobody is to see: the terminal does not show what is typed. Ctrl-C and the end of the input
/// are no answer.
pub(super) fn ask_unseen(question: &str) -> Result<String, Error> {
    let stdin = io::stdin();
    let cannot =
        |e: io::Error| Error::state(format!("cannot ask: {e}")).hint("pipe the value in: < FILE");
    let before = termios::tcgetattr(&stdin).map_err(|e| cannot(e.into()))?;
    let mut unseen = before.clone();
    // Signals, too, are only keys, so that the terminal is as it was whatever is typed.
    unseen.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
    unseen.special_codes[SpecialCodeIndex::VMIN] = 1;
    unseen.special_codes[SpecialCodeIndex::VTIME] = 0;
    // What was typed before is no answer; whatever is typed from the question on is.
    termios::tcsetattr(&stdin, OptionalActions::Flush, &unseen).map_err(|e| cannot(e.into()))?;
    drop(tell(question));
    let typed = typed_line(&mut stdin.lock());
    let restored = termios::tcsetattr(&stdin, OptionalActions::Now, &before);
    drop(tell("\n"));
    restored.map_err(|e| cannot(e.into()))?;
    let no_answer = || Error::new(Kind::Interrupted, "no answer").hint("nothing was changed");
    let bytes = typed.map_err(cannot)?.ok_or_else(no_answer)?;
    String::from_utf8(bytes)
        .map_err(|_| Error::usage("it is no text in UTF-8").hint("pipe the value in: < FILE"))
}

/// Says something to whoever types, wherever the messages go.
fn tell(text: &str) -> io::Result<()> {
    if io::stderr().is_terminal() {
        return err(text.as_bytes());
    }
    let mut terminal = std::fs::OpenOptions::new().write(true).open("/dev/tty")?;
    terminal.write_all(text.as_bytes())
}

/// The keys of a line, one by one, up to Enter; `None` where there is no line.
fn typed_line(keys: &mut impl io::Read) -> io::Result<Option<Vec<u8>>> {
    const INTERRUPT: u8 = 0x03;
    const END: u8 = 0x04;
    const BACK: [u8; 2] = [0x08, 0x7f];
    const ALL_BACK: u8 = 0x15;
    let mut line = Vec::new();
    let mut key = [0];
    loop {
        if keys.read(&mut key)? == 0 {
            return Ok(None);
        }
        match key[0] {
            b'\r' | b'\n' => return Ok(Some(line)),
            INTERRUPT | END => return Ok(None),
            ALL_BACK => line.clear(),
            other if BACK.contains(&other) => {
                // One character, however many bytes it has.
                while line.pop().is_some_and(|byte: u8| byte & 0xc0 == 0x80) {}
            }
            other => line.push(other),
        }
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
