//! The spellings that users of the original type, as one table that rewrites words before clap sees them.
//!
//! Only words up to `--` are looked at. A spelling is rewritten where it stands for a command (the first
//! word that is no global flag) or, per command, where it is one of its later arguments.

use std::ffi::OsString;

use super::args::{Cli, kind_commands};
use super::keys::{self, GLOBALS_WITH_VALUE};

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
    ("status", "check"),
    ("ps", "check"),
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
    ("-lc", "lock-code"),
    ("-ulc", "unlock-code"),
    ("list-dir", "ls"),
    ("kill-jobs", "kill"),
    ("rel", "release"),
    ("zhan", "reserve"),
    ("-dtpu", "describe"),
    ("-cktpu", "check-status"),
    ("solve-env", "solve"),
    ("lian", "ssh"),
    ("mount-disk-new", "mount-disk"),
    ("apply-norm", "apply --norm"),
    ("reapply-norm", "reapply --norm"),
    ("keng", "find --deleted"),
    ("gtis", "check-status"),
    ("-agc", "data set"),
    ("add_global_config", "data set"),
    ("-mgc", "data merge"),
    ("merge_global_config", "data merge"),
    ("-atpu", "register"),
    ("add-applied-tpu", "register"),
    ("add-applied", "register"),
    ("del-register", "del-registered"),
    ("del-reg", "del-registered"),
    ("del-info", "del-registered"),
    ("vq", "queue list"),
    ("cc", "checkpoints copy"),
    ("cca", "checkpoints copy --all"),
    ("clean-us", "checkpoints prune --keep newest --region us"),
    ("clean-eu", "checkpoints prune --keep newest --region eu"),
];

/// Commands of the original that `tpu` does not have on purpose, each with what to do instead.
pub const GONE: &[(&str, &str)] = &[
    ("lock", LOCKS),
    ("unlock", LOCKS),
    ("rl", LOCKS),
    ("lock-data", LOCKS),
    ("unlock-data", LOCKS),
    ("lock-code", LOCKS),
    ("unlock-code", LOCKS),
    ("rm-lock", "a reservation ends by itself; before that: tpu release TARGET"),
    (
        "dqr",
        "move it before the others: tpu priority JOB --first; on one target now: tpu dequeue JOB, tpu run TARGET",
    ),
    ("upd-staging-info", STAGING),
    ("just_staging.sh", STAGING),
    ("register-web", "nothing is registered: tpu serve shows a page, tpu monitor the screen"),
    ("change-ip", "the daemon brings jobs back when a machine has changed: tpu daemon start"),
    ("rtw", "tpu register FULL_NAME --zone ZONE --spot"),
    ("reapplyy", "tpu delete TARGET, then tpu apply TARGET: it waits for capacity"),
    ("fang", "point the alias at the new target: tpu -ta ALIAS NEW_FULL_NAME"),
    ("fmd", "tpu -ta ALIAS NEW_FULL_NAME, then tpu reserve ALIAS"),
    ("uss", "the board follows the jobs by itself: tpu find"),
    ("upd-status-spreadsheet", "the board follows the jobs by itself: tpu find"),
    ("twsi", "it was a test of the spreadsheet; the board is shown by: tpu find"),
    ("debug-stats", "what runs on a target is shown by: tpu describe TARGET"),
    ("debug-kill", "stop a job with: tpu kill w=N"),
    ("restart-run", "tpu restart TARGET, then tpu resume w=N"),
    ("rs", "tpu restart TARGET, then tpu resume w=N"),
];

const STAGING: &str =
    "tpu copies the code itself, and queued jobs start automatically: tpu queue USER TYPE";

const LOCKS: &str = "locks here die with whoever holds them; `tpu doctor` shows who holds one";

/// What to do instead of a command that is not there on purpose.
pub fn gone(typed: &str) -> Option<&'static str> {
    GONE.iter().find(|(word, _)| *word == typed).map(|(_, remedy)| *remedy)
}

/// Words that people try first because another tool has them, and the command that does it here.
const TRIED: &[(&str, &str)] = &[
    ("tag", "add-tag"),
    ("rule", "set-rule"),
    ("log", "logs"),
    ("tail", "logs"),
    ("why", "explain"),
    ("list", "check-simp"),
    ("top", "monitor"),
    ("cancel", "kill"),
    ("start-daemon", "daemon start"),
    ("retry", "rerun"),
    ("config", "get-settings"),
    ("sbatch", "submit"),
    ("squeue", "queue"),
    ("scancel", "kill"),
    ("version", "--version"),
    ("watch", "monitor"),
    ("info", "show"),
    ("rm", "clean"),
    ("remove", "clean"),
    ("edit", "set-settings"),
];

