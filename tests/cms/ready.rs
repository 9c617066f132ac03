//! Each line of the section about jobs, behind `tpu cms`: jobs are added, listed, run, killed, made ready again and
//! taken away.

use std::path::PathBuf;

use serde_json::Value;

use super::{lab, with};
use crate::common::env::TestEnv;
use crate::common::wait::wait_until;

/// What a person types behind `cms job`, word by word.
fn job(env: &TestEnv, line: &str) -> crate::common::output::CommandOutput {
    env.tpu(&format!("cms job {line}"))
}

/// The rows of a list: name and status.
fn rows(env: &TestEnv, line: &str) -> Vec<(String, String)> {
    let listed = job(env, line).exits(0).stdout;
    let cells = |row: &str| {
        let mut cells = row.split_whitespace().skip(1).map(str::to_owned);
        (cells.next().unwrap(), cells.next().unwrap())
    };
    listed.lines().skip(1).map(cells).collect()
}

fn ready(name: &str) -> (String, String) {
    (name.to_owned(), "ready".to_owned())
}

fn home(env: &TestEnv) -> PathBuf {
    PathBuf::from(&env.variables()[std::ffi::OsStr::new("HOME")])
}

fn status(env: &TestEnv, name: &str) -> Value {
    let jobs = env.jobs("alice");
    let newest = jobs.iter().rev().find(|job| job["extra_msgs"]["spec"]["name"] == name);
    newest.map(|job| job["status"].clone()).unwrap_or_default()
}

#[track_caller]
fn wait(env: &TestEnv, name: &str, is: &str) {
    wait_until(&format!("{name} is {is}"), || status(env, name) == is);
}

/// `cms job add --name=z[0-1] …`, then one by one.
#[test]
fn jobs_are_added_by_a_pattern_and_run_by_name_then_all() {
    let env = lab();
    let add = "add --name=z[0-1] --ip=localhost --executable=pwd --input=../data --output=a,b";
    drop(job(&env, add).exits(0).says(&["z0: held", "z1: held"]));
    assert_eq!(rows(&env, "list"), [ready("z0"), ready("z1")]);
    assert_eq!(rows(&env, "list --name=1"), [ready("z1")]);
    assert_eq!(rows(&env, "list --status=ready").len(), 2);
    assert!(rows(&env, "list --status=done").is_empty() && env.jobs("alice").is_empty());
    drop(job(&env, "run --name=z0 --dry-run").exits(0).says(&["let alice/1 begin"]));
    assert_eq!((env.queued(), env.jobs("alice").len()), (2, 0));
    drop(job(&env, "run --name=z0").exits(0).says(&["alice/1"]));
    wait(&env, "z0", "finished");
    assert_eq!(rows(&env, "list --status=ready"), [ready("z1")], "the other one is still ready");
    // In the home directory, and with a copy of what it prints in its output directory.
    let printed = std::fs::read_to_string(home(&env).join("a/z0.log")).unwrap();
    assert_eq!(printed.trim(), home(&env).canonicalize().unwrap().to_str().unwrap());
    assert!(env.tpu("logs z0").exits(0).stdout.contains(printed.trim()));

    drop(job(&env, "run").exits(0).says(&["alice/2"]));
    wait(&env, "z1", "finished");
    assert_eq!(rows(&env, "list --status=done").len(), 2);
    drop(job(&env, "run").exits(0).says(&["Nothing is ready"]));
    drop(job(&env, "run --name=z1").exits(4).says(&["z1 is finished", "cms job reset --name=z1"]));
}

/// Without options it is `uname -a`, which is what Cloudmesh runs.
#[test]
fn a_job_of_which_nothing_is_said_runs_uname() {
    let env = lab();
    drop(job(&env, "add --name=u").exits(0));
    drop(job(&env, "run --name=u").exits(0));
    wait(&env, "u", "finished");
    assert!(env.tpu("logs u").exits(0).stdout.contains("Linux"));
}

/// `cms job add FILE`, `cms job status`.
#[test]
fn the_jobs_of_a_file_are_added_once_and_sorted_by_their_status() {
    let text = "mm:\n  ip: localhost\n  executable: sleep 1000\nkk:\n  ip: 127.0.0.1\n  executable: 'true'\n  \
                directory: sub dir\n  shell: sh\n  output: 'it''s'\n";
    let env = with("another.yaml", text);
    drop(job(&env, "add another.yaml").exits(0).says(&["mm: held", "kk: held"]));
    let before = env.data_bytes();
    drop(job(&env, "add another.yaml").exits(0).says(&["mm: waits already as alice/1"]));
    assert_eq!(env.data_bytes(), before, "once");
    drop(job(&env, "run --name=mm,kk").exits(0));
    wait(&env, "kk", "finished");
    wait(&env, "mm", "running");
    assert!(home(&env).join("sub dir/it's/kk.log").is_file(), "no shell of ours reads its words");
    drop(job(&env, "add --name=aa").exits(0));
    let names: Vec<String> = rows(&env, "status").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["kk", "aa", "mm"], "finished, ready, running");
    drop(
        job(&env, "add another.yaml")
            .exits(4)
            .says(&["known already as alice/1, which is running"]),
    );
    drop(job(&env, "kill --name=mm -y").exits(0));
}

