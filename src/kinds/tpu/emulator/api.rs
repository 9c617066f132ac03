//! The routes of the API, each on the simulator's own call, with whatever goes wrong with it.

use serde_json::{Map, Value, json};

use super::http::{Reaction, Request};
use super::words;
use crate::kinds::tpu::sim::faults::{Called, Delivery};
use crate::kinds::tpu::sim::fleet::{Fleet, Vm};
use crate::kinds::tpu::sim::{Call, SimCloud};
use crate::model::ids::TargetName;
use crate::model::target::Pricing;
use crate::model::time::Timestamp;
use crate::provider::{ProviderError, TargetAt, Trouble, Verb};

/// Entries on a page when nobody says how many.
const PAGE: usize = 1_000;

/// What a handler gives: JSON, or a refusal.
type Given = Result<Value, ProviderError>;

/// A place in the API: `/v2/projects/P/locations/Z/…`.
struct Place<'a> {
    project: &'a str,
    zone: &'a str,
}

/// Answers one request.
pub(super) fn react(sim: &SimCloud, request: &Request) -> Reaction {
    let path: Vec<&str> = request.path.iter().map(String::as_str).collect();
    let method = request.method.as_str();
    let (delivery, given) = match (method, path.as_slice()) {
        ("GET", ["compute", "v1", "projects", project]) => quietly(Ok(json!({
            "kind": "compute#project", "name": project,
            "commonInstanceMetadata": { "kind": "compute#metadata", "items": [] },
        }))),
        ("GET", ["v1" | "v2" | "v2alpha1", "projects", project, "locations"]) => {
            locations(sim, project)
        }
        (_, ["v2" | "v2alpha1", "projects", project, "locations", zone, rest @ ..]) => {
            located(sim, request, &Place { project, zone }, rest)
        }
        _ => quietly(Err(no_route(request))),
    };
    // Whoever waits longer than this has hung up.
    if !sim.linger(delivery.slow_s) || delivery.lost {
        return Reaction::Hang;
    }
    match given {
        Ok(value) => Reaction::Answer(200, value.to_string()),
        Err(error) => {
            let (status, body) = words::refusal(&error);
            Reaction::Answer(status, body)
        }
    }
}

fn located(
    sim: &SimCloud,
    request: &Request,
    place: &Place<'_>,
    rest: &[&str],
) -> (Delivery, Given) {
    match (request.method.as_str(), rest) {
        ("GET", ["nodes"]) => list(sim, request, place, "nodes"),
        ("GET", ["queuedResources"]) => list(sim, request, place, "queuedResources"),
        ("POST", ["nodes"]) => create(sim, request, place),
        ("POST", ["queuedResources"]) => enqueue(sim, request, place),
        ("GET", ["nodes", name]) => describe(sim, place, name),
        ("GET", ["queuedResources", name]) => queued(sim, place, name),
        ("DELETE", ["nodes", name]) => delete(sim, place, name),
        ("DELETE", ["queuedResources", name]) => dequeue(sim, request, place, name),
        ("PATCH", ["nodes", name]) => patch(sim, request, place, name),
        ("GET", ["operations", name]) => operation(sim, place, name),
        ("GET", ["acceleratorTypes", one @ ..]) => quietly(types(place, one)),
        ("GET", ["runtimeVersions", one @ ..]) => quietly(versions(place, one)),
        ("POST", ["nodes", named]) => match named.rsplit_once(':') {
            Some((name, "start")) => turn(sim, place, name, Verb::Start),
            Some((name, "stop")) => turn(sim, place, name, Verb::Stop),
            Some((name, "getGuestAttributes")) => {
                let (delivery, given) = describe(sim, place, name);
                (delivery, given.map(|_| json!({})))
            }
            _ => quietly(Err(no_route(request))),
        },
        ("POST", ["queuedResources", named]) => match named.rsplit_once(':') {
            Some((name, "reset")) => reset(sim, place, name),
            _ => quietly(Err(no_route(request))),
        },
        _ => quietly(Err(no_route(request))),
    }
}

fn no_route(request: &Request) -> ProviderError {
    let message =
        format!("NOT_FOUND: {} {} is no method of this API", request.method, request.target);
    ProviderError::new(Trouble::NotFound, "answer", message)
}

