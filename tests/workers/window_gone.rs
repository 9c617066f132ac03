//! A window that is gone takes nothing from the workers: they are asked whether the job goes on, and a window is opened
//! again that shows it. One copy runs, and its end is written down as any.

use std::ffi::OsString;
use std::sync::Arc;

use tpu_core::model::ids::LaunchToken;
use tpu_system::remote::local::LocalRemote;
use tpu_system::remote::{Remote as _, Started, Work, Worker};
use tpu_system::sys::clock::SystemClock;
use tpu_system::sys::procs::{self, Process, Signal};

use crate::common::env::{TestEnv, lives, wait_gone};
use crate::common::wait::wait_until;

/// A fleet of one target with four workers.
const TARGET: &str = "lab-tpuvm-v2-32-1";

/// What a worker does: notes itself and how often it was started, then waits for `go`.
const STAYS: &str = "echo $$ >>\"$HOME/starts-$TPU_WORKER\"; echo $$ >\"$HOME/pid-$TPU_WORKER\"; \
    echo \"ready $TPU_WORKER\"; until [ -e \"$HOME/go\" ]; do sleep 0.4; done; echo \"over $TPU_WORKER\"";

/// A job at work on all workers.
struct Lab {
    env: TestEnv,
    programs: Vec<Process>,
}

impl Lab {
    fn new() -> Self {
        let mut env = TestEnv::new();
        env.set("TPU_USER", "alice");
        env.set("TPU_CLOUD", "sim");
        drop(env.tpu("sim list").exits(0).says(&[TARGET, "READY"]));
        let words = ["run", TARGET, "alice", "rule=pass", "-q", "--", "bash", "-c", STAYS];
        drop(env.tpu_words(&words).exits(0));
        let programs = (0..4).map(|worker| env.wait_pid(&format!("pid-{worker}"))).collect();
        let lab = Self { env, programs };
        wait_until("all are heard", || lab.output().matches("ready").count() == 4);
        lab
    }

    fn output(&self) -> String {
        self.env.log(1)
    }

    /// The tmux server ends, and with it whoever attended to the workers.
    fn lose_server(&self) {
        self.env.tmux().kill_server();
        wait_until("it is noticed", || {
            self.env.tpu("check").exits(0).to_string().contains("its workers are to be asked")
        });
    }

    fn is_reopened(&self) -> bool {
        self.env.has_window("alice", 1) && self.output().matches("ready").count() == 4
    }

    /// All goes on to its end, of which everything is heard, once.
    fn ends_well(&self) {
        assert!(self.programs.iter().all(lives), "nothing was taken from the workers");
        self.env.touch("go");
        self.env.wait_status(1, "finished");
        let output = self.output();
        assert_eq!(output.matches("ready").count(), 4, "nothing is heard twice: {output}");
        assert_eq!(output.matches("over").count(), 4, "nothing is lost: {output}");
        for worker in 0..4 {
            let starts = std::fs::read_to_string(self.env.path(&format!("starts-{worker}")));
            assert_eq!(starts.unwrap().lines().count(), 1, "one copy");
        }
        assert_eq!(self.env.jobs("alice").len(), 1);
        let ends =
            || self.env.journal().into_iter().filter(|event| event.kind == "finished").count();
        // The journal is written after the record.
        wait_until("its end is in the journal", || ends() > 0);
        assert_eq!(ends(), 1);
    }
}

#[test]
fn the_daemon_asks_the_workers_and_opens_a_window_again() {
    let lab = Lab::new();
    lab.lose_server();
    assert_eq!(lab.env.job("alice", 1)["status"], "running");
    let daemon = lab.env.daemon(&[]);
    wait_until("its window is open again", || lab.is_reopened());
    drop(lab.env.tpu("check").exits(0).says(&["running"]));
    lab.ends_well();
    drop(daemon);
}

