//! The state file under a disk that fails: whatever happens at whatever moment, the file is the old
//! version or the new one, nothing else is lost, and the next writer clears up.

use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::document::set;
use crate::common::fakes::disk::{FakeDisk, Fault};
use serde_json::{Value, json};
use tpu_core::model::data::Data;
use tpu_core::model::ids::{JobId, JobNumber, UserName};
use tpu_core::model::time::Timestamp;
use tpu_system::store::{BACKUPS_KEPT, Committed, Event, Paths, Store, StoreError, Who};
use tpu_system::sys::clock::{Clock as _, ManualClock};

const EXAMPLE: &str = include_str!("../../data.example.json");

fn paths() -> Paths {
    Paths::new(PathBuf::from("/lab/data.json"))
}

fn who() -> Who {
    Who { pid: 41, host: "lab-login".to_owned(), command: "tpu add-tag".to_owned() }
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_second(1_795_161_731)))
}

fn store(disk: &Arc<FakeDisk>) -> Store {
    Store::open(paths(), Arc::<FakeDisk>::clone(disk), clock(), who())
}

fn disk() -> Arc<FakeDisk> {
    let disk = FakeDisk::new(Path::new("/lab"));
    disk.put(paths().data(), EXAMPLE.as_bytes(), 0o640, (1000, 1000));
    Arc::new(disk)
}

fn job(window: u32) -> JobId {
    JobId::new(UserName::from("alice"), JobNumber(window))
}

/// A change with everything in it: a record changed, one archived, an event.
fn mutate(store: &Store, tag: &str) -> Result<Committed<()>, StoreError> {
    store.transact("alice", |tx| {
        tx.data.job_mut(&job(6)).unwrap().job_tags = Some(tag.to_owned());
        let _: bool = tx.archive(&job(3));
        tx.event(&job(6), "tag", "tagged", json!({ "tag": tag }));
        Ok(())
    })
}

fn tag(data: &Data) -> Option<String> {
    data.job(&job(6)).unwrap().job_tags.clone()
}

fn temporaries(disk: &FakeDisk) -> Vec<PathBuf> {
    let temporary = |path: &PathBuf| path.to_string_lossy().contains(".tmp-");
    disk.paths().into_iter().filter(temporary).collect()
}

/// What must hold after whatever happened to one change by `mutate(…, "new")`.
fn check(disk: &Arc<FakeDisk>, context: &str) {
    let store = store(disk);
    let data = store.read().unwrap_or_else(|e| panic!("{context}: {e}"));
    let bytes = disk.bytes(paths().data()).unwrap();
    let new = match tag(&data).as_deref() {
        None => {
            assert_eq!(bytes, EXAMPLE.as_bytes(), "{context}: the old version");
            false
        }
        Some("new") => true,
        other => panic!("{context}: {other:?}"),
    };
    assert_eq!(data.job(&job(3)).is_none(), new, "{context}: all of the change or nothing");
    let archived = store.archived().filter(|a| a.as_ref().unwrap().job.id() == job(3)).count();
    assert!(archived <= 1, "{context}");
    assert!(!new || archived == 1, "{context}: a record is never in neither place");
    for backup in store.backups() {
        let kept = disk.bytes(&backup).unwrap();
        assert_eq!(kept, EXAMPLE.as_bytes(), "{context}: a backup is a whole version");
    }
    assert!(store.events().all(|event| event.is_ok()), "{context}");
    // The next writer is stopped by nothing and clears up.
    let next = mutate(&store, "next").unwrap_or_else(|e| panic!("{context}: {e}"));
    assert!(next.changed, "{context}");
    assert_eq!(temporaries(disk), Vec::<PathBuf>::new(), "{context}");
    assert_eq!(tag(&store.read().unwrap()).as_deref(), Some("next"), "{context}");
    assert_eq!(store.archived().count(), 1, "{context}: archived once in the end");
    let newest = store.events().next().unwrap().unwrap();
    assert_eq!(newest.data, json!({"tag": "next"}), "{context}");
}

