//! `tpu schema jobfile`: what an editor takes for wrong is wrong, and what is wrong it takes for wrong, but for what no
//! schema can say.

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

use tpu_jobfile::own::keys::{KEYS, KeyState};
use tpu_jobfile::own::{Given, KindKey, KindWords, read, schema};

use crate::common::env::TestEnv;
use crate::common::json_schema::Validator;

pub(super) fn kinds() -> Vec<KindWords> {
    let options = [("nodes", false), ("gres-flags", false), ("sbatch", true)];
    let plain = options.map(|(name, is_many)| KindKey::plain(name, is_many));
    let volumes =
        KindKey { also: Some("volumes"), takes_map: true, ..KindKey::plain("pod-volume", true) };
    let words = |word: &str, options| KindWords { word: word.to_owned(), options };
    vec![words("slurm", plain.to_vec()), words("pods", vec![volumes])]
}

/// What the reader refuses and no schema can: what is known by its name, by another place of the file, or by counting.
const UNSAID: [&str; 38] = [
    "nothing is called",
    "without }}",
    "tpu sets it",
    "looks like a secret",
    "is kept with each job",
    "env: has a value for it",
    "there twice",
    "is there already",
    "is its environment already",
    "cannot be the name of a config",
    "say already what is done after",
    "no member gets it",
    "longer than a day",
    "cannot wait for itself",
    "it has no name",
    "cannot have one name",
    "cannot be the name of a TPU",
    "of several types or zones",
    "members",
    "is not an amount of memory",
    "are no rights of a file",
    "values and",
    "is too large",
    "comes after",
    "says already what is done",
    "prints nothing for",
    "is no address",
    "it is no URL",
    "the URL has no host",
    "stands in the URL",
    "goes unprotected",
    "would go unprotected",
    "neither a program",
    "a quote is not closed",
    "there is no command",
    "command: is a list of words",
    "from: or to: is missing",
    "from: and to:",
];

