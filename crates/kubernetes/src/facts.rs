//! What the server says of a Job and its pods, as a fact about a run.
//!
//! A Job never says why it failed: its pods do, in the states of their containers, in their own reason and conditions,
//! and what refuses pods altogether only in events (recorded from 1.20; conditions of disruption from the documentation
//! of 1.25 and later).

use std::borrow::Cow;

use k8s_openapi::api::batch::v1::Job as BatchJob;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateTerminated, ContainerStatus, Event, Pod, PodCondition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{ErrorKind, RunFact, RunState};
use tpu_core::model::job::Job;
use tpu_core::model::time::{Timestamp, age};

use super::manifest::MAIN;
use super::names::QUEUE;

/// A pod that was told to end, and has not so long after the time that it was given, is on a node that does not answer.
const OVERDUE_S: u64 = 60;

/// So many lines are told of what failed before the command.
const LAST_LINES: usize = 3;

/// A Job with its pods, the newest first.
pub(super) struct Seen<'s> {
    /// The Job.
    pub(super) job: &'s BatchJob,
    /// Its pods.
    pub(super) pods: Vec<&'s Pod>,
    /// What was refused to the Job or its pods lately.
    pub(super) warnings: &'s [Event],
    /// When the server said this, by its own clock where it tells that.
    pub(super) now: Timestamp,
}

impl<'s> Seen<'s> {
    /// Puts the pods of a Job in order.
    pub(super) fn new(
        job: &'s BatchJob,
        mut pods: Vec<&'s Pod>,
        warnings: &'s [Event],
        now: Timestamp,
    ) -> Self {
        let created = |pod: &Pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        pods.sort_unstable_by(|one, other| {
            created(other).cmp(&created(one)).then_with(|| name(one).cmp(name(other)))
        });
        Self { job, pods, warnings, now }
    }

