//! `tpu storage`: figures of buckets and directories, whatever the pages, kept with their age; what may not be seen names the
//! role.

use tpu_engine::provider::Trouble;
use tpu_lab::sim::{Call, Event};

use super::shelves::Shelves;

/// Five objects in one bucket, none in the other one.
fn lab() -> Shelves {
    let lab = Shelves::new();
    lab.file("logs/run/checkpoint_10/a", 700);
    lab.file("logs/run/checkpoint_10/b", 300);
    lab.file("logs/run/checkpoint_20/a", 400);
    let run = lab.env.path("logs/run");
    let command = format!("checkpoints copy --all {} gs://lab-us/runs/x", run.display());
    drop(lab.env.tpu(&command).exits(0));
    lab.file("one/checkpoint_1", 50);
    let one = lab.env.path("one");
    drop(lab.env.tpu(&format!("checkpoints copy {} gs://lab-us/other", one.display())).exits(0));
    lab.file("one/notes/n.txt", 7);
    lab
}

#[test]
fn every_page_counts_once_and_each_prefix_has_its_row() {
    let lab = lab();
    lab.pull(&Event::Storage { page: Some(1), rewrite: None });
    let document = lab.env.tpu("storage --json").exits(0).json();
    let rows = document["rows"].as_array().unwrap();
    let row = |at: usize| {
        (
            rows[at]["name"].as_str().unwrap(),
            rows[at]["bytes"].as_u64(),
            rows[at]["objects"].as_u64(),
        )
    };
    assert_eq!(row(0), ("gs://lab-eu", Some(0), Some(0)));
    assert_eq!(row(1), ("gs://lab-us", Some(1_450), Some(4)));
    assert!(rows[1]["oldest"].is_string() && rows[0]["oldest"].is_null());
    assert_eq!(rows[1]["largest_checkpoint"]["name"], "gs://lab-us/runs/x/checkpoint_10");
    assert_eq!(rows[1]["largest_checkpoint"]["bytes"], 1_000);
    assert!(rows[0]["largest_checkpoint"].is_null());
    // Each is as old as it is when it is told.
    let ageless = |rows: &serde_json::Value| {
        let mut rows = rows.as_array().unwrap().clone();
        for row in &mut rows {
            row["age_s"] = serde_json::Value::Null;
        }
        rows
    };
    let jobman = lab.env.tpu("jobman storage --json").exits(0).json();
    assert_eq!(ageless(&jobman["rows"]), ageless(&document["rows"]));
    let table = lab.env.tpu("storage gs://lab-us one --csv").exits(0);
    let lines: Vec<String> =
        table.stdout.lines().map(|line| line.replace(lab.env.root(), "")).collect();
    assert_eq!(lines[0], "name,bytes,objects,oldest,largest_checkpoint");
    assert!(lines[1].starts_with("gs://lab-us/other,50,1,"), "{lines:?}");
    assert!(lines[2].starts_with("gs://lab-us/runs,1400,3,") && lines[2].ends_with(",1000"));
    assert!(lines[3].starts_with("/one,50,1,") && lines[4].starts_with("/one/notes,7,1,"));
    lab.env.tpu("storage gs://lab-us").exits(0).says(&["total", "1.4 kB"]);
}

#[test]
fn an_answer_is_kept_with_its_age_and_asked_anew_when_somebody_says_so() {
    let lab = lab();
    drop(lab.env.tpu("storage gs://lab-us").exits(0));
    let asked = lab.asked("GET", "/b/lab-us/o");
    drop(lab.env.tpu("storage gs://lab-us").exits(0));
    assert_eq!(lab.asked("GET", "/b/lab-us/o"), asked);
    drop(lab.env.tpu("storage gs://lab-us --fresh").exits(0));
    assert!(lab.asked("GET", "/b/lab-us/o") > asked);
    // What cannot be asked now was known before, and says so.
    lab.fail(Trouble::Permission, Call::Objects, 1);
    let document = lab.env.tpu("storage gs://lab-us --fresh --json").exits(0).json();
    assert_eq!(document["rows"][1]["bytes"], 1_400);
    assert!(document["rows"][1]["unknown"].as_str().unwrap().contains("storage.objects.list"));
}

#[test]
fn a_right_that_is_missing_names_the_role_and_haste_is_waited_for() {
    let lab = lab();
    lab.fail(Trouble::Permission, Call::Objects, 1);
    lab.env.tpu("storage gs://lab-us").exits(6).says(&["403", "roles/storage.objectViewer"]);
    lab.fail(Trouble::Permission, Call::Bucket, 1);
    lab.env.tpu("storage").exits(4).says(&["roles/storage.bucketViewer"]);
    // 429 is waited for.
    lab.fail(Trouble::Quota, Call::Objects, 1);
    lab.env.tpu("storage gs://lab-us").exits(0).says(&["1.4 kB"]);
    lab.env.tpu("storage gs://lab-us --csv --json").exits(2).says(&["two answers"]);
    lab.env.tpu("storage /no/such/directory").exits(6).says(&["/no/such/directory"]);
    lab.env.tpu("storage gs://nobodys").exits(6).says(&["bucket does not exist"]);
}
