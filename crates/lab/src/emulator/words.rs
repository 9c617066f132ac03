//! The simulator's facts in the API's words.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use crate::sim::fleet::{Begun, Fleet, Request, Vm};
use tpu_core::model::accelerators;
use tpu_core::model::ids::TargetName;
use tpu_core::model::options::KindOptions;
use tpu_core::model::target::Pricing;
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::{Progress, ProviderError, RequestId, TargetSpec, Trouble, Verb};
use tpu_gcp::google::wire::LABEL;

/// The types that the catalogue names.
pub(super) const TYPES: &[&str] = &[
    "v2-8",
    "v2-32",
    "v2-128",
    "v2-256",
    "v2-512",
    "v3-8",
    "v3-32",
    "v3-64",
    "v3-128",
    "v4-8",
    "v4-16",
    "v4-32",
    "v4-64",
    "v4-128",
    "v5litepod-1",
    "v5litepod-4",
    "v5litepod-8",
    "v5litepod-16",
    "v5litepod-32",
    "v5litepod-64",
    "v5p-8",
    "v5p-16",
    "v5p-32",
    "v5p-64",
    "v6e-1",
    "v6e-4",
    "v6e-8",
    "v6e-16",
    "v6e-32",
];

/// Family as we spell it, and as the API's configurations do.
const FAMILIES: &[(&str, &str)] = &[
    ("v2", "V2"),
    ("v3", "V3"),
    ("v4", "V4"),
    ("v5litepod", "V5LITE_POD"),
    ("v5p", "V5P"),
    ("v6e", "V6E"),
];

/// The name of a place below a project.
pub(super) fn place(project: &str, zone: &str) -> String {
    format!("projects/{project}/locations/{zone}")
}

fn stamp(at: Timestamp) -> String {
    at.to_rfc3339()
}

/// How the chips of a type are wired.
pub(super) fn configuration(accelerator: &str) -> Option<Value> {
    let (family, _) = accelerator.rsplit_once('-')?;
    let (_, kind) = FAMILIES.iter().find(|(ours, _)| *ours == family)?;
    let chips = accelerators::chips(accelerator)?;
    let exponent = chips.checked_ilog2().unwrap_or(0);
    let topology = match (family, chips) {
        ("v4" | "v5p", 4) => "2x2x1".to_owned(),
        ("v4" | "v5p", _) => {
            let side = |more: u32| 1_u32 << ((exponent + more) / 3);
            format!("{}x{}x{}", side(0), side(1), side(2))
        }
        _ => format!("{}x{}", 1_u32 << (exponent / 2), 1_u32 << exponent.div_ceil(2)),
    };
    Some(json!({ "type": kind, "topology": topology }))
}

/// The type that a configuration describes.
fn configured(config: &Value) -> Option<String> {
    let kind = config["type"].as_str()?;
    let (family, _) = FAMILIES.iter().find(|(_, theirs)| *theirs == kind)?;
    let sides = config["topology"].as_str()?.split('x').map(|side| side.parse::<u32>().ok());
    let chips =
        sides.collect::<Option<Vec<u32>>>()?.iter().try_fold(1_u32, |n, s| n.checked_mul(*s))?;
    let size = if matches!(*family, "v5litepod" | "v6e") { chips } else { chips.checked_mul(2)? };
    Some(format!("{family}-{size}"))
}

/// A node, with what it was asked for and what it has become.
pub(super) fn node(project: &str, name: &str, vm: &Vm, addresses: &[String]) -> Value {
    let mut node = vm.body.clone();
    let place = place(project, &vm.zone);
    let region = vm.zone.rsplit_once('-').map_or(vm.zone.as_str(), |(region, _)| region);
    let mut put = |key: &str, value: Value| node.insert(key.to_owned(), value);
    put("name", json!(format!("{place}/nodes/{name}")));
    put("state", json!(vm.word));
    put("acceleratorType", json!(vm.accelerator));
    put("apiVersion", json!("V2"));
    put("createTime", json!(stamp(vm.created.unwrap_or(vm.since))));
    put("id", json!((7_000_000_000_000_000_000_u64 + vm.boot).to_string()));
    if let Some(config) = configuration(&vm.accelerator) {
        put("acceleratorConfig", config);
    }
    if let Some(health) = &vm.health {
        put("health", json!(health));
    }
    if !vm.symptoms.is_empty() {
        let symptom = |kind: &String| json!({ "symptomType": kind, "createTime": stamp(vm.since) });
        put("symptoms", vm.symptoms.iter().map(symptom).collect());
    }
    let endpoints: Vec<Value> = addresses
        .iter()
        .map(|at| json!({ "ipAddress": at, "port": 8470, "accessConfig": { "externalIp": at } }))
        .collect();
    if !endpoints.is_empty() {
        put("networkEndpoints", json!(endpoints));
    }
    if let Some(queued) = &vm.queued {
        put("queuedResource", json!(format!("{place}/queuedResources/{queued}")));
    }
    put("schedulingConfig", scheduling(vm.pricing));
    if !node.contains_key("runtimeVersion") {
        let version = accelerators::runtime_version(&vm.accelerator);
        node.insert("runtimeVersion".to_owned(), json!(version));
    }
    let network =
        node.entry("networkConfig").or_insert_with(|| json!({ "enableExternalIps": true }));
    if let Some(network) = network.as_object_mut() {
        let name = network.get("network").and_then(Value::as_str).unwrap_or("default").to_owned();
        if !name.contains('/') {
            let full = format!("projects/{project}/global/networks/{name}");
            network.insert("network".to_owned(), json!(full));
        }
        let subnet = || json!(format!("projects/{project}/regions/{region}/subnetworks/default"));
        network.entry("subnetwork").or_insert_with(subnet);
    }
    if let Some(request) = &vm.request {
        let labels = node.entry("labels").or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            labels.insert(LABEL.to_owned(), json!(request.0));
        }
    }
    Value::Object(node)
}

