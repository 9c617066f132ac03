//! Tables: what `kubectl get` prints, made by the server [table-*].

use serde_json::{Value, json};

use super::cluster::{Cluster, text};
use super::resources::ApiResource;

/// One column: name, type, format, whether only `-o wide` shows it.
type Column = (&'static str, &'static str, &'static str, bool);

const NAME: Column = ("Name", "string", "name", false);
const AGE: Column = ("Age", "string", "", false);

const fn shown(name: &'static str) -> Column {
    (name, "string", "", false)
}

const fn wide(name: &'static str) -> Column {
    (name, "string", "", true)
}

const PODS: &[Column] = &[
    NAME,
    shown("Ready"),
    shown("Status"),
    ("Restarts", "integer", "", false),
    AGE,
    wide("IP"),
    wide("Node"),
    wide("Nominated Node"),
    wide("Readiness Gates"),
];
const JOBS: &[Column] = &[
    NAME,
    shown("Completions"),
    shown("Duration"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];
const NODES: &[Column] = &[
    NAME,
    shown("Status"),
    shown("Roles"),
    AGE,
    shown("Version"),
    wide("Internal-IP"),
    wide("External-IP"),
    wide("OS-Image"),
    wide("Kernel-Version"),
    wide("Container-Runtime"),
];
const EVENTS: &[Column] = &[
    shown("Last Seen"),
    shown("Type"),
    shown("Reason"),
    shown("Object"),
    wide("Subobject"),
    wide("Source"),
    shown("Message"),
    wide("First Seen"),
    wide("Count"),
    ("Name", "string", "name", true),
];
const NAMESPACES: &[Column] = &[NAME, shown("Status"), AGE];
const CONFIG_MAPS: &[Column] = &[NAME, shown("Data"), AGE];
const SECRETS: &[Column] = &[NAME, shown("Type"), ("Data", "integer", "", false), AGE];
const QUOTAS: &[Column] = &[NAME, AGE, shown("Request"), shown("Limit")];
const PRIORITY_CLASSES: &[Column] = &[NAME, shown("Value"), shown("Global-Default"), AGE];
const OTHERS: &[Column] = &[NAME, ("Created At", "date", "", false)];

fn columns(resource: &ApiResource) -> &'static [Column] {
    match resource.plural {
        "pods" => PODS,
        "jobs" => JOBS,
        "nodes" => NODES,
        "events" => EVENTS,
        "namespaces" => NAMESPACES,
        "configmaps" => CONFIG_MAPS,
        "secrets" => SECRETS,
        "resourcequotas" => QUOTAS,
        "priorityclasses" => PRIORITY_CLASSES,
        _ => OTHERS,
    }
}

/// The table of some objects; in a watch only the first line has its columns. `row` is `None`, `Metadata` or
/// `Object`: what of each object comes along.
pub(super) fn table<'a>(
    cluster: &Cluster,
    resource: &ApiResource,
    objects: impl Iterator<Item = &'a Value>,
    (metadata, with_columns, row): (Value, bool, &str),
) -> Value {
    let definitions: Vec<Value> = columns(resource)
        .iter()
        .map(|(name, of, format, is_wide)| {
            json!({
                "name": name, "type": of, "format": format, "description": "",
                "priority": i32::from(*is_wide),
            })
        })
        .collect();
    let rows: Vec<Value> = objects
        .map(|object| {
            let mut line = json!({"cells": cells(cluster, resource, object)});
            match row {
                "None" => {}
                "Object" => line["object"] = object.clone(),
                _ => line["object"] = partial(object),
            }
            line
        })
        .collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": if with_columns { json!(definitions) } else { Value::Null }, "rows": rows,
    })
}

/// An object without anything but its metadata.
pub(super) fn partial(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"],
    })
}

