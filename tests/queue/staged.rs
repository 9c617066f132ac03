//! What waits begins with the code that it was submitted with, whatever has become of that meanwhile.

use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

use super::Lab;

/// A lab in which something runs; what is submitted waits until that is killed.
fn busy() -> (Lab, u64) {
    let lab = Lab::new(1);
    let first = lab.submit("local");
    (lab, first)
}

/// What a job has written into `said` of the lab.
fn said(lab: &Lab) -> String {
    String::from_utf8(lab.env.wait_file("said")).unwrap()
}

/// Code that says which it is, and where it runs.
fn telling(lab: &Lab, which: &str) -> String {
    format!("echo {which} in $PWD > {}.new && mv {0}.new {0}\nexec sleep 1000\n", {
        lab.env.path("said").display().to_string()
    })
}

/// The directory in which the copies of the user's code lie.
fn copies(lab: &Lab) -> Vec<std::path::PathBuf> {
    let jobs = lab.env.state_of("alice", 1);
    let list = std::fs::read_dir(jobs.ancestors().nth(3).unwrap().join("stage/alice"));
    let mut all: Vec<_> = list.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

#[test]
fn it_runs_the_code_of_its_submission_from_its_own_copy() {
    let (lab, first) = busy();
    lab.env.code("alice", "which.sh", &telling(&lab, "old"));
    let waits = lab.submit_what("local", "bash which.sh");
    let late = lab.submit_what("local --stage-late", "bash which.sh");
    // The file is edited, its directory stands in another slot by now, and another directory in its own.
    lab.env.code("alice", "which.sh", &telling(&lab, "new"));
    std::fs::create_dir(lab.env.path("elsewhere")).unwrap();
    let elsewhere = lab.env.path("elsewhere");
    let job_dir = lab.env.data()["users"]["alice"]["working_dir"]["1"].clone();
    drop(lab.env.tpu(&format!("set-dir {} 1 alice", elsewhere.display())).exits(0));
    let shown = lab.env.tpu("check --json").exits(0).json();
    let shown = shown["jobs"].as_array().unwrap().iter();
    let dirs: Vec<_> =
        shown.filter(|job| job["window"] == waits).map(|job| &job["dir"]["path"]).collect();
    assert_eq!(dirs, [&job_dir], "also while it waits");
    lab.kill(first);
    lab.wait_running(&[waits]);
    assert!(said(&lab).starts_with("old in "), "{}", said(&lab));
    let job = lab.env.job("alice", waits);
    assert_eq!(job["job_dir"], job_dir, "it is told which directory that was");
    let copy = job["stage_dir"].as_str().unwrap();
    assert!(said(&lab).trim_end().ends_with(copy), "{} {copy}", said(&lab));

    drop(lab.env.tpu(&format!("set-dir {} 1 alice", job_dir.as_str().unwrap())).exits(0));
    std::fs::remove_file(lab.env.path("said")).unwrap();
    lab.kill(waits);
    lab.wait_running(&[late]);
    assert!(said(&lab).starts_with("new in "), "{}", said(&lab));
}

#[test]
fn a_script_runs_from_its_own_copy_too_and_a_resume_that_begins_anew_does() {
    let (lab, first) = busy();
    let before = copies(&lab);
    lab.env.code("alice", "staging.sh", &telling(&lab, "old"));
    let waits = lab.env.tpu("submit local --json").exits(0).json();
    let waits = waits["jobs"][0]["window"].as_u64().unwrap();
    lab.env.code("alice", "staging.sh", &telling(&lab, "new"));
    lab.kill(first);
    lab.wait_running(&[waits]);
    let copy = copies(&lab).into_iter().find(|copy| !before.contains(copy)).unwrap();
    assert_eq!(said(&lab), format!("old in {}\n", copy.display()));

    std::fs::remove_file(lab.env.path("said")).unwrap();
    lab.kill(waits);
    drop(lab.env.tpu(&format!("resume w={waits} alice --force")).exits(0));
    assert_eq!(said(&lab), format!("old in {}\n", copy.display()));
    // Again from scratch means: with the code as it is now.
    std::fs::remove_file(lab.env.path("said")).unwrap();
    let resumed = lab.running()[0];
    lab.kill(resumed);
    drop(lab.env.tpu(&format!("rerun w={resumed} alice --force")).exits(0));
    assert!(said(&lab).starts_with("new in "), "{}", said(&lab));
}

#[test]
fn members_have_the_code_of_their_submission_and_where_it_is_wished_each_its_own() {
    let (lab, first) = busy();
    let script = |which: &str| format!("echo {which} $TPU_MEMBER > own; exec sleep 1000\n");
    lab.env.code("alice", "own.sh", &script("old"));
    lab.submit_what("local --array 0-2 --copy-each", "bash own.sh");
    let before = copies(&lab);
    lab.env.code("alice", "own.sh", &script("new"));
    lab.takes(4);
    lab.kill(first);
    let own = || -> Vec<String> {
        let new = copies(&lab).into_iter().filter(|copy| !before.contains(copy));
        let told = new.filter_map(|copy| std::fs::read_to_string(copy.join("own")).ok());
        let mut told: Vec<String> = told.filter(|told| !told.is_empty()).collect();
        told.sort();
        told
    };
    wait_until("none writes over what another one writes", || {
        own() == ["old 0\n", "old 1\n", "old 2\n"]
    });
}

#[test]
fn what_has_lost_its_copy_is_held_and_says_so() {
    let (lab, first) = busy();
    let before = copies(&lab);
    let waits = lab.submit("local");
    let copy = copies(&lab).into_iter().find(|copy| !before.contains(copy)).unwrap();
    std::fs::remove_dir_all(&copy).unwrap();
    lab.kill(first);
    assert!(lab.why(waits).contains("the copy of its code is gone"), "{}", lab.why(waits));
    assert!(lab.running().is_empty());
}

#[test]
fn a_command_of_the_settings_stays_as_it_was_too() {
    let (lab, first) = busy();
    let runs = |seconds: &str| {
        let words = ["set-settings", "command", &format!("sleep {seconds}"), "alice"];
        drop(lab.env.tpu_words(&words).exits(0));
    };
    runs("1001");
    let said = lab.env.tpu("submit local --json").exits(0).json();
    let waits = said["jobs"][0]["window"].as_u64().unwrap();
    runs("1002");
    lab.kill(first);
    lab.wait_running(&[waits]);
    let job = lab.env.job("alice", waits);
    assert!(job.to_string().contains("1001"), "{job:#}");
}

#[test]
fn nothing_is_left_of_what_was_not_taken_and_doctor_leaves_what_waits_alone() {
    let (lab, _) = busy();
    let before = copies(&lab);
    drop(lab.env.tpu("submit local queue=nope -- true").exits(3));
    drop(lab.env.tpu("submit local after=99 -- true").exits(3));
    assert_eq!(copies(&lab), before);
    lab.submit("local");
    let with_one = copies(&lab);
    assert_eq!(with_one.len(), before.len() + 1);
    drop(lab.env.tpu("doctor --fix"));
    assert_eq!(copies(&lab), with_one);
}

#[test]
fn a_script_that_copies_leave_out_is_refused() {
    let (lab, _) = busy();
    lab.env.code("alice", "staging.sh", "exec sleep 1000\n");
    write_file(&lab.env.path("code-alice/.gitignore"), "staging.sh\n");
    let output = lab.env.tpu("submit local").exits(4);
    drop(output.says(&["staging.sh", "left out of copies", "--stage-late"]));
    drop(lab.env.tpu("submit local --stage-late").exits(0));
}
