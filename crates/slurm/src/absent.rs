//! Whether a job that a listing has not got is gone. A listing may be cached, empty or old, and a controller may have been
//! set back to an older state while the job trains on: so the controller is asked for the very job, and what the job
//! leaves on its disk must stand still, before its absence counts.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use tpu_core::model::job::Job;
use tpu_core::model::time::{Timestamp, age};
use tpu_system::effects::Effects;
use tpu_system::store::cache::CacheFile;

use super::ask::{self, TimeLeft};
use super::client::{ClusterDisk, FileMark, ProgramAnswer, ProgramCall};
use super::controller::Controller;
use super::job_id::JobRef;
use super::listing::{JobRow, JobTable};
use super::options::GONE_AFTER;
use super::{log, note};

/// The file in the log directory that a batch script touches while it lives.
pub(super) const ALIVE_FILE: &str = "slurm-alive";

/// So often it does so, in seconds.
pub(super) const ALIVE_EVERY_S: u64 = 30;

/// A job must be missing for so long where its target says nothing else.
const GONE_AFTER_S: u64 = 60;

/// What is older is forgotten.
const KEPT_S: u64 = 30 * 24 * 3600;

/// Mode of the file: whoever sees the jobs may see this.
const MODE: u32 = 0o644;

/// So many jobs are asked for one by one; of more, the controller is asked for all that it has.
pub(super) const ONE_BY_ONE: usize = 8;

/// What the absence of a job says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    /// The controller knows it: the listing is wrong.
    Listed(JobRow),
    /// It is gone.
    Gone,
    /// It may be at work; why, for a person.
    Open(String),
    /// The question failed.
    Unanswered(String),
}

/// Questions to the controller about single jobs, with as few calls as that takes.
pub(super) struct Inquiry<'c> {
    controller: &'c Controller<'c>,
    budget: TimeLeft<'c>,
    asked: usize,
    all: Option<Result<JobTable, String>>,
}

impl<'c> Inquiry<'c> {
    pub(super) fn new(controller: &'c Controller<'c>, budget: TimeLeft<'c>) -> Self {
        Self { controller, budget, asked: 0, all: None }
    }

    /// What the controller says of a job; `None` where it does not know it.
    pub(super) fn find(&mut self, known: &JobRef) -> Result<Option<JobRow>, String> {
        self.asked += 1;
        if self.asked <= ONE_BY_ONE
            && let Some(id) = known.id
        {
            return Ok(self.show(Some(&id.to_string()))?.find(known).cloned());
        }
        if self.all.is_none() {
            self.all = Some(self.show(None));
        }
        match &self.all {
            Some(Ok(table)) => Ok(table.find(known).cloned()),
            Some(Err(why)) => Err(why.clone()),
            None => Ok(None),
        }
    }

    /// `scontrol show job`, of one or of all.
    fn show(&self, id: Option<&str>) -> Result<JobTable, String> {
        let call = ProgramCall::new("scontrol", self.budget.left());
        let call = call.args(["show", "job"].into_iter().chain(id));
        match self.controller.client.run(&call) {
            Ok(ProgramAnswer { code: 0, stdout, .. }) => Ok(JobTable::shown(&stdout)),
            Ok(answer) if is_nothing(&answer) => Ok(JobTable::default()),
            Ok(answer) => Err(ask::complaint("scontrol", &answer)),
            Err(silence) => Err(silence.to_string()),
        }
    }
}

/// Whether `scontrol` (22.05.8) says that there is no such job, or none at all.
fn is_nothing(answer: &ProgramAnswer) -> bool {
    let says_so = |words: &&str| answer.stdout.contains(*words) || answer.stderr.contains(*words);
    ["Invalid job id", " not found", "No jobs in the system"].iter().any(says_so)
}

/// What a job leaves on its disk: how far its log and the file that its script touches have come. `None` for one that is
/// not there.
type Traces = Vec<Option<(u64, i64)>>;

/// A job that was missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Missed {
    /// Since then, and without a sign of life; in seconds since the epoch.
    since: i64,
    traces: Traces,
}

