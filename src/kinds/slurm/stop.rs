//! Stopping exactly one job: its number is cancelled only together with its name, and it is waited for until it is gone.

use std::time::Duration;

use crate::model::job::Job;
use crate::runner::{RunError, StopOrder, StopOutcome, StopPart};
use crate::sys::clock::Clock;

use super::array::Tasks;
use super::ask::{self, TimeLeft};
use super::client::ProgramCall;
use super::controller::Controller;
use super::job_id::{JobRef, SlurmId};
use super::listing::JobRow;
use super::note;
use super::reasons;
use super::settle::{self, Presence};
use super::states::{self, JobStage};

/// How long a job may take to end: Slurm gives its programs `KillWait`, 30 s, before it kills them.
const ENDING: Duration = Duration::from_secs(90);

/// When what is kept back may begin. A node takes nothing of a job that was issued in the very second in which the
/// job was ended there, or before: "Killing non-startable batch job: Job credential revoked" (22.05.8). That is what
/// Slurm's wait of `cred_expire`, two minutes, is about.
const SOON: &str = "now+2";

/// Stops a job. One that has ended is stopped as well as any.
pub(super) fn stop(
    controller: &Controller<'_>,
    job: &Job,
    order: StopOrder,
) -> Result<StopOutcome, RunError> {
    if order.part == StopPart::Here {
        return Ok(StopOutcome::default());
    }
    let known = JobRef::of(job);
    let Some(row) = row(controller, job, &known)? else { return Ok(StopOutcome::default()) };
    if states::stage(&row.state).is_over() {
        return Ok(StopOutcome::default());
    }
    refuse_others(controller)?;
    let id = id(&known, &row);
    cancel(controller, cancelling(&known, &row))?;
    // Nobody else's of this name is waited for.
    until_gone(controller, &JobRef { id: Some(id), ..known }, id)?;
    Ok(StopOutcome { processes: 1, window: false })
}

/// Whether it is not ours to stop.
pub(super) fn refuse_others(controller: &Controller<'_>) -> Result<(), RunError> {
    match controller.other_account() {
        None => Ok(()),
        Some(uid) => Err(RunError::refused(
            format!("it is a job of uid {uid} at Slurm"),
            "only that account, and whoever runs the cluster, can stop it",
        )),
    }
}

/// What is asked for of a job: all of it, or the one task.
pub(super) fn id(known: &JobRef, row: &JobRow) -> SlurmId {
    let task = known.task.filter(|_| row.tasks != Tasks::NoArray);
    SlurmId { base: row.base, task }
}

/// The row of a job; `None` where it is not there, for certain.
fn row(controller: &Controller<'_>, job: &Job, known: &JobRef) -> Result<Option<JobRow>, RunError> {
    let clock: &dyn Clock = &*controller.effects.clock;
    let asked_at = clock.now();
    let budget = TimeLeft::new(clock, ask::PATIENCE);
    let table = controller.table(Some(known), budget.left());
    let table = table.map_err(|why| controller.silent(&why))?;
    if let Some(row) = table.find(known) {
        return Ok(Some(row.clone()));
    }
    if job.launch.as_ref().is_none_or(|launch| launch.ended.is_some()) {
        return Ok(None);
    }
    let note = note::read(controller.effects, &known.name).map_err(|e| {
        controller.silent(&format!("the note of its submission cannot be read: {e}"))
    })?;
    match note {
        None => Ok(None),
        // It was there, and is not any more.
        Some(note) if known.id.is_some() || note.id.is_some() => {
            match settle::is_memory_whole(controller, &note.controller, budget.left()) {
                Ok(true) => Ok(None),
                Ok(false) => Err(controller.silent("it was started anew and lists no job at all")),
                Err(why) => Err(controller.silent(&why)),
            }
        }
        Some(note) => match settle::absence(controller, job, &note, (asked_at, budget)) {
            Presence::Absent | Presence::Over | Presence::Forgotten => Ok(None),
            Presence::There(_) | Presence::OnItsWay(_) => {
                Err(controller.silent("its submission may still be on its way"))
            }
            Presence::Unknown(why) => Err(controller.silent(&why)),
        },
    }
}

