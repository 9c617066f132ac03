//! Every exchange that was recorded with a real server is played against the simulated one: the same status, and all
//! that the recorded answer says. What is matched by its shape alone is said in `cases/kubernetes/played.json`, as is
//! what has to be there before an exchange, and which exchanges are played elsewhere, and where.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use regex::Regex;
use serde_json::{Map, Value, json};

use super::client::{Cluster, Heard};
use crate::common::wait::wait_for;

/// The table: what is done before an exchange, what of its answer is matched by shape, what is played elsewhere.
struct Table(Value);

impl Table {
    fn steps(&self, id: &str) -> Vec<Value> {
        self.0["before"][id].as_array().cloned().unwrap_or_default()
    }

    fn is_elsewhere(&self, id: &str) -> bool {
        let by_name = self.0["elsewhere"].as_object().unwrap().contains_key(id);
        by_name || id.starts_with("kubectl-")
    }

    fn by_shape(&self, id: &str) -> Vec<String> {
        let all = self.0["by_shape"][id].as_array().into_iter().flatten();
        all.map(|path| path.as_str().unwrap().to_owned()).collect()
    }

    /// Words of the recorded world as they are here.
    fn here(&self, id: &str, text: &str) -> String {
        let of = |key: &str| self.0["words"][key].as_object().into_iter().flatten();
        of("")
            .chain(of(id))
            .fold(text.to_owned(), |text, (word, here)| text.replace(word, here.as_str().unwrap()))
    }
}

