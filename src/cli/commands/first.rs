//! The first command of an account: it makes the state file and the user, so that nothing has to be set up before it.

use std::ffi::OsString;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::{dashes, legacy};
use tpu_core::model::data::Data;
use tpu_ops::Error;
use tpu_ops::act::selection;
use tpu_ops::front::jobfile::is_file;
use tpu_ops::waiting::users;

/// A command that makes the first user where there is none.
pub(in crate::cli) fn begins(run: impl FnOnce(&App) -> Outcome) -> impl FnOnce(&App) -> Outcome {
    move |app| {
        begin(app, None)?;
        run(app)
    }
}

/// Makes the first user for a command that starts a job. Its words may name that user.
pub(in crate::cli) fn begin_to_run(
    app: &App,
    words: &[String],
    command: &[OsString],
) -> Result<(), Error> {
    if !is_anybody_missing(app)? {
        return Ok(());
    }
    if let Some(first) = dashes::command_in(&app.typed) {
        let what = format!("'{first}' is no target, and there is no user yet");
        return Err(Error::usage(what).hint(dashes::advice(&app.typed, first)));
    }
    let (said, word) = users_among(words)?;
    match word.as_deref().filter(|_| command.is_empty()) {
        // Most likely it is the command: no user is made of it.
        Some(word) => {
            let what = format!("'{word}' is no target, and there is no user yet");
            Err(Error::usage(what).hint("put -- before the command: tpu run local -- python3 main.py; `tpu init` makes a user"))
        }
        None => begin(app, said.or(word)),
    }
}

/// The user whom the words of a command name where nobody is known yet: by `user=NAME`, and by the one word that means
/// nothing else.
fn users_among(words: &[String]) -> Result<(Option<String>, Option<String>), Error> {
    if words.iter().any(|word| is_file(word)) {
        return Ok((None, None));
    }
    let nobody = Data::empty();
    let sorted = selection::sort(words, &nobody)?;
    let (targets, mut others): (Vec<String>, Vec<String>) =
        sorted.rest.into_iter().partition(|word| nobody.resolve_target(word).is_some());
    let is_named = targets.len() == 1 && others.len() == 1;
    Ok((sorted.user.map(|user| user.to_string()), others.pop().filter(|_| is_named)))
}

/// Makes the first user where there is none: the one who is named, else the one whom `--user` or a setting names, else
/// the account.
pub(in crate::cli) fn begin(app: &App, named: Option<String>) -> Result<(), Error> {
    if !is_anybody_missing(app)? {
        return Ok(());
    }
    let ctx = app.ctx()?;
    let named = named.or(app.global.user.clone()).or(ctx.settings(None)?.user);
    if let Some(user) = users::begin(ctx, named.as_deref(), &legacy::command_words())? {
        let data = ctx.store.paths().data();
        let made = if ctx.store.is_dry_run() { "would make" } else { "made" };
        ctx.warn([format!("{made} user {user} in {}", data.display())]);
    }
    Ok(())
}

/// Whether there is no user yet. A file that somebody names and that is not there is a mistake, and is not made.
fn is_anybody_missing(app: &App) -> Result<bool, Error> {
    Ok(users::is_anybody_missing(app.ctx()?, app.names_data()?))
}
