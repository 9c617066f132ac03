//! A job that goes on in another region takes its newest checkpoint along where `checkpoint_copy` says so, tells what
//! that costs, and never begins from a half copy.

use std::fs;

use tpu_core::model::objects::ObjectAt;
use tpu_engine::provider::Trouble;
use tpu_engine::provider::storage::UploadState;
use tpu_lab::sim::{Call, Event};

use super::shelves::Shelves;
use crate::common::wait::wait_until;

/// A job of alice's whose log directory is in a bucket of one region, and a target in another one.
fn run() -> Shelves {
    let lab = Shelves::new();
    let target = "lab-eu-v2-8".to_owned();
    drop(
        lab.env
            .tpu(&format!("register {target} --zone europe-west4-a --type v2-8 --spot"))
            .exits(0),
    );
    let zone = Some("europe-west4-a".to_owned());
    lab.pull(&Event::Ready { target, zone, accelerator: None, pricing: None });
    lab.file("logs/run/checkpoint_5/w", 1_000);
    lab.file("logs/run/checkpoint_9/w", 3_000_000_000 / 1_000);
    lab.env.code("alice", "staging.sh", "echo \"$@\" >\"$TPU_DATA.args\"; sleep 1000\n");
    let mut record = lab.job(1, "error", "gs://lab-us/logs/run");
    record["stage_dir"] = serde_json::json!(lab.env.path("code-alice"));
    record["extra_msgs"]["launch"]["mode"] = serde_json::json!("script");
    lab.jobs(&[record]);
    drop(
        lab.env
            .tpu(&format!(
                "checkpoints copy --all {} us-central1",
                lab.env.path("logs/run").display()
            ))
            .exits(0),
    );
    lab
}

const RESUME: &str = "resume w=1 alice tpu=lab-eu-v2-8";

fn begun_with(lab: &Shelves) -> String {
    let path = lab.env.path("data.json.args");
    wait_until("it begins", || fs::read_to_string(&path).is_ok_and(|text| text.ends_with('\n')));
    fs::read_to_string(&path).unwrap()
}

#[test]
fn it_takes_its_newest_checkpoint_along_and_says_what_that_costs() {
    let lab = run();
    let said = "is copied to gs://lab-eu/logs/run/checkpoint_9: from us-central1 to europe-west4 costs 0.15";
    lab.env.tpu(&format!("{RESUME} --dry-run")).exits(0).says(&[said]);
    assert!(lab.store().object(&ObjectAt::new("lab-eu", "logs/run/checkpoint_9/w")).is_err());
    lab.env.tpu(RESUME).exits(0).says(&["Resumed alice/1", said]);
    let args = begun_with(&lab);
    assert!(args.contains("--config.load_from=gs://lab-eu/logs/run"), "{args}");
    let of =
        |name: &str| lab.store().object(&ObjectAt::new("lab-eu", format!("logs/run/{name}/w")));
    let there = lab.store().object(&ObjectAt::new("lab-us", "logs/run/checkpoint_9/w")).unwrap();
    assert_eq!(of("checkpoint_9").unwrap().crc32c, there.crc32c);
    assert!(of("checkpoint_5").is_err(), "the newest alone");
}

#[test]
fn the_places_may_be_named_by_zones() {
    let lab = run();
    let mut data = lab.env.data();
    data["users"]["alice"]["settings"]["checkpoint_copy"] = serde_json::json!({
        "here": lab.env.path("logs"), "us-central1-a": "gs://lab-us/logs",
        "europe-west4-a": "gs://lab-eu/logs",
    });
    lab.env.write_data(&data);
    let said = "is copied to gs://lab-eu/logs/run/checkpoint_9";
    lab.env.tpu(&format!("{RESUME} --dry-run")).exits(0).says(&[said]);
}

#[test]
fn one_that_cannot_be_copied_keeps_the_job_from_beginning_and_the_same_again_goes_on() {
    let lab = run();
    lab.fail(Trouble::Permission, Call::Rewrite, 1);
    lab.env.tpu(RESUME).exits(4).says(&["storage.objects.create", "roles/storage.objectUser"]);
    assert_eq!(lab.env.jobs("alice").len(), 1, "nothing began");
    lab.env.tpu(RESUME).exits(0).says(&["Resumed alice/1"]);
    assert!(begun_with(&lab).contains("load_from=gs://lab-eu/logs/run"));
}

