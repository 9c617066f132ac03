//! A job on the workers of a real target, in the built program and on real sshd hosts: it starts once on
//! each whatever breaks, goes on, is found again by its token, and a kill ends exactly what was started.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use tpu_system::sys::procs::{self, Process, Signal, Table};

use crate::cli::json_schema::assert_described;
use crate::common::env::{TestEnv, lives};
use crate::common::remote::write_program;
use crate::common::sshd::{Hosts, is_installed};
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

const TARGET: &str = "lab-hosts";

/// A lab with a target of real hosts.
struct Lab {
    env: TestEnv,
    hosts: Hosts,
}

/// What a worker does: notes itself and how often it was started, then waits for `go`. Two at a time of
/// one worker are noted as well.
const STAYS: &str = "m=$MEET; w=$TPU_WORKER; mkdir \"$m/here-$w\" 2>/dev/null || echo $w >>\"$m/beside\"; \
    trap 'rmdir \"$m/here-$w\"' EXIT; trap 'exit 130' INT TERM; \
    echo $$ >>\"$m/starts-$w\"; echo $$ >\"$m/pid-$w\"; echo \"ready $w\"; \
    until [ -e \"$m/go\" ]; do sleep 0.4; done; echo \"over $w\"";

impl Lab {
    fn new(count: usize) -> Option<Self> {
        if !is_installed() {
            return None;
        }
        Some(Self::on(Hosts::new(count), TestEnv::new()))
    }

    /// On these hosts.
    fn on(hosts: Hosts, mut env: TestEnv) -> Self {
        env.set("TPU_USER", "alice");
        let settings = json!({
            "ssh_options": hosts.options(),
            "ssh_key": hosts.path("client"),
            "stage_root": env.path("stages"),
        });
        // Kept for the windows of jobs, whatever environment their server has.
        env.set("TPU_SETTINGS", env.path("settings.json"));
        write_file(&env.path("settings.json"), &settings.to_string());
        let addresses = hosts.addresses().join(",");
        drop(env.tpu(&format!("register {TARGET} --address {addresses}")).exits(0));
        Self { env, hosts }
    }

    /// Starts a bash script on the workers, with `$MEET` as the meeting point of all; its window.
    #[track_caller]
    fn run(&self, script: &str) -> u64 {
        let script = format!("MEET='{}'; {script}", self.env.root());
        let words = ["run", TARGET, "alice", "--json", "--", "bash", "-c", &script];
        let output = self.env.tpu_words(&words).exits(0);
        output.json()["launched"]["window"].as_u64().unwrap()
    }

    fn output(&self, window: u64) -> String {
        self.env.log(window)
    }

    /// The processes that so many workers have noted, in their order.
    fn pids(&self, count: u32) -> Vec<Process> {
        (0..count).map(|worker| self.env.wait_pid(&format!("pid-{worker}"))).collect()
    }

    fn starts(&self, count: u32) -> Vec<usize> {
        let of = |worker: u32| {
            let text = std::fs::read_to_string(self.env.path(&format!("starts-{worker}")));
            text.map_or(0, |text| text.lines().count())
        };
        (0..count).map(of).collect()
    }

    fn all_are_heard(&self, window: u64, count: usize) {
        wait_until("all are heard", || self.output(window).matches("ready").count() == count);
    }
}

#[test]
fn it_starts_once_on_each_and_the_highest_exit_code_is_the_jobs() {
    let Some(lab) = Lab::new(4) else { return };
    let window = lab.run(&format!("{STAYS}; echo $PATH >\"$MEET/path-$w\"; exit $w"));
    lab.pids(4);
    lab.all_are_heard(window, 4);
    lab.env.touch("go");
    let job = lab.env.wait_status(window, "error");
    assert_eq!(job["extra_msgs"]["launch"]["exit"], 3);
    assert_eq!(lab.starts(4), [1, 1, 1, 1]);
    let output = lab.output(window);
    for worker in 0..4 {
        assert!(output.contains(&format!("[worker {worker}] ready {worker}\n")), "{output}");
        assert!(output.contains(&format!("[worker {worker}] over {worker}\n")), "{output}");
    }
    let path = String::from_utf8(lab.env.wait_file("path-0")).unwrap();
    assert!(!path.contains(lab.env.root()), "a worker has its own programs: {path}");
    let one = lab.env.tpu(&format!("logs {window} --worker 2")).exits(0);
    assert_eq!(one.stdout, "ready 2\nover 2\n");
}

