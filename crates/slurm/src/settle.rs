//! Whether what was submitted is there: the one place where it is concluded that a launch never reached Slurm.
//!
//! That counts only when no `sbatch` of ours can be at work any more, no message of it can be on its way, and every
//! list of Slurm's has been asked since and has not got it. A question that fails says nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tpu_core::model::job::Job;
use tpu_core::model::time::Timestamp;

use super::absent::Inquiry;
use super::ask::TimeLeft;
use super::controller::Controller;
use super::ended::{self, Afterwards};
use super::job_id::JobRef;
use super::listing::JobTable;
use super::log;
use super::note::SubmissionNote;

/// What is known of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// Slurm has it, under this number.
    There(u64),
    /// Slurm had it: it has ended.
    Over,
    /// Slurm has never had it, and will not get it.
    Absent,
    /// Slurm has not got it, and will not get it. It may have had it, and forgotten it since.
    Forgotten,
    /// It is not there, and may be on its way until then.
    OnItsWay(Timestamp),
    /// That cannot be told.
    Unknown(String),
}

/// Looks for a submission by its name.
pub(super) fn presence(
    controller: &Controller<'_>,
    job: &Job,
    note: &SubmissionNote,
    budget: TimeLeft<'_>,
) -> Presence {
    let known = JobRef::of(job);
    // In this order: what arrives until then is in an answer that is asked for afterwards.
    let asked_at = controller.effects.clock.now();
    match controller.table(Some(&known), budget.left()) {
        Ok(table) => {
            if let Some(base) = table.base(&known) {
                return Presence::There(base);
            }
        }
        Err(why) => return Presence::Unknown(why),
    }
    absence(controller, job, note, (asked_at, budget))
}

/// What it says that a listing, which was asked for at that time, has not got a submission.
pub(super) fn absence(
    controller: &Controller<'_>,
    job: &Job,
    note: &SubmissionNote,
    (asked_at, budget): (Timestamp, TimeLeft<'_>),
) -> Presence {
    if controller.other_account().is_some() {
        return Presence::Unknown("it is a job of another account, which may be hidden".to_owned());
    }
    let settled = note.settled_at();
    if note.is_at_work(controller.effects) || asked_at < settled {
        return Presence::OnItsWay(settled);
    }
    let begun = asked_at.plus_seconds(-7 * 24 * 3600);
    match ended::ask(controller, &[JobRef::of(job)], begun, budget).pop() {
        Some(Afterwards::Ended(_)) => return Presence::Over,
        Some(Afterwards::Odd(word)) => {
            return Presence::Unknown(format!(
                "its accounting says {word}, and the controller does not know it"
            ));
        }
        Some(Afterwards::Unanswered(why)) => return Presence::Unknown(why),
        Some(Afterwards::Nothing) | None => {}
    }
    // A listing may be older than the submission.
    match Inquiry::new(controller, budget).find(&JobRef::of(job)) {
        Ok(Some(row)) => return Presence::There(row.base),
        Ok(None) => {}
        Err(why) => return Presence::Unknown(why),
    }
    match memory(controller, &note.controller, budget.left()) {
        Ok(memory @ (Memory::Whole | Memory::StartedAnew)) => match has_begun(controller, job) {
            Ok(false) if memory == Memory::Whole && is_remembered(controller, note, asked_at) => {
                Presence::Absent
            }
            Ok(_) => Presence::Forgotten,
            Err(why) => Presence::Unknown(why),
        },
        Ok(Memory::Empty) => Presence::Unknown(
            "the controller was restarted and lists no job: its jobs may be lost".to_owned(),
        ),
        Err(why) => Presence::Unknown(why),
    }
}

/// What the memory of a controller says of a job of the time when it had been started at `boot`, and that it does not list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// It has been up since then.
    Whole,
    /// It was started anew, and lists others: it may have been set back to an older state.
    StartedAnew,
    /// It was started anew, and lists nothing at all: what it had may be lost.
    Empty,
}

/// What is known of it, for each start of the controller that somebody has noted: it is asked once about each.
pub(super) struct Memories<'c> {
    controller: &'c Controller<'c>,
    budget: TimeLeft<'c>,
    known: BTreeMap<String, Result<Memory, String>>,
}

impl<'c> Memories<'c> {
    pub(super) fn new(controller: &'c Controller<'c>, budget: TimeLeft<'c>) -> Self {
        Self { controller, budget, known: BTreeMap::new() }
    }

    pub(super) fn of(&mut self, boot: &str) -> Result<Memory, String> {
        if let Some(known) = self.known.get(boot) {
            return known.clone();
        }
        let memory = memory(self.controller, boot, self.budget.left());
        self.known.insert(boot.to_owned(), memory.clone());
        memory
    }
}

fn memory(controller: &Controller<'_>, boot: &str, limit: Duration) -> Result<Memory, String> {
    if controller.config(limit)?.boot == boot {
        return Ok(Memory::Whole);
    }
    Ok(if controller.lists_any(limit)? { Memory::StartedAnew } else { Memory::Empty })
}

/// Whether a job that Slurm had would be in one of its lists: its memory reaches back to the submission, or it keeps
/// accounts.
fn is_remembered(controller: &Controller<'_>, note: &SubmissionNote, asked_at: Timestamp) -> bool {
    let keeps_accounts = controller.heard.has_accounting(&controller.cluster);
    keeps_accounts || asked_at < note.remembered_until()
}

/// What lies in the log directory of a launch that was given up: its batch script looks for it, and runs nothing then.
/// Whoever stood still between his last look at the record and `sbatch` submits what was given up meanwhile.
pub(super) const GIVEN_UP: &str = "slurm-given-up";

/// Marks a launch as given up, where its nodes see it. What is submitted from now on runs nothing; whether it was
/// submitted before is to be asked afterwards.
pub(super) fn mark_given_up(controller: &Controller<'_>, job: &Job) -> Result<(), String> {
    let Some(dir) = &job.log_dir else { return Ok(()) };
    let mark = Path::new(dir).join(GIVEN_UP);
    let made = controller.client.disk().make_dir(&mark);
    made.map_err(|e| format!("it cannot be given up: {}: {e}", mark.display()))
}

/// Whether a job has begun, by its own log.
pub(super) fn has_begun(controller: &Controller<'_>, job: &Job) -> Result<bool, String> {
    let Some(log) = log::path(job) else { return Ok(false) };
    let read = controller.client.disk().read(&log, 0, 1);
    let begun = read.map_err(|e| format!("{} cannot be read: {e}", log.display()))?;
    Ok(begun.is_some())
}

/// Whether a task of an array of which there are others has never begun: those that are cancelled before they do are
/// listed no more, and have written nothing.
pub(super) fn has_never_begun(
    controller: &Controller<'_>,
    job: &Job,
    known: &JobRef,
    table: &JobTable,
) -> bool {
    let is_task = known.task.is_some() && table.base(known).is_some();
    is_task && has_begun(controller, job) == Ok(false)
}
