//! What a job sets up before its command: looked at first, brought about where it is missing, on all workers, or nothing
//! begins; told by module, worker and the last words.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::json;

use tpu_system::sys::proc::{self, Spawn};
use tpu_system::sys::procs::{OsProcesses, Processes as _, Signal};

use crate::common::env::TestEnv;
use crate::common::sshd::{Hosts, is_installed};
use crate::common::tmux::{write_file, write_script};
use crate::common::wait::wait_until;

fn noted(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// One step that looks, one that is done on each machine once, one that is done each time.
const THREE: &str = "setup:
  - {name: data, check: 'test -e \"$HOME/data\"', run: 'echo making >> \"$HOME/noted\"; echo some words; touch \"$HOME/data\"'}
  - {name: once, run: 'echo once >> \"$HOME/noted\"', once_per: machine}
  - {name: each, run: 'echo each >> \"$HOME/noted\"'}
";

#[test]
fn what_is_missing_is_brought_about_in_order_and_nothing_is_done_twice() {
    let env = TestEnv::alice();
    let job = format!(
        "target: local\n{THREE}command: 'echo \"from $HOME: $TPU_JOB\"; test -e \"$HOME/data\"'\n"
    );
    env.run_file(&job);
    env.wait_status(1, "finished");
    assert_eq!(noted(&env.path("noted")), "making\nonce\neach\n");
    let said = env.log(1);
    for words in ["alice/1 \u{b7} set-up: data: set up", "all of it is so", "from /", ": alice/1\n"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains("tpu-set-up"), "{said}");
    assert!(noted(&env.log_dir(1).join("data_worker_0.log")).contains("some words"));
    // Beside it what the job was to do, which can be submitted again, and what had happened before it began.
    let spec = env.log_dir(1).join("spec.yaml");
    assert!(noted(&spec).contains("once_per: machine"), "{}", noted(&spec));
    drop(env.tpu(&format!("submit {} --dry-run", spec.display())).exits(0).says(&["queue 1 job"]));
    let queue = noted(&env.log_dir(1).join("queue.log"));
    assert!(queue.contains(" run: on local\n"), "{queue}");
    assert!(env.log_dir(1).join("tpu.log").exists());
    env.run_file(&job);
    env.wait_status(2, "finished");
    assert_eq!(noted(&env.path("noted")), "making\nonce\neach\neach\n");
    assert!(env.log(2).contains("set-up: once: is so already"), "{}", env.log(2));
    // Nothing of it is left lying about.
    let left: Vec<_> = std::fs::read_dir(env.path(".cache/tpu")).unwrap().flatten().collect();
    let left: Vec<String> = left.iter().map(|of| of.file_name().display().to_string()).collect();
    assert!(left.iter().all(|name| name == "done" || name.starts_with("lock-")), "{left:?}");
}

#[test]
fn what_fails_is_an_error_of_its_own_and_the_command_never_begins() {
    let env = TestEnv::alice();
    env.run_file(
        "target: local\nsetup:\n  - {name: wheels, run: 'echo no such wheel; exit 3'}\ncommand: touch \"$HOME/began\"\n",
    );
    let job = env.wait_status(1, "error");
    assert_eq!(job["error"], "setup");
    let line = job["extra_msgs"]["verdict"]["line"].as_str().unwrap();
    assert_eq!(line, "wheels: its set-up ended with 3: no such wheel");
    assert!(!env.path("began").exists());
    drop(env.tpu("check").exits(0).says(&["setup", "no such wheel"]));
    // What is set up, and is not so all the same.
    env.run_file(
        "target: local\nsetup:\n  - {name: data, check: 'false', run: 'true'}\ncommand: x\n",
    );
    let job = env.wait_status(2, "error");
    assert_eq!(job["error"], "setup");
    // A rule may try it again, and a person.
    env.run_file(
        "target: local\nsetup:\n  - {name: a, run: 'test -e \"$HOME/now\"'}\ncommand: touch \"$HOME/began\"\n",
    );
    env.wait_status(3, "error");
    env.touch("now");
    drop(env.tpu("rerun 3 -f").exits(0));
    wait_until("the next attempt sets up as well", || env.path("began").exists());
}

#[test]
fn how_far_a_set_up_is_can_be_seen_and_it_can_be_forced_or_skipped() {
    let env = TestEnv::alice();
    let text = "target: local\nsetup:\n  - {name: data, check: 'test -e \"$HOME/ok\"', run: 'echo halfway there; \
        until [ -e \"$HOME/go\" ]; do sleep 0.4; done; touch \"$HOME/ok\"; echo made >> \"$HOME/noted\"'}\ncommand: echo hello\n";
    env.run_file(text);
    let seen = || env.tpu("check").exits(0).stdout;
    wait_until("it says how far it is", || seen().contains("set-up: data: halfway there"));
    assert!(seen().contains("setting-up"), "{}", seen());
    let json = env.tpu("check --json").exits(0).json();
    assert_eq!(json["jobs"][0]["phase"], "setting-up", "{json:#}");
    env.touch("go");
    env.wait_status(1, "finished");
    assert!(!seen().contains("set-up: data"), "{}", seen());
    let file = env.path("job.yaml");
    let again = |how: &str| {
        drop(env.tpu_words(&["run", file.to_str().unwrap(), "-q", "--setup", how]).exits(0));
    };
    again("force");
    env.wait_status(2, "finished");
    assert_eq!(noted(&env.path("noted")), "made\nmade\n");
    std::fs::remove_file(env.path("ok")).unwrap();
    again("skip");
    env.wait_status(3, "finished");
    assert_eq!(noted(&env.path("noted")), "made\nmade\n");
    let bad = env.tpu_words(&["run", file.to_str().unwrap(), "--setup", "never"]).exits(2);
    drop(bad.says(&["--setup never: unknown", "auto, force or skip"]));
}

#[test]
fn a_job_without_a_command_sets_up_and_is_finished() {
    let env = TestEnv::alice();
    env.run_file("target: local\nsetup:\n  - {name: a, run: 'touch \"$HOME/a\"'}\n");
    env.wait_status(1, "finished");
    assert!(env.path("a").exists());
}

#[test]
fn a_kill_ends_what_is_being_set_up() {
    let env = TestEnv::alice();
    env.run_file(
        "target: local\nsetup:\n  - {name: a, run: 'echo $$ > \"$HOME/pid\"; sleep 1000'}\ncommand: touch \"$HOME/began\"\n",
    );
    let process = env.wait_pid("pid");
    drop(env.tpu("kill 1 -y").exits(0));
    assert!(!crate::common::env::lives(&process));
    assert_eq!(env.job("alice", 1)["status"], "killed");
    assert!(!env.path("began").exists());
}

/// A Python that makes real environments.
fn has_python() -> bool {
    let tried = proc::run(&Spawn::new("python3").args(["-c", "import ensurepip, venv"]));
    tried.is_ok_and(|output| output.status.success())
}

#[test]
fn a_real_virtual_environment_is_made_once_and_anew_when_its_file_changes() {
    if !has_python() {
        use std::io::Write as _;
        writeln!(std::io::stderr(), "skipped: there is no python3 with venv").unwrap();
        return;
    }
    let env = TestEnv::alice();
    env.code("alice", "r.txt", "# nothing is wanted\n");
    let job = "target: local\nsetup:\n  - venv: {name: train, requirements: r.txt}\n\
        command: |\n  echo \"in $VIRTUAL_ENV\"\n  python -c 'import sys; print(\"it runs\", sys.prefix)'\n  echo 'it''s \"$HOME\"'\n";
    env.run_file(job);
    env.wait_status(1, "finished");
    let said = env.log(1);
    let prefix = env.path(".venvs/train").display().to_string();
    assert!(said.contains(&format!("it runs {prefix}")), "{said}");
    assert!(said.contains(&format!("in {prefix}")), "{said}");
    assert!(said.contains("set-up: venv: set up"), "{said}");
    env.run_file(job);
    env.wait_status(2, "finished");
    assert!(env.log(2).contains("set-up: venv: is so already"), "{}", env.log(2));
    env.code("alice", "r.txt", "# another one\n");
    env.run_file(job);
    env.wait_status(3, "finished");
    assert!(env.log(3).contains("set-up: venv: set up"), "{}", env.log(3));
}

#[test]
fn a_link_in_the_code_takes_no_file_from_elsewhere() {
    let env = TestEnv::alice();
    write_file(&env.path("secret"), "mine alone\n");
    env.code("alice", "words.txt", "in the code\n");
    let code = env.path("code-alice");
    std::os::unix::fs::symlink("words.txt", code.join("inside.txt")).unwrap();
    std::os::unix::fs::symlink(env.path("secret"), code.join("outside.txt")).unwrap();
    let job = |name: &str| {
        format!(
            "target: local\nsetup:\n  - {{name: words, files: [{{from: {name}, to: ~/taken}}]}}\n\
             command: cat ~/taken\n"
        )
    };
    env.run_file(&job("inside.txt"));
    env.wait_status(1, "finished");
    assert!(env.log(1).contains("in the code"), "{}", env.log(1));
    env.run_file(&job("outside.txt"));
    let job = env.wait_status(2, "error");
    assert_eq!(job["error"], "setup");
    assert!(!env.log(2).contains("mine alone"), "{}", env.log(2));
}

/// Real hosts as the workers of one target.
pub(super) struct Lab {
    pub(super) env: TestEnv,
    pub(super) hosts: Hosts,
}

pub(super) fn lab(count: usize) -> Option<Lab> {
    if !is_installed() {
        return None;
    }
    let hosts = Hosts::new(count);
    let env = TestEnv::alice();
    std::fs::create_dir_all(env.path("config/tpu")).unwrap();
    let settings = json!({ "ssh_options": hosts.options(), "ssh_key": hosts.path("client") });
    write_file(&env.path("config/tpu/settings.json"), &settings.to_string());
    let addresses = hosts.addresses().join(",");
    drop(env.tpu(&format!("register pod --address {addresses}")).exits(0));
    Some(Lab { env, hosts })
}

impl Lab {
    fn noted(&self, worker: usize) -> String {
        noted(&self.hosts.home(worker).join("noted"))
    }
}

#[test]
fn four_workers_set_up_side_by_side_and_begin_together() {
    let Some(lab) = lab(4) else { return };
    write_file(&lab.env.path("key"), "a private key\n");
    write_file(&lab.env.path("key.pub"), "a public key\n");
    let job = format!(
        "target: pod\nsetup:\n  - ssh_keys: {{identities: [{{private_key: {key}, public_key: {key}.pub, \
         config_entry: \"Host github.com\\n  IdentityFile ~/.ssh/key\\n\"}}]}}\n{}\
         workers: [0, 2]\ncommand: 'echo \"began $TPU_WORKER\"; cat \"$HOME/.ssh/key\"'\n",
        THREE.strip_prefix("setup:\n").unwrap(),
        key = lab.env.path("key").display(),
    );
    std::fs::create_dir_all(lab.hosts.home(3).join(".ssh")).unwrap();
    write_file(&lab.hosts.home(3).join(".ssh/config"), "Host mine\n  User me\n");
    lab.env.run_file(&job);
    lab.env.wait_status(1, "finished");
    let said = lab.env.log(1);
    for worker in 0..4 {
        assert_eq!(lab.noted(worker), "making\nonce\neach\n");
        let home = lab.hosts.home(worker);
        assert_eq!(noted(&home.join(".ssh/key")), "a private key\n");
        let config = noted(&home.join(".ssh/config"));
        assert!(config.contains("# tpu: begin key\nHost github.com\n"), "{config}");
        assert_eq!(config.contains("Host mine"), worker == 3, "{config}");
        let began = said.contains(&format!("[worker {worker}] began {worker}"));
        assert_eq!(began, worker % 2 == 0, "{said}");
        let logs = lab.env.log_dir(1);
        assert!(logs.join(format!("once_worker_{worker}.log")).exists());
        let kept = noted(&logs.join(format!("command_worker_{worker}.log")));
        let of_command =
            if began { format!("began {worker}\na private key\n") } else { String::new() };
        assert_eq!(kept.replace('\r', ""), of_command);
    }
    let ips: serde_json::Value =
        serde_json::from_str(&noted(&lab.env.log_dir(1).join("ips.json"))).unwrap();
    let addresses: Vec<&str> =
        ips.as_array().unwrap().iter().filter_map(|one| one["address"].as_str()).collect();
    assert_eq!(addresses.len(), 4, "{ips}");
    assert!(said.contains("ssh_keys on worker 2: set up"), "{said}");
    assert!(said.contains("all of it is so on 4 workers"), "{said}");
    lab.env.run_file(&job);
    lab.env.wait_status(2, "finished");
    let said = lab.env.log(2);
    assert!(said.contains("ssh_keys on worker 2: is so already"), "{said}");
    assert_eq!(lab.noted(3), "making\nonce\neach\neach\n");
}

#[test]
fn one_broken_worker_keeps_all_from_beginning_and_is_named() {
    let Some(lab) = lab(3) else { return };
    let job = "target: pod\nsetup:\n  - name: data\n    run: |\n      [ \"$TPU_WORKER\" != 1 ] || { echo 'disk full'; exit 9; }\n      \
               sleep 1\ncommand: touch \"$HOME/began\"\n";
    lab.env.run_file(job);
    let job = lab.env.wait_status(1, "error");
    assert_eq!(job["error"], "setup");
    let line = job["extra_msgs"]["verdict"]["line"].as_str().unwrap();
    assert_eq!(line, "data on worker 1: its set-up ended with 9: disk full");
    for worker in 0..3 {
        assert!(!lab.hosts.home(worker).join("began").exists());
    }
}

/// Lets programs of the test be found before others.
fn first_in_path(env: &mut TestEnv) {
    let path = env.variables()[OsStr::new("PATH")].to_str().unwrap().to_owned();
    env.set("PATH", format!("{}:{path}", env.path("bin").display()));
}

/// A container engine that runs what it is told on this machine, and writes down its words.
const ENGINE: &str = r#"#!/bin/bash
printf '%s\n' "$*" >> "$ENGINE_NOTES"
case $1 in
info) exit 0 ;;
image) [ -e "$ENGINE_NOTES.pulled" ] ;;
pull) echo "pulling $2"; touch "$ENGINE_NOTES.pulled" ;;
run)
    shift
    while [ $# -gt 0 ]; do
        case $1 in
        --rm | --init | --privileged | --sig-proxy=false) shift ;;
        --name) name=$2; shift 2 ;;
        -v | -w | -e) shift 2 ;;
        *) break ;;
        esac
    done
    shift
    "$@" &
    echo $! > "$ENGINE_NOTES.$name"
    wait $!
    ;;
