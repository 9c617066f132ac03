//! What each method of the API does, on the simulator's own call, with whatever goes wrong with it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::request::ApiRequest;
use super::words;
use crate::sim::faults::{Called, Delivery};
use crate::sim::fleet::{Begun, Fleet, Vm};
use crate::sim::{Call, SimCloud};
use tpu_core::model::accelerators;
use tpu_core::model::bucket::BucketPlace;
use tpu_core::model::ids::TargetName;
use tpu_core::model::target::Pricing;
use tpu_engine::provider::{ProviderError, TargetAt, Trouble, Verb};

/// Entries on a page when nobody says how many.
const PAGE: usize = 1_000;

/// JSON, or a refusal.
type Given = Result<Value, ProviderError>;

/// What a method answers, and how that is delivered.
pub(super) struct Answer {
    pub(super) delivery: Delivery,
    pub(super) given: Given,
}

/// Where in the API something is: `projects/P/locations/Z`.
struct Parent<'a> {
    project: &'a str,
    zone: &'a str,
}

impl<'a> Parent<'a> {
    fn of(request: &'a ApiRequest) -> Self {
        Self { project: request.place("project"), zone: request.place("zone") }
    }
}

/// Every path that is nobody's.
pub(super) fn no_such_method(_: &SimCloud, request: &ApiRequest) -> Answer {
    let message =
        format!("NOT_FOUND: {} {} is no method of this API", request.method, request.target);
    quietly(Err(ProviderError::new(Trouble::NotFound, "answer", message)))
}

/// A bucket of Cloud Storage, as its JSON API shows it.
pub(super) fn bucket(cloud: &SimCloud, request: &ApiRequest) -> Answer {
    let name = request.place("bucket");
    let (delivery, place) = match cloud.bucket(name) {
        Ok(answered) => answered,
        Err(error) => return quietly(Err(error)),
    };
    let shown = |place: BucketPlace| json!({ "kind": "storage#bucket", "id": name, "name": name, "location": place.location });
    Answer { delivery, given: place.map(shown) }
}

/// An answer with which nothing goes wrong.
pub(super) fn quietly(given: Given) -> Answer {
    Answer { delivery: Delivery::default(), given }
}

/// What the simulator answers; a simulator that cannot be used is an answer too.
fn through(answered: Result<(Delivery, Given), ProviderError>) -> Answer {
    answered
        .map_or_else(|error| quietly(Err(error)), |(delivery, given)| Answer { delivery, given })
}

fn at(parent: &Parent<'_>, name: &str) -> TargetAt {
    TargetAt::new(TargetName::from(name), Some(parent.zone.to_owned()))
}

fn absent(parent: &Parent<'_>, kind: &str, name: &str) -> ProviderError {
    let place = words::place(parent.project, parent.zone);
    let message = format!("NOT_FOUND: Resource '{place}/{kind}/{name}' was not found");
    ProviderError::new(Trouble::NotFound, "answer", message)
}

fn exists(parent: &Parent<'_>, kind: &str, name: &str) -> ProviderError {
    let place = words::place(parent.project, parent.zone);
    let message = format!("ALREADY_EXISTS: Resource '{place}/{kind}/{name}' already exists");
    ProviderError::new(Trouble::AlreadyExists, "answer", message)
}

fn body(request: &ApiRequest) -> Result<Map<String, Value>, ProviderError> {
    let wrong = || {
        let message = "INVALID_ARGUMENT: the body is no JSON object";
        ProviderError::new(Trouble::User, "answer", message)
    };
    if request.body.is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_slice(&request.body).map_err(|_| wrong())
}

/// One target of one zone; a target of another zone is another target.
fn find<'a>(fleet: &'a Fleet, parent: &Parent<'_>, name: &str) -> Result<&'a Vm, ProviderError> {
    let vm = fleet.targets.get(name).filter(|vm| vm.zone == parent.zone);
    vm.ok_or_else(|| absent(parent, "nodes", name))
}

