//! The scheduler: on which node a pod runs, who has to go for it, or why nowhere. [`place`] only looks.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};

use super::cluster::{Cluster, Deletion, Said, key_of, text};
use super::quantity::Quantity;
use super::quota::{self, Amounts};
use super::resources::{NODES, PODS};

/// Set on a pod that a fault keeps from every node.
pub(super) const KEPT_OFF: &str = "emulator/unschedulable";

/// A node and the pods on it that have not ended.
pub(super) struct NodeLoad {
    node: Arc<Value>,
    pods: Vec<Arc<Value>>,
    /// What these have asked for together.
    taken: Amounts,
}

impl NodeLoad {
    fn new(node: Arc<Value>, pods: Vec<Arc<Value>>) -> Self {
        let taken = taken(pods.iter());
        Self { node, pods, taken }
    }

    fn name(&self) -> &str {
        text(&self.node["metadata"]["name"])
    }

    /// With one pod more.
    fn take(&mut self, pod: &Arc<Value>) {
        add(&mut self.taken, pod);
        self.pods.push(Arc::clone(pod));
    }
}

/// What pods have asked for together.
fn taken<'a>(pods: impl Iterator<Item = &'a Arc<Value>>) -> Amounts {
    let mut sum = Amounts::new();
    pods.for_each(|pod| add(&mut sum, pod));
    sum
}

fn add(sum: &mut Amounts, pod: &Value) {
    for (name, asked) in quota::asked(&pod["spec"], "requests") {
        let place = sum.entry(name).or_insert(Quantity::ZERO);
        *place = place.plus(asked);
    }
}

/// Where a pod goes.
#[derive(Debug, PartialEq)]
pub(super) enum Placement {
    /// To this node.
    On(String),
    /// To this node, once these pods are gone.
    After(String, Vec<String>),
    /// Nowhere, and why.
    Nowhere(String),
}

fn priority(pod: &Value) -> i64 {
    pod["spec"]["priority"].as_i64().unwrap_or(0)
}

fn tolerates(pod: &Value, taint: &Value) -> bool {
    pod["spec"]["tolerations"].as_array().into_iter().flatten().any(|of| {
        let key = text(&of["key"]);
        let effect = text(&of["effect"]);
        let same_key = key.is_empty() || key == text(&taint["key"]);
        let same_effect = effect.is_empty() || effect == text(&taint["effect"]);
        let same_value =
            text(&of["operator"]) == "Exists" || text(&of["value"]) == text(&taint["value"]);
        same_key && same_effect && same_value
    })
}

/// What keeps a pod from a node, whatever runs there. `None` if nothing does.
fn barred(pod: &Value, node: &Value) -> Option<String> {
    if node["spec"]["unschedulable"] == json!(true) {
        return Some("node(s) were unschedulable".to_owned());
    }
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let mut against = taints.filter(|taint| {
        matches!(text(&taint["effect"]), "NoSchedule" | "NoExecute") && !tolerates(pod, taint)
    });
    if let Some(taint) = against.next() {
        let (key, value) = (text(&taint["key"]), text(&taint["value"]));
        return Some(format!("node(s) had taint {{{key}: {value}}}, that the pod didn't tolerate"));
    }
    let labels = &node["metadata"]["labels"];
    let mut selected = pod["spec"]["nodeSelector"].as_object().into_iter().flatten();
    let matches = selected.all(|(key, value)| labels[key] == *value);
    if matches && affine(pod, node) {
        None
    } else {
        Some("node(s) didn't match Pod's node affinity".to_owned())
    }
}

