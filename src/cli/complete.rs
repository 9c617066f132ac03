//! Completion: what a shell offers at the cursor. Commands and flags come from clap's definitions; users,
//! targets, aliases, windows, slots and keys from one read of data.json. No tmux, no cloud, no network.
//!
//! A shell calls `tpu` with `$COMPLETE` set and the words so far behind `--`. Historic spellings among
//! them are rewritten first, so that `tpu -k <TAB>` offers what `tpu kill <TAB>` does.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;

use tpu_core::model::data::{Data, User};
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::UserName;
use tpu_core::model::rules::NAMED;
use tpu_core::model::settings::KEYS;
use tpu_core::model::target::Target;
use tpu_core::model::view::{HELD, QUEUED};
use tpu_core::text;
use tpu_ops::Error;
use tpu_ops::act::launch::check::SPECIAL_KEYS;
use tpu_system::sys::env::Env;

use super::app::App;
use super::args::{Cli, Globals};
use super::legacy;

/// The variable by which a shell asks.
const VARIABLE: &str = "COMPLETE";

/// What waits of a user, the newest first, each with what it is.
fn waiting<'a>(
    owner: Option<&'a User>,
    data: &'a Data,
) -> impl Iterator<Item = (&'a QueueEntry, String)> {
    let entries = data.queues().entries.iter().rev();
    let own = entries.filter(move |entry| owner.is_some_and(|user| user.name == entry.user));
    own.map(|entry| {
        let word = if entry.held.is_some() { HELD } else { QUEUED };
        (entry, format!("{word} in {}", entry.queue))
    })
}

/// Nobody reads through more windows than this; the newest come first, and digits reach the others.
const MOST_WINDOWS: usize = 100;

/// What can stand in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offer {
    Users,
    Windows,
    /// What jobs are called.
    Names,
    Targets,
    Slots,
    Aliases,
    /// `key=` of `run`, with the values that are known.
    Keys,
    Selectors,
    Settings,
    Types,
    Rules,
}

use Offer::{
    Aliases, Keys, Names, Rules, Selectors, Settings, Slots, Targets, Types, Users, Windows,
};

/// The commands, by what their words can be. Whatever is not here completes to flags only.
const OFFERS: &[(&[&str], &[Offer])] = &[
    (&["run", "submit", "queue"], &[Targets, Types, Users, Slots, Keys]),
    (&["hold", "dequeue", "requeue", "priority", "sweep"], &[Windows, Names, Users]),
    (&["resume", "rerun"], &[Windows, Names, Users, Targets]),
    (&["kill"], &[Windows, Names, Selectors, Users, Targets]),
    (&["wait"], &[Windows, Names, Selectors, Users]),
    (
        &[
            "kill-window",
            "logs",
            "files",
            "explain",
            "show",
            "script",
            "attach",
            "history",
            "add-tag",
            "ignore-error",
            "unhold",
            "get-stage-dir",
        ],
        &[Windows, Names, Users],
    ),
    (&["set-rule"], &[Windows, Names, Rules, Users]),
    (&["check", "check-simp", "caj", "maj", "clean"], &[Users, Names]),
    (
        &[
            "monitor",
            "clear-finished",
            "clear-error",
            "clear-all",
            "clear-zombie-windows",
            "clear-zombie-jobs",
            "del-user",
            "ls",
            "show-config-alias",
            "get-settings",
            "reset-settings",
            "reset-window-num",
            "add-config-alias",
            "stats",
            "disk",
        ],
        &[Users],
    ),
    (&["set-cur", "set-dir", "get-dir", "del-dir", "swap-dir"], &[Slots, Users]),
    (&["del-config-alias"], &[Aliases, Users]),
    (&["set-settings"], &[Settings, Users]),
    (&["release", "reserve"], &[Targets, Users]),
    (&["find", "quota"], &[Types]),
    (
        &[
            "apply",
            "reapply",
            "delete",
            "start",
            "stop",
            "restart",
            "check-status",
            "del-registered",
            "ssn",
            "asn",
            "describe",
            "solve",
            "mount-disk",
            "set-wandb",
            "check-env",
            "test",
            "kill-remote",
        ],
        &[Targets],
    ),
    (&["ssh"], &[Targets, Windows, Names]),
    (&["checkpoints"], &[Windows, Names, Users]),
];

