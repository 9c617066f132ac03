//! Flavors: what a job asks for of its node, under a name.
//!
//! A flavor has Kubernetes' own words for resources, in the form of the Kubernetes job manager's settings.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use super::volumes::{LIKE, Volume};

/// What a job asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Flavor {
    /// Its name, which everybody in the cluster may read.
    #[serde(deserialize_with = "name_of")]
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How much it asks for.
    pub resources: Resources,
    /// Labels that its node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "labels_of")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints that it puts up with, in Kubernetes' words.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
    pub tolerations: Vec<Value>,
    /// Its rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// Volumes that a job has which asks for it: each as `--volume` has it, or as an object.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
    pub volumes: Vec<Value>,
}

/// Reads what may be null: that is as if nothing were said, as the server takes it.
pub(super) fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Labels, whose values are text also where they look like a number or a truth.
fn labels_of<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let said: BTreeMap<String, Value> = or_default(from)?;
    Ok(said.into_iter().map(|(name, value)| (name, as_text(value))).collect())
}

/// A name, which may look like a number.
fn name_of<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Value::deserialize(from).map(as_text)
}

/// A scalar as text; null is an empty one, as the server takes it.
pub(super) fn as_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// How much a job asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// What is kept for it.
    #[serde(default, deserialize_with = "or_default")]
    pub requests: Amounts,
    /// What it may use at most.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "or_default")]
    pub limits: Amounts,
}

/// The only member of a toleration that is no text.
const SECONDS: &str = "tolerationSeconds";

/// Amounts by the names of resources; each a number or a text, as the server takes it.
pub type Amounts = BTreeMap<String, Value>;

impl Flavor {
    /// Reads one from JSON. The error says where.
    pub fn parse(text: &str) -> Result<Self, String> {
        let flavor: Self = serde_json::from_str(text).map_err(|e| place(&e))?;
        flavor.checked()
    }

    /// Reads one from a file.
    pub(super) fn of_file(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Self::parse(&text).map_err(|why| format!("{}: {why}", path.display()))
    }

    /// Refuses what no server would take.
    pub(super) fn checked(mut self) -> Result<Self, String> {
        if let Some(odd) = self.volumes.iter().find(|said| Volume::of_value(said).is_none()) {
            return Err(format!("{odd} of flavor {} is no volume, {LIKE}", self.name));
        }
        for toleration in self.tolerations.iter_mut().filter_map(Value::as_object_mut) {
            toleration.retain(|_, value| !value.is_null());
            for (_, value) in toleration.iter_mut().filter(|(name, _)| *name != SECONDS) {
                *value = Value::from(as_text(value.take()));
            }
        }
        if self.name.trim().is_empty() || self.name.chars().any(char::is_control) {
            return Err("a flavor needs a name".to_owned());
        }
        let all = self.resources.requests.iter().chain(&self.resources.limits);
        match all.into_iter().find(|(_, amount)| amount_in_words(amount).is_none()) {
            Some((name, amount)) => Err(format!(
                "{name} of flavor {}: {amount} is neither a number nor a text",
                self.name
            )),
            None => Ok(self),
        }
    }

    /// The resources as a manifest has them: extended ones that are only requested are limited to the same amount, since
    /// the server refuses them otherwise. Which those are.
    pub(super) fn of_manifest(&self) -> (Value, Vec<String>) {
        let mut limits = self.resources.limits.clone();
        let mut added = Vec::new();
        for (name, amount) in &self.resources.requests {
            if is_extended(name) && !limits.contains_key(name) {
                limits.insert(name.clone(), amount.clone());
                added.push(name.clone());
            }
        }
        let texts = |amounts: &Amounts| -> Map<String, Value> {
            let text = |amount: &Value| amount_in_words(amount).unwrap_or_default();
            amounts.iter().map(|(name, amount)| (name.clone(), Value::from(text(amount)))).collect()
        };
        let mut resources = json!({"requests": texts(&self.resources.requests)});
        if !limits.is_empty() {
            resources["limits"] = Value::Object(texts(&limits));
        }
        (resources, added)
    }

    /// The GPUs of all vendors together.
    pub fn gpus(&self) -> u64 {
        let of = |amounts: &Amounts| -> u64 {
            let gpus = amounts.iter().filter(|(name, _)| is_gpu(name));
            let counts = gpus.filter_map(|(_, amount)| {
                u64::try_from(thousandths(&amount_in_words(amount)?) / 1_000).ok()
            });
            counts.sum()
        };
        of(&self.resources.limits).max(of(&self.resources.requests))
    }
}

/// An amount as text; `None` for what is neither a number nor a text.
pub(super) fn amount_in_words(amount: &Value) -> Option<String> {
    match amount {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}

/// A quantity in thousandths: `1500m`, `1.5`, `2`, `1k` (Kubernetes documentation, quantities). What is none is nothing.
pub(super) fn thousandths(amount: &str) -> i64 {
    let (digits, unit) = match amount.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) => amount.split_at(at),
        None => (amount, ""),
    };
    let factor = match unit {
        "" => 1_000.0,
        "m" => 1.0,
        "k" => 1_000_000.0,
        _ => return 0,
    };
    let number: f64 = digits.parse().unwrap_or(0.0);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a cast of a float to an integer saturates"
    )]
    let whole = (number * factor).round() as i64;
    whole
}