#[test]
fn a_kill_ends_it_with_its_children_and_spares_the_next_launch() {
    let Some(lab) = Lab::new(2) else { return };
    let window = lab.run(&format!("sleep 1000 & {STAYS}"));
    let all = lab.pids(2);
    let children: Vec<Process> = {
        let table = Table::read().unwrap();
        all.iter().flat_map(|process| table.descendants(process.pid)).cloned().collect()
    };
    assert!(children.iter().filter(|child| child.name == "sleep").count() >= 2);
    drop(lab.env.tpu(&format!("kill {window} -y")).exits(0));
    assert_eq!(lab.env.job("alice", window)["status"], "killed");
    let left: Vec<&Process> = all.iter().chain(&children).filter(|p| lives(p)).collect();
    assert!(left.is_empty(), "{left:?} live");
    let probe = lab.env.tpu(&format!("run {TARGET} alice -q -- true")).exits(0);
    drop(probe);
    lab.env.wait_status(window + 1, "finished");
}

#[test]
fn a_broken_connection_is_no_end_and_no_second_start() {
    let Some(lab) = Lab::new(2) else { return };
    let window =
        lab.run(&format!("for i in {{1..100}}; do echo line $i; sleep 0.02; done; {STAYS}"));
    wait_until("some is heard", || lab.output(window).contains("line 20"));
    lab.hosts.cut(0);
    lab.hosts.cut(1);
    wait_until("the silence is noticed", || lab.output(window).contains("does not answer"));
    lab.all_are_heard(window, 2);
    lab.hosts.cut(1);
    lab.env.touch("go");
    lab.env.wait_status(window, "finished");
    assert_eq!(lab.starts(2), [1, 1]);
    let output = lab.output(window);
    for worker in 0..2 {
        for i in 1..=100 {
            let line = format!("[worker {worker}] line {i}\n");
            assert_eq!(output.matches(&line).count(), 1, "{line}{output}");
        }
    }
}

#[test]
fn what_cannot_be_reached_stays_killing_and_monitor_completes_it() {
    let Some(mut lab) = Lab::new(2) else { return };
    let window = lab.run(STAYS);
    let all = lab.pids(2);
    lab.all_are_heard(window, 2);
    lab.hosts.shut(1);
    drop(lab.env.tpu(&format!("kill {window} -y")).exits(6).says(&["Connection refused"]));
    let job = lab.env.job("alice", window);
    assert_ne!(job["status"], "killed");
    assert_eq!(job["extra_msgs"]["intent"]["action"], "killing", "{job:#}");
    assert!(!lives(&all[0]) && lives(&all[1]));
    lab.hosts.begin(1);
    let monitor = lab.env.start_tpu("daemon run", &[]);
    lab.env.wait_status(window, "killed");
    assert!(!lives(&all[1]));
    drop(monitor);
}

#[test]
fn past_a_worker_that_never_answers_again_a_person_gets_by_force() {
    let Some(mut lab) = Lab::new(2) else { return };
    let window = lab.run(&format!(
        "mkdir -p \"$TPU_LOG_DIR/checkpoint_5\"; echo w >\"$TPU_LOG_DIR/checkpoint_5/w\"; {STAYS}"
    ));
    let all = lab.pids(2);
    lab.all_are_heard(window, 2);
    lab.hosts.kill(1);
    drop(lab.env.tpu(&format!("kill {window} -y")).exits(6).says(&["refused", "--force"]));
    let killed = lab.env.tpu(&format!("kill {window} -y --force")).exits(0);
    drop(killed.says(&["alice/1: worker 1", "not looked at"]));
    assert_eq!(lab.env.job("alice", window)["status"], "killed");
    assert!(!lives(&all[0]));

    // The same with a window that went, and a successor.
    lab.hosts.begin(1);
    let window = lab.run(&format!(
        "mkdir -p \"$TPU_LOG_DIR/checkpoint_5\"; echo w >\"$TPU_LOG_DIR/checkpoint_5/w\"; {STAYS}"
    ));
    lab.all_are_heard(window, 2);
    lab.env.tmux().run(&["kill-window", "-t", &lab.env.pane_id("alice", window).unwrap()]);
    wait_until("it is shown", || lab.env.tpu("check alice").to_string().contains("to be asked"));
    lab.hosts.kill(1);
    let again = format!("resume w={window} alice --force");
    let past = format!("kill w={window} alice --force");
    drop(lab.env.tpu(&again).exits(4).says(&["it continues on", &format!("tpu kill w={window}")]));
    assert_eq!(lab.env.jobs("alice").len(), 2, "it may still run there: nothing runs beside it");
    drop(lab.env.tpu(&format!("{past} -y")).exits(0).says(&["not looked at", "worker 1"]));
    let address = &lab.hosts.addresses()[0];
    drop(lab.env.tpu(&format!("register {TARGET} --address {address}")).exits(0));
    drop(lab.env.tpu(&again).exits(0));
    let told = |event: &tpu_system::store::Event| {
        event.kind == "not-stopped" && event.text.contains("worker 1")
    };
    assert_eq!(lab.env.journal().iter().filter(|event| told(event)).count(), 2);
    assert_eq!(lab.env.job("alice", window)["status"], "resumed");
    lab.env.touch("go");
    lab.env.wait_status(window + 1, "finished");
    drop(lab.env.tpu(&format!("run {TARGET} alice -q -- true")).exits(0));
}