/// Answers a shell that asks. `None` if none does.
pub(super) fn answer(env: &Env, words: &[OsString]) -> Option<Result<(), Error>> {
    env.var_os(VARIABLE)?;
    let at = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (before, typed) = words.split_at(at);
    let typed: Vec<OsString> = typed.iter().skip(1).cloned().collect();
    let typed = rewritten(typed);
    let line = Arc::new(Line::new(env, &typed));
    // The word at the cursor may become another command than it is so far.
    let said = typed.split_last().map_or(&[][..], |(_, said)| said);
    let factory = || command(Cli::definitions_for(said), &line);
    let mut words = before.to_vec();
    if !typed.is_empty() {
        words.push(OsString::from("--"));
        words.extend(typed.iter().cloned());
    }
    let done = CompleteEnv::with_factory(factory)
        .var(VARIABLE)
        .bin("tpu")
        .completer("tpu")
        .try_complete(words, Some(&env.cwd));
    Some(done.map(drop).map_err(|e| {
        Error::usage(e.to_string()).hint("`tpu completions SHELL` prints what a shell sources")
    }))
}

/// The script by which a shell asks.
pub(super) fn script(shell: clap_complete::Shell) -> Result<String, Error> {
    let name = shell.to_string();
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let written = shells
        .completer(&name)
        .map(|shell| shell.write_registration(VARIABLE, "tpu", "tpu", "tpu", &mut script));
    match written {
        Some(Ok(())) => Ok(String::from_utf8_lossy(&script).into_owned()),
        _ => Err(Error::failed(format!("no completion script for {name}"))
            .hint("there is one for bash, zsh, fish, elvish and powershell")),
    }
}

/// The words so far, the first being the program; what stands at the cursor stays as it is.
fn rewritten(mut typed: Vec<OsString>) -> Vec<OsString> {
    let (Some(current), Some(program)) = (typed.pop(), typed.first().cloned()) else {
        return typed;
    };
    let before: Vec<OsString> = typed.into_iter().skip(1).collect();
    let mut words = vec![program];
    // A spelling that stands for two words would move the cursor.
    let same = before.len();
    let new = legacy::rewrite(before.clone());
    words.extend(if new.len() == same { new } else { before });
    words.push(current);
    words
}

/// What was typed, and what data.json says.
struct Line {
    data: Option<Arc<Data>>,
    user: Option<UserName>,
    /// The key before a `=` that the shell took for a word of its own, as bash does.
    key: Option<String>,
}

impl Line {
    fn new(env: &Env, typed: &[OsString]) -> Self {
        let texts: Vec<&str> = typed.iter().filter_map(|word| word.to_str()).collect();
        let value = |flag: &str| {
            let equals = format!("{flag}=");
            texts.iter().enumerate().find_map(|(at, word)| {
                let next = (*word == flag).then(|| texts.get(at + 1).copied()).flatten();
                next.or_else(|| word.strip_prefix(&equals)).map(str::to_owned)
            })
        };
        let variable = |name: &str| env.non_empty(name).map(str::to_owned);
        let global = Globals {
            data: value("--data").or_else(|| variable("TPU_DATA")).map(Into::into),
            settings: value("--settings").or_else(|| variable("TPU_SETTINGS")).map(Into::into),
            user: value("--user"),
            ..Globals::plain()
        };
        let app = App::new(global, env.clone(), "complete".to_owned(), Vec::new());
        let data = app.ctx().and_then(tpu_ops::Ctx::data).ok();
        let user = data.as_ref().and_then(|data| {
            let words = texts.iter().skip(1).take(texts.len().saturating_sub(2));
            let named =
                words.map(|word| UserName::from(*word)).find(|name| data.user(name).is_some());
            app.requester().ok()?.user_named(data, named.as_ref()).ok().flatten()
        });
        let before = texts.len().checked_sub(2).and_then(|at| texts.get(at));
        let current = texts.last().copied();
        let equals = before == Some(&"=") || current == Some("=");
        let back = if current == Some("=") { 2 } else { 3 };
        let key = texts.len().checked_sub(back).and_then(|at| texts.get(at));
        let key = key.filter(|_| equals).map(|key| (*key).to_owned());
        Self { data, user, key }
    }

    fn owner(&self) -> Option<&User> {
        self.data.as_ref()?.user(self.user.as_ref()?)
    }

