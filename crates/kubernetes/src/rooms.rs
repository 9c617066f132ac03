//! How much room a cluster has: its nodes, and what the pods on them ask for. Who may not list those of the whole cluster
//! hears of his own namespace alone.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use tpu_core::model::facts::Room;

use super::facts;
use super::flavors::{is_gpu, thousandths};
use super::names::LAUNCH;
use super::request::{LOOK, Namespace, Trouble};
use super::site::Site;

/// The label of pods that belong to a Job.
const OF_JOB: &str = "job-name";

/// The room of a cluster, as far as one may see it.
pub(super) fn ask(site: &Site<'_>) -> Result<Room, Trouble> {
    whole(&site.namespace()).or_else(|trouble| match trouble.code() {
        Some(403) => own(&site.namespace()),
        _ => Err(trouble),
    })
}

fn whole(namespace: &Namespace<'_>) -> Result<Room, Trouble> {
    let (nodes, pods) = (namespace.nodes(LOOK)?, namespace.pods_of(None, LOOK)?);
    Ok(of(&nodes, &pods))
}

fn own(namespace: &Namespace<'_>) -> Result<Room, Trouble> {
    let pods = namespace.pods_of(Some(namespace.name()), LOOK)?;
    let mut room = Room { state: "up".to_owned(), ..Room::default() };
    count(&mut room, &pods);
    Ok(room)
}

fn of(nodes: &[Node], pods: &[Pod]) -> Room {
    let mut room = Room { state: "up".to_owned(), ..Room::default() };
    let taken: BTreeSet<&str> = pods
        .iter()
        .filter(|pod| is_open(pod) && is_of_job(pod))
        .filter_map(|pod| pod.spec.as_ref()?.node_name.as_deref())
        .collect();
    let name = |node: &Node| node.metadata.name.clone().unwrap_or_default();
    let (ready, down): (Vec<&Node>, Vec<&Node>) = nodes.iter().partition(|node| is_ready(node));
    let mixed = ready.iter().filter(|node| taken.contains(name(node).as_str())).count();
    let number = |count: usize| u32::try_from(count).ok();
    room.idle = number(ready.len() - mixed);
    room.mixed = number(mixed);
    room.down = number(down.len());
    let names: BTreeSet<String> = ready.iter().map(|node| name(node)).collect();
    let mut free: (i64, i64) = (0, 0);
    for node in &ready {
        let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
        let (cpus, gpus) = amounts(allocatable);
        free = (free.0 + cpus, free.1 + gpus);
    }
    for pod in pods.iter().filter(|pod| is_open(pod)) {
        let Some(spec) = &pod.spec else { continue };
        if !spec.node_name.as_ref().is_some_and(|node| names.contains(node)) {
            continue;
        }
        for container in &spec.containers {
            let resources = container.resources.as_ref();
            let (cpus, gpus) = amounts(resources.and_then(|of| of.requests.as_ref()));
            let (_, most) = amounts(resources.and_then(|of| of.limits.as_ref()));
            free = (free.0 - cpus, free.1 - gpus.max(most));
        }
    }
    room.free_cpus = u64::try_from(free.0.max(0) / 1_000).ok();
    room.free_gpus = u64::try_from(free.1.max(0)).ok();
    count(&mut room, pods);
    room
}

/// Counts those that run and that wait.
fn count(room: &mut Room, pods: &[Pod]) {
    let (mut running, mut waiting) = ((0, 0), (0, 0));
    for pod in pods.iter().filter(|pod| is_of_job(pod)) {
        let mine = u32::from(has_label(pod, LAUNCH));
        let (all, my) = match facts::phase(pod) {
            "Running" => (&mut running.0, &mut running.1),
            "Pending" => (&mut waiting.0, &mut waiting.1),
            _ => continue,
        };
        *all += 1;
        *my += mine;
    }
    (room.running, room.my_running) = (Some(running.0), Some(running.1));
    (room.waiting, room.my_waiting) = (Some(waiting.0), Some(waiting.1));
}

fn has_label(pod: &Pod, name: &str) -> bool {
    pod.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(name))
}

fn is_of_job(pod: &Pod) -> bool {
    has_label(pod, OF_JOB)
}

fn is_open(pod: &Pod) -> bool {
    !matches!(facts::phase(pod), "Succeeded" | "Failed")
}

/// Whether pods can begin on a node.
fn is_ready(node: &Node) -> bool {
    let is_closed = node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true));
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.into_iter().flatten().find(|condition| condition.type_ == "Ready");
    !is_closed && ready.is_some_and(|ready| ready.status == "True")
}

/// Thousandths of CPUs, and GPUs of all vendors together.
fn amounts(of: Option<&BTreeMap<String, Quantity>>) -> (i64, i64) {
    let mut sum = (0, 0);
    for (name, Quantity(amount)) in of.into_iter().flatten() {
        if name == "cpu" {
            sum.0 += thousandths(amount);
        } else if is_gpu(name) {
            sum.1 += thousandths(amount) / 1_000;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_asked_for_is_not_free() {
        let node = |name: &str, ready: &str| -> Node {
            serde_json::from_value(json!({
                "metadata": {"name": name},
                "status": {
                    "allocatable": {"cpu": "8", "nvidia.com/gpu": "2"},
                    "conditions": [{"type": "Ready", "status": ready}],
                },
            }))
            .unwrap()
        };
        let pod = |node: Option<&str>, phase: &str, label: &str| -> Pod {
            serde_json::from_value(json!({
                "metadata": {"labels": {"job-name": "x", label: "y"}},
                "spec": {"nodeName": node, "containers": [{"name": "main", "resources": {
                    "requests": {"cpu": "1500m"}, "limits": {"nvidia.com/gpu": "1"},
                }}]},
                "status": {"phase": phase},
            }))
            .unwrap()
        };
        let nodes = [node("n1", "True"), node("n2", "True"), node("n3", "Unknown")];
        let pods = [
            pod(Some("n1"), "Running", LAUNCH),
            pod(Some("n1"), "Succeeded", "of-others"),
            pod(None, "Pending", "of-others"),
        ];
        let room = of(&nodes, &pods);
        assert_eq!((room.idle, room.mixed, room.down), (Some(1), Some(1), Some(1)));
        assert_eq!((room.free_cpus, room.free_gpus), (Some(14), Some(3)));
        assert_eq!((room.running, room.my_running), (Some(1), Some(1)));
        assert_eq!((room.waiting, room.my_waiting), (Some(1), Some(0)));
    }
}
