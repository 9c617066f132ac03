//! What holds for workers of every kind: a command starts once for its token, is heard to the end, and is
//! stopped exactly. The same stories over the machines of a simulated target and over real hosts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tpu_core::model::ids::LaunchToken;
use tpu_core::model::time::Timestamp;
use tpu_core::model::variables::Secrets;
use tpu_system::remote::local::LocalRemote;
use tpu_system::remote::{
    Ask, End, Output, Remote, RemoteError, Started, Stopped, Upload, Work, Worker, ssh as over_ssh,
};
use tpu_system::sys::clock::{Clock, SystemClock};
use tpu_system::sys::procs;

use crate::common::remote::{Bench, UNTIL_GO, is_running, run};
use crate::common::sim::Sim;
use crate::common::sshd::{Hosts, is_installed};
use crate::common::wait::{wait_for, wait_until};

/// A clock on which a second takes a hundredth of one: the patience of a local door is its clock's.
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

/// Four workers of one kind.
struct World {
    bench: Bench,
    workers: Vec<Worker>,
    /// Where the first of them keeps its commands.
    runs: PathBuf,
    /// The same door with less patience, where it is our clock's.
    hasty: Option<Box<dyn Remote>>,
    /// What they live on.
    _ground: (Option<Sim>, Option<Hosts>),
}

impl World {
    fn local() -> Self {
        let sim = Sim::with_machines(&[("four", "v2-32")]);
        let workers = Worker::all(&sim.fact("four").unwrap().endpoints);
        let remote = Box::new(LocalRemote::new(Arc::new(SystemClock::new())));
        let bench = Bench { remote, dir: sim.file().parent().unwrap().to_owned() };
        let runs = PathBuf::from(&workers[0].address).join("runs");
        let hasty = LocalRemote::new(Arc::new(Hasty(SystemClock::new())));
        let hasty = Some(Box::new(hasty) as Box<dyn Remote>);
        Self { bench, workers, runs, hasty, _ground: (Some(sim), None) }
    }

    fn ssh() -> Option<Self> {
        if !is_installed() {
            return None;
        }
        let hosts = Hosts::new(4);
        let workers = hosts.workers();
        let bench = Bench { remote: over_ssh::open(hosts.config()), dir: hosts.path("") };
        let runs = hosts.home(0).join(".tpu/runs");
        Some(Self { bench, workers, runs, hasty: None, _ground: (None, Some(hosts)) })
    }

    fn one(&self) -> &[Worker] {
        &self.workers[..1]
    }
}

/// Each story over each kind of worker.
macro_rules! stories {
    ($($story:ident)+) => {
        mod local {
            $(#[test]
            fn $story() {
                super::$story(&super::World::local());
            })+
        }
        mod ssh {
            $(#[test]
            fn $story() {
                super::World::ssh().iter().for_each(super::$story);
            })+
        }
    };
}

stories! {
    every_worker_is_heard_and_ends_with_its_own_code
    words_values_and_directory_arrive_byte_for_byte
    a_token_starts_once_whoever_comes_with_it
    a_listener_that_comes_back_hears_the_rest
    stopping_reaches_exactly_the_processes_of_the_token
    what_was_told_to_stop_before_it_began_does_not_begin
    what_left_its_parent_and_its_variables_is_stopped_as_well
    what_does_not_listen_is_killed_and_its_code_recorded
    a_look_at_a_worker_tells_what_runs_and_what_has_ended
    a_command_is_not_over_before_its_end_is_written_down
    long_lines_and_all_bytes_are_heard_as_they_are
    nothing_can_be_read_from_the_manager
    a_shell_command_has_both_outputs_its_code_and_what_it_reads
    a_file_arrives_whole_with_its_rights
}

fn every_worker_is_heard_and_ends_with_its_own_code(world: &World) {
    let script = "echo out $TPU_WORKER; echo err >&2; printf last; exit $TPU_WORKER";
    let ends = world.bench.run(&world.workers, &world.bench.script(script), "t1");
    assert_eq!(ends.len(), 4);
    for (worker, (text, end)) in ends {
        assert_eq!(text, format!("out {worker}\nerr\nlast"));
        assert_eq!(end, End::Exit(i32::try_from(worker).unwrap()));
    }
}

