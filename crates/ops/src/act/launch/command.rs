//! The command of a job that is about to start: whether it can be one.

use std::path::Path;

use tpu_core::model::job::LaunchMode;
use tpu_core::model::spec::JobSpec;

use crate::Error;

/// Refuses a job without a command, and a command that is a whole line in one word.
pub(super) fn runnable(
    (dir, spec): (&str, &JobSpec),
    mode: LaunchMode,
    force: bool,
) -> Result<(), Error> {
    if !force {
        several_words(dir, spec)?;
    }
    if spec.execution.workplace.is_some() {
        return match mode {
            LaunchMode::Native => Ok(()),
            LaunchMode::Script => Err(Error::usage("code: none, and there is no command")
                .hint("say what runs there: command: ./train.sh")),
        };
    }
    // Script mode needs the script, where we can see it.
    if mode == LaunchMode::Script && !Path::new(dir).join("staging.sh").is_file() {
        return Err(Error::not_found(format!("no command is given, and {dir} has no staging.sh"))
            .hint("give a command: tpu run TARGET -- python3 main.py; in a job file: command: python3 main.py; or another directory: dir=N (`tpu ls` lists them)"));
    }
    Ok(())
}

/// Refuses a command of one word with spaces in it, unless a program is called so: no shell takes the words of a command
/// apart.
fn several_words(dir: &str, spec: &JobSpec) -> Result<(), Error> {
    let Some([word]) = spec.command.as_deref() else { return Ok(()) };
    let text = word.to_string_lossy();
    let is_line = text.trim().contains(char::is_whitespace);
    if !is_line || Path::new(dir).join(word).exists() {
        return Ok(());
    }
    let quoted = shlex::try_quote(&text).map_or_else(|_| text.to_string(), Into::into);
    Err(Error::usage(format!("{text:?} is one word, and no program has that name")).hint(format!(
        "words after -- go to the program as they are; for shell syntax: -- bash -c {quoted}"
    )))
}
