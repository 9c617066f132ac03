//! What somebody types who comes from JobMan: a job keeps its number whatever attempt it has come to, and what costs money
//! is never forgotten before it is gone.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::common::env::{TPU, TestEnv};
use crate::common::output::CommandOutput;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

use super::orders::lab;

/// What JobMan's own command is called.
struct JobMan {
    env: TestEnv,
}

impl JobMan {
    fn new() -> Self {
        let env = lab();
        symlink(TPU, env.path("jobman")).unwrap();
        Self { env }
    }

    fn run(&self, line: &str) -> CommandOutput {
        let link = self.env.path("jobman");
        let words: Vec<&str> = line.split(' ').collect();
        self.env.output(&self.env.spawn_program(link.to_str().unwrap(), &words))
    }

    fn listed(&self, id: &str) -> Value {
        let all = self.run("list --json").exits(0).json();
        let jobs = all["jobs"].as_array().cloned().unwrap_or_default();
        jobs.into_iter().find(|job| job["id"] == id).unwrap_or_default()
    }

    fn is(&self, id: &str, state: &str) {
        wait_until(&format!("{id} is {state}"), || self.listed(id)["state"] == state);
    }

    fn targets(&self) -> Vec<(String, String)> {
        let all = self.env.tpu("check-status --json").exits(0).json();
        let of = |target: &Value| {
            let text = |key: &str| target[key].as_str().unwrap_or_default().to_owned();
            (text("name"), text("state"))
        };
        all["targets"].as_array().map(|all| all.iter().map(of).collect()).unwrap_or_default()
    }

    fn state_of(&self, name: &str) -> String {
        let all = self.targets();
        all.into_iter().find(|(known, _)| known == name).map(|(_, state)| state).unwrap_or_default()
    }

    /// A config of JobMan, whose command says which attempt it is and stays.
    fn config(&self) {
        let text = "job: {name: train}\ntpu: {allocation_mode: tpu-vm, accelerator: v4-8, name: mine, zone: zone-a, \
                    version: tpu-ubuntu2204-base, pricing: spot}\n\
                    command: {cmd: 'echo begun >> \"$HOME/begun\"; exec sleep 1000'}\n";
        write_file(&self.env.path("config.yaml"), text);
    }

    fn begun(&self) -> usize {
        std::fs::read_to_string(self.env.path("begun")).map_or(0, |text| text.lines().count())
    }
}

