//! The cluster: every change of an object goes through here, whoever makes it, and is checked, completed and kept.

use std::sync::Arc;

use serde_json::{Value, json};

use super::defaults;
use super::quantity::Quantity;
use super::quota;
use super::refused::{Cause, Refused, Subject};
use super::resources::{
    ApiResource, CONFIG_MAPS, EVENTS, JOBS, NAMESPACES, NODES, PODS, PRIORITY_CLASSES, QUOTAS,
    SECRETS,
};
use super::store::{ObjectKey, ObjectStore};
use super::validate;
use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::random::{OsRandom, Random as _};

/// Letters of generated names: none that makes a word.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// The secret that every pod of a namespace mounts.
const TOKEN_SECRET: &str = "default-token-8b82q";

/// All objects, and what every change needs.
#[derive(Debug)]
pub(super) struct Cluster {
    /// The objects.
    pub(super) store: ObjectStore,
    clock: SystemClock,
    begun: jiff::Timestamp,
}

/// How an object is to be deleted.
#[derive(Clone, Debug, Default)]
pub(super) struct Deletion {
    /// `Foreground`, `Background` or `Orphan`; the resource's own way if empty.
    pub(super) propagation: String,
    /// Only this one.
    pub(super) uid: Option<String>,
    /// Only in this version.
    pub(super) version: Option<String>,
    /// Seconds that a pod has to end.
    pub(super) grace_s: Option<i64>,
    /// Only say what would be.
    pub(super) dry_run: bool,
}

/// What is said of an object in an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said<'a> {
    /// `Normal` or `Warning`.
    pub(super) severity: &'a str,
    /// In one word.
    pub(super) reason: &'a str,
    /// Who says it.
    pub(super) from: &'a str,
    /// The node it is said on, or nothing.
    pub(super) host: &'a str,
    /// Which part of the object: `spec.containers{main}`.
    pub(super) part: &'a str,
}

/// Text of a value, empty for none.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Where an object lies.
pub(super) fn key_of(resource: &ApiResource, object: &Value) -> ObjectKey {
    let meta = &object["metadata"];
    ObjectKey::new(resource, text(&meta["namespace"]), text(&meta["name"]))
}

fn subject<'a>(resource: &'a ApiResource, name: &'a str) -> Subject<'a> {
    Subject { name, group: resource.group, kind: resource.plural }
}

