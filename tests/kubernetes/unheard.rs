//! What is known of a run that the server does not tell of: it does not answer, or was asked at another moment.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{ErrorKind, RunFact, RunState};
use tpu_kubernetes::api::ApiVerb;
use tpu_system::sys::clock::{Clock as _, ManualClock};

use super::stage::{JOBS, Stage, ended, refused, running, said};

#[test]
fn an_end_that_was_seen_stands_while_the_server_does_not_answer() {
    let stage = Stage::new();
    let [done, printing, at_work] = [1, 2, 3].map(|number| stage.begun(number));
    let pod = stage.pod(&done, &ended("Failed", "Error", 3));
    stage.play(|play| play.table.logs.insert(pod, "2027-01-15T08:00:00Z said\n".to_owned()));
    // Of this one the log cannot be had yet.
    let late = stage.pod(&printing, &ended("Failed", "Error", 3));
    stage.play(|play| {
        for pod in &mut play.table.pods {
            let end = &mut pod["status"]["containerStatuses"][0]["state"]["terminated"];
            end["finishedAt"] = json!("2027-01-15T08:00:00Z");
        }
    });
    stage.pod(&at_work, &running());
    let all = [&done, &printing, &at_work];
    let before = stage.look(&all);
    assert_eq!(before[0].exit.map(Exit::code), Some(3), "{before:?}");
    assert!(before[1].text_waits, "{before:?}");
    stage.play(|play| play.table.logs.insert(late, String::new()));
    stage.hear(|_, _| Some(refused(500, "InternalError", "away")));
    let facts = stage.look(&all);
    assert_eq!(
        (facts[0].state, facts[0].exit, &facts[0].raw),
        (before[0].state, before[0].exit, &before[0].raw)
    );
    assert_eq!((facts[1].state, facts[2].state), (RunState::Unknown, RunState::Unknown));
    let reason = |fact: &RunFact| fact.reason.as_deref().unwrap().to_owned();
    assert!(reason(&facts[1]).contains("has ended"), "{facts:?}");
    assert!(!reason(&facts[2]).contains("has ended"), "{facts:?}");
}

/// A kill asks so, before it stops what has not ended.
#[test]
fn a_server_that_takes_longer_than_a_look_is_heard_by_whoever_waits_as_for_a_stop() {
    let stage = Stage::new();
    let job = stage.begun(1);
    let pod = stage.pod(&job, &ended("Failed", "Error", 3));
    stage.play(|play| play.table.logs.insert(pod, String::new()));
    let is_too_soon = |limit: Duration| limit < Duration::from_secs(5);
    stage.hear(move |call, _| {
        is_too_soon(call.limit).then(|| refused(504, "Timeout", "it takes five seconds"))
    });
    assert_eq!(stage.look(&[&job])[0].state, RunState::Unknown);
    let fact = stage.look_patiently(&[&job]).remove(0);
    assert_eq!(fact.exit.map(Exit::code), Some(3), "{fact:?}");
}

/// First its container has ended by a signal; then the cluster says that it was for the time it had.
#[test]
fn the_cause_that_was_told_last_is_the_one_that_stands() {
    let stage = Stage::new();
    let job = stage.begun(1);
    let pod = stage.pod(&job, &ended("Failed", "Error", 143));
    stage.play(|play| play.table.logs.insert(pod, String::new()));
    let first = stage.look(&[&job]).remove(0);
    stage.play(|play| {
        play.table.jobs[0]["status"] = json!({"failed": 1, "conditions": [{
            "type": "Failed", "status": "True", "reason": "DeadlineExceeded",
            "message": "Job was active longer than specified deadline",
        }]});
    });
    let told = stage.look(&[&job]).remove(0);
    assert_ne!(first.cause, told.cause, "{first:?} {told:?}");
    stage.hear(|_, _| Some(refused(500, "InternalError", "away")));
    let untold = stage.look(&[&job]).remove(0);
    assert_eq!((untold.cause, untold.exit), (told.cause, told.exit), "{untold:?}");
}

/// A pod on a dead node counts as lost as long as the cluster says so; nobody has seen it end.
#[test]
fn what_was_lost_with_its_node_is_not_known_while_nothing_answers() {
    let stage = Stage::new();
    let job = stage.begun(1);
    stage.pod(&job, &running());
    stage.play(|play| {
        play.table.pods[0]["metadata"]["deletionTimestamp"] = json!("2027-01-15T07:50:00Z");
    });
    let lost = stage.look(&[&job]).remove(0);
    assert_eq!(lost.cause, Some(ErrorKind::Lost), "{lost:?}");
    stage.hear(|_, _| Some(refused(500, "InternalError", "away")));
    let fact = stage.look(&[&job]).remove(0);
    assert_eq!((fact.state, fact.cause), (RunState::Unknown, None), "{fact:?}");
    assert!(!fact.reason.as_deref().unwrap().contains("has ended"), "{fact:?}");
}

/// Whoever submits has another clock than whoever looks.
#[test]
fn what_came_behind_the_list_is_not_gone_whatever_the_clocks_say() {
    for (ahead, behind) in [(0, 3_600), (3_600, 0)] {
        let stage = Stage::new();
        let job = stage.claim(1);
        let now = stage.clock.now().plus_seconds(ahead);
        let there = Stage::ctx(&stage.env, &Arc::new(ManualClock::new(now)), "there");
        stage.submit_by(&there, &job).unwrap();
        stage.clock.advance(Duration::from_secs(behind));
        // The record does not say yet that it is there, and the list was made before it came.
        let (mut lists, without) = (0, said(200, &json!({"items": []})));
        stage.hear(move |call, _| {
            let is_list = call.verb == ApiVerb::Get && call.path == JOBS;
            lists += usize::from(is_list);
            (is_list && lists == 1).then(|| without.clone())
        });
        let fact = stage.look(&[&job]).remove(0);
        assert_eq!(fact.state, RunState::Unknown, "{fact:?}");
        // Once it is gone, that is known, and at once.
        stage.play(|play| play.table.jobs.clear());
        let fact = stage.look(&[&job]).remove(0);
        assert_eq!((fact.state, &*fact.raw), (RunState::Gone, "Gone"), "{fact:?}");
    }
}
