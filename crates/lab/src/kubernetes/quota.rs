//! Quotas: what a namespace may use, what it uses, and who is refused therefore [quota-*].

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::quantity::Quantity;
use super::refused::{Refused, Subject};
use super::resources::{ApiResource, JOBS, PODS, QUOTAS};
use super::store::ObjectStore;

/// Amounts by name, as quotas count them.
pub(super) type Amounts = BTreeMap<String, Quantity>;

/// Whether a pod has ended.
pub(super) fn is_over(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

/// What the containers of a pod ask for together: `requests` or `limits`. Init containers run one after the other.
pub(super) fn asked(spec: &Value, of: &str) -> Amounts {
    let of_container = |container: &Value| -> Vec<(String, Quantity)> {
        let amounts = container["resources"][of].as_object().into_iter().flatten();
        amounts
            .filter_map(|(name, is)| Some((name.clone(), Quantity::parse(is.as_str()?)?)))
            .collect()
    };
    let mut sum = Amounts::new();
    for container in spec["containers"].as_array().into_iter().flatten() {
        for (name, amount) in of_container(container) {
            let place = sum.entry(name).or_insert(Quantity::ZERO);
            *place = place.plus(amount);
        }
    }
    for container in spec["initContainers"].as_array().into_iter().flatten() {
        for (name, amount) in of_container(container) {
            let place = sum.entry(name).or_insert(Quantity::ZERO);
            *place = place.max(amount);
        }
    }
    sum
}

/// What an object counts for in a quota.
fn counted(resource: &ApiResource, object: &Value) -> Amounts {
    let one = Quantity::parse("1").unwrap_or(Quantity::ZERO);
    let mut all = Amounts::new();
    let suffix =
        if resource.group.is_empty() { String::new() } else { format!(".{}", resource.group) };
    all.insert(format!("count/{}{suffix}", resource.plural), one);
    if resource.is(&PODS) {
        all.insert("pods".to_owned(), one);
        for (name, amount) in asked(&object["spec"], "requests") {
            if ["cpu", "memory"].contains(&name.as_str()) {
                all.insert(name.clone(), amount);
            }
            all.insert(format!("requests.{name}"), amount);
        }
        for (name, amount) in asked(&object["spec"], "limits") {
            all.insert(format!("limits.{name}"), amount);
        }
    }
    all
}

/// What is used of a quota.
fn used(store: &ObjectStore, namespace: &str, hard: &Map<String, Value>) -> Amounts {
    let mut sum: Amounts = hard.keys().map(|name| (name.clone(), Quantity::ZERO)).collect();
    for (key, object) in store.all().filter(|(key, _)| key.namespace == namespace) {
        let resource = key.resource();
        if resource.is(&PODS) && is_over(object) {
            continue;
        }
        for (name, amount) in counted(resource, object) {
            if let Some(place) = sum.get_mut(&name) {
                *place = place.plus(amount);
            }
        }
    }
    sum
}

/// The status of a quota as it is now.
pub(super) fn status(store: &ObjectStore, quota: &Value) -> Value {
    let namespace = quota["metadata"]["namespace"].as_str().unwrap_or_default();
    let hard = quota["spec"]["hard"].as_object().cloned().unwrap_or_default();
    let used: Map<String, Value> = used(store, namespace, &hard)
        .into_iter()
        .map(|(name, amount)| (name, json!(amount.canonical())))
        .collect();
    json!({"hard": hard, "used": used})
}

/// Refuses an object that a quota of its namespace does not allow.
pub(super) fn check(
    store: &ObjectStore,
    resource: &ApiResource,
    namespace: &str,
    object: &Value,
) -> Result<(), Refused> {
    if !resource.is(&PODS) && !resource.is(&JOBS) {
        return Ok(());
    }
    let wanted = counted(resource, object);
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let subject = Subject { name, group: resource.group, kind: resource.plural };
    for (_, quota) in store.list(&QUOTAS, Some(namespace)) {
        let called = quota["metadata"]["name"].as_str().unwrap_or_default();
        let Some(hard) = quota["spec"]["hard"].as_object() else { continue };
        if resource.is(&PODS) {
            let missing: Vec<&str> = hard
                .keys()
                .map(String::as_str)
                .filter(|name| is_compulsory(name) && !wanted.contains_key(*name))
                .collect();
            if !missing.is_empty() {
                let why = format!("failed quota: {called}: must specify {}", missing.join(","));
                return Err(Refused::forbidden(&subject, &why, &[]));
            }
        }
        let used = used(store, namespace, hard);
        let mut over = [Vec::new(), Vec::new(), Vec::new()];
        for (name, amount) in &wanted {
            let limit = hard.get(name).and_then(Value::as_str).and_then(Quantity::parse);
            let (Some(limit), Some(used)) = (limit, used.get(name)) else { continue };
            if used.plus(*amount).order(limit).is_gt() {
                let [requested, taken, limited] = &mut over;
                requested.push(format!("{name}={}", amount.canonical()));
                taken.push(format!("{name}={}", used.canonical()));
                limited.push(format!("{name}={}", limit.canonical()));
            }
        }
        let [requested, taken, limited] = over.map(|parts| parts.join(","));
        if !requested.is_empty() {
            let why = format!(
                "exceeded quota: {called}, requested: {requested}, used: {taken}, limited: {limited}"
            );
            return Err(Refused::forbidden(&subject, &why, &[]));
        }
    }
    Ok(())
}

/// What every container has to say where a quota limits it.
fn is_compulsory(name: &str) -> bool {
    let known = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
    known.contains(&name)
}