fn words_values_and_directory_arrive_byte_for_byte(world: &World) {
    let every = OsString::from_vec((1..=255).collect());
    let dir = world.bench.dir.join("a 'dir'\n");
    std::fs::create_dir(&dir).unwrap();
    let script = r#"[ "$1" = "$VALUE" ] && [ "$1" = "$HIDDEN" ] && printf %s "$1" | od -An -tx1 -v | tr -d ' \n'; pwd"#;
    let work = Work {
        argv: vec!["bash".into(), "-c".into(), script.into(), "x".into(), every.clone()],
        env: vec![("VALUE".into(), every.clone()), ("LC_ALL".into(), "C".into())],
        secrets: Secrets(vec![("HIDDEN".into(), every)]),
        dir: Some(dir.clone()),
    };
    let (text, end) = world.bench.run(world.one(), &work, "t1").remove(&0).unwrap();
    let hex = (1..=255_u8).fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    assert_eq!(text, format!("{hex}{}\n", dir.display()));
    assert_eq!(end, End::Exit(0));
    let nul = Work { argv: vec![OsString::from_vec(vec![b'x', 0])], ..Work::default() };
    assert!(matches!(
        world.bench.start(world.one(), &nul, "t2")[0],
        Err(RemoteError::Request { .. })
    ));
    assert!(matches!(
        world.bench.start(world.one(), &Work::default(), "t2")[0],
        Err(RemoteError::Request { .. })
    ));
    let outside = world.bench.start(world.one(), &world.bench.script("true"), "../t2");
    assert!(matches!(outside[0], Err(RemoteError::Request { .. })));
    let nowhere = Work { dir: Some("/nonexistent/x".into()), ..world.bench.script("echo no") };
    let (text, end) = world.bench.run(world.one(), &nowhere, "t3").remove(&0).unwrap();
    assert_eq!(end, End::Exit(126), "{text}");
    let missing = Work { argv: vec!["no-such-program".into()], ..Work::default() };
    assert_eq!(world.bench.run(world.one(), &missing, "t4")[&0].1, End::Exit(127));
}

fn a_token_starts_once_whoever_comes_with_it(world: &World) {
    let work = world.bench.script("echo x >>\"$GO.count\"");
    let started: Vec<Started> = std::thread::scope(|scope| {
        let begun: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| world.bench.start(world.one(), &work, "t1").remove(0)))
            .collect();
        begun.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
    });
    assert_eq!(started.iter().filter(|started| **started == Started::New).count(), 1);
    assert_eq!(world.bench.hear(world.one(), "t1")[&0].1, End::Exit(0));
    assert_eq!(world.bench.start(world.one(), &work, "t1")[0].as_ref().unwrap(), &Started::Already);
    assert_eq!(
        world.bench.hear(world.one(), "t1")[&0].1,
        End::Exit(0),
        "heard again from the beginning"
    );
    let count = std::fs::read_to_string(world.bench.go().with_extension("count")).unwrap();
    assert_eq!(count, "x\n");
    let runs = std::fs::read_dir(&world.runs).unwrap();
    assert_eq!(runs.count(), 1, "nothing of the others is left");
}

fn a_listener_that_comes_back_hears_the_rest(world: &World) {
    let token = LaunchToken::from("t1");
    let script = format!("printf 'one\\rtwo\\r\\nthree\\n'; {UNTIL_GO}");
    world.bench.start(world.one(), &world.bench.script(&script), "t1").remove(0).unwrap();
    let first = world
        .bench
        .remote
        .follow(world.one(), &token, &BTreeMap::new())
        .take(3)
        .collect::<Vec<_>>();
    let line = |bytes: &str, end| (0, Output::Line { bytes: bytes.into(), end });
    assert_eq!(first, [line("one\r", 4), line("two\r\n", 9), line("three\n", 15)]);
    // The connection is gone; the command lives on, and another process takes over.
    crate::common::tmux::write_file(&world.bench.go(), "");
    let rest = world.bench.remote.follow(world.one(), &token, &BTreeMap::from([(0, 15)]));
    let rest: Vec<_> = rest.collect();
    assert_eq!(rest.len(), 3, "{rest:?}");
    assert!(matches!(&rest[1].1, Output::Line { bytes, .. } if bytes == b"over\n"));
    assert_eq!(rest[2], (0, Output::End(End::Exit(0))));
}