/// Whether a node fulfils what the affinity of a pod requires.
fn affine(pod: &Value, node: &Value) -> bool {
    let required =
        &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let Some(terms) = required["nodeSelectorTerms"].as_array() else { return true };
    let fulfils = |rule: &Value, is: &Value| {
        let values = rule["values"].as_array().is_some_and(|values| values.contains(is));
        match text(&rule["operator"]) {
            "In" => values,
            "NotIn" => !values,
            "Exists" => !is.is_null(),
            "DoesNotExist" => is.is_null(),
            _ => false,
        }
    };
    terms.iter().any(|term| {
        let all = |key: &str| term[key].as_array().into_iter().flatten();
        let labels = &node["metadata"]["labels"];
        all("matchExpressions").all(|rule| fulfils(rule, &labels[text(&rule["key"])]))
            && all("matchFields").all(|rule| fulfils(rule, &node["metadata"]["name"]))
    })
}

/// What of a node is not enough for a pod beside so many others, which have taken so much.
fn lacking(pod: &Value, node: &Value, (others, taken): (usize, &Amounts)) -> Vec<String> {
    let amount = |value: &Value| Quantity::parse(text(value)).unwrap_or(Quantity::ZERO);
    let allocatable = &node["status"]["allocatable"];
    let mut lacks = Vec::new();
    let room = amount(&allocatable["pods"]).whole();
    if !allocatable["pods"].is_null() && i64::try_from(others).unwrap_or(i64::MAX) >= room {
        lacks.push("Too many pods".to_owned());
    }
    for (name, asked) in quota::asked(&pod["spec"], "requests") {
        let used = taken.get(&name).copied().unwrap_or(Quantity::ZERO);
        if asked.order(Quantity::ZERO).is_gt()
            && used.plus(asked).order(amount(&allocatable[&name])).is_gt()
        {
            lacks.push(format!("Insufficient {name}"));
        }
    }
    lacks
}

/// Where a pod goes, among nodes in their order.
pub(super) fn place(pod: &Value, nodes: &[NodeLoad]) -> Placement {
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut open = Vec::new();
    for load in nodes {
        if let Some(reason) = barred(pod, &load.node) {
            *reasons.entry(reason).or_default() += 1;
            continue;
        }
        let lacks = lacking(pod, &load.node, (load.pods.len(), &load.taken));
        if lacks.is_empty() {
            open.push(load);
        }
        for lack in lacks {
            *reasons.entry(lack).or_default() += 1;
        }
    }
    // The one with the fewest pods, the first of them: work is spread.
    if let Some(load) = open.into_iter().min_by_key(|load| load.pods.len()) {
        return Placement::On(load.name().to_owned());
    }
    if let Some(placement) = preempted(pod, nodes) {
        return placement;
    }
    if nodes.is_empty() {
        return Placement::Nowhere("no nodes available to schedule pods".to_owned());
    }
    let mut each: Vec<String> =
        reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    each.sort_unstable();
    Placement::Nowhere(format!("0/{} nodes are available: {}.", nodes.len(), each.join(", ")))
}

/// A node where less important pods can make room: those of least priority go first, and no more than have to.
fn preempted(pod: &Value, nodes: &[NodeLoad]) -> Option<Placement> {
    let own = priority(pod);
    if text(&pod["spec"]["preemptionPolicy"]) == "Never" {
        return None;
    }
    nodes.iter().filter(|load| barred(pod, &load.node).is_none()).find_map(|load| {
        let mut less: Vec<&Arc<Value>> =
            load.pods.iter().filter(|other| priority(other) < own).collect();
        less.sort_by_key(|other| priority(other));
        let mut victims: Vec<&Arc<Value>> = Vec::new();
        for victim in less {
            victims.push(victim);
            let left: Vec<&Arc<Value>> = load
                .pods
                .iter()
                .filter(|other| !victims.iter().any(|victim| Arc::ptr_eq(victim, other)))
                .collect();
            let beside = taken(left.iter().copied());
            if lacking(pod, &load.node, (left.len(), &beside)).is_empty() {
                let names =
                    victims.iter().map(|victim| text(&victim["metadata"]["name"]).to_owned());
                return Some(Placement::After(load.name().to_owned(), names.collect()));
            }
        }
        None
    })
}

