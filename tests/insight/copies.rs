//! A copy that is cut off goes on where it was, arrives as it was, and is never taken for a whole one before.

use std::fs;

use tpu_lab::sim::{Call, Event};

use super::shelves::Shelves;
use crate::common::wait::wait_until;

/// Bytes that are copied: a small share of what `./x prove checkpoints` copies.
#[expect(clippy::disallowed_methods, reason = "how much is asked of the test itself")]
fn size() -> u64 {
    let asked = std::env::var("TPU_PROVE_CHECKPOINTS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(20) * 1_000_000
}

/// A checkpoint of three files, of the given size in all.
fn run(total: u64) -> Shelves {
    let lab = Shelves::new();
    for (name, share) in [("d/0", 60), ("d/1", 39), ("_METADATA", 1)] {
        lab.file(&format!("logs/run/checkpoint_7/{name}"), total / 100 * share);
    }
    let log = lab.env.path("logs/run");
    lab.jobs(&[lab.job(1, "error", log.to_str().unwrap())]);
    lab
}

const CUTS: u32 = 10;

#[test]
fn an_upload_and_a_download_that_are_cut_ten_times_arrive_as_they_were() {
    let total = size();
    let lab = run(total);
    let cut = |call, times| {
        let (bytes, call, times) = ((total / 25).min(5_000_000), Some(call), Some(times));
        lab.pull(&Event::CutAfter { bytes, call, times });
    };
    // The mark is shorter than that, and arrives.
    cut(Call::Upload, CUTS + 1);
    let before = lab.cut();
    lab.env.tpu("checkpoints copy 1 us-central1").exits(0).says(&["Copied step 7"]);
    assert_eq!(lab.cut() - before, 10);
    // What had arrived was not sent again: no more than a unit is lost by each cut.
    let sent: u64 = lab.served.asked().iter().filter_map(|one| one["body"]["sent"].as_u64()).sum();
    assert!(sent < total + 10 * (1 << 18) + 10_000, "{sent} bytes were sent for {total}");
    cut(Call::Read, CUTS);
    lab.env.tpu("checkpoints copy gs://lab-us/logs/run ./back").exits(0).says(&["Copied step 7"]);
    let given: u64 =
        lab.served.asked().iter().filter_map(|one| one["body"]["given"].as_u64()).sum();
    let commit = "logs/run/checkpoint_7/commit_success.txt";
    let commit = tpu_core::model::objects::ObjectAt::new("lab-us", commit);
    let commit = lab.store().object(&commit).unwrap().size;
    assert_eq!(given, total + commit, "not a byte twice");
    for name in ["d/0", "d/1", "_METADATA"] {
        let read =
            |root: &str| fs::read(lab.env.path(root).join("checkpoint_7").join(name)).unwrap();
        assert!(read("logs/run") == read("back"), "{name}");
    }
    assert!(!lab.env.path("back/checkpoint_7.partial").exists());
}

#[test]
fn a_copy_between_regions_that_is_cut_ten_times_goes_on_and_no_half_one_is_used() {
    let total = size();
    let lab = run(total);
    drop(lab.env.tpu("checkpoints copy 1 us-central1").exits(0));
    let calls = 20;
    let rewrite = Some(total / calls);
    lab.pull(&Event::Storage { page: Some(2), rewrite });
    let command = "checkpoints copy gs://lab-us/logs/run europe-west4-a";
    let done = || lab.asked("POST", "rewriteTo");
    let half = (7, false, "gs://lab-eu/logs/run/checkpoint_7".to_owned());
    lab.pull(&Event::LoseAnswer { call: Some(Call::Rewrite), target: None, times: Some(CUTS / 2) });
    for _ in 0..CUTS / 2 {
        let before = done();
        let going = lab.env.start_tpu(command, &[("FAILPOINTS", "copy-arrived=2*off->pause")]);
        wait_until("it copies", || done() > before + 1);
        going.kill();
        assert!(lab.listed("1").contains(&half), "{:?}", lab.listed("1"));
    }
    lab.env.tpu(command).exits(0).says(&["Copied step 7", "costs"]);
    let most = usize::try_from(calls).unwrap() + 4 + 3 * 10;
    assert!(done() <= most, "{} calls: it did not go on where it was", done());
    let whole = (7, true, "gs://lab-eu/logs/run/checkpoint_7".to_owned());
    assert!(lab.listed("1").contains(&whole));
    for name in ["d/0", "d/1", "_METADATA", "commit_success.txt"] {
        let of = |bucket: &str| {
            let name = format!("logs/run/checkpoint_7/{name}");
            let at = tpu_core::model::objects::ObjectAt::new(bucket, name);
            let fact = lab.store().object(&at).unwrap();
            (fact.size, fact.crc32c)
        };
        assert_eq!(of("lab-us"), of("lab-eu"), "{name}");
    }
    let path = lab.env.path("logs/run/checkpoint_7/d/0");
    let at = tpu_core::model::objects::ObjectAt::new("lab-eu", "logs/run/checkpoint_7/d/0");
    let sum = crc32c::crc32c(&fs::read(path).unwrap());
    assert_eq!(lab.store().object(&at).unwrap().crc32c, Some(sum));
    // Nothing is left that says it is under way.
    let mark =
        tpu_core::model::objects::ObjectAt::new("lab-eu", "logs/run/checkpoint_7/.tpu-copying");
    assert!(lab.store().object(&mark).is_err());
}

#[test]
fn a_download_whose_program_was_killed_goes_on_and_its_name_comes_last() {
    let lab = run(20_000_000);
    drop(lab.env.tpu("checkpoints copy 1 us-central1").exits(0));
    let command = "checkpoints copy gs://lab-us/logs/run ./back";
    let read = || lab.asked("GET", "alt=media");
    for _ in 0..2 {
        let before = read();
        let going = lab.env.start_tpu(command, &[("FAILPOINTS", "copy-arrived=2*off->pause")]);
        wait_until("it reads", || read() > before);
        going.kill();
        assert!(!lab.env.path("back/checkpoint_7").exists(), "a half one has its name");
    }
    lab.env.tpu(command).exits(0).says(&["Copied step 7"]);
    assert!(lab.env.path("back/checkpoint_7/d/1").exists());
}

#[test]
fn bytes_that_are_others_are_never_given_the_name() {
    let lab = run(1_000_000);
    drop(lab.env.tpu("checkpoints copy 1 us-central1").exits(0));
    // The store's own file is changed behind its back.
    let object = lab.env.path("tpu-state/sim.buckets/lab-us/logs/run/checkpoint_7/d/1%o");
    let mut bytes = fs::read(&object).unwrap();
    bytes[1_000] ^= 1;
    fs::remove_file(&object).unwrap();
    std::io::Write::write_all(&mut fs::File::create(&object).unwrap(), &bytes).unwrap();
    let copy = lab.env.tpu("checkpoints copy gs://lab-us/logs/run ./back").exits(1);
    copy.says(&["checksum is another one"]);
    assert!(!lab.env.path("back/checkpoint_7").exists());
    let copy = lab.env.tpu("checkpoints copy gs://lab-us/logs/run europe-west4").exits(1);
    copy.says(&["checksum is another one"]);
    let found = lab.listed("1");
    assert!(
        !found.contains(&(7, true, "gs://lab-eu/logs/run/checkpoint_7".to_owned())),
        "{found:?}"
    );
}
