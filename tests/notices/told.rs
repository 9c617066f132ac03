//! Each thing of which people are told, as it comes about: once, of the right job, and to those whom that job names as
//! well.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use tpu_core::model::ids::{JobId, JobNumber, TargetName, UserName};
use tpu_core::model::making::Making;
use tpu_core::model::time::Timestamp;
use tpu_ops::Ctx;
use tpu_ops::act::notices::{Follower, round};
use tpu_system::store::Event;
use tpu_system::sys::clock::ManualClock;
use tpu_system::sys::env::Env;

use super::hook::Hook;
use super::{Lab, webhook};
use crate::common::wait::wait_until;

const TARGET: &str = "lab-tpuvm-v2-32-1";

/// What somebody is told: the event, the job and the kind of failure.
type Told = (String, Option<u64>, Option<String>);

/// A lab at an instant, in which nobody delivers anything.
struct Still {
    lab: Lab,
    begin: Timestamp,
    follower: Follower,
}

impl Still {
    fn new() -> Self {
        let lab = Lab::new();
        let mut data = lab.env.two_users();
        data["all_tpus"]["spot"] = json!([TARGET]);
        lab.env.write_data(&data);
        lab.tell("alice", &webhook("http://127.0.0.1:9/setting"));
        let begin = lab.env.ctx(Env::read()).clock.now();
        let mut still = Self { lab, begin, follower: Follower::default() };
        still.look(0);
        still
    }

    fn at(&self, seconds: i64) -> Ctx {
        let mut ctx = self.lab.env.ctx(Env::read());
        ctx.effects.clock = Arc::new(ManualClock::new(self.begin.plus_seconds(seconds)));
        ctx
    }

    /// A round of the daemon, so many seconds after the beginning.
    fn look(&mut self, seconds: i64) {
        drop(round(&self.at(seconds), &mut self.follower, &[]).unwrap());
    }

    /// A line of the journal about a job of alice's.
    fn note(&self, seconds: i64, job: u32, kind: &str, text: &str) {
        let event = Event {
            at: self.begin.plus_seconds(seconds),
            actor: "test".to_owned(),
            account: None,
            user: Some(UserName::from("alice")),
            job: Some(JobNumber(job)),
            kind: kind.to_owned(),
            text: text.to_owned(),
            data: Value::Null,
        };
        self.at(seconds).store.note(&[event]).unwrap();
    }

    /// What waits to be told at each place.
    fn told(&self) -> BTreeMap<String, Vec<Told>> {
        let text = std::fs::read_to_string(self.lab.env.path("tpu-state/outbox.json")).unwrap();
        let outbox: Value = serde_json::from_str(&text).unwrap();
        let mut told = BTreeMap::new();
        for line in outbox["lines"].as_array().unwrap() {
            let to = line["to"]["webhook"].as_str().unwrap_or_default().to_owned();
            let place = to.rsplit('/').next().unwrap().to_owned();
            let notices = line["waiting"].as_array().unwrap().iter().map(|one| &one["notice"]);
            let said = notices.map(|one| {
                let error = one["error"].as_str().map(str::to_owned);
                (one["event"].as_str().unwrap().to_owned(), one["job"].as_u64(), error)
            });
            told.insert(place, said.collect());
        }
        told
    }

    /// Of those of the setting, the events.
    fn events(&self) -> Vec<String> {
        let mut told = self.told();
        told.remove("setting").unwrap_or_default().into_iter().map(|(event, ..)| event).collect()
    }

    /// A record of alice's that has failed on a target that can be taken away.
    fn failed(&self, window: u64, ended: i64) {
        let mut record = self.lab.env.record("alice", window, "error");
        let at = |seconds: i64| self.begin.plus_seconds(seconds).to_rfc3339();
        record["tpu"] = json!(TARGET);
        record["error"] = json!("killed-by-signal");
        record["extra_msgs"] = json!({
            "launch": { "token": format!("t{window}"), "mode": "native", "at": at(ended - 60),
                        "confirmed": true, "ended": at(ended) },
            "verdict": { "kind": "killed-by-signal", "rule": "exit", "line": "by signal 9" },
        });
        let mut data = self.lab.env.data();
        data["users"]["alice"]["job_data"].as_array_mut().unwrap().push(record);
        self.lab.env.write_data(&data);
    }

