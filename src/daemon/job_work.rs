//! What the daemon does with jobs, and how each task is carried out.

use std::collections::BTreeMap;
use std::sync::Arc;

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

use super::worker_pool::{Reactions, WorkerPool};

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
    fn reactions(&self) -> Reactions {
        match self {
            Self::Kill | Self::Reattach | Self::Returned(_) | Self::Haul(_) => None,
            Self::Again(_, reaction) | Self::Recover(_, reaction) => {
                let recovery = reaction.seen.recovery.as_ref();
                Some(recovery.map_or((0, 0), |recovery| (recovery.capacity, recovery.infra)))
            }
        }
    }
}

/// The work under way on jobs.
pub(super) type Crew = WorkerPool<JobId>;

impl Crew {
    /// Begins a task, unless the job or the whole crew is busy, or the job is left alone.
    pub(super) fn set_to(&mut self, ctx: &Arc<Ctx>, job: JobId, task: Task) {
        self.begin(ctx, job, task.reactions(), |ctx, id| carry_out(ctx, id, task));
    }

    /// What is tried in vain, for everybody who asks what will happen.
    pub(super) fn troubles(&self, clock: &dyn Clock) -> BTreeMap<String, watch::FailedTry> {
        let now = clock.now();
        let told = self.in_vain().map(|(job, why)| {
            let again = now.plus(self.rest_of(job, clock.monotonic()));
            (job.to_string(), watch::FailedTry { why: why.clone(), again })
        });
        told.collect()
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
    let mut line = format!("{id}: {verb} after {}, as {}/{child}", reaction.event, id.user);
    for warning in again.warnings {
        line += &format!("; {warning}");
    }
    line
}
