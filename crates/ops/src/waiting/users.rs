//! Users: who has directories, aliases, settings and jobs.

use tpu_core::model::data::Data;
use tpu_core::model::facts::TmuxFact;
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::job::Job;
use tpu_core::model::settings::SettingOrigin;
use tpu_core::model::view::{Snapshot, Whose};

use tpu_system::store::StoreError;

use super::queue::after;
use crate::act::hosts::edit;
use crate::act::outlook;
use crate::base::ctx::user_of;
use crate::base::environment;
use crate::base::{account, names};
use crate::observe::snapshot;
use crate::{Ctx, Error};

/// `add-user`, resolved.
#[derive(Clone, Debug)]
pub struct NewUser {
    /// Name.
    pub name: String,
    /// tmux session; the name when missing.
    pub tmux_name: Option<String>,
    /// Directory 1.
    pub dir: Option<String>,
    /// Zone for display.
    pub time_zone: Option<String>,
    /// The words of the command line that are commands.
    pub commands: Vec<String>,
}

/// Adds a user; makes the data file if there is none. An existing tmux session of that name is taken
/// over as it is.
pub fn add(ctx: &Ctx, new: &NewUser) -> Result<(), Error> {
    let session = new.tmux_name.as_deref().unwrap_or(&new.name);
    refuse_as_user(&new.name, &new.commands)?;
    check_session(session)?;
    if let Some(dir) = &new.dir
        && !std::path::Path::new(dir).is_dir()
    {
        return Err(Error::not_found(format!("{dir} is not a directory"))
            .hint("create it first, or leave --dir out"));
    }
    match ctx.store.create(&edit::new_lab(Data::empty())) {
        Ok(()) | Err(StoreError::Exists { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    ctx.transact(|tx| {
        let name = UserName::from(new.name.as_str());
        check_free(&tx.data, &name, session)?;
        tx.data.add_user(&name);
        let user = tx.data.user_mut(&name).expect("just added");
        session.clone_into(&mut user.tmux_name);
        if let Some(dir) = &new.dir {
            user.set_dir(1, dir.clone());
        }
        if let Some(zone) = &new.time_zone {
            user.settings.set("time_zone", zone, &SettingOrigin::Flag("--time-zone".to_owned()))?;
        }
        tx.edited(Some(&name), format!("user {name} is added"));
        Ok(())
    })
}

/// Whether there is no user yet. A data file that somebody names and that is not there says nothing.
pub fn is_anybody_missing(ctx: &Ctx, is_file_named: bool) -> bool {
    match ctx.store.read() {
        Ok(data) => data.users().is_empty(),
        Err(StoreError::Missing { .. }) => !is_file_named,
        Err(_) => false,
    }
}

/// Makes the first user: the one who is named, else the account of this process. Returns the name; `None` where
/// another process has made one meanwhile.
pub fn begin(
    ctx: &Ctx,
    named: Option<&str>,
    commands: &[String],
) -> Result<Option<UserName>, Error> {
    let name = named.map_or_else(|| name_of_account(ctx, commands), str::to_owned);
    let new = NewUser {
        name: name.clone(),
        tmux_name: None,
        dir: None,
        time_zone: None,
        commands: commands.to_owned(),
    };
    match add(ctx, &new) {
        Ok(()) => Ok(Some(UserName::from(name.as_str()))),
        Err(_) if ctx.data().is_ok_and(|data| !data.users().is_empty()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A name for the account of this process by which a user can be called.
pub fn name_of_account(ctx: &Ctx, commands: &[String]) -> String {
    let name = account::as_user(&ctx.env);
    let is_target = |name: &str| ctx.data().is_ok_and(|data| data.resolve_target(name).is_some());
    if refuse_as_user(&name, commands).is_err() || is_target(&name) {
        return account::second_name(&name);
    }
    name
}

/// Refuses what nobody can be called. `commands` are the words of the command line that are commands.
pub fn refuse_as_user(name: &str, commands: &[String]) -> Result<(), Error> {
    let mut letters = name.chars();
    let shaped = letters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && name.len() <= 32
        && letters.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if !shaped {
        return Err(Error::usage(format!("'{name}' cannot be a user name"))
            .hint("a letter, then up to 31 letters, digits, '_' or '-'"));
    }
    // A value of another command (`set-settings KEY False`) must not be taken for a user.
    if let Some(meaning) = names::meaning_in_grammar(name, commands) {
        return Err(Error::usage(format!("'{name}' already means something: {meaning}"))
            .hint("take another name, or add something to it"));
    }
    Ok(())
}

/// tmux turns ':' and '.' in session names into '_', so such a name would never be found again.
fn check_session(session: &str) -> Result<(), Error> {
    let usable =
        !session.is_empty() && session.chars().all(|c| c.is_alphanumeric() || "_-+@".contains(c));
    if usable {
        return Ok(());
    }
    Err(Error::usage(format!("'{session}' cannot be the name of a tmux session"))
        .hint("letters, digits, '_', '-', '+' and '@'"))
}

fn check_free(data: &Data, name: &UserName, session: &str) -> Result<(), Error> {
    if data.user(name).is_some() {
        return Err(Error::refused(format!("user '{name}' exists already"))
            .hint("`tpu list-users` lists the users"));
    }
    if let Some(other) = data.user_of_session(session) {
        return Err(Error::refused(format!("the tmux session '{session}' is {}'s", other.name))
            .hint("give another one: --tmux-name NAME"));
    }
    if data.resolve_target(name.as_str()).is_some() {
        return Err(Error::refused(format!("'{name}' is a target")).hint("take another name"));
    }
    Ok(())
}

/// Refuses what [`delete`] would refuse.
pub fn may_delete(ctx: &Ctx, name: &UserName) -> Result<(), Error> {
    looked_at(ctx, name).map(drop)
}

/// All jobs of a user who may be removed. Fails if one is live, or if nobody can tell.
fn looked_at(ctx: &Ctx, name: &UserName) -> Result<Snapshot, Error> {
    let look =
        outlook::look(ctx, &mut snapshot::LookMemory::default(), &Whose::of([name.clone()]))?;
    let alive = look.jobs.iter().find(|job| {
        job.shown.status.is_live() || job.shown.unknown.is_some() && job.stored.is_live()
    });
    if let Some(job) = alive {
        return Err(Error::refused(format!("{} is {}", job.id, job.shown.status))
            .hint(format!("tpu kill --all {name}")));
    }
    if matches!(ctx.tmux.look(), TmuxFact::Unknown { .. }) {
        return Err(Error::unreachable("tmux cannot be asked whether jobs are alive")
            .hint("nothing was changed; try again"));
    }
    Ok(look)
}

/// Removes a user who has no live jobs. The records are archived; the tmux session stays.
pub fn delete(ctx: &Ctx, name: &UserName) -> Result<usize, Error> {
    let look = looked_at(ctx, name)?;
    let jobs = ctx.transact(|tx| {
        let jobs: Vec<JobId> = user_of(&tx.data, name)?.jobs().iter().map(Job::id).collect();
        after::forget_met_in(tx);
        for id in &jobs {
            if !look.jobs.iter().any(|view| view.id == *id) {
                return Err(Error::refused(format!("{id} was started meanwhile"))
                    .hint("kill it first: tpu kill --all"));
            }
            tx.archive(id);
        }
        tx.data.remove_user(name);
        tx.edited(Some(name), format!("user {name} is removed"));
        Ok(jobs)
    })?;
    environment::discard(ctx, &jobs);
    Ok(jobs.len())
}