/// Values that are good for some key, and hardly for another.
fn values() -> Vec<Value> {
    let texts = [
        "",
        " ",
        "a",
        " a ",
        "5",
        "007",
        "+5",
        "-5",
        "4294967295",
        "4294967296",
        "100",
        "101",
        "0",
        "true",
        "false",
        "all",
        ".",
        "bash",
        "a=b",
        "-x",
        "a b",
        "a/b",
        "../x",
        "/d",
        "none",
        "~/d",
        "/",
        "0-4",
        "0-4%2",
        "0,2",
        "1-0",
        "0-2000",
        "30m",
        "90",
        "0s",
        "2h",
        "1w",
        "32G",
        "0.5T",
        "G",
        "512MiB",
        "smart",
        "Smart",
        "auto",
        "spot",
        "lost",
        "SSH_LOST",
        "ssh lost",
        "nope",
        "resume",
        "pre",
        "preempted:resume,oom:rerun",
        "preempted: resume",
        "deadline-exceeded",
        "local",
        "v6e-8",
        "A_KEY",
        "1A",
        "us-east5-b",
        "queued-resources",
        "gs://b/",
        "Bucket",
        "s:/d",
        "600",
        "888",
        "machine",
        "--internal-ips",
        "--tags=a,b",
        "--zone=x",
        "a\nb",
        "a\tb",
        "\u{e9}",
    ];
    let mut all: Vec<Value> = texts.into_iter().map(|text| json!(text)).collect();
    all.extend([json!(0), json!(1), json!(5), json!(101), json!(-1), json!(4_294_967_296_u64)]);
    all.extend([json!(true), json!(false), json!(null), json!([]), json!({})]);
    all.extend([
        json!(["a"]),
        json!(["a", "b"]),
        json!([2]),
        json!([0, 2]),
        json!([null]),
        json!([""]),
    ]);
    all.extend([
        json!([["a"]]),
        json!([{}]),
        json!({"a": "b"}),
        json!({"a": 1, "b": ""}),
        json!({"a": null}),
    ]);
    all.extend([
        json!({"A_B": "x"}),
        json!({"1": "x"}),
        json!({"x=": "x"}),
        json!({"a": ["1", 2], "b": "0-4"}),
    ]);
    all.extend([json!({"a": []}), json!({"": "x"})]);
    all.extend([json!({"preempted": "resume"}), json!({"OOM": "pass"}), json!({"oom": "again"})]);
    all.extend([
        json!({"slurm": "gpu", "nodes": 2}),
        json!({"slurm": "gpu", "gres_flags": "x", "sbatch": ["a", "b"], "gpus": 1}),
        json!({"slurm": "gpu", "nodes": [1, 2]}),
        json!({"slurm": "gpu", "hosts": "a"}),
        json!({"slurm": "gpu", "node": 2}),
        json!({"hosts": "gpu[1-4]", "gpus": [1]}),
        json!({"hosts": ["a", "b"], "nodes": 2}),
        json!({"type": "v6e-8", "zone": ["z", "us"], "pricing": "spot"}),
        json!({"type": ["v4", "v5"], "pricing": "on-demand"}),
        json!({"type": "v4", "pricing": "cheap"}),
        json!({"type": "v4", "mode": "tpu-vm"}),
        json!({"repo": "https://h/r.git", "branch": "main"}),
        json!({"repo": "-x"}),
        json!({"branch": "main"}),
        json!({"accelerator": "v6e-8", "zone": "z"}),
        json!({"accelerator": ["v6e-8", "v5p-8"], "zone": "z", "pricing": "spot", "version": null}),
        json!({"accelerator": "v6e-8", "zone": "z", "mode": "queued-resources"}),
        json!({"accelerator": "v6e-8"}),
        json!({"accelerator": "v6e-8", "zone": "z", "price": "spot"}),
        json!({"name": "t", "number": "auto", "tags": ["a"], "metadata": {"a": "b"}}),
        json!({"name": "t", "number": 3, "flags": ["--internal-ips", "--tags=a"], "network": null}),
        json!({"name": "t", "number": "x"}),
        json!({"when": "always"}),
        json!({"when": "on-failure", "pause": "30m"}),
        json!({"when": "never", "pause": "10s"}),
        json!({"pause": "10s"}),
        json!("on-failure"),
        json!("never"),
        json!("always"),
        json!({"max": 3}),
        json!({"max": 3, "on": ["lost", "oom"], "backoff": "60s"}),
        json!({"max": 3, "on": "dependency"}),
        json!({"max": 10_001}),
        json!({"on": "lost"}),
        json!([{"venv": {"name": "x", "requirements": "r.txt"}}, {"recipe": "r"}]),
        json!([{"venv": {}}]),
        json!([{"conda": {"name": "x/y"}}]),
        json!([{"docker": {"image": "i", "mounts": [], "flags": "x", "workdir": null}}]),
        json!([{"docker": {"mounts": []}}]),
        json!([{"wandb": {"key": "WANDB_API_KEY", "host": "w.lab.org"}}]),
        json!([{"wandb": {"key": "A_KEY"}}]),
        json!([{"wandb": {"key": "a key"}}]),
        json!([{"wandb": {"host": "x"}}]),
        json!([{"docker": {"image": "i"}, "name": "x"}]),
        json!([{"nfs": {"export": "s:/d", "mount": "/m"}}, {"nfs": {"export": "s", "mount": "/m"}}]),
        json!([{"gcsfuse": {"bucket": "b", "mount": "/m", "cache": {"file_max_size_mb": 5}, "extra_mounts": [{"mount": "~/x"}]}}]),
        json!([{"gcsfuse": {"bucket": "B", "mount": "/m"}}]),
        json!([{"gcsfuse": {"bucket": "b", "mount": "m"}}]),
        json!([{"ssh_keys": {"identities": [{"private_key": "~/k", "config_entry": "x\n"}]}}]),
        json!([{"ssh_keys": {"identities": []}}]),
        json!([{"name": "s", "run": "x", "check": "y", "workers": "all", "timeout": "10m", "once_per": "machine"}]),
        json!([{"name": "s", "files": [{"from": "a", "to": "~/b", "mode": 644}]}]),
        json!([{"name": "s", "files": []}]),
        json!([{"name": "s", "run": ""}]),
        json!([{"name": "s", "run": "x", "once_per": "day"}]),
    ]);
    all
}