/// How many operations a change needs when nothing fails.
fn operations() -> u64 {
    let disk = disk();
    disk.set_faults(|_, _, _| None);
    let done = mutate(&store(&disk), "new").unwrap();
    assert_eq!(done.warnings, Vec::<String>::new());
    let total = disk.operations();
    check(&disk, "no fault");
    total
}

#[test]
fn a_crash_at_any_operation_leaves_the_old_or_the_new_version() {
    let total = operations();
    assert!(total > 15, "{total}");
    for fault in [Fault::Crash, Fault::CrashWithin] {
        for power in [false, true] {
            for at in 0..total {
                let disk = disk();
                disk.set_faults(move |n, _, _| (n == at).then_some(fault));
                drop(mutate(&store(&disk), "new"));
                if power {
                    disk.power_failure();
                } else {
                    disk.restart();
                }
                check(&disk, &format!("{fault:?} at {at}, power failure: {power}"));
            }
        }
    }
}

#[test]
fn a_refusal_at_any_operation_leaves_the_old_or_the_new_version_and_says_where() {
    let total = operations();
    let kinds = [
        io::ErrorKind::StorageFull,
        io::ErrorKind::ReadOnlyFilesystem,
        io::ErrorKind::PermissionDenied,
    ];
    for kind in kinds {
        for fault in [Fault::Error(kind), Fault::Torn(kind)] {
            for at in 0..total {
                let disk = disk();
                disk.set_faults(move |n, _, _| (n == at).then_some(fault));
                let result = mutate(&store(&disk), "new");
                let context = format!("{fault:?} at {at}: {result:?}");
                let changed = disk.bytes(paths().data()).unwrap() != EXAMPLE.as_bytes();
                match &result {
                    Ok(done) => assert!(done.changed && changed, "{context}"),
                    Err(error) => {
                        // A rename that is done and reported as failed is the one lie we cannot see through.
                        assert!(!changed || matches!(fault, Fault::Torn(_)), "{context}");
                        let StoreError::Io { path, source, .. } = error else {
                            panic!("{context}")
                        };
                        assert!(path.starts_with("/lab"), "{context}");
                        assert_eq!(source.kind(), kind, "{context}");
                        assert!(error.hint().is_some(), "{context}");
                        assert!(error.to_string().contains("/lab"), "{context}");
                    }
                }
                disk.restart();
                check(&disk, &context);
            }
        }
    }
}

#[test]
fn after_a_success_a_power_failure_takes_nothing_back() {
    let disk = disk();
    let done = mutate(&store(&disk), "new").unwrap();
    assert!(done.changed);
    disk.power_failure();
    assert_eq!(tag(&store(&disk).read().unwrap()).as_deref(), Some("new"));
    assert_eq!(store(&disk).archived().count(), 1);
}

/// The error of a caller.
#[derive(Debug)]
enum Mine {
    Refused,
    Store,
}
impl From<StoreError> for Mine {
    fn from(_: StoreError) -> Self {
        Self::Store
    }
}

#[test]
fn an_error_of_the_function_changes_nothing() {
    let disk = disk();
    let store = store(&disk);
    let result = store.transact("alice", |tx| {
        tx.data.job_mut(&job(6)).unwrap().stage = 9;
        let _: bool = tx.archive(&job(3));
        tx.event(&job(6), "x", "x", Value::Null);
        Err::<(), _>(Mine::Refused)
    });
    assert!(matches!(result, Err(Mine::Refused)));
    assert_eq!(disk.bytes(paths().data()).unwrap(), EXAMPLE.as_bytes());
    assert_eq!((store.events().count(), store.archived().count()), (0, 0));
    assert_eq!(store.backups().len(), 0);
}

#[test]
fn without_a_change_no_version_is_written() {
    let disk = disk();
    let store = store(&disk);
    let done = store.transact("alice", |tx| {
        tx.data.job_mut(&job(6)).unwrap().stage = 0;
        Ok::<_, StoreError>(7)
    });
    assert_eq!(done.unwrap(), Committed { value: 7, changed: false, warnings: vec![] });
    assert_eq!(store.backups().len(), 0);
}

