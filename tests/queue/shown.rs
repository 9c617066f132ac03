//! What waits is a job like every other in every list: with its number, its place, and why it does not begin.

use serde_json::{Value, json};
use tpu_core::model::spec::TargetRequest;

use super::Lab;

/// What `check` says in JSON of these words.
fn jobs(lab: &Lab, words: &str) -> Vec<Value> {
    let said = lab.env.tpu(&format!("check {words} --json")).exits(0).json();
    said["jobs"].as_array().unwrap().clone()
}

/// Number and status of each, as `check` says.
fn statuses(lab: &Lab, words: &str) -> Vec<(u64, String)> {
    let each = jobs(lab, words).into_iter();
    each.map(|job| (job["window"].as_u64().unwrap(), job["status"].as_str().unwrap().to_owned()))
        .collect()
}

fn are(expected: &[(u64, &str)]) -> Vec<(u64, String)> {
    expected.iter().map(|(number, status)| (*number, (*status).to_owned())).collect()
}

#[test]
fn it_stands_in_the_list_behind_what_runs_in_the_order_of_the_turns() {
    let lab = Lab::new(1);
    let runs = lab.submit("local");
    let waits = lab.submit("local tag=zz dir=1 --name later lr=0.1");
    let held = lab.submit("local --hold priority=80");
    let after = lab.submit(&format!("local after={runs}"));
    drop(lab.env.tpu(&format!("hold {held} --why paper")).exits(0));
    let expected = are(&[(runs, "running"), (held, "held"), (waits, "queued"), (after, "queued")]);
    lab.env.wait_status(runs, "running");
    assert_eq!(statuses(&lab, ""), expected);

    let all = jobs(&lab, "");
    let of = |number: u64| all.iter().find(|job| job["window"] == number).unwrap();
    let pick = |job: &Value, keys: &[&str]| -> Value {
        keys.iter()
            .map(|key| ((*key).to_owned(), job[*key].clone()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let keys = [
        "queue", "position", "priority", "held", "reason", "members", "target", "name", "tags",
        "group",
    ];
    assert_eq!(
        pick(of(waits), &keys),
        json!({"queue": "default", "position": 2, "priority": 50, "held": false, "reason": "others come before it", "members": null,
            "target": "local", "name": "later", "tags": "zz", "group": null})
    );
    assert_eq!(
        pick(of(held), &keys),
        json!({"queue": "default", "position": 1, "priority": 80, "held": true, "reason": "held by alice: paper",
            "members": null, "target": "local", "name": null, "tags": null, "group": null})
    );
    assert_eq!(of(after)["reason"], format!("after alice/{runs}"));
    assert_eq!(
        pick(of(runs), &["kind", "attempt", "nodes", "gpus", "raw", "reason"]),
        json!({"kind": "local", "attempt": 0, "nodes": [], "gpus": null, "raw": null, "reason": null})
    );
    assert_eq!(
        pick(of(runs), &["queue", "position", "held"]),
        json!({"queue": null, "position": null, "held": null})
    );

    let said = lab.env.tpu("check").exits(0);
    let said =
        said.says(&[&format!("Job {waits} (name: later; tag: zz)"), "queued · place 2 in default"]);
    drop(said.says(&["held · place 1 in default: held by alice: paper"]));
    drop(lab.env.tpu("check-simp").exits(0).says(&["queued · place 2 in default"]));
    for (words, expected) in [
        ("status:held", vec![(held, "held")]),
        ("status:queued", vec![(waits, "queued"), (after, "queued")]),
        ("tag:zz", vec![(waits, "queued")]),
        ("later", vec![(waits, "queued")]),
        ("name:lat", vec![(waits, "queued")]),
        (&format!("{held}"), vec![(held, "held")]),
        (&format!("{runs} {held}"), vec![(runs, "running"), (held, "held")]),
        ("tpu:local status:held", vec![(held, "held")]),
    ] {
        assert_eq!(statuses(&lab, words), are(&expected), "{words}");
    }
    drop(lab.env.tpu("check nonesuch").exits(3));
}

#[test]
fn a_queue_that_starts_nothing_and_a_limit_that_is_reached_are_said() {
    let lab = Lab::new(8);
    drop(lab.env.tpu("queue create night --max-parallel 1").exits(0));
    let runs = lab.submit("local queue=night");
    let waits = lab.submit("local queue=night");
    let paused = lab.submit("local --hold");
    drop(lab.env.tpu(&format!("unhold {paused} --dry-run")).exits(0));
    lab.pauses("default", true);
    lab.env.change(|data| data.queues_mut().entries[1].held = None);
    let reasons: Vec<Value> =
        jobs(&lab, "").iter().map(|job| json!([job["window"], job["reason"]])).collect();
    assert_eq!(
        reasons,
        [
            json!([runs, null]),
            json!([waits, format!("queue night has 1 jobs at once: alice/{runs}")]),
            json!([paused, "queue default is paused"]),
        ]
    );
}

#[test]
fn members_that_wait_are_one_row_and_those_that_have_begun_stand_beside_it() {
    let lab = Lab::new(2);
    let group = lab.submit("local --array 0-5 --name arr");
    lab.wait_running(&[group + 1, group + 2]);
    let waits = |said: &[Value]| -> Vec<Value> {
        let waiting = said.iter().filter(|job| job["status"] == "queued");
        waiting
            .map(|job| json!([job["window"], job["group"], job["member"], job["members"]]))
            .collect()
    };
    let said = jobs(&lab, "");
    assert_eq!(said.len(), 3);
    assert_eq!(said[0]["group"], group);
    assert_eq!((&said[0]["member"], &said[0]["members"]), (&json!(0), &Value::Null));
    assert_eq!(waits(&said), [json!([group, group, null, [2, 3, 4, 5]])]);
    let each: Vec<Value> = (2..6).map(|index| json!([group, group, index, null])).collect();
    assert_eq!(waits(&jobs(&lab, "--members")), each);

    let line = "6 members: 2 running, 4 queued · place 1 in default";
    lab.env.wait_status(group + 2, "running");
    lab.env.wait_status(group + 1, "running");
    drop(lab.env.tpu("check").exits(0).says(&[&format!("Group {group}"), line]));
    drop(lab.env.tpu("check-simp").exits(0).says(&[line]));
    assert_eq!(jobs(&lab, &group.to_string()).len(), 3);
    assert_eq!(jobs(&lab, "arr").len(), 3);
    let two = waits(&jobs(&lab, &format!("{group}_[1,3-4]")));
    assert_eq!(two, [json!([group, group, null, [3, 4]])]);
    let one = waits(&jobs(&lab, &format!("{group}_5 --members")));
    assert_eq!(one, [json!([group, group, 5, null])]);

    // The last one by itself has its own name again.
    for number in [group + 1, group + 2, group + 3] {
        lab.kill(number);
    }
    let said = jobs(&lab, "status:queued");
    assert_eq!(waits(&said), [json!([group, group, 5, null])]);
    drop(lab.env.tpu("check-simp status:queued").exits(0).says(&[&format!("{group}_5")]));
}

#[test]
fn what_others_submitted_has_a_place_and_is_shown_to_whoever_asks_for_it() {
    let lab = Lab::new(1);
    lab.env.code("bob", "run.sh", "exec sleep 1000\n");
    let runs = lab.submit("local");
    let theirs = lab.submit("bob local priority=90");
    let mine = lab.submit("local");
    lab.env.wait_status(runs, "running");
    assert_eq!(statuses(&lab, "alice"), are(&[(runs, "running"), (mine, "queued")]));
    assert_eq!(jobs(&lab, "alice")[1]["position"], 2);
    assert_eq!(statuses(&lab, "bob"), are(&[(theirs, "queued")]));
    let expected = are(&[(runs, "running"), (theirs, "queued"), (mine, "queued")]);
    assert_eq!(statuses(&lab, "--all-users"), expected);
}

/// A data file may have been written by hand.
#[test]
fn a_hostile_name_writes_nothing_to_the_terminal_but_itself() {
    let lab = Lab::new(1);
    lab.submit("local");
    lab.submit("local");
    let odd = "\u{1b}]0;gone\u{7}界\u{1b}[2J\u{202e}";
    lab.env.change(|data| {
        let entry = &mut data.queues_mut().entries[0];
        entry.spec.name = Some(odd.to_owned());
        entry.spec.tag = Some(odd.to_owned());
        entry.spec.target = TargetRequest::Named(odd.to_owned());
        entry.queue = odd.into();
    });
    for words in ["check", "check-simp", "check --members", "check --zone"] {
        let said = lab.env.tpu(words).exits(0).stdout;
        let is_odd = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!said.contains(is_odd), "{words}: {said:?}");
        assert!(said.contains('界') && said.contains("queued"), "{words}: {said}");
    }
    assert_eq!(jobs(&lab, "")[1]["name"], odd);
    drop(lab.env.tpu("check").exits(0).says(&["there is no queue"]));
}

/// Nothing starts them, so the one before has no record yet: it is named by its place in the queue.
#[test]
fn what_has_the_only_place_in_view_is_named_by_its_number() {
    let lab = Lab::new(1);
    lab.pauses("default", true);
    let (first, second) = (lab.submit("local"), lab.submit("local"));
    lab.pauses("default", false);
    let why = lab.why(second);
    assert!(why.contains(&format!("it has alice/{first}")), "{why}");
    assert_eq!(lab.running(), [0_u64; 0]);
}
