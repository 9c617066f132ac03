//! Carries actions out, each on a thread of its own: a lineage that takes its time holds no other up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use tpu_core::model::ids::JobId;
use tpu_core::model::job::Succession;
use tpu_core::model::rules::Action;
use tpu_core::plan::returned::Returned;
use tpu_ops::act::kill;
use tpu_ops::act::kill::Unreached;
use tpu_ops::act::launch::plan::Reaction;
use tpu_ops::act::missed::{self, Reattached};
use tpu_ops::act::resume::{self, Again};
use tpu_ops::act::returned;
use tpu_ops::base::watch;
use tpu_ops::front::recover;
use tpu_ops::waiting::queue::pass::{self, Hauling};
use tpu_ops::{Ctx, Error};
use tpu_system::sys::clock::Clock;

/// Actions at the same time. More wait for the next turn.
const AT_ONCE: usize = 16;

/// How often the last ones are looked at.
const POLL: Duration = Duration::from_millis(20);

/// A job whose task failed is left alone for so long at first, twice as long each time, and at most so long.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);

/// What is to be done with a job.
#[derive(Debug)]
pub(super) enum Task {
    /// Complete a kill.
    Kill,
    /// Ask its workers whether it goes on without its window, and open one again.
    Reattach,
    /// It was lost and is there again: end it, or its successor.
    Returned(Returned),
    /// Start its successor.
    Again(Succession, Box<Reaction>),
    /// Make its target usable, then start its successor.
    Recover(Action, Box<Reaction>),
    /// Carry a checkpoint to another region for what waits in the queue, then start that.
    Haul(Box<Hauling>),
}

impl Task {
    /// How many reactions the lineage had behind it when this one was decided; none for what no rule asks for.
    fn reactions(&self) -> Option<(u32, u32)> {
        match self {
            Self::Kill | Self::Reattach | Self::Returned(_) | Self::Haul(_) => None,
            Self::Again(_, reaction) | Self::Recover(_, reaction) => {
                let recovery = reaction.seen.recovery.as_ref();
                Some(recovery.map_or((0, 0), |recovery| (recovery.capacity, recovery.infra)))
            }
        }
    }
}

/// The actions under way, by the job that each is about.
#[derive(Debug, Default)]
pub(super) struct Crew {
    at_work: BTreeMap<JobId, AtWork>,
    /// The last trouble with each job whose task has failed.
    trouble: BTreeMap<JobId, FailedTry>,
    /// Why the last try came to nothing, for each job that is to be tried again.
    in_vain: BTreeMap<JobId, String>,
    report: Vec<String>,
}

/// An action under way.
#[derive(Debug)]
struct AtWork {
    told: Receiver<Result<String, Error>>,
    /// See [`Task::reactions`].
    reactions: Option<(u32, u32)>,
}

/// A failure that costs no attempt (a worker that cannot be reached, a disk that is full) would be met again
/// at once, and each try writes: so the job rests first.
#[derive(Debug)]
struct FailedTry {
    /// As it was said; the same is not said again.
    line: String,
    /// How long the job rests this time.
    rest: Duration,
    /// When the next try may begin, on the monotonic clock.
    until: Duration,
    /// Of the task that failed. One with more behind it is another reaction, paced by the record's budget.
    reactions: Option<(u32, u32)>,
}

impl Crew {
    /// Whether something is being done with the job.
    pub(super) fn is_busy(&self, job: &JobId) -> bool {
        self.at_work.contains_key(job)
    }

    /// How long the job is still left alone after a failure.
    pub(super) fn rest_of(&self, job: &JobId, now: Duration) -> Duration {
        self.trouble.get(job).map_or(Duration::ZERO, |trouble| trouble.until.saturating_sub(now))
    }

    /// Somebody says that things have changed: nothing rests any longer.
    pub(super) fn rouse(&mut self) {
        for trouble in self.trouble.values_mut() {
            (trouble.rest, trouble.until) = (Duration::ZERO, Duration::ZERO);
        }
    }

    /// Forgets the trouble with jobs for which nothing is done and nothing is left to do.
    pub(super) fn keep(&mut self, wanted: impl Fn(&JobId) -> bool) {
        let at_work = &self.at_work;
        self.trouble.retain(|job, _| at_work.contains_key(job) || wanted(job));
    }

    /// Forgets why jobs were tried in vain that are not to be tried again.
    pub(super) fn keep_in_vain(&mut self, planned: impl Fn(&JobId) -> bool) {
        self.in_vain.retain(|job, _| planned(job));
    }

    /// What is tried in vain, for everybody who asks what will happen.
    pub(super) fn troubles(&self, clock: &dyn Clock) -> BTreeMap<String, watch::FailedTry> {
        let now = clock.now();
        let told = self.in_vain.iter().map(|(job, why)| {
            let again = now.plus(self.rest_of(job, clock.monotonic()));
            (job.to_string(), watch::FailedTry { why: why.clone(), again })
        });
        told.collect()
    }

    /// Begins a task, unless the job or the whole crew is busy, or the job rests.
    pub(super) fn set_to(&mut self, ctx: &Arc<Ctx>, job: JobId, task: Task) {
        let reactions = task.reactions();
        if self.trouble.get(&job).is_some_and(|trouble| trouble.reactions != reactions) {
            self.trouble.remove(&job);
        }
        let rests = self.rest_of(&job, ctx.clock.monotonic()) > Duration::ZERO;
        if rests || self.at_work.len() >= AT_ONCE || self.is_busy(&job) {
            return;
        }
        let (ctx, id) = (Arc::clone(ctx), job.clone());
        let (tell, told) = channel();
        self.at_work.insert(job, AtWork { told, reactions });
        let threads = Arc::clone(&ctx.threads);
        threads.spawn(Box::new(move || {
            // Nobody asks any more once the daemon has ended.
            drop(tell.send(carry_out(&ctx, &id, task)));
        }));
    }

