//! The API's JSON and our words: what a node, a queued resource and an operation say, and what is asked.
//!
//! Reads whatever comes: a field that is missing, null, unknown or of another type says nothing.

use serde_json::{Map, Value, json};

use crate::GOOGLE;
use crate::queued::{self, Queued};
use crate::states;
use tpu_core::model::accelerators;
use tpu_core::model::bucket::BucketPlace;
use tpu_core::model::facts::TargetFact;
use tpu_core::model::ids::TargetName;
use tpu_core::model::options::KindOptions;
use tpu_core::model::target::Pricing;
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::{Operation, Progress, RequestId, TargetSpec, Verb};

use super::answers;

/// The label that says which request made a target.
pub const LABEL: &str = "tpu-request";

/// The last part of a resource's name, and the zone in it: `projects/P/locations/Z/nodes/N`.
pub(super) fn zone_and_id(name: &str) -> Option<(&str, &str)> {
    let mut parts = name.split('/');
    let zone = parts.by_ref().skip_while(|part| *part != "locations").nth(1)?;
    let id = parts.next_back()?;
    (!zone.is_empty() && !id.is_empty()).then_some((zone, id))
}

/// What a node says about itself; `None` if it does not even say its name.
pub(super) fn node(value: &Value, now: Timestamp) -> Option<TargetFact> {
    let (zone, id) = zone_and_id(value["name"].as_str()?)?;
    let word = value["state"].as_str().unwrap_or("STATE_UNSPECIFIED");
    let text = |key: &str| value[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let symptoms = list(&value["symptoms"]).iter().filter_map(|symptom| {
        let kind = symptom["symptomType"].as_str()?;
        Some(match symptom["workerId"].as_str().filter(|worker| !worker.is_empty()) {
            Some(worker) => format!("{kind} on worker {worker}"),
            None => kind.to_owned(),
        })
    });
    let created_at = value["createTime"].as_str().and_then(Timestamp::parse_rfc3339);
    let (endpoints, internal) = addresses(value);
    Some(TargetFact {
        zone: Some(zone.to_owned()),
        accelerator: text("acceleratorType"),
        // When a state began is said only of the first one.
        since: created_at.filter(|_| word == "CREATING"),
        created_at,
        health: text("health").filter(|word| word != "HEALTH_UNSPECIFIED"),
        symptoms: symptoms.collect(),
        pricing: pricing(&value["schedulingConfig"]),
        endpoints,
        internal,
        request: value["labels"][LABEL].as_str().map(str::to_owned),
        source: GOOGLE.as_str().to_owned(),
        ..TargetFact::new(TargetName::from(id), states::of_target(word), word, now)
    })
}

/// Where its workers are, each at its index, and where they are inside the network beside that; all unknown
/// are none.
fn addresses(node: &Value) -> (Vec<String>, Vec<String>) {
    let both = |endpoint: &Value| {
        let external = endpoint["accessConfig"]["externalIp"].as_str().unwrap_or_default();
        let internal = endpoint["ipAddress"].as_str().unwrap_or_default();
        match external {
            "" => (internal.to_owned(), String::new()),
            external => (external.to_owned(), internal.to_owned()),
        }
    };
    let (endpoints, internal): (Vec<String>, Vec<String>) =
        list(&node["networkEndpoints"]).iter().map(both).unzip();
    if endpoints.iter().all(String::is_empty) {
        return (Vec::new(), Vec::new());
    }
    (endpoints, internal)
}

/// The queued resource that a node says it came from.
pub(super) fn parent(value: &Value) -> Option<&str> {
    zone_and_id(value["queuedResource"].as_str()?).map(|(_, id)| id)
}

/// What a queued resource says about itself: one entry for each node it is for.
pub(super) fn queued(value: &Value, now: Timestamp) -> Vec<Queued> {
    let Some((zone, id)) = value["name"].as_str().and_then(zone_and_id) else { return Vec::new() };
    let word = value["state"]["state"].as_str().unwrap_or("STATE_UNSPECIFIED");
    let is_spot = value["spot"].is_object();
    let specs = list(&value["tpu"]["nodeSpec"]);
    let of_spec = |spec: &Value| {
        let node = &spec["node"];
        let pricing = match pricing(&node["schedulingConfig"]) {
            Pricing::OnDemand if is_spot => Pricing::Spot,
            given => given,
        };
        let entry = |node_id: String| Queued {
            name: id.to_owned(),
            target: TargetName::from(node_id.as_str()),
            zone: zone.to_owned(),
            accelerator: node["acceleratorType"].as_str().map(str::to_owned),
            pricing,
            request: node["labels"][LABEL].as_str().map(str::to_owned),
            word: word.to_owned(),
            since: value["createTime"].as_str().and_then(Timestamp::parse_rfc3339),
            observed_at: now,
        };
        if let Some(node_id) = spec["nodeId"].as_str() {
            return vec![entry(node_id.to_owned())];
        }
        let many = &spec["multisliceParams"];
        let prefix = many["nodeIdPrefix"].as_str().unwrap_or(id);
        let count = many["nodeCount"].as_u64().unwrap_or(0).min(1_000);
        (0..count).map(|number| entry(format!("{prefix}-{number}"))).collect()
    };
    specs.iter().flat_map(of_spec).collect()
}

pub(super) fn pricing(scheduling: &Value) -> Pricing {
    let is = |key: &str| scheduling[key].as_bool() == Some(true);
    match () {
        () if is("spot") => Pricing::Spot,
        () if is("preemptible") => Pricing::Preemptible,
        () => Pricing::OnDemand,
    }
}

/// How far an operation is. What does not say so is running: it is asked again.
pub(super) fn operation(value: &Value, asked: &Asked<'_>) -> Operation {
    let meta = &value["metadata"];
    let target = meta["target"].as_str().and_then(zone_and_id);
    let name = value["name"].as_str().unwrap_or_default();
    let zone = zone_and_id(name).map(|(zone, _)| zone);
    let progress = match (value["done"].as_bool(), &value["error"]) {
        (_, error) if error.is_object() => {
            Progress::Failed { error: answers::operation_failure(error, asked.doing) }
        }
        (Some(true), _) => Progress::Done,
        _ => Progress::Running,
    };
    Operation {
        name: name.to_owned(),
        verb: asked.verb.unwrap_or_else(|| verb(meta["verb"].as_str().unwrap_or_default())),
        target: TargetName::from(asked.target.or(target.map(|(_, id)| id)).unwrap_or_default()),
        zone: zone.unwrap_or_default().to_owned(),
        began: meta["createTime"].as_str().and_then(Timestamp::parse_rfc3339).unwrap_or(asked.now),
        progress,
    }
}

/// What an operation was asked for; what is not known here it says itself.
pub(super) struct Asked<'a> {
    pub(super) verb: Option<Verb>,
    pub(super) target: Option<&'a str>,
    pub(super) doing: &'a str,
    pub(super) now: Timestamp,
}

