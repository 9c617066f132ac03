//! The real `kubectl` against the simulated cluster: what it prints is what it prints of a real one.

use std::io::Write as _;
use std::path::PathBuf;

use tpu_system::sys::proc::{self, Spawn};

use super::client::Cluster;
use crate::common::tmux::write_file;
use crate::common::wait::wait_for;

/// A `kubectl` with a home of its own.
struct Kubectl {
    cluster: Cluster,
    home: tempfile::TempDir,
}

impl Kubectl {
    /// `None`, and a word why, where there is none.
    fn new() -> Option<Self> {
        let there = ["/usr/bin/kubectl", "/usr/local/bin/kubectl"]
            .iter()
            .any(|path| PathBuf::from(path).exists());
        if !there {
            let said =
                writeln!(std::io::stderr(), "skipped: there is no kubectl (kubernetes-client)");
            drop(said);
            return None;
        }
        Some(Self { cluster: Cluster::with_nodes(4), home: tempfile::tempdir().unwrap() })
    }

    fn spawn(&self, words: &[&str]) -> Spawn {
        Spawn::new("kubectl")
            .args(words.iter().copied())
            .env("HOME", self.home.path().as_os_str())
            .env("KUBECONFIG", self.cluster.kubeconfig().as_os_str())
    }

    /// What it prints; its complaint and a mark if it fails.
    fn says(&self, words: &[&str]) -> String {
        let output = proc::run(&self.spawn(words)).unwrap();
        if output.status.success() {
            output.text()
        } else {
            format!("failed: {}", output.complaint())
        }
    }

    /// A manifest as a file.
    fn file(&self, name: &str, text: &str) -> String {
        let path = self.home.path().join(name);
        write_file(&path, text);
        path.to_str().unwrap().to_owned()
    }
}

const JOB: &str = "apiVersion: batch/v1
kind: Job
metadata: {name: applied}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: 'example.org/train:1', command: [sh, -c, 'echo begun; echo done']}]
";