    /// What is known of the run.
    pub(super) fn fact(&self, job: &Job) -> RunFact {
        let fact = match self.condition() {
            Some(("Complete", _, _)) => RunFact {
                exit: Some(job.exit(0)),
                ..RunFact::of_engine(RunState::Ended, "Complete", None)
            },
            Some((_, reason, message)) => self.failed(job, reason, message),
            None => self.open(job),
        };
        // Of one pod that was made anew only the last one counts; of several that belong together all do.
        let counted = self.pods.iter().take(if self.wanted() > 1 { self.pods.len() } else { 1 });
        let mut nodes: Vec<String> =
            counted.filter_map(|pod| pod.spec.as_ref()?.node_name.clone()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let restarts = self.pods.len().saturating_sub(self.wanted());
        let restarts = u32::try_from(restarts).unwrap_or(u32::MAX);
        RunFact { restarts, nodes, began: self.began(), ..fact }
    }

    /// When its command began: that of the newest pod, or of all pods that belong together.
    fn began(&self) -> Option<Timestamp> {
        let wanted = self.wanted();
        let all: Option<Vec<Timestamp>> =
            self.pods.iter().take(wanted).map(|pod| began_at(pod)).collect();
        all.filter(|all| all.len() == wanted)?.into_iter().max()
    }

    /// How many pods belong together.
    fn wanted(&self) -> usize {
        let spec = self.job.spec.as_ref();
        let is_ranked = spec.and_then(|spec| spec.completion_mode.as_deref()) == Some("Indexed");
        let wanted = spec.and_then(|spec| spec.completions).filter(|_| is_ranked).unwrap_or(1);
        usize::try_from(wanted).unwrap_or(1).max(1)
    }

    /// How several pods are that belong together: one that has failed ends them all, and the one that is least far says how
    /// it is.
    fn together(&self, job: &Job) -> RunFact {
        let failed = |fact: &RunFact| {
            fact.cause.is_some() || fact.exit.is_some_and(|exit| !exit.is_success())
        };
        if let Some(end) = self.pods.iter().filter_map(|pod| end(job, pod)).find(failed) {
            return end;
        }
        if self.pods.is_empty() {
            return self.without_pods();
        }
        if self.pods.len() < self.wanted() {
            let why = format!("{} of {} pods are made", self.pods.len(), self.wanted());
            return RunFact::of_engine(RunState::Pending, "NoPod", Some(why));
        }
        let rank = |fact: &RunFact| match fact.state {
            RunState::Gone | RunState::Unknown => 0,
            RunState::Pending => 1,
            RunState::Starting => 2,
            RunState::Running | RunState::Elsewhere => 3,
            RunState::Ended => 4,
        };
        let all = self.pods.iter().map(|pod| (*pod, self.of_pod(job, pod)));
        let Some((pod, least)) = all.min_by_key(|(_, fact)| rank(fact)) else {
            return self.without_pods();
        };
        match least.state {
            RunState::Pending | RunState::Starting | RunState::Gone | RunState::Unknown => {
                let why = least.reason.as_deref().unwrap_or_default();
                let why = format!("pod {}: {why}", name(pod));
                RunFact { reason: Some(Cow::Owned(why)), ..least }
            }
            RunState::Running | RunState::Elsewhere | RunState::Ended => least,
        }
    }

    /// Its last word, if it has one: `Complete` or `Failed`, why, and in words. What comes before is no end yet.
    fn condition(&self) -> Option<(&'s str, &'s str, &'s str)> {
        let conditions = self.job.status.as_ref()?.conditions.as_ref()?;
        let last = conditions.iter().find(|condition| {
            matches!(condition.type_.as_str(), "Complete" | "Failed") && condition.status == "True"
        })?;
        let text = |of: &'s Option<String>| of.as_deref().unwrap_or_default();
        Some((last.type_.as_str(), text(&last.reason), text(&last.message)))
    }

    /// A Job that has failed: its newest pod that has come to an end says why.
    fn failed(&self, job: &Job, reason: &str, message: &str) -> RunFact {
        if reason == "DeadlineExceeded" {
            return over(ErrorKind::Timeout, reason, "its time is over: ask for more with timeout");
        }
        let mut pods = self.pods.clone();
        if self.wanted() > 1 {
            // The first one that ended took the others with it.
            pods.sort_by_key(|pod| ended_at(pod).map(Timestamp::as_second));
        }
        let ends = pods.iter().filter_map(|pod| end(job, pod));
        // Of a pod that somebody has deleted nothing is left, while another one has failed.
        let (told, untold): (Vec<RunFact>, Vec<RunFact>) =
            ends.partition(|fact| fact.exit.is_some() || fact.cause.is_some());
        let (told, well): (Vec<RunFact>, Vec<RunFact>) =
            told.into_iter().partition(|fact| !fact.exit.is_some_and(Exit::is_success));
        if let Some(fact) = told.into_iter().chain(well).chain(untold).next() {
            return fact;
        }
        let said = if message.is_empty() { String::new() } else { format!("{message}; ") };
        let why = format!("{said}its pods are gone, and nothing tells how they ended");
        RunFact {
            cause: Some(ErrorKind::Lost),
            ..RunFact::of_engine(
                RunState::Ended,
                if reason.is_empty() { "Failed" } else { reason },
                Some(why),
            )
        }
    }

    /// A Job that has not come to an end, as far as it says itself. It is late in saying so.
    fn open(&self, job: &Job) -> RunFact {
        if self.wanted() > 1 {
            return self.together(job);
        }
        match self.pods.first() {
            Some(pod) => self.after_preemption(self.of_pod(job, pod)),
            None => self.without_pods(),
        }
    }

    /// How one of its pods is.
    fn of_pod(&self, job: &Job, pod: &Pod) -> RunFact {
        if let Some(end) = end(job, pod) {
            // The Job has its last word within a second; what it will be, the pod has said already.
            return match phase(pod) {
                "Succeeded" => RunFact {
                    exit: Some(job.exit(0)),
                    ..RunFact::of_engine(RunState::Ended, "Succeeded", None)
                },
                _ => end,
            };
        }
        if let Some(since) = pod.metadata.deletion_timestamp.as_ref() {
            return self.leaving(pod, since);
        }
        match phase(pod) {
            "Running" => running(pod),
            "Pending" => self.pending(pod),
            other => RunFact::of_engine(
                RunState::Unknown,
                other,
                Some(format!("its pod is {other}: its node does not say how it is")),
            ),
        }
    }

    fn without_pods(&self) -> RunFact {
        if self.is_suspended() {
            let labels = self.job.metadata.labels.as_ref();
            let why = match labels.and_then(|labels| labels.get(QUEUE)) {
                Some(queue) => format!("it waits in the queue {queue} of Kueue for its turn"),
                None => "it is suspended: its pods are created once it is resumed".to_owned(),
            };
            return RunFact::of_engine(RunState::Pending, "Suspended", Some(why));
        }
        let uid = self.job.metadata.uid.as_deref();
        let warning = self.newest_warning(uid);
        let raw =
            warning.and_then(|event| event.reason.clone()).unwrap_or_else(|| "NoPod".to_owned());
        let why = warning.and_then(|event| event.message.as_deref()).map(refused_in_words);
        let why = why.unwrap_or_else(|| "its pod is being made".to_owned());
        RunFact::of_engine(RunState::Pending, raw, Some(why))
    }

    /// Whether nothing of it is to run for now (1.21 and later).
    fn is_suspended(&self) -> bool {
        self.job.spec.as_ref().and_then(|spec| spec.suspend) == Some(true)
            || self.job.status.as_ref().and_then(|status| status.conditions.as_ref()).is_some_and(
                |all| all.iter().any(|of| of.type_ == "Suspended" && of.status == "True"),
            )
    }

    /// What is said of a pod that had to go for another one, by its name.
    fn preempted(&self, is_meant: impl Fn(&str) -> bool) -> Option<&'s str> {
        // A Job of that name that was there before had pods of such names as well.
        let since = self.job.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let said = self.warnings.iter().find(|event| {
            let of = event.involved_object.name.as_deref();
            event.reason.as_deref() == Some("Preempted")
                && said_at(event) >= since.map(jiff::Timestamp::as_second)
                && of.is_some_and(&is_meant)
        });
        said?.message.as_deref()
    }

