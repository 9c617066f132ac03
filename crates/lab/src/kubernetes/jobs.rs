//! The Job controller: what of a Job's pods is missing or too much, and when it has ended. [`decide`] only looks.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::cluster::{Cluster, Deletion, Said, key_of, text};
use super::resources::{JOBS, PODS};

/// What is to be done for a Job.
#[derive(Debug, PartialEq)]
pub(super) struct Decided {
    /// So many pods more.
    pub(super) make: i64,
    /// These pods less.
    pub(super) delete: Vec<String>,
    /// Its status, once the pods are made.
    pub(super) status: Value,
    /// Reason and message of its end, if it ends.
    pub(super) end: Option<(&'static str, &'static str)>,
}

/// Whether a Job has ended.
pub(super) fn is_over(job: &Value) -> bool {
    let all = job["status"]["conditions"].as_array().into_iter().flatten();
    let mut ends = all.filter(|of| matches!(text(&of["type"]), "Complete" | "Failed"));
    ends.any(|of| of["status"] == json!("True"))
}

/// What is to be done for a Job with these pods. `active_s` is how long ago it began.
pub(super) fn decide(
    job: &Value,
    pods: &[Arc<Value>],
    active_s: Option<f64>,
    now: &str,
) -> Decided {
    let count =
        |phase: &str| pods.iter().filter(|pod| pod["status"]["phase"] == json!(phase)).count();
    let (succeeded, failed) = (to_i64(count("Succeeded")), to_i64(count("Failed")));
    let active: Vec<&Arc<Value>> = pods
        .iter()
        .filter(|pod| {
            !matches!(text(&pod["status"]["phase"]), "Succeeded" | "Failed")
                && pod["metadata"]["deletionTimestamp"].is_null()
        })
        .collect();
    let spec = &job["spec"];
    // [documented, 1.29]: the place of a pod that is told to end is taken only when it has.
    let is_late = spec["podReplacementPolicy"] == json!("Failed");
    let leaving = pods
        .iter()
        .filter(|pod| {
            is_late
                && !matches!(text(&pod["status"]["phase"]), "Succeeded" | "Failed")
                && !pod["metadata"]["deletionTimestamp"].is_null()
        })
        .count();
    let number = |key: &str| spec[key].as_i64();
    let parallelism = number("parallelism").unwrap_or(1);
    let mut status = json!({"startTime": job["status"]["startTime"]});
    if status["startTime"].is_null() {
        status["startTime"] = json!(now);
    }
    let too_long = number("activeDeadlineSeconds")
        .zip(active_s)
        .is_some_and(|(limit, active_s)| active_s >= seconds(limit));
    let failure = if failed > number("backoffLimit").unwrap_or(6) {
        Some(("BackoffLimitExceeded", "Job has reached the specified backoff limit"))
    } else if too_long {
        Some(("DeadlineExceeded", "Job was active longer than specified deadline"))
    } else {
        None
    };
    let is_complete = match number("completions") {
        Some(wanted) => succeeded >= wanted,
        None => succeeded > 0 && active.is_empty(),
    };
    let mut decided = Decided { make: 0, delete: Vec::new(), status: Value::Null, end: None };
    let name = |pod: &&Arc<Value>| text(&pod["metadata"]["name"]).to_owned();
    let condition = |of: &str| json!({"type": of, "status": "True", "lastProbeTime": now, "lastTransitionTime": now});
    let mut left = 0;
    if let Some((reason, message)) = failure {
        let mut failed = condition("Failed");
        failed["reason"] = json!(reason);
        failed["message"] = json!(message);
        status["conditions"] = json!([failed]);
        decided.delete = active.iter().map(name).collect();
        decided.end = failure;
    } else if is_complete {
        status["conditions"] = json!([condition("Complete")]);
        status["completionTime"] = json!(now);
        decided.delete = active.iter().map(name).collect();
        decided.end = Some(("Completed", "Job completed"));
    } else if job["metadata"]["deletionTimestamp"].is_null() {
        let wanted = match number("completions") {
            Some(completions) => parallelism.min(completions - succeeded),
            None if succeeded > 0 => to_i64(active.len()),
            None => parallelism,
        };
        let there = to_i64(active.len() + leaving);
        decided.make = (wanted - there).max(0);
        let surplus = usize::try_from(to_i64(active.len()) - wanted).unwrap_or(0);
        decided.delete = active.iter().rev().take(surplus).map(name).collect();
        left = wanted;
    } else {
        left = to_i64(active.len());
    }
    for (key, count) in [("active", left), ("succeeded", succeeded), ("failed", failed)] {
        if count > 0 {
            status[key] = json!(count);
        }
    }
    decided.status = status;
    decided
}

fn to_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn seconds(limit: i64) -> f64 {
    i32::try_from(limit).map_or(f64::MAX, f64::from)
}

/// The controller. It remembers only when it may try again to make what was refused.
#[derive(Debug, Default)]
pub(super) struct JobController {
    waits: HashMap<String, (jiff::Timestamp, i64)>,
}

