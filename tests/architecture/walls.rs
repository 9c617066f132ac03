//! The crates of the workspace use one another as the picture says, and the core stays free of runtimes and system calls.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tpu_system::sys::proc::{self, Spawn};

/// Each library, and those of ours that it may use.
const WALLS: &[(&str, &[&str])] = &[
    ("tpu-core", &[]),
    ("tpu-jobfile", &["tpu-core"]),
    ("tpu-system", &["tpu-core"]),
    ("tpu-engine", &["tpu-core", "tpu-system"]),
    ("tpu-gcp", &["tpu-core", "tpu-engine", "tpu-system"]),
    ("tpu-kubernetes", &["tpu-core", "tpu-engine", "tpu-system"]),
    ("tpu-slurm", &["tpu-core", "tpu-engine", "tpu-system"]),
    ("tpu-lab", &["tpu-core", "tpu-engine", "tpu-gcp", "tpu-system"]),
    ("tpu-ops", &["tpu-core", "tpu-engine", "tpu-jobfile", "tpu-system"]),
    ("tpu-wire", &["tpu-core", "tpu-jobfile", "tpu-ops"]),
    ("tpu-api", &["tpu-core", "tpu-ops", "tpu-system", "tpu-wire"]),
    ("tpu-screen", &["tpu-core", "tpu-ops", "tpu-system"]),
];

/// Libraries that the core uses neither itself nor through others.
const NOT_IN_THE_CORE: &[&str] = &["axum", "clap", "kube", "rustix", "tokio"];

/// What Cargo knows of the workspace and of all that it is built from.
fn metadata() -> Value {
    // Without a platform Cargo asks for packages of all of them, which a machine that built for its own has not fetched.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let cargo = Spawn::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(["--filter-platform", &platform])
        .cwd(Path::new(env!("CARGO_MANIFEST_DIR")))
        .timeout(Duration::from_secs(60));
    let output = proc::run(&cargo).unwrap();
    assert_eq!(output.status.shell_code(), 0, "{}", output.complaint());
    serde_json::from_str(&output.text()).unwrap()
}

/// What each package uses when it is built, by its name, without what only its tests or its build script use.
fn packages() -> BTreeMap<String, BTreeSet<String>> {
    let known = metadata();
    let array = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages = array(&known["packages"]);
    let names: BTreeMap<String, String> =
        packages.iter().map(|package| (text(&package["id"]), text(&package["name"]))).collect();
    let is_normal = |used: &Value| array(&used["dep_kinds"]).iter().any(|it| it["kind"].is_null());
    array(&known["resolve"]["nodes"])
        .iter()
        .map(|node| {
            let used = array(&node["deps"]).into_iter().filter(is_normal);
            (
                names[&text(&node["id"])].clone(),
                used.map(|it| names[&text(&it["pkg"])].clone()).collect(),
            )
        })
        .collect()
}

#[test]
fn crates_use_one_another_as_the_picture_says() {
    let packages = packages();
    let is_ours = |name: &&String| name.starts_with("tpu-");
    let ours: BTreeSet<&str> = packages.keys().filter(is_ours).map(String::as_str).collect();
    let listed: BTreeSet<&str> = WALLS.iter().map(|(name, _)| *name).collect();
    assert_eq!(ours, listed, "the table has every library in crates/");
    for (name, may) in WALLS {
        let used: Vec<&str> = packages[*name].iter().filter(is_ours).map(String::as_str).collect();
        let unlisted: Vec<&&str> = used.iter().filter(|used| !may.contains(*used)).collect();
        assert!(unlisted.is_empty(), "{name} uses {unlisted:?}; it may use {may:?}");
    }
}

#[test]
fn the_core_reaches_no_runtime_and_no_system_calls() {
    let packages = packages();
    let mut reached = BTreeSet::new();
    let mut waiting = vec!["tpu-core".to_owned()];
    while let Some(name) = waiting.pop() {
        if let Some(used) = packages.get(&name).filter(|_| reached.insert(name.clone())) {
            waiting.extend(used.iter().cloned());
        }
    }
    let wrong: Vec<&&str> =
        NOT_IN_THE_CORE.iter().filter(|name| reached.contains(**name)).collect();
    assert!(wrong.is_empty(), "tpu-core reaches {wrong:?}");
}

#[test]
fn whatever_can_be_left_out_is_built_in_where_nobody_says_otherwise() {
    let known = metadata();
    let packages = known["packages"].as_array().unwrap();
    let root = packages.iter().find(|package| package["name"] == "tpu").unwrap();
    let features = root["features"].as_object().unwrap();
    let others = ["default", "fail-points"];
    let parts: BTreeSet<&str> =
        features.keys().map(String::as_str).filter(|name| !others.contains(name)).collect();
    let default = features["default"].as_array().unwrap();
    let default: BTreeSet<&str> = default.iter().filter_map(Value::as_str).collect();
    assert_eq!(parts, BTreeSet::from(["kubernetes", "lab", "mail", "page", "slurm"]));
    assert_eq!(default, parts);
}
