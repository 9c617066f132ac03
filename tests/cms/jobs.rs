//! The jobs that are here are listed, chosen and stopped in the words of Cloudmesh.

use super::lab;
use crate::common::env::TestEnv;

/// A job of alice's by this name.
fn start(env: &TestEnv, name: &str, script: &str) {
    let words = ["run", "local", "alice", "--name", name, "-q", "--", "bash", "-c", script];
    drop(env.tpu_words(&words).exits(0));
}

#[test]
fn jobs_are_listed_by_name_and_status_and_killed_by_a_pattern() {
    let env = lab();
    for name in ["perform-a", "perform-b", "other"] {
        start(&env, name, "sleep 1000");
    }
    start(&env, "short", "true");
    drop(env.wait_status(4, "finished"));
    let rows = |line: &str| {
        let listed = env.tpu(line).exits(0).stdout;
        let rows =
            listed.lines().skip(1).map(|row| row.split_whitespace().nth(1).unwrap().to_owned());
        rows.collect::<Vec<_>>()
    };
    let titles = env.tpu("cms job list").exits(0).stdout;
    assert!(titles.starts_with("NUMBER  JOBNAME"), "{titles}");
    assert_eq!(rows("cms job list"), ["perform-a", "perform-b", "other", "short"]);
    assert_eq!(rows("cms job list --name=perform"), ["perform-a", "perform-b"]);
    assert_eq!(rows("cms job list --status=submitted"), ["perform-a", "perform-b", "other"]);
    for done in ["done", "end", "finished"] {
        assert_eq!(rows(&format!("cms job list --status={done}")), ["short"]);
    }
    assert!(rows("cms job list --status=ready").is_empty());
    assert!(env.tpu("cms job list --status=redy").exits(2).stderr.contains("'ready'"));
    assert_eq!(rows("cms job status").first().unwrap(), "short", "in the order of the words");
    assert_eq!(rows("cms queue info").len(), 4);
    let document = env.tpu("cms queue refresh --json").exits(0).json();
    assert_eq!(document["jobs"].as_array().unwrap().len(), 4);

    let tried = env.tpu("cms job kill --name=other --dry-run").exits(0).stdout;
    assert!(tried.contains("Would kill alice/3"), "{tried}");
    let said =
        env.tpu_words(&["cms", "job", "kill", "--name=perform-a,other", "-y"]).exits(0).stdout;
    assert!(said.contains("Killed alice/1") && said.contains("Killed alice/3"), "{said}");
    assert_eq!(rows("cms job list --status=killed"), ["perform-a", "other"]);
    assert_eq!(env.job("alice", 2)["status"], "running");
    let said = env.tpu("cms job kill --name=ls_j -y").exits(3).stderr;
    assert!(said.contains("'ls_j'"), "{said}");
    drop(env.tpu("kill 2 -y").exits(0));
}

#[test]
fn the_jobs_of_the_jobset_that_are_not_here_are_listed_as_such() {
    let env = lab();
    drop(env.tpu("cms job set spec.yaml").exits(0));
    let said = env.tpu("cms job list").exits(0);
    assert!(
        said.stdout.contains("ls_j") && said.stdout.contains("in the file"),
        "{}",
        said.report()
    );
    assert!(said.stderr.contains("1 job in the jobset and not here"), "{}", said.report());
    drop(env.tpu("import cloudmesh spec.yaml --no-probe").exits(0));
    let said = env.tpu("cms job list").exits(0);
    assert!(!said.stdout.contains("in the file"), "{}", said.report());
    let row = said.stdout.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(row, ["1", "ls_j", "ready", "juliet", "alice"]);
    let document = env.tpu("cms job list --status=ready --json").exits(0).json();
    assert_eq!(document["waiting"][0]["status"], "ready", "{document}");
}
