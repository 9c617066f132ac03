//! Patches: how each of their types changes an object.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::refused::Refused;
use super::schema::{self, Shape};

/// A JSON merge patch: what is null goes away.
pub(super) fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    let Some(into) = into.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() {
            into.shift_remove(key);
        } else {
            merge(into.entry(key.as_str()).or_insert(Value::Null), value);
        }
    }
}

/// A strategic merge patch: lists whose entries have names are merged by them.
pub(super) fn strategic(of: &str, into: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *into = patch.clone();
        return;
    };
    if text(changes.get("$patch")) == "replace" || !into.is_object() {
        *into = json!({});
    }
    let Some(into) = into.as_object_mut() else { return };
    for (key, value) in changes {
        // Directives about order and replaced keys: the order of a list means nothing here.
        if key.starts_with('$') {
            if let Some(list) = key.strip_prefix("$deleteFromPrimitiveList/") {
                let gone = value.as_array().cloned().unwrap_or_default();
                if let Some(Value::Array(list)) = into.get_mut(list) {
                    list.retain(|entry| !gone.contains(entry));
                }
            }
            continue;
        }
        if value.is_null() {
            into.shift_remove(key);
            continue;
        }
        let field = schema::field(of, key);
        let place = into.entry(key.as_str()).or_insert(Value::Null);
        match (field.map(|f| (f.shape, f.is_list, f.merge_key)), value) {
            (Some((Shape::Of(inner), true, Some(by))), Value::Array(list)) => {
                strategic_list(inner, by, place, list);
            }
            (Some((Shape::Of(inner), false, _)), value) => strategic(inner, place, value),
            (Some((_, true, _)), value) => *place = value.clone(),
            (_, value) => merge(place, value),
        }
    }
}

fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn strategic_list(of: &str, by: &str, into: &mut Value, patch: &[Value]) {
    if !into.is_array() || patch.iter().any(|entry| entry["$patch"] == json!("replace")) {
        *into = json!([]);
    }
    let Some(into) = into.as_array_mut() else { return };
    for entry in patch.iter().filter(|entry| entry["$patch"] != json!("replace")) {
        let at = into.iter().position(|old| old[by] == entry[by]);
        match at {
            Some(at) if entry["$patch"] == json!("delete") => drop(into.remove(at)),
            Some(at) => {
                if let Some(old) = into.get_mut(at) {
                    strategic(of, old, entry);
                }
            }
            None if entry["$patch"] == json!("delete") => {}
            None => {
                let mut fresh = json!({});
                strategic(of, &mut fresh, entry);
                into.push(fresh);
            }
        }
    }
}

/// A JSON patch. What fails says nothing of why, as on the real server [patch-json-*].
pub(super) fn json_patch(into: &mut Value, patch: &Value) -> Result<(), Refused> {
    let failed = || {
        let text = "the server rejected our request due to an error in our request";
        Refused::new(422, "Invalid", text, Some(json!({})))
    };
    for change in patch.as_array().ok_or_else(failed)? {
        let path = change["path"].as_str().ok_or_else(failed)?;
        let from = change["from"].as_str();
        let done = match change["op"].as_str() {
            Some("add") => add(into, path, change["value"].clone()),
            Some("remove") => remove(into, path).map(drop),
            Some("replace") => into.pointer_mut(path).map(|place| *place = change["value"].clone()),
            Some("test") => {
                (into.pointer(path).unwrap_or(&Value::Null) == &change["value"]).then_some(())
            }
            Some("copy") => from
                .and_then(|from| into.pointer(from).cloned())
                .and_then(|value| add(into, path, value)),
            Some("move") => {
                from.and_then(|from| remove(into, from)).and_then(|value| add(into, path, value))
            }
            _ => None,
        };
        done.ok_or_else(failed)?;
    }
    Ok(())
}

fn split(path: &str) -> Option<(&str, String)> {
    let (parent, key) = path.rsplit_once('/')?;
    Some((parent, key.replace("~1", "/").replace("~0", "~")))
}

fn add(into: &mut Value, path: &str, value: Value) -> Option<()> {
    if path.is_empty() {
        *into = value;
        return Some(());
    }
    let (parent, key) = split(path)?;
    match into.pointer_mut(parent)? {
        Value::Object(map) => drop(map.insert(key, value)),
        Value::Array(list) if key == "-" => list.push(value),
        Value::Array(list) => {
            let at = key.parse::<usize>().ok().filter(|at| *at <= list.len())?;
            list.insert(at, value);
        }
        _ => return None,
    }
    Some(())
}