/// A job with some keys, each with some value; as often as not with what it needs.
fn jobs() -> impl Strategy<Value = Value> {
    let keys: Vec<&str> =
        KEYS.iter().filter(|key| key.state == KeyState::Built).map(|key| key.name).collect();
    let good =
        [json!("local"), json!({"accelerator": "v6e-8", "zone": "z"}), json!({"slurm": "gpu"})];
    let command = [json!("a --x {{a}} {{b}}"), json!(["a", 1, ""])];
    let member = (select(keys), select(values()));
    let base = (
        prop::option::weighted(0.9, select(good.to_vec())),
        prop::option::weighted(0.5, select(command.to_vec())),
        prop::collection::vec(member, 0..4),
    );
    base.prop_map(|(target, command, others)| {
        let mut job = Map::new();
        job.extend(target.map(|target| ("target".to_owned(), target)));
        job.extend(command.map(|command| ("command".to_owned(), command)));
        job.extend(others.into_iter().map(|(key, value)| (key.to_owned(), value)));
        Value::Object(job)
    })
}

/// Several jobs in one file now and then, and keys that are none.
pub(super) fn files() -> impl Strategy<Value = Value> {
    let one =
        (jobs(), any::<Index>(), prop::bool::weighted(0.05)).prop_map(|(mut job, at, odd)| {
            if let (true, Value::Object(members)) = (odd, &mut job) {
                let name = ["comand", "jobs", "defaults", "Target", ""];
                members.insert((*at.get(&name)).to_owned(), json!("x"));
            }
            job
        });
    let several = (jobs(), jobs()).prop_map(
        |(defaults, job)| json!({ "defaults": defaults, "jobs": { "first": job, "second": null } }),
    );
    prop_oneof![9 => one, 1 => several]
}

fn agrees(file: &Value) -> Result<(), TestCaseError> {
    static SCHEMA: LazyLock<Validator> = LazyLock::new(|| Validator::of(&schema(&kinds())));
    let (kinds, text) = (kinds(), file.to_string());
    let by_schema = SCHEMA.is_valid(file);
    match read(&text, &Given { set: &[], kinds: &kinds }) {
        Ok(_) => prop_assert!(by_schema, "the reader takes it, the schema does not: {text}"),
        // What each of several jobs has is known when what holds for all has been laid below it.
        Err(_) if file.get("jobs").is_some() => {}
        Err(bad) if UNSAID.iter().any(|unsaid| bad.what.contains(unsaid)) => {}
        Err(bad) => prop_assert!(!by_schema, "the schema takes it: {text}\n{bad:?}"),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn the_schema_and_the_reader_take_the_same_files(file in files()) {
        agrees(&file)?;
    }
}

#[test]
fn each_value_at_each_key_is_judged_alike() {
    let mut wrong = Vec::new();
    for key in KEYS.iter().filter(|key| key.state == KeyState::Built) {
        for value in values() {
            for base in [
                json!({"target": "local"}),
                json!({"target": {"accelerator": "v6e-8", "zone": "z"}, "name": "x"}),
            ] {
                let mut file = base.clone();
                file[key.name] = value.clone();
                wrong.extend(agrees(&file).err().map(|error| error.to_string()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_program_prints_it_and_each_example_is_of_it() {
    let env = TestEnv::new();
    let printed = env.tpu("schema jobfile").exits(0);
    let schema: Value = serde_json::from_str(&printed.stdout).unwrap();
    let validator = Validator::of(&schema);
    for key in KEYS.iter().filter(|key| key.state == KeyState::Built) {
        assert_eq!(schema["$defs"]["members"]["properties"][key.name]["description"], key.meaning);
    }
    assert!(
        validator.is_valid(&json!({"target": {"slurm": "gpu", "time": "1:00"}, "command": "x"}))
    );
    assert!(!validator.is_valid(&json!({"target": "local", "comand": "x"})));
    assert_eq!(env.tpu("schema jobfile --json").exits(0).json()["format"], schema);
}