fn node(fleet: &Fleet, parent: &Parent<'_>, name: &str, vm: &Vm) -> Value {
    words::node(parent.project, name, vm, &fleet.addresses(vm))
}

/// The operation of that name, as the API tells it.
fn told(fleet: &Fleet, parent: &Parent<'_>, name: &str) -> Given {
    let is_it = |begun: &&Begun| begun.operation.name == name;
    let begun = fleet.operations.iter().find(is_it);
    let begun = begun.ok_or_else(|| absent(parent, "operations", name))?;
    Ok(words::operation(parent.project, begun, fleet))
}

/// The nodes of one zone or of all.
pub(super) fn nodes(sim: &SimCloud, request: &ApiRequest) -> Answer {
    list(sim, request, "nodes")
}

/// The queued resources of one zone or of all.
pub(super) fn queued_resources(sim: &SimCloud, request: &ApiRequest) -> Answer {
    list(sim, request, "queuedResources")
}

/// A page of either.
fn list(sim: &SimCloud, request: &ApiRequest, kind: &str) -> Answer {
    let parent = &Parent::of(request);
    let size = request.parameter("pageSize").and_then(|size| size.parse().ok());
    let size: usize = size.filter(|size| (1..=PAGE).contains(size)).unwrap_or(PAGE);
    let token = request.parameter("pageToken").unwrap_or("0");
    let answered = sim.looked("list the fleet", |fleet, now| {
        let zones: Vec<String> = match parent.zone {
            "-" => fleet.zones.iter().cloned().collect(),
            zone => vec![zone.to_owned()],
        };
        let mut whole = Delivery::default();
        let mut unreachable = Vec::new();
        for zone in zones {
            // Only a list of nodes is a list to those who break one.
            if kind != "nodes" {
                continue;
            }
            let delivery =
                fleet.faults.deliver(Called { call: Call::List, target: None, zone: &zone }, now);
            whole.slow_s = whole.slow_s.max(delivery.slow_s);
            whole.lost |= delivery.lost;
            match delivery.error {
                Some(Trouble::Transient) if parent.zone == "-" => unreachable.push(zone),
                Some(trouble) => {
                    let error = crate::sim::faults::error(trouble, "list", &zone);
                    return (whole, Err(error));
                }
                None => {}
            }
        }
        let entries = entries(fleet, parent, kind, &unreachable);
        let Ok(begin) = token.parse::<usize>() else {
            let message = "INVALID_ARGUMENT: that page token is none of ours";
            return (whole, Err(ProviderError::new(Trouble::User, "list", message)));
        };
        let mut page = Map::new();
        let end = begin.saturating_add(size).min(entries.len());
        if end < entries.len() {
            page.insert("nextPageToken".to_owned(), json!(end.to_string()));
        }
        let entries: Vec<Value> = entries.into_iter().skip(begin).take(size).collect();
        if !entries.is_empty() {
            page.insert(kind.to_owned(), json!(entries));
        }
        if !unreachable.is_empty() {
            let names = unreachable.iter().map(|zone| words::place(parent.project, zone));
            page.insert("unreachable".to_owned(), names.collect());
        }
        (whole, Ok(Value::Object(page)))
    });
    through(answered)
}

fn entries(fleet: &Fleet, parent: &Parent<'_>, kind: &str, silent: &[String]) -> Vec<Value> {
    let is_here =
        |zone: &String| (parent.zone == "-" || parent.zone == zone) && !silent.contains(zone);
    if kind == "nodes" {
        let nodes = fleet.targets.iter().filter(|(_, vm)| is_here(&vm.zone));
        nodes.map(|(name, vm)| node(fleet, parent, name, vm)).collect()
    } else {
        let requests = fleet.requests.iter().filter(|(_, request)| is_here(&request.spec.zone));
        requests.map(|(name, request)| words::queued(parent.project, name, request)).collect()
    }
}