#[test]
fn a_job_keeps_its_number_from_create_to_delete() {
    let jobman = JobMan::new();
    let _monitor = jobman.env.daemon(&[]);
    jobman.config();
    let said = jobman.run("create --config=config.yaml").exits(0);
    assert!(said.stdout.contains("alice/1"), "{}", said.report());
    jobman.is("000001", "RUNNING");
    wait_until("it has begun", || jobman.begun() == 1);
    let seen = jobman.listed("000001");
    let of = |key: &str| seen[key].as_str().unwrap_or_default().to_owned();
    assert_eq!([of("accelerator"), of("zone"), of("name")], ["v4-8", "zone-a", "train"]);
    let table = jobman.run("list").exits(0).stdout;
    assert!(table.starts_with("Job ID") && table.contains("zone-a: 8 cores"), "{table}");
    let target = jobman.env.job("alice", 1)["tpu"].as_str().unwrap().to_owned();

    // Nobody begins it beside itself.
    drop(jobman.run("start 000001").exits(4).says(&["is running", "tpu jobman reboot 000001"]));
    assert_eq!(jobman.env.jobs("alice").len(), 1);

    drop(jobman.run("stop 000001").exits(0));
    jobman.is("000001", "IDLE");
    assert_eq!(jobman.state_of(&target), "ready");
    drop(jobman.run("resume 1").exits(0));
    wait_until("it has begun again", || jobman.begun() == 2);
    drop(jobman.run("reboot 000001 --force").exits(0));
    wait_until("and again", || jobman.begun() == 3);
    let seen = jobman.listed("000001");
    assert_eq!((&seen["state"], &seen["window"]), (&"RUNNING".into(), &3.into()), "{seen}");
    let again = jobman.env.job("alice", 3).to_string();
    assert!(again.contains(r#""setup_how":"force""#), "{again}");
    let status = jobman.run("status 000001").exits(0).stdout;
    assert!(status.contains("000001") && status.contains("RUNNING"), "{status}");
    drop(jobman.run("stop 000009").exits(3).says(&["no job 000009"]));
    drop(jobman.run("stop train").exits(2).says(&["no number of a job"]));

    let would = jobman.run("delete 000001 --dry-run").exits(0).stdout;
    assert!(would.contains("000001") && would.contains(&target), "{would}");
    let done = jobman.run("delete 000001 -y --json").exits(0).json();
    assert_eq!(done["done"][0]["id"], "000001");
    assert_eq!(done["done"][0]["deleted"], target.as_str());
    assert_ne!(jobman.state_of(&target), "ready");
    assert!(jobman.env.jobs("alice").is_empty());
}

#[test]
fn what_cannot_be_deleted_is_not_forgotten() {
    let jobman = JobMan::new();
    let env = &jobman.env;
    drop(env.tpu("register mine --type v4-8 --zone zone-a").exits(0));
    drop(env.tpu("apply mine").exits(0));
    drop(env.tpu("run mine -q -- sleep 1000").exits(0));
    jobman.is("000001", "RUNNING");
    drop(env.tpu("sim event error class=auth call=delete times=3").exits(0));
    let said = jobman.run("delete 1 -y");
    assert_ne!(said.code, 0, "{}", said.report());
    assert_eq!(env.jobs("alice").len(), 1, "{}", said.report());
    assert_eq!(jobman.state_of("mine"), "ready");
    drop(env.tpu("sim event calm").exits(0));
    drop(jobman.run("delete 1 -y").exits(0));
    assert_ne!(jobman.state_of("mine"), "ready");
    assert!(env.jobs("alice").is_empty());
}

#[test]
fn what_cannot_be_asked_is_not_forgotten_either() {
    let jobman = JobMan::new();
    let env = &jobman.env;
    drop(env.tpu("register mine --type v4-8 --zone zone-a").exits(0));
    drop(env.tpu("apply mine").exits(0));
    drop(env.tpu("run mine -q -- true").exits(0));
    drop(env.wait_status(1, "finished"));
    drop(env.tpu("sim event error class=auth times=99").exits(0));
    let said = jobman.run("clean 1 -y");
    assert_ne!(said.code, 0, "{}", said.report());
    assert_eq!(env.jobs("alice").len(), 1, "{}", said.report());
    drop(env.tpu("sim event calm").exits(0));
    assert_eq!(jobman.state_of("mine"), "ready");
}

#[test]
fn no_rule_makes_a_tpu_anew_behind_a_delete() {
    let jobman = JobMan::new();
    let env = &jobman.env;
    drop(env.tpu("register mine --type v4-8 --zone zone-a").exits(0));
    drop(env.tpu("apply mine").exits(0));
    drop(env.tpu("run mine rule=pre -q -- sleep 1000").exits(0));
    jobman.is("000001", "RUNNING");
    drop(env.tpu("sim capacity mine --off").exits(0));
    let _monitor = env.daemon(&[]);
    drop(env.tpu("sim preempt mine").exits(0));
    // It is asked for again and again, since its job is to come back.
    jobman.is("000001", "QUEUEING");
    let tried = || env.job("alice", 1)["extra_msgs"]["recovery"]["capacity"].as_u64();
    wait_until("it is asked for", || tried() >= Some(1));
    wait_until("it is deleted", || jobman.run("delete 000001 -y").code == 0);
    assert!(env.jobs("alice").is_empty());
    drop(env.tpu("sim capacity mine").exits(0));
    drop(env.tpu("ack").exits(0));
    let plan = env.tpu("daemon plan --json").exits(0).stdout;
    assert!(!plan.contains("mine"), "{plan}");
    assert_ne!(jobman.state_of("mine"), "ready");
}

#[test]
fn nobody_elses_work_goes_with_a_job() {
    let jobman = JobMan::new();
    let env = &jobman.env;
    drop(env.tpu("register mine --type v4-8 --zone zone-a").exits(0));
    drop(env.tpu("apply mine").exits(0));
    drop(env.tpu("run mine -q -- true").exits(0));
    drop(env.wait_status(1, "finished"));
    drop(env.tpu("run mine -q -- sleep 1000").exits(0));
    jobman.is("000002", "RUNNING");
    drop(jobman.run("delete 1 -y").exits(4).says(&["in use by alice/2"]));
    drop(jobman.run("clean --all -y").exits(4).says(&["in use by alice/2"]));
    assert_eq!(jobman.state_of("mine"), "ready");
    assert_eq!(env.jobs("alice").len(), 2);
    // Here there is no machine to delete.
    drop(env.tpu("run local -q -- true").exits(0));
    drop(env.wait_status(3, "finished"));
    drop(jobman.run("clean 3 -y").exits(0));
    assert_eq!(env.jobs("alice").len(), 2);
}

#[test]
fn what_goes_on_elsewhere_by_now_is_not_started_beside_it() {
    let jobman = JobMan::new();
    let env = &jobman.env;
    drop(env.tpu("register mine --type v4-8 --zone zone-a").exits(0));
    drop(env.tpu("apply mine").exits(0));
    drop(env.tpu("run mine -q -- sleep 1000").exits(0));
    drop(jobman.run("stop 1").exits(0));
    drop(env.tpu("run mine -q -- sleep 1000").exits(0));
    jobman.is("000002", "RUNNING");
    let said = jobman.run("start 1");
    assert_ne!(said.code, 0, "{}", said.report());
    assert_eq!(env.jobs("alice").len(), 2, "{}", said.report());
}

#[test]
fn what_waits_to_go_on_is_deleted_with_its_tpu() {
    let jobman = JobMan::new();
    let env = &jobman.env;
    drop(env.tpu("register mine --type v4-8 --zone zone-a").exits(0));
    drop(env.tpu("apply mine").exits(0));
    drop(env.tpu("run mine -q -- sleep 1000").exits(0));
    jobman.is("000001", "RUNNING");
    drop(env.tpu("requeue 1 --hold").exits(0));
    jobman.is("000001", "QUEUEING");
    let would = jobman.run("delete 1 --dry-run").exits(0).stdout;
    assert!(would.contains("mine"), "{would}");
    let done = jobman.run("delete 1 -y --json").exits(0).json();
    assert_eq!(done["done"][0]["deleted"], "mine", "{done}");
    assert!(env.jobs("alice").is_empty());
    assert!(env.data()["queue"]["entries"][0].is_null());
    assert_ne!(jobman.state_of("mine"), "ready");
}

#[test]
fn a_stop_ends_also_what_a_rule_would_bring_back() {
    let jobman = JobMan::new();
    let env = &jobman.env;
    drop(env.tpu("register mine --type v4-8 --zone zone-a").exits(0));
    drop(env.tpu("apply mine").exits(0));
    drop(env.tpu("run mine rule=pre -q -- sleep 1000").exits(0));
    jobman.is("000001", "RUNNING");
    drop(env.tpu("sim capacity mine --off").exits(0));
    let _monitor = env.daemon(&[]);
    drop(env.tpu("sim preempt mine").exits(0));
    wait_until("its preemption is known", || env.job("alice", 1)["error"] == "preempted");
    wait_until("it is stopped", || jobman.run("stop 1").code == 0);
    let stopped = env.job("alice", 1);
    assert_eq!((&stopped["status"], &stopped["error"]), (&json!("error"), &json!("preempted")));
    let plan = env.tpu("daemon plan --json").exits(0).json();
    assert_eq!(plan["jobs"][0]["next"]["action"], "pass", "{plan}");
}

#[test]
fn a_reboot_that_could_not_begin_again_stops_nothing() {
    let jobman = JobMan::new();
    let env = &jobman.env;
    let keep = env.spawn(&["secrets", "set", "A_KEY"]).stdin(b"x".to_vec());
    drop(env.output(&keep).exits(0));
    write_file(&env.path("job.yaml"), "target: local\nsecrets: [A_KEY]\ncommand: sleep 1000\n");
    drop(env.tpu("run job.yaml -q").exits(0));
    jobman.is("000001", "RUNNING");
    env.wait_status(1, "running");
    drop(env.tpu("secrets remove A_KEY -y").exits(0));
    drop(jobman.run("reboot 1").exits(3).says(&["no secret A_KEY is kept"]));
    assert_eq!(env.job("alice", 1)["status"], "running");
}

#[test]
fn what_waits_is_held_by_a_stop_and_taken_out_by_a_cancel() {
    let jobman = JobMan::new();
    jobman.config();
    drop(jobman.run("create config.yaml").exits(0));
    jobman.is("000001", "QUEUEING");
    drop(jobman.run("stop 000001").exits(0));
    let entry = || jobman.env.data()["queue"]["entries"][0].clone();
    assert_eq!(entry()["held"]["why"], "stopped");
    drop(jobman.run("start 000001").exits(0));
    assert!(entry()["held"].is_null(), "{}", entry());
    drop(jobman.run("start 000001").exits(4).says(&["waits for its turn"]));
    drop(jobman.run("cancel 000001").exits(0));
    assert!(entry().is_null());
    assert!(jobman.env.jobs("alice").is_empty());
}

#[test]
fn what_runs_in_the_foreground_shows_what_it_prints_and_ends_as_it_does() {
    let jobman = JobMan::new();
    let env = &jobman.env;
    let script = "echo first >> \"$HOME/tries\"; echo try $(wc -l < \"$HOME/tries\"); test $(wc -l < \"$HOME/tries\") -ge 3";
    env.code("alice", "try.sh", script);
    drop(env.tpu("run local -q -- bash try.sh").exits(0));
    wait_until("it has failed", || env.job("alice", 1)["status"] == "error");
    let said = jobman.run("run 000001");
    assert!(said.code != 0 && said.stdout.contains("try 2"), "{}", said.report());
    let said = jobman.run("run 000001 --cmd-only").exits(0);
    assert!(said.stdout.contains("try 3"), "{}", said.report());
    assert_eq!(jobman.listed("000001")["window"], 3);
}
