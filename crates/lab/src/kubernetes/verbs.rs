//! What is done with objects: one function a verb.

use std::sync::Arc;

use serde_json::{Value, json};

use super::asked::{Asked, Form, Meant, Reply, formed};
use super::cluster::{Cluster, Deletion, key_of, text};
use super::decode;
use super::merge;
use super::refused::{Cause, Refused, Subject};
use super::resources::{ApiResource, JOBS, NODES, PODS};
use super::selectors::Wanted;
use super::store::ObjectKey;
use super::tables;

/// The longest body.
pub(super) const LONGEST_BODY: usize = 3 * 1024 * 1024;

/// So many bytes an object has at most in the store behind the server.
const LONGEST_KEPT: usize = 1536 * 1024;

fn answer(
    cluster: &Cluster,
    asked: &Asked,
    code: u16,
    of: &ApiResource,
    object: &Value,
) -> Result<Reply, Refused> {
    let form = asked.form()?;
    if form == Form::Table && object["kind"] == json!(of.kind) {
        let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
        let row = asked.parameter("includeObject").unwrap_or("Metadata");
        let one = std::iter::once(object);
        return Ok(Reply::Json(code, tables::table(cluster, of, one, (metadata, true, row))));
    }
    Ok(Reply::Json(code, formed(form, object)))
}

fn key(meant: &Meant) -> ObjectKey {
    let of = |part: &Option<String>| part.clone().unwrap_or_default();
    ObjectKey::new(meant.resource, &of(&meant.namespace), &of(&meant.name))
}

fn meta_invalid(kind: &str, cause: Cause) -> Refused {
    Refused::invalid(&Subject { name: "", group: "meta.k8s.io", kind }, &[cause])
}

/// Whether only what would be is asked for.
fn dry_run(asked: &Asked, kind: &str) -> Result<bool, Refused> {
    let all: Vec<&str> =
        asked.query.iter().filter(|(key, _)| key == "dryRun").map(|(_, is)| is.as_str()).collect();
    match all.as_slice() {
        [] => Ok(false),
        all if all.iter().all(|word| *word == "All") => Ok(true),
        all => {
            let printed = format!(
                "[]string{{{}}}",
                all.iter().map(|w| format!("{w:?}")).collect::<Vec<_>>().join(", ")
            );
            Err(meta_invalid(kind, Cause::unsupported("dryRun", &printed, &["All"])))
        }
    }
}

/// Answers one object.
pub(super) fn get(cluster: &Cluster, asked: &Asked, meant: &Meant) -> Result<Reply, Refused> {
    let found = cluster.get(meant.resource, &key(meant))?;
    answer(cluster, asked, 200, meant.resource, found)
}

/// Makes one.
pub(super) fn create(
    cluster: &mut Cluster,
    asked: &Asked,
    meant: &Meant,
) -> Result<Reply, Refused> {
    let resource = meant.resource;
    asked.form()?;
    if asked.body.len() > LONGEST_BODY {
        let text = format!("Request entity too large: limit is {LONGEST_BODY}");
        return Err(Refused::new(413, "RequestEntityTooLarge", &text, None));
    }
    if let Some(timeout) = asked.parameter("timeout").filter(|timeout| timeout.ends_with("ns")) {
        let text = format!("Timeout: request did not complete within requested timeout {timeout}");
        return Err(Refused::new(504, "Timeout", &text, Some(json!({}))));
    }
    let object = decode::object(resource, asked.header("content-type"), &asked.body)?;
    if resource.is_review {
        return Ok(Reply::Json(201, asked.asking.review(resource, object)));
    }
    let dry_run = dry_run(asked, "CreateOptions")?;
    let namespace = meant.namespace.clone().unwrap_or_default();
    if resource.namespaced && namespace.is_empty() {
        return Err(Refused::no_such_method());
    }
    if resource.is(&JOBS) && asked.body.len() > LONGEST_KEPT {
        return Err(too_big_to_keep(&object));
    }
    let made = cluster.create(resource, &namespace, object, dry_run)?;
    answer(cluster, asked, 201, resource, &made)
}

/// A Job that the store behind the server does not take: the server tries it once more, with the labels that it has set
/// itself, and refuses those [http-etcd-limit].
fn too_big_to_keep(job: &Value) -> Refused {
    let (name, uid) = (text(&job["metadata"]["name"]), Cluster::new_uid());
    let label = format!("\"controller-uid\":{uid:?}");
    let causes = [
        Cause::invalid_as(
            "spec.template.metadata.labels[controller-uid]",
            &format!("map[string]string{{{label}, \"job-name\":{name:?}}}"),
            &format!("must be '{uid}'"),
        ),
        Cause::invalid_as(
            "spec.selector",
            &format!(
                "v1.LabelSelector{{MatchLabels:map[string]string{{{label}}}, \
                 MatchExpressions:[]v1.LabelSelectorRequirement(nil)}}"
            ),
            "`selector` not auto-generated",
        ),
    ];
    Refused::invalid(&Subject { name, group: "batch", kind: "Job" }, &causes)
}

