//! Help: the welcome, `tldr`, `help`, completions, the manual page.

use crate::cli::Outcome;
use crate::cli::args::Cli;
use crate::cli::complete;
use crate::cli::legacy;
use crate::cli::print::Output;
use tpu_core::model::settings::MEANINGS;
use tpu_ops::Error;
use tpu_ops::base::error::did_you_mean;
use tpu_wire::pages::{ManualDocument, ScriptDocument, TextDocument, WelcomeDocument};

/// The page of useful commands.
const TLDR: &str = include_str!("../../../assets/tldr.md");

/// The groups of the full list, each with its commands. The group without names has the commands that kinds of target add.
const GROUPS: &[(&str, &[&str])] = &[
    ("Start jobs", &["run", "submit", "resume", "rerun"]),
    (
        "Look at jobs",
        &[
            "monitor",
            "check",
            "check-simp",
            "explain",
            "show",
            "logs",
            "files",
            "history",
            "sweep",
            "script",
            "attach",
            "wait",
        ],
    ),
    (
        "Change jobs",
        &["kill", "set-rule", "check-rules", "add-tag", "ignore-error", "clean", "archive"],
    ),
    ("The queue", &["queue", "hold", "unhold", "priority", "requeue", "dequeue"]),
    ("Automatic restarts", &["daemon", "ack", "monitor-log"]),
    (
        "Machines and other targets",
        &[
            "hosts",
            "pools",
            "targets",
            "register",
            "del-registered",
            "add-tpu-alias",
            "list-tpu-aliases",
            "find",
            "reserve",
            "release",
            "describe",
            "check-status",
            "board",
        ],
    ),
    (
        "Cloud TPUs",
        &[
            "apply",
            "reapply",
            "delete",
            "start",
            "stop",
            "restart",
            "solve",
            "mount-disk",
            "set-wandb",
            "check-env",
            "test",
            "ssh",
            "cp",
            "kill-remote",
            "sim",
        ],
    ),
    ("Added by kinds of target", &[]),
    ("Costs and storage", &["stats", "quota", "billing", "checkpoints", "storage", "disk"]),
    (
        "Users, directories, settings",
        &[
            "init",
            "get-settings",
            "set-settings",
            "reset-settings",
            "add-user",
            "del-user",
            "list-users",
            "ls",
            "set-cur",
            "set-dir",
            "get-dir",
            "del-dir",
            "swap-dir",
            "add-config-alias",
            "show-config-alias",
            "del-config-alias",
        ],
    ),
    (
        "Job files, scripts, browser",
        &["convert", "schema", "secrets", "notify", "serve", "token", "data", "export", "classify"],
    ),
    ("Help", &["demo", "doctor", "tldr", "help", "completions", "man", "uninstall"]),
    ("Callbacks of a lab's scripts", &["upd-log", "finish-job", "fail-job"]),
    (
        "Compatibility with earlier tools",
        &[
            "caj",
            "maj",
            "kill-window",
            "clear-finished",
            "clear-error",
            "clear-all",
            "clear-zombie-windows",
            "clear-zombie-jobs",
            "get-stage-dir",
            "reset-window-num",
            "applyy",
            "ssn",
            "asn",
            "clear-monitor-log",
            "set-monitor-config",
            "get-monitor-config",
            "import",
            "cms",
            "jobman",
        ],
    ),
];

/// The word behind `help` for the list of settings; no command has this name.
const SETTINGS: &str = "settings";

/// What `tpu` alone says to somebody who has not begun yet.
pub(in crate::cli) fn welcome() -> Output {
    // Nobody has said yet how wide the terminal is: no line is longer than 80.
    let text = "tpu runs jobs here and elsewhere, shows how they are, and restarts them.\n\n  \
        tpu run local -- python3 main.py  run a program of this directory\n  \
        tpu monitor                       watch it; ? lists the keys\n  \
        tpu demo                          practise with real jobs; leaves nothing\n  \
        tpu init                          choose a name, get example scripts\n  \
        tpu init --from PATH              look at a data.json of the Python tool\n  \
        tpu tldr                          a page of useful commands\n  \
        tpu help                          the commands on one screen\n";
    Output::new(text, &WelcomeDocument { begin: ["demo", "init", "tldr", "help"] })
}

/// `tldr`.
pub(in crate::cli) fn tldr() -> Output {
    Output::new(TLDR, &TextDocument { text: TLDR })
}

/// `help`, `help COMMAND`, `-h COMMAND`.
pub(in crate::cli) fn help(command: Option<&str>, all: bool) -> Outcome {
    let mut cli = Cli::definitions();
    cli.build();
    let text = match command {
        None if all => every_command(&cli),
        None => cli.render_help().ansi().to_string(),
        Some(SETTINGS) => every_setting(),
        Some(typed) => subcommand(&mut cli, typed)?.render_help().ansi().to_string(),
    };
    let plain = anstream::adapter::strip_str(&text).to_string();
    Ok(Output::new(text, &TextDocument { text: &plain }))
}

