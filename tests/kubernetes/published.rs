//! What is sent to a cluster, and what the simulated one answers, is as the published schemas of Kubernetes have it: those that
//! the Python package `kubernetes-validate` brings along, where it is there: `./x test --install` installs it below `target`.

use std::io::Write as _;

use serde_json::{Value, json};

use tpu_system::sys::proc::{self, Spawn};

use super::lab::{Lab, settings};
use crate::common::tmux::write_file;

/// Says of each document of a file what each version finds wrong with it; ends with 3 where there are no schemas.
const VALIDATE: &str = "
import json, sys
sys.path.insert(0, sys.argv[2])
try:
    import kubernetes_validate as published
except ImportError:
    sys.exit(3)
versions = sorted({version.rsplit('.', 1)[0] for version in published.utils.all_versions()})
print(len(versions), 'versions')
for of, document in json.load(open(sys.argv[1])):
    for version in versions:
        try:
            published.validate(document, version, False)
        except published.ValidationError as wrong:
            print(version, of, document['kind'], '/'.join(map(str, wrong.path)), wrong.message[:200])
";

/// What was sent to make Jobs.
fn sent(lab: &Lab) -> Vec<Value> {
    let all = std::fs::read_dir(lab.env.path("tpu-state/kubernetes")).unwrap();
    let text = |of: std::fs::DirEntry| std::fs::read(of.path().join("manifest.json")).unwrap();
    all.map(|of| serde_json::from_slice(&text(of.unwrap())).unwrap()).collect()
}

/// What the cluster says that there is.
fn answered(lab: &Lab) -> Vec<Value> {
    let [batch, core] = ["/apis/batch/v1", "/api/v1"];
    let lists = [
        (batch, "jobs", "Job"),
        (core, "pods", "Pod"),
        (core, "secrets", "Secret"),
        (core, "configmaps", "ConfigMap"),
        (core, "services", "Service"),
    ];
    let all = lists.map(|(api, resource, kind)| {
        let list = lab.cluster.get(&format!("{api}/namespaces/lab/{resource}"));
        let version = api.rsplit_once("s/").map_or("v1", |(_, version)| version);
        let items = list["items"].as_array().unwrap().clone().into_iter();
        assert!(items.len() > 0, "no {resource}");
        items.map(move |mut item| {
            (item["apiVersion"], item["kind"]) = (json!(version), json!(kind));
            item
        })
    });
    all.into_iter().flatten().collect()
}

#[test]
fn what_is_sent_and_what_is_answered_is_as_published() {
    let lab = Lab::new();
    settings(&lab, r#"{"job": {"imagePullSecrets": ["own"], "ttlSeconds": 600}}"#);
    let flavor = json!({
        "name": "all", "resources": {"requests": {"cpu": 0.1, "nvidia.com/gpu": 1}},
        "nodeSelector": {"pool": "a"}, "priorityClassName": "high",
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}],
        "volumes": ["data:/data", "nfs/filer:/e:/e", "secret/s:/s", "configmap/c:/c", "host/tmp:/h:ro"],
    });
    let flavor = flavor.to_string();
    let of_all = "--ttl 60 --kueue-queue night --service-account trainer -e A=b";
    for options in ["", "--nodes 2", &format!("-r {flavor} {of_all}")] {
        lab.run("true", options);
    }
    drop(lab.tpu("run lab alice -q --array 0-1 -- true").exits(0));
    let file = lab.env.path("code-alice/job.yaml");
    write_file(
        &file,
        "target: {kubernetes: lab}\nsecrets: [TOKEN]\ntimeout: 10m\ncommand: 'true'\n",
    );
    let keep = "printf x | \"$0\" secrets set TOKEN && \"$0\" submit \"$1\"";
    let words = ["-c", keep, crate::common::env::TPU, file.to_str().unwrap()];
    drop(lab.env.output(&lab.env.spawn_program("sh", &words)).exits(0));
    let (sent, answered) = (sent(&lab), answered(&lab));
    assert_eq!(sent.len(), 6, "{sent:?}");
    let all = sent.into_iter().map(|it| ("sent", it));
    let all: Vec<_> = all.chain(answered.into_iter().map(|it| ("answered", it))).collect();
    let documents = lab.env.path("documents.json");
    write_file(&documents, &json!(all).to_string());
    let packages = concat!(env!("CARGO_TARGET_TMPDIR"), "/../python");
    let words = ["-c", VALIDATE, documents.to_str().unwrap(), packages];
    let validate = Spawn::new("python3").args(words);
    match proc::run(&validate) {
        Ok(output) if output.status.success() => {
            let said = output.text();
            let wrong: Vec<&str> = said.lines().skip(1).collect();
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        }
        Ok(output) if output.status.shell_code() != 3 => panic!("{}", output.complaint()),
        Ok(_) | Err(_) => {
            let said = "skipped: there are no schemas (Python's kubernetes-validate)";
            drop(writeln!(std::io::stderr(), "{said}"));
        }
    }
}
