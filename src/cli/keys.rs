//! Options that are keys of the grammar: `--gpus 1` is read as `gpus=1`.

use std::ffi::OsString;

use tpu_ops::act::launch::check::{KEYS_OF_SUBMIT, SPECIAL_KEYS};

use super::args::Cli;

/// Global flags that take a value as the next word, so that the command is found behind them.
pub(super) const GLOBALS_WITH_VALUE: &[&str] =
    &["--data", "--settings", "--user", "--tmux-socket", "--cloud", "--color"];

/// Rewrites options of a command that it does not have and that are keys of its words. Only words up to `--` are looked at.
pub(super) fn rewrite(words: Vec<OsString>) -> Vec<OsString> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let typed = words.get(..end).unwrap_or_default();
    let Some((at, command)) = command(typed) else { return words };
    let keys = keys(command);
    let candidate = |word: &OsString| key_of(word.to_str()?, &keys).map(|(key, _)| key);
    if !typed.iter().skip(at).any(|word| candidate(word).is_some()) {
        return words;
    }
    let own = options(command, typed);
    let keys: Vec<&str> = keys.into_iter().filter(|key| !own.iter().any(|it| it == key)).collect();
    let mut out: Vec<OsString> = words.iter().take(at + 1).cloned().collect();
    let mut rest = words.iter().enumerate().skip(at + 1).peekable();
    while let Some((place, word)) = rest.next() {
        let meant = word.to_str().filter(|_| place < end).and_then(|text| key_of(text, &keys));
        let value = match meant {
            Some((_, Some(value))) => Some(OsString::from(value)),
            Some((_, None)) => {
                let next = rest.next_if(|(place, next)| *place < end && is_value(next));
                next.map(|(_, next)| next.clone())
            }
            None => None,
        };
        match (meant, value) {
            (Some((key, _)), Some(value)) => {
                let mut pair = OsString::from(format!("{key}="));
                pair.push(value);
                out.push(pair);
            }
            _ => out.push(word.clone()),
        }
    }
    out
}

/// Which key of the words of `run` and `submit` an option without a value names, as in `--gpus`.
pub(super) fn meant(option: &str) -> Option<&'static str> {
    key_of(option, &keys("submit")).map(|(key, _)| key)
}

/// The command among `words` and its place.
fn command(words: &[OsString]) -> Option<(usize, &str)> {
    let mut at = 0;
    loop {
        let word = words.get(at)?.to_str()?;
        if !word.starts_with('-') {
            return Some((at, word));
        }
        at += if GLOBALS_WITH_VALUE.contains(&word) { 2 } else { 1 };
    }
}

/// The keys that a command takes among its words.
fn keys(command: &str) -> Vec<&'static str> {
    match command {
        "run" => SPECIAL_KEYS.into_iter().chain(["tpu"]).collect(),
        "submit" => SPECIAL_KEYS.into_iter().chain(KEYS_OF_SUBMIT).chain(["tpu"]).collect(),
        "resume" | "rerun" => vec!["tpu", "w", "window", "windows"],
        "kill" | "logs" | "explain" | "show" | "files" | "attach" | "wait" | "history" => {
            vec!["w", "window", "windows"]
        }
        _ => Vec::new(),
    }
}

/// The key that an option is, and its value if it is part of the same word.
fn key_of<'a>(word: &'a str, keys: &[&'static str]) -> Option<(&'static str, Option<&'a str>)> {
    let typed = word.strip_prefix("--")?;
    let (name, value) = match typed.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (typed, None),
    };
    let key = keys.iter().find(|key| **key == name || key.replace('_', "-") == name)?;
    Some((*key, value))
}

/// The long options that a command has.
fn options(command: &str, words: &[OsString]) -> Vec<String> {
    let all = Cli::definitions_for(words);
    let command = all.find_subcommand(command);
    let options = command.into_iter().flat_map(clap::Command::get_arguments);
    options
        .flat_map(|option| option.get_long_and_visible_aliases().unwrap_or_default())
        .map(str::to_owned)
        .collect()
}

/// Whether a word is a value, and no option: a negative number is one.
fn is_value(word: &OsString) -> bool {
    word.to_str().is_none_or(|text| !text.starts_with('-') || text.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(line: &str) -> String {
        let out = rewrite(line.split(' ').map(OsString::from).collect());
        out.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn options_that_are_keys_become_pairs() {
        for (typed, read) in [
            ("run local --gpus 1 -q", "run local gpus=1 -q"),
            ("run --gpus=0,1 local --mem 8G", "run gpus=0,1 local mem=8G"),
            ("--user bob run local --tag x", "--user bob run local tag=x"),
            ("submit local --after-any 3 --priority -5", "submit local after_any=3 priority=-5"),
            ("resume 7 --tpu v2-32-6", "resume 7 tpu=v2-32-6"),
            ("kill --window 7", "kill window=7"),
        ] {
            assert_eq!(rewritten(typed), read);
        }
    }

    #[test]
    fn what_a_command_has_itself_and_what_stands_behind_the_dashes_stays() {
        for line in [
            "run local --name x",
            "run local -- python t.py --gpus 2",
            "run local --gpus -- python t.py",
            "run local --gpus -q",
            "run local --after 3",
            "check --gpus 1",
            "--gpus 1",
        ] {
            assert_eq!(rewritten(line), line);
        }
        assert_eq!(meant("--cpus"), Some("cpus"));
    }
}
