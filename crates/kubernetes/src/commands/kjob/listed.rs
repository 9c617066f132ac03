//! `list`, `details`, `logs`.

use k8s_openapi::api::batch::v1::Job as BatchJob;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use tpu_core::text;
use tpu_engine::kinds::KindAnswer;
use tpu_engine::runner::RunError;

use super::super::table::table;
use super::at::At;
use super::ours;
use crate::facts;
use crate::names::LAUNCH;
use crate::request::{Labelled, LogQuestion, PATIENCE};
use crate::settle;

/// Lists the Jobs of ours, the newest first: two questions, however many there are.
pub(super) fn list(at: &At<'_>) -> Result<KindAnswer, RunError> {
    let site = &at.site;
    let answered = site.namespace().of_label(LAUNCH, PATIENCE);
    let Labelled { mut jobs, pods, .. } = answered.map_err(|trouble| site.error(&trouble))?;
    jobs.retain(|job| !settle::is_tombstone(job));
    jobs.sort_by_key(|job| std::cmp::Reverse(created(job)));
    let rows: Vec<Vec<String>> = jobs
        .iter()
        .map(|job| vec![name(job), status(job, &pods).to_owned(), created(job)])
        .collect();
    let all = rows.iter().map(|row| json!({"name": row[0], "status": row[1], "launched": row[2]}));
    let answer = json!({"jobs": all.collect::<Vec<_>>()});
    let text = table(&["Job Name", "Status", "Launch Date"], &rows);
    Ok(KindAnswer { text, answer, ..KindAnswer::default() })
}

/// The name of a Job.
pub(super) fn name(job: &BatchJob) -> String {
    job.metadata.name.clone().unwrap_or_default()
}

fn created(job: &BatchJob) -> String {
    let at = job.metadata.creation_timestamp.as_ref();
    at.map(|time| time.0.to_string()).unwrap_or_default()
}

/// How a Job is, in that job manager's words: what it says itself, else its newest pod.
fn status(job: &BatchJob, pods: &[Pod]) -> &'static str {
    let status = job.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    let has = |kind: &str| {
        conditions.clone().any(|condition| condition.type_ == kind && condition.status == "True")
    };
    if has("Complete") {
        return "Succeeded";
    }
    if has("Failed") {
        return "Failed";
    }
    let is_of = |pod: &&Pod| {
        let owners = pod.metadata.owner_references.iter().flatten();
        job.metadata.uid.is_some()
            && owners.into_iter().any(|of| Some(&of.uid) == job.metadata.uid.as_ref())
    };
    let born = |pod: &&Pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    match pods.iter().filter(is_of).max_by_key(born).map(facts::phase) {
        Some("Running") => "Running",
        Some("Succeeded") => "Succeeded",
        Some("Failed") => "Failed",
        Some("Pending") | None => "Waiting",
        Some(_) => "Unknown",
    }
}

/// Shows the whole object.
pub(super) fn details(at: &At<'_>, name: &str) -> Result<KindAnswer, RunError> {
    let answered = at.site.namespace().raw_job(name, PATIENCE);
    let job = answered.map_err(|trouble| match trouble.code() {
        Some(404) => at.unknown(name),
        _ => at.site.error(&trouble),
    })?;
    let text = text::harmless(&format!("{job:#}\n")).into_owned();
    Ok(KindAnswer { text, answer: job, ..KindAnswer::default() })
}

/// Prints what a Job has printed: what is kept of it here; of one that is in no record what its newest pod has.
pub(super) fn logs(at: &At<'_>, name: &str) -> Result<KindAnswer, RunError> {
    let data = at.site.effects.data()?;
    if let Some(job) = at.record(&data, name) {
        let words = ["logs", &format!("w={}", job.windows_id), job.user.as_str()];
        return Ok(KindAnswer { then: ours(&words), ..KindAnswer::default() });
    }
    let error = |trouble| at.site.error(&trouble);
    let of = at.site.namespace().pods_of_label(&format!("job-name={name}"), PATIENCE);
    let (pods, _) = of.map_err(error)?;
    let born = |pod: &&Pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let pod = pods.iter().max_by_key(born).ok_or_else(|| at.unknown(name))?;
    let container = pod.spec.as_ref().and_then(|spec| spec.containers.first());
    let wanted = LogQuestion {
        pod: facts::name(pod),
        container: container.map_or("", |container| container.name.as_str()),
        since: None,
        limit: PATIENCE,
    };
    let answered = at.site.namespace().logs(&[wanted]).pop();
    let answer = answered.ok_or_else(|| at.unknown(name))?.map_err(error)?;
    let printed = String::from_utf8_lossy(&answer.body);
    let lines = printed.lines().map(|line| line.split_once(' ').map_or(line, |(_, line)| line));
    let text = text::harmless(&(lines.collect::<Vec<_>>().join("\n") + "\n")).into_owned();
    Ok(KindAnswer { answer: json!({"log": text}), text, ..KindAnswer::default() })
}
