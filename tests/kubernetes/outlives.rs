//! What a job has printed outlives its pod, and is kept whole and once, whatever the cluster does meanwhile.

use std::path::Path;

use serde_json::json;

use super::lab::Lab;
use crate::common::wait::{wait_for, wait_until};

/// Prints numbered lines until it is told to end, and writes each into a file that outlives it before it prints it:
/// whoever is killed in between has written one that nobody saw, and never printed one that the file lacks.
fn counting(lab: &Lab, name: &str) -> u64 {
    let truth = lab.env.path(&format!("{name}.truth"));
    let stop = lab.env.path(&format!("{name}.stop"));
    let script = format!(
        "n=0; until [ -e '{1}' ]; do n=$((n+1)); echo \"$n of many\" >>'{0}'; echo \"$n of many\"; sleep 0.001; done",
        truth.display(),
        stop.display()
    );
    lab.run(&script, "")
}

fn lines(path: &Path) -> usize {
    std::fs::read(path).map_or(0, |bytes| memchr::memchr_iter(b'\n', &bytes).count())
}

/// The kept log is what was printed, byte for byte: `all` of it, or as much as was printed before the pod went.
#[track_caller]
fn assert_whole(lab: &Lab, window: u64, name: &str, all: bool) {
    let truth = std::fs::read_to_string(lab.env.path(&format!("{name}.truth"))).unwrap();
    let kept = lab.logs(window);
    if !truth.starts_with(&kept) {
        let differs = truth.lines().zip(kept.lines()).enumerate().find(|(_, (a, b))| a != b);
        let lengths = (truth.len(), kept.len());
        panic!("{name}: what is kept is not what was printed: {lengths:?} bytes, {differs:?}");
    }
    assert!(!kept.is_empty(), "{name}: nothing is kept");
    if all {
        assert_eq!(kept.len(), truth.len(), "{name}: all of it");
    }
}

#[test]
fn the_log_of_a_pod_that_is_gone_is_here_whole() {
    let lab = Lab::new();
    let window = counting(&lab, "a");
    wait_until("it prints", || lines(&lab.env.path("a.truth")) > 300);
    crate::common::tmux::write_file(&lab.env.path("a.stop"), "");
    drop(lab.tpu(&format!("wait {window} --timeout 30s")).exits(0));
    let name = lab.name(window);
    let path = format!("/apis/batch/v1/namespaces/lab/jobs/{name}");
    let body = json!({"propagationPolicy": "Background"});
    assert_eq!(lab.cluster.ask("DELETE", &path, Some(&body)).status, 200);
    wait_until("its pods are gone", || lab.cluster.pods(&name).is_empty());
    assert_whole(&lab, window, "a", true);
    assert_eq!(lab.shown(window)["status"], "finished", "its end is known without its Job");
}

#[test]
fn the_log_of_a_job_that_was_cleaned_away_is_here_when_others_have_begun_since() {
    let lab = Lab::new();
    let window = lab.run("echo last words; exit 3", "");
    wait_until("it has failed", || lab.shown(window)["exit_code"] == 3);
    let token = lab.env.job("alice", window)["extra_msgs"]["launch"]["token"].clone();
    drop(lab.tpu("clean alice -y --force").exits(0));
    // Two days later.
    let note = lab.env.path(&format!("tpu-state/kubernetes/{}/note", token.as_str().unwrap()));
    let text = std::fs::read_to_string(&note).unwrap();
    let mut said: serde_json::Value = serde_json::from_str(&text).unwrap();
    said["at"] = json!(said["at"].as_i64().unwrap() - 200_000);
    crate::common::tmux::write_file(&note, &said.to_string());
    lab.run("true", "");
    let archived = lab.tpu(&format!("archive logs {window}")).exits(0);
    assert!(archived.stdout.contains("last words"), "{}", archived.report());
}

#[test]
fn monitor_keeps_what_is_printed_until_somebody_deletes_the_job() {
    let lab = Lab::new();
    let _monitor = lab.daemon(&[]);
    let window = counting(&lab, "a");
    let token = lab.env.job("alice", window)["extra_msgs"]["launch"]["token"].clone();
    let kept = format!("tpu-state/kubernetes/{}/output.log", token.as_str().unwrap());
    wait_until("the daemon keeps it", || lines(&lab.env.path(&kept)) > 5);
    // One look may have fetched those: more of them come by the stream that it has begun.
    let looked = lines(&lab.env.path(&kept));
    wait_until("the daemon follows it", || lines(&lab.env.path(&kept)) > looked + 300);
    let name = lab.name(window);
    // The last that is written may not be printed yet.
    let before = lines(&lab.env.path("a.truth")) - 1;
    let path = format!("/apis/batch/v1/namespaces/lab/jobs/{name}");
    let body = json!({"propagationPolicy": "Background"});
    assert_eq!(lab.cluster.ask("DELETE", &path, Some(&body)).status, 200);
    wait_until("its pods are gone", || lab.cluster.pods(&name).is_empty());
    let shown = wait_for("it is over", || {
        let shown = lab.shown(window);
        (shown["status"] == "killed" || shown["error"] != json!(null)).then_some(shown)
    });
    assert!(shown.to_string().contains("deleted"), "{shown}");
    wait_until("what was printed before is kept", || lab.logs(window).lines().count() >= before);
    assert_whole(&lab, window, "a", false);
}