fn verb(word: &str) -> Verb {
    match word {
        "delete" => Verb::Delete,
        "start" => Verb::Start,
        "stop" => Verb::Stop,
        _ => Verb::Create,
    }
}

/// The body that asks for a node, over what the settings want of every node.
pub(super) fn new_node(
    spec: &TargetSpec,
    request: &RequestId,
    common: &Map<String, Value>,
) -> Value {
    let runtime = spec.runtime_version.as_deref();
    let runtime = runtime.or_else(|| accelerators::runtime_version(&spec.accelerator));
    let mut node = json!({ "networkConfig": { "enableExternalIps": true, "network": "default" } });
    merge(&mut node, &Value::Object(common.clone()));
    merge(
        &mut node,
        &json!({
            "acceleratorType": spec.accelerator,
            "runtimeVersion": runtime,
            "schedulingConfig": {
                "preemptible": spec.pricing == Pricing::Preemptible,
                "spot": spec.pricing == Pricing::Spot,
            },
            "labels": { LABEL: label(request) },
        }),
    );
    merge(&mut node, &more(&spec.options));
    node
}

/// What else is said of a node, as its API has it (Cloud TPU API v2, `Node`).
fn more(options: &KindOptions) -> Value {
    let mut node = json!({});
    let tags = options.all("tag");
    if !tags.is_empty() {
        node["tags"] = json!(tags);
    }
    for pair in options.all("metadata") {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        node["metadata"][key] = json!(value);
    }
    for (option, field) in [("network", "network"), ("subnetwork", "subnetwork")] {
        if let Some(said) = options.get(option) {
            node["networkConfig"][field] = json!(said);
        }
    }
    if options.get("internal-ips") == Some("true") {
        node["networkConfig"]["enableExternalIps"] = json!(false);
    }
    if let Some(account) = options.get("service-account") {
        node["serviceAccount"] = json!({ "email": account });
    }
    node
}

/// The body that asks for a queued resource.
pub(super) fn new_queued(spec: &TargetSpec, mut node: Value, parent: &str) -> Value {
    if let Some(node) = node.as_object_mut() {
        // How it is paid for is said once, by the request.
        if spec.pricing != Pricing::Preemptible {
            node.remove("schedulingConfig");
        }
    }
    let mut body = json!({
        "tpu": { "nodeSpec": [{ "parent": parent, "nodeId": spec.name, "node": node }] },
    });
    if spec.pricing == Pricing::Spot {
        body["spot"] = json!({});
    }
    body
}

/// A request as the value of a label: small letters, digits, `-` and `_`, at most 63.
pub(crate) fn label(request: &RequestId) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if request.0.len() <= 63 && request.0.chars().all(plain) {
        return request.0.clone();
    }
    queued::uuid(request)
}