fn cases(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/kubernetes").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// What differs from run to run, as the recorder masked it.
struct Masks(Vec<(Regex, &'static str)>);

impl Masks {
    fn new() -> Self {
        let of = |pattern: &str, mask| (Regex::new(pattern).unwrap(), mask);
        Self(vec![
            of(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
            of(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
            of(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "-<five>"),
            of(r"\.[0-9a-f]{16}$", ".<event>"),
            of(r"default-token-\w{5}", "default-token-<five>"),
        ])
    }

    fn of(&self, text: &str) -> String {
        let masked = self.0.iter().fold(text.to_owned(), |text, (pattern, mask)| {
            pattern.replace_all(&text, *mask).into_owned()
        });
        masked.replace("default-token-<five>", "default-token")
    }
}

/// Compares all that the recorded answer says with what is answered here.
struct Comparing<'a> {
    masks: &'a Masks,
    /// Places that may have any value, as long as there is one.
    by_shape: Vec<String>,
    differences: Vec<String>,
}

impl Comparing<'_> {
    fn compare(&mut self, at: &str, recorded: &Value, here: &Value) {
        let key = at.rsplit('/').next().unwrap_or_default();
        let any = [
            "resourceVersion",
            "continue",
            "remainingItemCount",
            "storageVersionHash",
            "description",
        ];
        if any.contains(&key) || self.by_shape.iter().any(|path| path == at) {
            if here.is_null() && !recorded.is_null() && key != "storageVersionHash" {
                self.differences.push(format!("{at}: nothing, recorded: {recorded}"));
            }
            return;
        }
        match (recorded, here) {
            (Value::Object(recorded), Value::Object(here)) => {
                for (key, value) in recorded {
                    self.compare(
                        &format!("{at}/{key}"),
                        value,
                        here.get(key).unwrap_or(&Value::Null),
                    );
                }
            }
            (Value::Array(recorded), Value::Array(here)) => self.compare_lists(at, recorded, here),
            (Value::String(recorded), here)
                if recorded.contains("<cut>") || recorded.contains("<Partial") =>
            {
                if here.is_null() {
                    self.differences.push(format!("{at}: nothing"));
                }
            }
            (Value::String(recorded), Value::String(here)) => {
                let (recorded, here) = (self.masks.of(recorded), self.masks.of(here));
                if recorded != here {
                    self.differences.push(format!("{at}: {here:?}, recorded: {recorded:?}"));
                }
            }
            (recorded, here) if recorded == here => {}
            _ => self.differences.push(format!("{at}: {here}, recorded: {recorded}")),
        }
    }

    /// Entries with names are found by them: a list may have more here.
    fn compare_lists(&mut self, at: &str, recorded: &[Value], here: &[Value]) {
        let name = |of: &Value| -> Option<String> {
            let found =
                [&of["metadata"]["name"], &of["name"]].into_iter().find(|name| name.is_string())?;
            found.as_str().map(|name| self.masks.of(name))
        };
        let is_named = recorded.iter().all(|entry| name(entry).is_some()) && !recorded.is_empty();
        if !is_named {
            if recorded.len() != here.len() {
                let (recorded, here) = (json!(recorded), json!(here));
                self.differences.push(format!("{at}: {here}, recorded: {recorded}"));
                return;
            }
            for (n, (recorded, here)) in recorded.iter().zip(here).enumerate() {
                self.compare(&format!("{at}/{n}"), recorded, here);
            }
            return;
        }
        let mut left: Vec<&Value> = here.iter().collect();
        for recorded in recorded {
            let wanted = name(recorded);
            let found = left
                .iter()
                .position(|here| name(here) == wanted && recorded["reason"] == here["reason"]);
            match found {
                Some(found) => {
                    let here = left.remove(found);
                    self.compare(&format!("{at}[]"), recorded, here);
                }
                None => self.differences.push(format!("{at}: there is no {wanted:?}")),
            }
        }
    }
}

/// One step before an exchange.
fn prepare((cluster, names): (&Cluster, &Names), records: &BTreeMap<String, Value>, step: &Value) {
    if let Some(job) = step["report"].as_str() {
        return report(cluster, records, job, step["as"].as_str().unwrap());
    }
    if let Some(path) = step["until"].as_str() {
        let wanted = &step["is"];
        wait_for(&format!("{path} {step}"), || {
            let heard = cluster.ask("GET", path, None);
            let at = step["at"].as_str().unwrap_or("");
            let is = heard.json().pointer(at).cloned().unwrap_or(Value::Null);
            (is == *wanted || (step["gone"] == json!(true) && heard.status == 404)).then_some(())
        });
        return;
    }
    let (method, path) =
        (step["method"].as_str().unwrap_or("POST"), step["path"].as_str().unwrap());
    if method == "FAULT" {
        assert_eq!(cluster.fault(path, &step["body"]).status, 200, "{step}");
        return;
    }
    let of = step["type"].as_str().unwrap_or("application/json");
    let body = step.get("body").map(|body| body.to_string().into_bytes());
    let path = names.path_here(cluster, path);
    let heard = cluster.ask_with(method, &path, &[("Content-Type", of)], body.as_deref());
    assert!(heard.status < 300, "{step}: {}", heard.text);
}

/// Reports the status of a Job's pod as the recorder's kubelet did.
fn report(cluster: &Cluster, records: &BTreeMap<String, Value>, job: &str, like: &str) {
    let pod = wait_for(&format!("a pod of {job}"), || {
        cluster.pods(job).into_iter().find(|pod| pod["status"]["phase"] == json!("Pending"))
    });
    let name = pod["metadata"]["name"].as_str().unwrap();
    let path = format!("/api/v1/namespaces/lab/pods/{name}");
    if pod["spec"]["nodeName"].is_null() {
        let binding = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}});
        assert_eq!(cluster.ask("POST", &format!("{path}/binding"), Some(&binding)).status, 201);
    }
    let mut status = if let Some(record) = records.get(like) {
        record["response"]["body"]["status"].clone()
    } else {
        serde_json::from_str(like).unwrap()
    };
    // The recorder masked times that nobody can read.
    let text = status.to_string().replace("<time>", "2026-11-21T09:12:43Z");
    status = serde_json::from_str(&text).unwrap();
    let headers = [("Content-Type", "application/merge-patch+json")];
    let body = json!({"status": status}).to_string();
    let heard =
        cluster.ask_with("PATCH", &format!("{path}/status"), &headers, Some(body.as_bytes()));
    assert_eq!(heard.status, 200, "{}", heard.text);
}

/// Which pod here is which of the record: a Job puts another one beside a pod that is on its way out.
#[derive(Default)]
struct Names(RefCell<BTreeMap<String, String>>);

impl Names {
    /// A path, or the selectors in it, with the names of pods as they are here.
    fn path_here(&self, cluster: &Cluster, path: &str) -> String {
        let of = Regex::new(r"(?:pods/|name%3D)(([a-z0-9-]+)-[bcdfghjklmnpqrstvwxz2456789]{5})\b");
        let Some(found) = of.unwrap().captures(path) else { return path.to_owned() };
        let (recorded, job) = (&found[1], &found[2]);
        let mut known = self.0.borrow_mut();
        if !known.contains_key(recorded) {
            let pods = cluster.pods(job);
            let names = pods.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap());
            let is_new = |name: &&str| known.values().all(|known| known != name);
            let Some(name) = names.clone().find(is_new).or(names.clone().next()) else {
                return path.to_owned();
            };
            let name = name.to_owned();
            known.insert(recorded.to_owned(), name);
        }
        path.replace(recorded, &known[recorded])
    }
}