/// `cms job kill --name='name[01-04]'`, `cms job reset`.
#[test]
fn jobs_are_killed_by_a_pattern_and_made_ready_again() {
    let env = lab();
    drop(job(&env, "add --name=n[01-04] --executable=sleep --arguments=1000").exits(0));
    drop(job(&env, "run --name=n[01-02]").exits(0));
    wait(&env, "n01", "running");
    wait(&env, "n02", "running");
    drop(job(&env, "reset --name=n01").exits(4).says(&["n01 is running", "job kill --name=n01"]));
    drop(job(&env, "reset --name=n03").exits(0).says(&["n03 is held by alice: ready"]));
    let said = job(&env, "kill --name=n[01-05] -y").exits(0);
    drop(said.says(&["Killed alice/1", "Killed alice/2", "alice/3 waits no more", "called 'n05'"]));
    assert_eq!((status(&env, "n01"), env.queued()), ("killed".into(), 0));
    // From its record, and one that never began from the archive.
    drop(
        job(&env, "reset --name=n01,n03")
            .exits(0)
            .says(&["n01 is ready again", "n03 is ready again"]),
    );
    assert_eq!(rows(&env, "list --status=ready"), [ready("n01"), ready("n03")]);
    drop(env.tpu("clean -y").exits(0));
    drop(job(&env, "reset --name=n02").exits(0).says(&["n02 is ready again"]));
    drop(job(&env, "run --name=n[01-03]").exits(0));
    for name in ["n01", "n02", "n03"] {
        wait(&env, name, "running");
    }
    drop(env.tpu("kill --all -y").exits(0));
}

/// `cms job delete`: one that is at work is stopped first.
#[test]
fn jobs_are_taken_away_whatever_they_do() {
    let env = lab();
    drop(job(&env, "add --name=d[1-3] --executable=sleep --arguments=1000,1000,0").exits(0));
    drop(job(&env, "run --name=d1,d3").exits(0));
    wait(&env, "d1", "running");
    wait(&env, "d3", "finished");
    drop(
        job(&env, "delete --name=d[1-3] --dry-run")
            .exits(0)
            .says(&["take alice/2, alice/1, alice/3 away"]),
    );
    assert_eq!(env.jobs("alice").len(), 2);
    drop(job(&env, "delete --name=d[1-3] -y").exits(0).says(&["alice/1 is removed"]));
    assert!(env.jobs("alice").is_empty() && env.queued() == 0);
    assert!(!env.has_window("alice", 1), "its window is closed");
    drop(job(&env, "delete --name=d1 -y").exits(3).says(&["no job of alice is called 'd1'"]));
    // The archive keeps them.
    drop(job(&env, "reset --name=d[1-3]").exits(0));
    assert_eq!(rows(&env, "list --status=ready").len(), 3);
}

/// Of what stands in the jobset alone, too: `reset` makes ready what the file says is done.
#[test]
fn what_the_jobset_says_is_over_is_left_alone_until_it_is_reset() {
    let text = "cloudmesh:\n  jobset:\n    jobs:\n      old: {ip: localhost, executable: 'true', status: done}\n      \
                lost: {ip: localhost, executable: 'true', status: submitted}\n";
    let env = with("old.yaml", text);
    let said = env.tpu("import cloudmesh old.yaml --json").exits(0).json();
    let fate = |job: usize| said["files"][0]["jobs"][job]["fate"].clone();
    assert_eq!((fate(0), fate(1), env.queued()), ("over".into(), "at work".into(), 0), "{said}");
    drop(env.tpu("cms set jobset=old.yaml").exits(0));
    assert_eq!(rows(&env, "list --status=done").len(), 1);
    drop(job(&env, "run --name=lost").exits(3));
    drop(job(&env, "reset").exits(0).says(&["old is ready", "lost is ready"]));
    drop(job(&env, "run").exits(0));
    wait(&env, "old", "finished");
    wait(&env, "lost", "finished");
    assert_eq!(std::fs::read_to_string(env.path("old.yaml")).unwrap(), text, "it is never written");
}
