//! Requests with keys of their own: whoever sends one again, as its answer was lost on the way, submits nothing twice.

use crate::Error;
use tpu_core::model::answered::AnsweredRequest;
use tpu_core::model::data::Data;
use tpu_core::model::ids::JobId;
use tpu_core::model::time::Timestamp;
use tpu_system::store::Tx;

/// For so many seconds a request is known by its key.
pub(crate) const KNOWN_S: u64 = 24 * 3_600;

/// So many keys of one sender are known at a time: whoever reads the data file reads them all.
const MOST_KEYS: usize = 1_000;

/// What became of jobs that were submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entered {
    /// They are in their queues, under these numbers.
    New(Vec<JobId>),
    /// The same request was answered before, with these.
    Before(Vec<JobId>),
    /// Another request with this key was.
    Other,
}

/// A request with a key of its own.
#[derive(Clone, Debug)]
pub struct Once {
    /// Who sends it.
    pub by: String,
    /// Its key.
    pub key: String,
    /// What it says, as a hash.
    pub said: String,
}

impl Once {
    /// What became of it, if it was answered lately.
    pub(in crate::waiting) fn known(&self, data: &Data, now: Timestamp) -> Option<Entered> {
        let before = data.queues().answer(&self.by, &self.key)?;
        if now.seconds_since(before.at) >= KNOWN_S {
            return None;
        }
        let is_same = before.said == self.said;
        Some(if is_same { Entered::Before(before.jobs.clone()) } else { Entered::Other })
    }

    /// Refuses where so many keys of its sender are known that no other one can be.
    pub fn may_be_known(&self, data: &Data, now: Timestamp) -> Result<(), Error> {
        let is_known = |request: &&AnsweredRequest| {
            request.by == self.by && now.seconds_since(request.at) < KNOWN_S
        };
        if data.queues().answered.iter().filter(is_known).count() < MOST_KEYS {
            return Ok(());
        }
        let what = format!("{MOST_KEYS} keys of {} are known, each for a day", self.by);
        Err(Error::refused(what)
            .hint("submit more jobs with each request, or send it without a key"))
    }

    /// Writes down what it has become, in the transaction in which it becomes that. What was answered long ago is forgotten.
    pub(super) fn note(&self, tx: &mut Tx<'_>, jobs: &[JobId]) -> Result<(), Error> {
        self.may_be_known(&tx.data, tx.now)?;
        let Self { by, key, said } = self.clone();
        let at = tx.now;
        let answered = &mut tx.data.queues_mut().answered;
        answered.retain(|request| at.seconds_since(request.at) < KNOWN_S);
        answered.push(AnsweredRequest { by, key, said, at, jobs: jobs.to_vec() });
        Ok(())
    }
}

/// Forgets a request that was answered with a job which has come to nothing: it may be sent again.
pub(super) fn forget(tx: &mut Tx<'_>, job: &JobId) {
    let is_meant = |request: &AnsweredRequest| request.jobs.contains(job);
    if tx.data.queues().answered.iter().any(is_meant) {
        tx.data.queues_mut().answered.retain(|request| !is_meant(request));
    }
}