/// Plays one exchange; says in what it differs.
fn play(
    (cluster, names): (&Cluster, &Names),
    table: &Table,
    masks: &Masks,
    record: &Value,
) -> Vec<String> {
    let id = record["id"].as_str().unwrap();
    let request = &record["request"];
    let mut path = table.here(id, request["path"].as_str().unwrap());
    path = names.path_here(cluster, &path);
    let mut headers: Vec<(String, String)> = Vec::new();
    for (name, value) in request["headers"].as_object().into_iter().flatten() {
        let value = match value.as_str().unwrap_or_default() {
            said if said.contains("invalid") => "Bearer nobody".to_owned(),
            said if said.contains("<token of user") => {
                format!("Bearer {}", cluster.token_of("lab"))
            }
            said => said.to_owned(),
        };
        headers.push((name.clone(), value));
    }
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let body = match request.get("body") {
        Some(Value::String(text)) => Some(text.clone()),
        Some(body) => {
            Some(table.here(id, &body.to_string()).replace("<time>", "2026-11-21T09:12:43Z"))
        }
        None => table.0["bodies"].get(id).map(ToString::to_string),
    };
    let method = request["method"].as_str().unwrap();
    let heard = cluster.ask_with(method, &path, &headers, body.as_deref().map(str::as_bytes));
    let mut comparing = Comparing { masks, by_shape: table.by_shape(id), differences: Vec::new() };
    let response = &record["response"];
    if response["status"] != json!(heard.status) {
        comparing.differences.push(format!(
            "status {} instead of {}: {}",
            heard.status, response["status"], heard.text
        ));
    }
    let of = response["headers"]["content-type"].as_str().unwrap_or_default();
    if !of.is_empty() && !heard.content_type.starts_with(of.split(';').next().unwrap()) {
        comparing.differences.push(format!("{:?} instead of {of:?}", heard.content_type));
    }
    let recorded: Value =
        serde_json::from_str(&table.here(id, &response["body"].to_string())).unwrap();
    compare_body(&mut comparing, of, &recorded, &heard);
    comparing.differences
}

fn compare_body(comparing: &mut Comparing<'_>, of: &str, recorded: &Value, heard: &Heard) {
    let is_text = of.starts_with("text/plain");
    match recorded {
        Value::Null | Value::String(_) => {}
        // Lines of text, or of a watch.
        Value::Array(lines) if is_text => {
            let here: Vec<Value> = heard.text.lines().map(|line| json!(line)).collect();
            comparing.compare("", &json!(lines), &json!(here));
        }
        Value::Array(_) => {
            let here: Vec<Value> =
                heard.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            comparing.compare("", recorded, &json!(here));
        }
        recorded => {
            // A list of names alone is the recorder's short form.
            let mut recorded = recorded.clone();
            let short =
                recorded["items"].as_array().is_some_and(|all| all.iter().any(Value::is_string));
            if short {
                recorded["items"] = recorded["items"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|name| json!({"metadata": {"name": name}}))
                    .collect();
            }
            comparing.compare("", &recorded, &heard.json());
        }
    }
}

#[test]
fn every_recorded_exchange_is_answered_as_by_the_real_server() {
    let table = Table(serde_json::from_str(&cases("played.json")).unwrap());
    let text = cases("answers.jsonl");
    let all: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let records = records();
    assert_eq!(records.len(), all.len(), "an id stands there twice");
    for id in table.0["elsewhere"].as_object().unwrap_or(&Map::new()).keys() {
        assert!(records.contains_key(id), "{id} is no exchange");
    }
    let masks = Masks::new();
    let mut failed = Vec::new();
    let mut played = 0;
    for nodes in [0, 1] {
        let cluster = Cluster::with_nodes(nodes);
        let here = (&cluster, &Names::default());
        for step in table.steps(&format!("all with {nodes} nodes")) {
            prepare(here, &records, &step);
        }
        for record in &all {
            let id = record["id"].as_str().unwrap();
            let with_node = table.0["with_a_node"].as_array().unwrap().contains(&json!(id));
            if table.is_elsewhere(id) || with_node != (nodes == 1) {
                continue;
            }
            for step in table.steps(id) {
                prepare(here, &records, &step);
            }
            played += 1;
            for difference in play(here, &table, &masks, record) {
                let short: String = difference.chars().take(600).collect();
                failed.push(format!("{id}: {short}"));
            }
        }
    }
    assert!(failed.is_empty(), "{} of {played} differ:\n{}", failed.len(), failed.join("\n"));
}

/// The records, by their ids.
fn records() -> BTreeMap<String, Value> {
    let text = cases("answers.jsonl");
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.map(|record| (record["id"].as_str().unwrap().to_owned(), record)).collect()
}