#[test]
fn the_last_versions_that_differ_are_kept() {
    let disk = disk();
    let store = store(&disk);
    let mut versions = Vec::new();
    for n in 0..BACKUPS_KEPT + 5 {
        versions.push(disk.bytes(paths().data()).unwrap());
        let done = mutate(&store, &n.to_string()).unwrap();
        assert!(done.changed);
    }
    versions.reverse();
    versions.truncate(BACKUPS_KEPT);
    let kept: Vec<_> = store.backups().iter().map(|path| disk.bytes(path).unwrap()).collect();
    assert_eq!(kept.len(), BACKUPS_KEPT);
    assert!(kept == versions, "the newest first");
}

#[test]
fn what_cannot_be_read_is_never_overwritten_and_can_be_restored() {
    for broken in ["", "{\"users\": {", "[]", "{\"users\":{\"a\":{\"job_data\":[{}]}}}", "null"] {
        let disk = disk();
        let done = mutate(&store(&disk), "new").unwrap();
        assert!(done.changed);
        disk.put(paths().data(), broken.as_bytes(), 0o640, (1000, 1000));
        let store = store(&disk);
        let backup = PathBuf::from("/lab/backups/data.json.00000001");
        for error in
            [store.read().map(drop).unwrap_err(), mutate(&store, "x").map(drop).unwrap_err()]
        {
            assert!(
                matches!(&error, StoreError::Unreadable { backup: Some(found), .. } if *found == backup),
                "{error:?}"
            );
            let hint = error.hint().unwrap();
            assert!(hint.contains("tpu doctor --restore") && hint.contains("00000001"), "{hint}");
        }
        assert_eq!(disk.bytes(paths().data()).unwrap(), broken.as_bytes());
        assert_eq!(store.restore(&backup).unwrap(), Vec::<String>::new());
        assert_eq!(disk.bytes(paths().data()).unwrap(), EXAMPLE.as_bytes());
        assert_eq!(disk.bytes(&store.backups()[0]).unwrap(), broken.as_bytes(), "kept as well");
        assert_eq!(store.newest_good_backup(), Some(backup));
    }
}

#[test]
fn what_a_later_program_wrote_is_never_changed_even_where_it_cannot_be_read() {
    let (readable, strange) =
        ("{\"users\":{},\"tpu_format\":2}", "{\"users\":[7],\"tpu_format\":2}");
    for (text, is_read) in [(readable, true), (strange, false)] {
        let disk = disk();
        drop(mutate(&store(&disk), "new").unwrap());
        disk.put(paths().data(), text.as_bytes(), 0o640, (1000, 1000));
        let store = store(&disk);
        assert_eq!(store.read().is_ok(), is_read);
        let tried = store.dry_run();
        let mut errors = vec![
            mutate(&store, "x").map(drop).unwrap_err(),
            mutate(&tried, "x").map(drop).unwrap_err(),
            store.may_write().unwrap_err(),
        ];
        let backup = store.newest_good_backup().unwrap();
        errors.push(store.restore(&backup).map(drop).unwrap_err());
        for error in errors {
            assert!(matches!(error, StoreError::Newer { format: 2, .. }), "{error:?}");
            assert!(error.hint().unwrap().contains("type -a tpu"));
        }
        assert_eq!(disk.bytes(paths().data()).unwrap(), text.as_bytes());
    }
    // Files of earlier versions, and of the original, say none.
    assert!(!Data::parse(b"{\"users\":{}}").unwrap().is_newer());
    assert!(Data::parse(b"{\"users\":{},\"tpu_format\":\"x\"}").is_err());
}

#[test]
fn a_missing_file_is_an_error_of_its_own_and_creating_never_overwrites() {
    let disk = Arc::new(FakeDisk::new(Path::new("/lab")));
    let store = store(&disk);
    assert!(matches!(store.read(), Err(StoreError::Missing { .. })));
    assert!(matches!(mutate(&store, "x"), Err(StoreError::Missing { .. })));
    let mut data = Data::empty();
    assert!(data.add_user(&UserName::from("alice")));
    store.create(&data).unwrap();
    assert_eq!(store.read().unwrap().to_text(), data.to_text());
    assert!(matches!(store.create(&Data::empty()), Err(StoreError::Exists { .. })));
    assert_eq!(store.read().unwrap().to_text(), data.to_text());
}

