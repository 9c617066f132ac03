//! `uninstall`: what tpu has put outside its data, and its removal. Jobs that are at work go on and keep their exit codes, for
//! what their ends are written to stays; so does all that jobs wrote.
//!
//! [`find`] lists, [`remove`] removes what was listed. Whoever does not answer is named and holds up nobody: the same
//! command again finishes it.

mod clusters;
mod workers;

use std::collections::HashSet;
use std::path::PathBuf;

use tpu_core::model::data::Data;
use tpu_core::model::ids::{TargetName, UserName};
use tpu_core::model::job::Job;
use tpu_core::model::words::words;
use tpu_core::text::counted;
use tpu_system::store::{AttemptId, StoreError};
use tpu_system::sys::procs::{self, Process, Signal};

use super::{daemon_unit, tokens};
use crate::act::{outlook, reconcile, record_facts, service};
use crate::base::another_tpu;
use crate::base::records::may_be_at_work;
use crate::base::watch;
use crate::observe::snapshot::{self, LookMemory};
use crate::{Ctx, Error, Kind};

/// What something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftoverKind {
    /// What has the daemon begin with this machine.
    Unit,
    /// The daemon.
    Daemon,
    /// A server.
    Server,
    /// Files on a worker of a target.
    Files,
    /// Objects in a cluster.
    Objects,
    /// The tokens of the API.
    Tokens,
    /// A file of completions for a shell.
    Completions,
}

words! {
    /// The word in JSON.
    LeftoverKind {
        Unit: "unit",
        Daemon: "daemon",
        Server: "server",
        Files: "files",
        Objects: "objects",
        Tokens: "tokens",
        Completions: "completions",
    }
}

/// Something that is to be removed.
#[derive(Clone, Debug)]
pub struct Leftover {
    /// What it is.
    pub kind: LeftoverKind,
    /// Where it is.
    pub place: String,
    /// What exactly.
    pub what: String,
    /// What removes it.
    removal: Removal,
}

#[derive(Clone, Debug)]
enum Removal {
    Unit,
    Daemon,
    Server(u32),
    Files(TargetName),
    Objects(Vec<Job>),
    Tokens,
    Completions(PathBuf),
}

/// Who does not answer, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silent {
    /// The target or the cluster.
    pub place: String,
    /// Why.
    pub why: String,
}

/// What there is.
#[derive(Debug, Default)]
pub struct Leftovers {
    /// What is to be removed, in the order of its removal.
    pub items: Vec<Leftover>,
    /// Who has not said what there is.
    pub silent: Vec<Silent>,
    /// What stays, a sentence each.
    pub stays: Vec<String>,
}

/// What became of it.
#[derive(Debug, Default)]
pub struct Uninstalled {
    /// What is gone.
    pub gone: Vec<Leftover>,
    /// What could not be removed, and why.
    pub failed: Vec<(Leftover, Error)>,
}

impl Uninstalled {
    /// The kind of what went wrong, what can be tried again first.
    pub fn trouble(&self) -> Option<Kind> {
        let kinds = || self.failed.iter().map(|(_, error)| error.kind);
        kinds().find(|kind| *kind == Kind::Unreachable).or(kinds().next())
    }
}

/// A file that may hold completions, and what it holds if tpu has printed it.
#[derive(Clone, Debug)]
pub struct CompletionFile {
    /// Where it would be.
    pub path: PathBuf,
    /// What this program prints for it.
    pub text: String,
}