/// A command by any of its spellings.
fn subcommand<'a>(cli: &'a mut clap::Command, typed: &str) -> Result<&'a mut clap::Command, Error> {
    if let Some(remedy) = legacy::gone(typed) {
        return Err(Error::refused(format!("tpu has no '{typed}', on purpose")).hint(remedy));
    }
    let spelling = legacy::COMMANDS.iter().find(|(spelling, _)| *spelling == typed);
    let name = spelling.map_or(typed, |(_, command)| command);
    let name = name.split(' ').next().unwrap_or(name);
    let known: Vec<String> = cli.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    cli.find_subcommand_mut(name).ok_or_else(|| {
        let hint = did_you_mean(typed, known.iter().map(String::as_str))
            .unwrap_or_else(|| "`tpu help --all` lists every command".to_owned());
        Error::usage(format!("there is no command '{typed}'")).hint(hint)
    })
}

/// The groups, with one line for each command.
fn every_command(cli: &clap::Command) -> String {
    let shown: Vec<&clap::Command> =
        cli.get_subcommands().filter(|sub| !sub.is_hide_set()).collect();
    let mut text = String::new();
    for (title, names) in GROUPS {
        let of_group: Vec<&&clap::Command> = if names.is_empty() {
            shown.iter().filter(|sub| !has_group(sub.get_name())).collect()
        } else {
            let named = |name: &&str| shown.iter().find(|sub| sub.get_name() == *name);
            names.iter().filter_map(named).collect()
        };
        if of_group.is_empty() {
            continue;
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        text += &format!("{gap}{title}\n");
        for sub in of_group {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            text += &format!("  {:<20} {about}\n", sub.get_name());
        }
    }
    text
}

/// The settings, with what each means.
fn every_setting() -> String {
    let rows = MEANINGS.iter().map(|(key, means)| format!("{key}\n    {}\n", means.trim()));
    let rows: String = rows.collect();
    format!(
        "Settings: `tpu set-settings KEY VALUE` changes one, `tpu get-settings --origin` shows their values.\n\n{rows}"
    )
}

/// Whether a group names the command.
fn has_group(command: &str) -> bool {
    GROUPS.iter().any(|(_, names)| names.contains(&command))
}

/// The script that makes a shell ask `tpu` for completions.
pub(in crate::cli) fn completions(shell: clap_complete::Shell) -> Outcome {
    let text = complete::script(shell)?;
    Ok(Output::new(text.clone(), &ScriptDocument { script: &text }))
}

/// The manual page of `tpu`, or of one command, in roff.
pub(in crate::cli) fn man(command: Option<&str>) -> Outcome {
    let mut cli = Cli::definitions();
    cli.build();
    let of = match command {
        None => cli,
        Some(typed) => subcommand(&mut cli, typed)?.clone().name(format!("tpu-{typed}")),
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(of).render(&mut page).map_err(|e| {
        Error::failed(format!("cannot make the manual page: {e}"))
            .hint("`tpu help --all` shows the same")
    })?;
    let text = String::from_utf8_lossy(&page).into_owned();
    Ok(Output::new(text.clone(), &ManualDocument { roff: &text }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tpu_core::model::settings::KEYS;

    use super::*;
    use crate::cli::args::kind_commands;

    #[test]
    fn the_help_of_settings_names_each_with_what_it_means() {
        let text = help(Some(SETTINGS), false).unwrap().text;
        for key in KEYS {
            let says = text.split_once(&format!("\n{key}\n    ")).map(|(_, says)| says);
            assert!(says.is_some_and(|says| says.starts_with(char::is_uppercase)), "{key}");
        }
        assert_eq!(MEANINGS.len(), KEYS.len());
        assert!(Cli::definitions().find_subcommand(SETTINGS).is_none(), "it is no command");
    }

    #[test]
    fn each_command_is_in_one_group_and_each_help_fits_a_line() {
        let cli = Cli::definitions();
        let added: BTreeSet<String> =
            kind_commands().map(|it| (it.command)().get_name().to_owned()).collect();
        let shown = cli.get_subcommands().filter(|sub| !sub.is_hide_set());
        for sub in shown {
            let name = sub.get_name();
            let groups = GROUPS.iter().filter(|(_, names)| names.contains(&name)).count();
            assert_eq!(groups, usize::from(!added.contains(name)), "{name}");
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty() && about.chars().count() <= 57, "{name}: {about}");
        }
        for name in GROUPS.iter().flat_map(|(_, names)| *names) {
            assert!(cli.find_subcommand(name).is_some(), "there is no command {name}");
        }
    }
}