/// An answer with which nothing goes wrong.
fn quietly(given: Given) -> (Delivery, Given) {
    (Delivery::default(), given)
}

/// What the simulator answers; a simulator that cannot be used is an answer too.
fn through(answered: Result<(Delivery, Given), ProviderError>) -> (Delivery, Given) {
    answered.unwrap_or_else(|error| quietly(Err(error)))
}

fn at(place: &Place<'_>, name: &str) -> TargetAt {
    TargetAt::new(TargetName::from(name), Some(place.zone.to_owned()))
}

fn absent(place: &Place<'_>, kind: &str, name: &str) -> ProviderError {
    let place = words::place(place.project, place.zone);
    let message = format!("NOT_FOUND: Resource '{place}/{kind}/{name}' was not found");
    ProviderError::new(Trouble::NotFound, "answer", message)
}

fn exists(place: &Place<'_>, kind: &str, name: &str) -> ProviderError {
    let place = words::place(place.project, place.zone);
    let message = format!("ALREADY_EXISTS: Resource '{place}/{kind}/{name}' already exists");
    ProviderError::new(Trouble::AlreadyExists, "answer", message)
}

fn body(request: &Request) -> Result<Map<String, Value>, ProviderError> {
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
fn find<'a>(fleet: &'a Fleet, place: &Place<'_>, name: &str) -> Result<&'a Vm, ProviderError> {
    let vm = fleet.targets.get(name).filter(|vm| vm.zone == place.zone);
    vm.ok_or_else(|| absent(place, "nodes", name))
}

fn node(fleet: &Fleet, place: &Place<'_>, name: &str, vm: &Vm) -> Value {
    words::node(place.project, name, vm, &fleet.addresses(vm))
}

/// The operation of that name, as the API tells it.
fn told(fleet: &Fleet, place: &Place<'_>, name: &str) -> Given {
    let is_it = |begun: &&crate::kinds::tpu::sim::fleet::Begun| begun.operation.name == name;
    let begun = fleet.operations.iter().find(is_it);
    let begun = begun.ok_or_else(|| absent(place, "operations", name))?;
    Ok(words::operation(place.project, begun, fleet))
}

/// A page of nodes or queued resources, of one zone or of all.
fn list(sim: &SimCloud, request: &Request, place: &Place<'_>, kind: &str) -> (Delivery, Given) {
    let size = request.parameter("pageSize").and_then(|size| size.parse().ok());
    let size: usize = size.filter(|size| (1..=PAGE).contains(size)).unwrap_or(PAGE);
    let token = request.parameter("pageToken").unwrap_or("0");
    let answered = sim.looked("list the fleet", |fleet, now| {
        let zones: Vec<String> = match place.zone {
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
                fleet.deliver(Called { call: Call::List, target: None, zone: &zone }, now);
            whole.slow_s = whole.slow_s.max(delivery.slow_s);
            whole.lost |= delivery.lost;
            match delivery.error {
                Some(Trouble::Transient) if place.zone == "-" => unreachable.push(zone),
                Some(trouble) => {
                    let error = crate::kinds::tpu::sim::faults::error(trouble, "list", &zone);
                    return (whole, Err(error));
                }
                None => {}
            }
        }
        let entries = entries(fleet, place, kind, &unreachable);
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
            let names = unreachable.iter().map(|zone| words::place(place.project, zone));
            page.insert("unreachable".to_owned(), names.collect());
        }
        (whole, Ok(Value::Object(page)))
    });
    through(answered)
}

fn entries(fleet: &Fleet, place: &Place<'_>, kind: &str, silent: &[String]) -> Vec<Value> {
    let is_here =
        |zone: &String| (place.zone == "-" || place.zone == zone) && !silent.contains(zone);
    if kind == "nodes" {
        let nodes = fleet.targets.iter().filter(|(_, vm)| is_here(&vm.zone));
        nodes.map(|(name, vm)| node(fleet, place, name, vm)).collect()
    } else {
        let requests = fleet.requests.iter().filter(|(_, request)| is_here(&request.spec.zone));
        requests.map(|(name, request)| words::queued(place.project, name, request)).collect()
    }
}

