//! The keys of the screen do to a Job of a cluster what they do to a window.

use serde_json::json;

use super::lab::Lab;
use crate::common::env::TPU;
use crate::common::terminal::Terminal;

#[test]
fn its_keys_do_what_they_do_to_a_window() {
    let lab = Lab::bare(1);
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    lab.cluster.make("persistentvolumeclaims", &claim);
    let register =
        "register lab --kind kubernetes --context lab -i train:1 -r no-gpu --log-volume data:/data";
    drop(lab.tpu(register).exits(0));
    let window = lab.train("a", "rule=pass");
    lab.wait_starts("a", 1);
    let flavor = r#"{"name":"huge","resources":{"requests":{"nvidia.com/gpu":9}}}"#;
    let waiting = lab.train("b", &format!("-r {flavor}"));
    let terminal = Terminal::new(&lab.env);
    terminal.command(&format!("clear; {TPU} monitor alice; echo code-$?"));
    terminal.shows("▸ 1");
    terminal.shows("loss 0.5");
    terminal.shows("pending");
    // Why one waits, in Kubernetes' words.
    terminal.press("Down");
    terminal.shows("▸ 2");
    terminal.press("e");
    terminal.shows(&format!("Why alice/{waiting} is as it is"));
    terminal.shows("Insufficient nvidia.com/gpu");
    terminal.press("Escape");
    terminal.hides("Why alice/");
    terminal.press("Up");
    terminal.shows("▸ 1");
    terminal.press("l");
    terminal.shows("▼ follow");
    terminal.shows("step ");
    terminal.press("Escape");
    terminal.shows("[1 Jobs]");
    terminal.press("Enter");
    terminal.shows("step ");
    terminal.press("Escape");
    terminal.shows("[1 Jobs]");
    lab.end("a", "exit 7");
    terminal.shows("error: unknown");
    std::fs::remove_file(lab.env.path("a.end")).unwrap();
    terminal.press("r");
    terminal.until("it goes on", || lab.env.jobs("alice").len() == 3);
    lab.wait_starts("a", 2);
    let log = lab.env.job("alice", window)["log_dir"].as_str().unwrap().to_owned();
    assert!(lab.starts("a")[1].contains(&format!("load_from={log}")), "{:?}", lab.starts("a"));
    terminal.hides("error: unknown");
    terminal.press("x");
    terminal.shows("Stop 1 job?");
    terminal.press("y");
    lab.env.wait_status(3, "killed");
    assert!(!lab.jobs().contains(&lab.name(3)), "its Job is gone");
    assert_eq!(lab.shown(waiting)["status"], "pending", "and no other");
    terminal.press("q");
    terminal.shows("code-0");
}
