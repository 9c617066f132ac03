//! What the server refuses in an object, in its words [1.20.2 seen].

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::{Value, json};

use super::quantity::Quantity;
use super::refused::Cause;

const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const ENV: &str = "[-._a-zA-Z][-._a-zA-Z0-9]*";
/// Bytes of all annotations together.
const ANNOTATIONS: usize = 256 * 1024;
/// Bytes of a config map or a secret.
const DATA: usize = 1024 * 1024;

fn is_whole(pattern: &str, text: &str) -> bool {
    Regex::new(&format!("^(?:{pattern})$")).is_ok_and(|regex| regex.is_match(text))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Name, labels and annotations of any object.
pub(super) fn metadata(object: &Value, causes: &mut Vec<Cause>) {
    let meta = &object["metadata"];
    let name = text(&meta["name"]);
    if name.is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    } else if object["kind"] == json!("Namespace") && !(is_whole(LABEL, name) && name.len() <= 63) {
        let why = format!(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
             and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
             '{LABEL}')"
        );
        causes.push(Cause::invalid("metadata.name", &meta["name"], &why));
    } else if !is_whole(SUBDOMAIN, name) {
        let why = format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
             must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '{SUBDOMAIN}')"
        );
        causes.push(Cause::invalid("metadata.name", &meta["name"], &why));
    } else if name.len() > 253 {
        causes.push(Cause::invalid(
            "metadata.name",
            &meta["name"],
            "must be no more than 253 characters",
        ));
    }
    labels(&meta["labels"], "metadata.labels", causes);
    let annotations = meta["annotations"].as_object();
    let bytes: usize =
        annotations.into_iter().flatten().map(|(key, value)| key.len() + text(value).len()).sum();
    if bytes > ANNOTATIONS {
        causes.push(Cause::too_long("metadata.annotations", ANNOTATIONS));
    }
}

fn labels(labels: &Value, field: &str, causes: &mut Vec<Cause>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        if let Some(why) = key_problem(key) {
            causes.push(Cause::invalid(field, &json!(key), &why));
        }
        if text(value).len() > 63 {
            causes.push(Cause::invalid(field, value, "must be no more than 63 characters"));
        } else if !is_whole(LABEL_VALUE, text(value)) {
            let why = format!(
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                 must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
                 regex used for validation is '{LABEL_VALUE}')"
            );
            causes.push(Cause::invalid(field, value, &why));
        }
    }
}

fn key_problem(key: &str) -> Option<String> {
    let parts: Vec<&str> = key.split('/').collect();
    let (prefix, name) = match parts.as_slice() {
        [name] => (None, *name),
        [prefix, name] => (Some(*prefix), *name),
        _ => {
            return Some(format!(
                "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                 with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                 validation is '{QUALIFIED}') with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            ));
        }
    };
    if prefix.is_some_and(|prefix| !is_whole(SUBDOMAIN, prefix)) {
        return Some("prefix part must be a lowercase RFC 1123 subdomain".to_owned());
    }
    if name.len() > 63 {
        return Some("name part must be no more than 63 characters".to_owned());
    }
    (!is_whole(QUALIFIED, name)).then(|| {
        format!(
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
             alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
             '{QUALIFIED}')"
        )
    })
}

/// A Job that is new or changed.
pub(super) fn job(job: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    metadata(job, &mut causes);
    let spec = &job["spec"];
    let counts = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
    ];
    for key in counts {
        if spec[key].as_i64().is_some_and(|count| count < 0) {
            let why = "must be greater than or equal to 0";
            causes.push(Cause::invalid(format!("spec.{key}"), &spec[key], why));
        }
    }
    let template = &spec["template"];
    labels(&template["metadata"]["labels"], "spec.template.labels", &mut causes);
    let policy = text(&template["spec"]["restartPolicy"]);
    pod_spec(&template["spec"], "spec.template.spec", &mut causes);
    let field = "spec.template.spec.restartPolicy";
    let known = ["OnFailure", "Never"];
    if policy == "Always" {
        causes.push(Cause::required(field, "valid values: \"OnFailure\", \"Never\""));
    } else if !known.contains(&policy) {
        causes.push(Cause::unsupported(field, &format!("{policy:?}"), &known));
    }
    causes
}

/// What of a Job may not change. `printed` is the template as the server's language prints it, which nobody reads.
pub(super) fn job_change(old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = job(new);
    let differs = |key: &str| old["spec"][key] != new["spec"][key];
    if differs("completions") {
        let value = &new["spec"]["completions"];
        causes.push(Cause::invalid("spec.completions", value, "field is immutable"));
    }
    if differs("selector") {
        let printed = format!("v1.LabelSelector{}", new["spec"]["selector"]);
        causes.push(Cause::invalid_as("spec.selector", &printed, "field is immutable"));
    }
    if differs("template") {
        let printed = format!("core.PodTemplateSpec{}", new["spec"]["template"]);
        causes.push(Cause::invalid_as("spec.template", &printed, "field is immutable"));
    }
    causes
}

/// A pod.
pub(super) fn pod(pod: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    metadata(pod, &mut causes);
    pod_spec(&pod["spec"], "spec", &mut causes);
    causes
}

