//! When something is to begin is told from what runs says of itself and from how long its like ran; what nobody knows is
//! said to be unknown, and who is to blame.

use serde_json::Value;
use tpu_core::model::time::Timestamp;

use super::Lab;
use crate::common::wait::wait_until;

/// A program that says how long it still takes.
const TRAIN: &str = "echo \"step 10/100 eta: $1\"; exec sleep 1000\n";

fn lab(at_once: u32) -> Lab {
    let lab = Lab::new(at_once);
    lab.env.code("alice", "train.sh", TRAIN);
    lab
}

/// The entry as `explain` tells of it.
fn explained(lab: &Lab, window: u64) -> (String, Value) {
    let text = lab.env.tpu(&format!("explain {window}")).exits(0).stdout;
    let json = lab.env.tpu(&format!("explain {window} --json")).exits(0).json();
    (text, json["entry"].clone())
}

/// In how many seconds it is expected, of so many at most.
#[track_caller]
fn starts_in(lab: &Lab, window: u64, key: &str) -> u64 {
    let (text, entry) = explained(lab, window);
    let at = entry[key].as_str().unwrap_or_else(|| panic!("{text}\n{entry:#}"));
    let at = Timestamp::parse_rfc3339(at).unwrap();
    let since = Timestamp::parse_rfc3339(entry["since"].as_str().unwrap()).unwrap();
    at.seconds_since(since)
}

#[test]
fn who_waits_is_told_when_and_the_next_one_how_long_its_like_runs() {
    let lab = lab(1);
    let first = lab.submit_what("local", "bash train.sh 1:00:00");
    wait_until("it says how long", || {
        let said = lab.env.tpu(&format!("check {first} --json")).exits(0).json();
        said.to_string().contains("3600")
    });
    let second = lab.submit_what("local", "bash train.sh 0:30:00");
    let third = lab.submit_what("local", "bash train.sh 0:10:00");
    let away = starts_in(&lab, second, "expected_start");
    assert!((3590..3700).contains(&away), "{away}");
    // As long as the first, which is the same program.
    let away = starts_in(&lab, third, "expected_start");
    assert!((7190..7500).contains(&away), "{away}");
    let (text, _) = explained(&lab, second);
    assert!(text.contains("\nstart: expected in ") && text.contains(", at 20"), "{text}");
    let listed = lab.env.tpu("queue").exits(0).stdout;
    assert!(listed.contains("STARTS IN") && listed.contains("~1h 0"), "{listed}");
    assert!(lab.queue()["entries"][0]["expected_start"].is_string());
}

#[test]
fn of_a_group_the_first_and_the_last_are_told() {
    let lab = lab(2);
    for _ in 0..2 {
        lab.submit_what("local", "bash train.sh 1:00:00");
    }
    wait_until("both say how long", || {
        let said = lab.env.tpu("check --json").exits(0).json().to_string();
        said.matches("3600").count() >= 2
    });
    let group = lab.submit_what("local --array 0-4", "bash train.sh 0:30:00");
    let (first, last) =
        (starts_in(&lab, group, "expected_start"), starts_in(&lab, group, "expected_last_start"));
    assert!((3590..3700).contains(&first), "{first}");
    assert!((10_700..11_200).contains(&last), "two, two and one: {last}");
    let after = lab.submit_what(&format!("local after={group}"), "bash train.sh 0:30:00");
    let away = starts_in(&lab, after, "expected_start");
    assert!((14_300..15_000).contains(&away), "{away}");
}

#[test]
fn who_says_nothing_is_named_and_nothing_is_guessed() {
    let lab = lab(1);
    let first = lab.submit("local");
    let second = lab.submit("local");
    let (text, entry) = explained(&lab, second);
    let said = format!("start: not known: when alice/{first} ends is not known");
    assert!(text.contains(&said), "{text}");
    assert!(entry["expected_start"].is_null(), "{entry:#}");
    let held = lab.submit("local --hold");
    let (text, _) = explained(&lab, held);
    assert!(text.contains("start: not known"), "{text}");
    let vain = lab.submit(&format!("local after_not={first}"));
    let (text, entry) = explained(&lab, vain);
    assert!(entry["expected_start"].is_null(), "{text}");
}