    /// What is said of an earlier pod of this Job that had to go.
    fn preempted_before(&self) -> Option<&'s str> {
        let own = self.job.metadata.name.as_deref()?;
        self.preempted(|pod| {
            let rest = pod.strip_prefix(own).and_then(|rest| rest.strip_prefix('-'));
            let is_there = self.pods.iter().any(|known| name(known) == pod);
            // `JOB-abcde`.
            rest.is_some_and(|random| random.len() == 5) && !is_there
        })
    }

    /// What is told of a pod that waits or begins where another one had to go. A server that does not call that a failure of
    /// the Job (before 1.26) has made this one by itself: the run goes on, from its beginning.
    fn after_preemption(&self, fact: RunFact) -> RunFact {
        let is_ahead = matches!(fact.state, RunState::Pending | RunState::Starting);
        let Some(message) = self.preempted_before().filter(|_| is_ahead) else { return fact };
        let now = fact.reason.as_deref().unwrap_or_default();
        let why = format!(
            "a pod of higher rank has its place ({message}); Kubernetes restarts it there: {now}"
        );
        RunFact { reason: Some(Cow::Owned(why)), raw: Cow::Borrowed("Preempted"), ..fact }
    }

    fn newest_warning(&self, uid: Option<&str>) -> Option<&'s Event> {
        let is_about =
            |event: &&Event| uid.is_some() && event.involved_object.uid.as_deref() == uid;
        self.warnings.iter().filter(is_about).max_by_key(|event| said_at(event))
    }

    /// A pod that was told to end.
    fn leaving(&self, pod: &Pod, since: &Time) -> RunFact {
        let overdue = self.now.seconds_since(Timestamp::from_jiff(since.0));
        if is_overdue(pod, self.now) {
            let why = format!(
                "its node {} does not answer: the pod was to end {} ago",
                node(pod),
                age(overdue)
            );
            return RunFact {
                cause: Some(ErrorKind::Lost),
                ..RunFact::of_engine(RunState::Gone, "Terminating", Some(why))
            };
        }
        let why = disruption(pod).map(|(_, why)| why.to_owned()).or_else(|| {
            let said = self.preempted(|of| of == name(pod))?;
            Some(format!("a pod of higher rank takes its place ({said})"))
        });
        let why = why.unwrap_or_else(|| "its pod is being ended".to_owned());
        RunFact {
            text_waits: true,
            ..RunFact::of_engine(RunState::Running, "Terminating", Some(why))
        }
    }

    fn pending(&self, pod: &Pod) -> RunFact {
        if let Some(condition) = condition_of(pod, "PodScheduled")
            && condition.status == "False"
        {
            let raw = condition.reason.clone().unwrap_or_else(|| "Pending".to_owned());
            let since =
                condition.last_transition_time.as_ref().map(|time| Timestamp::from_jiff(time.0));
            let since =
                since.map(|since| format!(", since {}", age(self.now.seconds_since(since))));
            let message =
                condition.message.clone().unwrap_or_else(|| "no node has it yet".to_owned());
            let message = message.trim_end_matches('.');
            let why = format!("no node takes it: {message}{}", since.unwrap_or_default());
            return RunFact::of_engine(RunState::Pending, raw, Some(why));
        }
        let waiting = containers(pod).find_map(|status| {
            let waiting = status.state.as_ref()?.waiting.as_ref()?;
            Some((
                status,
                waiting.reason.as_deref()?,
                waiting.message.as_deref().unwrap_or_default(),
            ))
        });
        match waiting {
            Some((
                status,
                reason @ ("ErrImagePull" | "ImagePullBackOff" | "ErrImageNeverPull"),
                message,
            )) => {
                let why = format!("the image {} cannot be pulled{}", status.image, behind(message));
                RunFact::of_engine(RunState::Pending, reason, Some(why))
            }
            Some((status, "InvalidImageName", message)) => {
                let why = format!("{} is no name of an image{}", status.image, behind(message));
                RunFact::of_engine(RunState::Pending, "InvalidImageName", Some(why))
            }
            Some((
                _,
                reason @ ("CreateContainerConfigError" | "CreateContainerError"),
                message,
            )) => {
                let why = format!("its container cannot be made{}", behind(message));
                RunFact::of_engine(RunState::Pending, reason, Some(why))
            }
            Some((_, reason, _)) => {
                let event = self.newest_warning(pod.metadata.uid.as_deref());
                let why = event.and_then(|event| event.message.as_deref());
                let why = why.unwrap_or("its container is being made").to_owned();
                RunFact::of_engine(RunState::Pending, reason, Some(why))
            }
            None => RunFact::of_engine(
                RunState::Starting,
                "Pending",
                Some("its node is preparing it".to_owned()),
            ),
        }
    }
}

