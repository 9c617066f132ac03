//! `doctor --fix`: recovery, as the daemon does it in each turn, and what only a document can have wrong.
//!
//! Nothing is dropped: records go to the archive, copies of code aside, and each change of the document
//! keeps the version before it as a backup. What needs a person's judgement stays and is told.

use super::board;
use super::left::{self, Begun};
use crate::act::{kill, orphan_windows, outlook, reconcile, record_facts};
use crate::base::{lease, records};
use crate::front::{clean, share};
use crate::observe::orphans::{self, Unmarked, Which};
use crate::observe::snapshot::{self, LookMemory};
use crate::waiting::queue::presence;
use crate::{Ctx, Error};
use tpu_core::model::audit;
use tpu_core::model::board::Entry;
use tpu_core::model::data::{Data, ReadError};
use tpu_core::model::facts::TmuxFact;
use tpu_core::model::ids::JobId;
use tpu_core::model::job::Job;
use tpu_core::text::counted;
use tpu_system::store::StoreError;

/// Sets right what needs no judgement. Says what it did; what could not be done is a warning, and stays.
///
/// In a dry run only the document is looked at, and nothing is changed.
pub fn fix(ctx: &Ctx) -> Result<Vec<String>, Error> {
    let mut done = Vec::new();
    if let Err(StoreError::Unreadable { reason: ReadError::Syntax { .. }, .. }) = ctx.store.read() {
        if ctx.store.is_dry_run() {
            done.push("the newest good backup would be put back".to_owned());
            return Ok(done);
        }
        put_back(ctx, &mut done)?;
    }
    let before = ctx.data()?;
    if !ctx.store.is_dry_run() {
        let shared = share::mend(ctx);
        if shared > 0 {
            done.push(format!("the rights of {} that all share", counted(shared, "file")));
        }
        // First of all: who died while a window was opening is told apart by what is still written down.
        reconcile::reconcile(ctx)?;
    }
    document(ctx, &mut done)?;
    if ctx.store.is_dry_run() {
        done.extend(audit::dead_ends(&before).iter().map(nothing_goes_on));
        return Ok(done);
    }
    complete_kills(ctx, &mut done)?;
    let survey = outlook::survey(ctx, &mut LookMemory::default(), snapshot::ANSWER_SERVES)?;
    record_facts::record_facts(ctx, &survey)?;
    settled(&before, &*ctx.data()?, &mut done);
    for user in ctx.data()?.users() {
        each(
            ctx,
            "archive what nothing continues",
            clean::archive_dead_ends(ctx, &user.name),
            |cleaned| {
                let archived = cleaned.archived.iter();
                done.extend(archived.map(|id| format!("archived {id}: nothing continues it")));
            },
        );
        if matches!(ctx.tmux.look(), TmuxFact::Up { .. }) {
            let closed = orphan_windows::close(ctx, &user.name, Which::Ended, &Unmarked::default());
            each(ctx, "close ended windows", closed, |windows| {
                let closed = windows.closed.iter().map(orphans::Closing::in_words);
                done.extend(closed.map(|what| format!("closed {what}: its job had ended")));
            });
        }
    }
    for copy in left::copies(ctx)? {
        let (from, to) = (copy.path.display(), copy.aside.display());
        match left::put_aside(&copy) {
            Ok(()) => done.push(format!("put {from} aside as {to}")),
            Err(error) => ctx.warn([format!("{from} could not be put aside as {to}: {error}")]),
        }
    }
    Ok(done)
}

fn nothing_goes_on(id: &JobId) -> String {
    format!("archived {id}: nothing continues it")
}

/// Tells of what was done, or warns that it was not.
fn each<T>(ctx: &Ctx, what: &str, result: Result<T, Error>, tell: impl FnOnce(T)) {
    match result {
        Ok(value) => tell(value),
        Err(error) => ctx.warn([format!("could not {what}: {error}")]),
    }
}

/// Replaces a file that is no JSON by its newest good backup, if it still is none under the lock.
fn put_back(ctx: &Ctx, done: &mut Vec<String>) -> Result<(), Error> {
    let Some(backup) = ctx.store.newest_good_backup() else { return Ok(()) };
    let Some(warnings) = ctx.store.restore_unreadable(&backup)? else { return Ok(()) };
    ctx.warn(warnings);
    done.push(format!("put {} back; what could not be read is a backup now", backup.display()));
    Ok(())
}

/// What is wrong in the document, in one change of it.
fn document(ctx: &Ctx, done: &mut Vec<String>) -> Result<(), Error> {
    // The archive is read before the lock is taken.
    let lost = left::lost_fathers(ctx, &*ctx.data()?);
    ctx.transact(|tx| {
        let mended = audit::mend(&mut tx.data, &|id| lost.contains(id));
        for flaw in &mended.flaws {
            done.push(flaw.outcome());
            match flaw.job() {
                Some(id) => records::note(tx, id, "mended", flaw.outcome()),
                None => tx.edited(None, flaw.outcome()),
            }
        }
        for job in mended.archived {
            records::note(tx, &job.id(), "archived", job.status.to_string());
            tx.archive_removed(job);
        }
        let held = tx.data.jobs().filter(|job| left::has_stale_lease(ctx, job)).map(Job::id);
        for id in held.collect::<Vec<_>>() {
            if let Some(job) = tx.data.job_mut(&id) {
                lease::free(job);
                done.push(format!("freed the lease of {id}: its owner is dead"));
            }
        }
        let ghosts = board::ghosts(ctx, &tx.data);
        if ghosts > 0 {
            tx.data.queues_mut().entries.retain(|entry| !presence::is_ghost(ctx, entry));
            done.push(format!("cleared {ghosts} dead places from the queue"));
        }
        for name in board::strangers(&tx.data) {
            tx.data.board_mut().set(&name, Entry::default());
            done.push(format!("forgot the notes about {name}"));
        }
        Ok(())
    })
}

/// Kills that somebody began who is dead.
fn complete_kills(ctx: &Ctx, done: &mut Vec<String>) -> Result<(), Error> {
    let data = ctx.data()?;
    let is_left = |job: &&Job| job.is_being_killed() && left::intent(ctx, job) == Begun::Abandoned;
    let left: Vec<JobId> = data.jobs().filter(is_left).map(Job::id).collect();
    for (id, result) in kill::kill(ctx, &left, false) {
        match result {
            Ok(_) => done.push(format!("completed the kill of {id}")),
            // It stays as it is, and is told with what to do.
            Err(error) => ctx.warn([format!("{id} could not be killed: {error}")]),
        }
    }
    Ok(())
}

/// What became of records in passing.
fn settled(before: &Data, after: &Data, done: &mut Vec<String>) {
    for job in after.jobs() {
        let was = before.job(&job.id()).map(|job| &job.status);
        if was.is_some_and(|was| *was != job.status) {
            done.push(format!("settled {}: it is {}", job.id(), job.status));
        }
    }
}
