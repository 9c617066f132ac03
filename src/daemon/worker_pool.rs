//! Work under way, each piece on a thread of its own: one that takes its time holds no other up.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use tpu_ops::{Ctx, Error};
use tpu_system::sys::clock::Clock;

use super::wait_at_most;

/// Pieces of work at the same time. More wait for the next turn.
const AT_ONCE: usize = 16;

/// What has failed is left alone for so long at first, twice as long each time, and at most so long.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);

/// How many reactions of its rules a job had behind it when a piece of work was decided: for lost capacity, and for
/// failed infrastructure. None for work that no rule asks for.
pub(super) type Reactions = Option<(u32, u32)>;

/// The work under way, by the job or the target that each piece is about.
#[derive(Debug)]
pub(super) struct WorkerPool<K> {
    at_work: BTreeMap<K, AtWork>,
    /// The last trouble with each whose work has failed.
    trouble: BTreeMap<K, FailedTry>,
    /// Why the last try failed, for each that is to be tried again.
    in_vain: BTreeMap<K, String>,
    report: Vec<String>,
}

/// A piece of work under way.
#[derive(Debug)]
struct AtWork {
    told: Receiver<Result<String, Error>>,
    reactions: Reactions,
}

/// A failure that costs no attempt (a worker that cannot be reached, a disk that is full) would be met again
/// at once, and each try writes: so the next one waits.
#[derive(Debug)]
struct FailedTry {
    /// The line of the report; the same is not reported again.
    line: String,
    /// The rest before the next try.
    rest: Duration,
    /// When the next try may begin, on the monotonic clock.
    until: Duration,
    /// Of the work that failed. Work with more behind it is another reaction, paced by the record's budget.
    reactions: Reactions,
}

impl<K> Default for WorkerPool<K> {
    fn default() -> Self {
        Self {
            at_work: BTreeMap::new(),
            trouble: BTreeMap::new(),
            in_vain: BTreeMap::new(),
            report: Vec::new(),
        }
    }
}

