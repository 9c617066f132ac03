//! What a token that is limited to some targets may not do: start, move or change anything elsewhere. What it starts is
//! limited by `ops`, which the surroundings of the request tell; here stands what it names.

use axum::http::Method;

use tpu_core::model::data::Data;
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::lineage::Lineage;
use tpu_core::model::spec::TargetRequest;
use tpu_core::model::target_limit::TargetLimit;

use super::asked::Asked;
use super::failure::Failure;
use super::route::Route;

/// Refuses what is about a target, or a job on a target, that is beyond the limit of the token.
pub(super) fn within(asked: &Asked<'_>, route: &Route) -> Result<(), Failure> {
    let limit = &asked.who.rights.only_on;
    if limit.is_none() || route.method == Method::GET {
        return Ok(());
    }
    if route.path.starts_with("/cloudmesh") {
        let what =
            format!("{} is limited to some targets, and Cloudmesh's routes are not", who(asked));
        return Err(Failure::forbidden(what, "POST /api/v1/jobs starts jobs on them"));
    }
    let data = asked.ctx.data()?;
    if let Some(target) = asked.text("target").and_then(|typed| data.resolve_target(typed)) {
        allowed(asked, limit.allows(&target), target.name.as_str())?;
    }
    if asked.text("number").is_some() {
        let job = asked.job();
        allowed(asked, is_lineage_within(limit, &data, &job), &job.to_string())?;
    }
    Ok(())
}

/// Refuses a type that a target within the limit was not, and that is not within the limit itself.
pub(super) fn may_become(
    asked: &Asked<'_>,
    (data, name): (&Data, &TargetName),
    accelerator: Option<&str>,
) -> Result<(), Failure> {
    let limit = &asked.who.rights.only_on;
    let Some(accelerator) = accelerator else { return Ok(()) };
    let was = data.target(name).and_then(|target| target.accelerator);
    let is_within = was.as_deref() == Some(accelerator) || limit.allows_name(accelerator);
    allowed(asked, limit.is_none() || is_within, accelerator)
}

/// Whether every attempt of the lineage of a job is within the limit: what is done to one is done to another, too. What
/// waits to continue from a job is of its lineage.
fn is_lineage_within(limit: &TargetLimit, data: &Data, id: &JobId) -> bool {
    let parent = data.queues().entry(id).and_then(|entry| entry.succeeds.as_ref()).map(|of| of.job);
    let of = |window| data.user(&id.user).and_then(|user| Lineage::of(user, window));
    let attempts = of(parent.unwrap_or(id.window)).map_or_else(Vec::new, |of| of.windows);
    let attempts = attempts.into_iter().map(|window| JobId::new(id.user.clone(), window));
    std::iter::once(id.clone()).chain(attempts).all(|job| is_job_within(limit, data, &job))
}

/// Whether a job is on a target within the limit, or waits for nothing else. What there is not has no target.
fn is_job_within(limit: &TargetLimit, data: &Data, id: &JobId) -> bool {
    let is_target_within = |name: &TargetName| match data.target(name) {
        Some(target) => limit.allows(&target),
        None => limit.allows_name(name.as_str()),
    };
    if let Some(job) = data.job(id) {
        return is_target_within(&job.tpu);
    }
    let Some(entry) = data.queues().entry(id) else { return true };
    if entry.spec.execution.only_on == *limit {
        return true;
    }
    let has_own_targets = data.queues().queue(&entry.queue).is_some_and(|of| !of.on.is_empty());
    match &entry.spec.target {
        TargetRequest::Named(name) if !has_own_targets => {
            data.resolve_target(name).is_some_and(|target| limit.allows(&target))
        }
        TargetRequest::Named(_) | TargetRequest::Any(_) => false,
    }
}

fn allowed(asked: &Asked<'_>, is_within: bool, what: &str) -> Result<(), Failure> {
    if is_within {
        return Ok(());
    }
    let limit = &asked.who.rights.only_on;
    let what = format!("{} is limited to {limit}, and may not act on {what}", who(asked));
    Err(Failure::forbidden(what, "it takes a token without that limit, or an admin's"))
}

fn who<'a>(asked: &Asked<'a>) -> &'a str {
    &asked.who.name
}
