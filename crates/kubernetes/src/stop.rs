//! Stopping exactly the Jobs that are meant: each is deleted by its identity, and waited for until its pods are gone.

use std::collections::HashMap;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job as BatchJob;
use k8s_openapi::api::core::v1::Pod;

use tpu_core::model::job::Job;
use tpu_core::model::time::Timestamp;
use tpu_engine::runner::{RunError, StopOrder, StopOutcome, StopPart, Unreached};
use tpu_system::sys::clock::Clock;

use super::facts;
use super::logs::{self, Wanted};
use super::names::{JobRef, LAUNCH};
use super::note;
use super::request::{LOOK, PATIENCE, Trouble};
use super::settle::{self, Presence};
use super::site::Site;
use super::submit;

/// How long pods may take to end: they have 30 s from their signal, and their node some time to say so.
const ENDING: Duration = Duration::from_secs(90);

/// Stops jobs, all of them side by side. Each by itself is stopped or is not.
pub(super) fn stop(
    site: &Site<'_>,
    jobs: &[&Job],
    order: StopOrder,
) -> Vec<Result<StopOutcome, RunError>> {
    if order.part == StopPart::Here {
        return jobs.iter().map(|_| Ok(StopOutcome::default())).collect();
    }
    let known: Vec<JobRef> = jobs.iter().map(|job| JobRef::of(job)).collect();
    let mut told = tell(site, jobs, &known);
    let open: Vec<&JobRef> =
        known.iter().zip(&told).filter(|(_, told)| told.is_ok()).map(|(known, _)| known).collect();
    let ended = until_gone(site, &open, order);
    for (told, ended) in told.iter_mut().filter(|told| told.is_ok()).zip(ended) {
        match ended {
            Ok(were_any) => {
                *told = told.as_ref().map_or(Ok(were_any), |told| Ok(*told || were_any));
            }
            Err(error) => *told = Err(error),
        }
    }
    let outcome = |(told, (job, known)): (Result<bool, RunError>, (&&Job, &JobRef))| {
        let processes = usize::from(told?);
        submit::discard(site, job, known);
        Ok(StopOutcome { processes, window: false })
    };
    told.into_iter().zip(jobs.iter().zip(&known)).map(outcome).collect()
}

/// The Jobs of some attempts that are there, by the places of these among them. One that has not ended by the server's word is
/// none of them, whatever its record says.
pub(super) fn left_behind(
    site: &Site<'_>,
    jobs: &[&Job],
) -> Result<Vec<(usize, String)>, RunError> {
    let listed = site.namespace().of_label(LAUNCH, PATIENCE).map_err(|t| site.error(&t))?.jobs;
    let left = |(at, job): (usize, &&Job)| {
        let known = JobRef::of(job);
        let there = listed.iter().find(|listed| settle::is_ours(listed, &known));
        there.filter(|there| !facts::is_open(there)).map(|_| (at, known.name))
    };
    Ok(jobs.iter().enumerate().filter_map(left).collect())
}

/// Keeps what is printed and has the Jobs deleted. Whether there was each.
fn tell(site: &Site<'_>, jobs: &[&Job], known: &[JobRef]) -> Vec<Result<bool, RunError>> {
    // One question for all of them. Of what it does not tell, each is asked for by itself.
    let listed = match known {
        [] | [_] => Vec::new(),
        _ => site.namespace().of_label(LAUNCH, PATIENCE).map_or(Vec::new(), |of| of.jobs),
    };
    let uids: Vec<Result<Option<String>, RunError>> =
        jobs.iter().zip(known).map(|(job, known)| to_delete(site, job, (known, &listed))).collect();
    let there: Vec<(&JobRef, &str)> = known
        .iter()
        .zip(&uids)
        .filter_map(|(known, uid)| Some((known, uid.as_ref().ok()?.as_deref()?)))
        .collect();
    let mut deleted = delete(site, &there).into_iter();
    let mut next = || deleted.next().unwrap_or(Ok(false)).map_err(|trouble| site.error(&trouble));
    uids.into_iter().map(|uid| if uid?.is_some() { next() } else { Ok(false) }).collect()
}

/// Keeps what they have printed, then deletes these Jobs. Whether there was each.
fn delete(site: &Site<'_>, there: &[(&JobRef, &str)]) -> Vec<Result<bool, Trouble>> {
    let of_all: Vec<&JobRef> = there.iter().map(|(known, _)| *known).collect();
    let kept = pods(site, &of_all).map(|(pods, _)| fetch(site, &pods));
    let named: Vec<(&str, &str)> =
        there.iter().map(|(known, uid)| (known.name.as_str(), *uid)).collect();
    match &kept {
        Ok(()) => site.namespace().delete_jobs(&named),
        Err(trouble) => named.iter().map(|_| Err(trouble.clone())).collect(),
    }
}

