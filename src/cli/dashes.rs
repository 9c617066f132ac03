//! Commands that were typed behind `run` or `submit` without the `--` that goes before them.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use tpu_system::sys::env::Env;

/// Programs with which commands begin, also where they are not installed.
const PROGRAMS: [&str; 12] = [
    "python",
    "python3",
    "bash",
    "sh",
    "torchrun",
    "accelerate",
    "deepspeed",
    "jupyter",
    "conda",
    "uv",
    "srun",
    "mpirun",
];

/// Whether a word is the name of a program: one of the usual ones, or one that `$PATH` leads to.
pub(super) fn is_program(env: &Env, word: &str) -> bool {
    let path = env.vars.get(OsStr::new("PATH")).cloned().unwrap_or_default();
    let is_there = || std::env::split_paths(&path).any(|dir| dir.join(word).is_file());
    PROGRAMS.contains(&word) || !word.is_empty() && !word.contains('/') && is_there()
}

/// The first word behind `run` or `submit` that reads as the beginning of a command, where no `--` was typed.
pub(super) fn command_in(typed: &[OsString]) -> Option<&str> {
    if typed.iter().any(|word| word == "--") {
        return None;
    }
    let mut words = typed.iter().filter_map(|word| word.to_str());
    words.find(|word| matches!(*word, "run" | "submit"))?;
    words.find(|word| PROGRAMS.contains(word) || is_script(word))
}

/// The line to type instead, with `--` before `first`, the first word of the command.
pub(super) fn advice(typed: &[OsString], first: &str) -> String {
    let words: Vec<String> = typed.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let at = words.iter().position(|word| word == first).unwrap_or(words.len());
    let (before, command) = words.split_at(at);
    let is_verb = |word: &String| matches!(word.as_str(), "run" | "submit");
    let local = before.last().is_some_and(is_verb).then_some("local");
    let with = match Path::new(first).extension().and_then(OsStr::to_str) {
        Some("py") => Some("python3"),
        Some("sh") => Some("bash"),
        _ => None,
    };
    let before = before.iter().map(String::as_str).chain(local);
    let line: Vec<&str> =
        before.chain(["--"]).chain(with).chain(command.iter().map(String::as_str)).collect();
    let quoted =
        |word: &&str| shlex::try_quote(word).map_or_else(|_| (*word).to_owned(), Into::into);
    let line: Vec<String> = line.iter().map(quoted).collect();
    format!("put -- before the command: tpu {}", line.join(" "))
}

/// Whether a word is the name of a script, by its ending.
pub(super) fn is_script(word: &str) -> bool {
    !word.starts_with('-')
        && !word.contains('=')
        && Path::new(word).extension().is_some_and(|end| end == "py" || end == "sh")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_is_the_line_with_the_dashes_in_it() {
        for (typed, line) in [
            ("run local python tr.py", "tpu run local -- python tr.py"),
            ("run local tr.py --lr 0.1", "tpu run local -- python3 tr.py --lr 0.1"),
            ("submit python x.py", "tpu submit local -- python x.py"),
            ("--user bob run local bash t.sh", "tpu --user bob run local -- bash t.sh"),
        ] {
            let typed: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
            let first = command_in(&typed).unwrap();
            assert_eq!(advice(&typed, first), format!("put -- before the command: {line}"));
        }
    }

    #[test]
    fn no_command_is_seen_where_none_is() {
        for typed in ["run local --quit", "run local -- python t.py", "check python"] {
            let typed: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
            assert_eq!(command_in(&typed), None);
        }
    }
}
