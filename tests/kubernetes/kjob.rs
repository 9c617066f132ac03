//! The commands of the Kubernetes job manager's document, each as it is printed there; and what is right where it was not.

use serde_json::{Value, json};

use super::lab::{Lab, settings};
use crate::cli::json_schema::assert_described;
use crate::common::env::TPU;
use crate::common::output::CommandOutput;
use crate::common::tmux::write_file;
use crate::common::wait::{wait_for, wait_until};

/// A flavor of that document as it is printed: no JSON, for a comma is missing behind the name.
const LARGE_GPU: &str = r#"{
    "name": "large-gpu"
    "resources": {
        "requests": {
            "cpu": "1000m",
            "memory": "1G",
            "nvidia.com/gpu": 1
        }
    }
}"#;

/// The other one, which has also a comma too many behind the limits.
const NO_GPU: &str = r#"{
    "name": "no-gpu"
    "resources": {
        "requests": {
            "cpu": "1000m",
            "memory": "1G"
        },
        "limits": {
            "cpu": "1000m",
            "memory": "1G"
        },
    }
}"#;

/// Both as they were meant.
fn mended(flavor: &str) -> String {
    flavor.replace("-gpu\"\n", "-gpu\",\n").replace("},\n    }\n}", "}\n    }\n}")
}

/// A user of that job manager, with its settings in the home directory.
fn lab() -> Lab {
    let lab = Lab::bare(2);
    drop(lab.tpu("register lab --kind kubernetes --context lab").exits(0));
    let flavors = format!("{},{}", mended(NO_GPU), mended(LARGE_GPU));
    its_settings(
        &lab,
        &format!(
            r#"{{"job": {{"defaultImage": "alpine", "resources": {{"label": "jobman/flavor", "predefined": [{flavors}]}}}}}}"#
        ),
    );
    lab
}

fn its_settings(lab: &Lab, text: &str) {
    let dir = lab.env.path(".jobman");
    std::fs::create_dir_all(&dir).unwrap();
    write_file(&dir.join("settings.json"), text);
}

/// Runs a line of the document in a shell, with `tpu kjob` where it says `jobman`.
#[must_use = "say how it should have ended: .exits(0)"]
fn shell(lab: &Lab, line: &str) -> CommandOutput {
    let rest = line.strip_prefix("jobman").unwrap_or(line);
    let line = format!("\"$0\" kjob{rest}");
    lab.env.output(&lab.env.spawn_program("sh", &["-c", &line, TPU]))
}

/// The name that was printed.
#[track_caller]
fn created(output: CommandOutput) -> String {
    let output = output.exits(0);
    let name = output.stdout.split('\'').nth(1).map(str::to_owned);
    let name = name.unwrap_or_else(|| panic!("{}", output.report()));
    let said = format!("Job named '{name}' created successfully by user 'alice'\n");
    assert_eq!(output.stdout, said);
    name
}

fn job(lab: &Lab, name: &str) -> Value {
    lab.cluster.get(&format!("/apis/batch/v1/namespaces/lab/jobs/{name}"))
}

fn container(lab: &Lab, name: &str) -> Value {
    job(lab, name)["spec"]["template"]["spec"]["containers"][0].clone()
}

