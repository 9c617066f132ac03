//! The state file on the machine's own file system: many writers, links, modes, locks.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::json;
use tpu_core::model::data::Data;
use tpu_core::model::ids::{JobId, TargetName, UserName};
use tpu_core::model::job::Job;
use tpu_core::model::time::Timestamp;
use tpu_system::store::{OsDisk, Paths, Store, StoreError, Tx, Who};
use tpu_system::sys::clock::{Clock, SystemClock};

use super::document::set;
use crate::common::wait::wait_until;

fn open(path: &Path) -> Store {
    let who = Who { pid: std::process::id(), host: "here".to_owned(), command: "test".to_owned() };
    Store::open(Paths::new(path.to_owned()), Arc::new(OsDisk), Arc::new(SystemClock::new()), who)
}

fn new(dir: &Path) -> Store {
    let store = open(&dir.join("data.json"));
    let mut data = Data::empty();
    for name in ["alice", "bob"] {
        assert!(data.add_user(&UserName::from(name)));
    }
    store.create(&data).unwrap();
    store
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// One of 200 changes: append, change, archive, or touch what all share.
fn change(store: &Store, thread: usize, n: usize) {
    let user = UserName::from(if (thread + n).is_multiple_of(2) { "alice" } else { "bob" });
    let done = store.transact("test", |tx| {
        let owner = tx.data.user_mut(&user).unwrap();
        let id = JobId::new(user.clone(), owner.next_window(None));
        let mut job = Job::new(&id, TargetName::from("local"), format!("{thread}/{n}"));
        job.job_tags = Some(format!("{thread}/{n}"));
        owner.push_job(job);
        let oldest = owner.jobs()[0].windows_id;
        if owner.jobs().len() > 8 {
            assert!(tx.archive(&JobId::new(user.clone(), oldest)));
        } else if n.is_multiple_of(3) {
            owner.job_mut(oldest).unwrap().stage += 1;
        }
        let seen = conda_env(&tx.data).parse::<u64>().unwrap_or(0);
        set(&mut tx.data, "conda_env_name", &(seen + 1).to_string());
        tx.event(&id, "launch", format!("{thread}/{n}"), json!(seen));
        Ok::<_, StoreError>(())
    });
    assert_eq!(done.unwrap().warnings, Vec::<String>::new());
}

fn conda_env(data: &Data) -> String {
    data.to_value()["conda_env_name"].as_str().unwrap_or("").to_owned()
}

#[test]
fn eight_writers_lose_nothing_and_readers_see_whole_versions() {
    const WRITERS: usize = 8;
    const CHANGES: usize = 200;
    let dir = tempfile::tempdir().unwrap();
    let store = new(dir.path());
    let (made, changes) = channel();
    std::thread::scope(|scope| {
        for thread in 0..WRITERS {
            // A door each, as separate processes have, and every other one shared.
            let own = open(store.paths().data());
            let (store, made) = (&store, made.clone());
            scope.spawn(move || {
                for n in 0..CHANGES {
                    change(if thread.is_multiple_of(2) { store } else { &own }, thread, n);
                    made.send(()).unwrap();
                }
            });
        }
        drop(made);
        let reader = open(store.paths().data());
        let mut last = 0;
        for () in changes {
            let now = conda_env(&reader.read().unwrap()).parse().unwrap_or(0);
            assert!(now >= last, "time does not go back");
            last = now;
        }
    });
    let data = open(store.paths().data()).read().unwrap();
    let total = WRITERS * CHANGES;
    assert_eq!(conda_env(&data), total.to_string(), "each saw the one before");
    // Every record is in the file or in the archive, once.
    let mut tags: Vec<String> = data.jobs().map(|job| job.job_tags.clone().unwrap()).collect();
    tags.extend(store.archived().map(|archived| archived.unwrap().job.job_tags.unwrap()));
    tags.sort();
    let mut expected: Vec<String> = (0..WRITERS)
        .flat_map(|thread| (0..CHANGES).map(move |n| format!("{thread}/{n}")))
        .collect();
    expected.sort();
    assert_eq!(tags, expected);
    // The journal tells the same story in the same order.
    let journal: Vec<u64> =
        store.events().map(|event| event.unwrap().data.as_u64().unwrap()).collect();
    assert_eq!(journal, (0..total as u64).rev().collect::<Vec<_>>());
    for user in data.users() {
        let given = store
            .events()
            .filter(|event| event.as_ref().unwrap().user.as_ref() == Some(&user.name))
            .count();
        assert_eq!(user.windows_offset as usize, given + 1, "no number twice, none left out");
    }
    let left = ["backups", "data.json", "data.json.lock", "tpu-state"];
    assert_eq!(names(dir.path()), left);
}

/// A clock that counts how often somebody has waited by it.
struct Waits(SystemClock, AtomicUsize);

impl Clock for Waits {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }

    fn sleep(&self, duration: Duration) {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.sleep(duration);
    }
}

