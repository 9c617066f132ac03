//! What ends by itself: what belongs to what is gone, Jobs whose time is over, namespaces that are deleted; and the
//! figures of quotas.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::cluster::{Cluster, Deletion, key_of, text};
use super::jobs;
use super::quota;
use super::resources::{JOBS, NAMESPACES, QUOTAS};
use super::store::ObjectKey;

/// How long a namespace takes to go, at least, in seconds.
const NAMESPACE_S: f64 = 2.0;

/// An object and its place.
type Placed = (ObjectKey, Arc<Value>);

fn deleting(propagation: &str) -> Deletion {
    Deletion { propagation: propagation.to_owned(), ..Deletion::default() }
}

/// Does all of it as far as it goes now.
pub(super) fn turn(cluster: &mut Cluster) {
    old_jobs(cluster);
    owners(cluster);
    orphans(cluster);
    namespaces(cluster);
    quotas(cluster);
}

/// Jobs that have ended long enough ago.
fn old_jobs(cluster: &mut Cluster) {
    let jobs: Vec<Placed> = placed(cluster.store.list(&JOBS, None));
    for (key, job) in jobs {
        let Some(ttl) = job["spec"]["ttlSecondsAfterFinished"].as_i64() else { continue };
        let ended = &job["status"]["conditions"][0]["lastTransitionTime"];
        let age = cluster.seconds_since(ended);
        let limit = i32::try_from(ttl).map_or(f64::MAX, f64::from);
        let is_old = jobs::is_over(&job) && age.is_some_and(|age| age >= limit);
        if is_old && job["metadata"]["deletionTimestamp"].is_null() {
            drop(cluster.delete(&JOBS, &key, &deleting("Foreground")));
        }
    }
}

fn placed<'a>(all: impl Iterator<Item = (&'a ObjectKey, &'a Arc<Value>)>) -> Vec<Placed> {
    all.map(|(key, object)| (key.clone(), Arc::clone(object))).collect()
}

fn belongs(object: &Value, uid: &Value) -> bool {
    let all = object["metadata"]["ownerReferences"].as_array();
    all.into_iter().flatten().any(|owner| owner["uid"] == *uid)
}

/// Objects that are to go with or without what belongs to them.
fn owners(cluster: &mut Cluster) {
    let leaving: Vec<Placed> = placed(cluster.store.all().filter(|(_, object)| {
        object["metadata"]["finalizers"].is_array()
            && object["metadata"]["deletionTimestamp"].is_string()
    }));
    for (key, object) in leaving {
        let uid = &object["metadata"]["uid"];
        let own: Vec<Placed> = placed(cluster.store.all().filter(|(_, other)| belongs(other, uid)));
        let has = |word: &str| {
            object["metadata"]["finalizers"]
                .as_array()
                .is_some_and(|all| all.contains(&json!(word)))
        };
        let mut done = BTreeSet::new();
        if has("orphan") {
            for (key, other) in &own {
                let mut other = Value::clone(other);
                if let Some(meta) = other["metadata"].as_object_mut() {
                    meta.shift_remove("ownerReferences");
                }
                cluster.store.put(key, other);
            }
            done.insert("orphan");
        }
        if has("foregroundDeletion") {
            for (key, other) in &own {
                if other["metadata"]["deletionTimestamp"].is_null() {
                    drop(cluster.delete(key.resource(), key, &deleting("Background")));
                }
            }
            let blocked = cluster.store.all().any(|(_, other)| belongs(other, uid));
            if !blocked {
                done.insert("foregroundDeletion");
            }
        }
        if done.is_empty() {
            continue;
        }
        let Some(now) = cluster.store.get(&key) else { continue };
        let mut changed = Value::clone(now);
        if let Some(all) = changed["metadata"]["finalizers"].as_array_mut() {
            all.retain(|word| !done.contains(text(word)));
        }
        let is_free = changed["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        if is_free {
            cluster.store.remove(&key);
        } else {
            cluster.store.put(&key, changed);
        }
    }
}

/// Objects whose owners are all gone.
fn orphans(cluster: &mut Cluster) {
    let uids: BTreeSet<String> = cluster
        .store
        .all()
        .map(|(_, object)| text(&object["metadata"]["uid"]).to_owned())
        .collect();
    let lost: Vec<Placed> = placed(cluster.store.all().filter(|(_, object)| {
        let owners = object["metadata"]["ownerReferences"].as_array();
        owners.is_some_and(|owners| {
            !owners.is_empty() && owners.iter().all(|owner| !uids.contains(text(&owner["uid"])))
        }) && object["metadata"]["deletionTimestamp"].is_null()
    }));
    for (key, _) in lost {
        drop(cluster.delete(key.resource(), &key, &deleting("Background")));
    }
}

/// Namespaces that end: all that is in them goes first.
fn namespaces(cluster: &mut Cluster) {
    let ending: Vec<Placed> = placed(
        cluster
            .store
            .list(&NAMESPACES, None)
            .filter(|(_, of)| of["metadata"]["deletionTimestamp"].is_string()),
    );
    for (key, namespace) in ending {
        let within: Vec<Placed> =
            placed(cluster.store.all().filter(|(within, _)| within.namespace == key.name));
        let is_empty = within.is_empty();
        for (key, object) in within {
            if object["metadata"]["deletionTimestamp"].is_null() {
                drop(cluster.delete(key.resource(), &key, &deleting("Background")));
            }
        }
        let age = cluster.seconds_since(&namespace["metadata"]["deletionTimestamp"]);
        if is_empty && age.is_some_and(|age| age >= NAMESPACE_S) {
            cluster.store.remove(&key);
        }
    }
}

fn quotas(cluster: &mut Cluster) {
    let all: Vec<Placed> = placed(cluster.store.list(&QUOTAS, None));
    for (key, of) in all {
        let status = quota::status(&cluster.store, &of);
        if of["status"] != status {
            let mut changed = Value::clone(&of);
            changed["status"] = status;
            debug_assert_eq!(key, key_of(&QUOTAS, &changed), "a quota has its own place");
            cluster.store.put(&key, changed);
        }
    }
}