#[test]
fn every_command_of_the_document_works_as_it_is_printed() {
    let lab = lab();
    let first = created(shell(&lab, "jobman submit -i alpine -r no-gpu -- ls -al /"));
    let of = container(&lab, &first);
    assert_eq!(of["image"], "alpine");
    assert_eq!(of["args"], json!(["ls", "-al", "/"]));
    assert_eq!(of["command"], Value::Null);
    assert_eq!(job(&lab, &first)["metadata"]["annotations"]["jobman/flavor"], "no-gpu");
    assert!(!of["volumeMounts"].to_string().contains("/tpu/code"), "no code of ours: {of}");

    let second = created(shell(
        &lab,
        "jobman submit -i ubuntu_python_tensorflow:3.1cuda11 -r small-gpu -- sh -c 'nvidia-smi -L'",
    ));
    let of = container(&lab, &second);
    assert_eq!(of["args"], json!(["sh", "-c", "nvidia-smi -L"]));
    assert_eq!(of["resources"]["limits"]["nvidia.com/gpu"], "1");

    let third = created(shell(
        &lab,
        r#"jobman submit -i ubuntu_python_tensorflow:3.1cuda11 -r large-gpu -- python3 -c "exec(\"from tensorflow.python.client import device_lib\ndevice_lib.list_local_devices()\")""#,
    ));
    let of = container(&lab, &third);
    let program = "exec(\"from tensorflow.python.client import device_lib\\ndevice_lib.list_local_devices()\")";
    assert_eq!(of["args"], json!(["python3", "-c", program]));
    assert_eq!(of["resources"]["limits"]["nvidia.com/gpu"], "1", "what was only requested");

    let list = shell(&lab, "jobman list").exits(0).stdout;
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines[0].starts_with("Job Name") && lines[0].contains("Launch Date"), "{list}");
    assert_eq!(lines.len(), 4, "{list}");
    for name in [&first, &second, &third] {
        assert!(list.contains(name.as_str()), "{list}");
    }
    let ended = wait_for("the first one has ended", || {
        let list = shell(&lab, "jobman list").exits(0).stdout;
        list.lines().find(|line| line.contains(&first) && !line.contains("ing")).map(str::to_owned)
    });
    assert!(ended.contains("Succeeded"), "{ended}");
    drop(shell(&lab, &format!("jobman logs -j {first}")).exits(0).says(&["etc", "root"]));
    let details = shell(&lab, &format!("jobman details -j {first}")).exits(0).stdout;
    assert_eq!(serde_json::from_str::<Value>(&details).unwrap()["kind"], "Job");
    let flavors = shell(&lab, "jobman resources-flavors").exits(0);
    drop(flavors.says(&["no-gpu", "small-gpu", "large-gpu"]));
    let deleted = shell(&lab, &format!("jobman delete -j {first}")).exits(0).stdout;
    assert_eq!(deleted, format!("Job '{first}' deleted successfully\n"));
    assert!(!lab.jobs().contains(&first));
    assert_eq!(lab.env.jobs("alice")[0]["status"], "finished", "it had ended, and stays so");
    drop(shell(&lab, "jobman delete --all").exits(0).says(&[&second, &third]));
    assert!(lab.jobs().is_empty());
    drop(shell(&lab, "jobman").exits(0).says(&[env!("CARGO_PKG_VERSION"), "submit -i alpine"]));
}

#[test]
fn flavors_as_they_are_printed_are_no_json_and_load_when_mended() {
    let lab = lab();
    for (name, printed) in [("no-gpu", NO_GPU), ("large-gpu", LARGE_GPU)] {
        let file = lab.env.path(name);
        write_file(&file, printed);
        let line = format!("kjob submit -i alpine -r {} -- true", file.display());
        let refused = lab.tpu(&line);
        assert_eq!(refused.code, 2, "{}", refused.report());
        assert!(refused.stderr.contains("line 3, column 5"), "{}", refused.stderr);
        write_file(&file, &mended(printed));
        created(lab.tpu(&line));
    }
    let half = NO_GPU.replace("-gpu\"\n", "-gpu\",\n");
    let refused = shell(&lab, &format!("jobman submit -i alpine -r '{half}' -- true"));
    assert_eq!(refused.code, 2, "{}", refused.report());
    assert!(refused.stderr.contains("line 12, column 5"), "{}", refused.stderr);
}