fn remove(from: &mut Value, path: &str) -> Option<Value> {
    let (parent, key) = split(path)?;
    match from.pointer_mut(parent)? {
        Value::Object(map) => map.shift_remove(&key),
        Value::Array(list) => {
            let at = key.parse::<usize>().ok().filter(|at| *at < list.len())?;
            Some(list.remove(at))
        }
        _ => None,
    }
}

/// Applies what one manager says of an object, and remembers that they did. Somebody else's field with another value
/// is a conflict, unless it is forced [apply-*].
pub(super) fn apply(
    of: &str,
    into: &mut Value,
    said: &Value,
    (manager, force, now): (&str, bool, &str),
) -> Result<(), Refused> {
    let mut mine = BTreeMap::new();
    let mut plain = said.clone();
    for key in ["kind", "apiVersion"] {
        if let Some(plain) = plain.as_object_mut() {
            plain.shift_remove(key);
        }
    }
    leaves(of, &plain, "", &mut mine);
    mine.remove(".metadata.name");
    mine.remove(".metadata.namespace");
    let mut theirs = BTreeMap::new();
    leaves(of, into, "", &mut theirs);
    let mut owners: Vec<(String, Vec<String>)> = owners(into);
    let mut causes = Vec::new();
    for (path, value) in &mine {
        let differs = theirs.get(path).is_some_and(|there| there != value);
        for (owner, paths) in &mut owners {
            if owner != manager && differs && paths.contains(path) {
                if force {
                    paths.retain(|owned| owned != path);
                } else {
                    causes.push((owner.clone(), path.clone()));
                }
            }
        }
    }
    if let Some((owner, path)) = causes.first() {
        let (count, plural) = (causes.len(), if causes.len() == 1 { "" } else { "s" });
        let text = if count == 1 {
            format!("Apply failed with 1 conflict: conflict with {owner:?}: {path}")
        } else {
            let each: Vec<String> = causes
                .iter()
                .map(|(owner, path)| format!("conflict with {owner:?}: {path}"))
                .collect();
            format!("Apply failed with {count} conflict{plural}: {}", each.join(", "))
        };
        let causes: Vec<Value> = causes
            .iter()
            .map(|(owner, path)| {
                json!({
                    "reason": "FieldManagerConflict", "message": format!("conflict with {owner:?}"), "field": path,
                })
            })
            .collect();
        return Err(Refused::new(409, "Conflict", &text, Some(json!({ "causes": causes }))));
    }
    strategic(of, into, &plain);
    let mut paths: Vec<String> = mine.into_keys().collect();
    paths.sort_unstable();
    owners.retain(|(owner, _)| owner != manager);
    owners.push((manager.to_owned(), paths));
    let version = into["apiVersion"].clone();
    let fields: Vec<Value> = owners
        .into_iter()
        .filter(|(_, paths)| !paths.is_empty())
        .map(|(owner, paths)| {
            let owned: Map<String, Value> =
                paths.into_iter().map(|path| (path, json!({}))).collect();
            json!({
                "manager": owner, "operation": "Apply", "apiVersion": version, "time": now,
                "fieldsType": "FieldsV1", "fieldsV1": {"f:paths": owned},
            })
        })
        .collect();
    into["metadata"]["managedFields"] = json!(fields);
    Ok(())
}

/// Who has applied which fields.
fn owners(object: &Value) -> Vec<(String, Vec<String>)> {
    let all = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    all.map(|entry| {
        let paths = entry["fieldsV1"]["f:paths"].as_object().into_iter().flatten();
        let paths = paths.map(|(path, _)| path.clone()).collect();
        (entry["manager"].as_str().unwrap_or_default().to_owned(), paths)
    })
    .collect()
}

/// Every value of an object by its path: `.spec.parallelism`, `.spec.containers[name="main"].image`.
fn leaves(of: &str, value: &Value, at: &str, into: &mut BTreeMap<String, Value>) {
    let Value::Object(map) = value else {
        into.insert(at.to_owned(), value.clone());
        return;
    };
    for (key, value) in map.iter().filter(|(key, _)| *key != "managedFields") {
        let at = format!("{at}.{key}");
        match (schema::field(of, key).map(|f| (f.shape, f.is_list, f.merge_key)), value) {
            (Some((Shape::Of(inner), true, Some(by))), Value::Array(list)) => {
                for entry in list {
                    leaves(inner, entry, &format!("{at}[{by}={}]", entry[by]), into);
                }
            }
            (Some((Shape::Of(inner), false, _)), value) => leaves(inner, value, &at, into),
            (_, value) => leaves("", value, &at, into),
        }
    }
}