    fn offer(&self, offers: &[Offer], current: &OsStr) -> Vec<CompletionCandidate> {
        let Some(data) = &self.data else { return Vec::new() };
        let current = current.to_string_lossy();
        let mut all: Vec<(String, Option<String>)> = Vec::new();
        if let Some(key) = &self.key {
            let prefix = if current == "=" { "=" } else { "" };
            let begun = current.strip_prefix('=').unwrap_or(&current);
            let values = self.values(data, key, begun).into_iter();
            all.extend(values.map(|(value, help)| (format!("{prefix}{value}"), help)));
        } else if let Some((key, begun)) = current.split_once('=') {
            let values = self.values(data, key, begun).into_iter();
            all.extend(values.map(|(value, help)| (format!("{key}={value}"), help)));
        } else {
            for offer in offers {
                all.extend(self.plain(data, *offer, &current));
            }
        }
        all.into_iter()
            .filter(|(word, _)| word.starts_with(&*current) && is_plain(word))
            .map(|(word, help)| {
                let help = help.map(|help| text::escape(&help).into_owned().into());
                CompletionCandidate::new(word).help(help)
            })
            .collect()
    }

    /// The values of `key=`, of which the word has `begun` one.
    fn values(&self, data: &Data, key: &str, begun: &str) -> Vec<(String, Option<String>)> {
        match key {
            "rule" => self.plain(data, Rules, begun),
            "dir" => self.plain(data, Slots, begun),
            "tpu" | "ka" => self.plain(data, Targets, begun),
            "user" => self.plain(data, Users, begun),
            "w" | "window" | "windows" => self.plain(data, Windows, begun),
            "monitor" => ["true", "false"].map(|word| (word.to_owned(), None)).into(),
            "style" => ["full", "category", "category_note"].map(|w| (w.to_owned(), None)).into(),
            _ => Vec::new(),
        }
    }

    /// What can stand in a place where the word has `begun`; what begins otherwise may be left out.
    fn plain(&self, data: &Data, offer: Offer, begun: &str) -> Vec<(String, Option<String>)> {
        let owner = self.owner();
        match offer {
            Users => data
                .users()
                .iter()
                .map(|user| (user.name.to_string(), Some(text::counted(user.jobs().len(), "job"))))
                .collect(),
            Windows => waiting(owner, data)
                .map(|(entry, told)| (entry.number.to_string(), told))
                .filter(|(window, _)| window.starts_with(begun))
                .take(MOST_WINDOWS)
                .map(|(window, told)| (window, Some(told)))
                .chain(
                    owner
                        .into_iter()
                        .flat_map(|user| user.jobs().iter().rev())
                        .flat_map(|job| {
                            let member = job.member().filter(|_| job.child.is_none());
                            let member = member.map(|member| (job, member.to_string()));
                            std::iter::once((job, job.windows_id.to_string())).chain(member)
                        })
                        .filter(|(_, window)| window.starts_with(begun))
                        .take(MOST_WINDOWS)
                        .map(|(job, window)| {
                            let tag = job
                                .job_tags
                                .as_ref()
                                .map(|tag| format!(" #{tag}"))
                                .unwrap_or_default();
                            let told =
                                format!("{} on {}{tag}", job.status, data.target_label(&job.tpu));
                            (window, Some(told))
                        }),
                )
                .collect(),
            Names => owner
                .into_iter()
                .flat_map(|user| user.jobs().iter().rev())
                .filter(|job| job.child.is_none())
                .filter_map(|job| Some((job.name()?, job)))
                .filter(|(name, _)| name.starts_with(begun))
                .take(MOST_WINDOWS)
                .map(|(name, job)| {
                    let told = format!("{} is {}", job.windows_id, job.status);
                    (name.to_owned(), Some(told))
                })
                .chain(
                    waiting(owner, data)
                        .filter_map(|(entry, told)| Some((entry.spec.name.clone()?, told)))
                        .filter(|(name, _)| name.starts_with(begun))
                        // Of a group of which some have begun it stands there already.
                        .filter(|(name, _)| {
                            let mut jobs = owner.into_iter().flat_map(User::jobs);
                            jobs.all(|job| job.name() != Some(name))
                        })
                        .take(MOST_WINDOWS)
                        .map(|(name, told)| (name, Some(told))),
                )
                .collect(),
            Targets => {
                let registry = data.registry();
                let aliases = registry
                    .aliases()
                    .map(|(alias, full)| (alias.to_owned(), Some(full.as_str().to_owned())));
                let names = registry.names();
                let zone = |name| data.target(name).and_then(|target| target.zone);
                let full = names.iter().map(|name| (name.as_str().to_owned(), zone(name)));
                let built_in = Target::built_in().into_iter();
                let here = built_in
                    .map(|target| (target.name.to_string(), Some("this machine".to_owned())));
                aliases.chain(full).chain(here).collect()
            }
            Slots => owner
                .into_iter()
                .flat_map(|user| &user.working_dir)
                .map(|(slot, path)| (slot.to_string(), Some(path.clone())))
                .collect(),
            Aliases => owner
                .into_iter()
                .flat_map(|user| &user.config_aliases)
                .map(|(alias, full)| (alias.clone(), Some(full.clone())))
                .collect(),
            Keys => {
                let own = self.plain(data, Aliases, begun).into_iter();
                let own = own.map(|(alias, full)| (format!("{alias}="), full));
                own.chain(SPECIAL_KEYS.map(|key| (format!("{key}="), None))).collect()
            }
            Selectors => {
                let tags = owner.into_iter().flat_map(User::jobs).filter_map(|job| {
                    job.job_tags.as_ref().map(|tag| (format!("tag:{tag}"), None))
                });
                let mut all: Vec<_> = tags.collect();
                all.sort_unstable();
                all.dedup();
                all.extend(["running", "error", "finished"].map(|s| (format!("status:{s}"), None)));
                all
            }
            Settings => KEYS.iter().map(|key| ((*key).to_owned(), None)).collect(),
            Types => ["v2", "v3", "v4", "v5e", "v5p", "v6e"].map(|t| (t.to_owned(), None)).into(),
            Rules => NAMED.map(|rule| (rule.to_owned(), None)).into(),
        }
    }
}