/// A span of time as `kubectl` prints it: two units where it is short, one where it is long.
pub(super) fn span(seconds: f64) -> String {
    if seconds < -2.0 {
        return "<invalid>".to_owned();
    }
    // Of no more than 2^53 seconds.
    let whole: u64 = format!("{:.0}", seconds.max(0.0).floor()).parse().unwrap_or_default();
    let two = |first: u64, unit: &str, rest: u64, less: &str| {
        if rest == 0 { format!("{first}{unit}") } else { format!("{first}{unit}{rest}{less}") }
    };
    let (minutes, hours, days) = (whole / 60, whole / 3600, whole / 86400);
    match whole {
        0..120 => format!("{whole}s"),
        _ if minutes < 10 => two(minutes, "m", whole % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => two(days, "d", hours % 24, "h"),
        _ if days < 730 => format!("{days}d"),
        _ => two(days / 365, "y", days % 365, "d"),
    }
}

fn or_none(text: &str) -> Value {
    json!(if text.is_empty() { "<none>" } else { text })
}

fn cells(cluster: &Cluster, resource: &ApiResource, object: &Value) -> Vec<Value> {
    let since = |time: &Value| {
        json!(cluster.seconds_since(time).map_or_else(|| "<unknown>".to_owned(), span))
    };
    let name = object["metadata"]["name"].clone();
    let age = since(&object["metadata"]["creationTimestamp"]);
    let entries = |key: &str| object[key].as_object().map_or(0, serde_json::Map::len);
    match resource.plural {
        "pods" => {
            let (ready, total, restarts) = readiness(object);
            let of = |key: &str| or_none(text(&object["status"][key]));
            vec![
                name,
                json!(format!("{ready}/{total}")),
                json!(pod_word(object)),
                json!(restarts),
                age,
                of("podIP"),
                or_none(text(&object["spec"]["nodeName"])),
                of("nominatedNodeName"),
                json!("<none>"),
            ]
        }
        "jobs" => job_cells(cluster, object, name, age),
        "nodes" => node_cells(object, name, age),
        "events" => event_cells(object, since),
        "namespaces" => vec![name, object["status"]["phase"].clone(), age],
        "configmaps" => vec![name, json!(entries("data") + entries("binaryData")), age],
        "secrets" => vec![name, object["type"].clone(), json!(entries("data")), age],
        "resourcequotas" => {
            let (mut requests, mut limits) = (Vec::new(), Vec::new());
            for (key, hard) in object["status"]["hard"].as_object().into_iter().flatten() {
                let used = text(&object["status"]["used"][key]);
                let part = format!("{key}: {used}/{}", text(hard));
                if key.starts_with("limits.") { limits.push(part) } else { requests.push(part) }
            }
            vec![name, age, json!(requests.join(", ")), json!(limits.join(", "))]
        }
        "priorityclasses" => {
            let is_default = object["globalDefault"].as_bool().unwrap_or_default();
            vec![name, object["value"].clone(), json!(is_default), age]
        }
        _ => vec![name, object["metadata"]["creationTimestamp"].clone()],
    }
}

fn job_cells(cluster: &Cluster, job: &Value, name: Value, age: Value) -> Vec<Value> {
    let succeeded = job["status"]["succeeded"].as_i64().unwrap_or(0);
    let completions = match (&job["spec"]["completions"], job["spec"]["parallelism"].as_i64()) {
        (Value::Null, Some(parallelism)) if parallelism > 1 => {
            format!("{succeeded}/1 of {parallelism}")
        }
        (Value::Null, _) => format!("{succeeded}/1"),
        (wanted, _) => format!("{succeeded}/{wanted}"),
    };
    let begun = cluster.seconds_since(&job["status"]["startTime"]);
    let ended = cluster.seconds_since(&job["status"]["completionTime"]).unwrap_or(0.0);
    let duration = begun.map_or_else(String::new, |begun| span(begun - ended));
    let template = &job["spec"]["template"]["spec"];
    let of = |key: &str| {
        let all = template["containers"].as_array().into_iter().flatten();
        json!(all.map(|container| text(&container[key])).collect::<Vec<&str>>().join(","))
    };
    let labels = job["spec"]["selector"]["matchLabels"].as_object().into_iter().flatten();
    let labels: Vec<String> = labels.map(|(key, is)| format!("{key}={}", text(is))).collect();
    vec![
        name,
        json!(completions),
        json!(duration),
        age,
        of("name"),
        of("image"),
        json!(labels.join(",")),
    ]
}

fn node_cells(node: &Value, name: Value, age: Value) -> Vec<Value> {
    let all = |key: &str| node["status"][key].as_array().into_iter().flatten();
    let ready = all("conditions").find(|of| of["type"] == json!("Ready"));
    let mut word = match ready.map(|of| text(&of["status"])) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if node["spec"]["unschedulable"] == json!(true) {
        word.push_str(",SchedulingDisabled");
    }
    let address = all("addresses").find(|of| of["type"] == json!("InternalIP"));
    let info = |key: &str| match text(&node["status"]["nodeInfo"][key]) {
        "" => json!("<unknown>"),
        known => json!(known),
    };
    vec![
        name,
        json!(word),
        json!("<none>"),
        age,
        node["status"]["nodeInfo"]["kubeletVersion"].clone(),
        or_none(address.map_or("", |of| text(&of["address"]))),
        json!("<none>"),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

fn event_cells(event: &Value, since: impl Fn(&Value) -> Value) -> Vec<Value> {
    let either = |key: &str| {
        let time = &event[key];
        since(if time.is_null() { &event["eventTime"] } else { time })
    };
    let involved = &event["involvedObject"];
    let object = format!("{}/{}", text(&involved["kind"]).to_lowercase(), text(&involved["name"]));
    let source: Vec<&str> = [&event["source"]["component"], &event["source"]["host"]]
        .map(text)
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    let source = if source.is_empty() { vec![text(&event["reportingComponent"])] } else { source };
    vec![
        either("lastTimestamp"),
        event["type"].clone(),
        event["reason"].clone(),
        json!(object),
        json!(text(&involved["fieldPath"])),
        json!(source.join(", ")),
        event["message"].clone(),
        either("firstTimestamp"),
        json!(event["count"].as_i64().unwrap_or(1)),
        event["metadata"]["name"].clone(),
    ]
}

/// How many containers are ready, how many there are, how often they began again.
fn readiness(pod: &Value) -> (usize, usize, i64) {
    let all = |key: &str| pod["status"][key].as_array().into_iter().flatten();
    let ready = all("containerStatuses").filter(|of| of["ready"] == json!(true)).count();
    let restarts = all("containerStatuses").filter_map(|of| of["restartCount"].as_i64()).sum();
    (ready, pod["spec"]["containers"].as_array().map_or(0, Vec::len), restarts)
}

/// The one word that says how a pod is.
fn pod_word(pod: &Value) -> String {
    let status = &pod["status"];
    let mut word = match text(&status["reason"]) {
        "" => text(&status["phase"]).to_owned(),
        reason => reason.to_owned(),
    };
    let mut initializing = false;
    let init = status["initContainerStatuses"].as_array().into_iter().flatten();
    let total = pod["spec"]["initContainers"].as_array().map_or(0, Vec::len);
    for (n, container) in init.enumerate() {
        let state = &container["state"];
        if state["terminated"]["exitCode"] == json!(0) {
            continue;
        }
        word = if state["terminated"].is_object() {
            match text(&state["terminated"]["reason"]) {
                "" => format!("Init:ExitCode:{}", state["terminated"]["exitCode"]),
                reason => format!("Init:{reason}"),
            }
        } else {
            match text(&state["waiting"]["reason"]) {
                "" | "PodInitializing" => format!("Init:{n}/{total}"),
                reason => format!("Init:{reason}"),
            }
        };
        initializing = true;
        break;
    }
    if !initializing {
        let mut running = false;
        let all = status["containerStatuses"].as_array();
        for container in all.into_iter().flatten().rev() {
            let state = &container["state"];
            let (waiting, over) = (text(&state["waiting"]["reason"]), &state["terminated"]);
            if !waiting.is_empty() {
                waiting.clone_into(&mut word);
            } else if over.is_object() {
                word = match text(&over["reason"]) {
                    "" => format!("ExitCode:{}", over["exitCode"]),
                    reason => reason.to_owned(),
                };
            } else if container["ready"] == json!(true) && state["running"].is_object() {
                running = true;
            }
        }
        if word == "Completed" && running {
            "Running".clone_into(&mut word);
        }
    }
    match (pod["metadata"]["deletionTimestamp"].is_string(), text(&status["reason"])) {
        (true, "NodeLost") => "Unknown".to_owned(),
        (true, _) => "Terminating".to_owned(),
        (false, _) => word,
    }
}
