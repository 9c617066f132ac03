//! What the server fills in where an object leaves it out [job-create, pods-of-job].

use serde_json::{Map, Value, json};

use super::quantity::Quantity;

/// Sets a key that is not there.
fn fill(object: &mut Value, key: &str, value: Value) {
    if object[key].is_null() {
        object[key] = value;
    }
}

/// The members of a list, if there is one. What is not there is not made.
fn members<'o>(object: &'o mut Value, list: &str) -> impl Iterator<Item = &'o mut Value> {
    object.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten()
}

/// A Job as it is kept: counts, selector, labels, template.
pub(super) fn job(job: &mut Value) {
    let spec = &mut job["spec"];
    if spec["completions"].is_null() && spec["parallelism"].is_null() {
        spec["completions"] = json!(1);
    }
    fill(spec, "parallelism", json!(1));
    fill(spec, "backoffLimit", json!(6));
    if !spec["template"].is_object() {
        spec["template"] = json!({});
    }
    fill(&mut spec["template"], "metadata", json!({}));
    spec["template"]["metadata"]["creationTimestamp"] = Value::Null;
    fill(&mut spec["template"], "spec", json!({}));
    template(&mut spec["template"]["spec"]);
}

/// The labels by which a Job knows its pods. `uid` is the Job's own.
pub(super) fn job_labels(job: &mut Value, uid: &str) {
    if job["spec"]["manualSelector"] != json!(true) {
        let name = job["metadata"]["name"].clone();
        let labels = &mut job["spec"]["template"]["metadata"]["labels"];
        if !labels.is_object() {
            *labels = json!({});
        }
        labels["controller-uid"] = json!(uid);
        labels["job-name"] = name;
        job["spec"]["selector"] = json!({"matchLabels": {"controller-uid": uid}});
    }
    job["status"] = json!({});
}

/// A Job that says nothing of itself has the labels of its pods: after they were checked [long-name].
pub(super) fn job_own_labels(job: &mut Value) {
    if job["metadata"]["labels"].as_object().is_none_or(Map::is_empty) {
        job["metadata"]["labels"] = job["spec"]["template"]["metadata"]["labels"].clone();
    }
}

/// The specification of a pod, in a template or in a pod.
pub(super) fn template(spec: &mut Value) {
    for list in ["initContainers", "containers"] {
        for container in members(spec, list) {
            let image = container["image"].as_str().unwrap_or_default().to_owned();
            let last = image.rsplit('/').next().unwrap_or_default();
            let tagged =
                image.contains('@') || last.split_once(':').is_some_and(|(_, tag)| tag != "latest");
            fill(container, "resources", json!({}));
            fill(container, "terminationMessagePath", json!("/dev/termination-log"));
            fill(container, "terminationMessagePolicy", json!("File"));
            fill(
                container,
                "imagePullPolicy",
                json!(if tagged { "IfNotPresent" } else { "Always" }),
            );
            for port in members(container, "ports") {
                fill(port, "protocol", json!("TCP"));
            }
            for env in members(container, "env") {
                if env["valueFrom"]["fieldRef"].is_object() {
                    fill(&mut env["valueFrom"]["fieldRef"], "apiVersion", json!("v1"));
                }
            }
        }
    }
    fill(spec, "restartPolicy", json!("Always"));
    fill(spec, "terminationGracePeriodSeconds", json!(30));
    fill(spec, "dnsPolicy", json!("ClusterFirst"));
    fill(spec, "securityContext", json!({}));
    fill(spec, "schedulerName", json!("default-scheduler"));
    if spec["serviceAccountName"].is_string() {
        spec["serviceAccount"] = spec["serviceAccountName"].clone();
    }
    for volume in members(spec, "volumes") {
        for source in ["configMap", "secret"] {
            if volume[source].is_object() {
                fill(&mut volume[source], "defaultMode", json!(420));
            }
        }
        if volume["hostPath"].is_object() {
            fill(&mut volume["hostPath"], "type", json!(""));
        }
    }
}

/// What admission and defaults add to a pod beyond its template. `priority` is that of its class.
pub(super) fn pod(pod: &mut Value, priority: i64, token_secret: &str) {
    let spec = &mut pod["spec"];
    template(spec);
    for list in ["initContainers", "containers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            let limits = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
            for (name, amount) in limits {
                if !container["resources"]["requests"].is_object() {
                    container["resources"]["requests"] = json!({});
                }
                fill(&mut container["resources"]["requests"], &name, amount);
            }
            let mount = json!({
                "name": token_secret, "readOnly": true,
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            });
            push(container, "volumeMounts", mount);
        }
    }
    let volume =
        json!({"name": token_secret, "secret": {"secretName": token_secret, "defaultMode": 420}});
    push(spec, "volumes", volume);
    fill(spec, "serviceAccountName", json!("default"));
    fill(spec, "serviceAccount", json!("default"));
    for taint in ["not-ready", "unreachable"] {
        let key = format!("node.kubernetes.io/{taint}");
        let known =
            spec["tolerations"].as_array().into_iter().flatten().any(|of| of["key"] == json!(key));
        if !known {
            let toleration = json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            });
            push(spec, "tolerations", toleration);
        }
    }
    fill(spec, "priority", json!(priority));
    fill(spec, "enableServiceLinks", json!(true));
    fill(spec, "preemptionPolicy", json!("PreemptLowerPriority"));
    pod["status"] = json!({"phase": "Pending", "qosClass": quality(&pod["spec"])});
}

fn push(object: &mut Value, key: &str, value: Value) {
    match &mut object[key] {
        Value::Array(list) => list.push(value),
        place => *place = json!([value]),
    }
}

/// How sure a pod may be of its resources.
fn quality(spec: &Value) -> &'static str {
    let mut any = false;
    let mut all = true;
    for container in spec["containers"].as_array().into_iter().flatten() {
        for name in ["cpu", "memory"] {
            let amount =
                |of: &str| container["resources"][of][name].as_str().and_then(Quantity::parse);
            let (request, limit) = (amount("requests"), amount("limits"));
            any |= request.is_some() || limit.is_some();
            all &= match (request, limit) {
                (Some(request), Some(limit)) => request.order(limit).is_eq(),
                _ => false,
            };
        }
    }
    match (any, all) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
