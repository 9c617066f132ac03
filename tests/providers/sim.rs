//! The simulated cloud beyond the contract: one fleet for several doors, stories, chance, and a disk that
//! fails.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tpu_core::model::ids::TargetName;
use tpu_core::model::target::Pricing;
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::{
    Answer, EVERYWHERE, Progress, Provider as _, RequestId, TargetSpec, Trouble, retry,
};
use tpu_lab::sim::{Call, Event, Scenario, SimCloud, SimConfig, SimTarget, Timing};
use tpu_system::store::{Disk, Who};
use tpu_system::sys::clock::{Clock as _, ManualClock, SystemClock};
use tpu_system::sys::env::Env;
use tpu_system::sys::proc::{self, Spawn};
use tpu_system::sys::random::SeededRandom;

use crate::common::fakes::disk::{FakeDisk, Fault};
use crate::common::sim::{Sim, ZONE, answer, at, fact, open as open_in, spec, trouble_of};

fn error(class: Trouble, call: Call, times: u32) -> Event {
    let (target, zone, for_s) = (None, None, None);
    Event::Error { class, call: Some(call), target, zone, times: Some(times), for_s }
}

#[test]
fn every_door_leads_to_the_same_fleet() {
    let sim = Sim::new(&[("one", "v2-8")]);
    assert_eq!(sim.word("one"), "READY");
    let other = sim.another_door();
    other.pull(&Event::Preempt { target: "one".to_owned() }).unwrap();
    assert_eq!(sim.word("one"), "PREEMPTED");
    sim.create("two", "r1").unwrap();
    sim.pass(2.0);
    assert_eq!(fact(&other, ZONE, "two").unwrap().raw_state, "READY");
}

#[test]
fn four_doors_at_once_lose_nothing_and_do_nothing_twice() {
    let sim = Sim::new(&[("one", "v2-8")]);
    assert_eq!(sim.word("one"), "READY");
    let won: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let door = sim.another_door();
                scope.spawn(move || {
                    for target in 0..10 {
                        let (name, id) =
                            (format!("own-{number}-{target}"), format!("{number}-{target}"));
                        let own = door.create(&spec(&name), &RequestId(id.clone())).unwrap();
                        let again = door.create(&spec(&name), &RequestId(id)).unwrap();
                        assert_eq!(own.name, again.name);
                    }
                    let id = RequestId(format!("contested-{number}"));
                    door.create(&spec("contested"), &id).is_ok()
                })
            })
            .collect();
        threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum()
    });
    assert_eq!(won, 1, "one request makes a target, the others find it there");
    let fleet = sim.cloud.look().unwrap();
    let made = fleet.history().iter().filter(|h| h.what == "creating").count();
    assert_eq!(made, 1 + 40 + 1);
    sim.pass(2.0);
    let ready = sim.cloud.look().unwrap().targets(sim.clock.now());
    assert_eq!(ready.iter().filter(|fact| fact.raw_state == "READY").count(), 42);
}