/// A node is created.
pub(super) fn create(sim: &SimCloud, request: &ApiRequest) -> Answer {
    let parent = &Parent::of(request);
    let name = request.parameter("nodeId").unwrap_or_default();
    let asked = body(request).and_then(|body| Ok((words::spec(name, parent.zone, &body)?, body)));
    let ((spec, id), body) = match asked {
        Ok(asked) => asked,
        Err(error) => return quietly(Err(error)),
    };
    let doing = format!("create {}", spec.at());
    through(sim.answered(Call::Create, &doing, &spec.at(), |fleet, delivery, now| {
        if fleet.targets.contains_key(name) {
            return Err(exists(parent, "nodes", name));
        }
        let operation = fleet.create(&spec, id.as_ref(), delivery.late, now)?;
        if let Some(vm) = fleet.targets.get_mut(name) {
            vm.body.clone_from(&body);
        }
        told(fleet, parent, &operation.name)
    }))
}

/// A node is asked for that is made when there is room.
pub(super) fn enqueue(sim: &SimCloud, request: &ApiRequest) -> Answer {
    let parent = &Parent::of(request);
    let name = request.parameter("queuedResourceId").unwrap_or_default().to_owned();
    let wrong = |message: &str| {
        let message = format!("INVALID_ARGUMENT: {message}");
        ProviderError::new(Trouble::User, format!("queue {name}"), message)
    };
    let asked = body(request).and_then(|body| {
        let specs = body.get("tpu").and_then(|tpu| tpu.get("nodeSpec")?.as_array());
        let [spec] = specs.map(Vec::as_slice).unwrap_or_default() else {
            return Err(wrong("exactly one nodeSpec is understood here"));
        };
        let node = spec["node"].as_object().ok_or_else(|| wrong("nodeSpec.node is missing"))?;
        let id = spec["nodeId"].as_str().ok_or_else(|| wrong("nodeSpec.nodeId is missing"))?;
        let (mut spec, request) = words::spec(id, parent.zone, node)?;
        spec.queued = true;
        if body.contains_key("spot") {
            spec.pricing = Pricing::Spot;
        }
        Ok((spec, request, body))
    });
    let (spec, id, body) = match asked {
        Ok(asked) if !name.is_empty() => asked,
        Ok(_) => return quietly(Err(wrong("queuedResourceId is missing"))),
        Err(error) => return quietly(Err(error)),
    };
    let doing = format!("queue for {}", spec.at());
    through(sim.answered(Call::Create, &doing, &spec.at(), |fleet, _, now| {
        if let Some(there) = fleet.requests.get(&name) {
            // The very same request again: its answer was lost.
            let is_same = request.parameter("requestId").is_some() && there.asked_by == id;
            let begun = id.as_ref().filter(|_| is_same).and_then(|id| fleet.begun_by(id));
            return match begun {
                Some(operation) => told(fleet, parent, &operation.name),
                None => Err(exists(parent, "queuedResources", &name)),
            };
        }
        if fleet.targets.contains_key(spec.name.as_str()) {
            return Err(exists(parent, "nodes", spec.name.as_str()));
        }
        let operation = fleet.enqueue(&name, &spec, id.as_ref(), now);
        if let Some(queued) = fleet.requests.get_mut(&name) {
            queued.body.clone_from(&body);
        }
        told(fleet, parent, &operation.name)
    }))
}

/// One node.
pub(super) fn describe(sim: &SimCloud, request: &ApiRequest) -> Answer {
    described(sim, &Parent::of(request), request.place("name"))
}

fn described(sim: &SimCloud, parent: &Parent<'_>, name: &str) -> Answer {
    let at = at(parent, name);
    through(sim.answered(Call::Describe, "describe", &at, |fleet, _, _| {
        let vm = find(fleet, parent, name)?;
        Ok(node(fleet, parent, name, vm))
    }))
}

