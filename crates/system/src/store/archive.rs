//! Records that were cleaned away. A record is appended here before it leaves the data file, so a crash
//! in between leaves it in both places, never in none.

use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::{panic, vec};

use serde::Serialize;
use serde_json::Value;

use tpu_core::model::ids::{JobId, LaunchToken, UserName};
use tpu_core::model::job::{Job, StartTime};
use tpu_core::model::time::Timestamp;

use super::disk::Disk;
use super::error::StoreError;
use super::journal::NewestLines;
use crate::sys::threads::cores;

pub use tpu_core::model::archived::Archived;

/// So many lines are read at first: who wants the newest few waits for no more.
const FEW: usize = 32;
/// So many are read together at most.
const MANY: usize = 4_096;
/// So many are worth another thread.
const WORTH: usize = 512;

/// A line of the archive, as it is written.
#[derive(Serialize)]
pub(super) struct Line {
    /// When it was cleaned away.
    pub(super) at: Timestamp,
    /// By whom.
    pub(super) actor: String,
    /// Whose it was.
    pub(super) user: UserName,
    /// The record as it stood in the data file.
    pub(super) job: Value,
}

/// What tells one attempt from all others: numbers come again where somebody sets the next one, launches never.
#[derive(Debug, PartialEq, Eq, Hash)]
pub enum AttemptId {
    /// By the mark of its launch.
    Launch(LaunchToken),
    /// Of a record without one, by its number and its beginning.
    Number(JobId, String),
}

impl AttemptId {
    /// That of a record.
    pub fn of(job: &Job) -> Self {
        if let Some(launch) = &job.launch {
            return Self::Launch(launch.token.clone());
        }
        let began = match &job.start_time {
            StartTime::Unset => String::new(),
            StartTime::At(at) => at.to_rfc3339(),
            StartTime::Original(value) => value.to_string(),
        };
        Self::Number(job.id(), began)
    }
}

/// What is made of a record as soon as it is read.
type Make<T> = Arc<dyn Fn(Archived) -> T + Send + Sync>;

/// What was made of each attempt, and which it was.
type Made<T> = Vec<(AttemptId, T)>;

/// What is made of the records of an archive, the newest first, of each attempt once. Years of a lab are read by as many
/// threads as there are processors, ahead of whoever asks: they do all that is done for each record alone.
pub(super) struct Newest<'a, T> {
    lines: NewestLines<'a>,
    seen: HashSet<AttemptId>,
    make: Make<T>,
    /// What was read and not yet given out.
    read: vec::IntoIter<(AttemptId, T)>,
    /// What is being read, the newest first.
    ahead: VecDeque<JoinHandle<Made<T>>>,
    /// What stands behind it where the archive could not be read on.
    failure: Option<StoreError>,
    batch: usize,
}

impl<'a, T: Send + 'static> Newest<'a, T> {
    /// Without those that were `seen` elsewhere.
    pub(super) fn new(
        (disk, archive): (&'a dyn Disk, PathBuf),
        seen: HashSet<AttemptId>,
        make: impl Fn(Archived) -> T + Send + Sync + 'static,
    ) -> Self {
        Self {
            lines: NewestLines::new(disk, vec![archive]),
            seen,
            make: Arc::new(make),
            read: Vec::new().into_iter(),
            ahead: VecDeque::new(),
            failure: None,
            batch: FEW,
        }
    }

    /// Reads on. Whether there was anything.
    fn read_on(&mut self) -> bool {
        // Whoever wants a few waits for no more than these.
        if self.ahead.is_empty() && self.batch < WORTH {
            let lines = self.next_lines();
            let has_lines = !lines.is_empty();
            self.read = made(lines, &*self.make).into_iter();
            return has_lines;
        }
        while self.ahead.len() < cores() {
            let lines = self.next_lines();
            if lines.is_empty() {
                break;
            }
            let make = Arc::clone(&self.make);
            self.ahead.push_back(thread::spawn(move || made(lines, &*make)));
        }
        let Some(first) = self.ahead.pop_front() else { return false };
        // A thread that broke off has met what would have broken this one off, too.
        let read = first.join().unwrap_or_else(|defect| panic::resume_unwind(defect));
        self.read = read.into_iter();
        true
    }

    /// The lines of the next batch; none at the end, and where the archive cannot be read on.
    fn next_lines(&mut self) -> Vec<Vec<u8>> {
        let mut lines = Vec::with_capacity(self.batch);
        while lines.len() < self.batch && self.failure.is_none() {
            match self.lines.next_line() {
                Some(Ok(line)) => lines.push(line),
                Some(Err(error)) => self.failure = Some(error),
                None => break,
            }
        }
        self.batch = (self.batch * 4).min(MANY);
        lines
    }
}

impl<T: Send + 'static> Iterator for Newest<'_, T> {
    type Item = Result<T, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((attempt, made)) = self.read.next() {
                if self.seen.insert(attempt) {
                    return Some(Ok(made));
                }
            } else if !self.read_on() {
                return self.failure.take().map(Err);
            }
        }
    }
}

/// What is made of some lines, as far as they can be understood, in their order.
fn made<T>(lines: Vec<Vec<u8>>, make: &dyn Fn(Archived) -> T) -> Made<T> {
    let archived = lines.into_iter().filter_map(Archived::read);
    archived.map(|archived| (AttemptId::of(&archived.job), make(archived))).collect()
}