#[test]
fn a_kill_by_force_that_fails_for_another_reason_gives_up_no_worker() {
    let Some(mut lab) = Lab::new(2) else { return };
    let window = lab.run(STAYS);
    let all = lab.pids(2);
    lab.all_are_heard(window, 2);
    lab.hosts.shut(1);
    // What is here of tmux cannot be asked, and finds its way to the hosts.
    let path = lab.env.tmux().env().var("PATH").unwrap().to_owned();
    let broken = lab.env.path("broken");
    std::fs::create_dir(&broken).unwrap();
    write_program(&broken.join("tmux"), "#!/bin/sh\nexit 7\n");
    let both = format!("{}:{}", broken.display(), path);
    let kill = format!("kill {window} -y");
    lab.env.set("PATH", both);
    drop(lab.env.tpu(&format!("{kill} --force")).exits(6));
    lab.env.set("PATH", path);
    assert!(!lab.env.journal().iter().any(|event| event.kind == "not-stopped"));
    drop(lab.env.tpu(&kill).exits(6).says(&["worker 1", "refused"]));
    assert!(lives(&all[1]));
    lab.hosts.begin(1);
    drop(lab.env.tpu(&kill).exits(0));
    assert!(!all.iter().any(lives), "the worker that was silent is asked again");
}

#[test]
fn past_workers_to_which_no_way_is_left_a_person_gets_by_force() {
    let Some(lab) = Lab::new(1) else { return };
    let window = lab.run(STAYS);
    lab.all_are_heard(window, 1);
    drop(lab.env.tpu(&format!("register {TARGET} --zone us-central1-a --force")).exits(0));
    drop(lab.env.tpu(&format!("kill {window} -y")).exits(4).says(&["no way to the workers"]));
    let killed = lab.env.tpu(&format!("kill {window} -y --force")).exits(0);
    drop(killed.says(&["alice/1: no way to the workers", "not looked at"]));
    assert_eq!(lab.env.job("alice", window)["status"], "killed");
    let told = |event: &tpu_system::store::Event| event.kind == "not-stopped";
    assert_eq!(lab.env.journal().iter().filter(|event| told(event)).count(), 1);
}

#[test]
fn a_worker_that_cannot_be_reached_keeps_no_other_record_from_being_cleaned() {
    let Some(mut lab) = Lab::new(1) else { return };
    let window = lab.run(STAYS);
    let all = lab.pids(1);
    lab.all_are_heard(window, 1);
    let done = lab.env.start("true", &[""; 0]);
    lab.env.wait_status(done, "finished");
    lab.env.tmux().run(&["kill-window", "-t", &lab.env.pane_id("alice", window).unwrap()]);
    wait_until("it is shown", || lab.env.tpu("check alice").to_string().contains("to be asked"));
    lab.hosts.shut(0);
    drop(lab.env.tpu("clean alice").exits(0).says(&["Archived 1 job", "are to be asked"]));
    let kept: Vec<Value> =
        lab.env.jobs("alice").iter().map(|job| job["windows_id"].clone()).collect();
    assert_eq!(kept, [window]);
    assert!(lab.env.job("alice", window)["extra_msgs"]["intent"].is_null());
    lab.hosts.begin(0);
    drop(lab.env.tpu(&format!("kill {window} alice -y")).exits(0));
    assert!(!lives(&all[0]));
    drop(lab.env.tpu("clean alice").exits(0).says(&["Archived 1 job"]));
}

