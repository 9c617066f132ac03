//! Other programs that do the same: pueue, if `./x bench --with-pueue` has installed it or it is in PATH, and
//! the original, if `--original` says where its checkout is. Both run in directories of their own.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::env::Env;
use tpu_system::sys::proc::{self, Spawn};

use crate::Plan;
use crate::common::table::{Amount, Peer, Row, Table};
use crate::common::{Lab, data, finished, pairs, record, timed, tmux, words};

/// Where `./x bench --with-pueue` puts it.
const PEERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/peers/bin");

/// How long a daemon may take to listen, and its tasks to end.
const LIMIT: Duration = Duration::from_secs(60);

/// A daemon of pueue with tasks that have ended; it ends with this value.
pub(crate) struct Pueue {
    lab: Lab,
    daemon: Child,
    program: PathBuf,
    /// `pueue 4.0.4`.
    pub(crate) version: String,
}

impl Pueue {
    /// Starts one with so many tasks, or says why there is none.
    pub(crate) fn start(tasks: usize) -> Result<Self, String> {
        let program = installed("pueue").ok_or("pueue is not installed (`--with-pueue`)")?;
        let start = || -> io::Result<Self> {
            let lab = Lab::new()?;
            let daemon = serve(&lab, &program.with_file_name("pueued"))?;
            let mut pueue = Self { lab, daemon, program, version: String::new() };
            pueue.wait_until(|_| true)?;
            pueue.said("--version")?.1.trim().clone_into(&mut pueue.version);
            pueue.run("parallel 8")?;
            for _ in 0..tasks {
                pueue.run("add true")?;
            }
            // A group is "Running" too; only tasks have the word as a key.
            let is_over =
                |said: &str| ["\"Queued\":", "\"Running\":"].iter().all(|key| !said.contains(key));
            pueue.wait_until(is_over)?;
            Ok(pueue)
        };
        start().map_err(|error| format!("pueue cannot be run: {error}").replace(['\n', '|'], " "))
    }

    /// How long one of its commands takes, as a whole process.
    pub(crate) fn run(&self, line: &str) -> io::Result<Duration> {
        Ok(self.said(line)?.0)
    }

    /// The same with what it says. It has the environment that we were given, as it notes that of whoever
    /// adds a task with the task.
    fn said(&self, line: &str) -> io::Result<(Duration, String)> {
        let spawn = Spawn::new(&self.program).arg("-c").arg(config(&self.lab)).args(words(line));
        let spawn = spawn.cwd(self.lab.dir());
        let (output, took) = timed(|| proc::run(&spawn));
        let output = output.map_err(io::Error::other)?;
        if output.status.shell_code() != 0 {
            return Err(io::Error::other(output.complaint()));
        }
        Ok((took, output.text()))
    }

    /// Waits until it answers, and says what is wanted of its status.
    fn wait_until(&self, is_so: impl Fn(&str) -> bool) -> io::Result<()> {
        let clock = SystemClock::new();
        let end = clock.monotonic() + LIMIT;
        loop {
            match self.said("status --json") {
                Ok((_, said)) if is_so(&said) => return Ok(()),
                Err(error) if clock.monotonic() > end => return Err(error),
                _ if clock.monotonic() > end => {
                    return Err(io::Error::other("its tasks do not end"));
                }
                _ => clock.sleep(Duration::from_millis(20)),
            }
        }
    }
}

impl Drop for Pueue {
    fn drop(&mut self) {
        // Its tasks have ended, or never began.
        drop(self.daemon.kill());
        drop(self.daemon.wait());
    }
}

/// A program that was put beside this repository's builds, or is in PATH.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    let env = Env::read();
    let path = env.vars.get(OsStr::new("PATH")).cloned().unwrap_or_default();
    let places = std::iter::once(PathBuf::from(PEERS)).chain(std::env::split_paths(&path));
    places.map(|place| place.join(name)).find(|file| file.is_file())
}

fn config(lab: &Lab) -> PathBuf {
    lab.dir().join("pueue.yml")
}

