//! Writers of the built program die by SIGKILL or stand still: what they leave is whole, and nobody waits
//! for the dead.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use tpu_core::model::data::Data;
use tpu_system::store::disk::{Disk as _, Lock, Locked};
use tpu_system::store::{Event, OsDisk, Paths};
use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::random::{OsRandom, Random, SeededRandom};

use crate::common::env::TestEnv;
use crate::common::wait::wait_until;

/// Whether nobody holds the lock of the data file.
pub(crate) fn is_free(env: &TestEnv) -> bool {
    let path = Paths::new(env.data_path()).lock();
    let lock = Lock { path: &path, mode: 0o660, guarded: None };
    let taken = OsDisk.with_lock(lock, b"", &mut || {});
    matches!(taken, Ok(Locked::Done { .. }) | Err(_))
}

/// Everything that is kept can be read.
#[track_caller]
fn is_whole(env: &TestEnv, round: u64) {
    if let Err(error) = Data::parse(&env.data_bytes()) {
        panic!("round {round}: data.json: {error}");
    }
    let Ok(backups) = std::fs::read_dir(env.path("backups")) else { return };
    for entry in backups {
        let path = entry.unwrap().path();
        // The youngest one may be dropped at this moment by a writer that lives.
        let Ok(bytes) = std::fs::read(&path) else { continue };
        if let Err(error) = Data::parse(&bytes) {
            panic!("round {round}: {}: {error}", path.display());
        }
    }
}

/// `./x torture` asks for a thousand rounds.
#[expect(clippy::disallowed_methods, reason = "asked for on the command line of ./x")]
fn rounds() -> u64 {
    std::env::var("TPU_TORTURE").ok().and_then(|text| text.parse().ok()).unwrap_or(100)
}

#[test]
fn sigkill_at_random_moments_of_writers_leaves_everything_whole() {
    let env = TestEnv::alice();
    let clock = SystemClock::new();
    drop(env.tpu("-a first config.first alice").exits(0));
    let whole = clock.monotonic();
    let mut done = 0;
    for round in 0..rounds() {
        let writers: Vec<_> = (0..2)
            .map(|n| env.start_tpu(&format!("-a k{round}_{n} config.k{round}.n{n} alice"), &[]))
            .collect();
        let share = u32::try_from(OsRandom.below(1_300)).unwrap();
        clock.sleep(whole * share / 1_000);
        writers.into_iter().for_each(crate::common::env::Running::kill);
        is_whole(&env, round);
        assert!(is_free(&env), "round {round}: the lock is held by the dead");
        let data = env.data();
        let aliases = data["users"]["alice"]["config_aliases"].as_object().unwrap();
        assert!(aliases.len() >= done, "round {round}: something is lost");
        done = aliases.len();
    }
    drop(env.tpu("-a last config.last alice").exits(0));
    let left = std::fs::read_dir(env.data_path().parent().unwrap()).unwrap();
    let names = left.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let temporary: Vec<String> = names.filter(|name| name.contains(".tmp")).collect();
    assert!(temporary.is_empty(), "what the dead left is swept: {temporary:?}");
}

/// Takes the lock file away, or puts another one in its place.
fn vandalise(lock: &std::path::Path, draw: &dyn Random) {
    let other = lock.with_extension("other");
    // It may be gone, or come back, at any moment.
    match draw.below(3) {
        0 => drop(std::fs::remove_file(lock)),
        1 => {
            drop(std::fs::File::create(&other));
            drop(std::fs::rename(&other, lock));
        }
        _ => {
            drop(std::fs::copy(lock, &other));
            drop(std::fs::rename(&other, lock));
        }
    }
}

#[test]
fn lock_files_that_vanish_or_are_replaced_lose_no_write_that_was_acknowledged() {
    let env = TestEnv::alice();
    drop(env.tpu("-a first config.first alice").exits(0));
    let lock = Paths::new(env.data_path()).lock();
    let (clock, over) = (SystemClock::new(), AtomicBool::new(false));
    let acknowledged = std::thread::scope(|scope| {
        let vandal = scope.spawn(|| {
            let mut times = 0_u64;
            while !over.load(Ordering::Relaxed) {
                vandalise(&lock, &OsRandom);
                times += 1;
                clock.sleep(Duration::from_micros(OsRandom.below(3_000)));
            }
            times
        });
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let env = &env;
                scope.spawn(move || {
                    let names = (0..rounds() / 4).map(|n| format!("k{writer}_{n}"));
                    let write = |name: &String| env.tpu(&format!("-a {name} config.{name} alice"));
                    names.filter(|name| write(name).code == 0).collect::<Vec<_>>()
                })
            })
            .collect();
        let done: Vec<_> = writers.into_iter().flat_map(|w| w.join().unwrap()).collect();
        over.store(true, Ordering::Relaxed);
        let times = vandal.join().unwrap();
        eprintln!("{} writes acknowledged, {times} lock files taken away or replaced", done.len());
        done
    });
    assert!(acknowledged.len() as u64 > rounds() / 5, "{} writes", acknowledged.len());
    let data = env.data();
    let kept = data["users"]["alice"]["config_aliases"].as_object().unwrap();
    let lost: Vec<_> = acknowledged.iter().filter(|name| !kept.contains_key(*name)).collect();
    assert!(lost.is_empty(), "{} of {} are lost: {lost:?}", lost.len(), acknowledged.len());
}

