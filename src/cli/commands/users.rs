//! Users: `add-user`, `del-user`, `list-users`.

use crate::cli::Outcome;
use crate::cli::app::{App, Undone};
use crate::cli::args::AddUser;
use crate::cli::console;
use crate::cli::legacy;
use crate::cli::print::{Output, table};
use tpu_core::model::ids::UserName;
use tpu_core::text::counted;
use tpu_ops::Error;
use tpu_ops::act::selection;
use tpu_ops::base::ctx::how_to_begin;
use tpu_ops::waiting::users::{self, NewUser};
use tpu_wire::users::{AddedUserDocument, RemovedUserDocument, UserPart, UsersDocument};

/// Adds a user; asks for the name if none is given.
pub(in crate::cli) fn add(app: &App, args: &AddUser) -> Outcome {
    let mut new = NewUser {
        name: args.name.clone().unwrap_or_default(),
        tmux_name: args.tmux_name.clone(),
        dir: args.dir.clone(),
        time_zone: args.time_zone.clone(),
        commands: legacy::command_words(),
    };
    if args.name.is_none() {
        if !app.may_ask() {
            return Err(Error::usage("which name?").hint("tpu add-user NAME"));
        }
        new.name = console::ask("Name: ")?;
        let session = console::ask(&format!("tmux session [{}]: ", new.name))?;
        new.tmux_name = (!session.is_empty()).then_some(session);
        let dir = console::ask("Directory of your code (empty for later): ")?;
        new.dir = (!dir.is_empty()).then_some(dir);
    }
    users::add(app.ctx()?, &new)?;
    let text = format!(
        "Added user {}. Next: {}",
        new.name,
        how_to_begin(&UserName::from(new.name.as_str()))
    );
    Ok(Output::new(text, &AddedUserDocument { user: &new.name }))
}

/// Removes a user who has no live jobs.
pub(in crate::cli) fn delete(app: &App, words: &[String]) -> Outcome {
    let data = app.ctx()?.data()?;
    let sorted = selection::sort(words, &data)?;
    sorted.nothing_else()?;
    sorted.no_number()?;
    let Some(name) = sorted.user else {
        return Err(Error::usage("which user?").hint("tpu del-user NAME"));
    };
    let undone =
        Undone { what: "nothing was removed", hint: "add -y to remove without a question" };
    if app.asks() {
        users::may_delete(app.ctx()?, &name)?;
    }
    app.agree(&format!("Remove user {name} and archive their records?"), undone)?;
    let archived = users::delete(app.ctx()?, &name)?;
    let text = format!("Removed user {name}; in the archive: {}.", counted(archived, "record"));
    Ok(Output::new(text, &RemovedUserDocument { user: &name, archived }))
}

/// Lists the users with their sessions.
pub(in crate::cli) fn list(app: &App) -> Outcome {
    let data = app.ctx()?.data()?;
    let rows: Vec<Vec<String>> = data
        .users()
        .iter()
        .map(|user| {
            vec![
                user.id.to_string(),
                user.name.to_string(),
                user.tmux_name.clone(),
                user.jobs().len().to_string(),
            ]
        })
        .collect();
    let text = if rows.is_empty() {
        "No users. Begin in the directory of your code: tpu init".to_owned()
    } else {
        table::columns(&["ID", "NAME", "TMUX", "JOBS"], &rows)
    };
    let users = data.users().iter().map(UserPart::from).collect();
    Ok(Output::new(text, &UsersDocument { users }))
}
