//! P19: how long a look at 100 machines takes over connections that are kept, beside the same by hand.
//!
//! All of them are this machine, so what each does to answer is in the figure a hundred times.

use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use tpu_core::model::settings::{Layer, SettingOrigin};
use tpu_ops::Ctx;
use tpu_ops::act::hosts::figures::{self, Whom};
use tpu_ops::front::open::{Opening, open};
use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::env::Env;
use tpu_system::sys::proc::{self, Spawn};

use crate::Plan;
use crate::common::TPU;
use crate::common::sshd::{PER_SERVER, SSHD, Server, ip, make_keys, serve};
use crate::common::table::{Amount, Row, Sample, Table};

const HOSTS: u8 = 100;
const ROUNDS: usize = 7;
const PATIENCE: Duration = Duration::from_secs(300);

/// What a command says, which must succeed.
fn run(spawn: &Spawn, what: &str) -> io::Result<Vec<u8>> {
    let output = proc::run(spawn).map_err(io::Error::other)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(io::Error::other(format!("{what}: {}", output.complaint())))
}

/// What looks at machines, in this process, with the settings of the commands.
fn looking(root: &Path, settings: &str) -> io::Result<Ctx> {
    let origin = SettingOrigin::Environment("TPU_SETTINGS".to_owned());
    let layer = Layer::parse(settings, &origin).map_err(io::Error::other)?;
    let mut env = Env::read();
    for name in ["XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"] {
        env.vars.insert(name.into(), root.as_os_str().to_owned());
    }
    Ok(open(Opening {
        data: root.join("data.json"),
        tmux_socket: Some("tpu-bench".to_owned()),
        env,
        actor: "bench".to_owned(),
        tpu: TPU.into(),
        layers: vec![(origin, layer)],
        patterns: None,
        secrets: None,
        kinds: tpu::built_in::kinds(),
    }))
}

/// One round of questions to all machines, as an open screen has it once a minute.
fn look(ctx: &Ctx, root: &Path, clock: &SystemClock) -> io::Result<Duration> {
    // Nobody is asked twice in a minute while this is there.
    drop(std::fs::remove_file(root.join("tpu-state/figures.json")));
    let begun = clock.monotonic();
    figures::round(ctx, Whom::Everyone).map_err(io::Error::other)?;
    let lasted = clock.monotonic().saturating_sub(begun);
    let data = ctx.data().map_err(io::Error::other)?;
    let mut seen = figures::last(ctx, &data);
    let count = seen.len();
    seen.retain(|_, host| host.silent.is_some());
    let silent: Vec<_> = seen.into_iter().map(|(name, host)| (name, host.silent)).collect();
    assert!(silent.is_empty(), "silent: {silent:?}");
    assert_eq!(count, usize::from(HOSTS) + 1, "each machine, and this one");
    Ok(lasted)
}

/// Machines made known, measured, and looked at again and again.
pub(crate) fn hosts(table: &mut Table, _: &Plan) -> io::Result<()> {
    if !Path::new(SSHD).is_file() {
        return table.push(&Row::said("P19 100 hosts", format!("there is no {SSHD}")));
    }
    let clock = SystemClock::new();
    let dir = tempfile::Builder::new().prefix("h-").tempdir()?;
    let root = dir.path();
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    make_keys(root)?;
    let firsts = (1..=HOSTS).step_by(usize::from(PER_SERVER));
    let servers: Vec<Server> =
        firsts.map(|first| serve(root, port, first)).collect::<io::Result<_>>()?;
    for host in 1..=HOSTS {
        while TcpStream::connect((ip(host), port)).is_err() {
            clock.sleep(Duration::from_millis(10));
        }
    }
    let options = ["-F", "none", "-o"].map(str::to_owned).to_vec();
    let known = format!("UserKnownHostsFile={}", root.join("known").display());
    let options = [options, vec![known.clone()]].concat();
    let key = root.join("client").display().to_string();
    std::fs::create_dir(root.join("tpu"))?;
    let settings = serde_json::json!({ "ssh_options": options, "ssh_key": key }).to_string();
    std::fs::File::create(root.join("tpu/settings.json"))?.write_all(settings.as_bytes())?;
    let tpu = |words: &[&str]| {
        Spawn::new(env!("CARGO_BIN_EXE_tpu"))
            .args(words.iter().copied())
            .env("TPU_DATA", root.join("data.json"))
            .env("TPU_CLOUD", "none")
            .env("XDG_CONFIG_HOME", root)
            .env("XDG_RUNTIME_DIR", root)
            .timeout(PATIENCE)
    };
    run(&tpu(&["add-user", "bench"]), "add-user")?;
    let names = format!("n[1-{HOSTS}]");
    let addresses = format!("127.0.1.[1-{HOSTS}]:{port}");
    let time = |spawn: &Spawn, what: &str| -> io::Result<Duration> {
        let begun = clock.monotonic();
        let said = run(spawn, what)?;
        assert!(!String::from_utf8_lossy(&said).contains("does not answer"), "{what}");
        Ok(clock.monotonic().saturating_sub(begun))
    };
    let add = tpu(&["hosts", "add", &names, "--address", &addresses, "--any-identity"]);
    table
        .push(&Row::of("P19 `tpu hosts add`, 100 hosts, cold", Amount::Time(time(&add, "add")?)))?;
    let detect = time(&tpu(&["hosts", "detect", &names]), "detect")?;
    let row = Row::of("P19 `tpu hosts detect`, 100 hosts", Amount::Time(detect));
    table.push(&row.bound(Amount::Time(Duration::from_secs(10)), "≤ 10 s"))?;

    let sockets = root.join("by-hand");
    std::fs::create_dir(&sockets)?;
    let script = format!(
        "exec ssh -T -n -F none -i {key} -p {port} -o StrictHostKeyChecking=no -o {known} \
         -o ControlMaster=auto -o ControlPersist=600 -o ControlPath={}/$1 -o LogLevel=ERROR \
         127.0.1.$1 true",
        sockets.display()
    );
    let by_hand = Spawn::new("xargs")
        .args(["-P32", "-I{}", "sh", "-c", &script, "sh", "{}"])
        .stdin((1..=HOSTS).map(|host| host.to_string()).collect::<Vec<_>>().join("\n"))
        .timeout(PATIENCE);
    run(&by_hand, "opening them by hand")?;
    let ctx = looking(root, &settings)?;
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        here.push(look(&ctx, root, &clock)?);
        there.push(time(&by_hand, "by hand")?);
    }
    let (here, there) = (Sample::from(here), Sample::from(there).median());
    let row = Row::time("P19 a look at 100 hosts, warm", &here).floor(Amount::Time(there));
    let said = "≤ 1.3 × `xargs -P32 ssh true` over connections like these";
    table.push(&row.bound(Amount::Time(there * 13 / 10), said))?;
    // Kept connections end with the servers; their files go with the directory.
    drop(servers);
    let end = clock.monotonic() + Duration::from_secs(20);
    while clock.monotonic() < end
        && [root.join("tpu-ssh"), sockets.clone()]
            .iter()
            .any(|dir| std::fs::read_dir(dir).is_ok_and(|entries| entries.count() > 0))
    {
        clock.sleep(Duration::from_millis(20));
    }
    Ok(())
}
