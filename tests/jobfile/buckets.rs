//! Before a TPU is made for a job it is said which of the buckets that the job names are in other regions; what nobody can
//! say keeps no job from waiting.

use super::orders::lab;
use crate::common::env::TestEnv;
use crate::common::tmux::write_file;

fn submitted(env: &TestEnv, text: &str) -> String {
    let file = env.path("job.yaml");
    write_file(&file, text);
    let done = env.tpu_words(&["submit", file.to_str().unwrap()]).exits(0);
    done.stdout.clone() + &done.stderr
}

#[test]
fn a_bucket_in_another_region_is_named_with_both_places() {
    let env = lab();
    for (name, location) in
        [("near", "US-EAST5"), ("alike", "US-EAST50"), ("far", "EU"), ("all-us", "US")]
    {
        drop(env.tpu(&format!("sim event bucket name={name} location={location}")).exits(0));
    }
    let text = "target: {accelerator: v6e-16, zone: [us-east5-b, europe-west4-a]}\ntpu: {name: mine}\nhold: true\n\
                setup:\n  - gcsfuse: {bucket: near, mount: /mnt/b}\n\
                env: {DATA: 'gs://all-us/x'}\ncommand: 'cp gs://alike/a gs://far/b; cat gs://nobody/c'\n";
    let said = submitted(&env, text);
    for line in [
        "gs://near is in US-EAST5, and the TPU is asked for in europe-west4-a:",
        "gs://alike is in US-EAST50, and the TPU is asked for in europe-west4-a, us-east5-b:",
        "gs://far is in EU, and the TPU is asked for in us-east5-b:",
        "gs://all-us is in US, and the TPU is asked for in europe-west4-a:",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
    assert!(!said.contains("nobody"), "{said}");
    // What a dry run says it says without asking anybody.
    let file = env.path("job.yaml");
    let dry = env.tpu_words(&["submit", file.to_str().unwrap(), "--dry-run"]).exits(0);
    assert!(!(dry.stdout + &dry.stderr).contains("is in US"));
}

#[test]
fn a_question_that_fails_says_nothing() {
    let env = lab();
    drop(env.tpu("sim event bucket name=far location=EU").exits(0));
    drop(env.tpu("sim event error class=permission call=bucket").exits(0));
    let text = "target: {accelerator: v6e-16, zone: us-east5-b}\ntpu: {name: mine}\nhold: true\n\
                command: cat gs://far/x\n";
    let said = submitted(&env, text);
    assert!(said.contains("Queued alice/1") && !said.contains("gs://"), "{said}");
}