fn create(sim: &SimCloud, request: &Request, place: &Place<'_>) -> (Delivery, Given) {
    let name = request.parameter("nodeId").unwrap_or_default();
    let asked = body(request).and_then(|body| Ok((words::spec(name, place.zone, &body)?, body)));
    let ((spec, id), body) = match asked {
        Ok(asked) => asked,
        Err(error) => return quietly(Err(error)),
    };
    let doing = format!("create {}", spec.at());
    through(sim.answered((Call::Create, &doing), &spec.at(), |fleet, delivery, now| {
        if fleet.targets.contains_key(name) {
            return Err(exists(place, "nodes", name));
        }
        let operation = fleet.create(&spec, id.as_ref(), delivery.late, now)?;
        if let Some(vm) = fleet.targets.get_mut(name) {
            vm.body.clone_from(&body);
        }
        told(fleet, place, &operation.name)
    }))
}

fn enqueue(sim: &SimCloud, request: &Request, place: &Place<'_>) -> (Delivery, Given) {
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
        let (mut spec, request) = words::spec(id, place.zone, node)?;
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
    through(sim.answered((Call::Create, &doing), &spec.at(), |fleet, _, now| {
        if let Some(there) = fleet.requests.get(&name) {
            // The very same request again: its answer was lost.
            let is_same = request.parameter("requestId").is_some() && there.asked_by == id;
            let begun = id.as_ref().filter(|_| is_same).and_then(|id| fleet.begun_by(id));
            return match begun {
                Some(operation) => told(fleet, place, &operation.name),
                None => Err(exists(place, "queuedResources", &name)),
            };
        }
        if fleet.targets.contains_key(spec.name.as_str()) {
            return Err(exists(place, "nodes", spec.name.as_str()));
        }
        let operation = fleet.enqueue((&name, &spec), id.as_ref(), now);
        if let Some(queued) = fleet.requests.get_mut(&name) {
            queued.body.clone_from(&body);
        }
        told(fleet, place, &operation.name)
    }))
}

fn describe(sim: &SimCloud, place: &Place<'_>, name: &str) -> (Delivery, Given) {
    let at = at(place, name);
    through(sim.answered((Call::Describe, "describe"), &at, |fleet, _, _| {
        let vm = find(fleet, place, name)?;
        Ok(node(fleet, place, name, vm))
    }))
}

fn queued(sim: &SimCloud, place: &Place<'_>, name: &str) -> (Delivery, Given) {
    through(sim.looked("describe", |fleet, _| {
        let request = fleet.requests.get(name).filter(|request| request.spec.zone == place.zone);
        let given = match request {
            Some(request) => Ok(words::queued(place.project, name, request)),
            None => Err(absent(place, "queuedResources", name)),
        };
        (Delivery::default(), given)
    }))
}

fn delete(sim: &SimCloud, place: &Place<'_>, name: &str) -> (Delivery, Given) {
    let at = at(place, name);
    through(sim.answered((Call::Delete, "delete"), &at, |fleet, delivery, now| {
        find(fleet, place, name)?;
        let operation = fleet.delete(&at, delivery.late, now);
        told(fleet, place, &operation.name)
    }))
}

fn dequeue(sim: &SimCloud, request: &Request, place: &Place<'_>, name: &str) -> (Delivery, Given) {
    let force = request.parameter("force").is_some_and(|force| force.eq_ignore_ascii_case("true"));
    // What goes wrong is said of the target.
    let target = sim.look().ok().and_then(|fleet| {
        let request = fleet.requests.get(name)?;
        Some(request.spec.name.as_str().to_owned())
    });
    let at = at(place, target.as_deref().unwrap_or(name));
    through(sim.answered((Call::Delete, "delete"), &at, |fleet, _, now| {
        if fleet.requests.get(name).is_none_or(|request| request.spec.zone != place.zone) {
            return Err(absent(place, "queuedResources", name));
        }
        let operation = fleet.delete_request(name, force, now)?;
        told(fleet, place, &operation.name)
    }))
}