/// Lays one object over another, key by key.
fn merge(below: &mut Value, above: &Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                merge(below.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above.clone(),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Where a bucket is (Cloud Storage JSON API, `Buckets: get`).
pub(super) fn bucket(value: &Value) -> Option<BucketPlace> {
    let location = value["location"].as_str()?.to_owned();
    let regions = value["customPlacementConfig"]["dataLocations"].as_array();
    let regions = regions.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    Some(BucketPlace { location, regions: regions.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::facts::TargetState;

    const NOW: fn() -> Timestamp = || Timestamp::from_second(1_000);

    #[test]
    fn a_node_is_read_with_all_it_says() {
        let value = json!({
            "name": "projects/lab/locations/us-east10-a/nodes/n1", "acceleratorType": "v2-32",
            "state": "READY", "health": "UNHEALTHY_MAINTENANCE", "createTime": "2026-11-20T05:58:59Z",
            "networkEndpoints": [
                {"ipAddress": "10.0.0.1", "accessConfig": {"externalIp": "1.2.3.4"}},
                {}, {"ipAddress": "10.0.0.2", "port": 8470}],
            "schedulingConfig": {"spot": true}, "labels": {"tpu-request": "r1", "a": "b"},
            "symptoms": [{"symptomType": "LOW_MEMORY", "workerId": "3"}, {"symptomType": "NEW"}],
        });
        let fact = node(&value, NOW()).unwrap();
        assert_eq!((fact.name.as_str(), fact.zone.as_deref()), ("n1", Some("us-east10-a")));
        assert_eq!((fact.state, fact.pricing), (TargetState::Ready, Pricing::Spot));
        assert_eq!(fact.endpoints, ["1.2.3.4", "", "10.0.0.2"], "each at its index");
        assert_eq!(fact.internal, ["10.0.0.1", "", ""]);
        assert_eq!(fact.symptoms, ["LOW_MEMORY on worker 3", "NEW"]);
        assert_eq!((fact.request.as_deref(), fact.since), (Some("r1"), None));
        assert!(fact.is_flagged());
    }

    #[test]
    fn what_is_null_new_or_wrong_says_nothing() {
        let value = json!({
            "name": "projects/lab/locations/z/nodes/n1", "state": "FROZEN", "health": null,
            "networkEndpoints": [{}, null], "labels": [], "symptoms": "many", "schedulingConfig": 7,
            "acceleratorType": 4, "new": {"deep": [1]},
        });
        let fact = node(&value, NOW()).unwrap();
        assert_eq!((fact.state, fact.raw_state.as_str()), (TargetState::Unknown, "FROZEN"));
        assert_eq!((fact.accelerator, fact.health, fact.request), (None, None, None));
        assert!(fact.endpoints.is_empty());
        for nameless in [json!(null), json!({}), json!({"name": ""}), json!({"name": "locations"})]
        {
            assert_eq!(node(&nameless, NOW()), None);
        }
        assert_eq!(
            operation(&json!(7), &Asked { verb: None, target: None, doing: "x", now: NOW() })
                .progress,
            Progress::Running
        );
    }

    #[test]
    fn a_node_is_asked_for_with_what_the_settings_add() {
        let spec = TargetSpec {
            name: TargetName::from("n1"),
            zone: "z".to_owned(),
            accelerator: "v5litepod-16".to_owned(),
            pricing: Pricing::Spot,
            runtime_version: None,
            queued: false,
            options: KindOptions::default(),
        };
        let request = RequestId("r1".to_owned());
        let common = json!({"serviceAccount": {"email": "a@b"}, "networkConfig": {"network": "lab"},
            "labels": {"team": "x"}, "schedulingConfig": {"reserved": true}});
        let body = new_node(&spec, &request, common.as_object().unwrap());
        assert_eq!(
            body,
            json!({
                "networkConfig": {"enableExternalIps": true, "network": "lab"},
                "serviceAccount": {"email": "a@b"},
                "labels": {"team": "x", "tpu-request": "r1"},
                "schedulingConfig": {"reserved": true, "preemptible": false, "spot": true},
                "acceleratorType": "v5litepod-16", "runtimeVersion": "v2-alpha-tpuv5-lite",
            })
        );
        let queued = new_queued(&spec, body, "projects/p/locations/z");
        assert_eq!(queued["spot"], json!({}));
        assert_eq!(queued["tpu"]["nodeSpec"][0]["nodeId"], "n1");
        let pairs = [("tag", "a"), ("tag", "b"), ("metadata", "owner=me"), ("network", "own")];
        let more = TargetSpec { options: pairs.into_iter().collect(), ..spec };
        let body = new_node(&more, &request, common.as_object().unwrap());
        assert_eq!((&body["tags"], &body["metadata"]["owner"]), (&json!(["a", "b"]), &json!("me")));
        assert_eq!(body["networkConfig"], json!({"enableExternalIps": true, "network": "own"}));
        assert_eq!(body["labels"]["tpu-request"], "r1");
    }

    #[test]
    fn a_request_fits_into_a_label() {
        assert_eq!(label(&RequestId("ab12-0-1".to_owned())), "ab12-0-1");
        let long = label(&RequestId("alice:7/0".to_owned()));
        assert_eq!(long.len(), 36);
        assert_ne!(long, label(&RequestId("alice:7/1".to_owned())));
    }
}
