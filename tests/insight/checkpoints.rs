//! `tpu checkpoints`: what is whole is said to be, with its step, its size and where it is; what cannot be asked is unknown.

use tpu_engine::provider::Trouble;
use tpu_lab::sim::Call;

use super::shelves::Shelves;

/// A run in a directory: two whole ones, one that was being written, and its copy in a bucket.
fn run() -> Shelves {
    let lab = Shelves::new();
    lab.file("logs/run/checkpoint_10/d/1", 1_000);
    lab.file("logs/run/checkpoint_10/_METADATA", 24);
    lab.file("logs/run/checkpoints/step_20", 500);
    lab.file("logs/run/checkpoint_30.orbax-checkpoint-tmp-1/d/1", 10);
    lab.file("logs/run/output.log", 10);
    let log = lab.env.path("logs/run");
    lab.jobs(&[lab.job(1, "error", log.to_str().unwrap())]);
    lab
}

#[test]
fn what_is_whole_is_listed_with_its_step_size_and_place() {
    let lab = run();
    assert_eq!(
        lab.listed("1"),
        [
            (10, true, "/logs/run/checkpoint_10".to_owned()),
            (20, true, "/logs/run/checkpoints/step_20".to_owned()),
            (30, false, "/logs/run/checkpoint_30.orbax-checkpoint-tmp-1".to_owned()),
        ]
    );
    lab.env.tpu("checkpoints").exits(0).says(&["1.0 kB", "no: its name is one"]);
    let document = lab.env.tpu("checkpoints 1 --json").exits(0).json();
    assert_eq!(document["checkpoints"][0]["bytes"], 1_024);
    assert_eq!(document["checkpoints"][0]["window"], 1);
}

#[test]
fn copies_in_other_regions_are_listed_too_and_a_bucket_that_is_silent_is_unknown() {
    let lab = run();
    let to = "Copied step 20 (500 B) to gs://lab-eu/logs/run/checkpoints/step_20";
    lab.env.tpu("checkpoints copy 1 europe-west4-a").exits(0).says(&[to]);
    let all = lab.listed("1");
    assert_eq!(all.len(), 4, "{all:?}");
    assert!(all.contains(&(20, true, "gs://lab-eu/logs/run/checkpoints/step_20".to_owned())));
    lab.fail(Trouble::Permission, Call::Objects, 2);
    let silent = lab.env.tpu("checkpoints 1").exits(0);
    silent.says(&["checkpoint_10", "gs://lab-us/logs/run", "storage.objects.list"]);
}

#[test]
fn an_orbax_checkpoint_in_a_bucket_is_whole_with_its_commit_alone() {
    let lab = run();
    lab.env.tpu("checkpoints copy 1 us-central1 --step 10").exits(0).says(&["Copied step 10"]);
    let committed = (10, true, "gs://lab-us/logs/run/checkpoint_10".to_owned());
    assert!(lab.listed("1").contains(&committed));
    let commit = "logs/run/checkpoint_10/commit_success.txt";
    let at = tpu_core::model::objects::ObjectAt::new("lab-us", commit);
    lab.store().delete_object(&at, None).unwrap();
    let open = (10, false, "gs://lab-us/logs/run/checkpoint_10".to_owned());
    assert!(lab.listed("1").contains(&open));
}

#[test]
fn what_cannot_be_copied_says_why() {
    let lab = run();
    lab.env.tpu("checkpoints copy 1 asia-east1-a").exits(3).says(&["no place for asia-east1-a"]);
    lab.env.tpu("checkpoints copy 1 gs:// ").exits(2).says(&["names no bucket"]);
    lab.env.tpu("checkpoints copy /none gs://lab-us/x").exits(3).says(&["no checkpoint"]);
    lab.env.tpu("checkpoints copy 1 gs://lab-xx/x").exits(3).says(&["bucket does not exist"]);
    lab.env.tpu("checkpoints copy 1 us-central1 --step 30").exits(3).says(&["no whole checkpoint"]);
    let plan = lab.env.tpu("checkpoints copy 1 us-central1 --dry-run").exits(0);
    plan.says(&["Would copy step 20"]);
    lab.file("other/step_20", 600);
    lab.env.tpu("checkpoints copy 1 us-central1").exits(0).says(&["Copied step 20"]);
    lab.env.tpu("checkpoints copy 1 us-central1").exits(0).says(&["Was there already"]);
    lab.env
        .tpu("checkpoints copy other gs://lab-us/logs/run/checkpoints")
        .exits(4)
        .says(&["another"]);
}
