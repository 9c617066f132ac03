//! Wherever jobs are chosen by where they are, a pattern, a pool or a tag stands for its machines.

use super::Lab;

/// The windows that a choice shows.
fn shown(lab: &Lab, choice: &str) -> Vec<u64> {
    let jobs = lab.env.tpu(&format!("check alice {choice} --json")).exits(0).json();
    let windows = jobs["jobs"].as_array().unwrap().iter();
    windows.map(|job| job["window"].as_u64().unwrap()).collect()
}

#[test]
fn by_patterns_pools_and_tags() {
    let Some(lab) = Lab::with(3, "--max-jobs 2 --tag old") else { return };
    drop(lab.env.tpu("hosts set h[2-3] --pool lab").exits(0));
    for name in ["h1", "h2", "h3", "local"] {
        drop(lab.env.tpu(&format!("run {name} -q -- sleep 600")).exits(0));
    }
    assert_eq!(shown(&lab, "tpu:h[1,3]"), [1, 3]);
    assert_eq!(shown(&lab, "tpu:lab"), [2, 3]);
    assert_eq!(shown(&lab, "tpu:old"), [1, 2, 3]);
    drop(lab.env.tpu("check alice tpu:h[1-2").exits(2).says(&["column"]));
    drop(lab.env.tpu("check alice tpu:h[1-9]").exits(3).says(&["h4"]));
    drop(lab.env.tpu("kill tpu:lab -y").exits(0));
    lab.env.wait_status(2, "killed");
    lab.env.wait_status(3, "killed");
    assert_eq!(lab.env.job("alice", 1)["status"], "running");
    drop(lab.env.tpu("kill --all -y").exits(0));
}
