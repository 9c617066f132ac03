//! A server that refuses, is silent, forgets, or does not know any more who asks: nothing is deleted, nothing is doubled,
//! nothing is taken for failed, and no look takes longer than it may.

use std::time::Duration;

use serde_json::{Value, json};

use super::lab::Lab;
use crate::common::tmux::{write_file, write_script};
use crate::common::wait::wait_until;
use crate::common::within::within;

/// A look may take so long, whatever the server does.
const LOOK: Duration = Duration::from_secs(3);

fn weather(lab: &Lab, status: u16, seconds: f64) {
    let wish = json!({"status": status, "for_s": seconds});
    assert_eq!(lab.cluster.fault("api", &wish).status, 200);
}

#[test]
fn a_server_that_is_asked_too_often_is_asked_again() {
    let lab = Lab::new();
    weather(&lab, 429, 1.5);
    let window = lab.run("sleep 1000", "");
    assert_eq!(lab.jobs(), [lab.name(window)]);
}

#[test]
fn what_cannot_be_asked_is_unknown_and_nothing_happens_to_it() {
    let lab = Lab::new();
    let _monitor = lab.daemon(&[]);
    let window = lab.train("a", "rule=lost:rerun");
    lab.wait_starts("a", 1);
    lab.wait_shown(window, "running");
    weather(&lab, 500, 600.0);
    let shown = within(LOOK, "a look", || lab.shown(window));
    assert!(shown["unknown"].to_string().contains("HTTP 500"), "{shown}");
    let killed = lab.tpu(&format!("kill {window} -y"));
    assert_ne!(killed.code, 0, "{}", killed.report());
    weather(&lab, 500, 0.0);
    wait_until("it answers again", || lab.shown(window)["unknown"] == Value::Null);
    assert_eq!(lab.env.jobs("alice").len(), 1, "nothing was begun anew");
    assert_eq!(lab.starts("a").len(), 1);
}

/// A program that hands out credentials, and hangs as long as a file is there.
fn plugin(lab: &Lab) -> std::path::PathBuf {
    let (plugin, hangs) = (lab.env.path("plugin"), lab.env.path("hangs"));
    let token = lab.cluster.token_of("lab");
    write_script(
        &plugin,
        &format!(
            "trap '' PIPE; echo called >>'{1}'; while [ -e '{0}' ]; do sleep 0.4; done\n\
             echo '{{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": \"ExecCredential\", \
             \"status\": {{\"token\": \"{token}\"}}}}'\necho done >>'{1}'",
            hangs.display(),
            lab.env.path("calls").display()
        ),
    );
    let text = std::fs::read_to_string(lab.cluster.kubeconfig()).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["users"] = json!([{"name": "lab", "user": {"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": plugin, "interactiveMode": "Never",
    }}}]);
    let file = lab.env.path("kubeconfig");
    write_file(&file, &config.to_string());
    file
}

#[test]
fn credentials_that_are_not_handed_out_hold_up_nobody() {
    let mut lab = Lab::bare(1);
    let file = plugin(&lab);
    lab.env.set("KUBECONFIG", file.as_os_str());
    drop(lab.tpu("register lab --kind kubernetes --context lab -i a -r no-gpu").exits(0));
    let (window, other) = (lab.train("a", ""), lab.train("b", ""));
    lab.wait_starts("a", 1);
    lab.wait_starts("b", 1);
    let monitor = lab.daemon(&[]);
    write_file(&lab.env.path("hangs"), "");
    let shown = within(LOOK, "a look", || lab.shown(window));
    assert!(shown["unknown"].to_string().contains("credentials"), "{shown}");
    for line in ["run lab alice -q -- true", &format!("kill {other} -y")] {
        let refused = lab.tpu(line);
        assert_eq!(refused.code, 6, "{line}: {}", refused.report());
    }
    std::fs::remove_file(lab.env.path("hangs")).unwrap();
    wait_until("it is known again", || lab.shown(window)["status"] == "running");
    assert_eq!((lab.starts("a").len(), lab.starts("b").len()), (1, 1), "nothing was begun");
    // Whoever was told that it is not killed can kill it now, unless that is done already.
    drop(lab.tpu(&format!("kill {other} -y")));
    lab.wait_shown(other, "killed");
    assert_eq!(lab.jobs(), [lab.name(window)]);
    lab.end("a", "echo the last line; exit 0");
    lab.env.wait_status(window, "finished");
    drop(monitor);
    // Those that hung have gone on: nothing of them is left.
    wait_until("all of them are done", || {
        let calls = std::fs::read_to_string(lab.env.path("calls")).unwrap_or_default();
        calls.matches("called").count() == calls.matches("done").count()
    });
}

