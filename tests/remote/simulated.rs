//! Workers of simulated targets: what their machines have that no other has. They die with it, can be lost,
//! broken and refused. All through the two doors, as everything else uses them. What holds for every kind
//! of worker is in `remote_contract`.

use std::path::PathBuf;
use std::sync::Arc;

use tpu_core::model::ids::LaunchToken;
use tpu_engine::provider::Provider as _;
use tpu_lab::sim::Event;
use tpu_system::remote::local::LocalRemote;
use tpu_system::remote::{End, RemoteError, Started, Work, Worker};
use tpu_system::sys::clock::SystemClock;
use tpu_system::sys::procs;

use crate::common::remote::{Bench, Ends, UNTIL_GO, is_running};
use crate::common::sim::{Sim, at};
use crate::common::wait::wait_until;

struct World {
    sim: Sim,
    bench: Bench,
}

impl World {
    /// Targets with machines: `one` with 1 worker, `four` with 4.
    fn new() -> Self {
        let sim = Sim::with_machines(&[("one", "v2-8"), ("four", "v2-32")]);
        let remote = Box::new(LocalRemote::new(Arc::new(SystemClock::new())));
        let bench = Bench { remote, dir: sim.file().parent().unwrap().to_owned() };
        Self { sim, bench }
    }

    fn workers(&self, target: &str) -> Vec<Worker> {
        Worker::all(&self.sim.fact(target).unwrap().endpoints)
    }

    fn uid(&self) -> u32 {
        use std::os::unix::fs::MetadataExt as _;
        std::fs::metadata(self.sim.file()).unwrap().uid()
    }

    fn go(&self) -> PathBuf {
        self.bench.go()
    }

    fn script(&self, script: &str) -> Work {
        self.bench.script(script)
    }

    fn start(&self, target: &str, work: &Work, token: &str) -> Vec<Result<Started, RemoteError>> {
        self.bench.start(&self.workers(target), work, token)
    }

    fn run(&self, target: &str, work: &Work, token: &str) -> Ends {
        self.bench.run(&self.workers(target), work, token)
    }

    fn hear(&self, workers: &[Worker], token: &str) -> Ends {
        self.bench.hear(workers, token)
    }

    fn started(&self, worker: &Worker, token: &str) -> u32 {
        self.bench.started(worker, token)
    }
}

#[test]
fn a_preemption_kills_the_targets_processes_before_anybody_is_told_and_no_others() {
    let world = World::new();
    // Its processes leave the group, throw their variables away, and ignore every polite signal.
    let script =
        format!("trap '' INT TERM HUP; setsid env -i sleep 1000 & sleep 1000 & {UNTIL_GO}");
    let other = World::new();
    for (world, target) in [(&world, "four"), (&world, "one"), (&other, "four")] {
        for started in world.start(target, &world.script(&script), "same") {
            assert_eq!(started.unwrap(), Started::New);
        }
    }
    let four = world.workers("four");
    let taken: Vec<u32> = four.iter().map(|worker| world.started(worker, "same")).collect();
    let spared = [
        world.started(&world.workers("one")[0], "same"),
        other.started(&other.workers("four")[0], "same"),
    ];
    let mut all = Vec::new();
    for pid in &taken {
        wait_until("both children exist", || {
            let table = procs::Table::read().unwrap();
            table.descendants(*pid).iter().filter(|p| p.name == "sleep").count() >= 2
        });
        let table = procs::Table::read().unwrap();
        all.extend(table.descendants(*pid).iter().map(|process| process.pid));
    }
    world.sim.pull(&Event::Preempt { target: "four".to_owned() });
    for pid in taken.into_iter().chain(all) {
        assert!(!is_running(pid), "process {pid} outlived its machine");
    }
    assert!(spared.into_iter().all(is_running), "others were killed");
    for (worker, (_, end)) in world.hear(&four, "same") {
        assert_eq!(end, End::Lost("the machine is gone".to_owned()), "worker {worker}");
    }
    assert_eq!(world.sim.word("four"), "PREEMPTED");
}

#[test]
fn a_machine_that_is_down_starts_nothing_and_a_new_one_starts_anew() {
    let world = World::new();
    let old = world.workers("one");
    let work = world.script("echo hello");
    assert_eq!(world.run("one", &work, "t1")[&0].1, End::Exit(0));
    world.sim.pull(&Event::Preempt { target: "one".to_owned() });
    let refused = world.start("one", &work, "t2").remove(0).unwrap_err();
    assert!(matches!(refused, RemoteError::NotReached { .. }), "{refused}");
    assert!(world.bench.remote.probe(&old)[0].1.is_err(), "unknown, not idle");
    assert!(world.bench.remote.stop(&old, &LaunchToken::from("t1"))[0].1.is_err());
    world.sim.cloud.delete(&at("one"), true).unwrap();
    world.sim.pass(1.0);
    assert_eq!(world.sim.word("one"), "-");
    assert!(!PathBuf::from(&old[0].address).exists(), "the disk is gone with the target");
    world.sim.create("one", "r1").unwrap();
    world.sim.pass(2.0);
    let new = world.workers("one");
    assert_ne!(new, old, "another machine");
    assert_eq!(world.run("one", &work, "t1")[&0], ("hello\n".to_owned(), End::Exit(0)));
}

