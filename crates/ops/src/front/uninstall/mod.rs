//! `uninstall`: what tpu has put outside its data, and its removal. Jobs that are at work go on and keep their exit codes, for
//! what their ends are written to stays; so does all that jobs wrote.
//!
//! [`find`] lists, [`remove`] removes what was listed. Whoever does not answer is named and holds up nobody: the same
//! command again finishes it.

mod clusters;
mod workers;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;

use tpu_core::model::data::Data;
use tpu_core::model::ids::{TargetName, UserName};
use tpu_core::model::job::Job;
use tpu_core::model::token::Token;
use tpu_core::model::words::words;
use tpu_core::text::counted;
use tpu_system::store::{AttemptId, StoreError};
use tpu_system::sys::procs::{self, Process, Signal};

use super::daemon_unit::{self, Unit};
use super::tokens;
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
    Unit(Unit),
    Daemon,
    Server(Process),
    Files(TargetName, BTreeSet<String>),
    Objects(Vec<Job>),
    Tokens(Vec<String>),
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
    let needed = data.as_ref().and_then(|data| needed_by_others(data, users));
    on_this_machine(ctx, needed.as_deref(), &mut found);
    if let Some(data) = &data {
        let records = Records::of(ctx, data, users)?;
        workers::find(ctx, data, &records, &mut found);
        clusters::find(ctx, data, &records, &mut found);
        jobs_that_run(&records, &mut found);
        found_tokens(ctx, (data, users), &mut found);
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

/// Why the daemon and what belongs to it stay: others than these users have jobs that may be at work, or that wait.
fn needed_by_others(data: &Data, users: &[UserName]) -> Option<String> {
    let at_work = data.jobs().filter(|job| job.status.is_live() || may_be_at_work(job));
    let at_work = at_work.map(|job| (&job.user, job.id(), "may be at work"));
    let waiting = data.queues().entries.iter();
    let waiting = waiting.map(|entry| (&entry.user, entry.id(), "waits"));
    let mut all = at_work.chain(waiting);
    let (_, id, how) = all.find(|(user, ..)| !users.contains(user))?;
    Some(format!("{id}, a job of somebody else, {how}"))
}

/// The records of what is over of some users, and of what may be at work of everybody.
struct Records {
    over: Vec<Job>,
    at_work: Vec<Job>,
}

impl Records {
    fn of(ctx: &Ctx, data: &Data, users: &[UserName]) -> Result<Self, Error> {
        let is_theirs = |job: &Job| users.contains(&job.user);
        let is_over = |job: &Job| !job.status.is_live() && !may_be_at_work(job);
        let (mut over, at_work): (Vec<Job>, Vec<Job>) = data.jobs().cloned().partition(is_over);
        over.retain(is_theirs);
        let there: HashSet<AttemptId> = data.jobs().map(AttemptId::of).collect();
        for archived in ctx.store.archived_beside(there, |archived| archived.job) {
            over.extend(Some(archived?).filter(is_theirs));
        }
        Ok(Self { over, at_work })
    }
}

fn on_this_machine(ctx: &Ctx, needed: Option<&str>, found: &mut Leftovers) {
    let stays = |what: &str| needed.map(|why| format!("{what}, since {why}"));
    match daemon_unit::installed(ctx) {
        Ok(units) => {
            for unit in units {
                let place =
                    unit.file().map_or("the crontab".to_owned(), |f| f.display().to_string());
                let what = match unit.file() {
                    Some(_) => "the systemd unit of the daemon".to_owned(),
                    None => unit.text().to_owned(),
                };
                let data = ctx.store.paths().data();
                if !unit.starts_daemon_of(data) {
                    let data = data.display();
                    found.stays.push(format!(
                        "{place}: {what}: it starts the daemon of another data file than {data}"
                    ));
                } else if let Some(line) = stays(&format!("{place}: {what}")) {
                    found.stays.push(line);
                } else {
                    found.add(LeftoverKind::Unit, (place, what), Removal::Unit(unit));
                }
            }
        }
        Err(error) if error.kind == Kind::NotFound => {}
        Err(error) => found.is_silent("the crontab", error.message),
    }
    if let Some(note) = watch::running(ctx) {
        let place = format!("process {}", note.pid);
        let what = "the daemon: nothing is restarted or started automatically any more".to_owned();
        match stays(&format!("the daemon ({place})")) {
            Some(line) => found.stays.push(line),
            None => found.add(LeftoverKind::Daemon, (place, what), Removal::Daemon),
        }
    }
    for note in another_tpu::servers(ctx) {
        let what = format!("the server on {}", note.address);
        let place = format!("process {}", note.pid);
        let Some(process) = note.process() else { continue };
        match stays(&format!("{what} ({place})")) {
            Some(line) => found.stays.push(line),
            None => found.add(LeftoverKind::Server, (place, what), Removal::Server(process)),
        }
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

/// Those whose rights are about nobody else than these users; all of them where there is nobody else.
fn found_tokens(ctx: &Ctx, (data, users): (&Data, &[UserName]), found: &mut Leftovers) {
    let tokens = match tokens::list(ctx) {
        Ok(tokens) => tokens,
        Err(error) => return found.stays.push(format!("tokens: {}", error.message)),
    };
    let are_all = data.users().iter().all(|user| users.contains(&user.name));
    let is_theirs = |token: &Token| {
        let of = &token.rights.users;
        are_all || !of.is_empty() && of.iter().all(|user| users.contains(user))
    };
    let (theirs, others): (Vec<Token>, Vec<Token>) = tokens.into_iter().partition(is_theirs);
    if !theirs.is_empty() {
        let place = ctx.store.paths().tokens(ctx.env.uid).display().to_string();
        let what = counted(theirs.len(), "token");
        let hashes = theirs.into_iter().map(|token| token.hash).collect();
        found.add(LeftoverKind::Tokens, (place, what), Removal::Tokens(hashes));
    }
    if !others.is_empty() {
        let names: Vec<&str> = others.iter().map(|token| token.name.as_str()).collect();
        let (count, names) = (counted(others.len(), "token"), names.join(", "));
        found.stays.push(format!(
            "{count} not of this user alone: {names} (tpu token revoke NAME takes one back)"
        ));
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
pub fn remove(ctx: &Ctx, found: Vec<Leftover>) -> Uninstalled {
    let mut removed = Uninstalled::default();
    let with_files = |item: &Leftover| {
        let Removal::Files(target, tokens) = &item.removal else { return None };
        Some((target.clone(), tokens.clone()))
    };
    let asked: BTreeMap<TargetName, BTreeSet<String>> =
        found.iter().filter_map(with_files).collect();
    let mut on_workers: Option<BTreeMap<TargetName, Result<(), Error>>> = None;
    for item in found {
        let done = match with_files(&item) {
            Some((target, _)) => {
                let all = on_workers.get_or_insert_with(|| workers::remove(ctx, &asked));
                all.remove(&target).unwrap_or_else(|| Err(workers::late()))
            }
            None => remove_one(ctx, &item),
        };
        match done {
            Ok(()) => removed.gone.push(item),
            Err(error) => removed.failed.push((item, error)),
        }
    }
    removed
}

fn remove_one(ctx: &Ctx, item: &Leftover) -> Result<(), Error> {
    match &item.removal {
        Removal::Unit(unit) => daemon_unit::take_away(ctx, unit),
        Removal::Daemon => match service::stop(ctx) {
            Err(error) if error.kind == Kind::Refused && watch::running(ctx).is_none() => Ok(()),
            done => done.map(drop),
        },
        Removal::Server(process) => end_server(process),
        // They are removed on all targets at once.
        Removal::Files(..) => Ok(()),
        Removal::Objects(jobs) => clusters::remove(ctx, jobs),
        Removal::Tokens(hashes) => tokens::remove(ctx, hashes),
        Removal::Completions(path) => ctx.store.disk().remove(path).map_err(|e| {
            Error::state(format!("cannot remove {}: {e}", path.display()))
                .hint("check the rights there")
        }),
    }
}

fn end_server(process: &Process) -> Result<(), Error> {
    procs::signal(process, Signal::Terminate).map(drop).map_err(|e| {
        Error::refused(format!("cannot end process {}: {e}", process.pid))
            .hint("end it where it runs, with Ctrl-C")
    })
}