#[test]
fn a_creation_that_fails_in_the_open_is_settled_and_never_doubled() {
    let lab = Lab::new();
    weather(&lab, 500, 2.0);
    let begun = lab.tpu("run lab -q -- sleep 1000");
    assert_eq!(begun.code, 6, "{}", begun.report());
    wait_until("it answers again", || lab.cluster.ask("GET", "/version", None).status == 200);
    wait_until("it is settled", || {
        drop(lab.tpu("check alice"));
        lab.env
            .jobs("alice")
            .iter()
            .all(|job| job["extra_msgs"]["launch"]["confirmed"] == true || job["error"] == "launch")
    });
    assert!(lab.jobs().len() <= 1, "{:?}", lab.jobs());
}

#[test]
fn a_watch_that_is_too_old_is_begun_anew() {
    let lab = Lab::new();
    let _monitor = lab.daemon(&[]);
    let window = lab.train("a", "");
    lab.wait_starts("a", 1);
    lab.env.wait_status(window, "running");
    assert_eq!(lab.cluster.fault("watch", &json!({"do": "410"})).status, 200);
    lab.end("a", "echo the last line; exit 0");
    lab.env.wait_status(window, "finished");
    assert!(lab.logs(window).ends_with("the last line\n"));
}

#[test]
fn credentials_that_have_run_out_are_fetched_anew() {
    let mut lab = Lab::bare(1);
    let (calls, plugin) = (lab.env.path("calls"), lab.env.path("plugin"));
    let token = lab.cluster.token_of("lab");
    // At first it hands out what has run out meanwhile: kube asks twice for one connection, for a certificate and for a
    // token.
    write_script(
        &plugin,
        &format!(
            "echo called >>'{0}'; token={token}; [ $(wc -l <'{0}') -gt 2 ] || token=stale\n\
             echo '{{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": \"ExecCredential\", \
             \"status\": {{\"token\": \"'$token'\"}}}}'",
            calls.display()
        ),
    );
    let text = std::fs::read_to_string(lab.cluster.kubeconfig()).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["users"] = json!([{"name": "lab", "user": {"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": plugin, "interactiveMode": "Never",
    }}}]);
    let file = lab.env.path("kubeconfig");
    write_file(&file, &config.to_string());
    lab.env.set("KUBECONFIG", file.as_os_str());
    drop(lab.tpu("register lab --kind kubernetes --context lab -i a -r no-gpu").exits(0));
    let window = lab.run("sleep 1000", "");
    assert_eq!(lab.jobs(), [lab.name(window)]);
    let called = std::fs::read_to_string(&calls).unwrap().lines().count();
    assert!(called > 2, "and once more when it was refused: {called}");
    // Whom the server does not know at all is told so.
    config["users"] = json!([{"name": "lab", "user": {"token": "nobody"}}]);
    write_file(&file, &config.to_string());
    let refused = lab.tpu("run lab -q -- true");
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("does not know who asks"), "{}", refused.stderr);
}

#[test]
fn a_config_that_cannot_be_used_says_what_is_wrong_with_it() {
    let mut lab = Lab::bare(1);
    for (text, says) in [("{", "kubeconfig"), ("{}", "context")] {
        let file = lab.env.path("kubeconfig");
        write_file(&file, text);
        lab.env.set("KUBECONFIG", file.as_os_str());
        let refused = lab.tpu("register lab --kind kubernetes --context nowhere -i a -r no-gpu");
        assert_ne!(refused.code, 0, "{text}");
        assert!(refused.stderr.contains(says), "{text}: {}", refused.stderr);
    }
}