/// When something was said last: newer parts of the server say it once, and when.
fn said_at(event: &Event) -> Option<i64> {
    let last = event.last_timestamp.as_ref().or(event.first_timestamp.as_ref());
    let last = last.map(|time| time.0);
    last.or(event.event_time.as_ref().map(|time| time.0)).map(jiff::Timestamp::as_second)
}

/// `: TEXT`, or nothing.
fn behind(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// The end of what was printed, in one line.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.get(lines.len().saturating_sub(LAST_LINES)..).unwrap_or_default().join("; ")
}

/// Why no pod was made, without what every such sentence begins with: `Error creating: pods "x-" is forbidden: exceeded
/// quota: …`.
fn refused_in_words(message: &str) -> String {
    let message = message.strip_prefix("Error creating: ").unwrap_or(message);
    let (_, after) = message.split_once(" is forbidden: ").unwrap_or(("", message));
    format!("no pod may be made for it: {after}")
}

fn over(cause: ErrorKind, raw: &str, why: &str) -> RunFact {
    RunFact { cause: Some(cause), ..RunFact::of_engine(RunState::Ended, raw, Some(why.to_owned())) }
}

fn running(pod: &Pod) -> RunFact {
    let main = main_of(pod);
    let is_at_work = main.is_some_and(|state| state.running.is_some());
    if !is_at_work {
        return RunFact::of_engine(
            RunState::Starting,
            "Running",
            Some("its container begins".to_owned()),
        );
    }
    let silent = condition_of(pod, "Ready").filter(|ready| {
        ready.status != "True" && ready.reason.as_deref() != Some("ContainersNotReady")
    });
    let why = silent.map(|_| format!("its node {} does not answer", node(pod)));
    RunFact::of_engine(RunState::Running, "Running", why)
}

