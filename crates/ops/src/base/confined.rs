//! Jobs that are limited to some targets, because the token with which they were started is.
//!
//! The limit stands in what a job is to do ([`Execution::only_on`]): whoever starts it later, and whatever brings it back,
//! keeps to it. The one place that decides is [`may_run_on`].

use tpu_core::model::execution::Execution;
use tpu_core::model::order::TargetOrder;
use tpu_core::model::target::Target;
use tpu_core::model::target_limit::TargetLimit;

use crate::{Ctx, Error};

/// The limit of what is started now: that of whoever acts, else the one under which it was started before.
pub(crate) fn limit<'a>(ctx: &'a Ctx, execution: &'a Execution) -> &'a TargetLimit {
    if ctx.only_on.is_none() { &execution.only_on } else { &ctx.only_on }
}

/// The same of what was started before. What has waited keeps to its own; a person who has no limit, and says where it goes
/// on, lifts it.
pub(crate) fn limit_again<'a>(
    ctx: &'a Ctx,
    execution: &'a Execution,
    (is_queued, is_named): (bool, bool),
) -> &'a TargetLimit {
    match (is_queued, is_named) {
        (true, _) => &execution.only_on,
        (false, true) => &ctx.only_on,
        (false, false) => limit(ctx, execution),
    }
}

/// Refuses a target that is not within a limit.
pub fn may_run_on(limit: &TargetLimit, target: &Target) -> Result<(), Error> {
    if limit.allows(target) {
        return Ok(());
    }
    Err(beyond(target.name.as_str(), limit))
}

/// Refuses a target that would be made for a job: its name is its author's choice, so that its type decides.
pub(crate) fn may_order(limit: &TargetLimit, order: &TargetOrder) -> Result<(), Error> {
    let types = order.candidates.iter().map(|candidate| candidate.accelerator.as_str());
    match types.into_iter().find(|of| !limit.allows_name(of)) {
        None => Ok(()),
        Some(other) => Err(beyond(other, limit)),
    }
}

/// That something is not within a limit.
pub(crate) fn beyond(what: &str, limit: &TargetLimit) -> Error {
    Error::refused(format!("{what} is not among the targets of this token: {limit}"))
        .hint("take one of those; `tpu token list` shows what a token may use")
        .forbidden()
}

/// The targets of a list that are within a limit.
pub(crate) fn within(limit: &TargetLimit, mut targets: Vec<Target>) -> Vec<Target> {
    targets.retain(|target| limit.allows(target));
    targets
}