/// What `scancel` is told. With a name it compares that itself; but then it takes a task that has not begun, and what
/// has the number of the whole array, for all of the array: these are told by number and task alone, right after
/// the name was compared.
fn cancelling(known: &JobRef, row: &JobRow) -> Vec<String> {
    let named = |id: u64| vec![format!("--name={}", row.name), id.to_string()];
    match row.tasks {
        Tasks::NoArray => named(row.base),
        Tasks::One(_) if row.raw_id != row.base => named(row.raw_id),
        Tasks::One(_) | Tasks::Several { .. } => vec![id(known, row).to_string()],
    }
}

fn cancel(controller: &Controller<'_>, words: Vec<String>) -> Result<(), RunError> {
    let id = words.last().cloned().unwrap_or_default();
    let call = ProgramCall::new("scancel", ask::PATIENCE).args(words);
    match ask::ask(&*controller.client, &call) {
        // What has ended meanwhile is seen at once.
        Ok(_) => Ok(()),
        Err(why) if why.contains("Invalid job id") || why.contains("already complet") => Ok(()),
        Err(why) if why.contains("denied") => Err(RunError::refused(
            format!("Slurm does not let us cancel {id}: {why}"),
            "whose job is it? tpu show",
        )),
        Err(why) => Err(controller.silent(&why)),
    }
}

fn until_gone(controller: &Controller<'_>, known: &JobRef, id: SlurmId) -> Result<(), RunError> {
    let clock: &dyn Clock = &*controller.effects.clock;
    let budget = TimeLeft::new(clock, ENDING);
    let mut pause = Duration::from_millis(25);
    loop {
        let limit = ask::PATIENCE.min(budget.left().max(Duration::from_secs(1)));
        let table = controller.table(Some(known), limit).map_err(|why| controller.silent(&why))?;
        let Some(row) = table.find(known) else { return Ok(()) };
        if states::stage(&row.state).is_over() {
            return Ok(());
        }
        if budget.left().is_zero() {
            return Err(RunError::unreachable(
                format!("Slurm has not ended {id} yet: it is {} on {}", row.state, row.nodes),
                "it was told to; look again later with: tpu check",
            ));
        }
        clock.sleep(pause);
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}

/// Lets a job begin that Slurm keeps back for a time, as it does with what it has put back into the queue.
pub(super) fn unhold(controller: &Controller<'_>, job: &Job) -> Result<(), RunError> {
    let known = JobRef::of(job);
    let row = row(controller, job, &known)?;
    let row =
        row.filter(|row| states::stage(&row.state) == JobStage::Waiting).ok_or_else(|| {
            let what = format!("{} does not wait at Slurm", job.id());
            RunError::refused(what, "`tpu check` shows how it is")
        })?;
    refuse_others(controller)?;
    let id = id(&known, &row).to_string();
    let is_held =
        row.reason.starts_with("JobHeld") || row.reason.contains("held") || row.state != "PENDING";
    let words = match row.reason.as_str() {
        _ if is_held => vec!["release".to_owned(), id],
        "BeginTime" => {
            vec!["update".to_owned(), format!("jobid={id}"), format!("StartTime={SOON}")]
        }
        reason => {
            let what =
                format!("Slurm holds {} back for no time: {}", job.id(), reasons::sentence(reason));
            return Err(RunError::refused(what, "it begins as soon as that is over"));
        }
    };
    let call = ProgramCall::new("scontrol", ask::PATIENCE).args(words);
    ask::ask(&*controller.client, &call).map(drop).map_err(|why| controller.silent(&why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_one_task_is_cancelled() {
        let known = JobRef { name: "tpu-a".to_owned(), own: None, id: None, task: Some(7) };
        let row = |raw_id, tasks: &str| JobRow {
            raw_id,
            base: 21,
            tasks: Tasks::parse(tasks).unwrap(),
            state: "PENDING".to_owned(),
            reason: "None".to_owned(),
            start: None,
            end: None,
            restarts: 0,
            status: 0,
            nodes: String::new(),
            name: "tpu-a".to_owned(),
        };
        let told = |raw_id, tasks| cancelling(&known, &row(raw_id, tasks)).join(" ");
        assert_eq!(told(21, "4-9%2"), "21_7", "it waits with others");
        assert_eq!(told(30, "7"), "--name=tpu-a 30", "it has a number of its own");
        assert_eq!(told(21, "7"), "21_7", "the last one has the number of the array");
        assert_eq!(told(21, "N/A"), "--name=tpu-a 21");
    }
}
