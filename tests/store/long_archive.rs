//! An archive of years, which is read by several threads: each record once, the newest first, however many are asked
//! for, and nothing behind a part that cannot be read.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use tpu_core::model::time::Timestamp;
use tpu_system::store::{Paths, Store, StoreError, Who};
use tpu_system::sys::clock::ManualClock;

use crate::common::fakes::disk::{FakeDisk, Fault};

/// More than one thread reads at a time.
const MANY: u32 = 9_000;

fn paths() -> Paths {
    Paths::new(PathBuf::from("/lab/data.json"))
}

/// A disk with an archive in which every hundredth record stands twice, and every thousandth line was cut off by a crash.
fn disk() -> Arc<FakeDisk> {
    let mut text = String::new();
    for number in 1..=MANY {
        let job = json!({
            "user": "alice", "windows_id": number, "job_dir": "/d", "job_dir_id": 1, "tpu": "local",
            "status": "finished", "error": null, "stage": 0, "monitor": true, "rules": {},
            "extra_msgs": {"launch": {
                "token": format!("t{number}"), "mode": "native", "at": "2026-11-20T10:00:00Z",
            }},
        });
        let line = json!({
            "at": "2026-11-21T10:00:00Z", "actor": "clean", "user": "alice", "job": job,
        });
        writeln!(text, "{line}").unwrap();
        if number % 100 == 0 {
            writeln!(text, "{line}").unwrap();
        }
        if number % 1_000 == 0 {
            writeln!(text, "{{\"at\": \"2026-11-").unwrap();
        }
    }
    let disk = FakeDisk::new(Path::new("/lab"));
    disk.put(paths().data(), b"{}", 0o640, (1000, 1000));
    disk.put(&paths().archive(), text.as_bytes(), 0o640, (1000, 1000));
    Arc::new(disk)
}

fn store(disk: &Arc<FakeDisk>) -> Store {
    let clock = Arc::new(ManualClock::new(Timestamp::from_second(1_795_161_731)));
    let who = Who { pid: 41, host: "lab".to_owned(), command: "tpu stats".to_owned() };
    Store::open(paths(), Arc::<FakeDisk>::clone(disk), clock, who)
}

fn numbers(
    read: impl Iterator<Item = Result<tpu_system::store::Archived, StoreError>>,
) -> Vec<u32> {
    read.map(|archived| archived.unwrap().job.windows_id.0).collect()
}

#[test]
fn each_record_comes_once_and_the_newest_first() {
    let newest_first: Vec<u32> = (1..=MANY).rev().collect();
    assert_eq!(numbers(store(&disk()).archived()), newest_first);
}

#[test]
fn whoever_wants_a_few_gets_those() {
    let store = store(&disk());
    for few in [1_u32, 31, 32, 33, 700, 5_000] {
        let wanted: Vec<u32> = (MANY - few + 1..=MANY).rev().collect();
        assert_eq!(numbers(store.archived().take(few as usize)), wanted, "{few}");
    }
}

#[test]
fn behind_what_cannot_be_read_there_is_nothing_and_it_is_said_once() {
    let disk = disk();
    let archive = paths().archive();
    let mut blocks = 0;
    disk.set_faults(move |_, what, path| {
        let is_block = what == "read" && path == archive;
        blocks += u32::from(is_block);
        (is_block && blocks == 12).then_some(Fault::Error(io::ErrorKind::PermissionDenied))
    });
    let read: Vec<_> = store(&disk).archived().collect();
    let (last, before) = read.split_last().unwrap();
    assert!(matches!(last, Err(StoreError::Io { .. })), "{last:?}");
    assert!(before.len() > 1_000 && before.len() < MANY as usize, "{}", before.len());
    let known = numbers(before.iter().map(|archived| Ok(archived.as_ref().unwrap().clone())));
    let wanted: Vec<u32> = (1..=MANY).rev().take(before.len()).collect();
    assert_eq!(known, wanted);
}
