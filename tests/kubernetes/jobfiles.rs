//! A job of a file has all in Kubernetes that the words of a command line can say: image, flavor, volumes, pods that belong
//! together. What a file beside it says is taken along when the job is asked for.

use serde_json::{Value, json};

use super::lab::{Lab, settings};
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

/// A file of the user's; its path.
fn file(lab: &Lab, name: &str, text: &str) -> String {
    let path = lab.env.path(&format!("code-alice/{name}"));
    write_file(&path, text);
    path.display().to_string()
}

fn pod_of(lab: &Lab, window: u64) -> Value {
    let path = format!("/apis/batch/v1/namespaces/lab/jobs/{}", lab.name(window));
    lab.cluster.get(&path)["spec"]["template"]["spec"].clone()
}

/// What `--dry-run` shows of a manifest.
#[track_caller]
fn manifest(lab: &Lab, line: &str) -> Value {
    let shown = lab.tpu(line).exits(0).stdout;
    let (_, from) = shown.split_once("\n{").unwrap_or_else(|| panic!("{shown}"));
    let mut read = serde_json::Deserializer::from_str(&shown[shown.len() - from.len() - 1..])
        .into_iter::<Value>();
    read.next().unwrap().unwrap()
}

#[test]
fn a_file_says_all_of_a_job_that_the_command_line_says() {
    let lab = Lab::new();
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    lab.cluster.make("persistentvolumeclaims", &claim);
    lab.cluster.make("configmaps", &json!({"metadata": {"name": "words"}, "data": {"a": "b"}}));
    let text = "target:\n  kubernetes: lab\n  image: 'train:{{version}}'\n  flavor: small-gpu\n  nodes: 2\n  \
                volumes:\n    - {claim: data, mount: /data}\n    - {configmap: words, mount: /words, read_only: true}\n    \
                - host/tmp:/scratch\n  annotations: {team: vision}\n  security_context: {runAsUser: 4711, runAsNonRoot: true}\n\
                command: 'echo rank $TPU_WORKER of $NNODES; cat /words/a; touch /data/$TPU_WORKER; sleep 1000'\n";
    let path = file(&lab, "job.yaml", text);
    let run = lab.tpu(&format!("run {path} -q --json --set version=2")).exits(0).json();
    let window = run["launched"]["window"].as_u64().unwrap();
    wait_until("both have said who they are", || {
        let printed = lab.printed(window);
        ["rank 0 of 2", "rank 1 of 2"].iter().all(|line| printed.contains(line))
    });
    let pod = pod_of(&lab, window);
    let container = &pod["containers"][0];
    assert_eq!(container["image"], "train:2");
    assert_eq!(container["resources"]["limits"]["nvidia.com/gpu"], "1");
    assert_eq!(pod["securityContext"], json!({"runAsUser": 4711, "runAsNonRoot": true}));
    let volumes = json!([
        {"persistentVolumeClaim": {"claimName": "data"}, "name": "volume-0"},
        {"configMap": {"name": "words", "defaultMode": 420}, "name": "volume-1"},
        {"hostPath": {"path": "/tmp", "type": ""}, "name": "volume-2"},
    ]);
    assert_eq!(pod["volumes"].as_array().unwrap()[..3], volumes.as_array().unwrap()[..]);
    assert_eq!(container["volumeMounts"][1]["readOnly"], true);
    let job = lab.cluster.get(&format!("/apis/batch/v1/namespaces/lab/jobs/{}", lab.name(window)));
    assert_eq!(job["metadata"]["annotations"]["team"], "vision");
    drop(lab.tpu(&format!("kill {window} -y")).exits(0));
    // In a queue it is the same job.
    let queued = lab.tpu(&format!("submit {path} --hold --set version=3")).exits(0);
    drop(queued);
    let waits = lab.env.data()["queue"]["entries"][0].to_string();
    for says in ["train:3", "small-gpu", "words"] {
        assert!(waits.contains(says), "{says}: {waits}");
    }
}

#[test]
fn what_a_file_says_wrongly_has_its_place() {
    let lab = Lab::new();
    for (target, code, says) in [
        ("{kubernetes: lab, flavour: a}", 2, "job.yaml:1:27"),
        ("{kubernetes: lab, volumes: {claim: data}}", 2, "no volume"),
        ("{kubernetes: lab, flavor: nosuch}", 2, "no flavor nosuch"),
        ("{kubernetes: lab, nodes: 0}", 2, "between 1 and"),
        ("{kubernetes: local}", 2, "not kubernetes"),
    ] {
        let path = file(&lab, "job.yaml", &format!("target: {target}\ncommand: 'true'\n"));
        let refused = lab.tpu(&format!("run {path} -q"));
        assert_eq!(refused.code, code, "{target}: {}", refused.report());
        assert!(refused.stderr.contains(says), "{target}: {}", refused.stderr);
    }
    assert!(lab.jobs().is_empty());
}