/// Binds a pod to a node, as a scheduler does.
pub(super) fn bind(cluster: &mut Cluster, asked: &Asked, meant: &Meant) -> Result<Reply, Refused> {
    let binding = decode::plain("Binding", asked.header("content-type"), &asked.body)?;
    let key = key(meant);
    let pod = Arc::clone(cluster.get(&PODS, &key)?);
    let node = text(&pod["spec"]["nodeName"]);
    if !node.is_empty() {
        let subject = Subject { name: &key.name, group: "", kind: "pods/binding" };
        let why = format!("pod {} is already assigned to node {node:?}", key.name);
        return Err(Refused::conflict(&subject, &why));
    }
    let mut pod = Value::clone(&pod);
    pod["spec"]["nodeName"] = binding["target"]["name"].clone();
    let now = cluster.now();
    pod["status"]["conditions"] = json!([{
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
    }]);
    cluster.store.put(&key, pod);
    let done = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Ok(Reply::Json(201, done))
}

/// Puts one instead of another.
pub(super) fn update(
    cluster: &mut Cluster,
    asked: &Asked,
    meant: &Meant,
) -> Result<Reply, Refused> {
    let object = decode::object(meant.resource, asked.header("content-type"), &asked.body)?;
    put(cluster, asked, meant, object, dry_run(asked, "UpdateOptions")?)
}

fn put(
    cluster: &mut Cluster,
    asked: &Asked,
    meant: &Meant,
    mut object: Value,
    dry_run: bool,
) -> Result<Reply, Refused> {
    let of_status = meant.below.as_deref() == Some("status");
    if meant.resource.is(&NODES) && of_status {
        node_reports(cluster, &key(meant), &mut object);
    }
    let put = cluster.replace(meant.resource, &key(meant), object, (of_status, dry_run))?;
    answer(cluster, asked, 200, meant.resource, &put)
}

/// A kubelet that reports for the first time: its labels are completed, and the taint that it is not ready goes
/// [node-status-n1].
fn node_reports(cluster: &mut Cluster, key: &ObjectKey, reported: &mut Value) {
    let Some(old) = cluster.store.get(key) else { return };
    let ready = reported["status"]["conditions"].as_array().is_some_and(|all| {
        all.iter().any(|of| of["type"] == json!("Ready") && of["status"] == json!("True"))
    });
    if !ready {
        return;
    }
    let mut node = Value::clone(old);
    for (beta, stable) in [
        ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
        ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ] {
        let label = node["metadata"]["labels"][stable].clone();
        if label.is_string() {
            node["metadata"]["labels"][beta] = label;
        }
    }
    if let Some(spec) = node["spec"].as_object_mut() {
        let left: Vec<Value> = spec
            .get("taints")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter(|taint| taint["key"] != json!("node.kubernetes.io/not-ready"))
            .cloned()
            .collect();
        if left.is_empty() {
            spec.shift_remove("taints");
        } else {
            spec.insert("taints".to_owned(), json!(left));
        }
    }
    let put = cluster.store.put(key, node);
    reported["metadata"]["resourceVersion"] = put["metadata"]["resourceVersion"].clone();
}

/// Changes one.
pub(super) fn patch(cluster: &mut Cluster, asked: &Asked, meant: &Meant) -> Result<Reply, Refused> {
    let dry_run = dry_run(asked, "PatchOptions")?;
    let of = asked.header("content-type").split(';').next().unwrap_or_default().trim().to_owned();
    let key = key(meant);
    let kind = meant.resource.kind;
    if of == "application/apply-patch+yaml" {
        return apply(cluster, asked, meant, dry_run);
    }
    let known = [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ];
    if !known.contains(&of.as_str()) {
        let text = "415: Unsupported Media Type";
        return Err(Refused::new(415, "UnsupportedMediaType", text, Some(json!({}))));
    }
    let mut object = Value::clone(cluster.get(meant.resource, &key)?);
    // A version in the patch is a condition; without one it is for whatever is there.
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.shift_remove("resourceVersion");
    }
    let change = decode::plain(kind, "application/json", &asked.body)?;
    match of.as_str() {
        "application/json-patch+json" => merge::json_patch(&mut object, &change)?,
        "application/merge-patch+json" => merge::merge(&mut object, &change),
        _ => merge::strategic(kind, &mut object, &change),
    }
    let object = decode::conforming(meant.resource, &object)?;
    put(cluster, asked, meant, object, dry_run)
}