fn stopping_reaches_exactly_the_processes_of_the_token(world: &World) {
    let polite = format!("trap 'echo bye; exit 7' INT; {UNTIL_GO}");
    world.bench.start(world.one(), &world.bench.script(&polite), "t1").remove(0).unwrap();
    world.bench.start(world.one(), &world.bench.script(UNTIL_GO), "t2").remove(0).unwrap();
    world.bench.started(&world.one()[0], "t1");
    let other = world.bench.started(&world.one()[0], "t2");
    let (_, stopped) = world.bench.remote.stop(world.one(), &LaunchToken::from("t1")).remove(0);
    assert!(matches!(stopped.unwrap(), Stopped::Ended(count) if count >= 1));
    let (text, end) = world.bench.hear(world.one(), "t1").remove(&0).unwrap();
    assert!(text.ends_with("bye\n"), "{text}");
    assert_eq!(end, End::Exit(7));
    assert!(is_running(other));
    let again = world.bench.remote.stop(world.one(), &LaunchToken::from("t1")).remove(0).1;
    assert_eq!(again.unwrap(), Stopped::NotRunning);
    let never = world.bench.remote.stop(world.one(), &LaunchToken::from("t9")).remove(0).1;
    assert_eq!(never.unwrap(), Stopped::NotRunning);
}

fn what_was_told_to_stop_before_it_began_does_not_begin(world: &World) {
    let token = LaunchToken::from("late");
    let (_, stopped) = world.bench.remote.stop(world.one(), &token).remove(0);
    assert_eq!(stopped.unwrap(), Stopped::NotRunning);
    let late = world.bench.start(world.one(), &world.bench.script("echo no"), "late");
    assert_eq!(late[0].as_ref().unwrap(), &Started::Already);
    let end = world.bench.hear(world.one(), "late").remove(&0).unwrap();
    assert_eq!(end, (String::new(), End::Lost("it was never started there".to_owned())));
    let there = world.bench.remote.probe(world.one()).remove(0).1.unwrap();
    assert!(there.iter().all(|run| run.token != token), "{there:?}");
}

fn what_left_its_parent_and_its_variables_is_stopped_as_well(world: &World) {
    let script = format!("(env -i sleep 1000 & echo $! >\"$GO.child\"); {UNTIL_GO}");
    world.bench.start(world.one(), &world.bench.script(&script), "t1").remove(0).unwrap();
    world.bench.started(&world.one()[0], "t1");
    let child = std::fs::read_to_string(world.bench.go().with_extension("child")).unwrap();
    let child: u32 = child.trim().parse().unwrap();
    wait_until("it is a program of its own", || {
        procs::Process::read(child).is_some_and(|process| process.name == "sleep")
    });
    world.bench.remote.stop(world.one(), &LaunchToken::from("t1")).remove(0).1.unwrap();
    let lives = is_running(child);
    if lives {
        let pid = rustix::process::Pid::from_raw(child.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    assert!(!lives, "it belongs to the group of the command");
}

fn what_does_not_listen_is_killed_and_its_code_recorded(world: &World) {
    let deaf = format!("trap '' INT TERM HUP; setsid env -i sleep 1000 & {UNTIL_GO}");
    world.bench.start(world.one(), &world.bench.script(&deaf), "t1").remove(0).unwrap();
    let pid = world.bench.started(&world.one()[0], "t1");
    let sleeper = wait_for("its child", || {
        let table = procs::Table::read().unwrap();
        table
            .descendants(pid)
            .iter()
            .find(|process| process.name == "sleep" && process.session == process.pid)
            .map(|p| p.pid)
    });
    // What a killed process leaves takes real time, so it may have to be asked for more than once.
    wait_until("it is stopped", || {
        let remote = world.hasty.as_ref().unwrap_or(&world.bench.remote);
        remote.stop(world.one(), &LaunchToken::from("t1")).remove(0).1.is_ok()
    });
    assert!(!is_running(pid) && !is_running(sleeper));
    assert_eq!(world.bench.hear(world.one(), "t1")[&0].1, End::Exit(137));
}

fn a_look_at_a_worker_tells_what_runs_and_what_has_ended(world: &World) {
    assert_eq!(world.bench.remote.probe(world.one()).remove(0).1.unwrap(), []);
    world.bench.run(world.one(), &world.bench.script("exit 5"), "t1");
    world.bench.start(world.one(), &world.bench.script(UNTIL_GO), "t2").remove(0).unwrap();
    let pid = world.bench.started(&world.one()[0], "t2");
    let found = world.bench.remote.probe(world.one()).remove(0).1.unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].exit, found[0].processes.len()), (Some(5), 0));
    assert_eq!(found[1].exit, None);
    assert!(found[1].processes.contains(&pid), "{found:?}");
    let nowhere = world.bench.hear(world.one(), "t9").remove(&0).unwrap().1;
    assert_eq!(nowhere, End::Lost("it was never started there".to_owned()));
}