/// Whether a word is nothing but a word to every shell and terminal. Any other is not offered: bash puts what it
/// is given into the command line as it is, where a name with `$(…)` in it would be run.
fn is_plain(word: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "/_-.,+=:@%".contains(c);
    word.chars().all(is_plain) && !word.starts_with('-')
}

/// clap's definitions with what the words can be.
fn command(mut command: clap::Command, line: &Arc<Line>) -> clap::Command {
    for (names, offers) in OFFERS {
        for name in *names {
            if command.find_subcommand(name).is_none() {
                continue;
            }
            command = command.mut_subcommand(name, |sub| {
                // In place: the order of the words is what tells them apart.
                sub.mut_args(|arg| {
                    if !arg.is_positional()
                        || !["words", "key", "target"].contains(&arg.get_id().as_str())
                    {
                        return arg;
                    }
                    let line = Arc::clone(line);
                    let offer = move |current: &OsStr| line.offer(offers, current);
                    arg.add(ArgValueCompleter::new(offer))
                })
            });
        }
    }
    command.mut_args(|arg| {
        if arg.get_id() != "user" {
            return arg;
        }
        let line = Arc::clone(line);
        arg.add(ArgValueCompleter::new(move |current: &OsStr| line.offer(&[Users], current)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::kind_commands;

    #[test]
    fn every_command_of_the_table_exists_and_takes_words() {
        let command = Cli::definitions();
        for (names, _) in OFFERS {
            for name in *names {
                let sub = command.find_subcommand(name).unwrap_or_else(|| panic!("no {name}"));
                assert!(sub.get_positionals().next().is_some(), "{name} takes no words");
            }
        }
    }

    /// Commands of whose words nothing is known beforehand: new names, files, and what scripts say.
    const WITHOUT_OFFERS: [&str; 16] = [
        "add-user",
        "add-tpu-alias",
        "export",
        "applyy",
        "cp",
        "monitor-log",
        "set-monitor-config",
        "upd-log",
        "finish-job",
        "fail-job",
        "classify",
        "convert",
        "help",
        "man",
        "register",
        "storage",
    ];

    #[test]
    fn every_command_that_takes_words_offers_some() {
        let command = Cli::definitions();
        // What kinds of target bring along has words of its own.
        let is_own = |name: &str| kind_commands().any(|it| (it.command)().get_name() == name);
        let is_meant = |sub: &&clap::Command| !sub.is_hide_set() && !is_own(sub.get_name());
        let visible = command.get_subcommands().filter(is_meant);
        let takes_words = |sub: &&clap::Command| {
            let is_free =
                |arg: &clap::Arg| arg.get_possible_values().is_empty() && !arg.is_last_set();
            sub.get_positionals().any(is_free)
        };
        let has_offers = |name: &str| OFFERS.iter().any(|(names, _)| names.contains(&name));
        let silent: Vec<&str> = visible
            .filter(takes_words)
            .map(clap::Command::get_name)
            .filter(|name| !has_offers(name) && !WITHOUT_OFFERS.contains(name))
            .collect();
        assert!(silent.is_empty(), "not in OFFERS (argument `words` or `target`): {silent:?}");
    }
}
