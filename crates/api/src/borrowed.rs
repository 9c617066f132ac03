//! Answers in the words of commands, which the command line lends: each says what the command says.

use serde_json::Value;

use tpu_core::model::ids::UserName;
use tpu_ops::Error;
use tpu_ops::waiting::commands::Told;

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;

/// Carries a command out, with what the request says for its options; what has no name stands behind all others.
pub(super) fn told(
    asked: &Asked<'_>,
    user: Option<&UserName>,
    command: &[&str],
    options: &[(&str, &str)],
) -> Result<Told, Failure> {
    let mut words: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
    for (option, parameter) in options {
        let Some(value) = asked.text(parameter) else { continue };
        if option.is_empty() {
            words.extend(["--".to_owned(), value.to_owned()]);
        } else {
            // In one word, so that no value is taken for an option.
            words.push(format!("--{option}={value}"));
        }
    }
    carried_out(asked, user, &words)
}

/// Carries a command out, as it would be typed.
pub(super) fn carried_out(
    asked: &Asked<'_>,
    user: Option<&UserName>,
    words: &[String],
) -> Result<Told, Failure> {
    let ctx = asked.served.ctx_of(asked.who, asked.is_trial());
    let told = asked.served.commands.run(ctx, user, words)?;
    if told.code == 0 {
        return Ok(told);
    }
    // Of several things some were not done: what was is said as well.
    let lines = told.text.lines().chain(told.notes.iter().map(String::as_str));
    let said: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    Err(Error::refused(said.join("\n")).hint("what is said to be done is done").into())
}

/// As `--json` prints it.
pub(super) fn json(told: Told) -> Answer {
    Answer::text(Value::Object(told.members).to_string()).kind("application/json")
}

/// As people read it.
pub(super) fn text(told: Told) -> Answer {
    let notes = told.notes.into_iter().map(|note| format!("{note}\n"));
    Answer::text(notes.fold(told.text, |text, note| text + &note))
}
