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
