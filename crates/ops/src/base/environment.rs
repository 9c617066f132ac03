//! The environment of whoever asks for a job: what of it goes into the job, where that lies, and who may read it.
//!
//! ```text
//! a shell ── [asked] ── `run` ─────────────────────────────── the job's own directory ── its successors
//!                  └─── `submit` ── [lay_by] ── [of_entry] ──┘
//! ```
//! Values lie in files of mode 0600 and nowhere else: an entry of the queue names the directory that holds them.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use tpu_core::model::data::Data;
use tpu_core::model::entry::{self, QueueEntry};
use tpu_core::model::ids::JobId;
use tpu_core::model::job::{Job, LaunchMode};
use tpu_core::model::variables::{self, Secrets};
use tpu_engine::runner::environment::{self, Environment, Shell, Variables};
use tpu_system::store::disk::OsDisk;
use tpu_system::sys::accounts;
use tpu_system::sys::env::Env;

use super::conda;
use crate::{Ctx, Error, Kind};

/// Tells a command where it was typed.
pub(crate) const SUBMIT_DIR: &str = "TPU_SUBMIT_DIR";

/// How a job is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedEnvironment {
    /// What of a shell it has, where it is typed in one.
    pub shell: OfShell,
    /// What is handed on by name.
    pub given: Secrets,
    /// The directory in which it is typed.
    pub typed_in: Option<PathBuf>,
}

/// What a job has of the shell in which it is typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OfShell {
    /// Nothing but what every job keeps.
    #[default]
    Programs,
    /// All that it exports, and nothing else.
    All,
    /// All that it exports, over what its window has.
    Over,
}

impl OfShell {
    /// What a job has that is typed in a shell: its command sees what it would see there; a script of the user's what it
    /// always has, and that.
    pub fn of_mode(mode: LaunchMode) -> Self {
        match mode {
            LaunchMode::Native => Self::All,
            LaunchMode::Script => Self::Over,
        }
    }
}

/// The environment of a successor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhichEnvironment {
    /// That with which its lineage was asked for.
    #[default]
    Kept,
    /// That of whoever asks for it now.
    OfNow,
    /// What every job keeps, and nothing that a shell exported.
    Clean,
}

/// What of this environment a job is given that is asked for now.
pub fn asked(ctx: &Ctx, wanted: &WantedEnvironment) -> Environment {
    let shell = |is_all| Some(Shell { exported: exported(ctx), is_all });
    let mut kept = kept(ctx);
    kept.retain(|(name, _)| name != SUBMIT_DIR);
    if let Some(dir) = &wanted.typed_in {
        kept.push((SUBMIT_DIR.into(), dir.into()));
    }
    Environment {
        kept,
        given: wanted.given.clone(),
        shell: match wanted.shell {
            OfShell::Programs => None,
            OfShell::All => shell(true),
            OfShell::Over => shell(false),
        },
    }
}

/// What every job keeps, for itself and its successors: the search path, the Python environment, and what `tpu` itself
/// reads. Nothing that looks like a secret.
pub(crate) fn kept(ctx: &Ctx) -> Variables {
    of_this(ctx, variables::is_kept)
}

/// What this process has of the shell from which it was called, for a command that is typed there. A job that submits
/// another one does not share its run with that.
fn exported(ctx: &Ctx) -> Secrets {
    let is_in_job = ctx.env.var_os("TPU_JOB").is_some();
    let is_its_own = |name: &str| is_in_job && variables::TRACKED_RUN.contains(&name);
    Secrets(of_this(ctx, |name| variables::is_handed_on(name) && !is_its_own(name)))
}