#[test]
fn a_log_that_cannot_be_had_is_asked_for_again_and_never_the_jobs_failure() {
    let lab = Lab::new();
    for (fault, name) in [("500", "a"), ("404", "b"), ("break", "c"), ("hang", "d"), ("400", "e")] {
        let window = counting(&lab, name);
        wait_until("it prints", || lines(&lab.env.path(&format!("{name}.truth"))) > 100);
        let wish =
            json!({"do": fault, "for_s": if fault == "404" { 0.2 } else { 2.0 }, "after": 1000});
        assert_eq!(lab.cluster.fault("logs", &wish).status, 200);
        assert_eq!(lab.shown(window)["error"], json!(null), "{fault}");
        crate::common::tmux::write_file(&lab.env.path(&format!("{name}.stop")), "");
        if fault == "404" {
            wait_until("the fault is over", || {
                let pod = lab.cluster.pods(&lab.name(window))[0]["metadata"]["name"].clone();
                let log = format!("/api/v1/namespaces/lab/pods/{}/log", pod.as_str().unwrap());
                lab.cluster.ask("GET", &log, None).status == 200
            });
        }
        drop(lab.tpu(&format!("wait {window} --timeout 60s")).exits(0));
        assert_eq!(lab.shown(window)["status"], "finished", "{fault}");
        assert_whole(&lab, window, name, true);
    }
}

/// The daemon follows what a job prints, and has come some way.
#[track_caller]
fn wait_followed(lab: &Lab, window: u64) {
    let token = lab.env.job("alice", window)["extra_msgs"]["launch"]["token"].clone();
    let kept = format!("tpu-state/kubernetes/{}/output.log", token.as_str().unwrap());
    wait_until("the daemon keeps it", || lines(&lab.env.path(&kept)) > 5);
    // One look may have fetched those: more of them come by the stream that it has begun.
    let looked = lines(&lab.env.path(&kept));
    wait_until("the daemon follows it", || lines(&lab.env.path(&kept)) > looked + 300);
}

#[test]
fn the_log_of_a_pod_that_somebody_deletes_or_whose_node_is_gone_is_here() {
    let lab = Lab::new();
    let _monitor = lab.daemon(&[]);
    for (fault, name) in [("delete", "a"), ("node-lost", "b")] {
        let window = counting(&lab, name);
        wait_followed(&lab, window);
        let pod = lab.pod_in(window, "Running");
        // The last that is written may not be printed yet.
        let before = lines(&lab.env.path(&format!("{name}.truth"))) - 1;
        lab.hit(&pod, fault);
        wait_until("what was printed before is kept", || {
            lab.printed(window).lines().count() >= before
        });
        // Another pod may print beside it: what is compared is what the first one has printed.
        let truth = std::fs::read_to_string(lab.env.path(&format!("{name}.truth"))).unwrap();
        let first: String = truth.split_inclusive('\n').take(before).collect();
        assert!(lab.printed(window).starts_with(&first), "{fault}: byte for byte");
        crate::common::tmux::write_file(&lab.env.path(&format!("{name}.stop")), "");
    }
}

#[test]
fn the_log_of_a_job_that_went_by_its_ttl_is_here_whole() {
    let lab = Lab::new();
    let _monitor = lab.daemon(&[]);
    let (truth, stop) = (lab.env.path("a.truth"), lab.env.path("a.stop"));
    let script = format!(
        "n=0; until [ -e '{1}' ]; do n=$((n+1)); echo \"$n of many\" >>'{0}'; echo \"$n of many\"; sleep 0.001; done",
        truth.display(),
        stop.display()
    );
    // Longer than the daemon needs to look, also where much else is done.
    let window = lab.run(&script, "--ttl 30");
    wait_followed(&lab, window);
    let name = lab.name(window);
    crate::common::tmux::write_file(&stop, "");
    wait_until("its Job is gone by itself", || !lab.jobs().contains(&name));
    wait_until("it is over", || lab.shown(window)["status"] != "running");
    let shown = lab.shown(window);
    assert_eq!(shown["status"], "finished", "{shown}");
    assert_whole(&lab, window, "a", true);
}

#[test]
fn whoever_reads_at_the_same_time_doubles_nothing() {
    let lab = Lab::new();
    let _monitor = lab.daemon(&[]);
    let window = counting(&lab, "a");
    wait_until("it prints", || lines(&lab.env.path("a.truth")) > 100);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    drop(lab.tpu(&format!("logs {window}")).exits(0));
                }
            });
        }
    });
    crate::common::tmux::write_file(&lab.env.path("a.stop"), "");
    drop(lab.tpu(&format!("wait {window} --timeout 30s")).exits(0));
    assert_whole(&lab, window, "a", true);
}
