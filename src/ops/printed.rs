//! What a job has printed by its end: why it ended, and how far it came.

use crate::model::exit::Exit;
use crate::model::facts::{ErrorKind, Evidence, Progress, Verdict};
use crate::model::job::Job;
use crate::model::view::JobView;
use crate::plan::diagnose::kind_by_text;

use super::{Ctx, logs, records, snapshot};

/// The verdicts on what a job has printed, that on its window first.
#[derive(Debug)]
pub struct Printed(Vec<Verdict>);

impl Printed {
    /// Reads what a job has printed that has come to this end. Its log is read where its window shows no
    /// failure: a script may have printed into the one alone.
    pub fn before(ctx: &Ctx, job: &Job, exit: Option<Exit>) -> Self {
        let data = ctx.data();
        let user = data.as_ref().ok().and_then(|data| data.user(&job.user));
        let reach = user.map_or(0, |user| snapshot::reach(ctx, user));
        let read = |text: Vec<u8>| snapshot::read_text(ctx, job, &text, (exit, reach));
        let mut printed = Self(logs::pane_text(ctx, job, reach).map(read).into_iter().collect());
        if printed.failure().is_none() {
            printed.0.extend(logs::tail_of_output(job, reach).map(read));
        }
        printed
    }

    /// The same for a job that is ending, as far as is known how.
    pub fn by_now(ctx: &Ctx, job: &Job) -> Self {
        Self::before(ctx, job, records::exit_of(ctx, job))
    }

    /// The failure that it shows, and its line.
    pub fn failure(&self) -> Option<(ErrorKind, Evidence)> {
        self.0.iter().find_map(failure)
    }

    /// The verdict that says most: one on a failure, if there is one.
    pub fn telling(&self) -> Option<&Verdict> {
        self.0.iter().find(|verdict| failure(verdict).is_some()).or_else(|| self.0.first())
    }

    /// The last numbers that it shows.
    pub fn numbers(&self) -> Progress {
        let all = self.0.iter().map(|verdict| &verdict.progress);
        all.into_iter().find(|numbers| !numbers.is_empty()).cloned().unwrap_or_default()
    }
}

/// How far a job came that is over: by what is shown of it, and where its window has gone by its log.
pub fn reached(ctx: &Ctx, job: &Job, view: &JobView) -> Progress {
    let shown = &view.shown.progress;
    if shown.is_empty() { Printed::by_now(ctx, job).numbers() } else { shown.clone() }
}

/// The failure that a text shows, and its line.
fn failure(verdict: &Verdict) -> Option<(ErrorKind, Evidence)> {
    Some((kind_by_text(verdict)?, verdict.evidence.clone()?))
}
