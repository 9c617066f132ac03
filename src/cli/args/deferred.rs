//! Arguments that are defined when their command is typed: of a hundred commands a process runs one, and to
//! define what all of them take was a fourth of `tpu ls`.

use std::ops::Deref;

use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// The arguments of a command, which clap asks for when it has found that command, or when somebody builds all.
#[derive(Debug)]
pub struct Deferred<T>(T);

impl<T> Deferred<T> {
    /// The arguments themselves.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> From<T> for Deferred<T> {
    fn from(args: T) -> Self {
        Self(args)
    }
}

impl<T> Deref for Deferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(define::<T>)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Adds the arguments. What a command is about its variant has said, and the description of the type that holds
/// its arguments is for programmers.
fn define<T: Args>(command: Command) -> Command {
    let about = command.get_about().cloned().map_or(Resettable::Reset, Resettable::Value);
    let long = command.get_long_about().cloned().map_or(Resettable::Reset, Resettable::Value);
    T::augment_args(command).about(about).long_about(long)
}