kill | stop) read -r pid < "$ENGINE_NOTES.${!#}" && kill "$pid" ;;
esac
"#;

#[test]
fn the_command_runs_in_its_container_byte_for_byte_and_ends_with_it() {
    let mut env = TestEnv::alice();
    std::fs::create_dir_all(env.path("bin")).unwrap();
    write_script(&env.path("bin/docker"), ENGINE);
    first_in_path(&mut env);
    let notes = env.path("engine");
    let job = format!(
        "target: local\nenv: {{ENGINE_NOTES: {notes}, PLAIN: \"it's\"}}\nsetup:\n  \
         - docker: {{image: 'r/i:tag', mounts: [/data, '/a:/b'], flags: [--privileged]}}\n\
         command: |\n  printf '%s|' \"$PLAIN\" '$HOME' \"two\n  lines\"\n  [ ! -e \"$HOME/stay\" ] || {{ echo $$ > \"$HOME/pid\"; exec sleep 1000; }}\n  exit 7\n",
        notes = notes.display(),
    );
    env.run_file(&job);
    let ended = env.wait_status(1, "error");
    assert_eq!(ended["extra_msgs"]["launch"]["exit"], 7);
    let said = env.plain_log(1);
    assert!(said.contains("it's|$HOME|two\nlines|"), "{said}");
    let told = noted(&notes);
    for words in [
        "pull r/i:tag",
        "run --rm --init --sig-proxy=false --name tpu-",
        "-v /data:/data -v /a:/b --privileged -e ENGINE_NOTES -e PLAIN",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(!told.contains("it's"), "values are in nobody's list of words: {told}");
    env.touch("stay");
    env.run_file(&job);
    let process = env.wait_pid("pid");
    drop(env.tpu("kill 2 -y").exits(0));
    assert!(!crate::common::env::lives(&process));
    let told = noted(&notes);
    assert_eq!(
        (told.matches("pull r/i:tag").count(), told.matches("pull -q r/i:tag").count()),
        (1, 1),
        "{told}"
    );
}

#[test]
fn a_mount_of_something_else_is_not_taken_for_the_bucket() {
    let mut env = TestEnv::alice();
    std::fs::create_dir_all(env.path("bin")).unwrap();
    write_script(
        &env.path("bin/gcsfuse"),
        "#!/bin/bash\nprintf '%s\\n' \"$*\" >> \"$HOME/mounted\"\n",
    );
    first_in_path(&mut env);
    // /proc is mounted, and is no bucket.
    env.run_file(
        "target: local\nsetup:\n  - gcsfuse: {bucket: lab-data, mount: /proc}\ncommand: x\n",
    );
    let job = env.wait_status(1, "error");
    let line = job["extra_msgs"]["verdict"]["line"].as_str().unwrap();
    assert!(
        line.contains("/proc is taken: ") && line.contains("not the bucket lab-data"),
        "{line}"
    );
    assert_eq!(noted(&env.path("mounted")), "");
    // What is said to be mounted and is not is no mount.
    let mount = env.path("data");
    env.run_file(&format!(
            "target: local\nsetup:\n  - gcsfuse: {{bucket: gs://lab-data, mount: {}, cache: {{file_max_size_mb: 50}}}}\ncommand: x\n",
            mount.display()
        ),
    );
    let job = env.wait_status(2, "error");
    let line = job["extra_msgs"]["verdict"]["line"].as_str().unwrap();
    assert!(line.contains("it was set up, and its check still ended with"), "{line}");
    let told = noted(&env.path("mounted"));
    let words = format!("--file-cache-max-size-mb=50 lab-data {}", mount.display());
    assert!(told.trim_end().ends_with(&words), "{told}");
}

#[test]
fn a_limit_on_its_time_ends_a_job_and_says_so() {
    let env = TestEnv::alice();
    env.run_file("target: local\ntimeout: 2s\ncommand: 'echo begun; exec sleep 1000'\n");
    let job = env.wait_status(1, "error");
    assert_eq!(job["error"], "timeout");
    // One that saves what it has and ends well has had its time all the same; one that speaks is not stalled.
    let text = "target: local\nidle_timeout: 4s\nsetup:\n  - {name: slow, run: sleep 6}\n\
        command: 'trap \"exit 0\" INT; for i in 1 2 3 4 5; do echo $i; sleep 1; done; while :; do sleep 0.3; done'\n";
    env.run_file(text);
    let job = env.wait_status(2, "error");
    assert_eq!(job["error"], "stalled");
    assert!(env.log(2).contains("5\n") || env.log(2).contains("5\r\n"), "{}", env.log(2));
    drop(env.tpu("check").exits(0).says(&["timeout: 2s", "printed nothing for 4s"]));
}

#[test]
fn a_plan_names_what_is_set_up_and_touches_nothing() {
    let env = TestEnv::alice();
    write_file(&env.path("job.yaml"), &format!("target: local\ntimeout: 2h\n{THREE}command: x\n"));
    let file = env.path("job.yaml");
    let shown = env.tpu_words(&["run", file.to_str().unwrap(), "--dry-run"]).exits(0);
    drop(shown.says(&["sets up    data", "sets up    once", "time       at most 2h 00m"]));
    assert!(!env.path("noted").exists());
    assert!(env.jobs("alice").is_empty());
}

#[test]
fn the_first_line_that_fails_is_the_steps_failure_and_what_it_leaves_running_holds_nothing() {
    let env = TestEnv::alice();
    env.run_file(
        "target: local\nsetup:\n  - {name: a, run: \"false\\ntouch $HOME/ok\"}\ncommand: touch \"$HOME/began\"\n",
    );
    assert_eq!(env.wait_status(1, "error")["error"], "setup");
    assert!(!env.path("ok").exists() && !env.path("began").exists());
    // A daemon that a step starts keeps nobody waiting, and is not the job's: it outlives it.
    env.run_file(
        "target: local\nsetup:\n  - {name: daemon, run: 'sleep 1000 & echo $! > \"$HOME/daemon\"'}\n\
         command: touch \"$HOME/began\"\n",
    );
    env.wait_status(2, "finished");
    assert!(env.path("began").exists());
    let daemon = env.wait_pid("daemon");
    assert!(crate::common::env::lives(&daemon));
    OsProcesses.signal(&daemon, Signal::Kill).unwrap();
}

#[test]
fn a_key_or_an_environment_that_somebody_else_has_made_stays_his() {
    let env = TestEnv::alice();
    std::fs::create_dir_all(env.path(".ssh")).unwrap();
    std::fs::create_dir_all(env.path(".venvs/mine")).unwrap();
    write_file(&env.path(".ssh/id"), "his own\n");
    write_file(&env.path("id"), "another one\n");
    let key = env.path("id").display().to_string();
    env.run_file(&format!(
            "target: local\nsetup: [{{ssh_keys: {{identities: [{{private_key: {key}}}]}}}}]\ncommand: x\n"
        ),
    );
    let job = env.wait_status(1, "error");
    let line = job["extra_msgs"]["verdict"]["line"].as_str().unwrap();
    assert!(line.contains("is there, and is another key"), "{line}");
    assert_eq!(noted(&env.path(".ssh/id")), "his own\n");
    env.run_file("target: local\nsetup: [{venv: {name: mine}}]\ncommand: x\n");
    let job = env.wait_status(2, "error");
    let line = job["extra_msgs"]["verdict"]["line"].as_str().unwrap();
    assert!(line.contains("somebody else has made it"), "{line}");
}

#[test]
fn a_kill_ends_the_set_up_of_all_workers_and_leaves_no_key_behind() {
    let Some(lab) = lab(2) else { return };
    write_file(&lab.env.path("key"), "a private key\n");
    let job = format!(
        "target: pod\nsetup:\n  - ssh_keys: {{identities: [{{private_key: {}}}]}}\n  \
         - {{name: slow, run: 'echo $$ > \"$HOME/pid\"; sleep 1000'}}\ncommand: touch \"$HOME/began\"\n",
        lab.env.path("key").display()
    );
    lab.env.run_file(&job);
    let there = |worker: usize| lab.hosts.home(worker).join("pid").exists();
    wait_until("both are at it", || there(0) && there(1));
    let token =
        lab.env.job("alice", 1)["extra_msgs"]["launch"]["token"].as_str().unwrap().to_owned();
    drop(lab.env.tpu("kill 1 -y").exits(0));
    assert_eq!(lab.env.job("alice", 1)["status"], "killed");
    for worker in 0..2 {
        let place = PathBuf::from(format!("/tmp/tpu-set-up-{token}-{worker}"));
        wait_until("nothing is left of it", || !place.exists());
        assert!(!lab.hosts.home(worker).join("began").exists());
    }
}

#[test]
fn a_command_on_one_worker_alone_is_killed_where_it_runs() {
    let Some(lab) = lab(2) else { return };
    lab.env.run_file(
        "target: pod\nworkers: [1]\ncommand: 'echo $$ > \"$HOME/pid\"; exec sleep 1000'\n",
    );
    let home = lab.hosts.home(1).join("pid");
    wait_until("it runs on the second", || !noted(&home).is_empty());
    assert!(!lab.hosts.home(0).join("pid").exists());
    let pid: u32 = noted(&home).trim().parse().unwrap();
    drop(lab.env.tpu("kill 1 -y").exits(0));
    let table = OsProcesses.table().unwrap();
    assert!(table.get(pid).is_none_or(|process| process.zombie), "it lives on");
}