#[test]
fn a_bucket_that_does_not_answer_sends_nobody_anywhere() {
    let lab = run();
    lab.fail(Trouble::Transient, Call::Objects, 100);
    lab.env.tpu(RESUME).exits(6).says(&["whether alice/1 has a checkpoint cannot be seen now"]);
    assert_eq!(lab.env.jobs("alice").len(), 1, "nothing began");
    lab.pull(&Event::Calm);
    lab.env.tpu(RESUME).exits(0).says(&["Resumed alice/1"]);
}

#[test]
fn nobody_begins_from_a_half_copy() {
    let lab = run();
    let mark = ObjectAt::new("lab-us", "logs/run/checkpoint_12/.tpu-copying");
    for at in [ObjectAt::new("lab-us", "logs/run/checkpoint_12/w"), mark.clone()] {
        let session = lab.store().begin_upload(&at, crc32c::crc32c(b"w")).unwrap();
        let done = lab.store().upload((&session, 1), 0, b"w").unwrap();
        assert!(matches!(done, UploadState::Done(_)));
    }
    lab.env.tpu(RESUME).exits(4).says(&["checkpoint_12 is a copy that is not whole"]);
    assert_eq!(lab.env.jobs("alice").len(), 1);
    lab.store().delete_object(&mark, None).unwrap();
    lab.env.tpu(RESUME).exits(0).says(&["checkpoint_12"]);
}

/// Logs to a bucket of the other region and loses a peer; from a checkpoint it says with what it has begun.
const LOSES_A_PEER: &str = r#"
case " $* " in *load_from=*) echo "$@" >"$TPU_DATA.args"; sleep 1000 ;; esac
tpu upd-log "alice:0" gs://lab-us/logs/run "$PWD" "${1#ka=}" now
echo 'absl::Status: DEADLINE_EXCEEDED: The following tasks are unhealthy (stopped sending heartbeats):'
echo '/job:jax_worker/replica:0/task:1'
exit 134
"#;

#[test]
fn a_rule_takes_the_checkpoint_along_by_itself() {
    let lab = run();
    lab.env.code("alice", "staging.sh", LOSES_A_PEER);
    drop(lab.env.tpu("run lab-eu-v2-8 alice rule=resume -q").exits(0));
    let monitor = lab.env.daemon(&[]);
    let args = begun_with(&lab);
    assert!(args.contains("load_from=gs://lab-eu/logs/run"), "{args}");
    assert!(lab.store().object(&ObjectAt::new("lab-eu", "logs/run/checkpoint_9/w")).is_ok());
    drop(monitor);
}

#[test]
fn what_the_queue_carries_over_keeps_no_turn_waiting() {
    let lab = run();
    let mut entry = serde_json::json!({
        "user": "alice", "number": 9, "target": "lab-eu-v2-8", "since": "2024-11-04T12:00:00Z",
        "succeeds": { "job": 1, "how": "resume" }, "place": "",
    });
    drop(lab.env.tpu("submit local --hold alice -- true").exits(0));
    let mut data = lab.env.data();
    entry["place"] = data["queue"]["entries"][0]["place"].clone();
    entry["env"] = data["queue"]["entries"][0]["env"].clone();
    data["queue"]["entries"] = serde_json::json!([entry]);
    lab.env.write_data(&data);
    // A copy that takes its time: each question takes it a hundred bytes further.
    lab.pull(&Event::Storage { page: None, rewrite: Some(100) });
    let monitor = lab.env.daemon(&[]);
    wait_until("it copies", || lab.asked("POST", "rewriteTo") > 0);
    for _ in 0..3 {
        lab.env.acknowledge();
    }
    assert_eq!(lab.env.jobs("alice").len(), 1, "it has not begun");
    assert!(!lab.env.data()["queue"]["entries"].as_array().unwrap().is_empty(), "it waits");
    lab.pull(&Event::Storage { page: None, rewrite: Some(1 << 30) });
    assert!(begun_with(&lab).contains("load_from=gs://lab-eu/logs/run"));
    wait_until("it is written down", || {
        lab.env.tpu("-Ml").exits(0).report().contains("started alice/9 on lab-eu-v2-8")
    });
    drop(monitor);
}

#[test]
fn without_the_setting_nothing_is_copied() {
    let lab = run();
    drop(lab.env.tpu("reset-settings checkpoint_copy alice -y").exits(0));
    drop(lab.env.tpu(RESUME).exits(0));
    assert!(begun_with(&lab).contains("load_from=gs://lab-us/logs/run"));
    assert_eq!(lab.asked("POST", "rewriteTo"), 0);
}
