//! `run`: check everything, claim a record, open a window, confirm.
//!
//! [`check`] turns a request into a [`plan::LaunchPlan`] and reports all problems together; `attempt`
//! carries a plan out (shared with resume and rerun) through the runner of its target; [`reconcile`] settles launches whose `tpu` died between claim and confirmation.

pub mod attempt;
pub mod check;
pub mod code;
mod command;
pub mod group;
pub mod plan;
pub mod room;
mod settle;
mod turn;
mod unsubmitted;

use tpu_core::model::data::Data;
use tpu_core::model::execution::{Copying, Execution};
use tpu_core::model::ids::UserName;
use tpu_core::model::job::LaunchMode;
use tpu_core::model::spec::{JobSpec, Staged, TargetRequest};
use tpu_core::model::target::Machines;
use tpu_core::plan::choice::Assignment;
use tpu_engine::runner::Environment;

use super::lately::Lately;
use super::provision::Tell;
use super::{notices, provision, reconcile};
use crate::base::environment::WantedEnvironment;
use crate::{Ctx, Error};
use attempt::Launched;

use group::LaunchedGroup;
use plan::{LaunchPlan, Provided, Turn};

/// A job to be started now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRequest {
    /// Whose job.
    pub user: UserName,
    /// What it is to do.
    pub spec: JobSpec,
    /// The target that was chosen for it, where the specification names none.
    pub on: Option<Assignment>,
    /// Go on where a check would refuse.
    pub force: bool,
    /// Whether its code is copied however much it is.
    pub copies_all: bool,
    /// What it has of the environment in which it is asked for.
    pub environment: WantedEnvironment,
}

impl RunRequest {
    /// A job of a user; it has nothing of an environment, and every check counts.
    pub fn new(user: UserName, spec: JobSpec) -> Self {
        let environment = WantedEnvironment::default();
        Self { user, spec, on: None, force: false, copies_all: false, environment }
    }

    /// The target, as typed or as chosen.
    pub fn target(&self) -> &str {
        match (&self.on, &self.spec.target) {
            (Some(chosen), _) => chosen.target.as_str(),
            (None, TargetRequest::Named(name)) => name,
            (None, TargetRequest::Any(_)) => "",
        }
    }

    /// The same with the target that was chosen for it.
    #[must_use]
    pub fn on(&self, chosen: &Assignment) -> Self {
        Self { on: Some(chosen.clone()), ..self.clone() }
    }
}

/// Starts a job.
pub fn launch(ctx: &Ctx, request: &RunRequest) -> Result<Launched, Error> {
    reconcile::reconcile(ctx)?;
    let plan = check::check(ctx, request, Provided::Already)?;
    notices::begin_for(ctx, &plan.spec)?;
    attempt::start(ctx, &plan, None)
}

/// Starts the jobs of a group.
pub(crate) fn launch_group(ctx: &Ctx, request: &RunRequest) -> Result<LaunchedGroup, Error> {
    reconcile::reconcile(ctx)?;
    let plan = check::check(ctx, request, Provided::Already)?;
    notices::begin_for(ctx, &plan.spec)?;
    group::start(ctx, &plan)
}

/// A plan for what has waited in the queue: its turn there, and the environment in which it was asked for. What others
/// left half done is settled before, once for all that begin together.
pub(crate) fn plan_in_turn(
    ctx: &Ctx,
    request: &RunRequest,
    (turn, env): (&Turn, Environment),
    lately: &Lately,
) -> Result<LaunchPlan, Error> {
    let environment =
        WantedEnvironment { given: env.given.clone(), ..WantedEnvironment::default() };
    let request = &RunRequest { environment, ..request.clone() };
    let plan = check::check_lately(ctx, request, (Provided::Already, true), lately)?;
    // A copy is run from as it is, where others of its target lie beside it: else that is another disk.
    let beside = format!("{}/", plan.roots.stage);
    let staged = plan.spec.staged.as_ref().filter(|_| plan.mode == LaunchMode::Native);
    let copy = staged.map(|staged| &staged.copy).filter(|copy| copy.starts_with(&beside));
    let data = ctx.data()?;
    let shares = shares_copy(&plan.spec) && may_run_beside(&plan);
    let copy = copy.filter(|copy| shares || is_for_one(&data, &plan.spec, turn, copy)).cloned();
    Ok(LaunchPlan { turn: Some(turn.clone()), env, stage_dir: copy, ..plan })
}

/// Whether a job runs from one copy with the other members of its group. Those of earlier versions have their own.
pub(crate) fn shares_copy(spec: &JobSpec) -> bool {
    let Execution { copying, copies_each, .. } = spec.execution;
    (spec.member.is_some() || spec.array.is_some()) && !copies_each && copying != Copying::Unignored
}

/// Whether the other members of a group are on the same target, or this one sees the disk of this machine. Else one would
/// write in their copy while it is packed for another.
fn may_run_beside(plan: &LaunchPlan) -> bool {
    let is_named = matches!(plan.spec.target, TargetRequest::Named(_));
    is_named || plan.target.is_here() || plan.target.machines == Machines::Engine
}

/// Whether one job alone is to run from a copy: several would write over what the others write beside their code.
fn is_for_one(data: &Data, spec: &JobSpec, turn: &Turn, copy: &str) -> bool {
    let is_it = |staged: Option<&Staged>| staged.is_some_and(|staged| staged.copy == copy);
    let others = data.queues().entries.iter().filter(|entry| entry.id() != turn.entry);
    spec.member.is_none()
        && spec.array.is_none()
        && !others.into_iter().any(|entry| is_it(entry.spec.staged.as_ref()))
        && !data.jobs().any(|job| is_it(job.staged()))
}

/// Makes the target of a request usable, if nothing else speaks against the launch: creates it again if it
/// was taken away, starts it, or waits for it. Tells each step. To be followed by [`launch`].
pub fn provide_target(ctx: &Ctx, request: &RunRequest, tell: Tell<'_>) -> Result<(), Error> {
    let plan = check::check(ctx, request, Provided::Later)?;
    provision::make_usable(ctx, &plan.target.name, tell)
}

/// What [`launch`] would do; nothing is changed.
pub fn plan(ctx: &Ctx, request: &RunRequest) -> Result<LaunchPlan, Error> {
    check::check(ctx, request, Provided::Already)
}