/// How a pod has ended; `None` while it has not.
fn end(job: &Job, pod: &Pod) -> Option<RunFact> {
    let terminated = terminated(pod);
    if !matches!(phase(pod), "Failed" | "Succeeded") {
        // Its container is over, and what is beside it is not; or the pod will say so in a moment.
        let (name, terminated) =
            terminated.filter(|_| main_of(pod).is_some_and(|state| state.terminated.is_some()))?;
        return Some(of_container(job, name, terminated));
    }
    let status = pod.status.as_ref();
    let reason = status.and_then(|status| status.reason.as_deref()).unwrap_or_default();
    let message = status.and_then(|status| status.message.as_deref()).unwrap_or_default();
    // What its node says of it comes first: one that was put out has the condition of a node that ends it as well.
    let with = |kind, what: &str| Some(over(kind, reason, &format!("{what}{}", behind(message))));
    match reason {
        "Evicted" => with(ErrorKind::Lost, "its node has put it out"),
        "Shutdown" | "NodeShutdown" | "Terminated" => {
            with(ErrorKind::Preempted, "its node is shut down")
        }
        "Preempting" | "Preempted" => {
            with(ErrorKind::Preempted, "a pod of higher rank has its place")
        }
        "NodeLost" => with(ErrorKind::Lost, "its node does not answer"),
        "DeadlineExceeded" => with(ErrorKind::Timeout, "its time is over"),
        "UnexpectedAdmissionError"
        | "OutOfcpu"
        | "OutOfmemory"
        | "OutOfpods"
        | "NodeAffinity"
        | "NodePorts" => with(ErrorKind::Lost, "its node did not take it"),
        _ => match (disruption(pod), terminated) {
            (Some((kind, why)), _) => Some(over(kind, raw_of(reason, "DisruptionTarget"), why)),
            (None, Some((name, terminated))) => Some(of_container(job, name, terminated)),
            (None, None) if phase(pod) == "Succeeded" => Some(RunFact {
                exit: Some(job.exit(0)),
                ..RunFact::of_engine(RunState::Ended, "Succeeded", None)
            }),
            (None, None) => {
                let why = if message.is_empty() { "nothing tells how it ended" } else { message };
                Some(over(ErrorKind::Lost, raw_of(reason, "Failed"), why))
            }
        },
    }
}

fn raw_of<'r>(reason: &'r str, other: &'r str) -> &'r str {
    if reason.is_empty() { other } else { reason }
}

/// How a container has ended.
fn of_container(job: &Job, name: &str, terminated: &ContainerStateTerminated) -> RunFact {
    let reason = terminated.reason.as_deref().unwrap_or("Error");
    let message = terminated.message.as_deref().unwrap_or_default();
    let code = terminated.exit_code;
    if name != MAIN {
        let why = format!(
            "what comes before its command has failed with exit code {code}{}",
            behind(&last_lines(message))
        );
        return over(ErrorKind::Setup, reason, &why);
    }
    match reason {
        "ContainerStatusUnknown" => {
            over(ErrorKind::Lost, reason, "its node does not know any more how it ended")
        }
        "OOMKilled" => RunFact {
            exit: Some(job.exit(code)),
            ..over(
                ErrorKind::Oom,
                reason,
                &format!("it needed more memory than its limit (exit code {code}): ask for more"),
            )
        },
        "StartError" | "ContainerCannotRun" | "RunContainerError" => over(
            ErrorKind::Setup,
            reason,
            &format!("its command could not be started{}", behind(message)),
        ),
        _ => RunFact {
            exit: Some(job.exit(code)),
            ..RunFact::of_engine(RunState::Ended, reason, None)
        },
    }
}

