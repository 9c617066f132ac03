//! Stopping exactly the Jobs that are meant: each is deleted by its identity, and waited for until its pods are gone.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;

use crate::model::job::Job;
use crate::runner::{RunError, StopOrder, StopOutcome, StopPart, Unreached};
use crate::sys::clock::Clock;

use super::facts;
use super::logs::{self, Wanted};
use super::names::JobRef;
use super::note;
use super::request::{LOOK, PATIENCE, Trouble};
use super::settle::{self, Presence};
use super::site::Site;
use super::submit;

/// How long pods may take to end: they have 30 s from their signal, and their node some time to say so.
const ENDING: Duration = Duration::from_secs(90);

/// Stops a job.
pub(super) fn stop(site: &Site<'_>, job: &Job, order: StopOrder) -> Result<StopOutcome, RunError> {
    if order.part == StopPart::Here {
        return Ok(StopOutcome::default());
    }
    let known = JobRef::of(job);
    let error = |trouble: Trouble| site.error(&trouble);
    let stopped = match there(site, job, &known)? {
        There::Job(uid) => {
            keep_logs(site, &known).map_err(error)?;
            site.namespace().delete_job(&known.name, &uid).map_err(error)?
        }
        There::Gone | There::Unsent => false,
        There::NeverCame if settle::give_up(site, job, &known).map_err(error)? => false,
        // It came between the question and what was to take its place.
        There::NeverCame => return stop(site, job, order),
    };
    let processes = usize::from(until_gone(site, &known, order.unreached)? || stopped);
    submit::discard(site, job, &known);
    Ok(StopOutcome { processes, window: false })
}

/// So long the cluster has to tell the pods of a Job that was deleted to end.
const COLLECTING: Duration = Duration::from_secs(5);

/// Where a Job is.
enum There {
    /// It is there, with this identity.
    Job(String),
    /// It was there, and is not any more.
    Gone,
    /// Nowhere: nobody has begun to submit it.
    Unsent,
    /// Nowhere, and of its submission nobody has heard: who was about to submit it may have stood still since.
    NeverCame,
}

fn there(site: &Site<'_>, job: &Job, known: &JobRef) -> Result<There, RunError> {
    let error = |trouble: Trouble| site.error(&trouble);
    if let Some(uid) = settle::ours(site, known, PATIENCE).map_err(error)? {
        return Ok(There::Job(uid));
    }
    if job.launch.as_ref().is_none_or(|launch| launch.ended.is_some()) || known.uid.is_some() {
        return Ok(There::Gone);
    }
    let note = note::read(site.effects, &known.token)
        .map_err(|e| site.silent(&format!("the note of its submission cannot be read: {e}")))?;
    let Some(note) = note else { return Ok(There::Unsent) };
    if note.uid.is_some() {
        return Ok(There::Gone);
    }
    match settle::presence(site, known, &note, PATIENCE).map_err(error)? {
        Presence::There(uid) => Ok(There::Job(uid)),
        Presence::Forgotten => Ok(There::Gone),
        Presence::Absent => Ok(There::NeverCame),
        Presence::OnItsWay(_) => Err(site.silent("its submission may still be on its way")),
    }
}

fn pods(site: &Site<'_>, known: &JobRef) -> Result<Vec<Pod>, Trouble> {
    Ok(site.namespace().of_label(&known.selector(), PATIENCE)?.1)
}

/// Keeps what the pods have printed so far.
fn keep_logs(site: &Site<'_>, known: &JobRef) -> Result<(), Trouble> {
    fetch(site, known, &pods(site, known)?);
    Ok(())
}

fn fetch(site: &Site<'_>, known: &JobRef, pods: &[Pod]) {
    let wanted: Vec<Wanted<'_>> = pods
        .iter()
        .filter(|pod| facts::has_begun(pod))
        .map(|pod| Wanted { pod, token: &known.token })
        .collect();
    // What cannot be had keeps nobody from being stopped.
    drop(logs::bring_up(site, &wanted, LOOK));
}

/// Waits until the pods of a Job are gone that was deleted, and keeps what they print at last. Whether there were any.
/// One that nobody deletes, since it has no Job any more, is deleted as well.
fn until_gone(site: &Site<'_>, known: &JobRef, unreached: Unreached) -> Result<bool, RunError> {
    let clock: &dyn Clock = &*site.effects.clock;
    let begun = clock.monotonic();
    let deadline = begun + ENDING;
    let mut pause = Duration::from_millis(25);
    let mut were_any = false;
    loop {
        let pods = pods(site, known).map_err(|trouble| site.error(&trouble))?;
        let Some(first) = pods.first() else { return Ok(were_any) };
        were_any |= pods.iter().any(|pod| !facts::is_over(pod));
        fetch(site, known, &pods);
        let is_collected = clock.monotonic() < begun + COLLECTING;
        let left = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        for pod in left.filter(|_| !is_collected) {
            match site.namespace().delete_core("pods", facts::name(pod)) {
                // Who may not delete pods waits for the cluster to do so.
                Err(trouble) if trouble.code() != Some(403) => return Err(site.error(&trouble)),
                Ok(_) | Err(_) => {}
            }
        }
        if clock.monotonic() >= deadline && unreached == Unreached::GoPast {
            let pod = facts::name(first);
            site.effects.warn([format!("pod {pod} was not seen to end; it may still run there")]);
            return Ok(true);
        }
        if clock.monotonic() >= deadline {
            return Err(RunError::unreachable(
                format!("{} has not ended pod {} yet", site.cluster.in_words(), facts::name(first)),
                "it was told to, and its node may not answer; look again later with: tpu check",
            ));
        }
        clock.sleep(pause);
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}

/// Gives up launches that the server has never had. Whether each is given up by that: one that has come meanwhile is not.
pub(super) fn give_up(site: &Site<'_>, job: &Job) -> Result<bool, RunError> {
    let known = JobRef::of(job);
    let said = match there(site, job, &known)? {
        There::Job(_) | There::Gone => false,
        // Whoever was about to submit it may have looked at its record already.
        There::Unsent | There::NeverCame => {
            settle::give_up(site, job, &known).map_err(|trouble| site.error(&trouble))?
        }
    };
    if said {
        submit::discard(site, job, &known);
    }
    Ok(said)
}