#[test]
fn a_restart_ends_what_runs_and_keeps_the_disk() {
    let world = World::new();
    let workers = world.workers("one");
    world.start("one", &world.script(UNTIL_GO), "t1").remove(0).unwrap();
    let pid = world.started(&workers[0], "t1");
    world.sim.cloud.reboot(&at("one")).unwrap();
    assert!(!is_running(pid));
    world.sim.pass(1.0);
    assert_eq!(world.workers("one"), workers);
    let lost = "its processes are gone, and no exit code was recorded";
    assert_eq!(world.hear(&workers, "t1")[&0].1, End::Lost(lost.to_owned()));
    assert_eq!(
        world.start("one", &world.script("true"), "t1")[0].as_ref().unwrap(),
        &Started::Already
    );
    assert_eq!(world.run("one", &world.script("true"), "t2")[&0].1, End::Exit(0));
}

#[test]
fn one_worker_of_four_is_lost_and_the_others_go_on() {
    let world = World::new();
    let workers = world.workers("four");
    world.start("four", &world.script(UNTIL_GO), "t1");
    let pids: Vec<u32> = workers.iter().map(|worker| world.started(worker, "t1")).collect();
    world.sim.pull(&Event::LoseWorker { target: "four".to_owned(), worker: 2 });
    let alive: Vec<bool> = pids.iter().map(|pid| is_running(*pid)).collect();
    assert_eq!(alive, [true, true, false, true]);
    assert_eq!(world.sim.word("four"), "READY", "the control plane knows nothing of it");
    let probes = world.bench.remote.probe(&workers);
    let reached: Vec<bool> = probes.iter().map(|(_, probe)| probe.is_ok()).collect();
    assert_eq!(reached, [true, true, false, true]);
    crate::common::tmux::write_file(&world.go(), "");
    for (worker, (_, end)) in world.hear(&workers, "t1") {
        let gone = End::Lost("the machine is gone".to_owned());
        assert_eq!(end, if worker == 2 { gone } else { End::Exit(0) });
    }
    let ends = world.run("four", &world.script("true"), "t2");
    assert!(matches!(&ends[&2].1, End::Lost(why) if why.contains("cannot be reached")), "{ends:?}");
    assert_eq!(ends[&3].1, End::Exit(0));
    let wrong = Event::LoseWorker { target: "four".to_owned(), worker: 4 };
    assert!(world.sim.cloud.pull(&wrong).is_err());
}

#[test]
fn programs_can_be_broken_and_refused() {
    let world = World::new();
    let workers = world.workers("four");
    world.start("four", &world.script(UNTIL_GO), "t1");
    for worker in &workers {
        world.started(worker, "t1");
    }
    world.sim.pull(&Event::Grpc { target: "four".to_owned() });
    for (worker, (text, end)) in world.hear(&workers, "t1") {
        assert!(text.contains("UNAVAILABLE: failed to connect"), "worker {worker}: {text}");
        assert!(!text.contains("over"), "{text}");
        assert_eq!(end, End::Exit(134));
    }
    world.sim.pull(&Event::Lock { target: "four".to_owned() });
    for (text, end) in world.run("four", &world.script("echo ran"), "t2").into_values() {
        assert!(text.contains("already in use by process") && !text.contains("ran"), "{text}");
        assert_eq!(end, End::Exit(1));
    }
    world.sim.pull(&Event::Unlock { target: "four".to_owned() });
    for (text, end) in world.run("four", &world.script("echo ran"), "t3").into_values() {
        assert_eq!((text.as_str(), end), ("ran\n", End::Exit(0)));
    }
    // Nothing ran: nobody is left to say the words.
    world.sim.pull(&Event::Grpc { target: "four".to_owned() });
    for (text, end) in world.run("four", &world.script("echo ran"), "t4").into_values() {
        assert_eq!((text.as_str(), end), ("ran\n", End::Exit(0)));
    }
}

#[test]
fn what_runs_behind_a_broken_connection_is_unknown_and_found_again() {
    let world = World::new();
    let workers = world.workers("one");
    let token = LaunchToken::from("t1");
    world.start("one", &world.script(UNTIL_GO), "t1").remove(0).unwrap();
    let pid = world.started(&workers[0], "t1");
    world.sim.pull(&Event::Cut { target: "one".to_owned() });
    assert!(is_running(pid));
    assert_eq!(world.sim.word("one"), "READY");
    assert_eq!(world.hear(&workers, "t1")[&0].1, End::Lost("the connection is broken".to_owned()));
    for refused in [
        world.bench.remote.stop(&workers, &token).remove(0).1.map(drop),
        world.bench.remote.probe(&workers).remove(0).1.map(drop),
        world.start("one", &world.script("true"), "t2").remove(0).map(drop),
    ] {
        assert!(matches!(refused, Err(RemoteError::NotReached { .. })));
    }
    assert!(is_running(pid));
    world.sim.pull(&Event::Mend { target: "one".to_owned() });
    assert_eq!(
        world.start("one", &world.script(UNTIL_GO), "t1")[0].as_ref().unwrap(),
        &Started::Already
    );
    crate::common::tmux::write_file(&world.go(), "");
    let (text, end) = world.hear(&workers, "t1").remove(&0).unwrap();
    assert_eq!((text, end), (format!("started {pid}\nover\n"), End::Exit(0)));
}

#[test]
fn nothing_is_left_when_the_fleet_is_gone() {
    let world = World::new();
    let mut machines = Vec::new();
    for target in ["one", "four"] {
        world.start(target, &world.script(UNTIL_GO), "t1");
        machines.extend(world.workers(target).into_iter().map(|worker| worker.address));
        world.sim.cloud.delete(&at(target), true).unwrap();
    }
    world.sim.pass(1.0);
    assert_eq!(world.sim.word("four"), "-");
    assert_eq!(std::fs::read_dir(world.sim.machines()).unwrap().count(), 0);
    let table = procs::Table::read().unwrap();
    let uid = world.uid();
    for machine in machines {
        assert!(table.with_variable("TPU_MACHINE", &machine, uid).is_empty(), "{machine}");
    }
}
