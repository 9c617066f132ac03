//! Which member of a sweep is best is seen at a glance, and by what it differs.

use serde_json::Value;

use crate::common::wait::wait_until;

use super::Lab;

/// Prints losses that depend on its member: one goes up again, one becomes no number, one prints none.
const TRAIN: &str = r"
losses() { step=0; for loss in $*; do step=$((step + 100)); echo step $step/400 loss $loss; done; }
case $TPU_MEMBER in
0) losses 3.0 2.0 1.5 1.2 ;;
1) losses 3.0 0.5 1.8 2.5 ;;
2) losses 3.0 0.9 nan nan; sleep 1000 ;;
3) ;;
esac
";

/// The ranks and members of a document, in its order.
fn ranks(said: &Value) -> Vec<(Option<u64>, u64)> {
    let jobs = said["jobs"].as_array().unwrap().iter();
    jobs.map(|one| (one["rank"].as_u64(), one["job"]["member"].as_u64().unwrap())).collect()
}

#[test]
fn members_are_ranked_by_their_last_or_lowest_loss() {
    let lab = Lab::new(4);
    lab.env.code("alice", "train.sh", TRAIN);
    let group =
        lab.submit_what("local lr=0.1,0.01 config.seed=0,1 config.bs=64 --sweep", "bash train.sh");
    let sweep = |by: &str| lab.env.tpu(&format!("sweep {group} --by {by} --json")).exits(0).json();
    wait_until("all have printed what they print", || {
        let said = sweep("last");
        let steps = |at: usize| said["jobs"][at]["step"].as_f64();
        steps(0) == Some(400.0) && steps(1) == Some(400.0) && {
            let shown = said["jobs"].as_array().unwrap().iter();
            shown.filter(|one| one["job"]["phase"] == "diverged").count() == 1
        }
    });
    let said = sweep("last");
    assert_eq!(ranks(&said), [(Some(1), 0), (Some(2), 1), (None, 2), (None, 3)]);
    assert_eq!(said["jobs"][0]["last_loss"], 1.2);
    assert_eq!(said["jobs"][2]["last_loss"], Value::Null, "what is no number is no loss");
    let differs = said["jobs"][0]["differs"].as_array().unwrap();
    let differs: Vec<&str> = differs.iter().map(|word| word.as_str().unwrap()).collect();
    assert_eq!(differs, ["config.training.learning_rate=0.1", "config.seed=0"]);
    let said = sweep("best");
    assert_eq!(ranks(&said), [(Some(1), 1), (Some(2), 2), (Some(3), 0), (None, 3)]);
    let text = lab.env.tpu(&format!("sweep {group}")).exits(0).stdout;
    assert!(text.lines().nth(1).unwrap().starts_with("1     "), "{text}");
    assert!(text.contains("nan"), "{text}");
}

#[test]
fn what_has_not_begun_is_counted_and_what_is_no_group_is_said() {
    let lab = Lab::new(1);
    let group = lab.submit("local --array 0-2");
    drop(lab.env.tpu(&format!("sweep {group}")).exits(0).says(&["2 jobs of it not begun"]));
    drop(lab.env.tpu("sweep 77").exits(3));
    drop(lab.env.tpu("sweep alice").exits(2).says(&["which group?"]));
    drop(lab.env.tpu(&format!("sweep {group} --by luck")).exits(2).says(&["last or best"]));
}