/// Runs itself four times, as processes of their own, each of which makes and takes away targets.
#[test]
fn four_processes_share_one_fleet() {
    const FLEET: &str = "TPU_TEST_FLEET";
    const SELF: &str = "providers::sim::four_processes_share_one_fleet";
    if let Some(dir) = Env::read().var(FLEET) {
        let door = open_in(Path::new(dir), Arc::new(SystemClock::new()), &[], false);
        let me = std::process::id();
        for round in 0..10 {
            let name = format!("p{me}-{round}");
            door.create(&spec(&name), &RequestId(name.clone())).unwrap();
            if round % 2 == 1 {
                door.delete(&at(&name), false).unwrap();
            }
            assert!(fact(&door, ZONE, &name).is_some());
        }
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = std::env::current_exe().unwrap();
    std::thread::scope(|scope| {
        let run = || {
            let spawn = Spawn::new(&program).args(["--exact", SELF]).env(FLEET, dir.path());
            proc::run(&spawn).unwrap()
        };
        let begun: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        for thread in begun {
            let output = thread.join().unwrap();
            assert!(output.status.success(), "{}{}", output.text(), output.complaint());
        }
    });
    let door = open_in(dir.path(), Arc::new(SystemClock::new()), &[], false);
    let fleet = door.look().unwrap();
    let count = |what: &str| fleet.history().iter().filter(|h| h.what == what).count();
    assert_eq!((count("creating"), count("deleting")), (40, 20));
}

#[test]
fn things_happen_at_their_own_time_however_late_somebody_looks() {
    let sim = Sim::new(&[("one", "v2-8")]);
    let begin = sim.clock.now();
    sim.create("two", "r1").unwrap();
    sim.pass(5_000.0);
    let two = sim.fact("two").unwrap();
    assert_eq!(two.since, Some(begin.plus_seconds(2)));
    assert_eq!(two.observed_at, begin.plus_seconds(5_000));
}

#[test]
fn a_list_of_a_quiet_fleet_writes_nothing() {
    let sim = Sim::new(&[("one", "v2-8")]);
    assert_eq!(sim.word("one"), "READY");
    let version = || sim_version(&sim.file());
    let before = version();
    sim.pass(100.0);
    assert_eq!(sim.word("one"), "READY");
    assert_eq!(version(), before);
    sim.pull(&Event::Preempt { target: "one".to_owned() });
    assert_ne!(version(), before);
}

fn sim_version(path: &Path) -> (u64, Vec<u8>) {
    use std::os::unix::fs::MetadataExt as _;
    (std::fs::metadata(path).unwrap().ino(), std::fs::read(path).unwrap())
}

#[test]
fn a_story_is_played_to_its_end() {
    let sim = Sim::new(&[("one", "v2-8")]);
    let story = include_str!("../cases/sim/night.toml");
    sim.cloud.play(&Scenario::parse(story).unwrap()).unwrap();
    sim.pass(119.0);
    assert_eq!(sim.word("one"), "READY");
    sim.pass(1.0);
    assert_eq!(sim.word("one"), "PREEMPTED");

    sim.cloud.delete(&at("one"), false).unwrap();
    sim.pass(10.0);
    for attempt in ["a", "b"] {
        let operation = sim.create("one", attempt).unwrap();
        sim.pass(60.0);
        assert!(matches!(sim.progress(&operation), Progress::Failed { .. }), "{attempt}");
    }
    let operation = sim.create("one", "c").unwrap();
    sim.pass(60.0);
    assert_eq!(sim.progress(&operation), Progress::Done);
    sim.pass(290.0); // 600 s
    assert!(matches!(answer(&sim.cloud, ZONE), Answer::Unknown { .. }));
    sim.pass(30.0);
    assert_eq!(sim.word("one"), "READY");
    sim.pass(70.0); // 700 s
    let one = sim.fact("one").unwrap();
    assert!(one.is_flagged());
    assert_eq!(one.health.as_deref(), Some("UNHEALTHY_MAINTENANCE"));
    sim.pass(50.0);
    assert!(!sim.fact("one").unwrap().is_flagged());
    sim.pass(200.0);
    assert_eq!(sim.word("one"), "READY");
    let odd = sim.history("nobody");
    assert_eq!(odd.len(), 1);
    assert!(odd[0].contains("no such target"), "{odd:?}");
}

#[test]
fn targets_that_can_be_taken_away_are_taken_away_at_the_rate_that_was_set() {
    let names: Vec<String> = (0..40).map(|number| format!("t{number}")).collect();
    let targets: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "v2-8")).collect();
    let lives = || {
        let sim = Sim::new(&targets);
        let timing = Timing { preemptions_per_h: 1.0, ..Timing::default() };
        let owned = Event::Ready {
            target: "owned".to_owned(),
            zone: Some(ZONE.to_owned()),
            accelerator: None,
            pricing: Some(Pricing::OnDemand),
        };
        sim.pull(&owned);
        sim.pull(&Event::Time { timing });
        let begin = sim.clock.now();
        sim.pass(24.0 * 3600.0);
        assert_eq!(sim.word("owned"), "READY", "what is ours stays");
        let fleet = sim.cloud.look().unwrap();
        let taken = fleet.history().iter().filter(|h| h.what == "preempted");
        taken.map(|h| (h.target.clone(), h.at.seconds_since(begin))).collect::<Vec<_>>()
    };
    let first = lives();
    assert_eq!(first.len(), 40, "in a day at one an hour nobody is spared");
    let mean = first.iter().map(|(_, s)| s).sum::<u64>() / 40;
    assert!((1_800..7_200).contains(&mean), "on average {mean} s");
    assert!(first.is_sorted_by_key(|(_, s)| *s));
    assert_eq!(lives(), first, "the seed decides");
}