/// Only what is true is said.
fn scheduling(pricing: Pricing) -> Value {
    match pricing {
        Pricing::OnDemand => json!({}),
        Pricing::Preemptible => json!({ "preemptible": true }),
        Pricing::Spot => json!({ "spot": true }),
    }
}

/// A queued resource.
pub(super) fn queued(project: &str, name: &str, request: &Request) -> Value {
    let place = place(project, &request.spec.zone);
    let mut body = request.body.clone();
    body.entry("tpu").or_insert_with(|| {
        let mut node = json!({ "acceleratorType": request.spec.accelerator });
        if let Some(request) = &request.asked_by {
            node["labels"] = json!({ LABEL: request.0 });
        }
        json!({ "nodeSpec": [{ "parent": place, "nodeId": request.spec.name, "node": node }] })
    });
    if request.spec.pricing == Pricing::Spot {
        body.entry("spot").or_insert_with(|| json!({}));
    }
    body.insert("name".to_owned(), json!(format!("{place}/queuedResources/{name}")));
    body.insert("createTime".to_owned(), json!(stamp(request.since)));
    let data = format!("{}Data", camel(&request.word));
    body.insert(
        "state".to_owned(),
        json!({ "state": request.word, "stateInitiator": "SERVICE", data: {} }),
    );
    Value::Object(body)
}

fn camel(word: &str) -> String {
    let mut out = String::new();
    for (index, part) in word.split('_').enumerate() {
        let part = part.to_lowercase();
        match part.chars().next() {
            Some(first) if index > 0 => {
                out.extend(first.to_uppercase());
                out += part.get(first.len_utf8()..).unwrap_or_default();
            }
            _ => out += &part,
        }
    }
    out
}

/// An operation, with what came of it.
pub(super) fn operation(project: &str, begun: &Begun, fleet: &Fleet) -> Value {
    let operation = &begun.operation;
    let place = place(project, &operation.zone);
    let target = match &begun.queued {
        Some(name) => format!("{place}/queuedResources/{name}"),
        None => format!("{place}/nodes/{}", operation.target),
    };
    let verb = match operation.verb {
        Verb::Reboot => "reimage",
        verb => verb.as_str(),
    };
    let mut value = json!({
        "name": format!("{place}/operations/{}", operation.name),
        "metadata": {
            "@type": "type.googleapis.com/google.cloud.tpu.v2.OperationMetadata",
            "createTime": stamp(operation.began), "target": target, "verb": verb,
            "cancelRequested": false, "apiVersion": "v2",
        },
    });
    match &operation.progress {
        Progress::Running => {}
        Progress::Failed { error } => {
            value["done"] = json!(true);
            value["error"] = json!({ "code": code(error.trouble), "message": error.message });
        }
        Progress::Done => {
            value["done"] = json!(true);
            value["response"] = response(project, begun, fleet);
        }
    }
    value
}

fn response(project: &str, begun: &Begun, fleet: &Fleet) -> Value {
    let typed = |kind: &str, mut value: Value| {
        value["@type"] = json!(format!("type.googleapis.com/google.cloud.tpu.v2.{kind}"));
        value
    };
    let name = begun.operation.target.as_str();
    let queued = begun.queued.as_ref().and_then(|name| Some((name, fleet.requests.get(name)?)));
    match (begun.operation.verb, queued, fleet.targets.get(name)) {
        (Verb::Create, Some((name, request)), _) => {
            typed("QueuedResource", self::queued(project, name, request))
        }
        (Verb::Create | Verb::Start | Verb::Stop, None, Some(vm)) => {
            typed("Node", node(project, name, vm, &fleet.addresses(vm)))
        }
        _ => json!({ "@type": "type.googleapis.com/google.protobuf.Empty" }),
    }
}

