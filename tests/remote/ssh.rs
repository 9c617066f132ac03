//! Real hosts over ssh: much output, hosts that fail and die, connections that break, strangers, secrets.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use tpu_core::model::ids::LaunchToken;
use tpu_system::remote::{Ask, End, Output, RemoteError, Started, Stopped, Work, Worker, ssh};
use tpu_system::sys::proc::{self, Spawn};

use crate::common::remote::{Bench, UNTIL_GO, collect, is_running, run};
use crate::common::sshd::{Hosts, is_installed};
use crate::common::tmux::write_file;
use crate::common::wait::{wait_for, wait_until};

struct World {
    bench: Bench,
    hosts: Hosts,
    workers: Vec<Worker>,
}

/// Some hosts; none where there is no server to test with.
fn world(count: usize) -> Option<World> {
    is_installed().then(|| {
        let hosts = Hosts::new(count);
        let bench = Bench { remote: ssh::open(hosts.config()), dir: hosts.path("") };
        World { bench, workers: hosts.workers(), hosts }
    })
}

/// A process of somebody else, ended with the test.
struct Stranger(Child);

impl Stranger {
    #[expect(clippy::disallowed_methods, reason = "the test is about this very process")]
    fn python(world: &World) -> Self {
        // What is called python, on a machine that may have none.
        let python = world.hosts.path("python3");
        std::fs::copy("/bin/sleep", &python).unwrap();
        let child = Command::new(&python).arg("1000").stdin(Stdio::null()).spawn().unwrap();
        Self(child)
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The most memory that this process has used, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn a_key_that_is_missing_or_not_let_in_says_what_to_do() {
    let Some(world) = world(1) else { return };
    let stranger = world.hosts.path("stranger");
    let made =
        Spawn::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&stranger);
    assert!(proc::run(&made).unwrap().status.success());
    for key in [stranger, world.hosts.path("nowhere")] {
        let key = key.to_str().map(str::to_owned);
        let sockets = world.hosts.path("other");
        let config = ssh::SshConfig { key, sockets, ..world.hosts.config() };
        let (_, probed) = ssh::open(config).probe(&world.workers).remove(0);
        let said = probed.unwrap_err().to_string();
        assert!(said.contains("Permission denied (") && said.contains("ssh-copy-id"), "{said}");
        assert!(said.contains("tpu set-settings ssh_key FILE"), "{said}");
    }
}

#[test]
fn much_output_of_all_is_heard_without_loss_and_without_much_memory() {
    let Some(world) = world(4) else { return };
    let count = 400_000;
    let script = format!("seq -f '%0.f of worker '$TPU_WORKER' {}' {count}", "x".repeat(40));
    let before = peak();
    let mut heard: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    let token = LaunchToken::from("t1");
    for (worker, said) in
        run(&*world.bench.remote, &world.workers, &world.bench.script(&script), &token)
    {
        let (lines, total) = heard.entry(worker).or_default();
        match said {
            Output::Line { bytes, end } => {
                *lines += 1;
                *total += bytes.len() as u64;
                assert_eq!(end, *total);
                let expected = format!("{lines} of worker {worker} ");
                assert!(bytes.starts_with(expected.as_bytes()), "{expected}");
            }
            Output::End(end) => assert_eq!(end, End::Exit(0)),
        }
    }
    assert!(heard.values().all(|(lines, _)| *lines == count), "{heard:?}");
    let (grown, total) = (peak() - before, heard.values().map(|(_, total)| total).sum::<u64>());
    assert!(grown < total / 2, "{grown} bytes of memory for {total} bytes of output");
}

#[test]
fn one_fails_one_cannot_be_reached_one_dies_and_the_fourth_goes_on() {
    let Some(mut world) = world(4) else { return };
    world.hosts.shut(1);
    let script = format!("[ $TPU_WORKER != 0 ] || exit 3; {UNTIL_GO}");
    let started = world.bench.start(&world.workers, &world.bench.script(&script), "t1");
    let unreachable = started[1].as_ref().unwrap_err();
    assert!(matches!(unreachable, RemoteError::NotReached { worker: 1, .. }), "{unreachable}");
    assert!(unreachable.to_string().contains("Connection refused"), "{unreachable}");
    let pids = [2, 3].map(|index: usize| world.bench.started(&world.workers[index], "t1"));
    let token = LaunchToken::from("t1");
    let stream = world.bench.remote.follow(&world.workers, &token, &BTreeMap::new());
    world.hosts.kill(2);
    wait_until("its command is dead", || !is_running(pids[0]));
    write_file(&world.bench.go(), "");
    let ends = collect(stream);
    assert_eq!(ends[&0].1, End::Exit(3));
    assert!(matches!(&ends[&1].1, End::Lost(why) if why.contains("refused")), "{ends:?}");
    assert!(matches!(&ends[&2].1, End::Lost(_)), "{ends:?}");
    assert_eq!(ends[&3], (format!("started {}\nover\n", pids[1]), End::Exit(0)));
    let probes = world.bench.remote.probe(&world.workers);
    let reached: Vec<bool> = probes.iter().map(|(_, probe)| probe.is_ok()).collect();
    assert_eq!(reached, [true, false, false, true], "unknown, not idle");
    // It comes back, and has lost what ran there.
    world.hosts.begin(2);
    let lost = End::Lost("its processes are gone, and no exit code was recorded".to_owned());
    assert_eq!(world.bench.hear(&world.workers[2..3], "t1")[&2].1, lost);
}

#[test]
fn a_broken_connection_is_no_end_and_nothing_of_the_output_is_lost() {
    let Some(world) = world(1) else { return };
    let token = LaunchToken::from("t1");
    let script = format!(
        "echo x >>\"$GO.count\"; for i in {{1..300}}; do echo \"line $i\"; sleep 0.01; done; {UNTIL_GO}"
    );
    let work = world.bench.script(&script);
    world.bench.start(&world.workers, &work, "t1").remove(0).unwrap();
    let (mut from, mut text, mut cuts) = (BTreeMap::new(), String::new(), 0);
    let end = loop {
        let mut last = None;
        let mut lines = 0;
        for (worker, said) in world.bench.remote.follow(&world.workers, &token, &from.clone()) {
            match said {
                Output::Line { bytes, end } => {
                    text += &String::from_utf8(bytes).unwrap();
                    from.insert(worker, end);
                    lines += 1;
                    if lines == 40 && cuts < 3 {
                        cuts += 1;
                        world.hosts.cut(0);
                    }
                }
                Output::End(end) => last = Some(end),
            }
            if text.contains("started") {
                write_file(&world.bench.go(), "");
            }
        }
        match last.unwrap() {
            End::Exit(code) => break code,
            // The job's own launcher does so as well: it may be told to start what has been started.
            End::Lost(_) => {
                let again = world.bench.start(&world.workers, &work, "t1").remove(0);
                assert!(matches!(again, Ok(Started::Already) | Err(_)), "{again:?}");
            }
        }
    };
    assert_eq!((end, cuts), (0, 3));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 302, "{text}");
    for (i, line) in lines[..300].iter().enumerate() {
        assert_eq!(*line, format!("line {}", i + 1));
    }
    let count = std::fs::read_to_string(world.bench.go().with_extension("count")).unwrap();
    assert_eq!(count, "x\n", "started once");
}

