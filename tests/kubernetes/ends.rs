//! However a run waits or ends in a cluster, it is told with its kind, its reason and Kubernetes' own word.

use serde_json::json;

use super::lab::Lab;
use crate::common::wait::{wait_for, wait_until};

fn pending(lab: &Lab, window: u64, raw: &str) -> String {
    let shown = wait_for(&format!("it waits with {raw}"), || {
        let shown = lab.shown(window);
        (shown["pending"]["raw"] == raw).then_some(shown)
    });
    assert_eq!(shown["status"], "pending", "{shown}");
    shown["pending"]["reason"].as_str().unwrap().to_owned()
}

#[test]
fn what_waits_says_why() {
    let lab = Lab::new();
    let huge =
        lab.run("true", r#"-r {"name":"huge","resources":{"requests":{"nvidia.com/gpu":9}}}"#);
    let why = pending(&lab, huge, "Unschedulable");
    assert!(why.contains("2 Insufficient nvidia.com/gpu") && why.contains("since"), "{why}");
    // Nobody tells who creates a Job that its pods are refused: an event does.
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}});
    lab.cluster.make("resourcequotas", &quota);
    let refused = lab.run("true", "");
    let why = pending(&lab, refused, "FailedCreate");
    assert!(why.contains("exceeded quota: q"), "{why}");
    drop(lab.tpu(&format!("explain {refused}")).exits(0).says(&["exceeded quota"]));
}

#[test]
fn an_image_that_is_not_to_be_had_is_named() {
    let lab = Lab::new();
    let window = lab.run("sleep 1000", "-i nosuch.invalid/x:1");
    wait_until("its image is named", || {
        let explained = lab.tpu(&format!("explain {window}")).exits(0).stdout;
        explained.contains("the image nosuch.invalid/x:1 cannot be pulled")
            && explained.contains("ImagePullBackOff")
    });
    drop(lab.tpu(&format!("kill {window} -y")).exits(0));
    assert!(lab.jobs().is_empty());
}

#[test]
fn each_end_has_its_kind_and_its_reason() {
    let lab = Lab::new();
    for (fault, error, says, raw) in
        [("oom", "oom", "exit code 137", "OOMKilled"), ("evict", "lost", "put it out", "Evicted")]
    {
        let window = lab.run("sleep 1000", "");
        let pod = lab.pod_in(window, "Running");
        lab.hit(&pod, fault);
        let shown = wait_for(fault, || {
            let shown = lab.shown(window);
            (shown["error"] == error).then_some(shown)
        });
        let evidence = shown["evidence"].to_string();
        assert!(evidence.contains(says) && evidence.contains(raw), "{fault}: {shown}");
    }
    let window = lab.run("echo said; exit 3", "");
    let shown = wait_for("its end", || {
        let shown = lab.shown(window);
        (shown["exit_code"] == 3).then_some(shown)
    });
    assert_eq!(shown["error"], "unknown", "{shown}");
    // Its Job stays in the cluster.
    drop(lab.tpu(&format!("explain {window}")).exits(0).says(&["engine: runs it no more\n"]));
    let never = lab.run_words(&["/no/such/program"], "");
    wait_until("it could not begin", || lab.shown(never)["error"] == "setup");
}

#[test]
fn a_place_that_is_taken_by_higher_rank_is_a_preemption_and_comes_back_once() {
    let lab = Lab::bare(1);
    drop(lab.tpu("register lab --kind kubernetes --context lab -i train:1 -r small-gpu").exits(0));
    let class = json!({"metadata": {"name": "high"}, "value": 1000});
    let path = "/apis/scheduling.k8s.io/v1/priorityclasses";
    assert_eq!(lab.cluster.ask("POST", path, Some(&class)).status, 201);
    let flavor = r#"{"name":"both","resources":{"requests":{"nvidia.com/gpu":2}}}"#;
    let low = lab.train("low", &format!("-r {flavor}"));
    lab.wait_starts("low", 1);
    lab.wait_shown(low, "running");
    let high = lab.train("high", "--priority-class high");
    lab.wait_starts("high", 1);
    // The Job makes another pod by itself, which waits for its place: nobody begins it a second time.
    let why = pending(&lab, low, "Preempted");
    let by = format!("Preempted by lab/{}", lab.name(high));
    for says in ["higher rank", &by, "nvidia.com/gpu"] {
        assert!(why.contains(says), "{says}: {why}");
    }
    drop(lab.tpu(&format!("kill {high} -y")).exits(0));
    lab.wait_starts("low", 2);
    wait_until("it runs again", || lab.shown(low)["status"] == "running");
    assert_eq!(lab.env.jobs("alice").len(), 2, "no attempt of ours beside it");
}

