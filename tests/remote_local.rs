//! Workers of simulated targets: real processes that start once, are heard to the end, stop when told, and
//! die with their machine. All through the two doors, as everything else uses them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tpu::cloud::Cloud as _;
use tpu::cloud::sim::Event;
use tpu::model::ids::LaunchToken;
use tpu::model::time::Timestamp;
use tpu::remote::local::LocalRemote;
use tpu::remote::{End, Remote as _, RemoteError, Said, Started, Stopped, Work, Worker};
use tpu::sys::clock::{Clock, SystemClock};
use tpu::sys::procs;

use crate::common::sim::{Sim, at};
use crate::common::wait::{wait_for, wait_until};

/// A command that a test waits for, and that waits for the test: it goes on when the file `go` is there.
const UNTIL_GO: &str = "echo started $$; until [ -e \"$GO\" ]; do sleep 0.01; done; echo over";

/// A clock on which a second takes a hundredth of one: the patience of the door is its clock's.
struct Hasty(SystemClock);

impl Clock for Hasty {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic() * 100
    }

    fn sleep(&self, duration: Duration) {
        self.0.sleep(duration / 100);
    }
}

struct World {
    sim: Sim,
    remote: LocalRemote,
}

impl World {
    /// Targets with machines: `one` with 1 worker, `four` with 4.
    fn new() -> Self {
        let sim = Sim::with_machines(&[("one", "v2-8"), ("four", "v2-32")]);
        Self { sim, remote: LocalRemote::new(Arc::new(SystemClock::new())) }
    }

    fn workers(&self, target: &str) -> Vec<Worker> {
        Worker::all(&self.sim.fact(target).unwrap().endpoints)
    }

    fn uid(&self) -> u32 {
        use std::os::unix::fs::MetadataExt as _;
        std::fs::metadata(self.sim.file()).unwrap().uid()
    }

    fn go(&self) -> PathBuf {
        self.sim.file().with_file_name("go")
    }

    /// A shell script as the work, with `$GO` in its environment.
    fn script(&self, script: &str) -> Work {
        Work {
            argv: ["bash", "-c", script].map(OsString::from).to_vec(),
            env: vec![("GO".into(), self.go().into())],
            dir: None,
        }
    }