/// The command that somebody most likely means who types a word of another tool.
pub fn meant(typed: &str) -> Option<&'static str> {
    TRIED.iter().find(|(word, _)| *word == typed).map(|(_, command)| *command)
}

/// Flags that people try first, and the one that does it here.
const TRIED_FLAGS: &[(&str, &str)] =
    &[("--tail", "-n"), ("--head", "-n"), ("--limit", "-n"), ("--watch", "--follow")];

/// The flag that somebody most likely means who types one of another tool.
pub fn meant_flag(typed: &str) -> Option<&'static str> {
    TRIED_FLAGS.iter().find(|(flag, _)| *flag == typed).map(|(_, flag)| *flag)
}

/// Later words, for the commands named: what is typed, and what clap is given.
const ARGUMENTS: &[(&[&str], &str, &str)] = &[
    (&["clean"], "-re", "--re"),
    (&["checkpoints"], "-f", "--yes"),
    (&["run", "resume", "rerun"], "-apply", "--apply"),
    (&["run", "queue"], "-no-tag", "--no-tag"),
    (&["run", "queue"], "-ssn", "--ask-notes"),
    (&["run", "queue"], "--ssn", "--ask-notes"),
    (&["run", "queue"], "--set-spreadsheet-notes", "--ask-notes"),
    (&["run"], "-auto", "--auto"),
    (&["run", "find"], "-norm", "--norm"),
    (&["run", "find"], "-pre", "--pre"),
    (&["find"], "-del", "--deleted"),
    (&["find", "run"], "-a", "v*"),
    (&["find", "run"], "--all", "v*"),
    (&["queue"], "all", "v*"),
    (&["apply", "applyy", "reapply"], "-norm", "--norm"),
    (SHOWING, "-nt", "--no-tags"),
    (SHOWING, "-z", "--zone"),
    (SHOWING, "-c", "--leaves"),
    (SHOWING, "-nf", "--color=never"),
];

/// Commands whose `-wdtsv` choose what is shown.
const SHOWING: &[&str] = &["check", "check-simp", "monitor", "caj", "maj"];

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
                    command = full.split(' ').next().map(str::to_owned);
                }
                out.extend(full.split(' ').map(OsString::from));
            }
            Some(command) => {
                value_follows = GLOBALS_WITH_VALUE.contains(&text);
                out.push(argument(command, text).map_or(word.clone(), OsString::from));
            }
        }
    }
    out.extend(words);
    kind_commands().fold(keys::rewrite(out), |words, brought| (brought.spelled)(words))
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
            .map(|(_, full)| full.split(' ').next().unwrap_or(full).to_owned());
    }
    for (commands, typed, meant) in ARGUMENTS {
        if commands.contains(&command) && *typed == text {
            return Some((*meant).to_owned());
        }
    }
    if SHOWING.contains(&command) {
        if is_show_flag(text) {
            return Some(format!("--show={}", text.trim_start_matches('-')));
        }
        if let Some(columns) = text.strip_prefix("col=") {
            return Some(format!("--columns={columns}"));
        }
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

/// The words that are commands, which no name may be.
pub fn command_words() -> Vec<String> {
    let all = Cli::definitions();
    let names = all.get_subcommands().flat_map(|sub| {
        std::iter::once(sub.get_name().to_owned()).chain(sub.get_all_aliases().map(str::to_owned))
    });
    names.chain(COMMANDS.iter().map(|(typed, _)| (*typed).to_owned())).collect()
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
        assert_eq!(rewritten("queue alice all -ssn"), "queue alice v* --ask-notes");
        assert_eq!(rewritten("run v2-1 --set-spreadsheet-notes"), "run v2-1 --ask-notes");
        assert_eq!(rewritten("-h -czw"), "help clear-zombie-windows");
    }

    #[test]
    fn nothing_behind_the_double_dash_is_touched() {
        assert_eq!(rewritten("run local -- -a -w=7 -re"), "run local -- -a -w=7 -re");
        assert_eq!(rewritten("--user -- -a"), "--user -- -a");
    }
}
