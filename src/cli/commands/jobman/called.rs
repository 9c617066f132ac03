//! Jobs by the numbers that JobMan gives them: that of the first attempt, for ever. With six digits there, with any here.

use crate::cli::app::App;
use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::{JobId, JobNumber};
use tpu_core::model::job::Status;
use tpu_core::model::lineage::{self, Lineage};
use tpu_ops::Error;

/// A job that was called.
#[derive(Clone, Debug)]
pub(super) struct Called {
    /// Its first attempt, or its place in the queue.
    pub(super) id: JobId,
    /// Its newest attempt, or what waits in its place.
    pub(super) leaf: JobId,
    /// How it stands by its record.
    pub(super) stands: Stands,
}

/// How a job stands by its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stands {
    /// It waits in the queue.
    Waits {
        /// Whether somebody holds it.
        held: bool,
    },
    /// It is at work, or about to be.
    Runs,
    /// It has failed: a rule may bring it back, and something of it may still be at work.
    Failed,
    /// It has ended.
    Ended,
}

impl Called {
    /// `000007`.
    pub(super) fn padded(&self) -> String {
        padded(self.id.window)
    }

    /// What our own commands call the newest attempt of.
    pub(super) fn word(&self) -> String {
        self.leaf.window.to_string()
    }
}

/// `000007`.
pub(super) fn padded(number: JobNumber) -> String {
    format!("{:06}", number.0)
}

/// The newest attempt of a job.
pub(super) fn leaf(data: &Data, id: &JobId) -> Option<JobId> {
    let leaf = Lineage::of(data.user(&id.user)?, id.window)?.leaf()?;
    Some(JobId::new(id.user.clone(), leaf))
}

/// The job that one word calls.
pub(super) fn one(app: &App, word: &str) -> Result<Called, Error> {
    let mut all = all(app, &[word.to_owned()])?;
    all.pop().ok_or_else(|| Error::usage("which job?").hint("`tpu jobman list` lists them"))
}

/// The jobs that these words call, each once.
pub(super) fn all(app: &App, words: &[String]) -> Result<Vec<Called>, Error> {
    let data = app.ctx()?.data()?;
    let user = app.user(&data, None)?;
    let mut all: Vec<Called> = Vec::new();
    for word in words {
        let number = word.parse().ok().filter(|number: &u32| *number > 0).ok_or_else(|| {
            Error::usage(format!("{word}: no number of a job"))
                .hint("as in: tpu jobman stop 000007; `tpu jobman list` lists them")
        })?;
        let id = JobId::new(user.clone(), JobNumber(number));
        let called = called(&data, &id).ok_or_else(|| {
            Error::not_found(format!("{user} has no job {}", padded(id.window)))
                .hint("`tpu jobman list` lists them")
        })?;
        if all.iter().all(|known| known.id != called.id) {
            all.push(called);
        }
    }
    Ok(all)
}

/// All jobs of the user that have ended.
pub(super) fn ended(app: &App) -> Result<Vec<Called>, Error> {
    let data = app.ctx()?.data()?;
    let user = app.user(&data, None)?;
    let of = tpu_ops::base::ctx::user_of(&data, &user)?;
    let firsts = lineage::lineages(of).into_iter();
    let firsts = firsts.filter_map(|lineage| lineage.windows.first().copied());
    let all = firsts.filter_map(|first| called(&data, &JobId::new(user.clone(), first)));
    Ok(all.filter(|called| matches!(called.stands, Stands::Failed | Stands::Ended)).collect())
}

/// A job by any of its numbers.
fn called(data: &Data, id: &JobId) -> Option<Called> {
    let waits = |entry: &QueueEntry, id: &JobId| Called {
        id: id.clone(),
        leaf: entry.id(),
        stands: Stands::Waits { held: entry.held.is_some() },
    };
    let user = data.user(&id.user)?;
    let Some(lineage) = Lineage::of(user, id.window) else {
        return data.queues().entry(id).map(|entry| waits(entry, id));
    };
    let first = JobId::new(id.user.clone(), *lineage.windows.first()?);
    let leaf = JobId::new(id.user.clone(), lineage.leaf()?);
    if let Some(entry) = data.queues().successor_of(&leaf) {
        return Some(waits(entry, &first));
    }
    let stands = match &data.job(&leaf)?.status {
        status if status.is_live() => Stands::Runs,
        Status::Error(_) => Stands::Failed,
        _ => Stands::Ended,
    };
    Some(Called { id: first, leaf, stands })
}