#[test]
fn a_flavor_in_a_file_is_taken_along_and_the_file_may_go() {
    let lab = Lab::new();
    let flavor = r#"{"name": "own", "resources": {"requests": {"cpu": "1500m", "memory": "1G"}}}"#;
    // A path begins where words are typed, and in a job file where that lies.
    let files = [lab.env.path("own.json"), file(&lab, "own.json", flavor).into()];
    write_file(&files[0], flavor);
    let job =
        file(&lab, "job.yaml", "target: {kubernetes: lab, flavor: own.json}\ncommand: 'true'\n");
    drop(lab.tpu("submit lab alice --hold -r own.json -- true").exits(0));
    drop(lab.tpu(&format!("submit {job} --hold")).exits(0));
    drop(
        lab.tpu(
            "register other --kind kubernetes --context lab --namespace lab -i train:1 -r own.json",
        )
        .exits(0),
    );
    for path in files {
        std::fs::remove_file(path).unwrap();
    }
    for window in [1, 2] {
        drop(lab.tpu(&format!("unhold {window}")).exits(0));
    }
    drop(lab.tpu("run other alice -q -- true").exits(0));
    drop(lab.tpu("run lab alice -q -r own.json -- true").exits(2).says(&["no flavor own.json"]));
    let _monitor = lab.daemon(&[]);
    wait_until("all of them are submitted", || lab.jobs().len() == 3);
    for name in lab.jobs() {
        let job = lab.cluster.get(&format!("/apis/batch/v1/namespaces/lab/jobs/{name}"));
        let container = &job["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["resources"]["requests"]["cpu"], "1500m", "{name}");
        assert_eq!(job["metadata"]["annotations"]["tpu/flavor"], "own", "{name}");
    }
}

#[test]
fn flavors_settings_and_options_are_all_in_a_manifest() {
    let lab = Lab::bare(1);
    drop(lab.tpu("register lab --kind kubernetes --context lab -i train:1").exits(0));
    settings(
        &lab,
        r#"{"job": {
            "imagePullSecrets": ["of-all"],
            "volumes": ["data:/data", {"nfs": {"server": "filer", "path": "/sets"}, "mount": "/sets", "read_only": true}],
            "resources": {"default": "big", "predefined": [{
                "name": "big", "resources": {"requests": {"cpu": 4}},
                "nodeSelector": {"pool": "gpu", "slot": 3}, "priorityClassName": "high",
                "tolerations": [{"key": "gpu", "operator": "Equal", "value": true, "effect": "NoSchedule"}],
                "volumes": [{"claim": "models", "mount": "/models"}]}]}}}"#,
    );
    let made = manifest(
        &lab,
        "run lab --dry-run --service-account trainer --pull-secret own --ttl 600 -v secret/key:/key:ro -- true",
    );
    let pod = &made["spec"]["template"]["spec"];
    assert_eq!(pod["nodeSelector"], json!({"pool": "gpu", "slot": "3"}));
    let toleration =
        json!({"key": "gpu", "operator": "Equal", "value": "true", "effect": "NoSchedule"});
    assert_eq!(pod["tolerations"], json!([toleration]));
    assert_eq!(pod["priorityClassName"], "high");
    assert_eq!(pod["serviceAccountName"], "trainer");
    assert_eq!(pod["imagePullSecrets"], json!([{"name": "of-all"}, {"name": "own"}]));
    assert_eq!(made["spec"]["ttlSecondsAfterFinished"], 600);
    let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
    let at: Vec<&str> = mounts.iter().map(|of| of["mountPath"].as_str().unwrap()).collect();
    assert_eq!(&at[..4], ["/data", "/sets", "/models", "/key"]);
    assert_eq!(pod["volumes"][1]["nfs"], json!({"server": "filer", "path": "/sets"}));
    assert_eq!(mounts[1]["readOnly"], true);
    let pod_of_priority = manifest(&lab, "run lab --dry-run --priority-class low -- true");
    assert_eq!(pod_of_priority["spec"]["template"]["spec"]["priorityClassName"], "low");
    settings(&lab, r#"{"job": {"volumes": [{"claim": "data"}]}}"#);
    drop(lab.tpu("flavors").exits(2).says(&["kubernetes.json", "no volume"]));
}

#[test]
fn what_the_server_refuses_is_shown_with_why() {
    let lab = Lab::new();
    let line =
        r#"run lab --dry-run -r {"name":"x","resources":{"requests":{"cpu":"lots"}}} -- true"#;
    let refused = lab.tpu(line);
    assert_eq!(refused.code, 2, "{}", refused.report());
    assert!(refused.stdout.contains("\"cpu\": \"lots\""), "the manifest: {}", refused.stdout);
    assert!(refused.stderr.contains("does not take it"), "{}", refused.stderr);
    let told = lab.tpu(&format!("--json {line}"));
    let plan = &told.json()["plan"];
    assert_eq!((told.code, &plan["target"]), (2, &json!("lab")));
    assert!(plan["refused"].as_str().unwrap().contains("does not take it"), "{plan}");
    let would = lab.tpu("--json run lab --dry-run -- true").exits(0).json();
    assert_eq!(would["plan"].get("refused"), None, "{would}");
    assert!(lab.jobs().is_empty() && lab.env.jobs("alice").is_empty());
}