#[test]
fn what_is_said_of_a_job_is_in_its_object() {
    let lab = lab();
    its_settings(
        &lab,
        r#"{"job": {"defaultImage": "python:3", "imagePrefix": "harbor.lab/team", "annotations": [
            {"key": "who", "value": "TPU_USER", "valueType": "env"}, {"key": "team", "value": "vision"}],
            "securityContext": {"runAsUser": 1234}, "resources": {"default": "no-gpu", "predefined": []}}}"#,
    );
    let name = created(shell(
        &lab,
        r#"jobman SUBMIT -j mine -c -a '{"more": "a b"}' -e A=1 -e 'B=x y' -- sh -c 'echo "$A$B"; sleep 1000'"#,
    ));
    assert_eq!(name, "mine");
    let of = container(&lab, "mine");
    assert_eq!(of["image"], "harbor.lab/team/python:3");
    assert_eq!(of["command"], json!(["sh", "-c", "echo \"$$A$$B\"; sleep 1000"]));
    let whole = job(&lab, "mine");
    let said = &whole["metadata"]["annotations"];
    assert_eq!(json!([said["who"], said["team"], said["more"]]), json!(["alice", "vision", "a b"]));
    assert_eq!(whole["spec"]["template"]["spec"]["securityContext"], json!({"runAsUser": 1234}));
    wait_until("it has its variables", || {
        shell(&lab, "jobman logs -j mine").stdout.contains("1x y")
    });
    // It is a job like any other.
    assert_eq!(lab.shown(1)["status"], "running");
    drop(shell(&lab, "jobman delete -j mine").exits(0));
    assert_eq!(lab.env.job("alice", 1)["status"], "killed");

    // What the image begins with alone.
    its_settings(&lab, r#"{"job": {"resources": {"default": "no-gpu"}}}"#);
    let plain = created(shell(&lab, "jobman submit -i alpine"));
    let of = container(&lab, &plain);
    assert_eq!((&of["command"], &of["args"]), (&Value::Null, &Value::Null));
}