impl JobController {
    /// Brings every Job as far as it goes now.
    pub(super) fn turn(&mut self, cluster: &mut Cluster) {
        let jobs: Vec<Arc<Value>> =
            cluster.store.list(&JOBS, None).map(|(_, job)| Arc::clone(job)).collect();
        // What one Job does changes the pods of no other.
        let mut pods: HashMap<String, Vec<Arc<Value>>> = HashMap::new();
        for (_, pod) in cluster.store.list(&PODS, None) {
            let owner = text(&pod["metadata"]["ownerReferences"][0]["uid"]);
            pods.entry(owner.to_owned()).or_default().push(Arc::clone(pod));
        }
        for job in jobs.iter().filter(|job| !is_over(job)) {
            let own = pods.remove(text(&job["metadata"]["uid"])).unwrap_or_default();
            self.turn_of(cluster, job, &own);
        }
    }

    fn turn_of(&mut self, cluster: &mut Cluster, job: &Value, pods: &[Arc<Value>]) {
        let uid = text(&job["metadata"]["uid"]).to_owned();
        let namespace = text(&job["metadata"]["namespace"]).to_owned();
        let active_s = cluster.seconds_since(&job["status"]["startTime"]);
        let decided = decide(job, pods, active_s, &cluster.now());
        let moment = cluster.moment();
        if decided.make > 0 && self.waits.get(&uid).is_some_and(|(until, _)| moment < *until) {
            return;
        }
        let from = |severity, reason| Said {
            severity,
            reason,
            from: "job-controller",
            host: "",
            part: "",
        };
        for name in &decided.delete {
            let key = super::store::ObjectKey::new(&PODS, &namespace, name);
            if cluster.delete(&PODS, &key, &Deletion::default()).is_ok() {
                cluster.say(
                    job,
                    &from("Normal", "SuccessfulDelete"),
                    &format!("Deleted pod: {name}"),
                );
            }
        }
        let ranks = ranks(job, pods);
        let count = usize::try_from(decided.make).unwrap_or(0);
        for rank in ranks.into_iter().map(Some).chain(std::iter::repeat(None)).take(count) {
            match cluster.create(&PODS, &namespace, pod_of(job, rank), false) {
                Ok(pod) => {
                    let name = text(&pod["metadata"]["name"]);
                    cluster.say(
                        job,
                        &from("Normal", "SuccessfulCreate"),
                        &format!("Created pod: {name}"),
                    );
                }
                Err(refused) => {
                    let why = format!("Error creating: {}", refused.message());
                    cluster.say(job, &from("Warning", "FailedCreate"), &why);
                    let wait_s = self.waits.get(&uid).map_or(1, |(_, last)| (last * 2).min(60));
                    let wait = jiff::SignedDuration::from_secs(wait_s);
                    let until = moment.checked_add(wait).unwrap_or(moment);
                    self.waits.insert(uid, (until, wait_s));
                    return;
                }
            }
        }
        self.waits.remove(&uid);
        if job["status"] == decided.status {
            return;
        }
        let mut changed = job.clone();
        changed["status"] = decided.status;
        if let Some((reason, message)) = decided.end {
            let severity = if reason == "Completed" { "Normal" } else { "Warning" };
            cluster.say(job, &from(severity, reason), message);
        }
        // Its template may be gone meanwhile, its place not: nobody else has the cluster now.
        let key = key_of(&JOBS, job);
        if cluster.store.get(&key).is_some() {
            cluster.store.put(&key, changed);
        }
    }
}

/// Where the rank of a pod stands.
const RANK: &str = "batch.kubernetes.io/job-completion-index";

/// The ranks that no pod of a Job has, if its pods have ranks [documented, 1.21].
fn ranks(job: &Value, pods: &[Arc<Value>]) -> Vec<i64> {
    if job["spec"]["completionMode"] != json!("Indexed") {
        return Vec::new();
    }
    let taken = |rank: &i64| {
        pods.iter().any(|pod| {
            pod["status"]["phase"] != json!("Failed")
                && pod["metadata"]["annotations"][RANK] == json!(rank.to_string())
        })
    };
    (0..job["spec"]["completions"].as_i64().unwrap_or(1)).filter(|rank| !taken(rank)).collect()
}

/// The pod that a Job makes.
fn pod_of(job: &Value, rank: Option<i64>) -> Value {
    let mut pod = unranked(job);
    let Some(rank) = rank.map(|rank| rank.to_string()) else { return pod };
    let name = format!("{}-{rank}", text(&job["metadata"]["name"]));
    let meta = &mut pod["metadata"];
    meta["generateName"] = json!(format!("{name}-"));
    for key in ["labels", "annotations"] {
        if !meta[key].is_object() {
            meta[key] = json!({});
        }
        meta[key][RANK] = json!(rank);
    }
    pod["spec"]["hostname"] = json!(name);
    for container in pod["spec"]["containers"].as_array_mut().into_iter().flatten() {
        if !container["env"].is_array() {
            container["env"] = json!([]);
        }
        if let Some(env) = container["env"].as_array_mut() {
            env.push(json!({"name": "JOB_COMPLETION_INDEX", "value": rank}));
        }
    }
    pod
}

fn unranked(job: &Value) -> Value {
    let template = &job["spec"]["template"];
    let mut meta = json!({"generateName": format!("{}-", text(&job["metadata"]["name"]))});
    for key in ["labels", "annotations"] {
        if template["metadata"][key].is_object() {
            meta[key] = template["metadata"][key].clone();
        }
    }
    meta["ownerReferences"] = json!([{
        "apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"], "uid": job["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    }]);
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": template["spec"]})
}
