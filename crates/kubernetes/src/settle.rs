//! Whether what was submitted is there: the one place where it is concluded that a launch never reached the cluster.
//!
//! That counts only when no process of ours can be at it any more, no request of it can be on its way, and the server
//! has been asked since and has not got it. A question that fails says nothing.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job as BatchJob;
use serde_json::{Value, json};

use tpu_core::model::job::Job;
use tpu_core::model::time::Timestamp;

use super::manifest;
use super::names::{JobRef, LAUNCH};
use super::note::{self, SubmissionNote};
use super::request::Trouble;
use super::site::Site;

/// What is known of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// The server has it, under this identity.
    There(String),
    /// The server has never had it, and will not get it.
    Absent,
    /// It is not there. It may have been there, and have been taken away since its time was over.
    Forgotten,
    /// It is not there, and may be on its way until then.
    OnItsWay(Timestamp),
}

/// Looks for a submission of which nobody has written down what came of it.
pub(super) fn presence(
    site: &Site<'_>,
    known: &JobRef,
    note: &SubmissionNote,
    limit: Duration,
) -> Result<Presence, Trouble> {
    // In this order: what arrives until then is in an answer that is asked for afterwards.
    let asked_at = site.effects.clock.now();
    if let Some(uid) = ours(site, known, limit)? {
        return Ok(Presence::There(uid));
    }
    Ok(absence(site, known, note, asked_at))
}

/// The identity of the Job of a launch, if the server has it.
pub(super) fn ours(
    site: &Site<'_>,
    known: &JobRef,
    limit: Duration,
) -> Result<Option<String>, Trouble> {
    let job = site.namespace().job(&known.name, limit)?;
    Ok(job.filter(|job| is_ours(job, known)).and_then(|job| job.metadata.uid))
}

/// Whether a Job is that of a launch, and not what keeps its place.
pub(super) fn is_ours(job: &BatchJob, known: &JobRef) -> bool {
    is_of(job, known) && !is_tombstone(job)
}

fn is_of(job: &BatchJob, known: &JobRef) -> bool {
    label(job, LAUNCH) == Some(&known.token)
}

fn label<'j>(job: &'j BatchJob, name: &str) -> Option<&'j String> {
    job.metadata.labels.as_ref()?.get(name)
}

/// What it says that the server, asked at that time, has not got a submission.
pub(super) fn absence(
    site: &Site<'_>,
    known: &JobRef,
    note: &SubmissionNote,
    asked_at: Timestamp,
) -> Presence {
    let settled = note.settled_at();
    if note.is_at_work(site.effects) || asked_at < settled {
        return Presence::OnItsWay(settled);
    }
    match stays_s(site, known) {
        Some(seconds) if asked_at.seconds_since(settled) >= seconds => Presence::Forgotten,
        Some(_) | None => Presence::Absent,
    }
}

/// How many seconds the Job of a launch stays when it is over; `None` where it stays until somebody deletes it.
pub(super) fn stays_s(site: &Site<'_>, known: &JobRef) -> Option<u64> {
    let text = note::manifest(site.effects, &known.token)?;
    let manifest: Value = serde_json::from_str(&text).ok()?;
    manifest["spec"]["ttlSecondsAfterFinished"].as_u64()
}

/// The label of what stands in the place of a Job that was given up, so that nobody creates it any more.
const GIVEN_UP: &str = "tpu.given-up";

/// So long the place is kept: whoever stood still for longer than that between his last look at the record and his
/// request has lost his connection.
const KEPT_S: u64 = 3600;

/// Whether a Job only keeps the place of one that was given up.
pub(super) fn is_tombstone(job: &BatchJob) -> bool {
    label(job, GIVEN_UP).is_some()
}

/// Whether a Job keeps the place of the very launch that is meant.
pub(super) fn is_given_up(job: &BatchJob, known: &JobRef) -> bool {
    is_of(job, known) && is_tombstone(job)
}

/// Takes the place of a Job that has never come, so that it cannot come any more. Whether it is given up by that: one
/// that has come meanwhile is not.
pub(super) fn give_up(site: &Site<'_>, job: &Job, known: &JobRef) -> Result<bool, Trouble> {
    let mut labels = manifest::labels(job, known);
    labels[GIVEN_UP] = Value::from("true");
    // It makes no pod, fails when its time is over, and goes then.
    let tombstone = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": known.name, "labels": labels},
        "spec": {
            "parallelism": 0, "backoffLimit": 0, "activeDeadlineSeconds": KEPT_S,
            "ttlSecondsAfterFinished": 60,
            "template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "none", "image": "none", "command": ["true"]}],
            }},
        },
    });
    match site.namespace().create_job(tombstone, false) {
        Ok(_) => Ok(true),
        Err(trouble) if trouble.is_taken() => {
            let there = site.namespace().job(&known.name, super::request::PATIENCE)?;
            // What was there a moment ago, and is not any more, leaves its place open.
            there.map(|job| !is_ours(&job, known)).ok_or(trouble)
        }
        Err(trouble) => Err(trouble),
    }
}