    fn start(&self, target: &str, work: &Work, token: &str) -> Vec<Result<Started, RemoteError>> {
        let answers = self.remote.start(&self.workers(target), work, &LaunchToken::from(token));
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    /// Everything that is said, by worker, and how each ends.
    fn run(&self, target: &str, work: &Work, token: &str) -> BTreeMap<u32, (String, End)> {
        let workers = self.workers(target);
        collect(self.remote.run(&workers, work, &LaunchToken::from(token)))
    }

    fn hear(&self, workers: &[Worker], token: &str) -> BTreeMap<u32, (String, End)> {
        collect(self.remote.follow(workers, &LaunchToken::from(token), &BTreeMap::new()))
    }

    /// Waits until a command on a worker has said `started`, and returns its process id.
    fn started(&self, worker: &Worker, token: &str) -> u32 {
        let mut stream = self.remote.follow(
            std::slice::from_ref(worker),
            &LaunchToken::from(token),
            &BTreeMap::new(),
        );
        let said = match stream.next() {
            Some((_, Said::Line { bytes, .. })) => String::from_utf8(bytes).unwrap(),
            other => panic!("it said nothing: {other:?}"),
        };
        said.trim().strip_prefix("started ").unwrap().parse().unwrap()
    }
}

fn collect(stream: tpu::remote::Stream) -> BTreeMap<u32, (String, End)> {
    let mut text: BTreeMap<u32, String> = BTreeMap::new();
    let mut ends = BTreeMap::new();
    for (worker, said) in stream {
        let text = text.entry(worker).or_default();
        match said {
            Said::Line { bytes, .. } => text.push_str(&String::from_utf8_lossy(&bytes)),
            Said::End(end) => {
                assert!(ends.insert(worker, (text.clone(), end)).is_none(), "two ends of {worker}");
            }
        }
    }
    ends
}

fn is_running(pid: u32) -> bool {
    procs::Process::read(pid).is_some_and(|process| !process.zombie)
}

#[test]
fn every_worker_is_heard_and_ends_with_its_own_code() {
    let world = World::new();
    let script = "echo out $TPU_WORKER; echo err >&2; printf last; exit $TPU_WORKER";
    let ends = world.run("four", &world.script(script), "t1");
    assert_eq!(ends.len(), 4);
    for (worker, (text, end)) in ends {
        assert_eq!(text, format!("out {worker}\nerr\nlast"));
        assert_eq!(end, End::Exit(i32::try_from(worker).unwrap()));
    }
}

#[test]
fn words_values_and_directory_arrive_byte_for_byte() {
    let world = World::new();
    let every = OsString::from_vec((1..=255).collect());
    let dir = world.sim.file().with_file_name("a 'dir'\n");
    std::fs::create_dir(&dir).unwrap();
    let script = r#"[ "$1" = "$VALUE" ] && printf %s "$1" | od -An -tx1 -v | tr -d ' \n'; pwd"#;
    let work = Work {
        argv: vec!["bash".into(), "-c".into(), script.into(), "x".into(), every.clone()],
        env: vec![("VALUE".into(), every), ("LC_ALL".into(), "C".into())],
        dir: Some(dir.clone()),
    };
    let (text, end) = world.run("one", &work, "t1").remove(&0).unwrap();
    let hex = (1..=255_u8).fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    assert_eq!(text, format!("{hex}{}\n", dir.display()));
    assert_eq!(end, End::Exit(0));
    let nul = Work { argv: vec![OsString::from_vec(vec![b'x', 0])], ..Work::default() };
    assert!(matches!(world.start("one", &nul, "t2")[0], Err(RemoteError::Request { .. })));
    assert!(matches!(
        world.start("one", &Work::default(), "t2")[0],
        Err(RemoteError::Request { .. })
    ));
    let outside = world.start("one", &world.script("true"), "../t2");
    assert!(matches!(outside[0], Err(RemoteError::Request { .. })));
    let nowhere = Work { dir: Some("/nonexistent/x".into()), ..world.script("echo no") };
    let (text, end) = world.run("one", &nowhere, "t3").remove(&0).unwrap();
    assert_eq!(end, End::Exit(126), "{text}");
    let missing = Work { argv: vec!["no-such-program".into()], ..Work::default() };
    assert_eq!(world.run("one", &missing, "t4")[&0].1, End::Exit(127));
}

#[test]
fn a_token_starts_once_whoever_comes_with_it() {
    let world = World::new();
    let work = world.script("echo x >>\"$GO.count\"");
    let started: Vec<Started> = std::thread::scope(|scope| {
        let begun: Vec<_> =
            (0..8).map(|_| scope.spawn(|| world.start("one", &work, "t1").remove(0))).collect();
        begun.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
    });
    assert_eq!(started.iter().filter(|started| **started == Started::New).count(), 1);
    let workers = world.workers("one");
    assert_eq!(world.hear(&workers, "t1")[&0].1, End::Exit(0));
    assert_eq!(world.start("one", &work, "t1")[0].as_ref().unwrap(), &Started::Already);
    assert_eq!(world.hear(&workers, "t1")[&0].1, End::Exit(0), "heard again from the beginning");
    let count = std::fs::read_to_string(world.go().with_extension("count")).unwrap();
    assert_eq!(count, "x\n");
    let runs = PathBuf::from(&workers[0].address).join("runs");
    assert_eq!(std::fs::read_dir(runs).unwrap().count(), 1, "nothing of the others is left");
}

#[test]
fn a_listener_that_comes_back_hears_the_rest() {
    let world = World::new();
    let workers = world.workers("one");
    let token = LaunchToken::from("t1");
    let script = format!("printf 'one\\rtwo\\r\\nthree\\n'; {UNTIL_GO}");
    world.start("one", &world.script(&script), "t1").remove(0).unwrap();
    let first = world.remote.follow(&workers, &token, &BTreeMap::new()).take(3).collect::<Vec<_>>();
    let line = |bytes: &str, end| (0, Said::Line { bytes: bytes.into(), end });
    assert_eq!(first, [line("one\r", 4), line("two\r\n", 9), line("three\n", 15)]);
    // The connection is gone; the command lives on, and another process takes over.
    crate::common::tmux::write_file(&world.go(), "");
    let rest = world.remote.follow(&workers, &token, &BTreeMap::from([(0, 15)]));
    let rest: Vec<_> = rest.collect();
    assert_eq!(rest.len(), 3, "{rest:?}");
    assert!(matches!(&rest[1].1, Said::Line { bytes, .. } if bytes == b"over\n"));
    assert_eq!(rest[2], (0, Said::End(End::Exit(0))));
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
    assert!(matches!(refused, RemoteError::Unreachable { .. }), "{refused}");
    assert!(refused.hint().is_some());
    assert!(world.remote.probe(&old)[0].1.is_err(), "unknown, not idle");
    assert!(world.remote.stop(&old, &LaunchToken::from("t1"))[0].1.is_err());
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
    let probes = world.remote.probe(&workers);
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
fn stopping_reaches_exactly_the_processes_of_the_token() {
    let world = World::new();
    let workers = world.workers("one");
    let polite = format!("trap 'echo bye; exit 7' INT; {UNTIL_GO}");
    world.start("one", &world.script(&polite), "t1").remove(0).unwrap();
    world.start("one", &world.script(UNTIL_GO), "t2").remove(0).unwrap();
    world.started(&workers[0], "t1");
    let other = world.started(&workers[0], "t2");
    let (_, stopped) = world.remote.stop(&workers, &LaunchToken::from("t1")).remove(0);
    assert!(matches!(stopped.unwrap(), Stopped::Ended(count) if count >= 1));
    let (text, end) = world.hear(&workers, "t1").remove(&0).unwrap();
    assert!(text.ends_with("bye\n"), "{text}");
    assert_eq!(end, End::Exit(7));
    assert!(is_running(other));
    let again = world.remote.stop(&workers, &LaunchToken::from("t1")).remove(0).1;
    assert_eq!(again.unwrap(), Stopped::NotRunning);
    let never = world.remote.stop(&workers, &LaunchToken::from("t9")).remove(0).1;
    assert_eq!(never.unwrap(), Stopped::NotRunning);
}

#[test]
fn what_does_not_listen_is_killed_and_its_code_recorded() {
    let world = World::new();
    let workers = world.workers("one");
    let deaf = format!("trap '' INT TERM HUP; setsid env -i sleep 1000 & {UNTIL_GO}");
    world.start("one", &world.script(&deaf), "t1").remove(0).unwrap();
    let pid = world.started(&workers[0], "t1");
    let sleeper = wait_for("its child", || {
        let table = procs::Table::read().unwrap();
        table
            .descendants(pid)
            .iter()
            .find(|process| process.name == "sleep" && process.session == process.pid)
            .map(|p| p.pid)
    });
    let hasty: Arc<dyn Clock> = Arc::new(Hasty(SystemClock::new()));
    // What a killed process leaves takes real time, so it may have to be asked for more than once.
    wait_until("it is stopped", || {
        let hasty = LocalRemote::new(Arc::clone(&hasty));
        hasty.stop(&workers, &LaunchToken::from("t1")).remove(0).1.is_ok()
    });
    assert!(!is_running(pid) && !is_running(sleeper));
    assert_eq!(world.hear(&workers, "t1")[&0].1, End::Exit(137));
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
        world.remote.stop(&workers, &token).remove(0).1.map(drop),
        world.remote.probe(&workers).remove(0).1.map(drop),
        world.start("one", &world.script("true"), "t2").remove(0).map(drop),
    ] {
        assert!(matches!(refused, Err(RemoteError::Unreachable { .. })));
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
fn a_look_at_a_worker_tells_what_runs_and_what_has_ended() {
    let world = World::new();
    let workers = world.workers("one");
    assert_eq!(world.remote.probe(&workers).remove(0).1.unwrap(), []);
    world.run("one", &world.script("exit 5"), "t1");
    world.start("one", &world.script(UNTIL_GO), "t2").remove(0).unwrap();
    let pid = world.started(&workers[0], "t2");
    let found = world.remote.probe(&workers).remove(0).1.unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].exit, found[0].processes.len()), (Some(5), 0));
    assert_eq!(found[1].exit, None);
    assert!(found[1].processes.contains(&pid), "{found:?}");
    let nowhere = world.hear(&workers, "t9").remove(&0).unwrap().1;
    assert_eq!(nowhere, End::Lost("it was never started there".to_owned()));
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