#[test]
fn a_stuck_deletion_ends_when_it_is_freed_or_its_time_is_over() {
    let sim = Sim::new(&[("one", "v2-8"), ("two", "v2-8")]);
    sim.pull(&Event::StickDeleting { target: "one".to_owned(), for_s: None });
    sim.pull(&Event::StickDeleting { target: "two".to_owned(), for_s: Some(1_000.0) });
    let one = sim.cloud.delete(&at("one"), true).unwrap();
    sim.cloud.delete(&at("two"), true).unwrap();
    sim.pass(999.0);
    assert_eq!((sim.word("one"), sim.word("two")), ("DELETING".to_owned(), "DELETING".to_owned()));
    assert_eq!(sim.fact("one").unwrap().stuck_for_s(sim.clock.now()), Some(999));
    sim.pass(1.0);
    assert_eq!(sim.word("two"), "-");
    assert_eq!(sim.progress(&one), Progress::Running);
    assert_eq!(sim.cloud.delete(&at("one"), true).unwrap().name, one.name);
    let refused = sim.create("one", "r1").unwrap_err();
    assert_eq!(refused.trouble, Trouble::AlreadyExists);
    sim.pull(&Event::Unstick { target: "one".to_owned() });
    assert_eq!(sim.word("one"), "-");
    assert_eq!(sim.progress(&one), Progress::Done);
}

#[test]
fn a_stock_out_can_last_until_an_instant() {
    let sim = Sim::new(&[]);
    let zone = Some(ZONE.to_owned());
    sim.pull(&Event::NoCapacity { target: None, zone, times: None, for_s: Some(100.0) });
    let early = sim.create("one", "r1").unwrap();
    sim.pass(99.0);
    assert_eq!(sim.progress(&early), early_failure(&sim, &early.name));
    let late = sim.create("one", "r2").unwrap();
    sim.pass(2.0);
    assert!(matches!(sim.progress(&late), Progress::Failed { .. }), "asked before it was over");
    let after = sim.create("one", "r3").unwrap();
    sim.pass(2.0);
    assert_eq!(sim.progress(&after), Progress::Done);
}

fn early_failure(sim: &Sim, name: &str) -> Progress {
    let failed = sim.cloud.operation(name).unwrap();
    assert_eq!(trouble_of(&failed), Some(Trouble::NoCapacity));
    failed.progress
}

#[test]
fn capacity_comes_back_for_whom_it_is_given() {
    let sim = Sim::new(&[]);
    for name in ["one", "two"] {
        let target = Some(name.to_owned());
        sim.pull(&Event::NoCapacity { target, zone: None, times: None, for_s: None });
    }
    sim.pull(&Event::Capacity { target: Some("one".to_owned()), zone: None });
    sim.create("one", "r1").unwrap();
    sim.create("two", "r2").unwrap();
    sim.pass(2.0);
    assert_eq!((sim.word("one"), sim.word("two")), ("READY".to_owned(), "-".to_owned()));
    sim.pull(&Event::Calm);
    sim.create("two", "r3").unwrap();
    sim.pass(2.0);
    assert_eq!(sim.word("two"), "READY");
}

#[test]
fn a_slow_answer_takes_its_time_and_a_very_slow_one_never_comes() {
    let sim = Sim::new(&[("one", "v2-8")]);
    let slow = |seconds, call| Event::Slow {
        seconds,
        call: Some(call),
        zone: None,
        times: Some(1),
        for_s: None,
    };
    sim.pull(&slow(5.0, Call::List));
    let before = sim.clock.monotonic();
    assert_eq!(sim.word("one"), "READY");
    assert_eq!(sim.clock.monotonic().saturating_sub(before).as_secs(), 5);

    sim.pull(&slow(600.0, Call::List));
    let before = sim.clock.monotonic();
    match answer(&sim.cloud, ZONE) {
        Answer::Unknown { error, .. } => assert_eq!(error.trouble, Trouble::Transient),
        facts @ Answer::Facts { .. } => panic!("{facts:?}"),
    }
    assert_eq!(sim.clock.monotonic().saturating_sub(before).as_secs(), 60, "nobody waits longer");

    sim.pull(&slow(600.0, Call::Delete));
    assert_eq!(sim.cloud.delete(&at("one"), true).unwrap_err().trouble, Trouble::Transient);
    assert_eq!(sim.word("one"), "-", "it had its effect all the same");
}