fn a_command_is_not_over_before_its_end_is_written_down(world: &World) {
    let name = if world.hasty.is_some() { "t1" } else { "t1.0" };
    world.bench.start(world.one(), &world.bench.script(UNTIL_GO), "t1").remove(0).unwrap();
    let pid = world.bench.started(&world.one()[0], "t1");
    let record = std::fs::read_to_string(world.runs.join(name).join("guard")).unwrap();
    let guard: i32 = record.split(' ').next().unwrap().parse().unwrap();
    let tell = |signal| {
        let pid = rustix::process::Pid::from_raw(guard).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    };
    // As on a disk that makes it wait.
    tell(rustix::process::Signal::STOP);
    crate::common::tmux::write_file(&world.bench.go(), "");
    wait_until("the command has ended", || !is_running(pid));
    let probe = || world.bench.remote.probe(world.one()).remove(0).1.unwrap().remove(0);
    let found = probe();
    tell(rustix::process::Signal::CONT);
    assert_eq!((found.exit, found.processes), (None, vec![guard.cast_unsigned()]));
    wait_until("it is written down", || probe().exit == Some(0));
    assert!(probe().processes.is_empty());
}

fn long_lines_and_all_bytes_are_heard_as_they_are(world: &World) {
    let script = r"head -c 1048576 /dev/zero | tr '\0' x; echo; printf 'a\000\377\033[31mb\n'";
    let stream = {
        let token = LaunchToken::from("t1");
        run(&*world.bench.remote, world.one(), &world.bench.script(script), &token)
    };
    let lines: Vec<Vec<u8>> = stream
        .filter_map(|(_, said)| match said {
            Output::Line { bytes, .. } => Some(bytes),
            Output::End(end) => {
                assert_eq!(end, End::Exit(0));
                None
            }
        })
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0].len(), 1_048_577);
    assert_eq!(lines[1], b"a\0\xff\x1b[31mb\n");
}

fn nothing_can_be_read_from_the_manager(world: &World) {
    let ends = world.bench.run(world.one(), &world.bench.script("cat; echo over"), "t1");
    assert_eq!(ends[&0], ("over\n".to_owned(), End::Exit(0)));
    let cat = Ask { command: "cat".to_owned(), ..Ask::default() };
    let asked = world.bench.ask(world.one(), &cat);
    assert_eq!(asked[&0], (String::new(), String::new(), End::Exit(0)));
}

fn a_shell_command_has_both_outputs_its_code_and_what_it_reads(world: &World) {
    let command =
        "cat; echo err-$TPU_WORKER >&2; printf \"%s\" 'it'\"'\"'s $HOME'; exit $((7 + TPU_WORKER))";
    for is_ours in [false, true] {
        let ask = Ask { command: command.to_owned(), input: Some(b"in\n".into()), is_ours };
        for (worker, (out, err, end)) in world.bench.ask(&world.workers, &ask) {
            assert_eq!(out, "in\nit's $HOME");
            assert_eq!(err, format!("err-{worker}\n"));
            assert_eq!(end, End::Exit(7 + i32::try_from(worker).unwrap()));
        }
        // The code of a broken connection may be a command's own.
        for (command, code) in [("exit 255", 255), ("true; false", 1)] {
            let ask = Ask { command: command.to_owned(), input: None, is_ours };
            let (out, err, end) = world.bench.ask(world.one(), &ask).remove(&0).unwrap();
            assert_eq!((out.as_str(), err.as_str(), end), ("", "", End::Exit(code)));
        }
    }
    let ask = Ask { command: "kill -9 $BASHPID".to_owned(), ..Ask::default() };
    assert_eq!(world.bench.ask(world.one(), &ask)[&0].2, End::Exit(137));
}

fn a_file_arrives_whole_with_its_rights(world: &World) {
    let bytes: Vec<u8> = (0..300_000_u32).map(|i| u8::try_from(i % 256).unwrap()).collect();
    let path = PathBuf::from("~/a dir/secret");
    let upload = Upload { path: path.into(), mode: 0o600, bytes };
    for (_, kept) in world.bench.remote.put(&world.workers, &upload) {
        kept.unwrap();
    }
    let look = "cd ~ && stat -c %a 'a dir/secret' && wc -c <'a dir/secret' && ls -A 'a dir'";
    let ask = Ask { command: look.to_owned(), ..Ask::default() };
    for (out, err, _) in world.bench.ask(&world.workers, &ask).into_values() {
        assert_eq!(out, "600\n300000\nsecret\n", "{err}");
    }
}