fn apply(
    cluster: &mut Cluster,
    asked: &Asked,
    meant: &Meant,
    dry_run: bool,
) -> Result<Reply, Refused> {
    let Some(manager) = asked.parameter("fieldManager") else {
        let cause = Cause::required("fieldManager", "is required for apply patch");
        return Err(meta_invalid("PatchOptions", cause));
    };
    let said = decode::yaml(&asked.body)
        .map_err(|why| Refused::bad(&format!("error decoding YAML: {why}")))?;
    let said = decode::conforming(meant.resource, &said)?;
    let how = (manager, asked.flag("force"), &*cluster.now());
    let kind = meant.resource.kind;
    if let Ok(old) = cluster.get(meant.resource, &key(meant)) {
        let mut object = Value::clone(old);
        merge::apply(kind, &mut object, &said, how)?;
        return put(cluster, asked, meant, object, dry_run);
    }
    let mut object =
        json!({"kind": kind, "apiVersion": meant.resource.api_version(), "metadata": {}});
    merge::apply(kind, &mut object, &said, how)?;
    object["metadata"]["name"] = json!(meant.name);
    let namespace = meant.namespace.clone().unwrap_or_default();
    let made = cluster.create(meant.resource, &namespace, object, dry_run)?;
    answer(cluster, asked, 201, meant.resource, &made)
}

fn deletion(asked: &Asked) -> Result<Deletion, Refused> {
    let said = decode::delete_options(asked.header("content-type"), &asked.body)?;
    let word = |key: &str| text(&said[key]).to_owned();
    let propagation = asked
        .parameter("propagationPolicy")
        .map_or_else(|| word("propagationPolicy"), str::to_owned);
    let known = ["Foreground", "Background", "Orphan", "nil"];
    if !propagation.is_empty() && !known.iter().take(3).any(|policy| *policy == propagation) {
        let cause = Cause::unsupported("propagationPolicy", &format!("{propagation:?}"), &known);
        return Err(meta_invalid("DeleteOptions", cause));
    }
    let in_body = said["dryRun"].as_array().is_some_and(|all| !all.is_empty());
    let owned = |value: &Value| value.as_str().map(str::to_owned);
    Ok(Deletion {
        propagation,
        uid: owned(&said["preconditions"]["uid"]),
        version: owned(&said["preconditions"]["resourceVersion"]),
        grace_s: asked.number("gracePeriodSeconds")?.or(said["gracePeriodSeconds"].as_i64()),
        dry_run: dry_run(asked, "DeleteOptions")? || in_body,
    })
}

/// Deletes one.
pub(super) fn delete(
    cluster: &mut Cluster,
    asked: &Asked,
    meant: &Meant,
) -> Result<Reply, Refused> {
    let how = deletion(asked)?;
    let key = key(meant);
    let resource = meant.resource;
    let uid = cluster.get(resource, &key)?["metadata"]["uid"].clone();
    if let Some(left) = cluster.delete(resource, &key, &how)? {
        return answer(cluster, asked, 200, resource, &left);
    }
    let mut details = json!({"name": key.name, "kind": resource.plural, "uid": uid});
    if !resource.group.is_empty() {
        details["group"] = json!(resource.group);
    }
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
    });
    Ok(Reply::Json(200, status))
}

/// Deletes all of a list.
pub(super) fn delete_all(
    cluster: &mut Cluster,
    asked: &Asked,
    meant: &Meant,
) -> Result<Reply, Refused> {
    let how = deletion(asked)?;
    let resource = meant.resource;
    let wanted = Wanted::of(asked, resource)?;
    let all: Vec<Arc<Value>> = cluster
        .store
        .list(resource, meant.namespace.as_deref())
        .filter(|(_, object)| wanted.matches(object))
        .map(|(_, object)| Arc::clone(object))
        .collect();
    for object in &all {
        // Who is gone meanwhile need not be deleted.
        drop(cluster.delete(resource, &key_of(resource, object), &how));
    }
    let items: Vec<&Value> = all.iter().map(|object| &**object).collect();
    Ok(Reply::Json(
        200,
        json!({
            "kind": format!("{}List", resource.kind), "apiVersion": resource.api_version(),
            "metadata": {"resourceVersion": cluster.store.version().to_string()}, "items": items,
        }),
    ))
}
