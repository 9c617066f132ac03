//! Lists: whole, in pieces, as they were.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::asked::{Asked, Form, Meant, Reply, formed};
use super::cluster::Cluster;
use super::refused::{Cause, Refused, Subject};
use super::selectors::Wanted;
use super::store::ObjectKey;
use super::tables;

/// An object and its place.
type Listed = (ObjectKey, Arc<Value>);

/// A version as a parameter. One that is none is the server's own fault, in 1.20 [list-rv-bad].
pub(super) fn version(asked: &Asked) -> Result<Option<u64>, Refused> {
    let Some(text) = asked.parameter("resourceVersion") else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        let why = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
        Refused::bare(500, &format!("resourceVersion: Invalid value: {text:?}: {why}"))
    })
}

/// Answers a list.
pub(super) fn list(cluster: &Cluster, asked: &Asked, meant: &Meant) -> Result<Reply, Refused> {
    let form = asked.form()?;
    let resource = meant.resource;
    let wanted = Wanted::of(asked, resource)?;
    let limit = asked.number("limit")?.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(0);
    let version = version(asked)?;
    check_match(asked, version)?;
    let (token, now) = (asked.parameter("continue"), cluster.store.version());
    if token.is_some() && version.is_some() {
        return Err(Refused::bad("specifying resource version is not allowed when using continue"));
    }
    if let Some(future) = version.filter(|version| *version > now) {
        return Err(too_large(future, now));
    }
    let exactly = asked.parameter("resourceVersionMatch") == Some("Exact");
    let namespace = meant.namespace.as_deref();
    let mut from = String::new();
    let mut at = now;
    let mut all: Vec<Listed> = match token {
        Some(token) => {
            let (of, start) = read_token(token)?;
            from = start;
            // A token that was given instead of an expired one goes on from what is there now.
            at = of.unwrap_or(now);
            cluster.store.list_at(resource, namespace, at).ok_or_else(|| expired(&from))?
        }
        None if exactly => {
            at = version.unwrap_or(now);
            let text = "The resourceVersion for the provided list is too old.";
            let then = cluster.store.list_at(resource, namespace, at);
            then.ok_or_else(|| Refused::expired(text))?
        }
        None => {
            let all = cluster.store.list(resource, namespace);
            all.map(|(key, object)| (key.clone(), Arc::clone(object))).collect()
        }
    };
    all.retain(|(key, object)| place(key, namespace) > from && wanted.matches(object));
    let mut metadata = json!({"resourceVersion": at.to_string()});
    if limit > 0 && version != Some(0) && all.len() > limit {
        let left = all.len() - limit;
        all.truncate(limit);
        if let Some((key, _)) = all.last() {
            let start = format!("{}\0", place(key, namespace));
            metadata["continue"] = json!(write_token(i128::from(at), &start));
        }
        if wanted.is_all() {
            metadata["remainingItemCount"] = json!(left);
        }
    }
    let objects = all.iter().map(|(_, object)| &**object);
    if form == Form::Table {
        let row = asked.parameter("includeObject").unwrap_or("Metadata");
        let table = tables::table(cluster, resource, objects, (metadata, true, row));
        return Ok(Reply::Json(200, table));
    }
    let items: Vec<Value> = objects
        .map(|object| {
            let mut item = formed(form, object);
            // Entries of a list do not say what they are.
            if let (Form::Whole, Some(item)) = (form, item.as_object_mut()) {
                item.shift_remove("kind");
                item.shift_remove("apiVersion");
            }
            item
        })
        .collect();
    let (kind, of) = if form == Form::Partial {
        ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned())
    } else {
        (format!("{}List", resource.kind), resource.api_version())
    };
    let list = json!({"kind": kind, "apiVersion": of, "metadata": metadata, "items": items});
    Ok(Reply::Json(200, list))
}

fn check_match(asked: &Asked, version: Option<u64>) -> Result<(), Refused> {
    if asked.parameter("resourceVersionMatch").is_none() || version.is_some() {
        return Ok(());
    }
    let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
    let subject = Subject { name: "", group: "meta.k8s.io", kind: "ListOptions" };
    Err(Refused::invalid(&subject, &[Cause::forbidden("resourceVersionMatch", why)]))
}

/// The place of an object in its list, as tokens have it.
fn place(key: &ObjectKey, namespace: Option<&str>) -> String {
    if namespace.is_some() || key.namespace.is_empty() {
        key.name.clone()
    } else {
        format!("{}/{}", key.namespace, key.name)
    }
}

fn write_token(version: i128, start: &str) -> String {
    let token = json!({
        "v": "meta.k8s.io/v1", "rv": i64::try_from(version).unwrap_or(-1), "start": start,
    });
    URL_SAFE_NO_PAD.encode(token.to_string())
}

fn read_token(token: &str) -> Result<(Option<u64>, String), Refused> {
    let bytes = URL_SAFE_NO_PAD.decode(token).unwrap_or_default();
    let read: Value = serde_json::from_slice(&bytes).map_err(|_| {
        let first = String::from_utf8_lossy(&bytes).chars().next().unwrap_or(' ');
        let why = format!("invalid character '{first}' looking for beginning of value");
        Refused::bad(&format!("invalid continue token: continue key is not valid: {why}"))
    })?;
    let start = read["start"].as_str().unwrap_or_default().trim_end_matches('\0').to_owned();
    Ok((read["rv"].as_u64(), start))
}

fn expired(from: &str) -> Refused {
    let mut refused = Refused::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
         results. Continuing with the provided token results in an inconsistent list - objects that were created, \
         modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    refused.body["metadata"] = json!({"continue": write_token(-1, &format!("{from}\0"))});
    refused
}

/// A version that is not there yet: the real server waits three seconds first [list-rv-future].
fn too_large(wanted: u64, now: u64) -> Refused {
    let text = format!("Timeout: Too large resource version: {wanted}, current: {now}");
    let cause =
        json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
    let details = json!({"causes": [cause], "retryAfterSeconds": 1});
    let mut refused = Refused::new(504, "Timeout", &text, Some(details));
    refused.retry_after_s = Some(1);
    refused
}
