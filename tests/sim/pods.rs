//! What a server of Kubernetes keeps: Jobs and their pods, each as the server writes it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use tpu_core::model::time::Timestamp;
use tpu_kubernetes::api::ApiAnswer;

use super::cluster::Order;
use super::world::State;

/// The label that says which launch something is of.
pub(super) const LAUNCH: &str = "tpu.launch";

/// The label of what only looks at the volume.
pub(super) const LOOK: &str = "tpu.look";

/// The label of what only keeps a place.
pub(super) const GIVEN_UP: &str = "tpu.given-up";

/// A pod has so long to end when it is told to (Kubernetes documentation, termination of pods: 30 s).
pub(super) const GRACE: Duration = Duration::from_secs(30);

/// How questions fare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weather {
    /// They are answered.
    Fair,
    /// Nobody listens.
    Away,
    /// Somebody does, and says nothing.
    Hangs,
    /// The answer takes so long; what was asked for is done.
    Slow(Duration),
    /// The server says that it has failed.
    Failing,
}

/// What happens to a creation whose answer is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// It is not heard.
    Unheard,
    /// It is carried out.
    Unanswered,
    /// It is carried out so much later.
    Later(Duration),
}

/// A Job.
#[derive(Clone, Debug)]
pub(super) struct BatchJob {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) created: Duration,
    pub(super) manifest: Value,
    /// Whether it is complete, and why not; `None` while it is not over.
    pub(super) over: Option<(bool, &'static str, Duration)>,
    pub(super) made_pod: bool,
}

impl BatchJob {
    pub(super) fn label(&self, name: &str) -> Option<&str> {
        self.manifest["metadata"]["labels"][name].as_str()
    }

    /// Whether it is the run of a launch, and not over.
    pub(super) fn is_live(&self) -> bool {
        self.over.is_none() && self.label(LAUNCH).is_some() && self.label(GIVEN_UP).is_none()
    }

    /// Whether it takes up no place any more by now.
    pub(super) fn has_passed(&self, now: Duration) -> bool {
        let stays = self.manifest["spec"]["ttlSecondsAfterFinished"].as_u64();
        let (Some(stays), Some((_, _, at))) = (stays, self.over) else { return false };
        now >= at + Duration::from_secs(stays)
    }

    pub(super) fn object(&self) -> Value {
        let mut object = self.manifest.clone();
        object["metadata"]["uid"] = json!(self.uid);
        object["metadata"]["creationTimestamp"] = json!(second(self.created));
        if let Some((is_complete, reason, at)) = self.over {
            let kind = if is_complete { "Complete" } else { "Failed" };
            object["status"] = json!({"conditions": [{
                "type": kind, "status": "True", "reason": reason, "lastTransitionTime": second(at),
            }]});
        }
        object
    }
}

/// How a pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It waits for its node, or for its image, until then.
    Pending(Duration),
    Running,
    /// Its container ended with a code, and why.
    Ended(i32, &'static str),
    /// It was put out, which is said of the whole pod.
    PutOut(&'static str),
}

/// A pod.
#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) name: String,
    pub(super) job: String,
    pub(super) job_uid: String,
    pub(super) token: Option<String>,
    pub(super) order: Order,
    pub(super) labels: Value,
    pub(super) node: &'static str,
    pub(super) created: Duration,
    pub(super) phase: Phase,
    /// When it is gone, since it was told to end.
    pub(super) leaves: Option<Duration>,
    /// Whether it was taken away for a pod of higher rank.
    pub(super) preempted: bool,
    pub(super) printed: Vec<(Duration, String)>,
}

