//! Pods that belong together (`--nodes N`): each knows its rank and where the first is, all of them are one job, and one
//! that breaks ends them all.

use serde_json::json;

use super::lab::Lab;
use crate::common::wait::{wait_for, wait_until};

/// Says who it is, and waits for a file of its rank.
fn script(lab: &Lab) -> String {
    format!(
        "echo rank $TPU_WORKER of $NNODES by $NODE_RANK, first $MASTER_ADDR; \
         until [ -e '{0}/end-'$TPU_WORKER ]; do sleep 0.4; done; . '{0}/end-'$TPU_WORKER",
        lab.env.root()
    )
}

fn end(lab: &Lab, rank: u32, what: &str) {
    let fresh = lab.env.path(&format!("fresh-{rank}"));
    crate::common::tmux::write_file(&fresh, what);
    std::fs::rename(fresh, lab.env.path(&format!("end-{rank}"))).unwrap();
}

fn services(lab: &Lab) -> usize {
    let path = "/api/v1/namespaces/lab/services?labelSelector=tpu.launch";
    lab.cluster.get(path)["items"].as_array().unwrap().len()
}

#[test]
fn each_knows_its_rank_and_the_first_and_all_of_them_are_one_job() {
    let lab = Lab::new();
    let window = lab.run(&script(&lab), "--nodes 3");
    drop(lab.wait_shown(window, "running"));
    let shown = lab.tpu(&format!("show {window}")).exits(0).stdout;
    let nodes = shown.lines().find_map(|line| line.strip_prefix("nodes: ")).unwrap();
    assert_eq!(nodes.split(", ").count(), 2, "where any of them is, and each once: {shown}");
    let name = lab.name(window);
    wait_until("all of them have said who they are", || lab.printed(window).lines().count() == 3);
    let printed = lab.printed(window);
    for rank in 0..3 {
        let line = format!("rank {rank} of 3 by {rank}, first {name}-0.tpu-");
        assert_eq!(printed.matches(&line).count(), 1, "{printed}");
    }
    assert_eq!(services(&lab), 1);
    // One that is done waits for the others.
    end(&lab, 1, "echo done; exit 0");
    wait_until("one is done", || {
        lab.cluster.pods(&name).iter().any(|pod| pod["status"]["phase"] == json!("Succeeded"))
    });
    assert_eq!(lab.shown(window)["status"], "running");
    end(&lab, 0, "exit 0");
    end(&lab, 2, "echo the last; exit 0");
    drop(lab.tpu(&format!("wait {window} --timeout 60s")).exits(0));
    assert_eq!(lab.shown(window)["status"], "finished");
    assert!(lab.logs(window).contains("the last"), "{}", lab.logs(window));
}

#[test]
fn one_that_breaks_ends_them_all_and_a_kill_leaves_nothing() {
    let lab = Lab::new();
    let window = lab.run(&script(&lab), "--nodes 3");
    lab.wait_shown(window, "running");
    end(&lab, 1, "echo broken; exit 5");
    let shown = wait_for("it has failed", || {
        let shown = lab.shown(window);
        (shown["exit_code"] == 5).then_some(shown)
    });
    assert_eq!(shown["status"], "error", "{shown}");
    wait_until("the others are ended", || {
        let pods = lab.cluster.pods(&lab.name(window));
        pods.iter().all(|pod| pod["status"]["phase"] == json!("Failed"))
    });
    drop(lab.tpu(&format!("kill {window} -y")));
    let other = lab.run("sleep 1000", "--nodes 2 -j pair");
    lab.wait_shown(other, "running");
    let before = services(&lab);
    drop(lab.tpu(&format!("kill {other} -y")).exits(0));
    assert!(lab.cluster.pods("pair").is_empty() && services(&lab) < before);
}

#[test]
fn what_waits_for_one_of_them_says_for_which() {
    let lab = Lab::new();
    let flavor = r#"{"name":"both","resources":{"requests":{"nvidia.com/gpu":2}}}"#;
    let window = lab.run("sleep 1000", &format!("--nodes 3 -r {flavor}"));
    let shown = wait_for("it waits", || {
        let shown = lab.shown(window);
        (shown["pending"]["raw"] == "Unschedulable").then_some(shown)
    });
    let why = shown["pending"]["reason"].as_str().unwrap();
    assert!(why.contains(&lab.name(window)) && why.contains("nvidia.com/gpu"), "{why}");
    for (said, says) in [("0", "between 1 and"), ("many", "between 1 and")] {
        let refused = lab.tpu(&format!("run lab -q --nodes {said} -- true"));
        assert_eq!(refused.code, 2, "{}", refused.report());
        assert!(refused.stderr.contains(says), "{}", refused.stderr);
    }
}
