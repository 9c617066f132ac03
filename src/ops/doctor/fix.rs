//! `doctor --fix`: recovery, as MONITOR does it in each turn, and what only a document can have wrong.
//!
//! Nothing is dropped: records go to the archive, copies of code aside, and each change of the document
//! keeps the version before it as a backup. What needs a person's judgement stays and is told.

use super::left::{self, Archive, Intent};
use super::{board, restore};
use crate::model::audit;
use crate::model::board::Entry;
use crate::model::data::Data;
use crate::model::facts::TmuxFact;
use crate::model::ids::JobId;
use crate::model::job::{CLEANING, KILLING};
use crate::ops::board::line;
use crate::ops::launch::heal;
use crate::ops::processes::Unreached;
use crate::ops::snapshot::{self, Memory};
use crate::ops::{Ctx, Error, kill, record_facts, records, watch};
use crate::store::StoreError;

/// Sets right what needs no judgement. Says what it did.
///
/// In a rehearsal only the document is looked at, and nothing is changed.
pub fn fix(ctx: &Ctx) -> Result<Vec<String>, Error> {
    let mut done = Vec::new();
    if let Err(StoreError::Unreadable { .. }) = ctx.store.read() {
        if ctx.store.is_rehearsing() {
            done.push("the newest good backup would be put back".to_owned());
            return Ok(done);
        }
        let backup = restore(ctx, 1)?;
        done.push(format!("put {} back; what could not be read is a backup now", backup.display()));
    }
    let before = ctx.data()?;
    if !ctx.store.is_rehearsing() {
        // First of all: who died while a window was opening is told apart by what is still written down.
        heal::heal(ctx)?;
    }
    document(ctx, &mut done)?;
    if ctx.store.is_rehearsing() {
        return Ok(done);
    }
    complete_kills(ctx, &mut done)?;
    let mut survey = snapshot::survey(ctx, &mut Memory::default(), snapshot::ANSWER_SERVES)?;
    if record_facts::record_facts(ctx, &survey)? > 0 {
        survey = snapshot::survey(ctx, &mut Memory::default(), snapshot::ANSWER_SERVES)?;
    }
    settled(&before, &survey.data, &mut done);
    let tmux = ctx.tmux.look();
    if let TmuxFact::Up { place, .. } = &tmux {
        for window in left::windows(&tmux, &survey.snapshot).iter().filter(|w| w.has_ended) {
            for pane in &window.panes {
                ctx.tmux.close_window(pane, place.server_pid)?;
            }
            done.push(format!("closed it, all in it has ended: {}", window.what));
        }
    }
    for copy in left::copies(ctx, &survey.data, &Archive::of(ctx)) {
        left::put_aside(&copy).map_err(|e| {
            Error::state(format!("cannot put {} aside: {e}", copy.path.display()))
                .hint("check the rights there, or remove it by hand")
        })?;
        done.push(format!("put {} aside as {}", copy.path.display(), copy.aside.display()));
    }
    Ok(done)
}

/// What is wrong in the document, in one change of it.
fn document(ctx: &Ctx, done: &mut Vec<String>) -> Result<(), Error> {
    let archive = Archive::of(ctx);
    let has_monitor = watch::running(ctx).is_some();
    ctx.transact(|tx| {
        let mended = audit::mend(&mut tx.data, &|id| archive.has(id));
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
        for (id, what) in abandoned(ctx, &tx.data, has_monitor) {
            let Some(job) = tx.data.job_mut(&id) else { continue };
            match what {
                Abandoned::Lease => {
                    if let Some(lease) = job.lease.as_mut() {
                        lease.free();
                    }
                    done.push(format!("freed the lease of {id}: its owner is dead"));
                }
                Abandoned::Intent(action) => {
                    job.intent = None;
                    let text =
                        format!("{action} was begun by a process that is dead: not begun now");
                    done.push(format!("{id}: {text}"));
                    records::note(tx, &id, "mended", text);
                }
            }
        }
        let ghosts = board::ghosts(ctx, &tx.data);
        if ghosts > 0 {
            tx.data.waiting_mut().retain(|ticket| !line::is_ghost(ctx, ticket));
            done.push(format!("cleared {ghosts} dead places from the line"));
        }
        for name in board::strangers(&tx.data) {
            tx.data.board_mut().set(&name, Entry::default());
            done.push(format!("forgot the notes about {name}"));
        }
        Ok(())
    })
}

/// What a dead process holds of a record.
enum Abandoned {
    Lease,
    /// An action that a MONITOR would carry on, by its name.
    Intent(String),
}

/// What dead processes hold, and nobody else takes up. A kill is completed and a clearing away is taken back
/// elsewhere; everything else MONITOR carries on, if there is one, and else begins anew.
fn abandoned(ctx: &Ctx, data: &Data, has_monitor: bool) -> Vec<(JobId, Abandoned)> {
    let mut found = Vec::new();
    for job in data.jobs() {
        if left::has_stale_lease(ctx, job) {
            found.push((job.id(), Abandoned::Lease));
        }
        if let Some(intent) = &job.intent
            && ![KILLING, CLEANING].contains(&intent.action.as_str())
            && !has_monitor
            && left::intent(ctx, job) == Intent::Abandoned
        {
            found.push((job.id(), Abandoned::Intent(intent.action.clone())));
        }
    }
    found
}

/// Kills that somebody began who is dead.
fn complete_kills(ctx: &Ctx, done: &mut Vec<String>) -> Result<(), Error> {
    let data = ctx.data()?;
    let is_left = |job: &&crate::model::job::Job| {
        job.is_being_killed() && left::intent(ctx, job) == Intent::Abandoned
    };
    for job in data.jobs().filter(is_left) {
        let id = job.id();
        match kill::kill_one(ctx, &id, Unreached::Refuse) {
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