impl Pod {
    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Ended(..) | Phase::PutOut(_))
    }

    pub(super) fn object(&self) -> Value {
        let container = |state: &Value| {
            json!([{
                "name": "main", "image": "train:1", "imageID": "", "ready": false, "restartCount": 0,
                "state": state,
            }])
        };
        let mut status = match &self.phase {
            Phase::Pending(_) => json!({
                "phase": "Pending",
                "containerStatuses": container(&json!({"waiting": {"reason": "ContainerCreating"}})),
            }),
            Phase::Running => json!({
                "phase": "Running",
                "containerStatuses": container(&json!({"running": {"startedAt": second(self.created)}})),
            }),
            Phase::Ended(code, reason) => json!({
                "phase": if *code == 0 { "Succeeded" } else { "Failed" },
                "containerStatuses": container(&json!({"terminated": {
                    "exitCode": code, "reason": reason, "finishedAt": second(self.created),
                }})),
            }),
            Phase::PutOut(reason) => json!({"phase": "Failed", "reason": reason}),
        };
        if self.preempted {
            status["conditions"] = json!([{
                "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
            }]);
        }
        let mut object = json!({
            "metadata": {
                "name": self.name, "uid": self.name, "labels": self.labels,
                "creationTimestamp": second(self.created),
            },
            "spec": {"nodeName": self.node, "containers": []},
            "status": status,
        });
        if let Some(leaves) = self.leaves {
            object["metadata"]["deletionTimestamp"] = json!(second(leaves));
            object["metadata"]["deletionGracePeriodSeconds"] = json!(GRACE.as_secs());
        }
        object
    }

    /// What it has printed from some second on, the time of each line in front of it.
    pub(super) fn log(&self, since: Option<&str>) -> String {
        let since = since.and_then(|text| text.parse::<jiff::Timestamp>().ok());
        let stamped = |(at, text): &(Duration, String)| {
            let at = instant(*at);
            since.is_none_or(|since| at >= since).then(|| format!("{at} {text}"))
        };
        self.printed.iter().filter_map(stamped).collect()
    }
}

/// An instant as the server writes it in a log.
pub(super) fn instant(at: Duration) -> jiff::Timestamp {
    let begin = jiff::Timestamp::from_second(State::begin().as_second()).unwrap_or_default();
    begin + at
}

/// A time as the server writes it in an object.
pub(super) fn second(at: Duration) -> String {
    Timestamp::from_second(State::begin().as_second()).plus(at).to_rfc3339()
}

/// A creation whose answer nobody heard, and which is carried out later.
pub(super) struct Later {
    pub(super) due: Duration,
    pub(super) manifest: Value,
}

/// What there is.
pub(super) struct There {
    pub(super) jobs: Vec<BatchJob>,
    pub(super) pods: Vec<Pod>,
    pub(super) later: Vec<Later>,
    /// How often a launch has got a Job.
    pub(super) accepted: BTreeMap<String, u32>,
    pub(super) weather: Weather,
    pub(super) count: u32,
}

impl There {
    pub(super) fn create(&mut self, manifest: Value, now: Duration) -> ApiAnswer {
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if self.jobs.iter().any(|job| job.name == name) {
            return refused(409, "AlreadyExists", "jobs.batch already exists");
        }
        self.count += 1;
        let uid = format!("uid-{}", self.count);
        let job = BatchJob { name, uid, created: now, manifest, over: None, made_pod: false };
        if let Some(token) = job.label(LAUNCH).filter(|_| job.is_live()) {
            *self.accepted.entry(token.to_owned()).or_default() += 1;
        }
        let answer = said(201, &job.object());
        self.jobs.push(job);
        answer
    }
}

/// Whether a selector of one label chooses something: `NAME`, or `NAME=VALUE`.
pub(super) fn is_chosen(labels: &Value, selector: &str) -> bool {
    match selector.split_once('=') {
        _ if selector.is_empty() => true,
        Some((name, value)) => labels[name] == value,
        None => labels[selector].is_string(),
    }
}

pub(super) fn said(status: u16, body: &Value) -> ApiAnswer {
    ApiAnswer { status, body: body.to_string().into(), ..ApiAnswer::default() }
}

pub(super) fn refused(status: u16, reason: &str, message: &str) -> ApiAnswer {
    said(status, &json!({"kind": "Status", "code": status, "reason": reason, "message": message}))
}