#[test]
fn a_held_lock_is_waited_for_ten_seconds_and_its_holder_named() {
    let disk = disk();
    let clock = clock();
    let store = Store::open(paths(), Arc::<FakeDisk>::clone(&disk), clock.clone(), who());
    let note =
        r#"{"pid":77,"host":"lab-2","command":"tpu daemon run","since":"2026-11-20T07:00:00Z"}"#;
    disk.hold(&paths().lock(), note.as_bytes());
    let before = clock.monotonic();
    let error = mutate(&store, "x").map(drop).unwrap_err();
    let waited = clock.monotonic().saturating_sub(before);
    assert!(waited >= Duration::from_secs(10) && waited < Duration::from_secs(11), "{waited:?}");
    let StoreError::Locked { holder, .. } = &error else { panic!("{error:?}") };
    assert_eq!((holder.pid, holder.host.as_str()), (77, "lab-2"));
    let text = error.to_string();
    assert!(text.contains("process 77 on lab-2 (tpu daemon run) for "), "{text}");
    assert!(error.hint().unwrap().contains("kill 77"));
    assert!(store.read().is_ok(), "readers wait for nobody");
    disk.restart();
    assert!(mutate(&store, "x").is_ok());
}

#[test]
fn readers_try_again_when_a_network_file_system_loses_the_file() {
    let disk = disk();
    let mut left = 3;
    disk.set_faults(move |_, name, _| {
        (name == "read" && left > 0).then(|| {
            left -= 1;
            Fault::Error(io::ErrorKind::StaleNetworkFileHandle)
        })
    });
    assert!(store(&disk).read().is_ok());
    disk.set_faults(|_, name, _| {
        (name == "read").then_some(Fault::Error(io::ErrorKind::StaleNetworkFileHandle))
    });
    assert!(matches!(store(&disk).read(), Err(StoreError::Io { op: "read", .. })));
}

#[test]
fn mode_and_owner_stay_and_a_warning_says_where_they_cannot() {
    let stat = |disk: &FakeDisk| tpu_system::store::Disk::stat(disk, paths().data()).unwrap();
    let disk = Arc::new(FakeDisk::new(Path::new("/lab")));
    disk.put(paths().data(), EXAMPLE.as_bytes(), 0o664, (7, 8));
    disk.set_account(0, 0);
    assert_eq!(mutate(&store(&disk), "x").unwrap().warnings, Vec::<String>::new());
    assert_eq!((stat(&disk).mode, stat(&disk).uid, stat(&disk).gid), (0o664, 7, 8));
    let lock = tpu_system::store::Disk::stat(&*disk, &paths().lock()).unwrap();
    assert_eq!(lock.mode, 0o664, "one account does not lock the others out");

    disk.set_account(9, 8);
    let warnings = mutate(&store(&disk), "y").unwrap().warnings;
    assert_eq!(warnings, ["the owner of the data file changed from 7:8 to 9:8"]);
    assert_eq!((stat(&disk).mode, stat(&disk).uid, stat(&disk).gid), (0o664, 9, 8));
    disk.set_account(10, 10);
    let warnings = mutate(&store(&disk), "z").unwrap().warnings;
    assert_eq!(warnings, ["the owner and group of the data file changed from 9:8 to 10:10"]);

    // In a directory that accounts share, its group may do all with the file, whoever owns it.
    let lab = paths().dir().to_owned();
    tpu_system::store::Disk::set_owner(&*disk, &lab, 0, 10).unwrap();
    tpu_system::store::Disk::set_mode(&*disk, &lab, 0o2770).unwrap();
    disk.set_account(11, 10);
    assert_eq!(mutate(&store(&disk), "shared").unwrap().warnings, Vec::<String>::new());
    assert_eq!((stat(&disk).mode, stat(&disk).uid, stat(&disk).gid), (0o664, 11, 10));
}