    fn change(&self, window: u64, change: impl FnOnce(&mut Value)) {
        let mut data = self.lab.env.data();
        let jobs = data["users"]["alice"]["job_data"].as_array_mut().unwrap();
        change(jobs.iter_mut().find(|job| job["windows_id"] == window).unwrap());
        self.lab.env.write_data(&data);
    }
}

#[test]
fn jobs_that_fail_alike_at_one_instant_are_each_told() {
    let mut still = Still::new();
    for job in [3, 4, 5] {
        still.note(1, job, "error", "launch: no window");
    }
    still.look(2);
    let jobs: Vec<_> = still.told()["setting"].iter().map(|(_, job, _)| *job).collect();
    assert_eq!(jobs, [Some(3), Some(4), Some(5)]);
}

#[test]
fn what_its_dependency_ended_and_a_spent_budget_are_told() {
    let mut still = Still::new();
    still.note(1, 3, "dependency", "alice/2 failed");
    still.note(1, 4, "stopped", "20 of 20 attempts");
    still.look(2);
    let wanted = [
        ("error".to_owned(), Some(3), Some("dependency".to_owned())),
        ("budget-spent".to_owned(), Some(4), None),
    ];
    assert_eq!(still.told()["setting"], wanted);
}

#[test]
fn a_preemption_that_began_as_a_failure_is_one_notice() {
    let mut still = Still::new();
    still.failed(1, 0);
    still.failed(2, 0);
    still.note(1, 1, "error", "killed-by-signal: by signal 9");
    still.note(1, 2, "error", "killed-by-signal: by signal 9");
    still.look(5);
    assert_eq!(still.events(), [""; 0], "the control plane has not said what it was");
    // Of the one it says that its target was taken, of the other that it was not.
    still.change(1, |job| {
        job["error"] = json!("preempted");
        job["extra_msgs"]["verdict"] =
            json!({ "kind": "preempted", "rule": "target-state", "line": "it is PREEMPTED" });
    });
    still.note(6, 1, "error", "preempted: it is PREEMPTED");
    let judged = still.begin.plus_seconds(6).to_rfc3339();
    for window in [1, 2] {
        still.change(window, |job| job["extra_msgs"]["recovery"] = json!({ "judged": judged }));
    }
    still.look(7);
    let mut told: Vec<_> =
        still.told()["setting"].iter().map(|(event, job, _)| (event.clone(), *job)).collect();
    told.sort();
    assert_eq!(told, [("error".to_owned(), Some(2)), ("preempted".to_owned(), Some(1))]);
    // One of which nobody ever says anything is told all the same.
    still.failed(3, 10);
    still.note(10, 3, "error", "killed-by-signal: by signal 9");
    still.look(12);
    assert_eq!(still.events().len(), 2);
    still.look(200);
    assert_eq!(still.told()["setting"].last().unwrap().1, Some(3));
}