/// The identity of the Job that is to be deleted; `None` where there is none, and none will come.
fn to_delete(
    site: &Site<'_>,
    job: &Job,
    (known, listed): (&JobRef, &[BatchJob]),
) -> Result<Option<String>, RunError> {
    if let Some(job) = listed.iter().find(|job| settle::is_ours(job, known)) {
        return Ok(job.metadata.uid.clone());
    }
    loop {
        match there(site, job, known)? {
            There::Job(uid) => return Ok(Some(uid)),
            There::Gone | There::Unsent => return Ok(None),
            There::NeverCame => {
                if settle::give_up(site, job, known).map_err(|trouble| site.error(&trouble))? {
                    return Ok(None);
                }
                // It came between the question and what was to take its place.
            }
        }
    }
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

/// The pods of launches, by their tokens.
type PodsOf = HashMap<String, Vec<Pod>>;

/// And when the server said so.
fn pods(site: &Site<'_>, known: &[&JobRef]) -> Result<(PodsOf, Timestamp), Trouble> {
    let selector = match known {
        [] => return Ok((PodsOf::new(), site.effects.clock.now())),
        [only] => only.selector(),
        _ => LAUNCH.to_owned(),
    };
    let mut all = PodsOf::new();
    let (pods, said_at) = site.namespace().pods_of_label(&selector, PATIENCE)?;
    for pod in pods {
        let token = pod.metadata.labels.as_ref().and_then(|labels| labels.get(LAUNCH)).cloned();
        let is_meant = |token: &String| known.iter().any(|known| known.token == *token);
        if let Some(token) = token.filter(is_meant) {
            all.entry(token).or_default().push(pod);
        }
    }
    Ok((all, site.then(said_at)))
}

/// Keeps what pods have printed so far.
fn fetch(site: &Site<'_>, pods: &PodsOf) {
    let wanted: Vec<Wanted<'_>> = pods
        .iter()
        .flat_map(|(token, pods)| pods.iter().map(move |pod| Wanted { pod, token }))
        .filter(|wanted| facts::has_begun(wanted.pod))
        .collect();
    // What cannot be had keeps nobody from being stopped.
    drop(logs::bring_up(site, &wanted, LOOK));
}

/// Waits until the pods of Jobs are gone that were deleted, and keeps what they print at last. Whether there were any.
/// One that was to end long ago is not waited for: its node may never answer. One that nobody deletes, since it has no Job any more, is deleted as well.
fn until_gone(site: &Site<'_>, known: &[&JobRef], order: StopOrder) -> Vec<Result<bool, RunError>> {
    let clock: &dyn Clock = &*site.effects.clock;
    let begun = clock.monotonic();
    let mut pause = Duration::from_millis(25);
    let mut were_any: Vec<bool> = known.iter().map(|_| false).collect();
    let mut refused: HashMap<String, RunError> = HashMap::new();
    loop {
        let (mut left, now) = match pods(site, known) {
            Ok(told) => told,
            Err(trouble) => return known.iter().map(|_| Err(site.error(&trouble))).collect(),
        };
        if order.part == StopPart::Program {
            go_past_the_dead(site, (&mut left, now));
        }
        for (known, were_any) in known.iter().zip(&mut were_any) {
            let mut of = left.get(&known.token).into_iter().flatten();
            *were_any |= of.any(|pod| !facts::is_over(pod));
        }
        fetch(site, &left);
        if clock.monotonic() >= begun + COLLECTING {
            collect(site, &left, &mut refused);
        }
        let is_late = clock.monotonic() >= begun + ENDING;
        // Whose node is dead, as far as the cluster can tell, holds nobody up.
        let is_dead = |pods: &Vec<Pod>| pods.iter().all(|pod| facts::is_overdue(pod, now));
        let is_hopeless = |(token, pods)| refused.contains_key(token) || is_dead(pods);
        if is_late || left.iter().all(is_hopeless) {
            let of = |(known, were_any): (&&JobRef, bool)| match left.get(&known.token) {
                None => Ok(were_any),
                Some(pods) => match refused.remove(&known.token) {
                    Some(error) => Err(error),
                    None => outlasted(site, pods, order.unreached),
                },
            };
            return known.iter().zip(were_any).map(of).collect();
        }
        clock.sleep(pause);
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}

/// Leaves pods out whose node is dead, as far as the cluster can tell: they were told to end long ago. Whoever brings a
/// job back elsewhere does not wait for that node, as Kubernetes itself does not.
fn go_past_the_dead(site: &Site<'_>, (left, now): (&mut PodsOf, Timestamp)) {
    for pods in left.values_mut() {
        pods.retain(|pod| {
            let is_dead = facts::is_overdue(pod, now);
            if is_dead {
                site.effects.warn([format!(
                    "pod {} was not seen to end: its node {} does not answer, and it may still run there",
                    facts::name(pod),
                    facts::node(pod)
                )]);
            }
            !is_dead
        });
    }
    left.retain(|_, pods| !pods.is_empty());
}

/// Deletes pods that nobody else has told to end.
fn collect(site: &Site<'_>, left: &PodsOf, refused: &mut HashMap<String, RunError>) {
    for (token, pods) in left {
        if refused.contains_key(token) {
            continue;
        }
        let untold = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        for pod in untold {
            match site.namespace().delete_core("pods", facts::name(pod)) {
                // Who may not delete pods waits for the cluster to do so.
                Err(trouble) if trouble.code() != Some(403) => {
                    refused.insert(token.clone(), site.error(&trouble));
                    break;
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
}

/// What is said of pods that have not ended in time.
fn outlasted(site: &Site<'_>, pods: &[Pod], unreached: Unreached) -> Result<bool, RunError> {
    let pod = pods.first().map_or("", facts::name);
    if unreached == Unreached::GoPast {
        site.effects.warn([format!("pod {pod} was not seen to end; it may still run there")]);
        return Ok(true);
    }
    Err(RunError::unreachable(
        format!("{} has not ended pod {pod} yet", site.cluster.in_words()),
        "it was told to, and its node may not answer; look again later with: tpu check",
    ))
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
