//! The options that kinds of target bring along: a kind is added to the program, and its options are there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use clap::{Arg, ArgAction, ArgMatches};

use crate::kinds::{KindOfTarget, KindOption, Kinds};
use crate::model::options::KindOptions;

/// The kinds of target of this program.
static KINDS: OnceLock<Kinds> = OnceLock::new();

/// The kinds of target of this program, whose options `register`, `run` and `targets import` have.
pub(in crate::cli) fn kinds() -> &'static Kinds {
    KINDS.get_or_init(Kinds::built_in)
}

/// Says which kinds of target this program has. To be called before anything is read.
pub(in crate::cli) fn have_kinds(kinds: Kinds) {
    // A second call would come too late for what was read by the first.
    drop(KINDS.set(kinds));
}

/// Which options of a kind are meant.
type Of = fn(&dyn KindOfTarget) -> &'static [KindOption];

/// Adds the options that kinds of target bring along: only to the command that is typed, since each costs a start.
pub(super) fn with_options(all: clap::Command) -> clap::Command {
    // In place: each stays where it is in the list of all commands.
    all.mut_subcommands(|command| match command.get_name() {
        "register" => command.defer(|register| register.args(of_targets())),
        "targets" => command
            .defer(|targets| targets.mut_subcommand("import", |import| import.args(of_targets()))),
        "run" => command.defer(|run| run.args(args(|kind| kind.job_options()))),
        _ => command,
    })
}

fn of_targets() -> Vec<Arg> {
    args(|kind| kind.own_options())
}

/// The options of all kinds; one that several have in common is there once.
fn args(options: Of) -> Vec<Arg> {
    let mut by_name: BTreeMap<&str, (&KindOption, Vec<String>)> = BTreeMap::new();
    for kind in kinds().all() {
        for option in options(kind) {
            let (_, words) = by_name.entry(option.name).or_insert((option, Vec::new()));
            words.push(kind.word().to_string());
        }
    }
    let arg = |(option, kinds): (&KindOption, Vec<String>)| {
        let action = if option.is_many { ArgAction::Append } else { ArgAction::Set };
        let help = format!("{} ({})", option.help, kinds.join(", "));
        Arg::new(option.name).long(option.name).value_name(option.value).action(action).help(help)
    };
    by_name.into_values().map(arg).collect()
}

/// What was said by the options of a target.
pub(super) fn said_of_target(matches: &ArgMatches) -> KindOptions {
    said(matches, |kind| kind.own_options())
}

/// What was said by the options of a job.
pub(super) fn said_of_job(matches: &ArgMatches) -> KindOptions {
    said(matches, |kind| kind.job_options())
}

fn said(matches: &ArgMatches, options: Of) -> KindOptions {
    let names: BTreeSet<&str> = kinds().all().flat_map(options).map(|option| option.name).collect();
    let said = names.into_iter().filter_map(|name| {
        let values = matches.try_get_many::<String>(name).ok()??;
        Some(values.map(move |value| (name, value.as_str())))
    });
    said.flatten().collect()
}