#[test]
fn a_target_that_is_not_to_be_had_for_an_hour_is_told_once_whoever_asks_for_it() {
    let mut still = Still::new();
    let own = "no-capacity=http://127.0.0.1:9/own";
    let words = ["submit", "local", "alice", "--hold", "--json", "--notify", own, "--", "true"];
    let number = still.lab.env.tpu_words(&words).exits(0).json();
    let number = number["submitted"]["window"].as_u64().or(number["window"].as_u64()).unwrap_or(1);
    let entry = u32::try_from(number).unwrap();
    let (begin, hour) = (still.begin, 3_600);
    still.lab.env.change(|data| {
        data.queues_mut().makings.push(Making {
            target: TargetName::from(TARGET),
            job: JobId::new(UserName::from("alice"), JobNumber(entry)),
            place: String::new(),
            token: "token".to_owned(),
            first: begin,
            // It was refused a minute ago, and is asked for anew.
            since: begin.plus_seconds(hour - 60),
            tries: 9,
            again: Some((begin.plus_seconds(hour + 60), "no more capacity".to_owned())),
            needs_login: false,
        });
    });
    // A job that was taken its target, which is asked for again and again.
    still.failed(70, -60);
    let since = still.begin.to_rfc3339();
    still.change(70, |job| {
        job["extra_msgs"]["recovery"] = json!({ "waits_since": since, "judged": since });
    });
    still.look(hour - 1);
    assert_eq!(still.events(), [""; 0], "not for an hour yet");
    for seconds in [hour, hour + 5, 2 * hour] {
        still.look(seconds);
        let told = still.told();
        let jobs: Vec<_> = told["setting"].iter().map(|(event, job, _)| (&**event, *job)).collect();
        assert_eq!(jobs, [("no-capacity", Some(number)), ("no-capacity", Some(70))]);
        assert_eq!(told["own"].len(), 1, "its own receiver knows it as well");
    }
    // Once it goes on and its next target is not to be had either, that is another one.
    still.change(70, |job| job["extra_msgs"]["recovery"] = json!({ "judged": since }));
    still.look(2 * hour + 5);
    let since = still.begin.plus_seconds(2 * hour).to_rfc3339();
    still.change(70, |job| job["extra_msgs"]["recovery"] = json!({ "waits_since": since }));
    still.look(3 * hour + 10);
    assert_eq!(still.events().len(), 3);
}

#[test]
fn the_last_of_a_queue_tells_its_own_receivers_that_nothing_waits() {
    let mut still = Still::new();
    let own = "queue-empty=http://127.0.0.1:9/own";
    let words = ["submit", "local", "alice", "--hold", "--notify", own, "--", "true"];
    drop(still.lab.env.tpu_words(&words).exits(0));
    still.look(1);
    drop(still.lab.env.tpu("dequeue 1 alice -y").exits(0));
    still.look(2);
    assert_eq!(still.events().last().map(String::as_str), Some("queue-empty"));
    assert_eq!(still.told()["own"].len(), 1, "{:?}", still.told());
}

/// Of a place, what was told of with its kind.
fn got(hook: &Hook) -> Vec<(String, Option<String>)> {
    let got = hook.got();
    let all = got.iter().flat_map(|got| got.body["events"].as_array().cloned().unwrap_or_default());
    let text = |value: &Value| value.as_str().map(str::to_owned);
    all.map(|event| (text(&event["event"]).unwrap(), text(&event["error"]))).collect()
}

#[test]
fn what_a_program_shows_while_it_is_there_is_told_once() {
    let lab = Lab::new();
    let hook = Hook::good();
    lab.tell("alice", &webhook(&hook.url()));
    let monitor = lab.env.daemon(&[]);
    let words = |shell: &str| {
        drop(
            lab.env
                .tpu_words(&["run", "local", "alice", "rule=pass", "--", "bash", "-c", shell])
                .exits(0),
        );
    };
    words("echo step 1 loss nan; sleep 1000");
    let look = || drop(lab.env.tpu("ack").exits(0));
    wait_until("a loss that is none", || {
        look();
        got(&hook).contains(&("diverged".to_owned(), None))
    });
    lab.env.code("alice", "staging.sh", "echo 'jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory'; until [ -e \"$HOME/go\" ]; do sleep 0.4; done; exit 1");
    drop(lab.env.tpu("run local alice rule=pass -q").exits(0));
    let oom = ("error".to_owned(), Some("oom".to_owned()));
    wait_until("a failure in its text", || {
        look();
        got(&hook).contains(&oom)
    });
    lab.env.touch("go");
    drop(lab.env.wait_status(2, "error"));
    // Whatever is told next has come behind it.
    words("true");
    wait_until("the next", || got(&hook).iter().any(|(event, _)| event == "finished"));
    let all = got(&hook);
    assert_eq!(all.iter().filter(|of| **of == oom).count(), 1, "{all:?}");
    assert_eq!(all.iter().filter(|(event, _)| event == "diverged").count(), 1, "{all:?}");
    drop(monitor);
}