#[test]
fn a_stop_spares_strangers_other_launches_other_workers_and_a_reused_process_id() {
    let Some(world) = world(2) else { return };
    let script = format!("sleep 1000 & {UNTIL_GO}");
    for token in ["mine", "other"] {
        for started in world.bench.start(&world.workers, &world.bench.script(&script), token) {
            assert_eq!(started.unwrap(), Started::New);
        }
    }
    let pid = |worker: usize, token| world.bench.started(&world.workers[worker], token);
    let (mine, neighbour, other) = (pid(0, "mine"), pid(1, "mine"), pid(0, "other"));
    let stranger = Stranger::python(&world);
    // As if the group's number had been given to somebody else since.
    let record = world.hosts.home(0).join(".tpu/runs/mine.0/pid");
    write_file(&record, &format!("{} 7\n", stranger.0.id()));
    let one = &world.workers[..1];
    let (_, stopped) = world.bench.remote.stop(one, &LaunchToken::from("mine")).remove(0);
    assert!(matches!(stopped.unwrap(), Stopped::Ended(count) if count >= 2));
    assert!(!is_running(mine));
    assert!([neighbour, other, stranger.0.id()].into_iter().all(is_running));
    let probe = world.bench.remote.probe(one).remove(0).1.unwrap();
    let left: Vec<(&str, usize)> =
        probe.iter().map(|run| (run.token.as_str(), run.processes.len().min(1))).collect();
    assert_eq!(left, [("mine", 0), ("other", 1)]);
}

