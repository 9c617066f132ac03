//! A command that reads the events, and the desktop, which is one.

use std::io::Write as _;
use std::sync::Arc;

use super::{COMMAND, Letter, PostError};
use crate::sys::proc::{self, Feed, Spawn};
use tpu_core::text;

/// Runs it with the events as JSON on its standard input. What ends with 0 has them. They stand in a file without a name,
/// and not in a pipe: if this process is killed meanwhile, it reads all of them and no half of one.
pub(super) fn run(
    words: &[String],
    variables: &[(String, String)],
    letter: &Letter,
) -> Result<(), PostError> {
    let Some((program, args)) = words.split_first() else {
        return Err(PostError("there is no command".to_owned()));
    };
    let cannot =
        |e: std::io::Error| PostError(format!("cannot write down what it is to read: {e}"));
    let mut body = tempfile::tempfile().map_err(cannot)?;
    body.write_all(&letter.body).map_err(cannot)?;
    let mut spawn = Spawn::new(program).args(args);
    spawn.stdin = Some(Feed::File(Arc::new(body)));
    for (name, value) in variables {
        spawn = spawn.env(name, value);
    }
    end_of(&spawn.timeout(COMMAND).own_group())
}

/// Shows a message. Its text may hold marks of its own there.
pub(super) fn desktop(letter: &Letter) -> Result<(), PostError> {
    let plain = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let spawn = Spawn::new("notify-send")
        .args(["--app-name=tpu", "--"])
        .arg(text::cut(&letter.subject, 100).into_owned())
        .arg(plain(&letter.text));
    end_of(&spawn.timeout(COMMAND).own_group())
}

fn end_of(spawn: &Spawn) -> Result<(), PostError> {
    let output = proc::run(spawn).map_err(|e| PostError(e.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let code = output.status.shell_code();
    let said = output.complaint();
    let more = if said.is_empty() { String::new() } else { format!(": {said}") };
    Err(PostError(format!("it ended with {code}{more}")))
}
