//! Files that lie side by side and are one checkpoint are listed, copied and used together: none of them alone.

use std::fs;

use tpu_core::model::objects::ObjectAt;
use tpu_engine::provider::Trouble;
use tpu_lab::sim::Call;

use super::shelves::Shelves;

const TENSORFLOW: [&str; 3] = [
    "model.ckpt-10.index",
    "model.ckpt-10.data-00000-of-00002",
    "model.ckpt-10.data-00001-of-00002",
];

/// A run that writes a file of each rank, and one of `TensorFlow`.
fn run() -> Shelves {
    let lab = Shelves::new();
    for (at, name) in TENSORFLOW.iter().enumerate() {
        lab.file(&format!("logs/tf/{name}"), 1_000 + at as u64);
    }
    for rank in 0..3 {
        lab.file(&format!("logs/ranks/checkpoints/step_20.rank{rank}.pt"), 2_000 + rank);
    }
    lab.file("logs/ranks/checkpoints/step_10.pt", 5);
    let log = |run: &str| lab.env.path(&format!("logs/{run}")).to_str().unwrap().to_owned();
    lab.jobs(&[lab.job(1, "error", &log("tf")), lab.job(2, "error", &log("ranks"))]);
    lab
}

#[test]
fn they_are_listed_as_one_and_whole_when_all_are_there() {
    let lab = run();
    assert_eq!(lab.listed("1"), [(10, true, "/logs/tf/model.ckpt-10.index".to_owned())]);
    let steps: Vec<(u64, bool)> =
        lab.listed("2").iter().map(|(step, whole, _)| (*step, *whole)).collect();
    assert_eq!(steps, [(10, true), (20, true)]);
    lab.env.tpu("checkpoints 2").exits(0).says(&["6.0 kB", "step_20.rank0.pt and 2 beside it"]);
    fs::remove_file(lab.env.path("logs/tf").join(TENSORFLOW[1])).unwrap();
    lab.env.tpu("checkpoints 1").exits(0).says(&["no: 1 of 2 files"]);
    // An empty file of one of them was never written.
    fs::File::create(lab.env.path("logs/ranks/checkpoints/step_20.rank1.pt")).unwrap();
    lab.env.tpu("checkpoints 2").exits(0).says(&["no: it is empty"]);
}

#[test]
fn they_are_copied_together_and_back() {
    let lab = run();
    lab.env.tpu("checkpoints copy 1 us-central1").exits(0).says(&["Copied step 10 (3.0 kB)"]);
    lab.env.tpu("checkpoints copy 2 europe-west4").exits(0).says(&["Copied step 20 (6.0 kB)"]);
    lab.env.tpu("checkpoints copy 1 us-central1").exits(0).says(&["Was there already"]);
    lab.env.tpu("checkpoints copy gs://lab-us/logs/tf ./back").exits(0).says(&["Copied step 10"]);
    lab.env
        .tpu("checkpoints copy gs://lab-eu/logs/ranks ./back")
        .exits(0)
        .says(&["Copied step 20"]);
    lab.env.tpu("checkpoints copy 2 ./back").exits(0).says(&["Was there already"]);
    let ranks = (0..3).map(|rank| format!("checkpoints/step_20.rank{rank}.pt"));
    let all = TENSORFLOW
        .iter()
        .map(|name| ("tf", (*name).to_owned()))
        .chain(ranks.map(|name| ("ranks", name)));
    for (run, name) in all {
        let read = |root: &str| fs::read(lab.env.path(root).join(&name)).unwrap();
        assert!(read(&format!("logs/{run}")) == read("back"), "{name}");
    }
    let mut left: Vec<String> = fs::read_dir(lab.env.path("back"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left.len(), 4, "no mark is left: {left:?}");
}

#[test]
fn a_copy_of_some_of_them_is_a_half_one_until_the_same_command_completes_it() {
    let lab = run();
    // The second file does not arrive.
    lab.fail(Trouble::Permission, Call::Upload, 1);
    let mark = ObjectAt::new("lab-us", "logs/ranks/checkpoints/.tpu-copying-20");
    let mut tries = 0;
    while lab.env.tpu("checkpoints copy 2 us-central1").code != 0 {
        tries += 1;
        assert!(tries < 4);
    }
    assert!(lab.store().object(&mark).is_err(), "it is whole");
    // As if it had been cut off there.
    let session = lab.store().begin_upload(&mark, crc32c::crc32c(b"x")).unwrap();
    drop(lab.store().upload((&session, 1), 0, b"x").unwrap());
    let there = "gs://lab-us/logs/ranks/checkpoints/step_20.rank0.pt".to_owned();
    assert!(lab.listed("2").contains(&(20, false, there.clone())), "{:?}", lab.listed("2"));
    let mut record = lab.job(3, "error", "gs://lab-us/logs/ranks");
    record["stage_dir"] = serde_json::json!(lab.env.path("code-alice"));
    lab.env.code("alice", "staging.sh", "sleep 1000");
    lab.jobs(&[record]);
    lab.env.tpu("resume w=3 alice").exits(4).says(&["is a copy that is not whole"]);
    let again = format!("checkpoints copy {} us-central1", lab.env.path("logs/ranks").display());
    lab.env.tpu(&again).exits(0).says(&["Was there already"]);
    assert!(lab.listed("3").contains(&(20, true, there)));
}