/// A server answers many at once: its threads wait for each other, and not all of them at the lock file.
#[test]
fn threads_of_one_process_never_ask_for_a_lock_that_their_own_process_holds() {
    let dir = tempfile::tempdir().unwrap();
    let path = new(dir.path()).paths().data().to_owned();
    let clock = Arc::new(Waits(SystemClock::new(), AtomicUsize::new(0)));
    let who = Who { pid: std::process::id(), host: "here".to_owned(), command: "test".to_owned() };
    let store = Store::open(Paths::new(path), Arc::new(OsDisk), Arc::<Waits>::clone(&clock), who);
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let store = &store;
            scope.spawn(move || (0..10).for_each(|n| change(store, thread, n)));
        }
    });
    assert_eq!(store.events().count(), 160);
    assert_eq!(clock.1.load(Ordering::Relaxed), 0, "nobody waits a moment and asks again");
    // Whoever breaks off gives the turn back.
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let never =
            |_: &mut Tx<'_>| -> Result<(), StoreError> { std::panic::panic_any("broken off") };
        store.transact("test", never)
    }));
    assert!(broken.is_err());
    change(&store, 0, 0);
}

#[test]
fn a_link_stays_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().join("real");
    fs::create_dir(&real).unwrap();
    drop(new(&real));
    let link = dir.path().join("data.json");
    symlink(real.join("data.json"), &link).unwrap();
    change(&open(&link), 0, 1);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(names(dir.path()), ["data.json", "real"]);
    assert_eq!(names(&real), ["backups", "data.json", "data.json.lock", "tpu-state"]);
}

#[test]
fn modes_stay_and_new_things_get_theirs() {
    let dir = tempfile::tempdir().unwrap();
    let store = new(dir.path());
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(store.paths().data()), 0o660);
    fs::set_permissions(store.paths().data(), fs::Permissions::from_mode(0o606)).unwrap();
    change(&store, 0, 0);
    assert_eq!(mode(store.paths().data()), 0o606);
    assert_eq!(mode(&store.paths().lock()), 0o660);
    assert_eq!(mode(&store.paths().state()), 0o770);
    assert_eq!(mode(&store.paths().backups()), 0o770);
    assert_eq!(mode(&store.paths().events()), 0o660);
    let job = JobId::new(UserName::from("../al ice"), tpu_core::model::ids::JobNumber(3));
    let dir_of_job = store.job_dir(&job).unwrap();
    assert_eq!(
        dir_of_job,
        dir.path().canonicalize().unwrap().join("tpu-state/jobs/%2e%2e%2fal%20ice/3")
    );
    assert_eq!(mode(&dir_of_job), 0o750);
    assert_eq!(store.job_dir(&job).unwrap(), dir_of_job, "twice is no error");
}