fn columns(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn apply_get_describe_logs_and_delete_do_what_they_do_on_a_real_cluster() {
    let Some(kubectl) = Kubectl::new() else { return };
    let file = kubectl.file("job.yaml", JOB);
    assert_eq!(kubectl.says(&["apply", "-f", &file]).trim(), "job.batch/applied created");
    assert_eq!(kubectl.says(&["apply", "-f", &file]).trim(), "job.batch/applied unchanged");
    let waited =
        kubectl.says(&["wait", "--for=condition=complete", "job/applied", "--timeout=60s"]);
    assert_eq!(waited.trim(), "job.batch/applied condition met");
    let jobs = kubectl.says(&["get", "jobs"]);
    let lines: Vec<Vec<String>> = jobs.lines().map(columns).collect();
    assert_eq!(lines[0], ["NAME", "COMPLETIONS", "DURATION", "AGE"], "{jobs}");
    assert_eq!(lines[1][..2], ["applied", "1/1"], "{jobs}");
    let pods = kubectl.says(&["get", "pods", "-o", "wide"]);
    let header = columns(pods.lines().next().unwrap());
    let wide = "NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES";
    assert_eq!(header.join(" "), wide, "{pods}");
    let pod = columns(pods.lines().nth(1).unwrap());
    assert_eq!(pod[1..4], ["0/1", "Completed", "0"], "{pods}");
    assert_eq!(kubectl.says(&["logs", "job/applied"]), "begun\ndone\n");
    let told = kubectl.says(&["describe", "job", "applied"]);
    assert!(told.contains("0 Active") && told.contains("1 Succeeded / 0 Failed"), "{told}");
    assert!(told.contains("SuccessfulCreate") && told.contains("Created pod: applied-"), "{told}");
    let told = kubectl.says(&["describe", "pod", &pod[0]]);
    assert!(told.contains("Controlled By:  Job/applied"), "{told}");
    assert!(kubectl.says(&["get", "job", "applied", "-o", "yaml"]).contains("backoffLimit: 0"));
    let changed = kubectl.says(&["label", "job", "applied", "by=hand"]);
    assert_eq!(changed.trim(), "job.batch/applied labeled");
    let changed = kubectl.says(&["annotate", "job", "applied", "why=so"]);
    assert!(changed.contains("annotate"), "{changed}");
    assert!(
        kubectl.says(&["get", "jobs", "-l", "by=hand", "-o", "name"]).contains("job.batch/applied")
    );
    assert_eq!(kubectl.says(&["delete", "job", "applied"]).trim(), "job.batch \"applied\" deleted");
    wait_for("its pod goes with it", || kubectl.cluster.pods("applied").is_empty().then_some(()));
    let gone = kubectl.says(&["get", "job", "applied"]);
    assert!(gone.contains("jobs.batch \"applied\" not found"), "{gone}");
}

#[test]
fn a_job_is_created_in_protobuf_and_its_log_is_followed_to_its_end() {
    let Some(kubectl) = Kubectl::new() else { return };
    let script = "for n in 1 2 3; do echo line $n; sleep 0.1; done";
    let made = kubectl.says(&[
        "create",
        "job",
        "made",
        "--image=example.org/x:1",
        "--",
        "sh",
        "-c",
        script,
    ]);
    assert_eq!(made.trim(), "job.batch/made created");
    kubectl.cluster.pod_in("made", "Running");
    assert_eq!(kubectl.says(&["logs", "-f", "job/made"]), "line 1\nline 2\nline 3\n");
    let again = kubectl.says(&["create", "job", "made", "--image=x:1", "--", "true"]);
    assert!(again.contains("jobs.batch \"made\" already exists"), "{again}");
    let told = kubectl.says(&["logs", "job/made", "--tail=1"]);
    assert_eq!(told, "line 3\n");
}

#[test]
fn a_watch_prints_what_becomes_of_a_pod() {
    let Some(kubectl) = Kubectl::new() else { return };
    let output = kubectl.home.path().join("watched");
    let script = format!("exec kubectl get pods -w > {}", output.display());
    let watching = Spawn { program: "sh".into(), ..kubectl.spawn(&["-c", &script]) };
    let thread = std::thread::spawn(move || {
        let mut watching = watching;
        watching.timeout = std::time::Duration::from_secs(5);
        drop(proc::run(&watching.own_group()));
    });
    kubectl.cluster.run("seen", "echo x");
    kubectl.cluster.job_is("seen", "Complete");
    let lines = wait_for("the watch has printed the end", || {
        let text = std::fs::read_to_string(&output).ok()?;
        text.contains("Completed").then_some(text)
    });
    assert!(lines.lines().next().unwrap().starts_with("NAME"), "{lines}");
    thread.join().unwrap();
}

#[test]
fn lab_may_use_its_namespace_and_nothing_else() {
    let Some(kubectl) = Kubectl::new() else { return };
    let may = |words: &[&str]| {
        let mut all = vec!["--context", "lab", "auth", "can-i"];
        all.extend(words);
        let output = proc::run(&kubectl.spawn(&all)).unwrap();
        output.text().lines().last().unwrap_or_default().to_owned()
    };
    assert_eq!(may(&["create", "jobs.batch"]), "yes");
    assert_eq!(may(&["get", "pods", "--subresource=log"]), "yes");
    assert_eq!(may(&["create", "jobs.batch", "-n", "default"]), "no");
    assert_eq!(may(&["list", "nodes"]), "no");
    let list = kubectl.says(&["--context", "lab", "get", "nodes"]);
    let refused = "nodes is forbidden: User \"lab\" cannot list resource \"nodes\" in API group \"\" at the cluster scope";
    assert!(list.contains(refused), "{list}");
    assert_eq!(kubectl.says(&["auth", "can-i", "*", "*"]).trim(), "yes");
}
