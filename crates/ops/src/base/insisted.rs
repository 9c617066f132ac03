//! What somebody insists on who changes a job: that it is still as it was read. Looked at within the transaction that
//! changes it, so that nobody comes in between.

use std::sync::{Mutex, PoisonError};

use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::JobId;
use tpu_core::model::job::Job;
use tpu_system::store::Tx;

use crate::Error;

/// A job as the state file has it: its record, or its place in a queue.
#[derive(Clone, Debug, PartialEq)]
struct Stored(Option<Job>, Option<QueueEntry>);

impl Stored {
    fn of(data: &Data, id: &JobId) -> Self {
        Self(data.job(id).cloned(), data.queues().entry(id).cloned())
    }
}

#[derive(Clone, Debug, Default)]
enum State {
    /// Nothing is insisted on, or it has held and the job was changed.
    #[default]
    Nothing,
    /// This job is to be as it was.
    On(Box<(JobId, Stored)>),
    /// It was another one by then.
    Broken,
}

/// What is insisted on in one request.
#[derive(Debug, Default)]
pub struct Insisted(Mutex<State>);

impl Insisted {
    /// Insists that a job is as it is in `data`, until this request has changed it.
    pub(super) fn on(&self, data: &Data, id: &JobId) {
        self.becomes(State::On(Box::new((id.clone(), Stored::of(data, id)))));
    }

    /// Whether the job was another one when it was to be changed, so that nothing was done.
    pub fn is_broken(&self) -> bool {
        matches!(self.state(), State::Broken)
    }

    /// Makes a change, if what is insisted on holds.
    pub(super) fn change<T>(
        &self,
        tx: &mut Tx<'_>,
        change: impl FnOnce(&mut Tx<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let State::On(insisted) = self.state() else { return change(tx) };
        let (id, stored) = *insisted;
        if Stored::of(&tx.data, &id) != stored {
            self.becomes(State::Broken);
            return Err(Error::refused(format!("{id} has changed since it was read"))
                .hint("read it again, and decide anew"));
        }
        let changed = change(tx)?;
        if Stored::of(&tx.data, &id) != stored {
            // What follows belongs to this change.
            self.becomes(State::Nothing);
        }
        Ok(changed)
    }

    fn state(&self) -> State {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn becomes(&self, state: State) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}