/// Starts the daemon in the foreground, as our child: it is ended by its process id.
#[expect(clippy::disallowed_methods, reason = "the daemon is ended by its process id")]
fn serve(lab: &Lab, program: &Path) -> io::Result<Child> {
    let dir = lab.dir();
    let shared = json!({
        "pueue_directory": dir, "runtime_directory": dir,
        "use_unix_socket": true, "unix_socket_path": dir.join("pueue.socket"),
    });
    let config_text = json!({ "client": {}, "daemon": {}, "shared": shared }).to_string();
    // JSON is YAML too.
    File::create(config(lab))?.write_all(config_text.as_bytes())?;
    Command::new(program)
        .arg("-c")
        .arg(config(lab))
        .env("HOME", dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// The original beside us, where `--original` says that it is: any start, a list, a change, a look at a
/// hundred live windows.
pub(crate) fn original(table: &mut Table, plan: &Plan) -> io::Result<()> {
    let Some(checkout) = &plan.original else {
        return table.push(&Row::said(
            "the original",
            "not measured: `--original DIR` names its checkout; its figures of one run are in the specification",
        ));
    };
    let lab = Lab::new()?;
    let original = match Original::copied(checkout, &lab) {
        Ok(original) => original,
        Err(why) => return table.push(&Row::said("the original cannot be run", why)),
    };
    lab.write(&finished(&lab, 100))?;
    for line in ["tldr", "ls alice", "add-tag 1 first alice"] {
        beside(table, &lab, &original, (line, &format!("`{line}`, 100 jobs"), 20))?;
    }
    live_windows(&lab)?;
    beside(table, &lab, &original, ("check alice", "`check alice`, 100 live windows", 20))
}

/// A copy of a checkout: its state files lie next to its code, and those of a lab stay as they are.
struct Original {
    dir: PathBuf,
}

impl Original {
    /// Copies it; an error says what is missing.
    fn copied(checkout: &Path, lab: &Lab) -> Result<Self, String> {
        if !checkout.join("tpu.py").is_file() {
            return Err(format!("there is no tpu.py in {}", checkout.display()));
        }
        let dir = lab.dir().join("original");
        let copy = Spawn::new("cp").arg("-r").arg(checkout).arg(&dir);
        match proc::run(&copy) {
            Ok(output) if output.status.success() => Ok(Self { dir }),
            Ok(output) => Err(format!("it cannot be copied: {}", output.complaint())),
            Err(error) => Err(format!("it cannot be copied: {error}")),
        }
    }

    /// Gives it the lab's records, and all of its locks free.
    fn write(&self, lab: &Lab) -> io::Result<()> {
        std::fs::copy(lab.data_path(), self.dir.join("data.json"))?;
        let free = json!({ "status": false, "user": null });
        let locks: serde_json::Map<_, _> = ["code", "data", "queue", "legacy", "apply"]
            .map(|name| (name.to_owned(), free.clone()))
            .into_iter()
            .collect();
        let text = serde_json::Value::Object(locks).to_string();
        File::create(self.dir.join("lock.json"))?.write_all(text.as_bytes())
    }

    /// How long one of its commands takes, on our tmux server.
    fn run(&self, lab: &Lab, line: &str) -> io::Result<Duration> {
        let mut argv = vec![OsString::from("tpu.py")];
        argv.extend(words(line));
        let socket = lab.dir().join(format!("tmux-{}", rustix::process::getuid().as_raw()));
        let spawn = lab.spawn("python3", &argv).cwd(&self.dir);
        // It takes the server that it seems to run in.
        let spawn = spawn.env("TMUX", format!("{},0,0", socket.join("tpu-bench").display()));
        let (output, took) = timed(|| proc::run(&spawn));
        let output = output.map_err(io::Error::other)?;
        // It says `[FAIL]` and ends with 0.
        let said = output.text();
        if output.status.shell_code() != 0 || said.contains("[FAIL]") {
            let complaint = output.complaint();
            let last = said.lines().chain(complaint.lines()).rfind(|line| !line.is_empty());
            return Err(io::Error::other(last.unwrap_or("it failed without a word").to_owned()));
        }
        Ok(took)
    }
}

/// One command of ours and the same of the original, in pairs.
fn beside(
    table: &mut Table,
    lab: &Lab,
    original: &Original,
    (line, name, rounds): (&str, &str, usize),
) -> io::Result<()> {
    let figure = format!("beside the original: {name}");
    original.write(lab)?;
    if let Err(why) = original.run(lab, line) {
        let why = why.to_string().replace(['\n', '|'], " ");
        return table.push(&Row::said(figure, format!("the original cannot be run: {why}")));
    }
    let (ours, theirs) = pairs(rounds, || lab.tpu(line), || original.run(lab, line))?;
    let peer = Peer::Measured("original".to_owned(), Amount::Time(theirs.median()));
    let row = Row::time(figure, &ours).peer(peer);
    table.push(&if line.starts_with("check") {
        row.bound_by_peer(1.0 / 40.0, "P4: ≥ 40 × faster")
    } else {
        row
    })
}

/// A hundred windows that print, and their records.
fn live_windows(lab: &Lab) -> io::Result<()> {
    let records: Vec<_> =
        (1..=100).map(|n| record(lab.dir(), n, &format!("lab-{n}"), "running")).collect();
    lab.write(&data(lab.dir(), &records))?;
    let open = "-L tpu-bench -f /dev/null new-session -d -s alice -x 200 -y 50";
    lab.run("tmux", &words(open))?;
    let prints =
        "i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo \"step $i loss 0.5\"; done; sleep 9999";
    let script = (1..=100).fold(String::new(), |mut script, n| {
        script += &format!("new-window -d -t alice:{n} '{prints}'\n");
        script
    });
    tmux(lab, &script).map(|_| ())
}
