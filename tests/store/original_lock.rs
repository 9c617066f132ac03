//! Side by side with the original on one file: its lock is respected while it is held and fresh, and no
//! change of either is lost.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use tpu_system::sys::clock::{Clock as _, SystemClock};

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

fn lock_json(held: bool, user: Option<&str>) -> String {
    let free = json!({ "status": false, "user": null });
    json!({ "code": free, "data": { "status": held, "user": user }, "queue": free }).to_string()
}

/// What stands in our lock file: who holds it.
fn holder(env: &TestEnv) -> String {
    let bytes = std::fs::read(env.path("data.json.lock")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn a_change_waits_until_the_original_is_done() {
    let env = TestEnv::new();
    write_file(&env.path("lock.json"), &lock_json(true, Some("bob")));
    let before = env.data_bytes();
    let tpu = env.start_tpu("set-settings monitor_length 7 alice", &[]);
    wait_until("our own lock to be held", || holder(&env).contains("set-settings"));
    assert_eq!(env.data_bytes(), before);
    // Looking never waits.
    drop(env.tpu("ls alice").exits(0));
    write_file(&env.path("lock.json"), &lock_json(false, None));
    assert_eq!(tpu.wait(), 0);
    assert_eq!(env.data()["users"]["alice"]["settings"]["monitor_length"], 7);
}

#[test]
fn a_lock_that_is_never_given_back_is_named_and_nothing_is_changed() {
    let env = TestEnv::new();
    write_file(&env.path("lock.json"), &lock_json(true, Some("bob")));
    let before = env.data_bytes();
    drop(env.tpu("set-settings monitor_length 7 alice").exits(5).says(&[
        "lock.json says that the original tool is at work for bob",
        "hint: nothing was changed",
        "unlock data",
    ]));
    assert_eq!(env.data_bytes(), before);
    drop(env.tpu("doctor").exits(0).says(&["the original holds its lock by bob"]));
}

#[test]
fn a_lock_that_is_left_over_does_not_count() {
    let env = TestEnv::new();
    let path = env.path("lock.json");
    write_file(&path, &lock_json(true, Some("bob")));
    let clock = SystemClock::new();
    let long_ago = std::time::UNIX_EPOCH
        + Duration::from_secs(u64::try_from(clock.now().as_second()).unwrap() - 31 * 60);
    File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    drop(env.tpu("set-settings monitor_length 7 alice").exits(0));
    drop(env.tpu("doctor").exits(0).says(&["the original's lock is left over by bob"]));
    // What is no lock of the original says nothing.
    for odd in ["", "[1]", "{\"data\": 3}", "{\"data\": {\"status\": \"true\"}}"] {
        write_file(&path, odd);
        drop(env.tpu("set-settings monitor_length 8 alice").exits(0));
    }
}

/// Flips the flag as the original does: under the system's lock of the file, in place. Whether it did.
fn flip(path: &Path, to: bool) -> bool {
    let mut file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    flock(&file, FlockOperation::LockExclusive).unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    let mut lock: Value = serde_json::from_str(&text).unwrap();
    if to && lock["data"]["status"] == true {
        return false;
    }
    lock["data"]["status"] = to.into();
    file.seek(SeekFrom::Start(0)).unwrap();
    let text = serde_json::to_string_pretty(&lock).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.set_len(text.len() as u64).unwrap();
    true
}

#[test]
fn no_change_of_either_is_lost() {
    const ROUNDS: u64 = 25;
    let env = TestEnv::new();
    let lock = env.path("lock.json");
    write_file(&lock, &lock_json(false, None));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                wait_until("the original's own lock", || flip(&lock, true));
                let mut data = env.data();
                data["rounds"] = round.into();
                let temporary = env.path("data.json.original");
                write_file(&temporary, &serde_json::to_string_pretty(&data).unwrap());
                std::fs::rename(&temporary, env.data_path()).unwrap();
                assert!(flip(&lock, false));
            }
        });
        for user in ["alice", "bob"] {
            let env = &env;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    drop(env.tpu(&format!("-a k{round} config.k{round} {user}")).exits(0));
                }
            });
        }
    });
    let data = env.data();
    assert_eq!(data["rounds"], ROUNDS);
    for user in ["alice", "bob"] {
        let aliases = data["users"][user]["config_aliases"].as_object().unwrap();
        assert_eq!(aliases.len() as u64, ROUNDS + 1, "{user}");
    }
}