/// Finds what there is of this account on this machine, and of these users elsewhere.
pub fn find(
    ctx: &Ctx,
    users: &[UserName],
    completions: &[CompletionFile],
) -> Result<Leftovers, Error> {
    let data = match ctx.store.read() {
        Ok(data) => Some(data),
        Err(StoreError::Missing { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let mut found = Leftovers::default();
    on_this_machine(ctx, &mut found);
    if let Some(data) = &data {
        let records = Records::of(ctx, data, users)?;
        workers::find(ctx, data, &records, &mut found);
        clusters::find(ctx, data, &records, &mut found);
        jobs_that_run(&records, &mut found);
        found_tokens(ctx, &mut found);
    }
    find_completions(ctx, completions, &mut found);
    Ok(found)
}

/// Writes down the ends that nobody has recorded yet: what a cluster says of them would go with its objects.
pub fn record_ends(ctx: &Ctx) {
    let recorded = ctx.data().and_then(|_| reconcile::reconcile(ctx)).and_then(|()| {
        let survey = outlook::survey(ctx, &mut LookMemory::default(), snapshot::ANSWER_SERVES)?;
        record_facts::record_facts(ctx, &survey)
    });
    if let Err(error) = recorded {
        ctx.warn([format!("not every end of a job is recorded: {}", error.message)]);
    }
}

/// The records of some users: of what is over, and of what may be at work.
struct Records {
    over: Vec<Job>,
    at_work: Vec<Job>,
}

impl Records {
    fn of(ctx: &Ctx, data: &Data, users: &[UserName]) -> Result<Self, Error> {
        let is_theirs = |job: &Job| users.contains(&job.user);
        let jobs = data.jobs().filter(|job| is_theirs(job)).cloned();
        let is_over = |job: &Job| !job.status.is_live() && !may_be_at_work(job);
        let (mut over, at_work): (Vec<Job>, Vec<Job>) = jobs.partition(is_over);
        let there: HashSet<AttemptId> = data.jobs().map(AttemptId::of).collect();
        for archived in ctx.store.archived_beside(there, |archived| archived.job) {
            over.extend(Some(archived?).filter(is_theirs));
        }
        Ok(Self { over, at_work })
    }
}

fn on_this_machine(ctx: &Ctx, found: &mut Leftovers) {
    match daemon_unit::installed(ctx) {
        Ok(units) => {
            for unit in units {
                let place =
                    unit.file().map_or("the crontab".to_owned(), |f| f.display().to_string());
                let what = match unit.file() {
                    Some(_) => "the systemd unit of the daemon".to_owned(),
                    None => unit.text().to_owned(),
                };
                found.add(LeftoverKind::Unit, (place, what), Removal::Unit);
            }
        }
        Err(error) if error.kind == Kind::NotFound => {}
        Err(error) => found.is_silent("the crontab", error.message),
    }
    if let Some(note) = watch::running(ctx) {
        let what = "the daemon: nothing is restarted or started automatically any more".to_owned();
        found.add(LeftoverKind::Daemon, (format!("process {}", note.pid), what), Removal::Daemon);
    }
    for note in another_tpu::servers(ctx) {
        let what = format!("the server on {}", note.address);
        let place = format!("process {}", note.pid);
        found.add(LeftoverKind::Server, (place, what), Removal::Server(note.pid));
    }
}

fn jobs_that_run(records: &Records, found: &mut Leftovers) {
    let ids: Vec<String> = records.at_work.iter().map(|job| job.id().to_string()).collect();
    if let Some(first) = ids.first() {
        let more =
            if ids.len() > 1 { format!(" and {} more", ids.len() - 1) } else { String::new() };
        found.stays.push(format!(
            "{first}{more} may be at work: nothing of it is touched, and its exit code is kept; `tpu uninstall` again, \
             once it is over, removes the rest"
        ));
    }
}

fn found_tokens(ctx: &Ctx, found: &mut Leftovers) {
    let path = ctx.store.paths().tokens(ctx.env.uid);
    match tokens::list(ctx) {
        Ok(tokens) if tokens.is_empty() => {}
        Ok(tokens) => {
            let what = counted(tokens.len(), "token");
            let place = path.display().to_string();
            found.add(LeftoverKind::Tokens, (place, what), Removal::Tokens);
        }
        Err(error) => found.stays.push(format!("tokens: {}", error.message)),
    }
}

fn find_completions(ctx: &Ctx, completions: &[CompletionFile], found: &mut Leftovers) {
    for CompletionFile { path, text } in completions {
        let Ok(read) = ctx.store.disk().read(path) else { continue };
        let place = path.display().to_string();
        if read.bytes.trim_ascii() == text.trim().as_bytes() {
            let what = "completions for a shell".to_owned();
            found.add(LeftoverKind::Completions, (place, what), Removal::Completions(path.clone()));
        } else {
            found.stays.push(format!(
                "{place} is not what this tpu prints; if it holds nothing of yours: rm {place}"
            ));
        }
    }
}

impl Leftovers {
    fn add(&mut self, kind: LeftoverKind, (place, what): (String, String), removal: Removal) {
        self.items.push(Leftover { kind, place, what, removal });
    }

    fn is_silent(&mut self, place: &str, why: impl Into<String>) {
        self.silent.push(Silent { place: place.to_owned(), why: why.into() });
    }
}

/// Removes what was found, each by itself.
pub fn remove(ctx: &Ctx, found: Vec<Leftover>, users: &[UserName]) -> Uninstalled {
    let mut removed = Uninstalled::default();
    for item in found {
        match remove_one(ctx, &item, users) {
            Ok(()) => removed.gone.push(item),
            Err(error) => removed.failed.push((item, error)),
        }
    }
    removed
}

fn remove_one(ctx: &Ctx, item: &Leftover, users: &[UserName]) -> Result<(), Error> {
    match &item.removal {
        // All of them go at once.
        Removal::Unit => match daemon_unit::uninstall(ctx) {
            Err(error) if error.kind == Kind::NotFound => Ok(()),
            done => done.map(drop),
        },
        Removal::Daemon => match service::stop(ctx) {
            Err(error) if error.kind == Kind::Refused && watch::running(ctx).is_none() => Ok(()),
            done => done.map(drop),
        },
        Removal::Server(pid) => end_server(*pid),
        Removal::Files(target) => workers::remove(ctx, target, users),
        Removal::Objects(jobs) => clusters::remove(ctx, jobs),
        Removal::Tokens => tokens::remove_all(ctx),
        Removal::Completions(path) => ctx.store.disk().remove(path).map_err(|e| {
            Error::state(format!("cannot remove {}: {e}", path.display()))
                .hint("check the rights there")
        }),
    }
}

fn end_server(pid: u32) -> Result<(), Error> {
    let Some(process) = Process::read(pid) else { return Ok(()) };
    procs::signal(&process, Signal::Terminate).map(drop).map_err(|e| {
        Error::refused(format!("cannot end process {pid}: {e}"))
            .hint("end it where it runs, with Ctrl-C")
    })
}
