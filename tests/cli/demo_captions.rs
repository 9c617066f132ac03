//! The line on the demo's screen and the text at its end say no more than what is written down, whatever is missing there.

use std::collections::HashMap;

use serde_json::json;
use tpu::demo::caption::captions;
use tpu::demo::report::report;
use tpu::demo::tale::{DemoFacts, DemoTale};
use tpu::simulator::{FleetEvent, Happened, Scheduled};
use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::{JobId, JobNumber, TargetName, UserName};
use tpu_core::model::job::Status;
use tpu_core::model::member::Member;
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::{JobView, Next};
use tpu_ops::observe::journal::Event;

use crate::common::samples;

/// The target that is taken away.
const FOUR: &str = "lab-tpuvm-v4-32-preemptible-2";
/// The target whose programs lose their connection.
const THREE: &str = "lab-tpuvm-v2-8-3";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second)
}

fn id(window: u32) -> JobId {
    JobId::new(UserName::from("alice"), JobNumber(window))
}

/// A line of the journal.
fn event(second: i64, window: u32, kind: &str, text: &str) -> Event {
    Event {
        at: at(second),
        actor: "daemon".to_owned(),
        account: None,
        user: Some(UserName::from("alice")),
        job: Some(JobNumber(window)),
        kind: kind.to_owned(),
        text: text.to_owned(),
        data: serde_json::Value::Null,
    }
}

/// An attempt is made on a target.
fn launch(second: i64, window: u32, kind: &str, target: &str) -> Event {
    let data = json!({ "target": target });
    Event { data, ..event(second, window, kind, &format!("on {target}")) }
}

fn happened(second: i64, target: &str, what: &str) -> Happened {
    Happened { at: at(second), target: target.to_owned(), what: what.to_owned() }
}

/// A job at work on a target.
fn running(window: u32, target: &str) -> JobView {
    let mut job = samples::job(window);
    job.target = TargetName::from(target);
    job.tags = None;
    job
}

/// An attempt for which another one goes on, and that one.
fn succeeded(parent: u32, child: u32, (target, kind): (&str, ErrorKind)) -> [JobView; 2] {
    let mut father = samples::ancestor(parent, &[parent, child], kind);
    father.target = TargetName::from(target);
    let mut son = running(child, target);
    son.lineage = vec![JobNumber(parent), JobNumber(child)];
    [father, son]
}

/// A job that has failed, and what its rules say.
fn failed(window: u32, kind: ErrorKind, (action, reason): (&str, &str)) -> JobView {
    let mut job = running(window, "local");
    job.shown.status = Status::Error(kind);
    job.stored = Status::Error(kind);
    let (action, reason) = (action.to_owned(), reason.to_owned());
    job.next = Some(Next { action, in_s: None, budget_left: None, reason, waits: false });
    job
}

fn facts(now: i64, jobs: Vec<JobView>, journal: Vec<Event>) -> DemoFacts {
    DemoFacts {
        now: at(now),
        jobs,
        journal,
        happened: Vec::new(),
        coming: Vec::new(),
        first_steps: HashMap::new(),
    }
}

/// The longest line.
fn said(facts: &DemoFacts) -> String {
    captions(&DemoTale::of(facts)).first().cloned().unwrap_or_default()
}

/// A target is taken at 10, seen at 12, asked for at 13 and there at 15; the job goes on at 16, from step 120, and its
/// program is started at 24.
fn whole_story() -> DemoFacts {
    let jobs = succeeded(1, 6, (FOUR, ErrorKind::Preempted));
    let journal = vec![
        launch(0, 1, "run", FOUR),
        event(1, 1, "started", "logs in /tmp"),
        event(11, 1, "error", "unknown: exit code 255"),
        event(12, 1, "error", "preempted: it is PREEMPTED"),
        event(13, 1, "reapply", "of it, after preempted"),
        launch(16, 6, "resume", FOUR),
        event(24, 6, "started", "logs in /tmp"),
    ];
    let mut facts = facts(30, jobs.to_vec(), journal);
    facts.happened = vec![
        happened(10, FOUR, "preempted"),
        happened(13, FOUR, "creating"),
        happened(15, FOUR, "ready"),
    ];
    facts.first_steps = HashMap::from([(id(6), 120)]);
    facts
}

