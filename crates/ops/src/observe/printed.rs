//! What a job has printed by its end: why it ended, and how far it came.

use std::collections::{BTreeMap, BTreeSet};

use tpu_core::classify::before_end;
use tpu_core::model::data::Data;
use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{ErrorKind, Evidence, Progress, Verdict};
use tpu_core::model::ids::UserName;
use tpu_core::model::job::Job;
use tpu_core::model::view::JobView;
use tpu_core::plan::diagnose::kind_by_text;
use tpu_engine::runner::Chunk;

use super::{logs, runners, snapshot};
use crate::base::ctx::{job_of, user_of};
use crate::{Ctx, Error};

/// The verdicts on what a job has printed, that on its window first.
#[derive(Debug)]
pub(crate) struct Printed(Vec<Verdict>);

impl Printed {
    /// Reads what a job has printed that has come to this end. Its log is read where its window shows no
    /// failure: a script may have printed into the one alone.
    pub(crate) fn before(ctx: &Ctx, job: &Job, exit: Option<Exit>) -> Self {
        let Ok(data) = ctx.data() else { return Self(Vec::new()) };
        Self::all_before(ctx, &data, &[(job, exit)]).pop().unwrap_or_else(|| Self(Vec::new()))
    }

    /// The same for a job that is ending, as far as is known how.
    pub(crate) fn by_now(ctx: &Ctx, job: &Job) -> Self {
        Self::before(ctx, job, runners::exit_of(ctx, job))
    }

    /// The same for jobs that one runner has; the result keeps their order.
    pub(crate) fn all_by_now(ctx: &Ctx, data: &Data, jobs: &[&Job]) -> Vec<Self> {
        let ending = jobs.iter().map(|job| (*job, runners::exit_of(ctx, job)));
        Self::all_before(ctx, data, &ending.collect::<Vec<_>>())
    }

    /// The same as [`Printed::before`] for jobs that one runner has; the result keeps their order.
    pub(crate) fn all_before(ctx: &Ctx, data: &Data, ending: &[(&Job, Option<Exit>)]) -> Vec<Self> {
        let users: BTreeSet<&UserName> = ending.iter().map(|(job, _)| &job.user).collect();
        let reach = |user| data.user(user).map_or(0, |user| snapshot::reach(ctx, user));
        let reaches: BTreeMap<&UserName, u32> =
            users.into_iter().map(|user| (user, reach(user))).collect();
        let most = reaches.values().copied().max().unwrap_or(0);
        let read = |(job, exit): (&Job, Option<Exit>), chunk: Option<Chunk>| {
            let reach = reaches.get(&job.user).copied().unwrap_or(0);
            chunk.map(|chunk| snapshot::read_text(ctx, job, &chunk.bytes, (exit, reach)))
        };
        let jobs: Vec<&Job> = ending.iter().map(|(job, _)| *job).collect();
        let shown = runners::outputs_of(ctx, data, &jobs, logs::shown(most));
        let shown = ending.iter().zip(shown).map(|(one, chunk)| read(*one, chunk));
        let mut printed: Vec<Self> = shown.map(|one| Self(one.into_iter().collect())).collect();
        let open: Vec<_> =
            printed.iter_mut().zip(ending).filter(|(one, _)| one.failure().is_none()).collect();
        let jobs: Vec<&Job> = open.iter().map(|(_, (job, _))| *job).collect();
        let kept = runners::outputs_of(ctx, data, &jobs, logs::kept_end(most));
        for ((printed, one), chunk) in open.into_iter().zip(kept) {
            printed.0.extend(read(*one, chunk));
        }
        printed
    }

    /// The failure that it shows, and its line.
    pub(crate) fn failure(&self) -> Option<(ErrorKind, Evidence)> {
        self.0.iter().find_map(failure)
    }

    /// The verdict that says most: one on a failure, if there is one.
    pub(crate) fn telling(&self) -> Option<&Verdict> {
        self.0.iter().find(|verdict| failure(verdict).is_some()).or_else(|| self.0.first())
    }

    /// The last numbers that it shows.
    pub(crate) fn numbers(&self) -> Progress {
        let all = self.0.iter().map(|verdict| &verdict.progress);
        all.into_iter().find(|numbers| !numbers.is_empty()).cloned().unwrap_or_default()
    }
}

/// How far a job came that is over: read from what its window shows, or from its log if the window is gone.
pub fn reached(ctx: &Ctx, job: &Job, view: &JobView) -> Progress {
    let shown = &view.shown.progress;
    if shown.is_empty() { Printed::by_now(ctx, job).numbers() } else { shown.clone() }
}

/// What the output of a job that is over shows by itself, whatever its exit code says.
#[derive(Debug)]
pub struct Ending {
    /// The failure in which it ends, if it is one.
    pub failure: Option<Evidence>,
    /// Its last line that is not blank.
    pub last: Option<String>,
}

/// Reads how the output of a job ends: its log, else what its window showed before its end. `None` where
/// nothing of it can be read.
pub fn ending(ctx: &Ctx, view: &JobView) -> Result<Option<Ending>, Error> {
    let data = ctx.data()?;
    let job = job_of(&data, &view.id)?;
    let reach = snapshot::reach(ctx, user_of(&data, &view.id.user)?);
    let log = logs::tail_of_output(ctx, job, reach).filter(|text| !text.is_empty());
    let id = view.id.to_string();
    let text = log.unwrap_or_else(|| before_end(view.tail.as_bytes(), &id).to_vec());
    if text.is_empty() {
        return Ok(None);
    }
    let verdict = snapshot::read_text(ctx, job, &text, (None, reach));
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    let last = last.map(|line| line.chars().take(LONGEST).collect());
    Ok(Some(Ending { failure: failure(&verdict).map(|(_, evidence)| evidence), last }))
}

/// Characters of a last line that are shown.
const LONGEST: usize = 400;

/// The failure that a text shows, and its line.
fn failure(verdict: &Verdict) -> Option<(ErrorKind, Evidence)> {
    Some((kind_by_text(verdict)?, verdict.evidence.clone()?))
}