#[test]
fn a_target_is_free_when_a_worker_says_that_nothing_is_left_of_a_command() {
    let Some(lab) = Lab::new(2) else { return };
    let window = lab.run(STAYS);
    let all = lab.pids(2);
    lab.all_are_heard(window, 2);
    let guard = lab.hosts.home(1).join(".tpu/runs");
    let run = std::fs::read_dir(guard).unwrap().next().unwrap().unwrap().path();
    let record = std::fs::read_to_string(run.join("guard")).unwrap();
    let guard = Process::read(record.split(' ').next().unwrap().parse().unwrap()).unwrap();
    for process in [&guard, &all[1]] {
        procs::signal(process, Signal::Kill).unwrap();
    }
    lab.env.touch("go");
    let job = lab.env.wait_status(window, "error");
    assert_eq!(job["extra_msgs"]["launch"]["exit"], 255);
    assert_eq!(job["error"], "lost", "{job:#}");
    drop(lab.env.tpu(&format!("run {TARGET} alice -q -- true")).exits(0));
    lab.env.wait_status(window + 1, "finished");
}

#[test]
fn no_registration_cuts_a_job_off_from_its_workers() {
    let Some(lab) = Lab::new(1) else { return };
    let window = lab.run(STAYS);
    let all = lab.pids(1);
    lab.all_are_heard(window, 1);
    let without = format!("register {TARGET} --zone us-central1-a");
    drop(lab.env.tpu(&without).exits(4).says(&["alice/1 may be at work", "tpu kill w=1 alice"]));
    let address = &lab.hosts.addresses()[0];
    drop(lab.env.tpu(&format!("register {TARGET} --address {address} --type v2-8")).exits(0));
    // Its record is over, its command is not.
    let place = lab.env.job("alice", window)["session"].as_str().unwrap_or("alice").to_owned();
    drop(lab.env.tpu(&format!("fail-job {place}:{window} --exit-code 3")).exits(0));
    assert_eq!(lab.env.job("alice", window)["status"], "error");
    drop(lab.env.tpu(&without).exits(4).says(&["alice/1 may be at work"]));
    drop(lab.env.tpu(&format!("del-registered {TARGET}")).exits(4).says(&["alice/1"]));
    drop(lab.env.tpu(&format!("{without} --force")).exits(0).says(&["alice/1 may still run"]));
    drop(lab.env.tpu(&format!("register {TARGET} --address {address}")).exits(4));
    drop(lab.env.tpu(&format!("register {TARGET} --address {address} -f")).exits(0));
    drop(lab.env.tpu(&format!("kill {window} -y")).exits(0));
    assert!(!lives(&all[0]));
    drop(lab.env.tpu(&without).exits(0));
}

#[test]
fn tmux_and_monitor_may_go_while_it_lives_and_it_never_runs_beside_itself() {
    let Some(lab) = Lab::new(2) else { return };
    let script = format!(
        "mkdir -p \"$TPU_LOG_DIR/checkpoint_5\"; echo w >\"$TPU_LOG_DIR/checkpoint_5/w\"; {STAYS}"
    );
    let window = lab.run(&script);
    let first = lab.pids(2);
    drop(lab.env.tpu("set-rule 1 resume").exits(0));
    lab.env.start_tpu("daemon run", &[]).kill();
    // As when the manager is rebooted: its windows are gone, and what ran in them.
    lab.env.tmux().kill_server();
    assert!(first.iter().all(lives), "they need neither tmux nor the daemon");
    drop(lab.env.tpu(&format!("run {TARGET} bob -q -- true")).exits(4).says(&["alice/1"]));
    drop(lab.env.tpu("daemon status").exits(1));
    // A server that is there says that the window is gone for certain; the workers have the job.
    lab.env.tmux().run(&["new-session", "-d", "-s", "somebody"]);
    wait_until("it is shown", || lab.env.tpu("check alice").to_string().contains("to be asked"));
    let monitor = lab.env.start_tpu("daemon run", &[]);
    wait_until("its window is open again", || lab.env.has_window("alice", window));
    assert!(first.iter().all(lives), "nothing was taken from the workers");
    lab.env.touch("go");
    lab.env.wait_status(window, "finished");
    assert_eq!(lab.env.jobs("alice").len(), 1);
    assert_eq!(lab.starts(2), [1, 1]);
    assert!(!lab.env.path("beside").exists(), "two at a time on one worker");
    drop(monitor);
}