    /// Takes note of what has ended. Whether anything has.
    pub(super) fn reap(&mut self, now: Duration) -> bool {
        let mut done = Vec::new();
        self.at_work.retain(|job, at_work| {
            let result = match at_work.told.try_recv() {
                Ok(result) => result,
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => {
                    Err(Error::failed("cut short by a defect of tpu")
                        .hint("please report what the daemon's window shows"))
                }
            };
            done.push((job.clone(), at_work.reactions, result));
            false
        });
        let any = !done.is_empty();
        for (job, reactions, result) in done {
            self.note(job, reactions, result, now);
        }
        any
    }

    /// Takes note of how one task has ended.
    fn note(
        &mut self,
        job: JobId,
        reactions: Option<(u32, u32)>,
        result: Result<String, Error>,
        now: Duration,
    ) {
        let before = self.trouble.remove(&job);
        let error = match result {
            Ok(line) => {
                self.in_vain.remove(&job);
                return self.report.push(line);
            }
            Err(error) => error,
        };
        let why = error.message.lines().next().unwrap_or_default().to_owned();
        self.in_vain.insert(job.clone(), why);
        let line = format!("{job}: {error}");
        if before.as_ref().is_none_or(|trouble| trouble.line != line) {
            self.report.push(line.clone());
        }
        let rested = before.map_or(Duration::ZERO, |trouble| trouble.rest);
        let rest = (2 * rested).clamp(FIRST_REST, LONGEST_REST);
        self.trouble.insert(job, FailedTry { line, rest, until: now + rest, reactions });
    }

    /// What is to be said about ended tasks.
    pub(super) fn take_report(&mut self) -> Vec<String> {
        std::mem::take(&mut self.report)
    }

    /// Waits for the tasks under way, but not for ever.
    pub(super) fn finish(&mut self, clock: &dyn Clock, patience: Duration) {
        let deadline = clock.monotonic() + patience;
        while !self.at_work.is_empty() && clock.monotonic() < deadline {
            self.reap(clock.monotonic());
            clock.sleep(POLL);
        }
    }
}

fn carry_out(ctx: &Ctx, id: &JobId, task: Task) -> Result<String, Error> {
    match task {
        Task::Kill => {
            kill::kill_one(ctx, id, Unreached::Refuse)?;
            Ok(format!("{id}: a kill was completed"))
        }
        Task::Reattach => Ok(match missed::reattach(ctx, id)? {
            Reattached::Reopened => {
                format!("{id} continues on its workers: its window is open again")
            }
            Reattached::ReopenedInVain => {
                return Err(Error::failed(format!(
                    "{id} continues on its workers; its window is open again, and nothing was heard in the one before"
                ))
                .hint(format!("what it says: tpu attach w={} {}", id.window, id.user)));
            }
            Reattached::Over => format!("{id}: nothing of it is on its workers any more"),
            Reattached::Here => format!("{id} has its window"),
        }),
        Task::Returned(who) => returned::settle(ctx, id, who),
        Task::Again(how, reaction) => {
            let request = resume::by_rules(id, how);
            let again = resume::by_rule(ctx, &request, &reaction)?;
            Ok(brought_back(id, how.verb(), &reaction, again))
        }
        Task::Recover(action, reaction) => {
            let again = recover::recover(ctx, id, action, &reaction)?;
            Ok(brought_back(id, action.as_str(), &reaction, again))
        }
        Task::Haul(haul) => pass::carry_over(ctx, &haul),
    }
}

/// What was done, on one line.
fn brought_back(id: &JobId, verb: &str, reaction: &Reaction, again: Again) -> String {
    let child = again.launched.job.window;
    let mut line = format!("{id}: {verb} after {}, in window {child}", reaction.event);
    for warning in again.warnings {
        line += &format!("; {warning}");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    fn alice(window: u64) -> JobId {
        JobId::parse(&format!("alice/{window}")).unwrap()
    }

    fn unreachable() -> Result<String, Error> {
        Err(Error::unreachable("worker 3 does not answer"))
    }

    /// The rests after failures that follow each other at once.
    fn rests(crew: &mut Crew, job: &JobId, failures: usize) -> Vec<u64> {
        let mut now = NOW;
        let mut fail = || {
            crew.note(job.clone(), None, unreachable(), now);
            let rest = crew.rest_of(job, now);
            now += rest;
            assert_eq!(crew.rest_of(job, now), Duration::ZERO, "then it may be tried");
            rest.as_secs()
        };
        (0..failures).map(|_| fail()).collect()
    }

    #[test]
    fn a_job_whose_task_fails_rests_longer_each_time_and_is_named_once() {
        let (mut crew, job) = (Crew::default(), alice(1));
        assert_eq!(rests(&mut crew, &job, 8), [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(crew.take_report().len(), 1);
        assert_eq!(crew.rest_of(&alice(2), NOW), Duration::ZERO, "others do not");
    }

    #[test]
    fn a_success_a_change_and_a_word_from_a_person_end_the_rest() {
        let (mut crew, job) = (Crew::default(), alice(1));
        let fail = |crew: &mut Crew| rests(crew, &job, 3);
        assert_eq!(fail(&mut crew), [1, 2, 4]);
        crew.note(job.clone(), None, Ok("resumed".to_owned()), NOW);
        assert_eq!(fail(&mut crew), [1, 2, 4]);
        crew.keep(|_| false);
        assert_eq!(fail(&mut crew), [1, 2, 4]);
        crew.rouse();
        assert_eq!(crew.rest_of(&job, NOW), Duration::ZERO);
        assert_eq!(fail(&mut crew), [1, 2, 4]);
    }
}
