//! One look at everything with what follows: what happens to each job by itself, where it would begin, and why it would
//! not. The screen, `check`, `--json` and the daemon all show what this returns; none computes a status of its own.
//!
//! Looking never writes. How jobs are is found by [`snapshot`].

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use tpu_core::model::data::Data;
use tpu_core::model::ids::JobId;
use tpu_core::model::rules::Action;
use tpu_core::model::target::Machines;
use tpu_core::model::view::{self, JobView, Next, Snapshot, Whose};
use tpu_core::plan::decide::{Decision, NoStart};
use tpu_core::plan::next;

use super::successor;
use crate::base::queue_entries::occupancy::Comebacks;
use crate::observe::fleet::ProviderFacts;
use crate::observe::snapshot::{self, ANSWER_SERVES, Known, LookMemory, Looked, LookedAt};
use crate::{Ctx, Error};

/// Looks at somebody's jobs.
pub fn look(ctx: &Ctx, memory: &mut LookMemory, whose: &Whose) -> Result<Snapshot, Error> {
    Ok(survey_of(ctx, memory, whose, ANSWER_SERVES)?.snapshot)
}

/// A look at everybody's jobs with what is to be done about each: what the daemon acts on, and what
/// `tpu daemon plan` prints.
#[derive(Debug)]
pub struct Survey {
    /// The look.
    pub snapshot: Snapshot,
    /// One for each of its jobs, in its order.
    pub decisions: Vec<Decision>,
    /// The records that it saw.
    pub data: Arc<Data>,
    /// What was said about the targets.
    pub fleet: Arc<ProviderFacts>,
}

/// Looks at everything and decides about every job, on an answer of the control plane that is younger than
/// `age`.
pub fn survey(ctx: &Ctx, memory: &mut LookMemory, age: Duration) -> Result<Survey, Error> {
    survey_of(ctx, memory, &Whose::default(), age)
}

fn survey_of(
    ctx: &Ctx,
    memory: &mut LookMemory,
    whose: &Whose,
    age: Duration,
) -> Result<Survey, Error> {
    snapshot::settled(ctx, |data, tmux| {
        let looked = snapshot::look_once(ctx, memory, whose, (data, tmux, age))?;
        let Looked { mut snapshot, decisions, known, has_ended } = looked;
        let outlook = Outlook { ctx, known: &known, comebacks: OnceCell::new() };
        let found = snapshot.jobs.iter_mut().zip(decisions);
        let decisions = found.map(|(view, decision)| outlook.complete(view, decision)).collect();
        let Known { data, fleet, .. } = known;
        Ok((Survey { snapshot, decisions, data, fleet }, has_ended))
    })
}

/// One job as it stands now.
pub fn look_at(ctx: &Ctx, id: &JobId) -> Result<JobView, Error> {
    look_at_and_remember(ctx, id, &mut LookMemory::default())
}

/// The same for whoever wants to know more of what the providers said.
pub(super) fn look_at_and_remember(
    ctx: &Ctx,
    id: &JobId,
    memory: &mut LookMemory,
) -> Result<JobView, Error> {
    snapshot::settled(ctx, |data, tmux| {
        let looked = snapshot::look_once_at(ctx, id, memory, (data, tmux))?;
        let LookedAt { mut view, decision, known, has_ended } = looked;
        let outlook = Outlook { ctx, known: &known, comebacks: OnceCell::new() };
        outlook.complete(&mut view, decision);
        view::entitle(std::slice::from_mut(&mut view));
        Ok((view, has_ended))
    })
}

/// What all jobs of one look share.
struct Outlook<'a> {
    ctx: &'a Ctx,
    known: &'a Known,
    /// Which limits are reached, once somebody would come back.
    comebacks: OnceCell<Comebacks<'a>>,
}

impl Outlook<'_> {
    /// Completes what a look found of a job: what is next of it, and the decision with where it would begin.
    fn complete(&self, view: &mut JobView, decision: Decision) -> Decision {
        let decision = self.with_start(&view.id, decision);
        let next = next::next(&decision, self.known.now);
        view.next = next.map(|next| self.promised(next, view));
        decision
    }

    /// What follows from a decision, given the daemon that is to act on it.
    fn promised(&self, next: Next, view: &JobView) -> Next {
        let Known { data, fleet, monitor, cloud, now } = self.known;
        let Some(monitor) = monitor else { return next::without_monitor(next) };
        if let Some(why) = &monitor.watches {
            return next::while_watching(next, why);
        }
        // The usual provider has a say only about machines that are a provider's, and no other's.
        let has_cloud = || {
            let registered = data.registration(&view.target);
            let has_own = registered.is_some_and(|known| known.provider.is_some());
            !has_own && fleet.fact(data, &view.target).machines == Machines::Provided
        };
        if let Some(its) = monitor.cloud.as_ref().filter(|its| *its != cloud && has_cloud()) {
            return next::by_another_cloud(&next, (its, cloud));
        }
        match monitor.troubles.get(&view.id.to_string()) {
            Some(trouble) => next::after_trouble(next, (&trouble.why, trouble.again), *now),
            None => next,
        }
    }

    /// A decision, once it is known where what it would start would begin, and what came of the last try.
    fn with_start(&self, id: &JobId, decision: Decision) -> Decision {
        if decision.action == Action::Pass {
            return decision;
        }
        let Known { data, fleet, .. } = self.known;
        let (Some(user), Some(job)) = (data.user(&id.user), data.job(id)) else { return decision };
        let start = successor::could_begin(self.ctx, (data, fleet), user, job, decision.action);
        // What a person has to set right is said before what passes by itself.
        let start = start.and_then(|start| {
            let comebacks = self.comebacks.get_or_init(|| Comebacks::of(self.ctx, data));
            comebacks.may_begin(job).map(|()| start)
        });
        decision.beginning_at(
            job,
            start.map_err(|error| NoStart {
                is_lasting: !error.passes
                    && matches!(
                        error.kind,
                        crate::Kind::Refused | crate::Kind::NotFound | crate::Kind::Usage
                    ),
                why: error.message,
            }),
        )
    }
}