#[test]
fn the_journal_is_read_from_its_end_and_survives_a_torn_line() {
    let disk = disk();
    let store = store(&disk);
    let event = |n: u32, text: &str| Event {
        at: Timestamp::from_second(i64::from(n)),
        actor: "daemon".to_owned(),
        account: None,
        user: None,
        job: None,
        kind: "test".to_owned(),
        text: text.to_owned(),
        data: json!(n),
    };
    assert_eq!(store.events().count(), 0);
    let long = "x".repeat(1000);
    for n in 0..200 {
        store.note(&[event(n, &long), event(n, "short")]).unwrap();
    }
    let newest: Vec<_> = store.events().take(3).map(|event| event.unwrap().data).collect();
    assert_eq!(newest, [json!(199), json!(199), json!(198)]);
    assert_eq!(store.events().count(), 400);
    disk.set_faults(|_, name, _| (name == "append").then_some(Fault::CrashWithin));
    assert!(store.note(&[event(777, "torn")]).is_err());
    disk.restart();
    store.note(&[event(200, "after")]).unwrap();
    let newest: Vec<_> = store.events().take(2).map(|event| event.unwrap().data).collect();
    assert_eq!(newest, [json!(200), json!(199)], "the torn line is nobody's");
    // Reading three events must not read the whole journal.
    let reads = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let count = Arc::clone(&reads);
    disk.set_faults(move |_, name, _| {
        if name == "read" {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        None
    });
    assert_eq!(store.events().take(3).count(), 3);
    assert_eq!(reads.load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[test]
fn a_full_journal_is_put_aside_and_still_read() {
    let disk = disk();
    let store = store(&disk);
    let event = |n: u64| Event {
        at: Timestamp::from_second(0),
        actor: "a".to_owned(),
        account: None,
        user: None,
        job: None,
        kind: "k".to_owned(),
        text: "x".repeat(1 << 20),
        data: json!(n),
    };
    for n in 0..40 {
        store.note(&[event(n)]).unwrap();
    }
    let aside = Path::new("/lab/tpu-state/events.1.jsonl");
    assert!(disk.bytes(aside).is_some_and(|bytes| bytes.len() >= 16 << 20));
    assert!(disk.bytes(&paths().events()).unwrap().len() < 16 << 20);
    let all: Vec<_> = store.events().map(|event| event.unwrap().data.as_u64().unwrap()).collect();
    assert_eq!(all, (0..40).rev().collect::<Vec<_>>());
}

#[test]
fn a_cached_version_is_never_mistaken_for_another() {
    let disk = disk();
    let (ours, theirs) = (store(&disk), store(&disk));
    let first = ours.read().unwrap();
    assert!(Arc::ptr_eq(&first, &ours.read().unwrap()), "not parsed again");
    assert!(mutate(&theirs, "new").unwrap().changed);
    assert_eq!(tag(&ours.read().unwrap()).as_deref(), Some("new"));
    // A change by somebody else, after our last look, is what our change is applied to.
    let done = theirs.transact("bob", |tx| {
        set(&mut tx.data, "conda_env_name", "theirs");
        Ok::<_, StoreError>(())
    });
    assert!(done.unwrap().changed);
    assert!(mutate(&ours, "ours").unwrap().changed);
    assert_eq!(ours.read().unwrap().to_value()["conda_env_name"], "theirs");
    assert_eq!(tag(&theirs.read().unwrap()).as_deref(), Some("ours"));
    disk.put(paths().data(), EXAMPLE.as_bytes(), 0o640, (1000, 1000));
    assert_eq!(tag(&ours.read().unwrap()), None, "an editor replaced it");
}

#[test]
fn a_daemon_tries_seldom_while_another_one_asks() {
    let disk = disk();
    let (ours, theirs) = (store(&disk), store(&disk));
    let tries = Cell::new(0);
    let is_patient = || {
        tries.set(tries.get() + 1);
        tries.get() < 60
    };
    let waiting = clock();
    let other = Store::open(
        paths(),
        Arc::<FakeDisk>::clone(&disk),
        Arc::<ManualClock>::clone(&waiting),
        who(),
    );
    let asked = theirs.asking_providers(&|| false, || other.asking_providers(&is_patient, || ()));
    assert!(asked.unwrap().unwrap().unwrap().is_err(), "it asks nobody beside the other one");
    assert!(waiting.monotonic() > Duration::from_secs(2), "{:?}", waiting.monotonic());
    assert!(ours.asking_providers(&|| false, || ()).unwrap().is_ok());
}