fn of_this(ctx: &Ctx, is_meant: impl Fn(&str) -> bool) -> Variables {
    let meant = ctx.env.vars.iter().filter(|(name, _)| name.to_str().is_some_and(&is_meant));
    meant.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// What an attempt was given, for its successors. None where nothing is kept of it any more.
pub(crate) fn stored(ctx: &Ctx, id: &JobId) -> Result<Option<Environment>, Error> {
    environment::for_successors(ctx, id).map_err(|e| {
        let data = ctx.data().ok();
        let place = data.as_ref().and_then(|data| data.job(id)?.place.as_ref());
        let uid = place.map(|place| place.uid);
        unreadable(ctx, (ctx.store.paths().job(id), uid), &id.to_string(), &e)
    })
}

/// The environment with which an attempt is succeeded. If nothing is stored, it gets what every job has.
pub(crate) fn of_successor(
    ctx: &Ctx,
    job: &Job,
    (which, mode): (WhichEnvironment, LaunchMode),
) -> Result<Environment, Error> {
    let before = match stored(ctx, &job.id()) {
        // Another account's values cannot be read: those that are exported here are used.
        Err(error) if which == WhichEnvironment::OfNow && error.kind == Kind::Refused => None,
        before => before?,
    };
    if which == WhichEnvironment::Kept {
        if before.is_none() && job.launch.is_some() {
            ctx.warn([format!(
                "the environment of {} is not stored: it continues without the variables of a shell",
                job.id()
            )]);
        }
        return Ok(before.unwrap_or_else(|| asked(ctx, &WantedEnvironment::default())));
    }
    let Environment { kept, given, .. } = before.unwrap_or_default();
    let typed_in = kept.into_iter().find(|(name, _)| name == SUBMIT_DIR);
    let typed_in = typed_in.map(|(_, dir)| PathBuf::from(dir));
    let now = |(name, then): (OsString, OsString)| {
        let now = name.to_str().and_then(|name| ctx.env.var_os(name)).map(OsStr::to_owned);
        (name, now.unwrap_or(then))
    };
    let wanted = match which {
        WhichEnvironment::OfNow => WantedEnvironment {
            shell: OfShell::of_mode(mode),
            given: Secrets(given.0.into_iter().map(now).collect()),
            typed_in,
        },
        WhichEnvironment::Kept | WhichEnvironment::Clean => {
            WantedEnvironment { given, typed_in, ..WantedEnvironment::default() }
        }
    };
    Ok(asked(ctx, &wanted))
}

/// The names of the variables in which this environment differs from that in which a job was typed.
pub fn differing(ctx: &Ctx, job: &Job) -> Vec<String> {
    let Ok(Some(Environment { shell: Some(then), .. })) = stored(ctx, &job.id()) else {
        return Vec::new();
    };
    let now = exported(ctx);
    let is_other = |one: &Secrets, other: &Secrets| {
        let differs = |(name, value): &&(OsString, OsString)| {
            name.to_str().and_then(|name| other.get(name)) != Some(value)
        };
        let names = one.0.iter().filter(differs).map(|(name, _)| name.to_string_lossy().into());
        names.collect::<Vec<String>>()
    };
    let mut names = is_other(&now, &then.exported);
    names.extend(is_other(&then.exported, &now));
    names.sort_unstable();
    names.dedup();
    names
}

/// The variables of a command that was typed in a shell, by what lies beside its launcher; its secrets have `names`, each
/// ending in a comma.
pub fn of_command(
    env: &Env,
    state: &Path,
    (names, words): (&str, &[OsString]),
) -> Result<Variables, Error> {
    let gone = |why: String| {
        Error::state(format!("the variables of its shell cannot be read: {why}"))
            .hint("give it the current ones: tpu rerun --env-now")
    };
    let (of_launch, shell) = match environment::read(&OsDisk, state) {
        Ok(Some(Environment { kept, shell: Some(shell), .. })) => (kept, shell),
        Ok(_) => return Err(gone("they are gone".to_owned())),
        Err(e) => return Err(gone(e.to_string())),
    };
    let names: Vec<&str> = names.split_terminator(',').collect();
    let mut vars = environment::as_typed(env.vars.clone(), (&of_launch, &names), &shell);
    if shell.is_all {
        conda::add_functions(&mut vars, words, state);
    }
    Ok(vars)
}

/// Lays an environment by for what waits, and says where that is. Call it in the transaction that adds its first entry:
/// files that no entry names are removed.
pub(crate) fn lay_by(
    ctx: &Ctx,
    first: &QueueEntry,
    asked: &Environment,
) -> Result<entry::Environment, Error> {
    if ctx.store.is_dry_run() {
        return Ok(entry::Environment::default());
    }
    let (root, disk) = (ctx.store.environments_dir()?, ctx.store.disk());
    // A number may be given again while others still have the environment of its first entry.
    let names = (0..).map(|again: u32| format!("{}-{}-{again}", first.user, first.number));
    let mut dirs = names.map(|name| (root.join(&name), name));
    let (dir, name) = loop {
        let (dir, name) = dirs.next().expect("there is no end of numbers");
        let made = disk.make_dir(&dir, 0o700).map_err(|e| {
            Error::state(format!("cannot create {}: {e}", dir.display()))
                .hint("check free space and permissions there")
        })?;
        if made {
            break (dir, name);
        }
    };
    environment::keep(&**disk, &dir, (&asked.kept, asked))?;
    Ok(vec![OsString::from(name)].into())
}

/// The environment in which what waits was asked for. Earlier versions kept it in the entry itself.
pub(crate) fn of_entry(ctx: &Ctx, entry: &QueueEntry) -> Result<Environment, Error> {
    let Some(name) = laid_by_name(&entry.env) else {
        let words = entry.env.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat());
        let kept = environment::from_pairs(&words.collect::<Vec<u8>>());
        return Ok(Environment { kept, ..Environment::default() });
    };
    let dir = ctx.store.paths().environments().join(name);
    let id = entry.id();
    let read = environment::read(&**ctx.store.disk(), &dir);
    read.map_err(|e| unreadable(ctx, (dir, None), &id.to_string(), &e))?.ok_or_else(|| {
        Error::not_found(format!("the environment with which {id} was submitted is gone"))
            .hint("submit it again")
    })
}

