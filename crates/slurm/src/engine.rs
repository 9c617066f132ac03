//! The runner of Slurm's jobs: one `squeue` for all of them, and further questions only about those that it has not got.

use std::path::PathBuf;
use std::time::Duration;

use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{ErrorKind, RunFact, RunState};
use tpu_core::model::ids::LaunchToken;
use tpu_core::model::job::{EngineRun, Handle, Job};
use tpu_core::model::options::KindOptions;
use tpu_core::model::target::TargetKind;
use tpu_core::model::time::Timestamp;
use tpu_engine::runner::files::Files;
use tpu_engine::runner::{
    Attempt, Chunk, Ground, Observed, OutputMark, OutputWanted, RunError, RunRef, Runner,
    StopOrder, StopOutcome, Submitted, Unreached, printed,
};
use tpu_system::sys::clock::Clock;

use super::absent::{self, Absence, Inquiry, MissingJobs};
use super::ask::{self, TimeLeft};
use super::controller::Controller;
use super::ended::{self, Afterwards};
use super::facts::{self, JobEnd};
use super::job_id::{JobRef, kept, name_of};
use super::last_seen;
use super::listing::{JobRow, JobTable};
use super::note;
use super::preempt;
use super::settle::{self, Memories, Memory, Presence};
use super::states;
use super::submit::{self, Batch};
use super::{describe, log, stop, told};

/// SIGKILL.
const KILL: i32 = 9;

/// The clocks of a cluster and of its disk differ by less.
const SKEW: Duration = Duration::from_secs(30);

/// The runner.
pub(super) struct Engine<'a> {
    pub(super) controller: Controller<'a>,
    /// What was said of the target, for whoever submits to it.
    pub(super) target: Option<KindOptions>,
}

/// A run that the controller does not list.
struct Missing<'r> {
    /// Which of those asked about.
    index: usize,
    job: &'r Job,
    known: JobRef,
}

/// What one look has heard, and what it asks about the runs that it misses.
struct Look<'l> {
    table: &'l JobTable,
    asked_at: Timestamp,
    budget: TimeLeft<'l>,
    inquiry: Inquiry<'l>,
    missing_jobs: MissingJobs<'l>,
    memories: Memories<'l>,
}

impl Look<'_> {
    fn absence(&mut self, one: &Missing<'_>) -> Absence {
        absent::of(&mut self.inquiry, &mut self.missing_jobs, one.job, &one.known, self.asked_at)
    }
}

