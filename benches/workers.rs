//! P15: how long a command on 256 workers takes over connections that are there, beside the same by hand.
//!
//! Where there is no sshd, a line says so. Sixteen sshd serve sixteen loopback addresses each (one listens on
//! no more), with keys and a directory of their own.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tpu_system::remote::Worker;
use tpu_system::remote::ssh::SshConfig;
use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::proc::{self, Spawn};
use tpu_system::sys::procs::Process;

use crate::Plan;
use crate::common::sshd::{PER_SERVER, SSHD, Server, ip, make_keys, serve};
use crate::common::table::{Amount, Row, Sample, Table};

const WORKERS: u8 = 255;
const ROUNDS: usize = 7;

/// Programs that are opening a connection: ours open one with `true`. Once it is open, what keeps it is a
/// child of that program.
fn opening() -> usize {
    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    let is_opening = |entry: &std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let parent = || Process::read(Process::read(pid?)?.ppid);
        line.starts_with(b"ssh\0")
            && line.ends_with(b"\0true\0")
            && parent().is_some_and(|parent| parent.name == "tpu")
    };
    entries.flatten().filter(is_opening).count()
}

/// A command everywhere, first while connections are opened, then while they are kept.
pub(crate) fn workers(table: &mut Table, _: &Plan) -> io::Result<()> {
    if !Path::new(SSHD).is_file() {
        return table.push(&Row::said("P15 256 workers", format!("there is no {SSHD}")));
    }
    let clock = SystemClock::new();
    let dir = tempfile::Builder::new().prefix("b-").tempdir()?;
    let root = dir.path();
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    make_keys(root)?;
    let firsts = (0..=WORKERS).step_by(usize::from(PER_SERVER));
    let servers: Vec<Server> =
        firsts.map(|first| serve(root, port, first)).collect::<io::Result<_>>()?;
    for worker in 0..=WORKERS {
        while TcpStream::connect((ip(worker), port)).is_err() {
            clock.sleep(Duration::from_millis(10));
        }
    }
    let hosts: Vec<String> = (0..=WORKERS).map(|n| format!("{}:{port}", ip(n))).collect();
    let known = format!("UserKnownHostsFile={}", root.join("known").display());
    let config = SshConfig {
        key: Some(root.join("client").display().to_string()),
        options: ["-F", "none", "-o", &known].map(str::to_owned).to_vec(),
        sockets: root.join("tpu-ssh"),
        ..SshConfig::default()
    };
    std::fs::create_dir(root.join("tpu"))?;
    let settings = serde_json::json!({ "ssh_options": config.options, "ssh_key": config.key });
    std::fs::File::create(root.join("tpu/settings.json"))?
        .write_all(settings.to_string().as_bytes())?;
    let tpu = |words: &[&str]| {
        let spawn = Spawn::new(env!("CARGO_BIN_EXE_tpu")).args(words.iter().copied());
        spawn
            .env("TPU_DATA", root.join("data.json"))
            .env("TPU_CLOUD", "none")
            .env("XDG_CONFIG_HOME", root)
            .env("XDG_RUNTIME_DIR", root)
            .timeout(Duration::from_secs(300))
    };
    let run = |spawn: &Spawn, what: &str| -> io::Result<Vec<u8>> {
        let output = proc::run(spawn).map_err(io::Error::other)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(io::Error::other(format!("{what}: {}", output.complaint())))
    };
    run(&tpu(&["add-user", "bench"]), "add-user")?;
    run(&tpu(&["register", "hosts", "--address", &hosts.join(",")]), "register")?;

    let ours = tpu(&["ssh", "hosts", "all", "--command", "hostname"]);
    let (over, most) = (AtomicBool::new(false), AtomicUsize::new(0));
    let cold = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                most.fetch_max(opening(), Ordering::Relaxed);
            }
        });
        let begun = clock.monotonic();
        let answered = run(&ours, "cold");
        over.store(true, Ordering::Relaxed);
        answered.map(|_| clock.monotonic().saturating_sub(begun))
    })?;
    let figure = format!(
        "P15 `tpu ssh all`, {} workers, cold; at most {} connections being opened",
        hosts.len(),
        most.load(Ordering::Relaxed)
    );
    table.push(&Row::of(figure, Amount::Time(cold)))?;

    let places: Vec<String> = Worker::all(&hosts)
        .iter()
        .map(|worker| {
            let host = worker.address.split(':').next().unwrap_or_default();
            format!("{} {host}", config.socket(worker).display())
        })
        .collect();
    let script = "set -- $1; exec ssh -T -n -F none -o ControlPath=\"$1\" \"$2\" hostname";
    let by_hand = Spawn::new("xargs")
        .args(["-P32", "-I{}", "sh", "-c", script, "sh", "{}"])
        .stdin(places.join("\n"))
        .timeout(Duration::from_secs(300));
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (spawn, times) in [(&ours, &mut here), (&by_hand, &mut there)] {
            let begun = clock.monotonic();
            let said = run(spawn, "warm")?;
            times.push(clock.monotonic().saturating_sub(begun));
            let lines = said.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            assert_eq!(lines.count(), hosts.len(), "every worker has answered");
        }
    }
    let (here, there) = (Sample::from(here), Sample::from(there).median());
    let row = Row::time("P15 the same, warm", &here).floor(Amount::Time(there));
    let said = "≤ 1.2 × `xargs -P32 ssh` over the same connections";
    table.push(&row.bound(Amount::Time(there * 12 / 10), said))?;
    // Kept connections end with the servers; their files go with the directory.
    drop(servers);
    let end = clock.monotonic() + Duration::from_secs(20);
    while clock.monotonic() < end
        && std::fs::read_dir(root.join("tpu-ssh")).is_ok_and(|entries| {
            let left: BTreeSet<_> = entries.flatten().map(|entry| entry.file_name()).collect();
            !left.is_empty()
        })
    {
        clock.sleep(Duration::from_millis(20));
    }
    Ok(())
}
