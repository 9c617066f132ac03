//! Stopping exactly the jobs that are meant: their numbers are cancelled only together with their names, and they are
//! waited for until they are gone.

use std::collections::BTreeMap;
use std::time::Duration;

use tpu_core::model::facts::ErrorKind;
use tpu_core::model::job::Job;
use tpu_core::model::time::Timestamp;
use tpu_engine::runner::{RunError, StopOrder, StopOutcome, StopPart};
use tpu_system::sys::clock::Clock;

use super::absent::{self, Absence, Inquiry, MissingJobs};
use super::array::{self, Tasks};
use super::ask::{self, TimeLeft};
use super::client::ProgramCall;
use super::controller::Controller;
use super::ended;
use super::job_id::{JobRef, SlurmId};
use super::laid;
use super::listing::{JobRow, JobTable};
use super::note;
use super::reasons;
use super::settle::{self, Memories, Memory, Presence};
use super::states::{self, JobStage};
use super::submit;

/// How long a job may take to end: Slurm gives its programs `KillWait`, 30 s, before it kills them.
const ENDING: Duration = Duration::from_secs(90);

/// When what is kept back may begin. A node takes nothing of a job that was issued in the very second in which the
/// job was ended there, or before: "Killing non-startable batch job: Job credential revoked" (22.05.8). That is what
/// Slurm's wait of `cred_expire`, two minutes, is about.
const SOON: &str = "now+2";

/// So many bytes of numbers go to one `scancel` at most: on their way to a login node all of them are one word, of
/// which Linux takes twice as much (`MAX_ARG_STRLEN`, execve(2)).
const MOST_BYTES: usize = 64 * 1024;

/// So many tasks of an array are one word of it at most: ten digits each, and something between them.
const MOST_TASKS: usize = 5_000;

/// One of several jobs that are to be stopped.
#[derive(Clone)]
struct Target<'a> {
    /// Its place among them.
    place: usize,
    job: &'a Job,
    known: JobRef,
}

/// What came of stops, by the places of the jobs.
type Outcomes = BTreeMap<usize, Result<StopOutcome, RunError>>;

/// Stops jobs: one question about all of them, and one `scancel` for all tasks that wait, and for the others of each
/// name. The result keeps their order. What has ended is stopped as well as any.
pub(super) fn stop_all(
    controller: &Controller<'_>,
    jobs: &[&Job],
    order: StopOrder,
) -> Vec<Result<StopOutcome, RunError>> {
    let mut outcomes: Outcomes =
        (0..jobs.len()).map(|place| (place, Ok(StopOutcome::default()))).collect();
    if order.part == StopPart::Here {
        return outcomes.into_values().collect();
    }
    let found = still_there(controller, jobs, &mut outcomes);
    let told = cancel_all(controller, found, &mut outcomes);
    until_gone(controller, told, &mut outcomes);
    let stopped =
        jobs.iter().enumerate().filter(|(place, _)| outcomes.get(place).is_some_and(Result::is_ok));
    laid::discard(controller, stopped.map(|(_, job)| *job));
    outcomes.into_values().collect()
}

/// Gives up launches that Slurm has never had. Whether each is given up by that: one that has come meanwhile is not.
pub(super) fn give_up(controller: &Controller<'_>, jobs: &[&Job]) -> Vec<Result<bool, RunError>> {
    let marked: Vec<Result<(), String>> =
        jobs.iter().map(|job| settle::mark_given_up(controller, job)).collect();
    // In this order: what comes after this question finds the mark.
    let known: Vec<JobRef> = jobs.iter().map(|job| JobRef::of(job)).collect();
    let mut look = Look::at(controller, known.first().filter(|_| known.len() == 1));
    let given_up = |((job, known), marked): ((&&Job, &JobRef), Result<(), String>)| {
        let silent = |why: &String| controller.silent(why);
        marked.map_err(|why| silent(&why))?;
        let look = look.as_mut().map_err(|why| silent(why))?;
        Ok(match look.find(job, known)? {
            Found::There(_) | Found::Over => false,
            Found::Unsent | Found::NeverCame => true,
        })
    };
    let said: Vec<_> = jobs.iter().zip(&known).zip(marked).map(given_up).collect();
    let gone = jobs.iter().zip(&said).filter(|(_, said)| matches!(said, Ok(true)));
    laid::discard(controller, gone.map(|(job, _)| *job));
    said
}