/// Asks as the recorder did, and holds status and form against what was recorded.
#[track_caller]
fn asked_again(cluster: &Cluster, record: &Value, body: Option<&Value>) -> Heard {
    let (request, response) = (&record["request"], &record["response"]);
    let mut headers: Vec<(String, String)> = Vec::new();
    for (name, value) in request["headers"].as_object().into_iter().flatten() {
        let of_user = || format!("Bearer {}", cluster.token_of("lab"));
        let value = value.as_str().unwrap();
        let value = if value.contains("<token of user") { of_user() } else { value.to_owned() };
        headers.push((name.clone(), value));
    }
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let body = body.unwrap_or(&request["body"]);
    let body = (!body.is_null()).then(|| body.to_string().into_bytes());
    let (method, path) = (request["method"].as_str().unwrap(), request["path"].as_str().unwrap());
    let heard = cluster.ask_with(method, path, &headers, body.as_deref());
    let id = &record["id"];
    assert_eq!(response["status"], json!(heard.status), "{id}: {}", heard.text);
    let of = response["headers"]["content-type"].as_str().unwrap().split(';').next().unwrap();
    assert!(heard.content_type.starts_with(of), "{id}: {}", heard.content_type);
    heard
}

/// All that is said here was said there as well: what the real server has beside it is not served here.
fn lacking(at: &str, here: &Value, recorded: &Value, lacks: &mut Vec<String>) {
    match (here, recorded) {
        (Value::Object(here), Value::Object(recorded)) => {
            for (key, value) in here.iter().filter(|(key, _)| *key != "storageVersionHash") {
                match recorded.get(key) {
                    Some(recorded) => lacking(&format!("{at}/{key}"), value, recorded, lacks),
                    None => lacks.push(format!("{at}/{key}")),
                }
            }
        }
        (Value::Array(here), Value::Array(recorded)) => {
            let name = |of: &Value| match of {
                Value::Object(_) if of["name"].is_string() => of["name"].clone(),
                Value::Object(_) => of["groupVersion"].clone(),
                other => other.clone(),
            };
            for value in here {
                match recorded.iter().find(|recorded| name(recorded) == name(value)) {
                    Some(recorded) => {
                        lacking(&format!("{at}/{}", name(value)), value, recorded, lacks);
                    }
                    None => lacks.push(format!("{at}: {}", name(value))),
                }
            }
        }
        (here, recorded) if here == recorded => {}
        (here, recorded) => lacks.push(format!("{at}: {here}, recorded: {recorded}")),
    }
}