/// A command that changes the data file, drawn from `draw`; some of them are refused.
fn mutation(draw: &SeededRandom, unique: u64) -> String {
    let key = draw.below(6);
    let (a, b) = (1 + draw.below(5), 1 + draw.below(5));
    let user = ["alice", "bob"][usize::try_from(draw.below(2)).unwrap()];
    let dir = ["/", "/usr", "/etc", "/var", "/tmp"][usize::try_from(draw.below(5)).unwrap()];
    match draw.below(6) {
        0 | 1 => format!("-a k{key} config.v{unique} {user}"),
        2 => format!("del-config-alias k{key} {user}"),
        3 => format!("set-dir {dir} {a} {user}"),
        4 => format!("swap-dir {a} {b} {user}"),
        _ => format!("del-dir {a} {user}"),
    }
}

/// The command that a line of the journal tells of.
fn told(event: &Event) -> String {
    let user = event.user.as_ref().unwrap();
    let words: Vec<&str> = event.text.split(' ').collect();
    match *words.as_slice() {
        [key, "stands", "for", full] => format!("-a {key} {full} {user}"),
        [key, "no", "longer", ..] => format!("del-config-alias {key} {user}"),
        ["directory", slot, "is", "forgotten"] => format!("del-dir {slot} {user}"),
        ["directory", slot, "is", dir] => format!("set-dir {dir} {slot} {user}"),
        ["directories", a, "and", b, ..] => format!("swap-dir {a} {b} {user}"),
        _ => panic!("no such change: {}", event.text),
    }
}

#[test]
fn what_eight_processes_did_at_once_is_what_the_journal_tells() {
    let lab = || {
        let env = TestEnv::alice();
        for user in ["alice", "bob"] {
            drop(env.tpu(&format!("set-dir / 1 {user}")).exits(0));
        }
        env
    };
    let env = lab();
    let before = env.journal().len();
    let each = rounds() / 5;
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let env = &env;
            scope.spawn(move || {
                let draw = SeededRandom::new(writer);
                for n in 0..each {
                    let output = env.tpu(&mutation(&draw, writer * 1_000 + n));
                    assert!(matches!(output.code, 0 | 3), "{output}");
                }
            });
        }
    });
    let journal = env.journal();
    let commands: Vec<String> = journal.iter().skip(before).map(told).collect();
    assert!(commands.len() as u64 > each, "{} changes", commands.len());
    let replayed = lab();
    for command in &commands {
        drop(replayed.tpu(command).exits(0));
    }
    assert_eq!(env.data()["users"], replayed.data()["users"]);
}

#[test]
fn whoever_holds_the_lock_and_stands_still_is_named_after_ten_seconds() {
    let env = TestEnv::alice();
    drop(env.tpu("-a first config.first alice").exits(0));
    let mut holder = env.start_at_points("-a second config.second alice", "txn-read=sleep(600000)");
    let pid = Pid::from_child(&holder);
    let (lock, name) = (Paths::new(env.data_path()).lock(), format!("\"pid\":{},", holder.id()));
    wait_until("the lock to be held by name", || {
        let says = std::fs::read(&lock).unwrap_or_default();
        String::from_utf8_lossy(&says).contains(&name) && !is_free(&env)
    });
    kill_process(pid, Signal::STOP).unwrap();
    let before = env.data_bytes();
    let host = tpu_system::sys::env::Env::read().hostname;
    let refused = env.tpu("-a third config.third alice").exits(5);
    let number = holder.id().to_string();
    drop(refused.says(&[&number, &host, "(tpu ", ") for "]));
    assert!(env.data_bytes() == before);
    holder.kill().unwrap();
    let _ended = holder.wait().unwrap();
    drop(env.tpu("-a third config.third alice").exits(0));
}
