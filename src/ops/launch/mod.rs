//! `run`: check everything, claim a record, open a window, confirm.
//!
//! [`check`] turns a request into a [`plan::LaunchPlan`] and reports all problems together; `attempt`
//! carries a plan out (shared with resume and rerun); `files` is what lies beside the launcher script;
//! `heal` settles launches whose `tpu` died between claim and confirmation.

pub mod attempt;
pub mod check;
pub mod files;
pub mod plan;
pub mod reconcile;

use std::ffi::OsString;

use crate::model::ids::UserName;

use super::provision::{self, Wish};
use super::{Ctx, Error};
use attempt::Launched;
use check::Provided;
use plan::LaunchPlan;

/// `tpu run`, resolved.
#[derive(Clone, Debug)]
pub struct LaunchRequest {
    /// Whose job.
    pub user: UserName,
    /// Target, alias or full name.
    pub target: String,
    /// Directory slot.
    pub dir: u32,
    /// `key=value`, in order, keys as typed.
    pub configs: Vec<(String, String)>,
    /// Tag.
    pub tag: Option<String>,
    /// Rules, as typed; the target's default when missing.
    pub rule: Option<String>,
    /// Whether MONITOR may act.
    pub monitor: bool,
    /// Notes, kept with the job.
    pub notes: Option<String>,
    /// Pass the number of resumes to the program.
    pub log_stage: bool,
    /// Go on where a check would refuse.
    pub force: bool,
    /// Run this instead of `staging.sh`.
    pub command: Option<Vec<OsString>>,
}

/// Starts a job.
pub fn launch(ctx: &Ctx, request: &LaunchRequest) -> Result<Launched, Error> {
    reconcile::reconcile(ctx)?;
    let plan = check::check(ctx, request, Provided::Already)?;
    attempt::start(ctx, &plan, None)
}

/// Starts a job that has waited in line: its place there, and the environment in which it was asked for.
pub fn launch_in_turn(
    ctx: &Ctx,
    request: &LaunchRequest,
    (ticket, env): (&str, Vec<(OsString, OsString)>),
) -> Result<Launched, Error> {
    reconcile::reconcile(ctx)?;
    let plan = check::check(ctx, request, Provided::Already)?;
    let plan = LaunchPlan { ticket: Some(ticket.to_owned()), env: Some(env), ..plan };
    attempt::start(ctx, &plan, None)
}

/// Makes the target of a request usable, if nothing else speaks against the launch: creates it again if it
/// was taken away, starts it, or waits for it. To be followed by [`launch`].
pub fn provide_target(ctx: &Ctx, request: &LaunchRequest) -> Result<(), Error> {
    let plan = check::check(ctx, request, Provided::Later)?;
    provision::provide(ctx, &plan.target.name, &Wish::default(), false).map(drop)
}

/// What [`launch`] would do; nothing is changed.
pub fn plan(ctx: &Ctx, request: &LaunchRequest) -> Result<LaunchPlan, Error> {
    check::check(ctx, request, Provided::Already)
}