/// The jobs that Slurm has and that are not over, with their rows. What it has never had is given up first.
fn still_there<'a>(
    controller: &Controller<'_>,
    jobs: &[&'a Job],
    outcomes: &mut Outcomes,
) -> Vec<(Target<'a>, JobRow)> {
    let all = jobs.iter().enumerate();
    let all: Vec<Target<'a>> =
        all.map(|(place, job)| Target { place, job, known: JobRef::of(job) }).collect();
    let mut never_came = Vec::new();
    let mut found = look_for(controller, all, outcomes, &mut never_came);
    never_came.retain(|target| match settle::mark_given_up(controller, target.job) {
        Ok(()) => true,
        Err(why) => {
            outcomes.insert(target.place, Err(controller.silent(&why)));
            false
        }
    });
    // What comes after this question finds the mark.
    found.extend(look_for(controller, never_came, outcomes, &mut Vec::new()));
    found
}

/// Those of some jobs that are there and not over, by one question; those that never came are put aside.
fn look_for<'a>(
    controller: &Controller<'_>,
    targets: Vec<Target<'a>>,
    outcomes: &mut Outcomes,
    never_came: &mut Vec<Target<'a>>,
) -> Vec<(Target<'a>, JobRow)> {
    if targets.is_empty() {
        return Vec::new();
    }
    let mut look = match Look::at(controller, only(&targets)) {
        Ok(look) => look,
        Err(why) => {
            outcomes.extend(targets.iter().map(|one| (one.place, Err(controller.silent(&why)))));
            return Vec::new();
        }
    };
    let mut found = Vec::new();
    for target in targets {
        match look.find(target.job, &target.known) {
            Ok(Found::There(row)) if states::stage(&row.state).is_over() => {}
            Ok(Found::There(row)) => found.push((target, row)),
            Ok(Found::Over | Found::Unsent) => {}
            Ok(Found::NeverCame) => never_came.push(target),
            Err(error) => drop(outcomes.insert(target.place, Err(error))),
        }
    }
    look.missing_jobs.keep();
    found
}

