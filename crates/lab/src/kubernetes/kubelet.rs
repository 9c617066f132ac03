//! The kubelets of all simulated nodes: which pods run here, and what becomes of them. The one part that touches the
//! machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::cluster::{Cluster, Deletion, Said, text};
use super::logs::LogShelf;
use super::quota;
use super::resources::{NODES, PODS};
use super::running::RunningPod;
use super::scheduler::KEPT_OFF;
use super::store::ObjectKey;
use tpu_system::sys::clock::{Clock as _, SystemClock};

/// What is done to a pod from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodFault {
    /// Its memory is not enough.
    OutOfMemory,
    /// Its node has no memory left.
    Evict,
    /// Its node is silent, and has been for so many seconds already.
    NodeLost(u32),
    /// Its images are not to be had.
    Image,
    /// No node will have it.
    Unschedulable,
    /// A pod of higher rank has its place.
    Preempt,
    /// Somebody deletes it.
    Delete,
}

impl PodFault {
    /// By its word. `ago_s` is since when.
    pub(super) fn parse(word: &str, ago_s: u32) -> Option<Self> {
        Some(match word {
            "oom" => Self::OutOfMemory,
            "evict" => Self::Evict,
            "node-lost" => Self::NodeLost(ago_s),
            "image" => Self::Image,
            "unschedulable" => Self::Unschedulable,
            "preempt" => Self::Preempt,
            "delete" => Self::Delete,
            _ => return None,
        })
    }
}

/// The kubelets.
#[derive(Debug)]
pub(super) struct Kubelets {
    dir: PathBuf,
    shelf: Arc<LogShelf>,
    clock: SystemClock,
    pods: BTreeMap<String, RunningPod>,
    nodes: BTreeSet<String>,
    silent: BTreeSet<String>,
}

impl Kubelets {
    /// None yet; what they keep lies in a directory.
    pub(super) fn new(dir: &Path, shelf: Arc<LogShelf>) -> Self {
        Self {
            dir: dir.to_owned(),
            shelf,
            clock: SystemClock::new(),
            pods: BTreeMap::new(),
            nodes: BTreeSet::new(),
            silent: BTreeSet::new(),
        }
    }