#[test]
fn strangers_are_listed_and_end_only_when_they_are_named() {
    let Some(world) = world(1) else { return };
    world.bench.start(&world.workers, &world.bench.script(UNTIL_GO), "mine").remove(0).unwrap();
    let mine = world.bench.started(&world.workers[0], "mine");
    let stranger = Stranger::python(&world);
    let find = || {
        let (_, others) = world.bench.remote.others(&world.workers, &[]).remove(0);
        let others = others.unwrap();
        assert!(others.iter().all(|other| other.pid != mine));
        others.into_iter().find(|other| other.pid == stranger.0.id())
    };
    let found = wait_for("the stranger is seen", find);
    assert!(found.command.contains("python3 1000"), "{found:?}");
    assert!(!found.user.is_empty());
    let later = tpu_system::remote::Other { start: found.start + 1, ..found.clone() };
    assert_eq!(world.bench.remote.end(&world.workers[0], &[later]).unwrap(), 1);
    assert!(is_running(found.pid), "another one of that number");
    world.bench.remote.end(&world.workers[0], std::slice::from_ref(&found)).unwrap();
    wait_until("it has ended", || !is_running(found.pid));
    assert!(is_running(mine));
}

#[test]
fn a_secret_is_on_nobodys_command_line() {
    const SECRET: &str = "s3cr3t-of-the-lab";
    let Some(world) = world(2) else { return };
    let mut work = world.bench.script(UNTIL_GO);
    work.env.push(("LAB_KEY".into(), SECRET.into()));
    let ask = Ask {
        command: "read key; echo \"$key\" | wc -c; sleep 0.2".to_owned(),
        input: Some(format!("{SECRET}\n").into()),
        ..Ask::default()
    };
    let over = AtomicBool::new(false);
    let looks = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut looks = 0;
            while !over.load(Ordering::Relaxed) {
                for entry in std::fs::read_dir("/proc").unwrap().flatten() {
                    let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                    let line = String::from_utf8_lossy(&line).into_owned();
                    assert!(!line.contains(SECRET), "{line}");
                }
                looks += 1;
            }
            looks
        });
        world.bench.start(&world.workers, &work, "t1");
        for (out, err, end) in world.bench.ask(&world.workers, &ask).into_values() {
            assert_eq!((out.as_str(), end), ("18\n", End::Exit(0)), "{err}");
        }
        over.store(true, Ordering::Relaxed);
        watch.join().unwrap()
    });
    assert!(looks > 3, "{looks}");
    assert!(!format!("{ask:?}").contains(SECRET));
    let runs = world.hosts.home(0).join(".tpu/runs/t1.0/env");
    assert_eq!(std::fs::metadata(runs).unwrap().permissions().mode() & 0o777, 0o600);
    write_file(&world.bench.go(), "");
}

#[test]
fn a_second_connection_is_not_opened() {
    let Some(world) = world(1) else { return };
    let ask = Ask { command: "echo $PPID $SSH_CONNECTION".to_owned(), ..Ask::default() };
    let ports: Vec<String> = (0..3)
        .map(|_| {
            let (out, _, _) = world.bench.ask(&world.workers, &ask).remove(&0).unwrap();
            out.split(' ').nth(2).unwrap().to_owned()
        })
        .collect();
    assert!(ports.iter().all(|port| *port == ports[0]), "{ports:?}");
}

#[test]
fn a_script_of_ours_has_the_files_of_the_account_read_once() {
    let Some(world) = world(1) else { return };
    let ask = Ask { command: "true".to_owned(), is_ours: true, ..Ask::default() };
    // The connection stands: opening it asks for nothing but whether it does.
    drop(world.bench.ask(&world.workers, &ask));
    let read = world.hosts.home(0).join("read");
    write_file(&world.hosts.home(0).join(".bashrc"), "echo read >>\"$HOME/read\"\n");
    drop(world.bench.ask(&world.workers, &ask));
    // Not at all where the login shell is another one, or bash was built to leave them alone.
    let times = std::fs::read_to_string(read).unwrap_or_default().lines().count();
    assert!(times <= 1, "{times}");
}

#[test]
fn an_address_is_never_taken_for_an_option_and_a_command_never_for_two() {
    let Some(world) = world(1) else { return };
    let bad = Worker { index: 0, address: "-oProxyCommand=touch x".to_owned() };
    let refused = world.bench.start(&[bad], &world.bench.script("true"), "t1").remove(0);
    assert!(matches!(refused, Err(RemoteError::Request { .. })));
    let odd = "a b'\"$(id)`id`;#{pane_id}\\ \t*";
    let work = Work { argv: ["printf", "%s", odd].map(OsString::from).to_vec(), ..Work::default() };
    let ends = world.bench.run(&world.workers, &work, "t2");
    assert_eq!(ends[&0], (odd.to_owned(), End::Exit(0)));
}