/// Since when jobs are missing, by their launches, whoever of this account has looked: one small file beside the notes of
/// submissions, so that two commands that look a minute apart know as much as a daemon.
pub(super) struct MissingJobs<'a> {
    effects: &'a Effects,
    missed: BTreeMap<String, Missed>,
    is_changed: bool,
}

impl<'a> MissingJobs<'a> {
    /// What is known by now.
    pub(super) fn read(effects: &'a Effects) -> Self {
        Self { effects, missed: file(effects).read(), is_changed: false }
    }

    /// A job is there.
    pub(super) fn found(&mut self, job: &Job) {
        if !self.missed.is_empty() && self.missed.remove(key(job)).is_some() {
            self.is_changed = true;
        }
    }

    /// Whether the absence of a job counts that was missing at a time, and left these traces then. Without a sign of life
    /// it does after so many seconds.
    fn counts(&mut self, job: &Job, at: Timestamp, traces: Traces, gone_after_s: u64) -> Absence {
        let known = self.missed.get(key(job)).filter(|missed| missed.traces == traces);
        let (since, lives) = match known {
            Some(missed) => (missed.since, false),
            None => (at.as_second(), self.missed.contains_key(key(job))),
        };
        if known.is_none() {
            self.missed.insert(key(job).to_owned(), Missed { since, traces });
            self.is_changed = true;
        }
        let absent_s = at.seconds_since(Timestamp::from_second(since));
        if absent_s >= gone_after_s {
            return Absence::Gone;
        }
        Absence::Open(if lives {
            "the controller does not know it, and it works on".to_owned()
        } else {
            format!(
                "the controller has not known it for {}; it counts as gone after {}",
                age(absent_s),
                age(gone_after_s)
            )
        })
    }

    /// Writes down what has changed.
    pub(super) fn keep(mut self) {
        let Self { effects, .. } = self;
        let is_kept = self.is_changed && !effects.store.is_dry_run();
        if !is_kept || note::all(effects).make_root().is_err() {
            return;
        }
        let now = effects.clock.now();
        self.missed
            .retain(|_, missed| now.seconds_since(Timestamp::from_second(missed.since)) < KEPT_S);
        file(effects).write(&self.missed);
    }
}

/// One for each account: in that directory nobody replaces the file of another one.
fn file(effects: &Effects) -> CacheFile<'_> {
    let path = note::all(effects).root().join(format!("missing-{}", effects.env.uid));
    CacheFile { store: &effects.store, path, mode: MODE }
}

fn key(job: &Job) -> &str {
    job.launch.as_ref().map_or("", |launch| launch.token.as_str())
}

/// What it says that a listing, which was asked for at that time, has not got a job.
pub(super) fn of(
    inquiry: &mut Inquiry<'_>,
    missing: &mut MissingJobs<'_>,
    job: &Job,
    known: &JobRef,
    asked_at: Timestamp,
) -> Absence {
    match inquiry.find(known) {
        Ok(Some(row)) => {
            missing.found(job);
            return Absence::Listed(row);
        }
        Ok(None) => {}
        Err(why) => return Absence::Unanswered(why),
    }
    let controller = inquiry.controller;
    match traces(&*controller.client.disk(), job) {
        Ok(traces) => missing.counts(job, asked_at, traces, gone_after_s(controller.effects, job)),
        Err(why) => Absence::Open(why),
    }
}

fn traces(disk: &dyn ClusterDisk, job: &Job) -> Result<Traces, String> {
    let Some(log) = log::path(job) else { return Ok(Vec::new()) };
    let alive = log.parent().unwrap_or(Path::new("/")).join(ALIVE_FILE);
    let marks = disk.marks(&[log.clone(), alive]).map_err(|e| {
        format!(
            "the controller does not know it, and whether it works on cannot be seen: {}: {e}",
            log.display()
        )
    })?;
    let mark = |mark: FileMark| (mark.length, mark.written.as_second());
    Ok(marks.into_iter().map(|found| found.map(mark)).collect())
}

/// For how long a job must be missing, by what was said of its target.
fn gone_after_s(effects: &Effects, job: &Job) -> u64 {
    let data = effects.data().ok();
    let said = data.as_ref().and_then(|data| data.registration(&job.tpu)?.options.get(GONE_AFTER));
    said.and_then(|text| text.parse().ok()).unwrap_or(GONE_AFTER_S)
}