impl Cluster {
    /// A cluster with its two priority classes and nothing else.
    pub(super) fn new() -> Self {
        let clock = SystemClock::new();
        let begun = jiff::Timestamp::from_second(clock.now().as_second()).unwrap_or_default();
        let mut cluster = Self { store: ObjectStore::new(), clock, begun };
        for (name, value, what) in [
            (
                "system-node-critical",
                2_000_001_000_i64,
                "Used for system critical pods that must not be moved from their current node.",
            ),
            (
                "system-cluster-critical",
                2_000_000_000,
                "Used for system critical pods that must run in the cluster, but can be moved to another node if \
                 necessary.",
            ),
        ] {
            let mut class = json!({
                "kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": name},
                "value": value, "description": what, "preemptionPolicy": "PreemptLowerPriority",
            });
            cluster.identify(&mut class, &PRIORITY_CLASSES, "");
            cluster.store.put(&ObjectKey::new(&PRIORITY_CLASSES, "", name), class);
        }
        cluster
    }

    /// The moment.
    pub(super) fn moment(&self) -> jiff::Timestamp {
        let since = jiff::SignedDuration::try_from(self.clock.monotonic()).unwrap_or_default();
        self.begun.checked_add(since).unwrap_or(self.begun)
    }

    /// The time, to the second, as objects have it.
    pub(super) fn now(&self) -> String {
        self.moment().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// The time, to the microsecond.
    fn now_exactly(&self) -> String {
        self.moment().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
    }

    /// Seconds since a time that an object has; nothing for none.
    pub(super) fn seconds_since(&self, time: &Value) -> Option<f64> {
        let then: jiff::Timestamp = time.as_str()?.parse().ok()?;
        Some(self.moment().duration_since(then).as_secs_f64())
    }

    /// An identity that nothing else has.
    pub(super) fn new_uid() -> String {
        let hex = OsRandom.hex(16);
        let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
        format!(
            "{}-{}-4{}-a{}-{}",
            part(0, 8),
            part(8, 12),
            part(13, 16),
            part(17, 20),
            part(20, 32)
        )
    }

    /// Five letters behind a name.
    pub(super) fn suffix() -> String {
        let letter = || {
            let at = usize::try_from(OsRandom.below(LETTERS.len() as u64)).unwrap_or_default();
            LETTERS.get(at).map_or('x', |byte| char::from(*byte))
        };
        (0..5).map(|_| letter()).collect()
    }

    fn identify(&self, object: &mut Value, resource: &ApiResource, namespace: &str) {
        let meta = &mut object["metadata"];
        for key in
            ["resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"]
        {
            if let Some(meta) = meta.as_object_mut() {
                meta.shift_remove(key);
            }
        }
        if text(&meta["name"]).is_empty() && !text(&meta["generateName"]).is_empty() {
            let begin: String = text(&meta["generateName"]).chars().take(58).collect();
            meta["name"] = json!(format!("{begin}{}", Self::suffix()));
        }
        if resource.namespaced {
            meta["namespace"] = json!(namespace);
        }
        meta["uid"] = json!(Self::new_uid());
        meta["creationTimestamp"] = json!(self.now());
        if resource.is(&PRIORITY_CLASSES) {
            meta["generation"] = json!(1);
        }
    }

    /// Makes an object that has been decoded. Nothing is kept in a dry run.
    pub(super) fn create(
        &mut self,
        resource: &'static ApiResource,
        namespace: &str,
        mut object: Value,
        dry_run: bool,
    ) -> Result<Arc<Value>, Refused> {
        let said = text(&object["metadata"]["namespace"]);
        if resource.namespaced && !said.is_empty() && said != namespace {
            return Err(Refused::bad(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        // Before it has its name [events-nopc].
        let priority = if resource.is(&PODS) { self.priority(&object)? } else { 0 };
        self.identify(&mut object, resource, namespace);
        let uid = text(&object["metadata"]["uid"]).to_owned();
        match resource.plural {
            "jobs" => {
                defaults::job(&mut object);
                defaults::job_labels(&mut object, &uid);
            }
            "pods" => defaults::pod(&mut object, priority, TOKEN_SECRET),
            "namespaces" => {
                object["spec"] = json!({"finalizers": ["kubernetes"]});
                object["status"] = json!({"phase": "Active"});
            }
            "nodes" => new_node(&mut object),
            "resourcequotas" => object["status"] = json!({}),
            "priorityclasses" if object["preemptionPolicy"].is_null() => {
                object["preemptionPolicy"] = json!("PreemptLowerPriority");
            }
            "secrets" => keep_secret(&mut object),
            "events" => complete_event(&mut object),
            "services" if object["status"].is_null() => {
                object["status"] = json!({"loadBalancer": {}});
            }
            "persistentvolumeclaims" => object["status"] = json!({"phase": "Pending"}),
            _ => {}
        }
        let key = key_of(resource, &object);
        self.check_namespace(resource, &key)?;
        refuse_mistakes(resource, &object, &causes(resource, &object))?;
        if resource.is(&JOBS) {
            defaults::job_own_labels(&mut object);
        }
        if self.store.get(&key).is_some() {
            return Err(Refused::exists(&subject(resource, &key.name)));
        }
        quota::check(&self.store, resource, namespace, &object)?;
        if dry_run {
            return Ok(Arc::new(object));
        }
        Ok(self.store.put(&key, object))
    }

    fn check_namespace(&self, resource: &ApiResource, key: &ObjectKey) -> Result<(), Refused> {
        if !resource.namespaced {
            return Ok(());
        }
        let place = self.store.get(&ObjectKey::new(&NAMESPACES, "", &key.namespace));
        let place =
            place.ok_or_else(|| Refused::not_found(&subject(&NAMESPACES, &key.namespace)))?;
        if text(&place["status"]["phase"]) != "Terminating" {
            return Ok(());
        }
        let of = &key.namespace;
        let why = format!(
            "unable to create new content in namespace {of} because it is being terminated"
        );
        let cause = json!({
            "reason": "NamespaceTerminating", "message": format!("namespace {of} is being terminated"),
            "field": "metadata.namespace",
        });
        Err(Refused::forbidden(&subject(resource, &key.name), &why, &[cause]))
    }

    fn priority(&self, pod: &Value) -> Result<i64, Refused> {
        let class = text(&pod["spec"]["priorityClassName"]);
        if class.is_empty() {
            return Ok(0);
        }
        let found = self.store.get(&ObjectKey::new(&PRIORITY_CLASSES, "", class));
        found.and_then(|class| class["value"].as_i64()).ok_or_else(|| {
            let meta = &pod["metadata"];
            let name = [&meta["name"], &meta["generateName"]].map(text);
            let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
            let why = format!("no PriorityClass with name {class} was found");
            Refused::forbidden(&subject(&PODS, name), &why, &[])
        })
    }

    /// The object at a place.
    pub(super) fn get(
        &self,
        resource: &ApiResource,
        key: &ObjectKey,
    ) -> Result<&Arc<Value>, Refused> {
        self.store.get(key).ok_or_else(|| Refused::not_found(&subject(resource, &key.name)))
    }

    /// Puts a changed object instead of the one that is there: its status alone, or all but its status.
    pub(super) fn replace(
        &mut self,
        resource: &'static ApiResource,
        key: &ObjectKey,
        mut object: Value,
        (of_status, dry_run): (bool, bool),
    ) -> Result<Arc<Value>, Refused> {
        let old = Arc::clone(self.get(resource, key)?);
        let name = text(&object["metadata"]["name"]);
        if !name.is_empty() && name != key.name {
            return Err(Refused::bad(&format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                key.name
            )));
        }
        let version = text(&object["metadata"]["resourceVersion"]);
        if !version.is_empty() && version != text(&old["metadata"]["resourceVersion"]) {
            let why = "the object has been modified; please apply your changes to the latest version and try again";
            return Err(Refused::conflict(&subject(resource, &key.name), why));
        }
        let fixed = [
            "name",
            "namespace",
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "generateName",
            "deletionGracePeriodSeconds",
            "generation",
        ];
        for key in fixed {
            let is = old["metadata"][key].clone();
            match (is, object["metadata"].as_object_mut()) {
                (Value::Null, Some(meta)) => drop(meta.shift_remove(key)),
                (is, Some(meta)) => drop(meta.insert(key.to_owned(), is)),
                (_, None) => {}
            }
        }
        let has_status = resource.below.contains(&"status");
        if of_status {
            let status = object["status"].clone();
            object = Value::clone(&old);
            object["status"] = status;
        } else if has_status && !resource.is(&NODES) {
            object["status"] = old["status"].clone();
        }
        if resource.is(&JOBS) && !of_status {
            defaults::job(&mut object);
            if object["spec"]["selector"].is_null() {
                object["spec"]["selector"] = old["spec"]["selector"].clone();
            }
            refuse_mistakes(resource, &object, &validate::job_change(&old, &object))?;
        } else if resource.is(&PODS) && !of_status {
            defaults::template(&mut object["spec"]);
            refuse_mistakes(resource, &object, &validate::pod_change(&old, &object))?;
        } else {
            if resource.is(&SECRETS) {
                keep_secret(&mut object);
            }
            refuse_mistakes(resource, &object, &causes(resource, &object))?;
        }
        if dry_run {
            return Ok(Arc::new(object));
        }
        let finalizers = object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        if finalizers && object["metadata"]["deletionTimestamp"].is_string() && !resource.is(&PODS)
        {
            let put = self.store.put(key, object);
            return Ok(self.store.remove(key).unwrap_or(put));
        }
        Ok(self.store.put(key, object))
    }

    /// Deletes an object, or begins to. `Ok(None)` if it is gone and the answer is "success".
    pub(super) fn delete(
        &mut self,
        resource: &'static ApiResource,
        key: &ObjectKey,
        how: &Deletion,
    ) -> Result<Option<Arc<Value>>, Refused> {
        let old = Arc::clone(self.get(resource, key)?);
        check_preconditions(resource, key, &old, how)?;
        let mut object = Value::clone(&old);
        let now = json!(self.now());
        if resource.is(&NAMESPACES) {
            if object["metadata"]["deletionTimestamp"].is_null() {
                object["metadata"]["deletionTimestamp"] = now;
                object["status"]["phase"] = json!("Terminating");
            }
            return Ok(Some(if how.dry_run {
                Arc::new(object)
            } else {
                self.store.put(key, object)
            }));
        }
        if resource.is(&PODS) {
            return Ok(Some(self.delete_pod(key, object, how)));
        }
        let policy = match how.propagation.as_str() {
            "" if resource.is(&JOBS) => "Orphan",
            "" => "Background",
            said => said,
        };
        let mut finalizers: Vec<Value> =
            object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        for (of, word) in [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")] {
            if policy == of && !finalizers.contains(&json!(word)) {
                finalizers.push(json!(word));
            }
        }
        if finalizers.is_empty() {
            if !how.dry_run {
                self.store.remove(key);
            }
            return Ok(None);
        }
        object["metadata"]["finalizers"] = json!(finalizers);
        if object["metadata"]["deletionTimestamp"].is_null() {
            object["metadata"]["deletionTimestamp"] = now;
            object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
        }
        Ok(Some(if how.dry_run { Arc::new(object) } else { self.store.put(key, object) }))
    }

    /// A pod that runs somewhere stays until its kubelet has ended it.
    fn delete_pod(&mut self, key: &ObjectKey, mut pod: Value, how: &Deletion) -> Arc<Value> {
        let own = pod["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
        let mut grace_s = how.grace_s.unwrap_or(own).max(0);
        if text(&pod["spec"]["nodeName"]).is_empty() || quota::is_over(&pod) {
            grace_s = 0;
        }
        let meta = &mut pod["metadata"];
        let earlier = meta["deletionGracePeriodSeconds"].as_i64();
        grace_s = earlier.map_or(grace_s, |earlier| earlier.min(grace_s));
        if meta["deletionTimestamp"].is_null() || earlier != Some(grace_s) {
            let after = jiff::SignedDuration::from_secs(grace_s);
            let at = self.moment().checked_add(after).unwrap_or_else(|_| self.moment());
            meta["deletionTimestamp"] = json!(at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        }
        meta["deletionGracePeriodSeconds"] = json!(grace_s);
        if how.dry_run {
            return Arc::new(pod);
        }
        let put = self.store.put(key, pod);
        let stays = grace_s > 0
            || put["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
        if stays { put } else { self.store.remove(key).unwrap_or(put) }
    }

    /// Says something of an object. What was said before of the same is counted.
    pub(super) fn say(&mut self, about: &Value, said: &Said<'_>, message: &str) {
        let meta = &about["metadata"];
        let namespace = match text(&meta["namespace"]) {
            "" => "default".to_owned(),
            own => own.to_owned(),
        };
        let mut involved = json!({
            "kind": about["kind"], "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"],
            "apiVersion": about["apiVersion"], "resourceVersion": meta["resourceVersion"],
        });
        if meta["namespace"].is_null()
            && let Some(involved) = involved.as_object_mut()
        {
            involved.shift_remove("namespace");
        }
        if !said.part.is_empty() {
            involved["fieldPath"] = json!(said.part);
        }
        let now = self.now();
        let called = format!("{}.", text(&meta["name"]));
        let mut of_it = self.store.named(&EVENTS, (&namespace, &called));
        let earlier = of_it.find_map(|(key, event)| {
            let same = event["involvedObject"]["uid"] == involved["uid"]
                && event["involvedObject"]["fieldPath"] == involved["fieldPath"]
                && text(&event["reason"]) == said.reason
                && text(&event["message"]) == message
                && event["count"].is_i64();
            same.then(|| (key.clone(), Value::clone(event)))
        });
        drop(of_it);
        if let Some((key, mut event)) = earlier {
            event["count"] = json!(event["count"].as_i64().unwrap_or(1) + 1);
            event["lastTimestamp"] = json!(now);
            self.store.put(&key, event);
            return;
        }
        let by_scheduler = said.from == "default-scheduler";
        let mut event = json!({
            "kind": "Event", "apiVersion": "v1",
            "metadata": {"name": format!("{called}{}", OsRandom.hex(8))},
            "involvedObject": involved, "reason": said.reason, "message": message,
            "source": if by_scheduler { json!({}) } else { json!({"component": said.from}) },
            "firstTimestamp": now, "lastTimestamp": now, "count": 1, "type": said.severity,
        });
        if by_scheduler {
            // As the newer recorder writes them [events-unschedulable].
            let more = json!({
                "firstTimestamp": null, "lastTimestamp": null, "count": null, "eventTime": self.now_exactly(),
                "action": if said.reason == "Scheduled" { "Binding" } else { "Scheduling" },
                "reportingComponent": said.from, "reportingInstance": format!("{}-sim", said.from),
            });
            if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
                event.extend(more);
                event.shift_remove("count");
            }
        }
        if !said.host.is_empty() {
            event["source"]["host"] = json!(said.host);
        }
        // In a namespace that ends, nobody hears it.
        drop(self.create(&EVENTS, &namespace, event, false));
    }
}

fn causes(resource: &ApiResource, object: &Value) -> Vec<Cause> {
    if resource.is(&JOBS) {
        validate::job(object)
    } else if resource.is(&PODS) {
        validate::pod(object)
    } else if resource.is(&CONFIG_MAPS) || resource.is(&SECRETS) {
        validate::data(object)
    } else {
        let mut causes = validate::other(object);
        for (name, amount) in object["spec"]["hard"].as_object().into_iter().flatten() {
            if resource.is(&QUOTAS)
                && Quantity::parse(text(amount)).is_none_or(Quantity::is_negative)
            {
                let field = format!("spec.hard[{name}]");
                causes.push(Cause::invalid(field, amount, "must be greater than or equal to 0"));
            }
        }
        causes
    }
}

fn refuse_mistakes(
    resource: &ApiResource,
    object: &Value,
    causes: &[Cause],
) -> Result<(), Refused> {
    if causes.is_empty() {
        return Ok(());
    }
    let name = text(&object["metadata"]["name"]);
    Err(Refused::invalid(&Subject { name, group: resource.group, kind: resource.kind }, causes))
}

/// As a kubelet registers itself: not ready at first [node-create-n1].
fn new_node(node: &mut Value) {
    if node["status"]["conditions"].is_null() {
        node["spec"] =
            json!({"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]});
        node["status"] = json!({
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
            "nodeInfo": {
                "machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "", "osImage": "",
                "containerRuntimeVersion": "", "kubeletVersion": "", "kubeProxyVersion": "",
                "operatingSystem": "", "architecture": "",
            },
        });
    }
}

/// What was given as text is kept as data.
fn keep_secret(secret: &mut Value) {
    use base64::Engine as _;
    let given = secret.as_object_mut().and_then(|secret| secret.shift_remove("stringData"));
    for (name, value) in given.as_ref().and_then(Value::as_object).into_iter().flatten() {
        if !secret["data"].is_object() {
            secret["data"] = json!({});
        }
        secret["data"][name] = json!(base64::engine::general_purpose::STANDARD.encode(text(value)));
    }
    if secret["type"].is_null() {
        secret["type"] = json!("Opaque");
    }
}

fn complete_event(event: &mut Value) {
    for (key, value) in [
        ("source", json!({})),
        ("eventTime", Value::Null),
        ("firstTimestamp", Value::Null),
        ("lastTimestamp", Value::Null),
        ("reportingComponent", json!("")),
        ("reportingInstance", json!("")),
    ] {
        if event[key].is_null() {
            event[key] = value;
        }
    }
}

/// Whether it is still the object that is meant.
fn check_preconditions(
    resource: &ApiResource,
    key: &ObjectKey,
    old: &Value,
    how: &Deletion,
) -> Result<(), Refused> {
    let subject = Subject { name: &key.name, group: resource.group, kind: resource.kind };
    let uid = text(&old["metadata"]["uid"]);
    if let Some(wanted) = how.uid.as_deref().filter(|wanted| *wanted != uid) {
        let why = format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might \
             have been deleted and then recreated"
        );
        return Err(Refused::conflict(&subject, &why));
    }
    let version = text(&old["metadata"]["resourceVersion"]);
    if let Some(wanted) = how.version.as_deref().filter(|wanted| *wanted != version) {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
             ({version}). The object might have been modified"
        );
        return Err(Refused::conflict(&subject, &why));
    }
    Ok(())
}