/// What of a pod may change: images, a deadline that gets shorter, more tolerations.
pub(super) fn pod_change(old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = pod(new);
    let fixed = |of: &Value| {
        let mut spec = of["spec"].clone();
        for key in ["activeDeadlineSeconds", "tolerations"] {
            spec[key] = Value::Null;
        }
        for container in spec["containers"].as_array_mut().into_iter().flatten() {
            container["image"] = Value::Null;
        }
        spec
    };
    if fixed(old) != fixed(new) {
        causes.push(Cause::forbidden(
            "spec",
            "pod updates may not change fields other than `spec.containers[*].image`, \
             `spec.initContainers[*].image`, `spec.activeDeadlineSeconds` or `spec.tolerations` (only additions to \
             existing tolerations)",
        ));
    }
    causes
}

fn pod_spec(spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    let volumes = spec["volumes"].as_array();
    let volumes: BTreeSet<&str> =
        volumes.into_iter().flatten().map(|volume| text(&volume["name"])).collect();
    if spec["containers"].as_array().is_none_or(Vec::is_empty) {
        causes.push(Cause::required(format!("{at}.containers"), ""));
    }
    let mut names = BTreeSet::new();
    for list in ["containers", "initContainers"] {
        for (n, container) in spec[list].as_array().into_iter().flatten().enumerate() {
            let at = format!("{at}.{list}[{n}]");
            let name = text(&container["name"]);
            if name.is_empty() {
                causes.push(Cause::required(format!("{at}.name"), ""));
            } else if !names.insert(name) {
                causes.push(Cause::duplicate(format!("{at}.name"), &container["name"]));
            }
            if text(&container["image"]).is_empty() {
                causes.push(Cause::required(format!("{at}.image"), ""));
            }
            container_within(container, &at, &volumes, causes);
        }
    }
    let policies = ["Always", "OnFailure", "Never"];
    let policy = text(&spec["restartPolicy"]);
    if !policies.contains(&policy) {
        let field = format!("{at}.restartPolicy");
        causes.push(Cause::unsupported(field, &format!("{policy:?}"), &policies));
    }
}

fn container_within(
    container: &Value,
    at: &str,
    volumes: &BTreeSet<&str>,
    causes: &mut Vec<Cause>,
) {
    for (n, env) in container["env"].as_array().into_iter().flatten().enumerate() {
        if !is_whole(ENV, text(&env["name"])) {
            let why = format!(
                "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', \
                 and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex \
                 used for validation is '{ENV}')"
            );
            causes.push(Cause::invalid(
                format!("{at}.env[{n}].name"),
                &json!(text(&env["name"])),
                &why,
            ));
        }
    }
    for (n, mount) in container["volumeMounts"].as_array().into_iter().flatten().enumerate() {
        if !volumes.contains(text(&mount["name"])) {
            causes.push(Cause::not_found(format!("{at}.volumeMounts[{n}].name"), &mount["name"]));
        }
    }
    resources(&container["resources"], &format!("{at}.resources"), causes);
}

fn resources(resources: &Value, at: &str, causes: &mut Vec<Cause>) {
    let standard = ["cpu", "memory", "ephemeral-storage"];
    let mut each = |of: &str| {
        for (name, amount) in resources[of].as_object().into_iter().flatten() {
            let field = format!("{at}.{of}[{name}]");
            let is_known = standard.contains(&name.as_str()) || name.starts_with("hugepages-");
            if !is_known && !name.contains('/') {
                for why in [
                    "must be a standard resource type or fully qualified",
                    "must be a standard resource for containers",
                ] {
                    causes.push(Cause::invalid(field.clone(), &json!(name), why));
                }
                continue;
            }
            let Some(quantity) = amount.as_str().and_then(Quantity::parse) else { continue };
            if quantity.is_negative() {
                causes.push(Cause::invalid(field, amount, "must be greater than or equal to 0"));
            } else if !is_known && !quantity.is_whole() {
                let printed = format!(
                    "resource.Quantity{{i:resource.int64Amount{{value:{}, scale:-3}}, \
                     d:resource.infDecAmount{{Dec:(*inf.Dec)(nil)}}, s:{amount}, Format:\"DecimalSI\"}}",
                    quantity.milli()
                );
                causes.push(Cause::invalid_as(field, &printed, "must be an integer"));
            }
        }
    };
    each("limits");
    each("requests");
    for (name, amount) in resources["requests"].as_object().into_iter().flatten() {
        let is_extended = name.contains('/');
        let limit = resources["limits"][name].as_str().and_then(Quantity::parse);
        let Some(request) = amount.as_str().and_then(Quantity::parse) else { continue };
        let field = format!("{at}.requests");
        match limit {
            None if is_extended => causes.push(Cause::required(
                format!("{at}.limits"),
                "Limit must be set for non overcommitable resources",
            )),
            Some(limit) if is_extended && !request.order(limit).is_eq() => {
                let why = format!("must be equal to {name} limit");
                causes.push(Cause::invalid(field, amount, &why));
            }
            Some(limit) if request.order(limit).is_gt() => {
                let why = format!("must be less than or equal to {name} limit");
                causes.push(Cause::invalid(field, amount, &why));
            }
            _ => {}
        }
    }
}

/// A config map or a secret.
pub(super) fn data(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    metadata(object, &mut causes);
    let of = |key: &str| object[key].as_object().into_iter().flatten();
    let bytes: usize = of("data").chain(of("binaryData")).map(|(_, value)| text(value).len()).sum();
    if bytes > DATA {
        causes.push(Cause::too_long("[]", DATA));
    }
    causes
}

/// Anything else.
pub(super) fn other(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    metadata(object, &mut causes);
    causes
}
