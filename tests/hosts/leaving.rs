//! `uninstall` removes from machines what jobs that are over have left in `~/.tpu`, and nothing else; who does not answer is
//! named and holds up nobody.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::Lab;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

/// The names in a directory.
fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The launch token of a job of alice.
fn token(lab: &Lab, window: u64) -> String {
    let job = lab.env.job("alice", window);
    job["extra_msgs"]["launch"]["token"].as_str().unwrap().to_owned()
}

fn runs(lab: &Lab, host: usize) -> PathBuf {
    lab.hosts.home(host).join(".tpu/runs")
}

#[test]
fn what_jobs_left_on_machines_goes_and_what_is_somebody_else_s_stays() {
    let Some(mut lab) = Lab::with(3, "--max-jobs 4") else { return };
    drop(lab.env.own_crontab());
    for host in ["h1", "h2", "h3"] {
        drop(lab.env.tpu(&format!("run {host} -q -- true")).exits(0));
    }
    for window in 1..=3 {
        lab.env.wait_status(window, "finished");
    }
    drop(lab.env.tpu("clean 2 -y").exits(0));
    let end = lab.env.path("end");
    let stays = format!("until [ -e '{}' ]; do sleep 0.1; done; exit 7", end.display());
    drop(lab.env.tpu_words(&["run", "h1", "-q", "--", "bash", "-c", &stays]).exits(0));
    lab.env.wait_status(4, "running");
    let own = format!("{}.0", token(&lab, 4));
    wait_until("it has begun there", || names(&runs(&lab, 0)).contains(&own));
    // A command of another lab of the same account, and the account's own files.
    let other = runs(&lab, 0).join("another-lab.0");
    std::fs::create_dir_all(&other).unwrap();
    write_file(&other.join("exit"), "0\n");
    write_file(&lab.hosts.home(0).join(".tpu/thesis.tex"), "three years of work\n");
    lab.hosts.shut(2);

    let listed = [
        "h1",
        "1 directory in ~/.tpu of jobs that are over",
        "thesis.tex",
        "alice/4 may be at work",
    ];
    let all = || (names(&runs(&lab, 0)), names(&runs(&lab, 1)), names(&runs(&lab, 2)));
    let before = all();
    drop(lab.env.tpu("uninstall --dry-run").exits(6).says(&listed).says(&["No answer", "h3: "]));
    assert_eq!(all(), before, "a dry run removes nothing");

    drop(lab.env.tpu("uninstall -y").exits(6).says(&["Removed:", "No answer", "h3: "]));
    let left = names(&runs(&lab, 0));
    let kept = [format!("{}.0", token(&lab, 4)), "another-lab.0".to_owned()];
    assert!(kept.iter().all(|name| left.contains(name)) && left.len() == 2, "{left:?}");
    assert!(!lab.hosts.home(1).join(".tpu").exists(), "nothing was left in it");
    let thesis = std::fs::read_to_string(lab.hosts.home(0).join(".tpu/thesis.tex")).unwrap();
    assert_eq!(thesis, "three years of work\n");
    assert_eq!(names(&runs(&lab, 2)), before.2, "it did not answer");

    // The same again finishes, once the machine answers and the job is over.
    lab.env.touch("end");
    let ended = lab.env.wait_status(4, "error");
    assert_eq!(ended["extra_msgs"]["launch"]["exit"], 7, "it went on and kept its exit code");
    lab.hosts.begin(2);
    wait_until("its window is done", || {
        lab.env.job("alice", 4)["extra_msgs"]["launch"]["ended"].is_string()
    });
    let done = lab.env.tpu("uninstall -y --json").exits(0).json();
    let places: Vec<&str> = done["removed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["place"].as_str().unwrap())
        .collect();
    assert_eq!(places, ["h1", "h3"], "{done:#}");
    assert_eq!(done["silent"], json!([]));
    assert!(!lab.hosts.home(2).join(".tpu").exists());
    assert_eq!(names(&runs(&lab, 0)), ["another-lab.0"]);
}
