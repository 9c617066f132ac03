//! The options that kinds of target bring along: a kind is added to the program, and its options are there.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use clap::{Arg, ArgMatches};

use crate::kinds::{KindOfTarget, KindOption, Kinds};

/// The kinds of target of this program.
static KINDS: OnceLock<Kinds> = OnceLock::new();

/// The kinds of target of this program, whose options `register` and `run` have.
pub(in crate::cli) fn kinds() -> &'static Kinds {
    KINDS.get_or_init(Kinds::built_in)
}

/// Says which kinds of target this program has. To be called before anything is read.
pub(in crate::cli) fn have_kinds(kinds: Kinds) {
    // A second call would come too late for what was read by the first.
    drop(KINDS.set(kinds));
}

/// Adds the options that kinds of target bring along.
pub(super) fn with_options(mut all: clap::Command) -> clap::Command {
    for kind in kinds().all() {
        for (command, options) in [("register", kind.own_options()), ("run", kind.job_options())] {
            for option in options {
                let help = format!("{} ({})", option.help, kind.word());
                let arg = Arg::new(option.name).long(option.name).value_name(option.value);
                all = all.mut_subcommand(command, |of| of.arg(arg.help(help)));
            }
        }
    }
    all
}

/// Which of the options of kinds were said.
pub(super) fn said(
    matches: &ArgMatches,
    options: fn(&dyn KindOfTarget) -> &'static [KindOption],
) -> BTreeMap<String, String> {
    let all = kinds().all().flat_map(options);
    let said = all.filter_map(|option| {
        let value = matches.try_get_one::<String>(option.name).ok()??;
        Some((option.name.to_owned(), value.clone()))
    });
    said.collect()
}