#[test]
fn what_is_made_below_a_shared_directory_is_its_group_s() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o2770)).unwrap();
    let store = new(dir.path());
    change(&store, 0, 0);
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    let job = JobId::new(UserName::from("alice"), tpu_core::model::ids::JobNumber(3));
    let dir_of_job = store.job_dir(&job).unwrap();
    let paths = store.paths();
    for shared in [paths.state(), paths.backups(), dir_of_job.parent().unwrap().to_owned()] {
        assert_eq!(mode(&shared), 0o2770, "{}", shared.display());
    }
    assert_eq!(mode(&dir_of_job), 0o2750, "the group goes on below it");
    let log = paths.state().join("log");
    store.disk().append(&log, b"x", 0o644, false).unwrap();
    assert_eq!(mode(&log), 0o664, "whoever may read it may write it");
    let own = paths.state().join("own");
    store.disk().append(&own, b"x", 0o600, false).unwrap();
    assert_eq!(mode(&own), 0o600);
}

#[test]
fn a_lock_that_somebody_removes_is_taken_anew() {
    let dir = tempfile::tempdir().unwrap();
    let store = new(dir.path());
    change(&store, 0, 0);
    fs::remove_file(store.paths().lock()).unwrap();
    change(&store, 0, 1);
    assert!(store.paths().lock().exists());
    let note = fs::read_to_string(store.paths().lock()).unwrap();
    assert!(note.contains("\"command\":\"test\""), "{note}");
}

#[test]
fn backups_are_not_touched_by_editing_in_place() {
    let dir = tempfile::tempdir().unwrap();
    let store = new(dir.path());
    change(&store, 0, 0);
    let text = fs::read_to_string(store.paths().data()).unwrap();
    let backup = store.backups()[0].clone();
    let kept = fs::read(&backup).unwrap();
    // Some editors write into the file that is there.
    let file = fs::OpenOptions::new().write(true).open(store.paths().data()).unwrap();
    let edited = text.replace("\"conda_env_name\": \"1\"", "\"conda_env_name\": \"7\"");
    std::os::unix::fs::FileExt::write_all_at(&file, edited.as_bytes(), 0).unwrap();
    assert_eq!(fs::read(&backup).unwrap(), kept);
    change(&store, 0, 1);
    assert_eq!(conda_env(&store.read().unwrap()), "8");
    assert_eq!(fs::read_to_string(&store.backups()[0]).unwrap(), edited);
}

#[test]
fn there_is_one_monitor_and_a_second_one_learns_who() {
    let dir = tempfile::tempdir().unwrap();
    let store = new(dir.path());
    let second = open(store.paths().data());
    let outcome = store.as_monitor("here", &|| false, || {
        let refused = second.as_monitor("here", &|| false, || "ran").unwrap().unwrap_err();
        assert_eq!((refused.pid, refused.command.as_str()), (std::process::id(), "test"));
        // The daemon's lock keeps nobody from working.
        change(&second, 0, 0);
        7
    });
    assert_eq!(outcome.unwrap(), Ok(7));
    assert_eq!(
        second.as_monitor("here", &|| false, || 8).unwrap(),
        Ok(8),
        "free when the first is gone"
    );
}

#[test]
fn a_writer_whose_lock_file_was_removed_still_keeps_others_out() {
    let dir = tempfile::tempdir().unwrap();
    let store = new(dir.path());
    let lock = Paths::new(dir.path().join("data.json")).lock();
    let tag = |store: &Store, name: &str, meanwhile: &dyn Fn()| {
        let done = store.transact("test", |tx| {
            meanwhile();
            let key = format!("{name}-{}", conda_env(&tx.data));
            set(&mut tx.data, "conda_env_name", &key);
            Ok::<_, StoreError>(())
        });
        drop(done.unwrap());
    };
    let (entered, wait) = channel();
    let other = open(&dir.path().join("data.json"));
    std::thread::scope(|scope| {
        tag(&store, "first", &|| {
            fs::remove_file(&lock).unwrap();
            let (entered, other) = (entered.clone(), &other);
            let _other =
                scope.spawn(move || tag(other, "second", &|| entered.send(()).unwrap_or(())));
            wait_until("the other one's lock file", || lock.exists());
            // It must not come in; a bound, not a measure, for one that does.
            wait.recv_timeout(Duration::from_millis(300)).unwrap_or(());
        });
    });
    assert!(conda_env(&store.read().unwrap()).starts_with("second-first"));
}
