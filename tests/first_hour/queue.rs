//! The first queue of an empty home: a thousand jobs are answered for at once, and as many run as there are cores.

use serde_json::Value;

use crate::common::env::wait_gone;
use crate::common::wait::wait_until;

use super::Newcomer;

/// Runs until the file `go` is there.
const WAITS: &str = "echo $$ > \"$HOME/began-${TPU_JOB##*/}\"\n\
                     until [ -e \"$HOME/go\" ]; do read -r -t 0.3 <> <(:); done\n";

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl Newcomer {
    fn with_work() -> Self {
        let newcomer = Self::new();
        newcomer.file("exp/wait.sh", WAITS);
        newcomer
    }

    /// How many have begun, and how many wait.
    fn counts(&self) -> (usize, usize) {
        let said = self.types("exp", "queue --json").exits(0).json();
        let waiting = |entry: &Value| match &entry["members"] {
            Value::Array(members) => members.len(),
            _ => 1,
        };
        let waiting = said["entries"].as_array().unwrap().iter().map(waiting).sum();
        let data = self.data();
        let jobs = data["users"]["john-doe"]["job_data"].as_array().map_or(0, Vec::len);
        (jobs, waiting)
    }
}

#[test]
fn a_thousand_jobs_are_queued_and_as_many_run_as_there_are_cores() {
    let newcomer = Newcomer::with_work();
    let answer = newcomer.types("exp", "submit local --array 1-1000 -- bash wait.sh").exits(0);
    let first = answer.stdout.lines().next().unwrap_or_default().to_owned();
    let n = cores();
    let expected = format!(
        "{n} of 1000 run now (local runs {n} at a time, one for each core); the others follow"
    );
    assert!(first.starts_with(&expected), "{answer}");
    assert!(first.ends_with("tpu hosts set local --max-jobs N"), "{answer}");
    assert_eq!(newcomer.counts(), (n, 1000 - n));
    // What is started by hand begins all the same.
    drop(newcomer.types("exp", "run local -q -- bash wait.sh").exits(0));
    assert_eq!(newcomer.counts(), (n + 1, 1000 - n));
    // A number that is set replaces the cores.
    let more = n + 3;
    drop(newcomer.types("exp", &format!("hosts set local --max-jobs {more}")).exits(0));
    drop(newcomer.types("exp", "queue run --once").exits(0));
    assert_eq!(newcomer.counts(), (more, 1001 - more));
}

#[test]
fn sweeps_and_job_files_run_on_as_many_cores_as_there_are() {
    let n = cores();
    let newcomer = Newcomer::with_work();
    let values = (0..n + 3).map(|value| value.to_string()).collect::<Vec<_>>().join(",");
    let line = format!("submit local --sweep seed={values} -- bash wait.sh");
    drop(newcomer.types("exp", &line).exits(0).says(&["the others follow"]));
    assert_eq!(newcomer.counts(), (n, 3));

    let newcomer = Newcomer::with_work();
    let file = format!("target: local\ncommand: bash wait.sh\narray: 1-{}\n", n + 2);
    newcomer.file("exp/job.yaml", &file);
    drop(newcomer.types("exp", "submit job.yaml").exits(0).says(&["the others follow"]));
    assert_eq!(newcomer.counts(), (n, 2));
}

#[test]
fn a_job_takes_the_cores_that_it_asks_for_and_one_may_always_run() {
    let n = cores();
    let newcomer = Newcomer::with_work();
    let line = format!("submit local cpus={} --array 1-3 -- bash wait.sh", n + 1);
    drop(newcomer.types("exp", &line).exits(0).says(&["1 of 3 run now (local runs 1 at a time"]));
    assert_eq!(newcomer.counts(), (1, 2));
}

/// Jobs that died with their tmux server, without a word.
#[test]
fn jobs_that_died_without_a_word_keep_no_core() {
    let n = cores();
    let newcomer = Newcomer::with_work();
    let line = format!("submit local --array 1-{} -- bash wait.sh", 2 * n);
    drop(newcomer.types("exp", &line).exits(0));
    // All of the first have begun: else one would begin after the end of the server.
    let data = newcomer.data();
    let jobs = data["users"]["john-doe"]["job_data"].as_array().unwrap();
    let number = |job: &Value| job["windows_id"].as_u64().unwrap();
    let programs: Vec<_> = jobs
        .iter()
        .map(|job| newcomer.env.wait_pid(&format!("home/began-{}", number(job))))
        .collect();
    newcomer.env.tmux().kill_server();
    programs.iter().for_each(wait_gone);
    wait_until("the next ones run", || {
        drop(newcomer.types("exp", "queue run --once").exits(0));
        newcomer.counts() == (2 * n, 0)
    });
}

/// A file of an earlier version says nothing of cores: its queue starts any number, and `doctor` offers the limit.
#[test]
fn the_file_of_an_earlier_version_keeps_what_it_says() {
    let newcomer = Newcomer::with_work();
    drop(newcomer.types("exp", "run local -q -- true").exits(0));
    drop(newcomer.types("exp", "hosts set local --max-jobs none").exits(0));
    let n = cores() + 3;
    let answer = newcomer.types("exp", &format!("submit local --array 1-{n} -- bash wait.sh"));
    assert!(!answer.exits(0).stdout.contains("follow"));
    assert_eq!(newcomer.counts(), (n + 1, 0));
    let doctor = newcomer.types("exp", "doctor");
    assert!(doctor.stdout.contains("tpu hosts set local --max-jobs"), "{doctor}");
}