/// Places every pod that has no node yet, the most important first.
pub(super) fn turn(cluster: &mut Cluster) {
    let mut waiting: Vec<Arc<Value>> = cluster
        .store
        .list(&PODS, None)
        .filter(|(_, pod)| {
            text(&pod["spec"]["nodeName"]).is_empty()
                && !quota::is_over(pod)
                && pod["metadata"]["deletionTimestamp"].is_null()
                && pod["spec"]["schedulerName"] == json!("default-scheduler")
                && pod["metadata"]["annotations"][KEPT_OFF].is_null()
        })
        .map(|(_, pod)| Arc::clone(pod))
        .collect();
    waiting.sort_by_key(|pod| -priority(pod));
    let mut nodes = loads(cluster);
    for pod in waiting {
        let placement = place(&pod, &nodes);
        match &placement {
            Placement::On(name) => {
                if let Some(load) = nodes.iter_mut().find(|load| load.name() == name) {
                    load.take(&pod);
                }
                settle(cluster, &pod, placement);
            }
            Placement::Nowhere(_) => settle(cluster, &pod, placement),
            Placement::After(..) => {
                settle(cluster, &pod, placement);
                nodes = loads(cluster);
            }
        }
    }
}

fn loads(cluster: &Cluster) -> Vec<NodeLoad> {
    let mut on: HashMap<&str, Vec<Arc<Value>>> = HashMap::new();
    for (_, pod) in cluster.store.list(&PODS, None).filter(|(_, pod)| !quota::is_over(pod)) {
        on.entry(text(&pod["spec"]["nodeName"])).or_default().push(Arc::clone(pod));
    }
    let nodes = cluster.store.list(&NODES, None);
    nodes
        .map(|(_, node)| {
            let pods = on.remove(text(&node["metadata"]["name"])).unwrap_or_default();
            NodeLoad::new(Arc::clone(node), pods)
        })
        .collect()
}

fn settle(cluster: &mut Cluster, pod: &Value, placement: Placement) {
    let key = key_of(&PODS, pod);
    let from =
        |severity, reason| Said { severity, reason, from: "default-scheduler", host: "", part: "" };
    if let Placement::Nowhere(why) = &placement
        && pod["status"]["conditions"][0]["message"] == json!(why)
    {
        return;
    }
    let mut changed = pod.clone();
    let now = cluster.now();
    let place = format!("{}/{}", key.namespace, key.name);
    let scheduled = |status: &str| json!({"type": "PodScheduled", "status": status, "lastProbeTime": null, "lastTransitionTime": now});
    match placement {
        Placement::On(node) => {
            changed["spec"]["nodeName"] = json!(node);
            changed["status"]["conditions"] = json!([scheduled("True")]);
            if let Some(status) = changed["status"].as_object_mut() {
                status.shift_remove("nominatedNodeName");
            }
            cluster.store.put(&key, changed);
            let said = format!("Successfully assigned {place} to {node}");
            cluster.say(pod, &from("Normal", "Scheduled"), &said);
        }
        Placement::After(node, victims) => {
            if changed["status"]["nominatedNodeName"] == json!(node) {
                return;
            }
            changed["status"]["nominatedNodeName"] = json!(node);
            cluster.store.put(&key, changed);
            let on_node: Vec<Arc<Value>> = cluster
                .store
                .list(&PODS, None)
                .filter(|(_, other)| other["spec"]["nodeName"] == json!(node))
                .filter(|(key, _)| victims.contains(&key.name))
                .map(|(_, other)| Arc::clone(other))
                .collect();
            for victim in on_node {
                let said = format!("Preempted by {place} on node {node}");
                cluster.say(&victim, &from("Normal", "Preempted"), &said);
                drop(cluster.delete(&PODS, &key_of(&PODS, &victim), &Deletion::default()));
            }
        }
        Placement::Nowhere(why) => {
            let mut condition = scheduled("False");
            condition["reason"] = json!("Unschedulable");
            condition["message"] = json!(why);
            changed["status"]["conditions"] = json!([condition]);
            cluster.store.put(&key, changed);
            cluster.say(pod, &from("Warning", "FailedScheduling"), &why);
        }
    }
}