#[test]
fn code_is_brought_to_workers_that_do_not_share_our_disk() {
    if !is_installed() {
        return;
    }
    let env = TestEnv::new();
    std::fs::create_dir(env.path("stages")).unwrap();
    let Some(hosts) = Hosts::with_own(2, &env.path("stages")) else { return };
    let lab = Lab::on(hosts, env);
    lab.env.code("alice", "sub dir/train.sh", "echo trained by $TPU_WORKER");
    let words = ["run", TARGET, "alice", "-q", "--", "bash", "sub dir/train.sh"];
    drop(lab.env.tpu_words(&words).exits(0));
    lab.env.wait_status(1, "finished");
    let output = lab.output(1);
    assert!(output.contains("to 2 of 2 workers"), "{output}");
    for worker in 0..2 {
        let line = format!("[worker {worker}] trained by {worker}\n");
        assert!(output.contains(&line), "{output}");
    }
}

#[test]
fn code_is_brought_once_to_workers_that_share_a_disk_with_each_other() {
    if !is_installed() {
        return;
    }
    let env = TestEnv::new();
    std::fs::create_dir(env.path("stages")).unwrap();
    let Some(hosts) = Hosts::with_own(1, &env.path("stages")) else { return };
    let lab = Lab::on(hosts, env);
    let address = &lab.hosts.addresses()[0];
    let four = [address.as_str(); 4].join(",");
    drop(lab.env.tpu(&format!("register {TARGET} --address {four}")).exits(0));
    lab.env.code("alice", "train.sh", "echo trained by $TPU_WORKER");
    let words = ["run", TARGET, "alice", "-q", "--", "bash", "train.sh"];
    drop(lab.env.tpu_words(&words).exits(0));
    lab.env.wait_status(1, "finished");
    let output = lab.output(1);
    for worker in 0..4 {
        let line = format!("[worker {worker}] trained by {worker}\n");
        assert!(output.contains(&line), "{output}");
    }
}

#[test]
fn commands_have_each_workers_code_and_say_whose_a_line_is() {
    let Some(mut lab) = Lab::new(3) else { return };
    let ask = |command: &str| lab.env.tpu_words(&["ssh", TARGET, "all", "--command", command]);
    let asked = ask("echo out-$TPU_WORKER; echo err >&2; exit $((TPU_WORKER * 2))").exits(4);
    for worker in 0..3 {
        assert!(asked.stdout.contains(&format!("[worker {worker}] out-{worker}\n")));
    }
    let asked = asked.says(&["[worker 1] err", "worker 1 ended with 2", "worker 2 ended with 4"]);
    assert!(!asked.stderr.contains("worker 0 ended"), "{asked}");
    let one = lab.env.tpu_words(&["lian", TARGET, "1", "--command=printf 'a  b'"]).exits(0);
    assert_eq!(one.stdout, "a  b");
    drop(lab.env.tpu(&format!("ssh {TARGET} 7 --command true")).exits(3).says(&["from 0 to 2"]));
    drop(lab.env.tpu(&format!("ssh {TARGET} all")).exits(2).says(&["--command"]));
    lab.hosts.shut(1);
    let words = ["ssh", TARGET, "all", "--json", "--command", "exit 3"];
    let json = lab.env.tpu_words(&words).exits(6).json();
    assert_described("ssh", &json);
    let exits: Vec<&Value> =
        json["workers"].as_array().unwrap().iter().map(|worker| &worker["exit"]).collect();
    assert_eq!(exits, [&json!(3), &Value::Null, &json!(3)]);
    assert!(json["workers"][1]["lost"].as_str().unwrap().contains("refused"));
}

