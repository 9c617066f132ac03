//! The spellings that users of the original type, as one table that rewrites words before clap sees them.
//!
//! Only words up to `--` are looked at. A spelling is rewritten where it stands for a command (the first
//! word that is no global flag) or, per command, where it is one of its later arguments.

use std::ffi::OsString;

/// First words: what is typed, and the command it stands for.
pub const COMMANDS: &[(&str, &str)] = &[
    ("-h", "help"),
    ("-a", "add-config-alias"),
    ("-alias", "add-config-alias"),
    ("-sa", "show-config-alias"),
    ("-la", "show-config-alias"),
    ("-ta", "add-tpu-alias"),
    ("-ata", "add-tpu-alias"),
    ("-lta", "list-tpu-aliases"),
    ("-sta", "list-tpu-aliases"),
    ("-lu", "list-users"),
    ("-k", "kill"),
    ("-kj", "kill"),
    ("kill-job", "kill"),
    ("-kw", "kill-window"),
    ("-czw", "clear-zombie-windows"),
    ("-czj", "clear-zombie-jobs"),
    ("clear", "clear-all"),
    ("lsdir", "ls"),
    ("reset-window", "reset-window-num"),
    ("-smc", "set-monitor-config"),
    ("-gmc", "get-monitor-config"),
    ("-Ml", "monitor-log"),
    ("-Mc", "clear-monitor-log"),
    ("-atpu", "register"),
    ("add-applied-tpu", "register"),
    ("add-applied", "register"),
    ("del-register", "del-registered"),
    ("del-reg", "del-registered"),
    ("del-info", "del-registered"),
    ("-dtpu", "describe"),
    ("-cktpu", "check-status"),
];

/// Later words, for the commands named: what is typed, and what clap is given.
const ARGUMENTS: &[(&[&str], &str, &str)] = &[
    (&["clean"], "-re", "--re"),
    (&["run", "resume", "rerun"], "-apply", "--apply"),
    (&["run"], "-no-tag", "--no-tag"),
    (&["run"], "-ssn", "--ask-notes"),
    (&["run"], "--ssn", "--ask-notes"),
    (&["run"], "-auto", "--auto"),
    (&["apply", "applyy", "reapply"], "-norm", "--norm"),
    (&["check", "check-simp", "monitor"], "-nt", "--no-tags"),
    (&["check", "check-simp", "monitor"], "-z", "--zone"),
    (&["check"], "-c", "--leaves"),
];

/// Commands whose `-wdtsv` choose what is shown.
const SHOWING: &[&str] = &["check", "check-simp", "monitor", "caj", "maj"];

/// Global flags that take a value as the next word, so that the command is found behind them.
const GLOBALS_WITH_VALUE: &[&str] = &["--data", "--settings", "--user", "--tmux-socket", "--color"];

/// Rewrites the words after the program's name.
pub fn rewrite(words: Vec<OsString>) -> Vec<OsString> {
    let mut out = Vec::with_capacity(words.len());
    let mut command: Option<String> = None;
    let mut value_follows = false;
    let mut words = words.into_iter();
    for word in words.by_ref() {
        let Some(text) = word.to_str() else {
            out.push(word);
            continue;
        };
        if text == "--" {
            out.push(word);
            break;
        }
        if value_follows {
            value_follows = false;
            out.push(word);
            continue;
        }
        match &command {
            None if GLOBALS_WITH_VALUE.contains(&text) => {
                value_follows = true;
                out.push(word);
            }
            None => {
                let full = first_word(text);
                if !full.starts_with('-') {
                    command = Some(full.to_owned());
                }
                out.push(OsString::from(full));
            }
            Some(command) => {
                value_follows = GLOBALS_WITH_VALUE.contains(&text);
                out.push(argument(command, text).map_or(word.clone(), OsString::from));
            }
        }
    }
    out.extend(words);
    out
}

/// The command a first word stands for, else the word itself. `tpu -h` alone stays clap's own help.
fn first_word(text: &str) -> &str {
    COMMANDS.iter().find(|(typed, _)| *typed == text).map_or(text, |(_, command)| command)
}

/// What a later word of `command` is rewritten to.
fn argument(command: &str, text: &str) -> Option<String> {
    if command == "help" {
        // `tpu -h -czw`: help about a spelling is help about its command.
        return COMMANDS
            .iter()
            .find(|(typed, _)| *typed == text)
            .map(|(_, full)| (*full).to_owned());
    }
    for (commands, typed, meant) in ARGUMENTS {
        if commands.contains(&command) && *typed == text {
            return Some((*meant).to_owned());
        }
    }
    if SHOWING.contains(&command) && is_show_flag(text) {
        return Some(format!("--show={}", text.trim_start_matches('-')));
    }
    // `-w=7` and `-window=7`: the dash is an ornament.
    let (key, value) = text.strip_prefix('-')?.split_once('=')?;
    ["w", "window", "windows", "tpu", "ka"].contains(&key).then(|| format!("{key}={value}"))
}

/// `-wdtsv` in any selection.
fn is_show_flag(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|letters| {
        !letters.is_empty() && letters.chars().all(|letter| "wdtsv".contains(letter))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        let out = rewrite(words);
        out.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn historic_spellings_become_commands() {
        for (typed, command) in COMMANDS {
            assert_eq!(rewritten(&format!("{typed} x")), format!("{command} x"));
        }
        assert_eq!(rewritten("--data f.json -lta"), "--data f.json list-tpu-aliases");
        assert_eq!(rewritten("-a lr config.lr alice"), "add-config-alias lr config.lr alice");
    }

    #[test]
    fn later_words_are_rewritten_only_for_their_commands() {
        assert_eq!(rewritten("clean alice -re"), "clean alice --re");
        assert_eq!(rewritten("kill -w=7 alice"), "kill w=7 alice");
        assert_eq!(rewritten("monitor alice -dsv"), "monitor alice --show=dsv");
        assert_eq!(rewritten("run -apply v2-1 -q"), "run --apply v2-1 -q");
        assert_eq!(rewritten("kill -a"), "kill -a");
        assert_eq!(rewritten("-h -czw"), "help clear-zombie-windows");
    }

    #[test]
    fn nothing_behind_the_double_dash_is_touched() {
        assert_eq!(rewritten("run local -- -a -w=7 -re"), "run local -- -a -w=7 -re");
        assert_eq!(rewritten("--user -- -a"), "--user -- -a");
    }
}