#[test]
fn a_target_that_was_taken_is_followed_to_the_step_from_which_its_job_goes_on() {
    assert_eq!(
        said(&whole_story()),
        "alice/1's v4-32-p2 was taken → a new one was made → alice/6 goes on from step 120, 14 s lost · \
         q ends it"
    );
}

/// At every moment of the story no more is said than what the journal and the fleet have by then.
#[test]
fn a_journal_that_stops_in_the_middle_ends_the_line_there() {
    let whole = whole_story();
    let until = |now: i64| {
        let mut facts = whole.clone();
        facts.now = at(now);
        facts.journal.retain(|event| event.at <= at(now));
        facts.happened.retain(|happened| happened.at <= at(now));
        // What was printed, and the records, may be ahead of what was read of the journal.
        said(&facts)
    };
    assert_eq!(until(9), "1 job started");
    assert_eq!(until(10), "alice/1's v4-32-p2 was taken 0 s ago → nobody has noticed yet");
    assert_eq!(until(11), "alice/1's v4-32-p2 was taken 1 s ago → the daemon has seen it");
    assert_eq!(until(12), "alice/1's v4-32-p2 was taken 2 s ago → the daemon has seen it");
    assert_eq!(until(14), "alice/1's v4-32-p2 was taken 4 s ago → a new one is being made");
    assert_eq!(until(15), "alice/1's v4-32-p2 was taken 5 s ago → a new one was made");
    // Nobody knows yet how many seconds are lost.
    let line = until(20);
    assert!(line.ends_with("→ alice/6 goes on from step 120 · q ends it"), "{line}");
}

#[test]
fn a_job_that_never_comes_back_is_not_said_to() {
    let mut facts = whole_story();
    facts.now = at(70);
    facts.journal.retain(|event| event.job == Some(JobNumber(1)));
    facts.happened.retain(|happened| happened.what == "preempted");
    facts.journal.push(event(20, 1, "not-resumed", "there is no capacity"));
    let lines = captions(&DemoTale::of(&facts));
    assert_eq!(
        lines.first().unwrap(),
        "alice/1's v4-32-p2 was taken 60 s ago → the daemon has seen it → not back yet: there is no capacity"
    );
    for line in &lines {
        assert!(
            !line.contains("goes on") && !line.contains("lost") && !line.contains("made"),
            "{line}"
        );
    }
    let text = report(&DemoTale::of(&facts));
    assert!(text.contains("not back        alice/1: there is no capacity"), "{text}");
    assert!(!text.contains("brought back"), "{text}");
}

/// The record of the child is there, and the journal has no word of it: whose child it is, is not claimed.
#[test]
fn a_child_of_another_job_is_no_comeback() {
    let mut facts = whole_story();
    for job in &mut facts.jobs {
        job.lineage = vec![job.id.window];
    }
    let line = said(&facts);
    assert!(!line.contains("alice/6"), "{line}");
}

#[test]
fn of_two_events_at_once_neither_is_forgotten() {
    let mut facts = whole_story();
    facts.now = at(14);
    facts.journal.retain(|event| event.at <= at(14));
    facts.happened.retain(|happened| happened.at <= at(14));
    facts.jobs.push(failed(2, ErrorKind::Grpc, ("resume", "it is resumed")));
    facts.journal.push(launch(0, 2, "run", THREE));
    facts.journal.push(event(14, 2, "error", "grpc: Socket closed"));
    facts.happened.push(happened(13, THREE, "grpc error"));
    let lines = captions(&DemoTale::of(&facts));
    assert_eq!(
        lines.first().unwrap(),
        "alice/2 lost its connection on v2-8-3 1 s ago, and 1 other job on the way back"
    );
    // The first one is settled: the line is about the other.
    facts.now = at(30);
    facts.journal.extend(whole_story().journal.into_iter().filter(|event| event.at > at(14)));
    facts.happened.push(happened(15, FOUR, "ready"));
    assert_eq!(said(&facts), "alice/2 lost its connection on v2-8-3 17 s ago");
    let text = report(&DemoTale::of(&facts));
    assert!(
        text.contains(
            "brought back    alice/1 as alice/6 on a new v4-32-p2 from step 120, 14 s lost"
        ),
        "{text}"
    );
}

