//! Who chooses a target is told what was seen of its like.

use super::made::{archive, attempt, event, failed, journal, lab};

#[test]
fn the_reason_for_a_target_says_how_often_its_like_was_taken_away_and_how_long_it_was_waited_for() {
    let env = lab(&[]);
    let first = failed(attempt(&env, 1, "error", (0, 120)), "preempted", "gone");
    let second = attempt(&env, 2, "finished", (120, 240));
    archive(&env, &[first, second]);
    let mut waited = event(0, 1, "waited", "240 s for v4-8 in us-central2-b, spot: it came");
    waited["data"] = serde_json::json!({
        "type": "v4-8", "zone": "us-central2-b", "pricing": "spot", "waited_s": 240, "came": true,
    });
    journal(&env, &[waited]);
    env.code("alice", "staging.sh", "true");
    env.tpu("run v4-8 alice --dry-run").exits(0).says(&[
        "preempted 0.25 times an hour, seen in 2 runs since 2024-11-04",
        "4m of waiting for each of 1 targets",
    ]);
    // Of what nobody has seen nothing is said.
    let other = env.tpu("run v2-8 alice --dry-run").exits(0);
    assert!(!other.report().contains("preempted"), "{}", other.report());
}

#[test]
fn what_the_queue_begins_is_chosen_by_what_was_seen_and_says_so() {
    for line in ["submit v4-8 alice", "run v4-8 alice -q"] {
        let env = lab(&[]);
        let register = "register lab-v4-8-9 --zone europe-west4-b --type v4-8 --spot";
        drop(env.tpu(register).exits(0));
        let first = failed(attempt(&env, 1, "error", (0, 120)), "preempted", "gone");
        let mut second = attempt(&env, 2, "finished", (120, 240));
        second["tpu"] = "lab-v4-8-9".into();
        archive(&env, &[first, second]);
        env.code("alice", "staging.sh", "true");
        drop(env.tpu(line).exits(0));
        let jobs = env.jobs("alice");
        let job = jobs.last().unwrap();
        assert_eq!(job["tpu"], "lab-v4-8-9", "{line}: the steadier of two as good");
        let why = job["extra_msgs"]["spec"]["chosen"].as_str().unwrap();
        let said = "the first of 3 free ones; preempted 0.00 times an hour, seen in 1 runs";
        assert!(why.contains(said), "{line}: {why}");
    }
}
