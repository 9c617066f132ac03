//! `delete`: what is at work is killed as `tpu kill` does it, and of what has ended the Job is taken out of the cluster.

use clap::ArgMatches;
use k8s_openapi::api::batch::v1::Job as BatchJob;
use serde_json::json;

use tpu_engine::kinds::KindAnswer;
use tpu_engine::runner::RunError;

use super::at::{self, At};
use super::listed::name;
use super::ours;
use crate::names::{self, LAUNCH};
use crate::request::{Labelled, PATIENCE};
use crate::{facts, settle};
use tpu_core::model::data::Data;
use tpu_core::model::job::Job;

/// Deletes the Job of a name, or all of ours that are the user's.
pub(super) fn delete(
    at: &At<'_>,
    named: Option<&String>,
    said: &ArgMatches,
) -> Result<KindAnswer, RunError> {
    let data = at.site.effects.data()?;
    let jobs = match named {
        Some(named) => vec![ours_to_delete(&data, one(at, named)?)?],
        None => all(at, &at::user(at.site.effects, said)?)?
            .into_iter()
            .filter(|job| user_elsewhere(&data, job).is_none())
            .collect(),
    };
    let names: Vec<String> = jobs.iter().map(name).collect();
    let answer = json!({"deleted": names});
    if jobs.is_empty() {
        let text = "There is no Job to delete.\n".to_owned();
        return Ok(KindAnswer { text, answer, ..KindAnswer::default() });
    }
    if at.site.effects.store.is_dry_run() {
        let text = format!("Would delete {}. Nothing was changed.\n", names.join(", "));
        let answer = json!({"would": {"delete": names}});
        return Ok(KindAnswer { text, answer, ..KindAnswer::default() });
    }
    let mut at_work = Vec::new();
    let mut whose = None;
    for job in &jobs {
        match at.record(&data, &name(job)).filter(|record| record.status.is_live()) {
            Some(record) => {
                at_work.push(record.windows_id.to_string());
                whose = Some(record.user.to_string());
            }
            None => take_out(at, job)?,
        }
    }
    let said = names.iter().map(|name| format!("Job '{name}' deleted successfully"));
    let text = said.collect::<Vec<_>>().join("\n") + "\n";
    let then = whose.map(|user| ours(&["kill", &at_work.join(","), &user])).unwrap_or_default();
    Ok(KindAnswer { text, answer, then })
}

/// Refuses a Job that somebody else has written down.
fn ours_to_delete(data: &Data, job: BatchJob) -> Result<BatchJob, RunError> {
    let Some(user) = user_elsewhere(data, &job) else { return Ok(job) };
    let name = name(&job);
    let what = format!("Job {name} is at work, and was begun from another data file, for {user}");
    let hint = format!("kill it where it was begun; `kubectl delete job {name}` asks nobody");
    Err(RunError::refused(what, hint))
}

/// For whom a Job is at work that was begun by the program and of which nothing is known here. Who has it written down
/// would take its end for a failure, and bring it back.
fn user_elsewhere(data: &Data, job: &BatchJob) -> Option<String> {
    let labels = job.metadata.labels.as_ref()?;
    let token = labels.get(LAUNCH)?;
    let is_known = |job: &Job| job.launch.as_ref().is_some_and(|of| of.token.as_str() == token);
    let is_elsewhere =
        facts::is_open(job) && !settle::is_tombstone(job) && !data.jobs().any(is_known);
    is_elsewhere.then(|| labels.get("tpu.user").cloned().unwrap_or_default())
}

fn one(at: &At<'_>, named: &str) -> Result<BatchJob, RunError> {
    let found = at.site.namespace().job(named, PATIENCE);
    found.map_err(|trouble| at.site.error(&trouble))?.ok_or_else(|| at.unknown(named))
}

/// Other people may submit to the same namespace.
fn all(at: &At<'_>, user: &str) -> Result<Vec<BatchJob>, RunError> {
    let selector = format!("{LAUNCH},tpu.user={}", names::label(user));
    let found = at.site.namespace().of_label(&selector, PATIENCE);
    let of_runs = |mut found: Labelled| {
        found.jobs.retain(|job| !settle::is_tombstone(job));
        found.jobs
    };
    found.map(of_runs).map_err(|trouble| at.site.error(&trouble))
}

fn take_out(at: &At<'_>, job: &BatchJob) -> Result<(), RunError> {
    let uid = job.metadata.uid.as_deref().unwrap_or_default();
    let deleted = at.site.namespace().delete_job(&name(job), uid);
    deleted.map(drop).map_err(|trouble| at.site.error(&trouble))
}