impl<K: Clone + Display + Ord + Send + 'static> WorkerPool<K> {
    /// Whether work on this one is under way.
    pub(super) fn is_busy(&self, key: &K) -> bool {
        self.at_work.contains_key(key)
    }

    /// How long this one is still left alone after a failure.
    pub(super) fn rest_of(&self, key: &K, now: Duration) -> Duration {
        self.trouble.get(key).map_or(Duration::ZERO, |trouble| trouble.until.saturating_sub(now))
    }

    /// How long the first of those that are left alone has still to wait, if there is one.
    pub(super) fn first_rest(&self, now: Duration) -> Option<Duration> {
        let left = self.trouble.values().map(|trouble| trouble.until.saturating_sub(now));
        left.filter(|left| !left.is_zero()).min()
    }

    /// Somebody says that things have changed: nothing is left alone any longer.
    pub(super) fn rouse(&mut self) {
        for trouble in self.trouble.values_mut() {
            (trouble.rest, trouble.until) = (Duration::ZERO, Duration::ZERO);
        }
    }

    /// Forgets the trouble where no work is under way and none is left.
    pub(super) fn keep(&mut self, wanted: impl Fn(&K) -> bool) {
        let at_work = &self.at_work;
        self.trouble.retain(|key, _| at_work.contains_key(key) || wanted(key));
    }

    /// Forgets why tries failed where none is planned.
    pub(super) fn keep_in_vain(&mut self, planned: impl Fn(&K) -> bool) {
        self.in_vain.retain(|key, _| planned(key));
    }

    /// Why the last try failed, of each that is to be tried again.
    pub(super) fn in_vain(&self) -> impl Iterator<Item = (&K, &String)> {
        self.in_vain.iter()
    }

    /// Begins a piece of work, unless this one or the whole pool is busy, or it is left alone.
    pub(super) fn begin(
        &mut self,
        ctx: &Arc<Ctx>,
        key: K,
        reactions: Reactions,
        work: impl FnOnce(&Arc<Ctx>, &K) -> Result<String, Error> + Send + 'static,
    ) {
        if self.trouble.get(&key).is_some_and(|trouble| trouble.reactions != reactions) {
            self.trouble.remove(&key);
        }
        let rests = self.rest_of(&key, ctx.clock.monotonic()) > Duration::ZERO;
        if rests || self.at_work.len() >= AT_ONCE || self.is_busy(&key) {
            return;
        }
        let (tell, told) = channel();
        self.at_work.insert(key.clone(), AtWork { told, reactions });
        let ctx = Arc::clone(ctx);
        ctx.clone().threads.spawn(Box::new(move || {
            // Nobody asks any more once the daemon has ended.
            drop(tell.send(work(&ctx, &key)));
        }));
    }

    /// Takes note of what has ended. Whether anything has.
    pub(super) fn reap(&mut self, now: Duration) -> bool {
        let mut done = Vec::new();
        self.at_work.retain(|key, at_work| {
            let result = match at_work.told.try_recv() {
                Ok(result) => result,
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => {
                    Err(Error::failed("cut short by a defect of tpu"))
                }
            };
            done.push((key.clone(), at_work.reactions, result));
            false
        });
        let any = !done.is_empty();
        for (key, reactions, result) in done {
            self.note(key, reactions, result, now);
        }
        any
    }

    /// Takes note of how one piece of work has ended.
    fn note(&mut self, key: K, reactions: Reactions, result: Result<String, Error>, now: Duration) {
        let before = self.trouble.remove(&key);
        let error = match result {
            Ok(line) => {
                self.in_vain.remove(&key);
                return self.report.push(line);
            }
            Err(error) => error,
        };
        let why = error.message.lines().next().unwrap_or_default().to_owned();
        self.in_vain.insert(key.clone(), why);
        let line = format!("{key}: {error}");
        if before.as_ref().is_none_or(|trouble| trouble.line != line) {
            self.report.push(line.clone());
        }
        let rested = before.map_or(Duration::ZERO, |trouble| trouble.rest);
        let rest = (2 * rested).clamp(FIRST_REST, LONGEST_REST);
        self.trouble.insert(key, FailedTry { line, rest, until: now + rest, reactions });
    }

    /// Lines about the work that has ended, for the daemon's window.
    pub(super) fn take_report(&mut self) -> Vec<String> {
        std::mem::take(&mut self.report)
    }

    /// Waits for what is under way, but not for ever.
    pub(super) fn finish(&mut self, clock: &dyn Clock, patience: Duration) {
        wait_at_most(clock, patience, || {
            self.reap(clock.monotonic());
            self.at_work.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::ids::JobId;

    const NOW: Duration = Duration::from_secs(100);

    fn alice(window: u64) -> JobId {
        JobId::parse(&format!("alice/{window}")).unwrap()
    }

    fn unreachable() -> Result<String, Error> {
        Err(Error::unreachable("worker 3 does not answer"))
    }

    /// The rests after failures that follow each other at once.
    fn rests(pool: &mut WorkerPool<JobId>, job: &JobId, failures: usize) -> Vec<u64> {
        let mut now = NOW;
        let mut fail = || {
            pool.note(job.clone(), None, unreachable(), now);
            let rest = pool.rest_of(job, now);
            now += rest;
            assert_eq!(pool.rest_of(job, now), Duration::ZERO, "then it may be tried");
            rest.as_secs()
        };
        (0..failures).map(|_| fail()).collect()
    }

    #[test]
    fn a_job_whose_task_fails_rests_longer_each_time_and_is_named_once() {
        let (mut pool, job) = (WorkerPool::default(), alice(1));
        assert_eq!(rests(&mut pool, &job, 8), [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pool.take_report().len(), 1);
        assert_eq!(pool.rest_of(&alice(2), NOW), Duration::ZERO, "others do not");
    }

    #[test]
    fn a_success_a_change_and_a_word_from_a_person_end_the_rest() {
        let (mut pool, job) = (WorkerPool::default(), alice(1));
        let fail = |pool: &mut WorkerPool<JobId>| rests(pool, &job, 3);
        assert_eq!(fail(&mut pool), [1, 2, 4]);
        pool.note(job.clone(), None, Ok("resumed".to_owned()), NOW);
        assert_eq!(fail(&mut pool), [1, 2, 4]);
        pool.keep(|_| false);
        assert_eq!(fail(&mut pool), [1, 2, 4]);
        pool.rouse();
        assert_eq!(pool.rest_of(&job, NOW), Duration::ZERO);
        assert_eq!(fail(&mut pool), [1, 2, 4]);
    }
}