    /// Adds a node, as its kubelet reports it.
    pub(super) fn add_node(&mut self, cluster: &mut Cluster, name: &str) -> Result<(), String> {
        let now = cluster.now();
        let condition = |of: &str, is: &str, reason: &str, message: &str| {
            json!({
                "type": of, "status": is, "lastHeartbeatTime": now, "lastTransitionTime": now, "reason": reason,
                "message": message,
            })
        };
        let resources = json!({
            "cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110", "nvidia.com/gpu": "2",
        });
        let mut conditions = Vec::new();
        for (of, what) in [("Memory", "memory"), ("Disk", "disk"), ("PID", "PID")] {
            let (reason, text) = match of {
                "Disk" => (
                    "KubeletHasNoDiskPressure".to_owned(),
                    "kubelet has no disk pressure".to_owned(),
                ),
                _ => (
                    format!("KubeletHasSufficient{of}"),
                    format!("kubelet has sufficient {what} available"),
                ),
            };
            conditions.push(condition(&format!("{of}Pressure"), "False", &reason, &text));
        }
        conditions.push(condition(
            "Ready",
            "True",
            "KubeletReady",
            "kubelet is posting ready status",
        ));
        let node = json!({
            "kind": "Node", "apiVersion": "v1",
            "metadata": {"name": name, "labels": {
                "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "pool": "gpu",
            }},
            "spec": {},
            "status": {
                "capacity": resources, "allocatable": resources, "conditions": conditions,
                "addresses": [
                    {"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name},
                ],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
                "nodeInfo": {
                    "machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "", "osImage": "simulated",
                    "containerRuntimeVersion": "process://1", "kubeletVersion": "v1.20.2",
                    "kubeProxyVersion": "v1.20.2", "operatingSystem": "linux", "architecture": "amd64",
                },
            },
        });
        cluster.create(&NODES, "", node, false).map_err(|refused| refused.message().to_owned())?;
        self.nodes.insert(name.to_owned());
        Ok(())
    }

    /// Whether a node is there and answers.
    pub(super) fn answers(&self, node: &str) -> bool {
        self.nodes.contains(node) && !self.silent.contains(node)
    }

    /// Brings every pod as far as it goes now.
    pub(super) fn turn(&mut self, cluster: &mut Cluster) {
        let bound: Vec<(ObjectKey, Arc<Value>)> = cluster
            .store
            .list(&PODS, None)
            .filter(|(_, pod)| self.answers(text(&pod["spec"]["nodeName"])))
            .map(|(key, pod)| (key.clone(), Arc::clone(pod)))
            .collect();
        for (key, pod) in &bound {
            self.turn_of(cluster, key, pod);
        }
        let there: BTreeSet<String> = cluster
            .store
            .list(&PODS, None)
            .map(|(_, pod)| text(&pod["metadata"]["uid"]).to_owned())
            .collect();
        // Gone by force: nobody waits for it.
        self.pods.retain(|uid, running| {
            let stays = there.contains(uid);
            if !stays {
                running.end();
            }
            stays
        });
    }

    fn turn_of(&mut self, cluster: &mut Cluster, key: &ObjectKey, pod: &Value) {
        let uid = text(&pod["metadata"]["uid"]).to_owned();
        let now = self.clock.monotonic();
        let is_leaving = pod["metadata"]["deletionTimestamp"].is_string();
        if quota::is_over(pod) && !self.pods.contains_key(&uid) {
            return;
        }
        if !self.pods.contains_key(&uid) && is_leaving {
            self.forget(cluster, key, &uid);
            return;
        }
        let running = self
            .pods
            .entry(uid.clone())
            .or_insert_with(|| RunningPod::new(cluster, pod, &self.dir, now));
        if is_leaving && running.killed_at.is_none() {
            let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_u64().unwrap_or(30);
            running.terminate(cluster, pod, now + Duration::from_secs(grace));
        }
        if running.killed_at.is_some_and(|at| now >= at) {
            running.signal(Signal::KILL);
        }
        running.reap(&cluster.now());
        let claims = self.dir.join("claims");
        running.advance(cluster, pod, (&self.shelf, &claims, &self.clock));
        // A log is whole before it is said that its container has ended.
        if !running.runs() && !self.shelf.is_over(&uid) {
            return;
        }
        running.explain(&self.shelf);
        let status = running.status(pod, &cluster.now());
        let is_over = !running.runs();
        if let Some(now) = cluster.store.get(key)
            && now["status"] != status
        {
            let mut changed = Value::clone(now);
            changed["status"] = status;
            cluster.store.put(key, changed);
        }
        if is_leaving && is_over {
            self.forget(cluster, key, &uid);
        } else if cluster.store.get(key).is_some_and(|pod| quota::is_over(pod)) && is_over {
            self.pods.remove(&uid);
        }
    }

    /// The last word on a pod that was to end.
    fn forget(&mut self, cluster: &mut Cluster, key: &ObjectKey, uid: &str) {
        if let Some(mut running) = self.pods.remove(uid) {
            running.end();
        }
        let at_once =
            Deletion { grace_s: Some(0), uid: Some(uid.to_owned()), ..Deletion::default() };
        // Somebody else may have been faster.
        drop(cluster.delete(&PODS, key, &at_once));
    }

    /// Does something to a pod. A sentence where that makes no sense.
    pub(super) fn hit(
        &mut self,
        cluster: &mut Cluster,
        key: &ObjectKey,
        pod: &Value,
        fault: PodFault,
    ) -> Result<(), String> {
        let uid = text(&pod["metadata"]["uid"]);
        let name = &key.name;
        let node = text(&pod["spec"]["nodeName"]).to_owned();
        if fault == PodFault::Delete {
            return cluster
                .delete(&PODS, key, &Deletion::default())
                .map(drop)
                .map_err(|refused| refused.message().to_owned());
        }
        if fault == PodFault::Unschedulable {
            if let Some(mut running) = self.pods.remove(uid) {
                running.end();
            }
            keep_off(cluster, key, pod);
            return Ok(());
        }
        if let PodFault::NodeLost(ago_s) = fault {
            if !self.nodes.contains(&node) {
                return Err(format!("pod {name} is on no simulated node"));
            }
            self.silent.insert(node.clone());
            return lose(cluster, &node, ago_s);
        }
        let running = self.pods.get_mut(uid);
        let running =
            running.ok_or_else(|| format!("pod {name} does not run on a simulated node"))?;
        match fault {
            PodFault::OutOfMemory if running.runs() => running.out_of_memory(),
            PodFault::OutOfMemory => return Err(format!("no container of pod {name} runs")),
            PodFault::Evict => {
                let why = "The node was low on resource: memory. ".to_owned();
                running.fail("Evicted", why.clone());
                let said = Said {
                    severity: "Warning",
                    reason: "Evicted",
                    from: "kubelet",
                    host: &node,
                    part: "",
                };
                cluster.say(pod, &said, &why);
            }
            PodFault::Preempt => running.preempt(),
            _ => running.unpull(),
        }
        Ok(())
    }

    /// Ends everything that runs.
    pub(super) fn end(&mut self) {
        for running in self.pods.values() {
            running.signal(Signal::KILL);
        }
        for running in self.pods.values_mut() {
            running.end();
        }
        self.pods.clear();
    }
}

/// Takes a pod from its node, and lets no other have it.
fn keep_off(cluster: &mut Cluster, key: &ObjectKey, pod: &Value) {
    let count = cluster.store.list(&NODES, None).count();
    let why = format!("0/{count} nodes are available: {count} Insufficient nvidia.com/gpu.");
    let mut changed = pod.clone();
    if let Some(spec) = changed["spec"].as_object_mut() {
        spec.shift_remove("nodeName");
    }
    if !changed["metadata"]["annotations"].is_object() {
        changed["metadata"]["annotations"] = json!({});
    }
    changed["metadata"]["annotations"][KEPT_OFF] = json!("true");
    changed["status"] = json!({
        "phase": "Pending", "qosClass": pod["status"]["qosClass"],
        "conditions": [{
            "type": "PodScheduled", "status": "False", "lastProbeTime": null, "lastTransitionTime": cluster.now(),
            "reason": "Unschedulable", "message": why,
        }],
    });
    cluster.store.put(key, changed);
    let said = Said {
        severity: "Warning",
        reason: "FailedScheduling",
        from: "default-scheduler",
        host: "",
        part: "",
    };
    cluster.say(pod, &said, &why);
}

/// A node whose kubelet is silent: it is not known how it is, and nothing new comes to it [node-lost].
fn lose(cluster: &mut Cluster, name: &str, ago_s: u32) -> Result<(), String> {
    let key = ObjectKey::new(&NODES, "", name);
    let node = cluster.store.get(&key).ok_or_else(|| format!("there is no node {name}"))?;
    let mut node = Value::clone(node);
    let now = earlier(cluster.moment(), ago_s.into());
    for condition in node["status"]["conditions"].as_array_mut().into_iter().flatten() {
        condition["status"] = json!("Unknown");
        condition["reason"] = json!("NodeStatusUnknown");
        condition["message"] = json!("Kubelet stopped posting node status.");
        condition["lastTransitionTime"] = json!(now);
    }
    let taint = |effect: &str| json!({"key": "node.kubernetes.io/unreachable", "effect": effect, "timeAdded": now});
    node["spec"]["taints"] = json!([taint("NoSchedule"), taint("NoExecute")]);
    cluster.store.put(&key, node);
    let pods: Vec<(ObjectKey, Arc<Value>)> = cluster
        .store
        .list(&PODS, None)
        .filter(|(_, pod)| text(&pod["spec"]["nodeName"]) == name && !quota::is_over(pod))
        .map(|(key, pod)| (key.clone(), Arc::clone(pod)))
        .collect();
    for (key, pod) in pods {
        let mut changed = Value::clone(&pod);
        for condition in changed["status"]["conditions"].as_array_mut().into_iter().flatten() {
            if text(&condition["type"]) == "Ready" {
                condition["status"] = json!("False");
                condition["lastTransitionTime"] = json!(now);
            }
        }
        cluster.store.put(&key, changed);
        let said = Said {
            severity: "Warning",
            reason: "NodeNotReady",
            from: "node-controller",
            host: "",
            part: "",
        };
        cluster.say(&pod, &said, "Node is not ready");
    }
    Ok(())
}

/// A time so many seconds before another.
fn earlier(moment: jiff::Timestamp, seconds: i64) -> String {
    let at = moment.checked_sub(jiff::SignedDuration::from_secs(seconds)).unwrap_or(moment);
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Deletes the pods of silent nodes whose patience is over [watch-pods-lost].
pub(super) fn evict(cluster: &mut Cluster) {
    let mut leaving = Vec::new();
    for (_, node) in cluster.store.list(&NODES, None) {
        for taint in node["spec"]["taints"].as_array().into_iter().flatten() {
            if text(&taint["effect"]) != "NoExecute" {
                continue;
            }
            let Some(since) = cluster.seconds_since(&taint["timeAdded"]) else { continue };
            for (key, pod) in cluster.store.list(&PODS, None) {
                let bears =
                    pod["spec"]["tolerations"].as_array().into_iter().flatten().find(|of| {
                        let all = text(&of["key"]).is_empty() && text(&of["operator"]) == "Exists";
                        all || of["key"] == taint["key"]
                    });
                let patience = match bears.map(|of| of["tolerationSeconds"].as_i64()) {
                    None => 0.0,
                    Some(None) => f64::MAX,
                    Some(Some(seconds)) => i32::try_from(seconds).map_or(f64::MAX, f64::from),
                };
                if pod["spec"]["nodeName"] == node["metadata"]["name"]
                    && pod["metadata"]["deletionTimestamp"].is_null()
                    && since >= patience
                {
                    leaving.push((key.clone(), Arc::clone(pod), since - patience));
                }
            }
        }
    }
    for (key, pod, late_s) in leaving {
        let said = Said {
            severity: "Normal",
            reason: "TaintManagerEviction",
            from: "taint-controller",
            host: "",
            part: "",
        };
        let text = format!("Marking for deletion Pod {}/{}", key.namespace, key.name);
        cluster.say(&pod, &said, &text);
        drop(cluster.delete(&PODS, &key, &Deletion::default()));
        backdate(cluster, &key, late_s);
    }
}

/// Has a deletion be one of so many seconds ago.
fn backdate(cluster: &mut Cluster, key: &ObjectKey, late_s: f64) {
    #[expect(clippy::cast_possible_truncation, reason = "a cast of a float saturates")]
    let late_s = late_s as i64;
    let Some(mut pod) = cluster.store.get(key).map(|pod| Value::clone(pod)) else { return };
    let until = text(&pod["metadata"]["deletionTimestamp"]).parse::<jiff::Timestamp>();
    if let (Ok(until), true) = (until, late_s > 0) {
        pod["metadata"]["deletionTimestamp"] = json!(earlier(until, late_s));
        cluster.store.put(key, pod);
    }
}