#[test]
fn a_call_that_arrives_twice_has_its_effect_once() {
    let sim = Sim::new(&[("one", "v2-8")]);
    for call in [Call::Create, Call::Delete] {
        sim.pull(&Event::Twice { call: Some(call), target: None, times: Some(1) });
    }
    sim.create("two", "r1").unwrap();
    sim.cloud.delete(&at("one"), true).unwrap();
    sim.pass(2.0);
    assert_eq!(sim.history("two"), ["creating", "ready"]);
    assert_eq!(sim.history("one"), ["creating", "ready", "deleting", "gone"]);
}

#[test]
fn silence_is_outlasted_and_a_lost_answer_found_again() {
    let sim = Sim::new(&[]);
    sim.pull(&error(Trouble::Transient, Call::Create, 3));
    sim.pull(&Event::LoseAnswer { call: Some(Call::Create), target: None, times: Some(1) });
    let random = SeededRandom::new(1);
    let made = retry::persistently(&*sim.clock, &random, || sim.create("two", "r1"))
        .expect("the fifth try");
    sim.pass(2.0);
    assert_eq!(sim.progress(&made), Progress::Done);
    assert_eq!(sim.history("two"), ["creating", "ready"]);
}

#[test]
fn a_preemption_ends_a_creation_and_happens_once() {
    let sim = Sim::new(&[("one", "v2-8")]);
    let preempt = |name: &str| sim.cloud.pull(&Event::Preempt { target: name.to_owned() });
    let operation = sim.create("two", "r1").unwrap();
    preempt("two").unwrap();
    assert_eq!(sim.word("two"), "PREEMPTED");
    assert!(matches!(sim.progress(&operation), Progress::Failed { .. }));
    sim.pass(10.0);
    assert_eq!(sim.word("two"), "PREEMPTED", "it does not come back by itself");
    assert!(preempt("two").unwrap_err().message.contains("PREEMPTED already"));
    let missing = preempt("nobody").unwrap_err();
    assert_eq!(missing.trouble, Trouble::NotFound);
    assert!(missing.hint().unwrap().contains("tpu sim list"));
}

#[test]
fn ready_makes_what_is_missing_and_mends_what_is_not() {
    let sim = Sim::new(&[("one", "v2-8")]);
    let ready = |target: &str| Event::Ready {
        target: target.to_owned(),
        zone: None,
        accelerator: None,
        pricing: None,
    };
    sim.pull(&Event::Preempt { target: "one".to_owned() });
    sim.pull(&ready("one"));
    assert_eq!(sim.word("one"), "READY");
    sim.cloud.delete(&at("one"), false).unwrap();
    assert_eq!(sim.cloud.pull(&ready("one")).unwrap_err().trouble, Trouble::User);
    sim.pull(&ready("lab-v4-32-x"));
    let fleet = sim.cloud.look().unwrap().targets(sim.clock.now());
    let made = fleet.iter().find(|fact| fact.name.as_str() == "lab-v4-32-x").unwrap();
    assert_eq!((made.accelerator.as_deref(), made.endpoints.len()), (Some("v4-32"), 4));
}

#[test]
fn a_length_of_time_that_is_none_is_refused() {
    let sim = Sim::new(&[("one", "v2-8")]);
    for for_s in [f64::NAN, -1.0, f64::INFINITY] {
        let event = Event::Outage { zone: ZONE.to_owned(), for_s: Some(for_s) };
        assert_eq!(sim.cloud.pull(&event).unwrap_err().trouble, Trouble::User);
    }
    assert_eq!(sim.word("one"), "READY");
}

#[test]
fn a_file_that_is_no_fleet_is_never_overwritten_and_says_nothing() {
    let sim = Sim::new(&[("one", "v2-8")]);
    assert_eq!(sim.word("one"), "READY");
    crate::common::tmux::write_file(&sim.file(), "{\"targets\": [broken");
    let Answer::Unknown { error, last } = answer(&sim.cloud, ZONE) else { panic!("facts") };
    assert_eq!(error.trouble, Trouble::State);
    assert!(error.hint().unwrap().contains("sim.json"), "{:?}", error.hint());
    assert!(last.is_some());
    let everywhere = sim.cloud.list(&[]);
    assert_eq!((everywhere.len(), everywhere[0].zone.as_str()), (1, EVERYWHERE));
    assert_eq!(sim.create("two", "r1").unwrap_err().trouble, Trouble::State);
    assert_eq!(std::fs::read_to_string(sim.file()).unwrap(), "{\"targets\": [broken");
    std::fs::remove_file(sim.file()).unwrap();
    assert_eq!(sim.word("one"), "READY", "a new fleet");
}

