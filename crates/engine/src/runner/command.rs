//! What stands before the words of a command so that it runs as its job wants it, on whatever machine: what it prints goes
//! into a second place as well, and it begins again when it ends.

use std::ffi::OsString;

use tpu_core::model::execution::Execution;

/// What runs it: see there.
const PROGRAM: &str = include_str!("../../../../assets/command.sh");

/// So many words begin it, and so many are said to it before the command.
const WORDS: usize = 7;

/// The words of a command as they are run; `command` itself where nothing is wanted of it.
pub fn run_as_wanted(execution: &Execution, command: Vec<OsString>) -> Vec<OsString> {
    if execution.output.is_none() && execution.repeat.is_none() {
        return command;
    }
    let output = execution.output.as_deref().unwrap_or_default();
    let when = execution.repeat.map_or("never", |repeat| repeat.when.as_str());
    let pause = execution.repeat.map_or(0, |repeat| repeat.pause_s).to_string();
    let begin: [&str; WORDS] = ["bash", "-c", PROGRAM, "command", output, when, &pause];
    begin.into_iter().map(OsString::from).chain(command).collect()
}

/// The words that were put before a command, and the command.
pub fn parted(mut words: Vec<OsString>) -> (Vec<OsString>, Vec<OsString>) {
    if words.get(2).is_some_and(|word| word == PROGRAM) && words.len() >= WORDS {
        let command = words.split_off(WORDS);
        return (words, command);
    }
    (Vec::new(), words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_a_command_is_told_from_it() {
        let command = ["bash", "-c", "x", "bash"].map(OsString::from).to_vec();
        let plain = run_as_wanted(&Execution::default(), command.clone());
        assert_eq!(parted(plain), (Vec::new(), command.clone()));
        let execution = Execution { output: Some("o.txt".to_owned()), ..Execution::default() };
        let (before, after) = parted(run_as_wanted(&execution, command.clone()));
        assert_eq!((before.len(), after), (WORDS, command));
    }
}