#[test]
fn files_go_to_all_workers_and_come_from_one() {
    let Some(lab) = Lab::new(2) else { return };
    std::fs::create_dir(lab.env.path("a dir")).unwrap();
    write_file(&lab.env.path("a dir/f"), "text");
    drop(
        lab.env
            .tpu_words(&["cp", "a dir", &format!("{TARGET}:~/below")])
            .exits(0)
            .says(&["2 of 2"]),
    );
    for index in 0..2 {
        let there = lab.hosts.home(index).join("below/a dir/f");
        assert_eq!(std::fs::read_to_string(there).unwrap(), "text");
    }
    let from = format!("{TARGET}:~/below/a dir");
    drop(lab.env.tpu_words(&["cp", &from, "back", "--worker", "1"]).exits(0));
    assert_eq!(std::fs::read_to_string(lab.env.path("back/a dir/f")).unwrap(), "text");
    let json = lab.env.tpu_words(&["cp", &from, "all", "--json"]).exits(0).json();
    assert_described("cp", &json);
    assert_eq!(std::fs::read_to_string(lab.env.path("all/worker-0/a dir/f")).unwrap(), "text");
    let missing = format!("{TARGET}:/nonexistent/x");
    drop(lab.env.tpu_words(&["cp", &missing, "back"]).exits(6).says(&["No such file"]));
}

#[test]
fn a_copy_may_be_larger_than_the_memory() {
    let Some(lab) = Lab::new(2) else { return };
    std::fs::File::create(lab.env.path("large")).unwrap().set_len(300 << 20).unwrap();
    let limited = |words: &[&str]| {
        let script = ["-c", "ulimit -d 200000 && exec \"$0\" \"$@\"", crate::common::env::TPU];
        let words: Vec<&str> = script.iter().chain(words).copied().collect();
        drop(lab.env.output(&lab.env.spawn_program("bash", &words)).exits(0));
    };
    limited(&["cp", "large", &format!("{TARGET}:~/below")]);
    limited(&["cp", &format!("{TARGET}:~/below/large"), "back", "--worker", "1"]);
    for file in [lab.hosts.home(0).join("below/large"), lab.env.path("back/large")] {
        assert_eq!(std::fs::metadata(file).unwrap().len(), 300 << 20);
    }
}

#[test]
fn what_is_kept_of_a_copy_is_gone_however_it_ends() {
    let Some(lab) = Lab::new(1) else { return };
    let state = lab.env.path("tpu-state");
    std::fs::remove_dir_all(&state).unwrap();
    write_file(&lab.env.path("small"), "text");
    drop(lab.env.tpu_words(&["cp", "small", &format!("{TARGET}:~/below")]).exits(0));
    let mode = std::fs::metadata(&state).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o770, "as any other command makes it");
    let names = || -> BTreeSet<PathBuf> {
        std::fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    // Nobody reads that to its end.
    let endless = std::fs::File::create(lab.hosts.home(0).join("endless")).unwrap();
    endless.set_len(1 << 40).unwrap();
    let line = format!("cp {TARGET}:~/endless back");
    let script = "trap '' XFSZ; ulimit -f 8000 && exec \"$0\" \"$@\"";
    let mut words = vec!["-c", script, crate::common::env::TPU];
    words.extend(line.split(' '));
    let full = lab.env.output(&lab.env.spawn_program("bash", &words)).exits(5);
    drop(full.says(&["cannot keep the copy"]));
    let before = names();
    let mut copying = lab.env.start_at_points(&line, "");
    let fds = PathBuf::from(format!("/proc/{}/fd", copying.id()));
    wait_until("some of it is here", || {
        std::fs::read_dir(&fds).unwrap().flatten().any(|fd| {
            let is_here = std::fs::read_link(fd.path()).is_ok_and(|to| to.starts_with(&state));
            is_here && std::fs::metadata(fd.path()).is_ok_and(|file| file.len() > 1 << 20)
        })
    });
    copying.kill().unwrap();
    copying.wait().unwrap();
    assert_eq!(names(), before);
}

#[test]
fn what_is_left_is_ended_a_live_job_is_not() {
    let Some(lab) = Lab::new(2) else { return };
    let window = lab.run(STAYS);
    let all = lab.pids(2);
    let words = format!("kill-remote {TARGET}");
    drop(lab.env.tpu(&words).exits(4).says(&["alice/1 is at work"]));
    assert!(all.iter().all(lives));
    let json = lab.env.tpu(&format!("{words} --force --json")).exits(0).json();
    assert_described("kill-remote", &json);
    assert_eq!(json["launches"], 1);
    assert!(!all.iter().any(lives));
    lab.env.wait_status(window, "error");
}