/// What was given by name with what waits: what succeeds an attempt has that of its lineage.
pub(crate) fn given_to(ctx: &Ctx, entry: &QueueEntry) -> Result<Secrets, Error> {
    let Some(succeeds) = entry.succeeds else { return Ok(of_entry(ctx, entry)?.given) };
    let id = JobId::new(entry.user.clone(), succeeds.job);
    Ok(stored(ctx, &id)?.unwrap_or_default().given)
}

/// Takes away what was kept for the successors of attempts that are in the archive by now.
pub(crate) fn discard(ctx: &Ctx, archived: &[JobId]) {
    for id in archived.iter().filter(|_| !ctx.store.is_dry_run()) {
        environment::discard(&**ctx.store.disk(), &ctx.store.paths().job(id));
    }
}

/// Takes away what was laid by and nobody waits for any more.
pub(crate) fn clear_laid_by(ctx: &Ctx) {
    let (disk, dir) = (ctx.store.disk(), ctx.store.paths().environments());
    let all = disk.list(&dir).unwrap_or_default();
    let left = |data: &Data| {
        let waits = waited_for(data);
        all.iter().filter(|name| !waits.contains(*name)).cloned().collect::<Vec<String>>()
    };
    if all.is_empty()
        || ctx.store.is_dry_run()
        || ctx.data().is_ok_and(|data| left(&data).is_empty())
    {
        return;
    }
    // Who enters the queue lays his by in the transaction that names it. What cannot be taken away now is later.
    drop(ctx.transact(|tx| {
        for name in left(&tx.data) {
            drop(disk.remove_tree(&dir.join(name)));
        }
        Ok(())
    }));
}

/// The names of what entries have, and attempts that may go back into the queue.
fn waited_for(data: &Data) -> HashSet<String> {
    let goes_back = |job: &Job| QueueEntry::from_kept(&job.waited.as_ref()?.entry).ok();
    let entries = data.queues().entries.iter().filter_map(|entry| laid_by_name(&entry.env));
    entries
        .chain(data.jobs().filter_map(goes_back).filter_map(|it| laid_by_name(&it.env)))
        .collect()
}

/// The directory of what is laid by, of which an entry has the name alone: it has no `=` in it.
fn laid_by_name(env: &entry::Environment) -> Option<String> {
    let [name] = &**env else { return None };
    name.to_str().filter(|name| !name.contains('=')).map(str::to_owned)
}

/// Says whose it is that another account cannot read.
fn unreadable(ctx: &Ctx, (dir, uid): (PathBuf, Option<u32>), what: &str, e: &io::Error) -> Error {
    if e.kind() != ErrorKind::PermissionDenied {
        return Error::unreachable(format!("the environment of {what} cannot be read: {e}"))
            .hint(format!("it lies in {}", dir.display()));
    }
    let uid = uid.or_else(|| Some(ctx.store.disk().stat(&dir).ok()?.uid));
    let owner = uid.map_or_else(|| "another account".to_owned(), accounts::name);
    // Its own daemon can begin it.
    Error::refused(format!("the environment of {what} belongs to {owner}"))
        .passing()
        .hint(format!("ask {owner} to start it; with this environment: tpu rerun N --env-now"))
}