/// Whether a resource is one that a device plugin offers, as `nvidia.com/gpu`: of those a request and its limit are the
/// same (Kubernetes documentation, extended resources).
fn is_extended(name: &str) -> bool {
    name.split_once('/').is_some_and(|(domain, _)| !domain.ends_with("kubernetes.io"))
}

/// Whether a resource is GPUs, whoever makes them, or TPUs.
pub(super) fn is_gpu(name: &str) -> bool {
    let of = name.split_once('/').map_or("", |(_, of)| of);
    of == "gpu" || of.starts_with("gpu-") || of == "tpu" || name == "gpu.intel.com/i915"
}

/// What is wrong, with its place in front: `line 3, column 5: …`.
pub(super) fn place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    format!("line {}, column {}: {what}", error.line(), error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flavors_as_printed_are_refused_with_their_place_and_load_when_mended() {
        let printed = "{\n    \"name\": \"no-gpu\"\n    \"resources\": {\n        \"requests\": {\n            \"cpu\": \"1000m\"\n        }\n    }\n}";
        let why = Flavor::parse(printed).unwrap_err();
        assert!(why.starts_with("line 3, column 5: "), "{why}");
        let mended = printed.replace("no-gpu\"\n", "no-gpu\",\n");
        assert_eq!(Flavor::parse(&mended).unwrap().resources.requests["cpu"], "1000m");
    }

    #[test]
    fn an_extended_resource_that_is_only_requested_is_limited_to_the_same() {
        let text = r#"{"name": "large-gpu", "resources": {"requests": {"cpu": "1000m", "memory": "1G", "nvidia.com/gpu": 1}}}"#;
        let (manifest, added) = Flavor::parse(text).unwrap().of_manifest();
        assert_eq!(manifest["limits"], json!({"nvidia.com/gpu": "1"}));
        assert_eq!(manifest["requests"]["memory"], "1G");
        assert_eq!(added, ["nvidia.com/gpu"]);
    }

    #[test]
    fn what_is_no_flavor_is_refused_by_name() {
        for (text, says) in [
            (r#"{"name": "x"}"#, "resources"),
            (r#"{"name": "", "resources": {}}"#, "name"),
            (r#"{"name": "x", "resources": {"requests": {"cpu": null}}}"#, "cpu"),
            (r#"{"name": "x", "resources": {}, "tolerance": []}"#, "tolerance"),
            ("", "line 1"),
        ] {
            let why = Flavor::parse(text).unwrap_err();
            assert!(why.contains(says), "{text}: {why}");
        }
    }

    #[test]
    fn what_looks_like_a_number_or_a_truth_is_text_where_the_server_wants_text() {
        let text = r#"{"name": "x", "resources": {}, "nodeSelector": {"gpu": true, "slot": 3},
            "tolerations": [{"key": "gpu", "value": true, "tolerationSeconds": 30}],
            "volumes": ["data:/data", {"nfs": "filer:/e", "mount": "/e", "read_only": true}]}"#;
        let flavor = Flavor::parse(text).unwrap();
        assert_eq!(json!(flavor.node_selector), json!({"gpu": "true", "slot": "3"}));
        let kept = json!({"key": "gpu", "value": "true", "tolerationSeconds": 30});
        assert_eq!(flavor.tolerations, [kept]);
        assert_eq!(Flavor::parse(&json!(flavor).to_string()).unwrap(), flavor);
        let odd = r#"{"name": "x", "resources": {}, "volumes": [{"claim": "data"}]}"#;
        assert!(Flavor::parse(odd).unwrap_err().contains("is no volume"));
    }

    #[test]
    fn what_is_null_is_as_if_it_were_not_said() {
        let said = |text: &str| json!(Flavor::parse(text).unwrap());
        let bare = r#"{"name": "3", "resources": {"requests": {"cpu": 1}}}"#;
        let null = r#"{"name": 3, "description": null, "resources": {"requests": {"cpu": 1}, "limits": null},
            "nodeSelector": null, "tolerations": null, "priorityClassName": null, "volumes": null}"#;
        assert_eq!(said(null), said(bare));
        let within = r#"{"name": "x", "resources": {"requests": null}, "nodeSelector": {"gpu": null},
            "tolerations": [{"key": 7, "value": null, "effect": "NoSchedule"}]}"#;
        let flavor = Flavor::parse(within).unwrap();
        assert_eq!(json!(flavor.node_selector), json!({"gpu": ""}), "a label without a value");
        assert_eq!(flavor.tolerations, [json!({"key": "7", "effect": "NoSchedule"})]);
    }

    #[test]
    fn quantities_are_read_as_the_server_writes_them() {
        for (amount, wanted) in
            [("8", 8_000), ("500m", 500), ("1.5", 1_500), ("2k", 2_000_000), ("odd", 0), ("", 0)]
        {
            assert_eq!(thousandths(amount), wanted, "{amount}");
        }
    }

    #[test]
    fn gpus_of_every_vendor_are_counted_once() {
        let of = |text: &str| Flavor::parse(text).unwrap().gpus();
        let both = r#"{"name": "x", "resources": {"requests": {"nvidia.com/gpu": 1, "amd.com/gpu": "2"}, "limits": {"nvidia.com/gpu": 1, "amd.com/gpu": 2}}}"#;
        assert_eq!(of(both), 3);
        assert_eq!(of(r#"{"name": "x", "resources": {"requests": {"cpu": 4}}}"#), 0);
        let many = r#"{"name": "x", "resources": {"limits": {"nvidia.com/gpu": "4k"}}}"#;
        assert_eq!(of(many), 4_000);
    }
}