/// One queued resource.
pub(super) fn queued_resource(sim: &SimCloud, request: &ApiRequest) -> Answer {
    let (parent, name) = (&Parent::of(request), request.place("name"));
    through(sim.looked("describe", |fleet, _| {
        let request = fleet.requests.get(name).filter(|request| request.spec.zone == parent.zone);
        let given = match request {
            Some(request) => Ok(words::queued(parent.project, name, request)),
            None => Err(absent(parent, "queuedResources", name)),
        };
        (Delivery::default(), given)
    }))
}

/// A node is deleted.
pub(super) fn delete(sim: &SimCloud, request: &ApiRequest) -> Answer {
    let (parent, name) = (&Parent::of(request), request.place("name"));
    let at = at(parent, name);
    through(sim.answered(Call::Delete, "delete", &at, |fleet, delivery, now| {
        find(fleet, parent, name)?;
        let operation = fleet.delete(&at, delivery.late, now);
        told(fleet, parent, &operation.name)
    }))
}

/// A queued resource is deleted.
pub(super) fn dequeue(sim: &SimCloud, request: &ApiRequest) -> Answer {
    let (parent, name) = (&Parent::of(request), request.place("name"));
    let force = request.parameter("force").is_some_and(|force| force.eq_ignore_ascii_case("true"));
    // What goes wrong is said of the target.
    let target = sim.look().ok().and_then(|fleet| {
        let request = fleet.requests.get(name)?;
        Some(request.spec.name.as_str().to_owned())
    });
    let at = at(parent, target.as_deref().unwrap_or(name));
    through(sim.answered(Call::Delete, "delete", &at, |fleet, _, now| {
        if fleet.requests.get(name).is_none_or(|request| request.spec.zone != parent.zone) {
            return Err(absent(parent, "queuedResources", name));
        }
        let operation = fleet.delete_request(name, force, now)?;
        told(fleet, parent, &operation.name)
    }))
}

/// What stands behind the colon of a node's name.
pub(super) fn act_on_node(sim: &SimCloud, request: &ApiRequest) -> Answer {
    let parent = &Parent::of(request);
    match request.place("name").rsplit_once(':') {
        Some((name, "start")) => turn(sim, parent, name, Verb::Start),
        Some((name, "stop")) => turn(sim, parent, name, Verb::Stop),
        Some((name, "getGuestAttributes")) => {
            let Answer { delivery, given } = described(sim, parent, name);
            Answer { delivery, given: given.map(|_| json!({})) }
        }
        _ => no_such_method(sim, request),
    }
}

/// What stands behind the colon of a queued resource's name.
pub(super) fn act_on_queued_resource(sim: &SimCloud, request: &ApiRequest) -> Answer {
    match request.place("name").rsplit_once(':') {
        Some((name, "reset")) => reset(sim, &Parent::of(request), name),
        _ => no_such_method(sim, request),
    }
}

/// A request that has ended is queued again.
fn reset(sim: &SimCloud, parent: &Parent<'_>, name: &str) -> Answer {
    through(sim.looked("reset", |fleet, now| {
        let known = fleet.requests.get(name).filter(|request| request.spec.zone == parent.zone);
        let Some(request) = known.cloned() else {
            return (Delivery::default(), Err(absent(parent, "queuedResources", name)));
        };
        let operation = fleet.enqueue(name, &request.spec, request.asked_by.as_ref(), now);
        if let Some(queued) = fleet.requests.get_mut(name) {
            queued.body = request.body;
        }
        (Delivery::default(), told(fleet, parent, &operation.name))
    }))
}

fn turn(sim: &SimCloud, parent: &Parent<'_>, name: &str, verb: Verb) -> Answer {
    let at = at(parent, name);
    let call = if verb == Verb::Start { Call::Start } else { Call::Stop };
    through(sim.answered(call, verb.as_str(), &at, |fleet, _, now| {
        find(fleet, parent, name)?;
        let operation = fleet.turn(verb, &at, now)?;
        told(fleet, parent, &operation.name)
    }))
}