/// A fleet on a disk that fails when it is told to.
fn on_fake_disk() -> (SimCloud, Arc<FakeDisk>, Arc<ManualClock>) {
    let disk = Arc::new(FakeDisk::new(Path::new("/state")));
    let clock = Arc::new(ManualClock::new(Timestamp::from_second(1_800_000_000)));
    let cloud = SimCloud::open(SimConfig {
        file: "/state/sim.json".into(),
        machines: None,
        disk: Arc::clone(&disk) as Arc<dyn Disk>,
        clock: Arc::clone(&clock) as Arc<dyn tpu_system::sys::clock::Clock>,
        who: Who { pid: 7, host: "h".to_owned(), command: "c".to_owned() },
        seed: 1,
        targets: vec![SimTarget {
            name: TargetName::from("one"),
            zone: ZONE.to_owned(),
            accelerator: "v2-8".to_owned(),
            pricing: Pricing::Spot,
        }],
    });
    (cloud, disk, clock)
}

#[test]
fn a_disk_that_fails_leaves_the_fleet_as_it_was() {
    let (cloud, disk, _clock) = on_fake_disk();
    assert!(matches!(answer(&cloud, ZONE), Answer::Facts { .. }));
    let preempt = Event::Preempt { target: "one".to_owned() };
    disk.set_faults(|_, _, _| None);
    cloud.pull(&preempt).unwrap();
    let steps = disk.operations();
    assert!(steps > 3, "{steps} operations");
    for step in 0..steps {
        for fault in [Fault::Error(io::ErrorKind::StorageFull), Fault::Crash, Fault::CrashWithin] {
            let (cloud, disk, _clock) = on_fake_disk();
            assert!(matches!(answer(&cloud, ZONE), Answer::Facts { .. }));
            disk.set_faults(move |n, _, _| (n == step).then_some(fault));
            let result = cloud.pull(&preempt);
            disk.restart();
            disk.set_faults(|_, _, _| None);
            let word = fact(&cloud, ZONE, "one").unwrap().raw_state;
            match result {
                Ok(()) => assert_eq!(word, "PREEMPTED", "step {step}, {fault:?}"),
                // Only a crash after the replacement may have taken effect without an answer.
                Err(error) if fault == Fault::Error(io::ErrorKind::StorageFull) => {
                    assert_eq!((error.trouble, word.as_str()), (Trouble::State, "READY"));
                }
                Err(error) => {
                    assert_eq!(error.trouble, Trouble::State);
                    assert!(matches!(word.as_str(), "READY" | "PREEMPTED"), "{word}");
                }
            }
        }
    }
}

#[test]
fn types_and_zones_that_there_are_not_are_refused_with_those_that_there_are() {
    let sim = Sim::new(&[("one", "v2-8")]);
    let of = |accelerator: &str, zone: &str| TargetSpec {
        accelerator: accelerator.to_owned(),
        zone: zone.to_owned(),
        ..spec("two")
    };
    for (odd, says, hint) in [
        (of("v99-8", "us-east5-b"), "type 'v99-8' is not known", "v6e-16"),
        (of("v6e-8", "mars"), "no zone 'mars'", "us-central2-b"),
        (of("v6e-8", "us-east5"), "no zone 'us-east5'", "a region and a letter"),
    ] {
        let refused = sim.cloud.create(&odd, &RequestId("r".to_owned())).unwrap_err();
        assert_eq!(refused.trouble, Trouble::User, "{refused}");
        assert!(refused.to_string().contains(says), "{refused}");
        assert!(refused.hint().unwrap().contains(hint), "{refused:?}");
        assert!(sim.cloud.may_make(&odd.accelerator, &odd.zone).is_err());
    }
    sim.cloud.create(&of("v6e-8", "us-east5-b"), &RequestId("r".to_owned())).unwrap();
}
