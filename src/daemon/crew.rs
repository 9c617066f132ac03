//! Carries actions out, each on a thread of its own: a lineage that takes its time holds no other up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use crate::model::ids::JobId;
use crate::model::job::Succession;
use crate::model::rules::Action;
use crate::ops::launch::plan::Reaction;
use crate::ops::resume::{self, Again, AgainRequest};
use crate::ops::{Ctx, Error, kill, recover};
use crate::sys::clock::Clock;

/// Actions at the same time. More wait for the next turn.
const AT_ONCE: usize = 16;

/// How often the last ones are looked at.
const POLL: Duration = Duration::from_millis(20);

/// What is to be done with a job.
#[derive(Debug)]
pub(super) enum Task {
    /// Complete a kill.
    Kill,
    /// Start its successor.
    Again(Succession, Box<Reaction>),
    /// Make its target usable, then start its successor.
    Recover(Action, Box<Reaction>),
}

/// The actions under way, by the job that each is about.
#[derive(Debug, Default)]
pub(super) struct Crew {
    at_work: BTreeMap<JobId, Receiver<Result<String, Error>>>,
    /// The last trouble with each job, so that it is said once.
    trouble: BTreeMap<JobId, String>,
    report: Vec<String>,
}

impl Crew {
    /// Whether something is being done with the job.
    pub(super) fn is_busy(&self, job: &JobId) -> bool {
        self.at_work.contains_key(job)
    }

    /// Begins a task, unless the job or the whole crew is busy.
    pub(super) fn set_to(&mut self, ctx: &Arc<Ctx>, job: JobId, task: Task) {
        if self.at_work.len() >= AT_ONCE || self.is_busy(&job) {
            return;
        }
        let (ctx, id) = (Arc::clone(ctx), job.clone());
        let (tell, told) = channel();
        self.at_work.insert(job, told);
        let threads = Arc::clone(&ctx.threads);
        threads.spawn(Box::new(move || {
            // Nobody asks any more once MONITOR has ended.
            drop(tell.send(carry_out(&ctx, &id, task)));
        }));
    }

    /// Takes note of what has ended. Whether anything has.
    pub(super) fn reap(&mut self) -> bool {
        let mut done = Vec::new();
        self.at_work.retain(|job, told| {
            let result = match told.try_recv() {
                Ok(result) => result,
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => {
                    Err(Error::failed("cut short by a defect of tpu")
                        .hint("please report what MONITOR's window shows"))
                }
            };
            done.push((job.clone(), result));
            false
        });
        let any = !done.is_empty();
        for (job, result) in done {
            match result {
                Ok(line) => {
                    self.trouble.remove(&job);
                    self.report.push(line);
                }
                Err(error) => {
                    let line = format!("{job}: {error}");
                    if self.trouble.insert(job.clone(), line.clone()).as_ref() != Some(&line) {
                        self.report.push(line);
                    }
                }
            }
        }
        any
    }

    /// What is to be said about ended tasks.
    pub(super) fn take_report(&mut self) -> Vec<String> {
        std::mem::take(&mut self.report)
    }

    /// Waits for the tasks under way, but not for ever.
    pub(super) fn finish(&mut self, clock: &dyn Clock, patience: Duration) {
        let deadline = clock.monotonic() + patience;
        while !self.at_work.is_empty() && clock.monotonic() < deadline {
            self.reap();
            clock.sleep(POLL);
        }
    }
}

fn carry_out(ctx: &Ctx, id: &JobId, task: Task) -> Result<String, Error> {
    match task {
        Task::Kill => {
            kill::kill_one(ctx, id)?;
            Ok(format!("{id}: a kill was completed"))
        }
        Task::Again(how, reaction) => {
            let request = AgainRequest { job: id.clone(), how, target: None, force: false };
            let again = resume::by_rule(ctx, &request, &reaction)?;
            Ok(brought_back(id, how.verb(), &reaction, again))
        }
        Task::Recover(action, reaction) => {
            let again = recover::recover(ctx, id, action, &reaction)?;
            Ok(brought_back(id, action.as_str(), &reaction, again))
        }
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