/// One job alone is asked for by its name, which is less for the controller to say.
fn only<'t>(targets: &'t [Target<'_>]) -> Option<&'t JobRef> {
    targets.first().filter(|_| targets.len() == 1).map(|target| &target.known)
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

/// Where a job is.
enum Found {
    /// In this row.
    There(JobRow),
    /// Nowhere any more.
    Over,
    /// Nowhere: nobody has begun to submit it.
    Unsent,
    /// Nowhere, and of its submission nobody has heard: who was about to submit it may have stood still since.
    NeverCame,
}

/// One look at what Slurm has, for jobs that are to be stopped.
struct Look<'c> {
    controller: &'c Controller<'c>,
    table: JobTable,
    asked_at: Timestamp,
    budget: TimeLeft<'c>,
    inquiry: Inquiry<'c>,
    missing_jobs: MissingJobs<'c>,
    memories: Memories<'c>,
}

impl<'c> Look<'c> {
    /// Asks about all of our jobs, or about one.
    fn at(controller: &'c Controller<'c>, only: Option<&JobRef>) -> Result<Self, String> {
        let clock: &dyn Clock = &*controller.effects.clock;
        let asked_at = clock.now();
        let budget = TimeLeft::new(clock, ask::PATIENCE);
        let table = controller.table(only, budget.left())?;
        Ok(Self {
            controller,
            table,
            asked_at,
            budget,
            inquiry: Inquiry::new(controller, budget),
            missing_jobs: MissingJobs::read(controller.effects),
            memories: Memories::new(controller, budget),
        })
    }

    /// Where a job is, for certain.
    fn find(&mut self, job: &Job, known: &JobRef) -> Result<Found, RunError> {
        if let Some(row) = self.table.find(known) {
            return Ok(Found::There(row.clone()));
        }
        // One that counts as lost may have come back.
        let is_lost = job.status.error() == Some(ErrorKind::Lost);
        if !is_lost && job.launch.as_ref().is_none_or(|launch| launch.ended.is_some()) {
            return Ok(Found::Over);
        }
        let controller = self.controller;
        let note = note::read(controller.effects, &known.name).map_err(|e| {
            controller.silent(&format!("the note of its submission cannot be read: {e}"))
        })?;
        match note {
            // Whoever writes it looks at the record afterwards.
            None => Ok(Found::Unsent),
            // It was there, and is not any more.
            Some(note) if known.id.is_some() || note.id.is_some() => {
                self.find_unlisted(job, known, &note.controller)
            }
            Some(note) => {
                match settle::absence(controller, job, &note, (self.asked_at, self.budget)) {
                    Presence::Over => Ok(Found::Over),
                    Presence::Absent => Ok(Found::NeverCame),
                    Presence::Forgotten => match settle::has_begun(controller, job) {
                        Ok(true) => self.find_unlisted(job, known, &note.controller),
                        Ok(false) => Ok(Found::NeverCame),
                        Err(why) => Err(controller.silent(&why)),
                    },
                    Presence::There(_) | Presence::OnItsWay(_) => {
                        Err(controller.silent("its submission may still be on its way"))
                    }
                    Presence::Unknown(why) => Err(controller.silent(&why)),
                }
            }
        }
    }

    /// Where a job is that was there, and that the listing has not got.
    fn find_unlisted(&mut self, job: &Job, known: &JobRef, boot: &str) -> Result<Found, RunError> {
        let controller = self.controller;
        if ended::by_itself(controller, job).is_some() {
            return Ok(Found::Over);
        }
        let absence =
            absent::of(&mut self.inquiry, &mut self.missing_jobs, job, known, self.asked_at);
        match absence {
            Absence::Listed(row) => Ok(Found::There(row)),
            Absence::Open(_) if settle::has_never_begun(controller, job, known, &self.table) => {
                Ok(Found::Over)
            }
            Absence::Open(why) => Err(RunError::unreachable(
                format!("whether {} is at work cannot be told yet: {why}", job.id()),
                "nothing was changed; try again then, or leave it to the daemon",
            )),
            Absence::Unanswered(why) => Err(controller.silent(&why)),
            Absence::Gone => match self.memories.of(boot) {
                Ok(Memory::Whole | Memory::StartedAnew) => Ok(Found::Over),
                Ok(Memory::Empty) => {
                    Err(controller.silent("it was started anew and lists no job at all"))
                }
                Err(why) => Err(controller.silent(&why)),
            },
        }
    }
}

/// What one `scancel` is told.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cancel {
    /// Tasks of an array, by its number and their own, right after the name was compared: with a name `scancel` takes
    /// a task that has not begun, and what has the number of the whole array, for all of the array.
    Tasks,
    /// Jobs by their numbers. It compares the name itself.
    Named(String),
}

impl Cancel {
    fn of(row: &JobRow, known: &JobRef) -> (Self, SlurmId) {
        let own = SlurmId { base: row.raw_id, task: None };
        match row.tasks {
            Tasks::NoArray => (Self::Named(row.name.clone()), own),
            Tasks::One(_) if row.raw_id != row.base => (Self::Named(row.name.clone()), own),
            Tasks::One(_) | Tasks::Several { .. } => (Self::Tasks, id(known, row)),
        }
    }

    /// The question about some of them, with the place of each in `ids`: as many as one list of arguments takes.
    fn calls(&self, ids: &[SlurmId]) -> Vec<ProgramCall> {
        let name = match self {
            Self::Tasks => None,
            Self::Named(name) => Some(format!("--name={name}")),
        };
        let mut calls: Vec<Vec<String>> = Vec::new();
        let mut length = MOST_BYTES;
        for word in words(ids) {
            length += word.len() + 1;
            if length > MOST_BYTES {
                length = word.len();
                calls.push(name.iter().cloned().collect());
            }
            if let Some(last) = calls.last_mut() {
                last.push(word);
            }
        }
        let call = |words| ProgramCall::new("scancel", ask::PATIENCE).args::<String>(words);
        calls.into_iter().map(call).collect()
    }
}