#[test]
fn what_is_preempted_for_good_is_brought_back_by_rule_once() {
    let lab = Lab::new();
    let _monitor = lab.daemon(&[]);
    let first = lab.train("a", "rule=preempted:rerun");
    lab.wait_starts("a", 1);
    // So says a server of 1.26 and later, where such an end is the Job's.
    lab.hit(&lab.pod_in(first, "Running"), "preempt");
    lab.wait_starts("a", 2);
    let taken = lab.env.job("alice", first);
    assert_eq!(taken["error"], "preempted", "{taken}");
    let evidence = lab.shown(first)["evidence"].to_string();
    assert!(
        evidence.contains("higher rank") && evidence.contains("DisruptionTarget"),
        "{evidence}"
    );
    let second = taken["extra_msgs"]["child"].as_u64().unwrap();
    lab.wait_shown(second, "running");
    assert_eq!((lab.env.jobs("alice").len(), lab.starts("a").len()), (2, 2));
    drop(lab.tpu(&format!("kill {second} -y")).exits(0));
}

#[test]
fn what_fails_before_the_command_says_with_what() {
    let lab = Lab::bare(1);
    let closed = lab.env.path("closed");
    crate::common::tmux::write_file(&closed, "a file, where a directory is wanted");
    // Its log directory cannot be made: nothing can be written there.
    let volume = format!("host{}:/logs", closed.display());
    let line = format!(
        "register lab --kind kubernetes --context lab -i train:1 -r no-gpu --log-volume {volume} --log-root /logs"
    );
    drop(lab.tpu(&line).exits(0));
    let window = lab.run("true", "");
    let shown = wait_for("it has failed", || {
        let shown = lab.shown(window);
        (shown["error"] == "setup").then_some(shown)
    });
    let evidence = shown["evidence"].to_string();
    assert!(evidence.contains("before its command") && evidence.contains("mkdir"), "{evidence}");
}

#[test]
fn what_is_lost_is_brought_back_by_rule_once() {
    let lab = Lab::new();
    let _monitor = lab.daemon(&[]);
    let first = lab.train("a", "rule=lost:rerun");
    lab.wait_starts("a", 1);
    let pod = lab.pod_in(first, "Running");
    lab.hit(&pod, "evict");
    lab.wait_starts("a", 2);
    wait_until("the second one runs", || lab.env.jobs("alice").len() == 2);
    let second = lab.env.job("alice", first)["extra_msgs"]["child"].as_u64().unwrap();
    lab.wait_shown(second, "running");
    assert_ne!(lab.name(first), lab.name(second));
    drop(lab.tpu(&format!("kill {second} -y")).exits(0));
}

#[test]
fn what_is_lost_with_its_node_is_brought_back_elsewhere_once() {
    let lab = Lab::new();
    let _monitor = lab.daemon(&[]);
    let first = lab.train("a", "rule=lost:rerun");
    lab.wait_starts("a", 1);
    let pod = lab.pod_in(first, "Running");
    let node_of = |pod: &str| {
        let pod = lab.cluster.get(&format!("/api/v1/namespaces/lab/pods/{pod}"));
        pod["spec"]["nodeName"].as_str().unwrap().to_owned()
    };
    let node = node_of(&pod);
    // A node that is silent may speak again: nothing is begun for that.
    lab.hit(&pod, "node-lost");
    wait_until("that is said", || {
        let explained = lab.tpu(&format!("explain {first}")).exits(0).stdout;
        explained.contains(&format!("its node {node} does not answer"))
    });
    assert_eq!((&lab.shown(first)["status"], lab.starts("a").len()), (&json!("running"), 1));
    // It has been silent for so long that the cluster has given it up.
    let wish = json!({"do": "node-lost", "ago_s": 1000});
    assert_eq!(lab.cluster.fault(&format!("pods/{pod}"), &wish).status, 200);
    lab.wait_starts("a", 2);
    let lost = lab.env.job("alice", first);
    assert_eq!(lost["error"], "lost", "{lost}");
    let told = lab.shown(first);
    assert!(told["evidence"].to_string().contains(&format!("{node} does not answer")), "{told}");
    assert!(told["evidence"].to_string().contains("Terminating"), "{told}");
    let second = lost["extra_msgs"]["child"].as_u64().unwrap();
    lab.wait_shown(second, "running");
    assert_ne!(node_of(&lab.pod_in(second, "Running")), node);
    let path = format!("/apis/batch/v1/namespaces/lab/jobs/{}", lab.name(second));
    let avoided = &lab.cluster.get(&path)["spec"]["template"]["spec"]["affinity"]["nodeAffinity"];
    assert!(avoided.to_string().contains(&node), "{avoided}");
    assert_eq!((lab.env.jobs("alice").len(), lab.starts("a").len()), (2, 2));
}

#[test]
fn a_limit_on_its_time_ends_it_and_what_nobody_sees_to_is_refused() {
    let lab = Lab::new();
    let file = lab.env.path("code-alice/job.yaml");
    let run = |keys: &str| {
        let text = format!("target: lab\n{keys}\ncommand: sleep 1000\n");
        crate::common::tmux::write_file(&file, &text);
        lab.tpu(&format!("run {} -q --json", file.display()))
    };
    let window = run("timeout: 1s").exits(0).json()["launched"]["window"].as_u64().unwrap();
    wait_until("its time is over", || lab.shown(window)["error"] == "timeout");
    for keys in ["idle_timeout: 1m", "setup: [{name: x, run: 'true'}]", "workers: [0]"] {
        let refused = run(keys);
        assert_eq!(refused.code, 4, "{keys}: {}", refused.report());
    }
}