/// Only what people may change about a node that is there.
pub(super) fn patch(sim: &SimCloud, request: &ApiRequest) -> Answer {
    let (parent, name) = (&Parent::of(request), request.place("name"));
    let change = match body(request) {
        Ok(change) => change,
        Err(error) => return quietly(Err(error)),
    };
    through(sim.looked("change", |fleet, now| {
        let given = find(fleet, parent, name).map(|_| ()).and_then(|()| {
            if let Some(vm) = fleet.targets.get_mut(name) {
                for (key, value) in &change {
                    if matches!(key.as_str(), "description" | "tags" | "labels" | "metadata") {
                        vm.body.insert(key.clone(), value.clone());
                    }
                }
            }
            let operation = fleet.changed(name, now);
            told(fleet, parent, &operation.name)
        });
        (Delivery::default(), given)
    }))
}

/// What has become of something that takes its time.
pub(super) fn operation(sim: &SimCloud, request: &ApiRequest) -> Answer {
    let (parent, name) = (&Parent::of(request), request.place("name"));
    let target = sim.look().ok().and_then(|fleet| Some(fleet.find_operation(name)?.target));
    let at = at(parent, target.as_ref().map_or(name, TargetName::as_str));
    let answered =
        sim.answered(Call::Operation, "look at", &at, |fleet, _, _| told(fleet, parent, name));
    through(answered)
}

/// The zones.
pub(super) fn zones(sim: &SimCloud, request: &ApiRequest) -> Answer {
    let project = request.place("project");
    through(sim.looked("list the zones", |fleet, _| {
        let zones = fleet
            .zones
            .iter()
            .map(|zone| json!({ "name": words::place(project, zone), "locationId": zone }));
        let zones: Vec<Value> = zones.collect();
        (Delivery::default(), Ok(json!({ "locations": zones })))
    }))
}

/// The types of accelerator.
pub(super) fn types(_: &SimCloud, request: &ApiRequest) -> Answer {
    let parent = &Parent::of(request);
    let types: Vec<Value> =
        words::TYPES.iter().map(|name| accelerator_type(parent, name)).collect();
    quietly(Ok(json!({ "acceleratorTypes": types })))
}

/// One of them.
pub(super) fn type_named(_: &SimCloud, request: &ApiRequest) -> Answer {
    let (parent, name) = (&Parent::of(request), request.place("name"));
    quietly(if words::TYPES.contains(&name) {
        Ok(accelerator_type(parent, name))
    } else {
        Err(absent(parent, "acceleratorTypes", name))
    })
}

fn accelerator_type(parent: &Parent<'_>, name: &str) -> Value {
    json!({
        "name": format!("{}/acceleratorTypes/{name}", words::place(parent.project, parent.zone)),
        "type": name, "acceleratorConfigs": [words::configuration(name)],
    })
}

/// The versions of the software on a node.
pub(super) fn versions(_: &SimCloud, request: &ApiRequest) -> Answer {
    let parent = &Parent::of(request);
    let versions = known_versions().into_iter().map(|name| runtime_version(parent, name));
    quietly(Ok(json!({ "runtimeVersions": versions.collect::<Vec<_>>() })))
}

/// One of them.
pub(super) fn version_named(_: &SimCloud, request: &ApiRequest) -> Answer {
    let (parent, name) = (&Parent::of(request), request.place("name"));
    quietly(if known_versions().contains(name) {
        Ok(runtime_version(parent, name))
    } else {
        Err(absent(parent, "runtimeVersions", name))
    })
}

fn known_versions() -> BTreeSet<&'static str> {
    words::TYPES.iter().filter_map(|name| accelerators::runtime_version(name)).collect()
}

fn runtime_version(parent: &Parent<'_>, name: &str) -> Value {
    let place = words::place(parent.project, parent.zone);
    json!({ "name": format!("{place}/runtimeVersions/{name}"), "version": name })
}