/// The fleet has done it, and the journal has no word of it yet: what follows is not told, and the story is not over.
#[test]
fn what_nobody_has_noticed_is_not_over() {
    let mut facts = facts(20, vec![running(1, THREE)], vec![launch(0, 1, "run", THREE)]);
    facts.happened = vec![happened(18, THREE, "grpc error")];
    let tale = DemoTale::of(&facts);
    assert!(!tale.is_complete());
    assert_eq!(
        captions(&tale).first().unwrap(),
        "v2-8-3 lost its connections 2 s ago, with alice/1 on it → nobody has noticed yet"
    );
    // Nothing was lost where the program had ended before.
    facts.journal.push(event(17, 1, "finished", "exit code 0"));
    assert_eq!(DemoTale::of(&facts).setbacks, []);
}

#[test]
fn what_is_left_alone_says_why_and_what_a_signal_killed_is_left_to_the_person() {
    let oom = failed(
        3,
        ErrorKind::Oom,
        ("pass", "no automatic restart (rule oom=pass). To restart: tpu resume 3 alice"),
    );
    let killed = failed(5, ErrorKind::KilledBySignal, ("pass", "the rule for it is pass"));
    let journal = vec![
        launch(0, 3, "run", "local"),
        launch(0, 5, "run", "local"),
        event(2, 5, "error", "killed-by-signal: exit code 137"),
        event(4, 3, "error", "oom: Used 18.25G of 15.75G hbm"),
    ];
    let mut facts = facts(9, vec![oom, killed], journal);
    assert_eq!(
        said(&facts),
        "alice/3 ran out of memory → left alone: no automatic restart (rule oom=pass). \
         To restart: tpu resume 3 alice · \
         your turn: r on alice/5 brings it back; q ends"
    );
    facts.coming =
        vec![Scheduled { at: at(17), event: FleetEvent::Preempt { target: FOUR.to_owned() } }];
    let lines = captions(&DemoTale::of(&facts));
    assert!(lines[0].ends_with(" · in about 8 s v4-32-p2 will be taken away"), "{}", lines[0]);
    let shortest = lines.iter().map(|line| tpu_core::text::width(line)).min().unwrap();
    assert!(shortest <= 58, "{lines:#?}");
}

#[test]
fn a_member_of_the_sweep_begins_when_another_one_has_left_its_place() {
    let member = |window: u32, index: u32| {
        let mut job = running(window, THREE);
        job.member = Some(Member { group: JobNumber(7), index });
        job
    };
    let mut rest = samples::waiting_group(7, 1, &[2]);
    rest.leaf = true;
    let journal = vec![
        event(0, 7, "queued", "in default"),
        launch(2, 8, "run", THREE),
        event(9, 8, "finished", "exit code 0"),
        launch(11, 9, "run", THREE),
    ];
    let facts = facts(12, vec![member(8, 0), member(9, 1), rest], journal);
    assert_eq!(
        said(&facts),
        "alice/8 left v2-8-3 → alice/9 of the queue began there, 1 job still waits · \
         next: 1 job of the queue, when a place is free"
    );
    let text = report(&DemoTale::of(&facts));
    assert!(text.contains("alice/8 on v2-8-3 after 2 s\n"), "{text}");
    assert!(text.contains("alice/9 on v2-8-3 after 11 s, when alice/8 had left it"), "{text}");
}

#[test]
fn an_empty_journal_says_nothing() {
    assert_eq!(captions(&DemoTale::of(&facts(0, Vec::new(), Vec::new()))), Vec::<String>::new());
}
