//! The options and commands that kinds of target bring along: a kind is added to the program, and they are there.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::sync::OnceLock;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};

use tpu_core::model::options::KindOptions;
use tpu_engine::kinds::{KindCommand, KindOfTarget, KindOption, Kinds};
use tpu_jobfile::own::KindWords;
use tpu_ops::front::jobfile;

/// The kinds of target of this program.
static KINDS: OnceLock<Kinds> = OnceLock::new();

/// The kinds of target of this program, whose options `register`, `run` and `targets import` have.
pub(in crate::cli) fn kinds() -> &'static Kinds {
    KINDS.get_or_init(crate::built_in::kinds)
}

/// Says which kinds of target this program has. To be called before anything is read.
pub(in crate::cli) fn have_kinds(kinds: Kinds) {
    // A second call would come too late for what was read by the first.
    drop(KINDS.set(kinds));
}

/// What a file of jobs may say of a target of each kind.
pub(in crate::cli) fn kind_words() -> Vec<KindWords> {
    jobfile::kind_words(kinds())
}

/// What was said by options that kinds of target bring along.
#[derive(Clone, Debug)]
pub struct Brought<O> {
    /// What was said.
    pub said: KindOptions,
    options: PhantomData<O>,
}

/// Nothing was said.
impl<O> Default for Brought<O> {
    fn default() -> Self {
        Self { said: KindOptions::default(), options: PhantomData }
    }
}

/// Which options of a kind are meant.
pub trait OptionsOfKind {
    /// Those of one kind.
    fn of(kind: &dyn KindOfTarget) -> &'static [KindOption];
}

/// Those that describe a target.
#[derive(Debug)]
pub struct OfTarget;

impl OptionsOfKind for OfTarget {
    fn of(kind: &dyn KindOfTarget) -> &'static [KindOption] {
        kind.own_options()
    }
}

/// Those that describe a machine with an address.
#[derive(Debug)]
pub struct OfMachine;

impl OptionsOfKind for OfMachine {
    fn of(kind: &dyn KindOfTarget) -> &'static [KindOption] {
        if kind.options().contains(&"address") { kind.own_options() } else { &[] }
    }
}

/// Those that describe a job.
#[derive(Clone, Copy, Debug)]
pub struct OfJob;

impl OptionsOfKind for OfJob {
    fn of(kind: &dyn KindOfTarget) -> &'static [KindOption] {
        kind.job_options()
    }
}

impl<O: OptionsOfKind> Args for Brought<O> {
    fn augment_args(command: Command) -> Command {
        command.args(args::<O>())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<O: OptionsOfKind> FromArgMatches for Brought<O> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self { said: said::<O>(matches), options: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.said = said::<O>(matches);
        Ok(())
    }
}

/// Names of options that every kind understands: an option of one kind with such a name is hidden from the command line.
const OF_ALL: [&str; 1] = ["env"];

/// The options of all kinds; one that several have in common is there once.
fn args<O: OptionsOfKind>() -> Vec<Arg> {
    let mut by_name: BTreeMap<&str, (&KindOption, Vec<String>)> = BTreeMap::new();
    for kind in kinds().all() {
        for option in O::of(kind).iter().filter(|option| !OF_ALL.contains(&option.name)) {
            let (_, words) = by_name.entry(option.name).or_insert((option, Vec::new()));
            words.push(kind.word().to_string());
        }
    }
    let arg = |(option, kinds): (&KindOption, Vec<String>)| {
        let action = if option.is_many { ArgAction::Append } else { ArgAction::Set };
        let help = format!("{} ({})", option.help, kinds.join(", "));
        let arg = Arg::new(option.name).long(option.name).value_name(option.value);
        let arg = option.short.map_or(arg.clone(), |letter| arg.short(letter));
        arg.action(action).help(help).hide(option.is_hidden)
    };
    by_name.into_values().map(arg).collect()
}

fn said<O: OptionsOfKind>(matches: &ArgMatches) -> KindOptions {
    let names = kinds().all().flat_map(O::of).map(|option| option.name);
    let names: BTreeSet<&str> = names.filter(|name| !OF_ALL.contains(name)).collect();
    let said = names.into_iter().filter_map(|name| {
        let values = matches.try_get_many::<String>(name).ok()??;
        Some(values.map(move |value| (name, value.as_str())))
    });
    said.flatten().collect()
}

/// A command that a kind of target brings along, and what was said behind its name.
#[derive(Debug)]
pub struct FromKind(pub &'static KindCommand, pub ArgMatches);

/// All of them.
pub(in crate::cli) fn kind_commands() -> impl Iterator<Item = &'static KindCommand> {
    kinds().all().flat_map(KindOfTarget::commands)
}

impl Subcommand for FromKind {
    fn augment_subcommands(program: Command) -> Command {
        program.subcommands(kind_commands().map(|it| (it.command)()))
    }

    fn augment_subcommands_for_update(program: Command) -> Command {
        program
    }

    fn has_subcommand(name: &str) -> bool {
        kind_commands().any(|it| (it.command)().get_name() == name)
    }
}

impl FromArgMatches for FromKind {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let of = |name: &str| kind_commands().find(|it| (it.command)().get_name() == name);
        let named = matches.subcommand().and_then(|(name, said)| Some((of(name)?, said)));
        let (command, said) = named.ok_or_else(|| Error::new(ErrorKind::MissingSubcommand))?;
        Ok(Self(command, said.clone()))
    }

    fn update_from_arg_matches(&mut self, _: &ArgMatches) -> Result<(), Error> {
        Ok(())
    }
}