#[test]
fn what_is_served_in_part_is_a_part_of_what_was_recorded() {
    let records = records();
    let cluster = Cluster::with_nodes(0);
    for (id, list, least) in [
        ("apis", "/groups", 3),
        ("apis-aggregated", "/groups", 1),
        ("apis-batch", "/versions", 1),
        ("api-v1", "/resources", 15),
    ] {
        let record = &records[id];
        let here = asked_again(&cluster, record, None).json();
        // The recorder cut the second one short: it is the first, whatever form is asked for.
        let whole = if id == "apis-aggregated" { &records["apis"] } else { record };
        let mut lacks = Vec::new();
        lacking("", &here, &whole["response"]["body"], &mut lacks);
        // The recorder left out of the last one what no job runner used then.
        let is_left_out = |lack: &String| {
            ["services", "persistentvolumeclaims"].iter().any(|name| lack.contains(name))
        };
        lacks.retain(|lack| id != "api-v1" || !is_left_out(lack));
        assert!(lacks.is_empty(), "{id}: {lacks:#?}");
        let count = here.pointer(list).unwrap().as_array().unwrap().len();
        assert!(count >= least, "{id}: {here}");
    }
    // Checks: fewer here, each with a word of its own, and the same verdict.
    let record = &records["readyz-verbose"];
    let here = asked_again(&cluster, record, None).text;
    let recorded: Vec<&str> =
        record["response"]["body"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(here.lines().last(), recorded.last().copied(), "{here}");
    assert!(
        here.lines().count() > 1 && here.lines().all(|line| recorded.contains(&line)),
        "{here}"
    );
}

#[test]
fn the_rights_of_another_user_have_the_recorded_form() {
    let records = records();
    let cluster = Cluster::with_nodes(0);
    let record = &records["ssrr"];
    let here = asked_again(&cluster, record, None).json();
    let recorded = &record["response"]["body"];
    for at in ["/kind", "/apiVersion", "/spec", "/metadata", "/status/incomplete"] {
        assert_eq!(here.pointer(at), recorded.pointer(at), "{at}: {here}");
    }
    let keys = |of: &Value| -> Vec<String> {
        let mut keys: Vec<String> = of.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    };
    for list in ["/status/resourceRules", "/status/nonResourceRules"] {
        let of = |body: &Value| body.pointer(list).unwrap().as_array().unwrap().clone();
        let expected = keys(&of(recorded)[0]);
        let rules = of(&here);
        assert!(!rules.is_empty(), "{list}: {here}");
        for rule in rules {
            assert_eq!(keys(&rule), expected, "{list}: {rule}");
        }
    }
    // What everybody may ask about himself is the same.
    assert_eq!(
        here.pointer("/status/resourceRules/0"),
        recorded.pointer("/status/resourceRules/0")
    );
}

#[test]
fn fields_choose_as_recorded() {
    let records = records();
    let cluster = Cluster::with_nodes(1);
    cluster.run("done", "true");
    cluster.run("fails", "exit 3");
    drop((cluster.job_is("done", "Complete"), cluster.job_is("fails", "Failed")));
    let names = |heard: &Heard| -> Vec<String> {
        let list = heard.json();
        let items = list["items"].as_array().unwrap().iter();
        items.map(|of| of["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let record = &records["list-field-succ"];
    let heard = asked_again(&cluster, record, None);
    assert_eq!(heard.json()["kind"], record["response"]["body"]["kind"]);
    assert_eq!(names(&heard), ["fails"]);
    let record = &records["list-pods-phase"];
    assert!(names(&asked_again(&cluster, record, None)).is_empty());
    let waits = json!({
        "metadata": {"name": "waits"},
        "spec": {"nodeName": "n1", "containers": [
            {"name": "main", "image": "i", "envFrom": [{"configMapRef": {"name": "none"}}]},
        ]},
    });
    cluster.make("pods", &waits);
    let heard = asked_again(&cluster, record, None);
    assert_eq!(
        (names(&heard), &heard.json()["kind"]),
        (vec!["waits".to_owned()], &json!("PodList"))
    );
}

#[test]
fn the_log_of_a_container_that_waits_and_json_that_is_asked_for_are_as_recorded() {
    let records = records();
    let cluster = Cluster::with_nodes(1);
    let pod = |name: &str, script: &str| {
        json!({
            "metadata": {"name": name},
            "spec": {"restartPolicy": "Never", "containers": [
                {"name": "main", "image": "i", "command": ["sh", "-c", script]},
            ]},
        })
    };
    // Its volume is not there: it is about to be made for ever.
    let mut waits = pod("run-wait", "true");
    waits["spec"]["volumes"] = json!([{"name": "v", "configMap": {"name": "none"}}]);
    waits["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    cluster.make("pods", &waits);
    cluster.make("pods", &pod("run-ok", "for n in 1 2 3 4 5 6; do echo line $n; done"));
    let phase =
        |name: &str| cluster.get(&format!("/api/v1/namespaces/lab/pods/{name}"))["status"].clone();
    wait_for("it waits on its node", || {
        let waiting = &phase("run-wait")["containerStatuses"][0]["state"]["waiting"];
        (waiting["reason"] == "ContainerCreating").then_some(())
    });
    wait_for("it has printed", || (phase("run-ok")["phase"] == "Succeeded").then_some(()));
    for id in ["log-wait", "log-wait-follow"] {
        let heard = asked_again(&cluster, &records[id], None);
        assert_eq!(heard.json(), records[id]["response"]["body"], "{id}");
    }
    let record = &records["log-accept-json"];
    let heard = asked_again(&cluster, record, None);
    let lines: Vec<&str> = heard.text.lines().collect();
    assert_eq!(json!(lines), record["response"]["body"]);
}

#[test]
fn a_job_that_is_too_big_for_the_store_is_refused_as_recorded() {
    let records = records();
    let cluster = Cluster::with_nodes(0);
    let mut big = super::client::job("b", "true");
    let env = json!([{"name": "BIG", "value": "x".repeat(1_700_000)}]);
    big["spec"]["template"]["spec"]["containers"][0]["env"] = env;
    let record = &records["http-etcd-limit"];
    let heard = asked_again(&cluster, record, Some(&big));
    let masks = Masks::new();
    let here: Value = serde_json::from_str(&masks.of(&heard.text)).unwrap();
    assert_eq!(here, record["response"]["body"]);
    big["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] =
        json!("x".repeat(1_000_000));
    let path = record["request"]["path"].as_str().unwrap();
    assert_eq!(
        cluster.ask("POST", path, Some(&big)).status,
        201,
        "one that is small enough is taken"
    );
}