impl Engine<'_> {
    fn clock(&self) -> &dyn Clock {
        &*self.controller.effects.clock
    }

    /// What was said of the target of an attempt.
    fn target(&self, attempt: &Attempt<'_>) -> Result<KindOptions, RunError> {
        if let Some(said) = &self.target {
            return Ok(said.clone());
        }
        let data = self.controller.effects.data()?;
        let known = data.registration(&attempt.job.tpu);
        Ok(known.map(|known| known.options.clone()).unwrap_or_default())
    }

    /// How runs are, by answers that take no longer than this; the result keeps their order.
    fn observed(&self, runs: &[RunRef<'_>], patience: Duration) -> Vec<Observed> {
        if runs.is_empty() {
            return Vec::new();
        }
        let asked_at = self.clock().now();
        let mut facts = self.facts(runs, patience);
        let printed = self.printed(runs, &mut facts, asked_at);
        let observed = |(run, printed)| Observed { run, pane: None, printed };
        facts.into_iter().zip(printed).map(observed).collect()
    }

    /// The same without what they print.
    fn facts(&self, runs: &[RunRef<'_>], patience: Duration) -> Vec<RunFact> {
        let controller = &self.controller;
        let budget = TimeLeft::new(self.clock(), patience);
        let known: Vec<JobRef> = runs.iter().map(|run| JobRef::of(run.job)).collect();
        let asked_at = self.clock().now();
        // One job alone is asked for by its name, which is less for the controller to say.
        let only = known.first().filter(|_| known.len() == 1);
        let table = match controller.table(only, budget.left()) {
            Ok(table) => table,
            Err(why) => return runs.iter().map(|run| self.silent(run.job, &why)).collect(),
        };
        let mut missing_jobs = MissingJobs::read(controller.effects);
        let mut facts = Vec::with_capacity(runs.len());
        let (mut missing, mut returned) = (Vec::new(), Vec::new());
        for (index, (run, known)) in runs.iter().zip(known).enumerate() {
            if let Some(row) = table.find(&known) {
                missing_jobs.found(run.job);
                facts.push(self.of_row(run.job, row));
                // The list may be older than the end of which the record tells.
                if run.job.is_past() && !states::stage(&row.state).is_over() {
                    returned.push(Missing { index, job: run.job, known });
                }
                continue;
            }
            missing.push(Missing { index, job: run.job, known });
            facts.push(RunFact::of_engine(RunState::Unknown, "UNKNOWN", None));
        }
        // Who has cancelled it only the accounts say.
        let cancelled = runs
            .iter()
            .zip(&facts)
            .enumerate()
            .filter(|(_, (run, fact))| fact.raw == "CANCELLED" && run.job.status.is_live());
        let cancelled: Vec<Missing<'_>> = cancelled
            .map(|(index, (run, _))| Missing { index, job: run.job, known: JobRef::of(run.job) })
            .collect();
        for (one, end) in cancelled.iter().zip(self.by_whom(&cancelled, budget)) {
            let is_by_slurm = facts.get(one.index).is_some_and(|fact| !fact.is_cancelled);
            if let Some(end) = end.filter(|end| !is_by_slurm || facts::is_by_somebody(&end.word)) {
                put(&mut facts, one.index, facts::of_end(one.job, &end));
            }
        }
        let mut look = Look {
            table: &table,
            asked_at,
            budget,
            inquiry: Inquiry::new(controller, budget),
            missing_jobs,
            memories: Memories::new(controller, budget),
        };
        for one in returned {
            let fact = match look.inquiry.find(&one.known) {
                Ok(Some(row)) => self.of_row(one.job, &row),
                Ok(None) => ended(),
                Err(why) => self.silent(one.job, &why),
            };
            put(&mut facts, one.index, fact);
        }
        for (index, fact) in self.of_missing(missing, &mut look) {
            put(&mut facts, index, fact);
        }
        look.missing_jobs.keep();
        let states = runs.iter().zip(&facts).filter_map(|(run, fact)| {
            let launch = run.job.launch.as_ref().filter(|_| fact.state != RunState::Unknown)?;
            Some((launch.token.to_string(), fact.raw.to_string()))
        });
        controller.heard.keep(&controller.cluster, self.clock().monotonic(), states);
        told::add(&*controller.client.disk(), runs, &mut facts);
        facts
    }

    /// What a row says. Slurm itself has cancelled what it never launched.
    fn of_row(&self, job: &Job, row: &JobRow) -> RunFact {
        let is_open = job.status.is_live() && facts::may_be_unlaunched(row);
        if is_open && settle::has_begun(&self.controller, job) == Ok(false) {
            return facts::ended_by_slurm(&row.nodes);
        }
        facts::of_row(job, row)
    }

    /// A run of which nothing can be said, with what was last known of it.
    fn silent(&self, job: &Job, why: &str) -> RunFact {
        let Controller { cluster, heard, .. } = &self.controller;
        let token = job.launch.as_ref().map_or("", |launch| launch.token.as_str());
        let last = heard.last(cluster, token, self.clock().monotonic());
        let last = last.or_else(|| last_seen::last_answer(self.controller.effects, cluster));
        let last = last.map(|last| format!("; {last}")).unwrap_or_default();
        let reason = format!("{} does not answer: {why}{last}", cluster.in_words());
        RunFact::of_engine(RunState::Unknown, "UNKNOWN", Some(reason))
    }

    /// How jobs were cancelled, and by whom, as far as there are accounts that say so.
    fn by_whom(&self, cancelled: &[Missing<'_>], budget: TimeLeft<'_>) -> Vec<Option<JobEnd>> {
        let Controller { cluster, heard, .. } = &self.controller;
        if cancelled.is_empty() || !heard.may_have_accounting(cluster) {
            return Vec::new();
        }
        let told = self.afterwards(cancelled, budget);
        let end = |told| match told {
            Afterwards::Ended(end) => Some(end),
            Afterwards::Odd(_) | Afterwards::Nothing | Afterwards::Unanswered(_) => None,
        };
        told.into_iter().map(end).collect()
    }

    fn afterwards(&self, missing: &[Missing<'_>], budget: TimeLeft<'_>) -> Vec<Afterwards> {
        let began = missing.iter().filter_map(|one| Some(one.job.launch.as_ref()?.at)).min();
        let since = began.unwrap_or_else(|| self.clock().now());
        let known: Vec<JobRef> = missing.iter().map(|one| one.known.clone()).collect();
        ended::ask(&self.controller, &known, since, budget)
    }

    /// What is known of runs that the controller does not list.
    fn of_missing<'r>(
        &self,
        missing: Vec<Missing<'r>>,
        look: &mut Look<'_>,
    ) -> Vec<(usize, RunFact)> {
        let (past, rest): (Vec<Missing<'r>>, Vec<Missing<'r>>) =
            missing.into_iter().partition(|one| one.job.is_past());
        let (begun, open): (Vec<Missing<'r>>, Vec<Missing<'r>>) =
            rest.into_iter().partition(|one| has_begun(one.job, &one.known));
        let mut facts: Vec<(usize, RunFact)> =
            past.iter().map(|one| (one.index, ended())).collect();
        for one in &open {
            facts.push((one.index, self.of_open(one, look)));
        }
        if begun.is_empty() {
            return facts;
        }
        let told = self.afterwards(&begun, look.budget);
        for (one, told) in begun.iter().zip(told) {
            facts.push((one.index, self.of_begun(one, told, look)));
        }
        facts
    }

    /// What is known of a run that Slurm had, by what is kept of those that are over.
    fn of_begun(&self, one: &Missing<'_>, told: Afterwards, look: &mut Look<'_>) -> RunFact {
        match told {
            Afterwards::Ended(end) => facts::of_end(one.job, &end),
            Afterwards::Odd(word) => match look.inquiry.find(&one.known) {
                Ok(Some(row)) => self.of_row(one.job, &row),
                Ok(None) => unknown(format!(
                    "its accounting says {word}, and the controller does not know it"
                )),
                Err(why) => self.silent(one.job, &why),
            },
            Afterwards::Unanswered(why) => self.silent(one.job, &why),
            Afterwards::Nothing => self.by_itself_or_unlisted(one, look),
        }
    }

    /// What is known of a run of which Slurm says nothing: what it says itself.
    fn by_itself_or_unlisted(&self, one: &Missing<'_>, look: &mut Look<'_>) -> RunFact {
        match self.by_itself(one.job) {
            Some(fact) if fact.exit.and_then(Exit::signal) == Some(KILL) => {
                self.of_killed(one, fact, look)
            }
            Some(fact) => fact,
            None => self.of_unlisted(one, look),
        }
    }

    /// What is known of a run that was killed, by its own account. A controller that was set back has its nodes kill what it
    /// does not know any more, and the script of a job may live long enough to write that down. A controller that knew it
    /// would know it still.
    fn of_killed(&self, one: &Missing<'_>, fact: RunFact, look: &mut Look<'_>) -> RunFact {
        let config = match self.controller.config(look.budget.left()) {
            Ok(config) => config,
            Err(why) => return self.silent(one.job, &why),
        };
        let ended_at = ended::noted_at(&self.controller, one.job);
        let known_until = ended_at.map(|at| at.plus(config.min_job_age.saturating_sub(SKEW)));
        if known_until.is_none_or(|until| look.asked_at >= until) {
            return fact;
        }
        match look.inquiry.find(&one.known) {
            Ok(Some(row)) => self.of_row(one.job, &row),
            Ok(None) => facts::ended_by_slurm(""),
            Err(why) => self.silent(one.job, &why),
        }
    }

    /// What is known of a run that Slurm had, and of which neither its lists nor the run itself say that it is over.
    fn of_unlisted(&self, one: &Missing<'_>, look: &mut Look<'_>) -> RunFact {
        if let Some(uid) = self.controller.other_account() {
            return RunFact {
                state: RunState::Elsewhere,
                ..unknown(format!("it is a job of uid {uid}, which Slurm may hide from us"))
            };
        }
        match look.absence(one) {
            Absence::Listed(row) => self.of_row(one.job, &row),
            Absence::Open(_) | Absence::Gone if self.has_never_begun(one, look.table) => {
                facts::cancelled(None)
            }
            Absence::Open(why) => unknown(why),
            Absence::Unanswered(why) => self.silent(one.job, &why),
            Absence::Gone => {
                let boot = self.boot_at_submission(one);
                match look.memories.of(&boot) {
                    Ok(Memory::Empty) => unknown(
                        "the controller was started anew and lists no job at all: what it had may be lost".to_owned(),
                    ),
                    Ok(memory) => self.by_log(one, memory).unwrap_or_else(forgotten),
                    Err(why) => self.silent(one.job, &why),
                }
            }
        }
    }

    /// How a run has ended by its own account, where Slurm has none.
    fn by_itself(&self, job: &Job) -> Option<RunFact> {
        let fact = facts::of_end(job, &ended::by_itself(&self.controller, job)?);
        Some(RunFact { raw: "ENDED".into(), ..fact })
    }

    /// How a run has ended by what Slurm has written into its log. A controller that was started anew ends what it does not
    /// know any more: nobody has cancelled that.
    fn by_log(&self, one: &Missing<'_>, memory: Memory) -> Option<RunFact> {
        let end = ended::by_log(&self.controller, one.job, &one.known)?;
        let fact = facts::of_end(one.job, &end);
        let is_by_slurm = fact.is_cancelled && memory != Memory::Whole;
        Some(if is_by_slurm { facts::ended_by_slurm(&end.nodes) } else { fact })
    }

    /// Whether it is a task of an array that was cancelled before it began.
    fn has_never_begun(&self, one: &Missing<'_>, table: &JobTable) -> bool {
        settle::has_never_begun(&self.controller, one.job, &one.known, table)
    }

    /// When the controller that took a job had been started, in its own words.
    fn boot_at_submission(&self, one: &Missing<'_>) -> String {
        let note = note::read(self.controller.effects, &one.known.name).ok().flatten();
        note.map(|note| note.controller).unwrap_or_default()
    }

    /// What is known of a launch of which nobody has said that Slurm has it.
    fn of_open(&self, one: &Missing<'_>, look: &mut Look<'_>) -> RunFact {
        let controller = &self.controller;
        let (asked_at, budget) = (look.asked_at, look.budget);
        let never = || RunFact {
            cause: Some(ErrorKind::Launch),
            ..RunFact::of_engine(
                RunState::Gone,
                "NEVER_SUBMITTED",
                Some("it never reached Slurm".to_owned()),
            )
        };
        let note = match note::read(controller.effects, &one.known.name) {
            Ok(Some(note)) => note,
            Ok(None) => return never(),
            Err(e) => return unknown(format!("the note of its submission cannot be read: {e}")),
        };
        match settle::absence(controller, one.job, &note, (asked_at, budget)) {
            Presence::Absent => never(),
            Presence::Forgotten => match settle::has_begun(controller, one.job) {
                Ok(false) => never(),
                Ok(true) => self.by_itself_or_unlisted(one, look),
                Err(why) => unknown(why),
            },
            Presence::Over => match self.afterwards(std::slice::from_ref(one), budget).pop() {
                Some(Afterwards::Ended(end)) => facts::of_end(one.job, &end),
                _ => unknown("its end is not known yet".to_owned()),
            },
            // That it is there nobody has said: whoever took it for started would take it for lost a moment later.
            Presence::OnItsWay(_) if note.is_at_work(controller.effects) => {
                unknown("it is being submitted".to_owned())
            }
            Presence::OnItsWay(_) | Presence::There(_) => unknown(
                "its submission was cut off, and it may still be on its way to Slurm".to_owned(),
            ),
            Presence::Unknown(why) => self.silent(one.job, &why),
        }
    }

    /// What runs have printed by now.
    fn printed(
        &self,
        runs: &[RunRef<'_>],
        facts: &mut [RunFact],
        asked_at: Timestamp,
    ) -> Vec<Option<OutputMark>> {
        let mut marks: Vec<Option<OutputMark>> = runs.iter().map(|_| None).collect();
        let wanted: Vec<(usize, PathBuf)> = runs
            .iter()
            .zip(facts.iter())
            .enumerate()
            .filter(|(_, (run, fact))| has_text(run.job, fact))
            .filter_map(|(index, (run, _))| Some((index, log::path(run.job)?)))
            .collect();
        if wanted.is_empty() {
            return marks;
        }
        let paths: Vec<PathBuf> = wanted.iter().map(|(_, path)| path.clone()).collect();
        // What cannot be read leaves a job without text.
        let Ok(found) = self.controller.client.disk().marks(&paths) else { return marks };
        for ((index, _), mark) in wanted.into_iter().zip(found) {
            let (Some(mark), Some(fact)) = (mark, facts.get_mut(index)) else { continue };
            fact.last_output = Some(mark.written);
            // What ends a job is known to Slurm before its programs hear of it. Disks count in whole seconds.
            fact.text_waits |=
                fact.state == RunState::Running && mark.written.plus_seconds(1) >= asked_at;
            put(&mut marks, index, Some(printed::mark(mark.length, mark.written)));
        }
        marks
    }
}

/// Puts something in its place.
fn put<T>(all: &mut [T], index: usize, value: T) {
    if let Some(place) = all.get_mut(index) {
        *place = value;
    }
}

/// Whether somebody has written down that Slurm has it.
fn has_begun(job: &Job, known: &JobRef) -> bool {
    known.id.is_some() || job.launch.as_ref().is_some_and(|launch| launch.confirmed)
}

/// One of which the record tells the end.
fn ended() -> RunFact {
    RunFact::of_engine(RunState::Ended, "ENDED", None)
}

/// One of which nothing certain can be said.
fn unknown(why: String) -> RunFact {
    RunFact::of_engine(RunState::Unknown, "UNKNOWN", Some(why))
}

/// One that Slurm had, and of which nothing tells how it ended.
fn forgotten() -> RunFact {
    let reason = "Slurm does not know it any more, and nothing tells how it ended".to_owned();
    RunFact {
        cause: Some(ErrorKind::Lost),
        ..RunFact::of_engine(RunState::Gone, "FORGOTTEN", Some(reason))
    }
}

/// Whether what a run has printed says something about it.
fn has_text(job: &Job, fact: &RunFact) -> bool {
    let has_begun = matches!(fact.state, RunState::Starting | RunState::Running | RunState::Ended);
    let is_open = !job.status.is_final();
    has_begun && is_open
}

impl Runner for Engine<'_> {
    fn ground(&self, _: &str, token: &LaunchToken) -> Result<Ground, RunError> {
        let controller = &self.controller;
        controller.config(ask::PATIENCE).map_err(|why| controller.silent(&why))?;
        let run = EngineRun {
            kind: TargetKind::new(super::WORD),
            cluster: controller.cluster.to_string(),
            id: Some(kept(&name_of(token), None)),
            name: None,
        };
        Ok(Ground { handle: Handle::Engine { run, token: token.clone() }, taken: Vec::new() })
    }

    fn submit(&self, attempt: &Attempt<'_>) -> Result<Submitted, RunError> {
        let mut said = None;
        self.submit_all(std::slice::from_ref(attempt), &mut |_, submitted| said = Some(submitted));
        said.unwrap_or_else(|| Err(self.controller.silent("nothing was said of the submission")))
    }

    fn submit_all(
        &self,
        attempts: &[Attempt<'_>],
        said: &mut dyn FnMut(usize, Result<Submitted, RunError>),
    ) {
        let Some(first) = attempts.first() else { return };
        match self.target(first) {
            Ok(target) => submit::submit_all(&self.controller, &target, attempts, said),
            Err(error) => {
                for place in 0..attempts.len() {
                    said(place, Err(submit::again(&error)));
                }
            }
        }
    }

    fn limits_groups(&self) -> bool {
        true
    }

    fn carries_out(&self, _: &str) -> bool {
        true
    }

    fn hands_on_secrets(&self) -> bool {
        true
    }

    fn takes_away(&self) -> Result<bool, RunError> {
        let partitions = self.target.as_ref().and_then(|target| target.get("partition"));
        let said =
            preempt::are_victims(&self.controller, partitions.unwrap_or_default(), ask::PATIENCE);
        said.map_err(|why| self.controller.silent(&why))
    }

    fn observe(&self, runs: &[RunRef<'_>]) -> Vec<Observed> {
        self.observed(runs, ask::LOOK)
    }

    fn observe_patiently(&self, runs: &[RunRef<'_>]) -> Vec<Observed> {
        self.observed(runs, ask::PATIENCE)
    }

    fn output(&self, wanted: &[OutputWanted<'_>]) -> Result<Vec<Option<Chunk>>, RunError> {
        let disk = self.controller.client.disk();
        if let [one] = wanted {
            let Some(path) = log::path(one.run.job) else { return Ok(vec![None]) };
            let chunk = log::chunk(&*disk, &path, one.want).map_err(|e| {
                let what = format!("the log of {} cannot be read: {e}", one.run.job.id());
                RunError::unreachable(what, "try again when its disk can be reached")
            })?;
            return Ok(vec![chunk]);
        }
        let paths = wanted.iter().map(|one| (log::path(one.run.job), one.want));
        Ok(log::chunks(&*disk, &paths.collect::<Vec<_>>()))
    }

    fn may_stop(&self, _: RunRef<'_>, _: Unreached) -> Result<bool, RunError> {
        stop::refuse_others(&self.controller).map(|()| false)
    }

    fn stop(&self, run: RunRef<'_>, stop: StopOrder) -> Result<StopOutcome, RunError> {
        let stopped = stop::stop_all(&self.controller, &[run.job], stop).pop();
        stopped.unwrap_or_else(|| Err(self.controller.silent("nothing was said of it")))
    }

    fn stop_all(&self, runs: &[RunRef<'_>], stop: StopOrder) -> Vec<Result<StopOutcome, RunError>> {
        let jobs: Vec<&Job> = runs.iter().map(|run| run.job).collect();
        stop::stop_all(&self.controller, &jobs, stop)
    }

    fn give_up(&self, runs: &[RunRef<'_>]) -> Vec<Result<bool, RunError>> {
        let jobs: Vec<&Job> = runs.iter().map(|run| run.job).collect();
        stop::give_up(&self.controller, &jobs)
    }

    fn files(&self) -> Box<dyn Files + '_> {
        self.controller.client.disk()
    }

    fn preview(&self, attempt: &Attempt<'_>) -> Result<String, RunError> {
        let target = self.target(attempt)?;
        Ok(Batch::new(std::slice::from_ref(attempt), &target, &self.controller)?.in_words())
    }

    fn script(&self, run: RunRef<'_>) -> Result<Option<String>, RunError> {
        let known = JobRef::of(run.job);
        Ok(known.names().find_map(|name| note::script(self.controller.effects, name)))
    }

    fn describe(&self, run: RunRef<'_>) -> Result<String, RunError> {
        describe::describe(&self.controller, run.job)
    }

    fn unhold(&self, run: RunRef<'_>) -> Result<(), RunError> {
        stop::unhold(&self.controller, run.job)
    }

    fn shell(&self, run: RunRef<'_>, node: Option<&str>) -> Result<Vec<String>, RunError> {
        describe::shell(&self.controller, run.job, node)
    }

    fn attach(&self, run: RunRef<'_>) -> Result<Vec<String>, RunError> {
        describe::attach(&self.controller, run.job)
    }
}