#[test]
fn a_file_of_settings_is_taken_alone_and_its_own_are_put_over_ours() {
    let lab = lab();
    settings(
        &lab,
        r#"{"job": {"resources": {"predefined": [{"name": "ours", "resources": {"requests": {"cpu": 2}}}]}}}"#,
    );
    let flavors = |line: &str| {
        let told = lab.tpu(line).exits(0).json();
        let all = told["answer"]["flavors"].as_array().unwrap().clone();
        all.iter().map(|flavor| flavor["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let both = ["small-gpu", "ours", "no-gpu", "large-gpu"];
    assert_eq!(flavors("kjob resources-flavors --json"), both);
    let alone = lab.env.path("alone.json");
    write_file(
        &alone,
        r#"{"job": {"resources": {"predefined": [{"name": "alone", "resources": {"requests": {"cpu": 1}}}]}}}"#,
    );
    for line in [
        "-s FILE resources-flavors",
        "--settings FILE RESOURCES-FLAVORS",
        "resources-flavors -s FILE",
    ] {
        let line = line.replace("FILE", &alone.display().to_string());
        assert_eq!(flavors(&format!("kjob --json {line}")), ["alone"], "{line}");
    }
    drop(lab.tpu("kjob -s none.json list").exits(3));

    // Once they are imported, our own commands have them.
    drop(lab.tpu("kjob import --dry-run").exits(0).says(&["Would write"]));
    drop(lab.tpu("kjob import").exits(0).says(&["kubernetes.json"]));
    assert_eq!(flavors("flavors --json"), ["small-gpu", "no-gpu", "large-gpu", "ours"]);
    drop(lab.tpu("kjob import").exits(0).says(&["already"]));
}

#[test]
fn exit_codes_are_right() {
    let lab = lab();
    for (line, code, says) in [
        ("kjob submit -i alpine -r none -- true", 2, "no flavor none"),
        ("kjob submit -i alpine -- true", 2, "-r no-gpu"),
        ("kjob submit -i alpine -r no-gpu -a nothing -- true", 2, "column"),
        ("kjob submit -i alpine -r no-gpu -e nothing -- true", 2, "NAME=VALUE"),
        ("kjob submit -i alpine -r no-gpu -j Not_A_Name -- true", 2, "no name of a Job"),
        ("kjob details", 2, "--job-name"),
        ("kjob delete", 2, "--job-name"),
        ("kjob delete -j x --all", 2, "--all"),
        ("kjob log -j x", 2, "kjob logs"),
        ("kjob details -j nosuch", 3, "kjob list"),
        ("kjob logs -j nosuch", 3, "kjob list"),
        ("kjob delete -j nosuch", 3, "kjob list"),
    ] {
        let said = lab.tpu(line);
        assert_eq!(said.code, code, "{line}: {}", said.report());
        assert!(said.stderr.contains(says), "{line}: {}", said.stderr);
    }
    lab.cluster.run("taken", "sleep 1000");
    let refused = lab.tpu("kjob submit -i alpine -r no-gpu -j taken -- true");
    assert_eq!(refused.code, 4, "{}", refused.report());
    // What another tool has made in the namespace is deleted by its name alone.
    drop(lab.tpu("kjob delete --all").exits(0).says(&["no Job to delete"]));
    drop(lab.tpu("kjob delete -j taken --dry-run").exits(0).says(&["Would delete taken"]));
    assert_eq!(lab.jobs(), ["taken"]);
    let heard = lab.cluster.fault("api", &json!({"status": 500, "for_s": 60}));
    assert_eq!(heard.status, 200, "{}", heard.text);
    for line in ["kjob list", "kjob details -j taken", "kjob delete -j taken"] {
        assert_eq!(lab.tpu(line).code, 6, "{line}");
    }
}

#[test]
fn settings_that_are_named_hold_alone_and_a_prefix_is_put_before_an_image_once() {
    let lab = lab();
    settings(
        &lab,
        r#"{"job": {"imagePrefix": "ours.lab/x", "ttlSeconds": 60, "volumes": ["ours:/ours"],
            "imagePullSecrets": ["ours"], "annotations": [{"key": "ours", "value": "1"}]}}"#,
    );
    let file = lab.env.path("alone.json");
    let text = r#"{"job": {"imagePrefix": "team", "ttlSeconds": 600, "volumes": [{"claim": "data", "mount": "/data"}],
        "imagePullSecrets": ["theirs"], "annotations": [{"key": "theirs", "value": "2"}],
        "resources": {"predefined": [{"name": "own", "resources": {"requests": {"cpu": 1}}}]}}}"#;
    write_file(&file, text);
    let line = format!("kjob -s {} submit -i alpine -r own -j alone -- true", file.display());
    drop(created(lab.tpu(&line)));
    let made = job(&lab, "alone");
    let pod = &made["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["image"], "team/alpine");
    assert_eq!(pod["imagePullSecrets"], json!([{"name": "theirs"}]));
    assert_eq!(pod["volumes"][0]["persistentVolumeClaim"]["claimName"], "data");
    assert_eq!(made["spec"]["ttlSecondsAfterFinished"], 600);
    let annotations = &made["metadata"]["annotations"];
    assert_eq!((&annotations["theirs"], &annotations["ours"]), (&json!("2"), &Value::Null));
    // Without a file its settings hold over ours, which say the rest.
    drop(created(lab.tpu("kjob submit -i alpine -r no-gpu -j both -- true")));
    let made = job(&lab, "both");
    let pod = &made["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["image"], "ours.lab/x/alpine");
    assert_eq!(pod["imagePullSecrets"], json!([{"name": "ours"}]));
    assert_eq!(made["metadata"]["annotations"]["ours"], "1");
}

#[test]
fn a_job_is_called_as_the_cluster_calls_it() {
    let lab = Lab::new();
    let run = lab.tpu("run lab alice -q -j mine -- sh -c").exits(0);
    assert!(run.stdout.contains("called mine"), "{}", run.stdout);
    let told = lab.tpu("run lab alice -q --name ours --json -- sleep 1000").exits(0).json();
    let called = told["launched"]["called"].as_str().unwrap().to_owned();
    assert_eq!(called, lab.name(told["launched"]["window"].as_u64().unwrap()));
    drop(lab.tpu(&format!("show {called}")).exits(0).says(&["alice/2"]));
    drop(lab.tpu(&format!("logs {called}")));
    drop(lab.tpu("show ours").exits(0).says(&["alice/2"]));
    drop(lab.tpu(&format!("kill {called} -y")).exits(0));
    assert_eq!(lab.env.job("alice", 2)["status"], "killed");
    assert!(!lab.jobs().contains(&called));
    drop(lab.tpu("show nosuch-12345678").exits(3));
    // What somebody has called a job himself comes first.
    drop(lab.tpu("run lab alice -q --name mine -- sleep 1000").exits(0));
    drop(lab.tpu("show mine").exits(0).says(&["alice/3"]));
}

#[test]
fn a_dry_run_shows_what_would_be_submitted() {
    let lab = lab();
    let would = lab.tpu("kjob submit -i alpine -r no-gpu -j x --dry-run -- ls").exits(0);
    drop(would.says(&["would take it", "\"kind\": \"Job\"", "\"name\": \"x\""]));
    assert!(lab.jobs().is_empty() && lab.env.jobs("alice").is_empty());
}

#[test]
fn the_target_is_the_one_that_is_said_else_the_only_one_else_that_of_the_current_context() {
    let lab = Lab::bare(1);
    let none = lab.tpu("kjob list");
    assert_eq!(none.code, 3, "{}", none.report());
    assert!(none.stderr.contains("tpu register lab --kind kubernetes"), "{}", none.stderr);
    drop(lab.tpu("register other --kind kubernetes --context lab --namespace admin").exits(0));
    assert_eq!(lab.tpu("kjob list").code, 4, "the only one is asked, and does not allow it");
    drop(lab.tpu("register third --kind kubernetes --context lab --namespace third").exits(0));
    let which = lab.tpu("kjob list");
    assert_eq!(which.code, 2, "{}", which.report());
    assert!(which.stderr.contains("other, third"), "{}", which.stderr);
    drop(lab.tpu("register current --kind kubernetes").exits(0));
    drop(lab.tpu("kjob list").exits(0));
    drop(lab.tpu("register lab --kind kubernetes --context lab").exits(0));
    settings(&lab, r#"{"target": "lab"}"#);
    let list = lab.tpu("kjob list --json").exits(0).json();
    assert_eq!(list["answer"]["jobs"], json!([]));
    assert_described("of-kind", &list);
    settings(&lab, r#"{"target": "nosuch"}"#);
    drop(lab.tpu("kjob list").exits(3).says(&["nosuch"]));
}

#[test]
fn a_link_called_kjobman_is_tpu_kjob() {
    let lab = lab();
    let link = lab.env.path("kjobman");
    std::os::unix::fs::symlink(TPU, &link).unwrap();
    let said = lab.env.output(&lab.env.spawn_program(link.to_str().unwrap(), &["List"]));
    drop(said.exits(0).says(&["Job Name"]));
}

#[test]
fn what_was_begun_from_another_data_file_is_left_to_it_while_it_is_at_work() {
    let lab = Lab::new();
    let theirs = |name: &str, script: &str| {
        let mut wanted = super::client::job(name, script);
        wanted["metadata"]["labels"] = json!({"tpu.launch": name, "tpu.user": "alice"});
        lab.cluster.make("jobs", &wanted);
    };
    theirs("theirs", "sleep 1000");
    theirs("over", "true");
    drop(lab.cluster.job_is("over", "Complete"));
    let refused = lab.tpu("kjob delete -j theirs -y");
    assert_eq!(refused.code, 4, "{}", refused.report());
    drop(refused.says(&["another data file, for alice", "kubectl delete job theirs"]));
    drop(lab.tpu("kjob delete -j over -y").exits(0));
    drop(lab.tpu("kjob delete --all -y").exits(0).says(&["There is no Job to delete"]));
    assert_eq!(lab.jobs(), ["theirs"]);
}