/// Numbers as `scancel` takes them: `12`, `21_7`, and several tasks of one array as `21_[0-4,7]`, which it sends to the
/// controller as one message (22.05.8).
fn words(ids: &[SlurmId]) -> Vec<String> {
    let mut arrays: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    let mut words = Vec::new();
    for id in ids {
        match id.task {
            Some(task) => arrays.entry(id.base).or_default().push(task),
            None => words.push(id.to_string()),
        }
    }
    for (base, tasks) in arrays {
        for tasks in tasks.chunks(MOST_TASKS) {
            words.push(match tasks {
                [task] => SlurmId { base, task: Some(*task) }.to_string(),
                tasks => format!("{base}_[{}]", array::written(tasks, None)),
            });
        }
    }
    words
}

/// Has jobs cancelled, those of an array that wait before those that make room for them. Those that it was told to end.
fn cancel_all<'a>(
    controller: &Controller<'_>,
    found: Vec<(Target<'a>, JobRow)>,
    outcomes: &mut Outcomes,
) -> Vec<(Target<'a>, SlurmId)> {
    let mut kinds: BTreeMap<Cancel, Vec<(Target<'a>, SlurmId, SlurmId)>> = BTreeMap::new();
    for (target, row) in found {
        let (kind, word) = Cancel::of(&row, &target.known);
        let id = id(&target.known, &row);
        kinds.entry(kind).or_default().push((target, id, word));
    }
    let mut told = Vec::new();
    let mut refused = refuse_others(controller).err();
    for (kind, targets) in kinds {
        let ids: Vec<SlurmId> = targets.iter().map(|(_, _, word)| *word).collect();
        if refused.is_none() {
            refused = kind.calls(&ids).iter().find_map(|call| cancel(controller, call).err());
        }
        for (target, id, _) in targets {
            match &refused {
                // Nobody else's of this name is waited for.
                None => told.push((target, id)),
                Some(error) => drop(outcomes.insert(target.place, Err(submit::again(error)))),
            }
        }
    }
    told
}

/// Asks Slurm to end jobs. What has ended meanwhile is seen at once.
fn cancel(controller: &Controller<'_>, call: &ProgramCall) -> Result<(), RunError> {
    let Err(why) = ask::ask(&*controller.client, call) else { return Ok(()) };
    let is_over = |line: &str| line.contains("Invalid job id") || line.contains("already complet");
    if why.split("; ").all(is_over) {
        return Ok(());
    }
    if why.contains("denied") {
        let id = call.args.last().cloned().unwrap_or_default();
        return Err(RunError::refused(
            format!("Slurm does not let us cancel {id}: {why}"),
            "whose job is it? tpu show",
        ));
    }
    Err(controller.silent(&why))
}

/// Waits until jobs are gone that Slurm was told to end.
fn until_gone(
    controller: &Controller<'_>,
    told: Vec<(Target<'_>, SlurmId)>,
    outcomes: &mut Outcomes,
) {
    let clock: &dyn Clock = &*controller.effects.clock;
    let budget = TimeLeft::new(clock, ENDING);
    let mut pause = Duration::from_millis(25);
    let mut left: Vec<Target<'_>> = told
        .into_iter()
        .map(|(target, id)| Target { known: JobRef { id: Some(id), ..target.known }, ..target })
        .collect();
    while !left.is_empty() {
        let limit = ask::PATIENCE.min(budget.left().max(Duration::from_secs(1)));
        // A list may be older than what was asked for: few are asked about one by one.
        let table = if left.len() > absent::ONE_BY_ONE {
            controller.table(None, limit).map(Some)
        } else {
            Ok(None)
        };
        let table = match table {
            Ok(table) => table,
            Err(why) => {
                outcomes.extend(left.iter().map(|one| (one.place, Err(controller.silent(&why)))));
                return;
            }
        };
        let is_late = budget.left().is_zero();
        let mut inquiry = Inquiry::new(controller, TimeLeft::new(clock, limit));
        left.retain(|target| {
            let listed = table.as_ref().and_then(|table| table.find(&target.known)).cloned();
            let row = match listed.filter(is_live) {
                Some(row) => Ok(Some(row)),
                None => inquiry.find(&target.known).map(|row| row.filter(is_live)),
            };
            let outcome = match row {
                Ok(None) => Ok(StopOutcome { processes: 1, window: false }),
                Ok(Some(row)) if is_late => Err(late(&target.known, &row)),
                Ok(Some(_)) => return true,
                Err(why) => Err(controller.silent(&why)),
            };
            outcomes.insert(target.place, outcome);
            false
        });
        if left.is_empty() {
            return;
        }
        clock.sleep(pause);
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}

fn is_live(row: &JobRow) -> bool {
    !states::stage(&row.state).is_over()
}

/// That a job has been told to end, and has not.
fn late(known: &JobRef, row: &JobRow) -> RunError {
    let id = known.id.map(|id| id.to_string()).unwrap_or_default();
    RunError::unreachable(
        format!("Slurm has not ended {id} yet: it is {} on {}", row.state, row.nodes),
        "it was told to; look again later with: tpu check",
    )
}

/// Lets a job begin that Slurm keeps back for a time, as it does with what it has put back into the queue.
pub(super) fn unhold(controller: &Controller<'_>, job: &Job) -> Result<(), RunError> {
    let known = JobRef::of(job);
    let look = Look::at(controller, Some(&known)).map_err(|why| controller.silent(&why));
    let row = match look?.find(job, &known)? {
        Found::There(row) if states::stage(&row.state) == JobStage::Waiting => row,
        Found::There(_) | Found::Over | Found::Unsent | Found::NeverCame => {
            let what = format!("{} does not wait at Slurm", job.id());
            return Err(RunError::refused(what, "`tpu check` shows how it is"));
        }
    };
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
                format!("Slurm cannot hold {} back: {}", job.id(), reasons::sentence(reason));
            return Err(RunError::refused(what, "it begins as soon as that is over"));
        }
    };
    let call = ProgramCall::new("scontrol", ask::PATIENCE).args(words);
    ask::ask(&*controller.client, &call).map(drop).map_err(|why| controller.silent(&why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(raw_id: u64, tasks: &str, name: &str) -> JobRow {
        let (tasks, name) = (Tasks::parse(tasks).unwrap(), name.to_owned());
        JobRow { raw_id, base: 21, tasks, name, ..JobRow::default() }
    }

    #[test]
    fn only_the_one_task_is_cancelled() {
        let known = JobRef { name: "tpu-a".to_owned(), own: None, id: None, task: Some(7) };
        let told = |raw_id, tasks| {
            let (kind, id) = Cancel::of(&row(raw_id, tasks, "tpu-a"), &known);
            let calls = kind.calls(&[id]);
            assert_eq!(calls.len(), 1);
            calls[0].args.join(" ")
        };
        assert_eq!(told(21, "4-9%2"), "21_7", "it waits with others");
        assert_eq!(told(30, "7"), "--name=tpu-a 30", "it has a number of its own");
        assert_eq!(told(21, "7"), "21_7", "the last one has the number of the array");
        assert_eq!(told(21, "N/A"), "--name=tpu-a 21");
    }

    #[test]
    fn many_are_as_few_calls_as_lists_of_arguments_allow() {
        let task = |task| SlurmId { base: 21, task: Some(task) };
        let job = |base| SlurmId { base, task: None };
        let ids = [task(7), task(0), job(5), task(1), SlurmId { base: 8, task: Some(3) }];
        assert_eq!(words(&ids), ["5", "8_3", "21_[0-1,7]"]);
        let scattered: Vec<SlurmId> = (0..20_000).map(|index| task(index * 2)).collect();
        let named = Cancel::Named("tpu-a".to_owned());
        let numbers: Vec<SlurmId> = (1_000_000..1_020_000).map(job).collect();
        for (kind, ids, count) in [(Cancel::Tasks, scattered, 2), (named, numbers, 3)] {
            let calls = kind.calls(&ids);
            assert_eq!(calls.len(), count);
            for call in &calls {
                let length = call.args.iter().map(|arg| arg.len() + 1).sum::<usize>();
                assert!(length < MOST_BYTES + 100, "{length}");
                let named = call.args.iter().filter(|arg| arg.starts_with("--name=")).count();
                assert_eq!(named, usize::from(kind != Cancel::Tasks));
            }
        }
    }
}