#[test]
fn without_a_daemon_it_is_explained_and_a_person_opens_its_window() {
    let lab = Lab::new();
    lab.lose_server();
    let said = format!("its window is gone; it continues on {TARGET}: tpu attach w=1 alice");
    drop(lab.env.tpu("explain 1").exits(0).says(&["unknown", &said]));
    drop(lab.env.tpu("resume w=1").exits(4).says(&[&said]));
    drop(lab.env.tpu("clean").exits(0).says(&["Archived 0 jobs"]));
    // Here is no terminal to show it in; it is opened all the same.
    drop(lab.env.tpu("attach w=1").exits(2));
    wait_until("its window is open again", || lab.is_reopened());
    lab.ends_well();
}

#[test]
fn closing_its_window_does_not_end_it() {
    let lab = Lab::new();
    let daemon = lab.env.daemon(&[]);
    let pane = lab.env.pane_id("alice", 1).unwrap();
    lab.env.tmux().run(&["kill-pane", "-t", &pane]);
    wait_until("another window", || {
        lab.env.pane_id("alice", 1).is_some_and(|now| now != pane) && lab.is_reopened()
    });
    lab.ends_well();
    drop(daemon);
}

#[test]
fn while_a_worker_cannot_be_asked_nothing_is_known() {
    let lab = Lab::new();
    lab.lose_server();
    drop(lab.env.tpu(&format!("sim cut {TARGET}")).exits(0));
    drop(lab.env.tpu("explain 1").exits(0).says(&["cannot be asked"]));
    drop(lab.env.tpu("resume w=1").exits(6).says(&["cannot be asked"]));
    drop(lab.env.tpu("attach w=1").exits(6).says(&["cannot be asked"]));
    assert_eq!(lab.env.job("alice", 1)["status"], "running");
    let daemon = lab.env.daemon(&[]);
    drop(lab.env.tpu(&format!("sim mend {TARGET}")).exits(0));
    drop(lab.env.tpu("ack").exits(0));
    wait_until("its window is open again", || lab.is_reopened());
    lab.ends_well();
    drop(daemon);
}

#[test]
fn where_somebody_has_a_window_of_its_number_it_is_opened_behind_all_others() {
    let lab = Lab::new();
    lab.lose_server();
    lab.env.tmux().run(&["new-session", "-d", "-s", "alice"]);
    lab.env.tmux().run(&["new-window", "-d", "-t", "=alice:1", "exec sleep 1000"]);
    let daemon = lab.env.daemon(&[]);
    wait_until("it is heard again", || {
        let shown = lab.env.tpu("check --json").exits(0).json();
        shown["jobs"][0]["unknown"].is_null() && lab.output().matches("ready").count() == 4
    });
    assert!(lab.env.has_window("alice", 2));
    lab.ends_well();
    drop(daemon);
}

/// Kills what is on the workers; the daemon finds that it is lost.
fn loses_its_workers(lab: &Lab) {
    let table = procs::Table::read().unwrap();
    let token =
        lab.env.job("alice", 1)["extra_msgs"]["launch"]["token"].as_str().unwrap().to_owned();
    let uid = rustix::process::getuid().as_raw();
    for process in table.with_token(&token, uid) {
        procs::signal(process, Signal::Kill).unwrap();
    }
    lab.programs.iter().for_each(wait_gone);
    let daemon = lab.env.daemon(&[]);
    let lost = lab.env.wait_status(1, "error");
    assert_eq!(lost["error"], "lost", "{lost:#}");
    drop(daemon);
}

#[test]
fn what_is_on_no_worker_any_more_is_lost() {
    let lab = Lab::new();
    lab.lose_server();
    loses_its_workers(&lab);
}