/// The status, the word and the text of a refusal.
pub(super) fn refusal(error: &ProviderError) -> (StatusCode, Value) {
    let (status, usual) = match error.trouble {
        Trouble::NoCapacity | Trouble::Quota => {
            (StatusCode::TOO_MANY_REQUESTS, "RESOURCE_EXHAUSTED")
        }
        Trouble::Transient => (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE"),
        Trouble::AlreadyExists => (StatusCode::CONFLICT, "ALREADY_EXISTS"),
        Trouble::NotFound => (StatusCode::NOT_FOUND, "NOT_FOUND"),
        Trouble::Auth => (StatusCode::UNAUTHORIZED, "UNAUTHENTICATED"),
        Trouble::Permission => (StatusCode::FORBIDDEN, "PERMISSION_DENIED"),
        Trouble::User => (StatusCode::BAD_REQUEST, "INVALID_ARGUMENT"),
        Trouble::NoProvider | Trouble::State => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL"),
    };
    let is_word =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let (word, message) = match error.message.split_once(": ") {
        Some((word, rest)) if is_word(word) => (word, rest),
        _ => (usual, error.message.as_str()),
    };
    let code = status.as_u16();
    (status, json!({ "error": { "code": code, "message": message, "status": word } }))
}

/// The code of a failure in an operation.
fn code(trouble: Trouble) -> u8 {
    match trouble {
        Trouble::NoCapacity | Trouble::Quota => 8,
        Trouble::Transient => 14,
        Trouble::AlreadyExists => 6,
        Trouble::NotFound => 5,
        Trouble::Auth => 16,
        Trouble::Permission => 7,
        Trouble::User => 9,
        Trouble::NoProvider | Trouble::State => 13,
    }
}

/// What somebody asks for, read from the body of a node; the name and the zone come with the path.
pub(super) fn spec(
    name: &str,
    zone: &str,
    body: &Map<String, Value>,
) -> Result<(TargetSpec, Option<RequestId>), ProviderError> {
    let wrong = |message: String| {
        let doing = format!("create {name} in zone {zone}");
        ProviderError::new(Trouble::User, doing, format!("INVALID_ARGUMENT: {message}"))
    };
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > 63 || !name.chars().all(plain) {
        return Err(wrong(format!("'{name}' cannot be the name of a node")));
    }
    let accelerator = body.get("acceleratorType").and_then(Value::as_str).map(str::to_owned);
    let accelerator = accelerator
        .or_else(|| configured(body.get("acceleratorConfig")?))
        .ok_or_else(|| wrong("acceleratorType is missing".to_owned()))?;
    // Of a type that nobody knows the simulator says so itself.
    let is_known = accelerators::workers(&accelerator).is_some();
    if is_known && body.get("runtimeVersion").and_then(Value::as_str).is_none_or(str::is_empty) {
        return Err(wrong("runtimeVersion is missing".to_owned()));
    }
    let is = |key: &str| {
        body.get("schedulingConfig").and_then(|config| config.get(key)?.as_bool()) == Some(true)
    };
    let pricing = match (is("spot"), is("preemptible")) {
        (true, _) => Pricing::Spot,
        (_, true) => Pricing::Preemptible,
        _ => Pricing::OnDemand,
    };
    let request = body.get("labels").and_then(|labels| labels.get(LABEL)?.as_str());
    let spec = TargetSpec {
        name: TargetName::from(name),
        zone: zone.to_owned(),
        accelerator,
        pricing,
        runtime_version: body.get("runtimeVersion").and_then(Value::as_str).map(str::to_owned),
        queued: false,
        options: KindOptions::default(),
    };
    Ok((spec, request.map(|request| RequestId(request.to_owned()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_configurations_say_the_same() {
        for (accelerator, topology) in [
            ("v2-8", "2x2"),
            ("v2-32", "4x4"),
            ("v2-128", "8x8"),
            ("v4-8", "2x2x1"),
            ("v4-16", "2x2x2"),
            ("v4-32", "2x2x4"),
            ("v5litepod-8", "2x4"),
            ("v5litepod-1", "1x1"),
        ] {
            let config = configuration(accelerator).unwrap();
            assert_eq!(config["topology"], topology, "{accelerator}");
            assert_eq!(configured(&config).as_deref(), Some(accelerator));
        }
        for accelerator in TYPES {
            assert_eq!(
                configured(&configuration(accelerator).unwrap()).as_deref(),
                Some(*accelerator)
            );
        }
        assert_eq!(configured(&json!({"type": "V4", "topology": "99999x99999x99999"})), None);
        assert_eq!(camel("WAITING_FOR_RESOURCES"), "waitingForResources");
    }
}