/// What has taken a pod away, where a condition says so (1.25 and later).
fn disruption(pod: &Pod) -> Option<(ErrorKind, &'static str)> {
    let condition = condition_of(pod, "DisruptionTarget").filter(|of| of.status == "True")?;
    Some(match condition.reason.as_deref().unwrap_or_default() {
        "PreemptionByScheduler" => (ErrorKind::Preempted, "a pod of higher rank has its place"),
        "TerminationByKubelet" => {
            (ErrorKind::Preempted, "its node ends it: it is shut down, or short of memory")
        }
        "DeletionByTaintManager" => (ErrorKind::Lost, "its node does not take it any more"),
        "EvictionByEvictionAPI" => (ErrorKind::Preempted, "somebody clears its node"),
        "DeletionByPodGC" => (ErrorKind::Lost, "its node is gone"),
        _ => (ErrorKind::Lost, "it was put out"),
    })
}

/// Whether the server has not said its last word about a Job.
pub(super) fn is_open(job: &BatchJob) -> bool {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .is_none_or(|all| all.iter().all(|of| !matches!(of.type_.as_str(), "Complete" | "Failed")))
}

/// The name of a pod.
pub(super) fn name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

/// The identity of a pod.
pub(super) fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

/// `Pending`, `Running`, …
pub(super) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Whether the command of a pod has begun, so that there is a log.
pub(super) fn has_begun(pod: &Pod) -> bool {
    main_of(pod).is_some_and(|state| state.running.is_some() || state.terminated.is_some())
}

/// Whether the command of a pod is over, so that nothing more comes in its log.
pub(super) fn is_over(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
        || main_of(pod).is_some_and(|state| state.terminated.is_some())
}

/// Whether a pod was told to end so long ago that its node cannot be there any more.
pub(super) fn is_overdue(pod: &Pod, now: Timestamp) -> bool {
    let until = pod.metadata.deletion_timestamp.as_ref();
    until.is_some_and(|until| now.seconds_since(Timestamp::from_jiff(until.0)) > OVERDUE_S)
}

/// The node of a pod.
pub(super) fn node(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or("of no name")
}

fn condition_of<'p>(pod: &'p Pod, of: &str) -> Option<&'p PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == of)
}

/// The containers that come before the command, and that of the command.
fn containers(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.as_ref();
    let first = status.and_then(|status| status.init_container_statuses.as_ref());
    let then = status.and_then(|status| status.container_statuses.as_ref());
    first.into_iter().chain(then).flatten()
}

fn main_of(pod: &Pod) -> Option<&ContainerState> {
    containers(pod).find(|status| status.name == MAIN)?.state.as_ref()
}

/// The container that has come to an end and says why the pod did: the command, or one before it that failed. What stands
/// beside the command, as the cluster may add it, ends as it likes.
fn terminated(pod: &Pod) -> Option<(&str, &ContainerStateTerminated)> {
    fn end(status: &ContainerStatus) -> Option<(&str, &ContainerStateTerminated)> {
        Some((status.name.as_str(), status.state.as_ref()?.terminated.as_ref()?))
    }
    let own = main_of(pod).and_then(|state| Some((MAIN, state.terminated.as_ref()?)));
    let before = pod.status.as_ref().and_then(|status| status.init_container_statuses.as_ref());
    let mut before = before.into_iter().flatten().filter_map(end);
    own.or_else(|| before.find(|(_, end)| end.exit_code != 0))
}

/// When the command of a pod began, if it has.
fn began_at(pod: &Pod) -> Option<Timestamp> {
    let state = main_of(pod)?;
    let running = state.running.as_ref().and_then(|running| running.started_at.as_ref());
    let over = || state.terminated.as_ref()?.started_at.as_ref();
    let at = Timestamp::from_jiff(running.or_else(over)?.0);
    // Of a command that could not be started its node says 1970.
    Some(at).filter(|at| at.as_second() > 0)
}

/// When the command of a pod ended, as far as anybody says: else when it was last seen to change.
pub(super) fn ended_at(pod: &Pod) -> Option<Timestamp> {
    let ended = main_of(pod).and_then(|state| state.terminated.as_ref()?.finished_at.as_ref());
    let changed = || condition_of(pod, "Ready")?.last_transition_time.as_ref();
    let at = ended.or_else(changed).or(pod.metadata.creation_timestamp.as_ref())?;
    Some(Timestamp::from_jiff(at.0))
}