/// It had gone on behind that, and was lost later.
#[test]
fn so_is_what_was_on_its_workers_when_somebody_closed_its_window() {
    let lab = Lab::new();
    lab.env.tmux().run(&["kill-pane", "-t", &lab.env.pane_id("alice", 1).unwrap()]);
    wait_until("it is noticed", || {
        lab.env.tpu("check").exits(0).to_string().contains("its workers are to be asked")
    });
    assert!(lab.env.path("tpu-state/jobs/alice/1/closed").exists());
    loses_its_workers(&lab);
}

/// Workers, and the token of a job whose attendant hangs before it has started anything there, and goes with its window.
fn interrupted(env: &mut TestEnv) -> (Vec<Worker>, LaunchToken) {
    env.set("TPU_USER", "alice");
    env.set("TPU_CLOUD", "sim");
    drop(env.tpu("sim list").exits(0).says(&[TARGET, "READY"]));
    env.set("FAILPOINTS", "workers-recorded=pause");
    let words = ["run", TARGET, "alice", "rule=pass", "-q", "--", "bash", "-c", STAYS];
    drop(env.tpu_words(&words).exits(0));
    env.unset("FAILPOINTS");
    let noted = String::from_utf8(env.wait_file("tpu-state/jobs/alice/1/workers")).unwrap();
    let address = |word: &str| word.split_once(' ').map(|(_, address)| address.to_owned());
    let addresses: Vec<String> = noted.split('\0').filter_map(address).collect();
    assert_eq!(addresses.len(), 4, "{noted}");
    let job = env.job("alice", 1);
    let token = job["extra_msgs"]["launch"]["token"].as_str().unwrap().to_owned();
    env.tmux().kill_server();
    let uid = rustix::process::getuid().as_raw();
    wait_until("nothing of it is left here", || {
        let table = procs::Table::read().unwrap();
        let here = table.with_token(&token, uid);
        for process in &here {
            drop(procs::signal(process, Signal::Kill));
        }
        here.is_empty() && env.tpu("check").to_string().contains("its workers are to be asked")
    });
    (Worker::all(&addresses), LaunchToken::from(token.as_str()))
}

/// Starts a command that is there for `go`, as somebody who was late with it.
fn comes_late(env: &TestEnv, workers: &[Worker], token: &LaunchToken) -> Vec<Started> {
    let argv = ["bash", "-c", STAYS].map(OsString::from).to_vec();
    let home = vec![("HOME".into(), env.root().into())];
    let work = Work { argv, env: home, ..Work::default() };
    let remote = LocalRemote::new(Arc::new(SystemClock::new()));
    let started = remote.start(workers, &work, token);
    started.into_iter().map(|(_, started)| started.unwrap()).collect()
}

#[test]
fn what_was_on_its_way_to_its_workers_does_not_begin_once_it_counts_as_lost() {
    let mut env = TestEnv::new();
    let (workers, token) = interrupted(&mut env);
    drop(env.tpu("explain 1").exits(0).says(&["nothing of it is on", "tpu resume w=1 alice"]));
    drop(env.tpu("resume w=1 --yes").exits(0));
    env.wait_pid("pid-0");
    assert_eq!(comes_late(&env, &workers, &token), [Started::Already; 4]);
    env.touch("go");
    env.wait_status(2, "finished");
    let starts = std::fs::read_to_string(env.path("starts-0")).unwrap();
    assert_eq!(starts.lines().count(), 1, "one copy");
}

#[test]
fn what_has_begun_on_some_of_its_workers_only_is_ended_and_lost() {
    let mut env = TestEnv::new();
    let (workers, token) = interrupted(&mut env);
    assert_eq!(comes_late(&env, &workers[..1], &token), [Started::New]);
    let first = env.wait_pid("pid-0");
    drop(env.tpu("explain 1").exits(0).says(&["it has begun on some workers of", "only"]));
    assert!(lives(&first), "who only asks ends nothing");
    let daemon = env.daemon(&[]);
    let lost = env.wait_status(1, "error");
    assert_eq!(lost["error"], "lost", "{lost:#}");
    wait_gone(&first);
    drop(daemon);
}