/// A request that has ended is queued again.
fn reset(sim: &SimCloud, place: &Place<'_>, name: &str) -> (Delivery, Given) {
    through(sim.looked("reset", |fleet, now| {
        let known = fleet.requests.get(name).filter(|request| request.spec.zone == place.zone);
        let Some(request) = known.cloned() else {
            return (Delivery::default(), Err(absent(place, "queuedResources", name)));
        };
        let operation = fleet.enqueue((name, &request.spec), request.asked_by.as_ref(), now);
        if let Some(queued) = fleet.requests.get_mut(name) {
            queued.body = request.body;
        }
        (Delivery::default(), told(fleet, place, &operation.name))
    }))
}

fn turn(sim: &SimCloud, place: &Place<'_>, name: &str, verb: Verb) -> (Delivery, Given) {
    let at = at(place, name);
    let call = if verb == Verb::Start { Call::Start } else { Call::Stop };
    through(sim.answered((call, verb.as_str()), &at, |fleet, _, now| {
        find(fleet, place, name)?;
        let operation = fleet.turn(verb, &at, now)?;
        told(fleet, place, &operation.name)
    }))
}

/// Only what people may change about a node that is there.
fn patch(sim: &SimCloud, request: &Request, place: &Place<'_>, name: &str) -> (Delivery, Given) {
    let change = match body(request) {
        Ok(change) => change,
        Err(error) => return quietly(Err(error)),
    };
    through(sim.looked("change", |fleet, now| {
        let given = find(fleet, place, name).map(|_| ()).and_then(|()| {
            if let Some(vm) = fleet.targets.get_mut(name) {
                for (key, value) in &change {
                    if matches!(key.as_str(), "description" | "tags" | "labels" | "metadata") {
                        vm.body.insert(key.clone(), value.clone());
                    }
                }
            }
            let operation = fleet.changed(name, now);
            told(fleet, place, &operation.name)
        });
        (Delivery::default(), given)
    }))
}

fn operation(sim: &SimCloud, place: &Place<'_>, name: &str) -> (Delivery, Given) {
    let target = sim.look().ok().and_then(|fleet| Some(fleet.find_operation(name)?.target));
    let at = at(place, target.as_ref().map_or(name, TargetName::as_str));
    let answered =
        sim.answered((Call::Operation, "look at"), &at, |fleet, _, _| told(fleet, place, name));
    through(answered)
}

fn locations(sim: &SimCloud, project: &str) -> (Delivery, Given) {
    through(sim.looked("list the zones", |fleet, _: Timestamp| {
        let zones = fleet
            .zones
            .iter()
            .map(|zone| json!({ "name": words::place(project, zone), "locationId": zone }));
        let zones: Vec<Value> = zones.collect();
        (Delivery::default(), Ok(json!({ "locations": zones })))
    }))
}

fn types(place: &Place<'_>, one: &[&str]) -> Given {
    let of = |kind: &str| {
        json!({
            "name": format!("{}/acceleratorTypes/{kind}", words::place(place.project, place.zone)),
            "type": kind, "acceleratorConfigs": [words::configuration(kind)],
        })
    };
    match one {
        [] => Ok(
            json!({ "acceleratorTypes": words::TYPES.iter().map(|t| of(t)).collect::<Vec<_>>() }),
        ),
        [kind] if words::TYPES.contains(kind) => Ok(of(kind)),
        rest => Err(absent(place, "acceleratorTypes", &rest.join("/"))),
    }
}

fn versions(place: &Place<'_>, one: &[&str]) -> Given {
    let mut known: Vec<&str> = words::TYPES
        .iter()
        .filter_map(|kind| crate::kinds::tpu::accelerators::runtime_version(kind))
        .collect();
    known.sort_unstable();
    known.dedup();
    let of = |version: &str| {
        let name = format!("{}/runtimeVersions/{version}", words::place(place.project, place.zone));
        json!({ "name": name, "version": version })
    };
    match one {
        [] => Ok(json!({ "runtimeVersions": known.iter().map(|v| of(v)).collect::<Vec<_>>() })),
        [version] if known.contains(version) => Ok(of(version)),
        rest => Err(absent(place, "runtimeVersions", &rest.join("/"))),
    }
}
