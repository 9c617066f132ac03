//! Everything that one run of the built program sees, and nothing of the machine it runs on: its own
//! home, data file, tmux server and search path. Gone at the end, with every process it has started.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use tpu_core::model::ids::{JobId, JobNumber, UserName};
use tpu_core::model::time::Timestamp;
use tpu_ops::Ctx;
use tpu_ops::front::open::{Opening, open};
use tpu_system::store::{OsDisk, Paths, Store, StoreError, Who};
use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::env::Env;
use tpu_system::sys::proc::{self, Spawn};
use tpu_system::sys::procs::{self, Process, Signal};

use super::output::CommandOutput;
use super::tmux::{PrivateTmux, write_file};
use super::wait::{wait_for, wait_until};

/// The program under test.
pub(crate) const TPU: &str = env!("CARGO_BIN_EXE_tpu");

/// A job that says which process it is, prints a step each tenth of a second, writes checkpoints, and fails when
/// a file says so.
pub(crate) const STEPS: &str = "echo $$ >\"$TPU_DATA.pid\"; n=0; until [ -e \"$TPU_DATA.stop\" ]; do n=$((n+1)); \
     echo \"step $n/1000 loss 0.5\"; mkdir -p \"$TPU_LOG_DIR/checkpoints\"; \
     echo $n >\"$TPU_LOG_DIR/checkpoints/step_$n\"; read -r -t 0.1 <> <(:); done; exit 3";

/// A home of one test's own.
pub(crate) struct TestEnv {
    tmux: PrivateTmux,
    vars: BTreeMap<OsString, OsString>,
    /// Words before each command.
    through: Vec<String>,
}

impl TestEnv {
    /// Users `alice` and `bob` without jobs, each with an empty directory as slot 1; no tmux server.
    pub(crate) fn new() -> Self {
        Self::with_tmux_conf("")
    }

    /// The same; a tmux server that is started there reads `conf`.
    pub(crate) fn with_tmux_conf(conf: &str) -> Self {
        let tmux = PrivateTmux::new(conf);
        let mut env = Self { vars: tmux.env().vars.clone(), tmux, through: Vec::new() };
        for (name, place) in [
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "share"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_RUNTIME_DIR", "runtime"),
            ("TPU_DATA", "data.json"),
            ("TPU_SSH_DIR", "ssh"),
        ] {
            let path = env.path(place);
            env.set(name, path.as_os_str());
        }
        env.set("TPU_TMUX_SOCKET", env.tmux.socket().to_owned());
        env.set("COLUMNS", "100");
        env.set("TZ", "UTC");
        env.set("SHELL", "/bin/bash");
        // Whoever runs the original on this machine does not see to the jobs of a test.
        env.set("TPU_BESIDE_ORIGINAL", "1");
        // A daemon acts in the tests that start one.
        env.set("TPU_DAEMON_AUTOSTART", "false");
        for user in ["alice", "bob"] {
            std::fs::create_dir(env.path(&format!("code-{user}"))).unwrap();
        }
        let data = env.two_users();
        env.write_data(&data);
        env
    }

    /// Sets a variable of all later commands.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.vars.insert(name.into(), value.into());
    }

    /// The opposite.
    pub(crate) fn unset(&mut self, name: &str) {
        self.vars.remove(OsStr::new(name));
    }

    /// Runs all later commands through a program that these words name.
    pub(crate) fn run_through(&mut self, words: Vec<String>) {
        self.through = words;
    }

    /// A program and its words, with those that come before. Job files lie above the code.
    fn command_words<W: AsRef<OsStr>>(&self, program: &str, words: &[W]) -> Vec<OsString> {
        let before = self.through.iter().map(OsString::from).chain([program.into()]);
        let all: Vec<&OsStr> = words.iter().map(AsRef::as_ref).collect();
        let takes_jobs = takes_jobs(&all);
        let word = |word: &W| match word.as_ref().to_str().and_then(job_file) {
            Some((option, file))
                if takes_jobs && self.path(file).is_file() && !file.starts_with('/') =>
            {
                format!("{option}../{file}").into()
            }
            _ => word.as_ref().to_owned(),
        };
        before.chain(words.iter().map(word)).collect()
    }

    /// The variables of all commands.
    pub(crate) fn variables(&self) -> &BTreeMap<OsString, OsString> {
        &self.vars
    }

    /// Below the directory of the test.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.tmux.dir().join(below)
    }

    /// The directory of the test, as text.
    pub(crate) fn root(&self) -> &str {
        self.tmux.dir().to_str().unwrap()
    }

    /// The tmux server of the test.
    pub(crate) fn tmux(&self) -> &PrivateTmux {
        &self.tmux
    }

    /// Puts a file into the directory of a user's code.
    pub(crate) fn code(&self, user: &str, name: &str, text: &str) {
        let path = self.path(&format!("code-{user}")).join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_file(&path, text);
    }

    // -- running the program

    /// Runs `tpu` with words separated by blanks.
    #[must_use = "say how it should have ended: .exits(0)"]
    pub(crate) fn tpu(&self, line: &str) -> CommandOutput {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.tpu_words(&words)
    }

    /// Runs `tpu` with these words.
    #[must_use = "say how it should have ended: .exits(0)"]
    pub(crate) fn tpu_words<W: AsRef<OsStr>>(&self, words: &[W]) -> CommandOutput {
        self.output(&self.spawn(words))
    }

    /// Starts a job of `alice` on `local` that runs a bash script with these words; returns its window.
    #[track_caller]
    pub(crate) fn start<W: AsRef<OsStr>>(&self, script: &str, words: &[W]) -> u64 {
        self.start_for("alice", script, words)
    }

    /// The same for any user.
    #[track_caller]
    pub(crate) fn start_for<W: AsRef<OsStr>>(&self, user: &str, script: &str, words: &[W]) -> u64 {
        let fixed = ["run", "local", user, "--json", "--", "bash", "-c", script, "job"];
        let all: Vec<&OsStr> =
            fixed.iter().map(OsStr::new).chain(words.iter().map(AsRef::as_ref)).collect();
        let output = self.tpu_words(&all).exits(0);
        output.json()["launched"]["window"].as_u64().unwrap()
    }

    /// `tpu` with the environment of the test, not yet running.
    pub(crate) fn spawn<W: AsRef<OsStr>>(&self, words: &[W]) -> Spawn {
        self.spawn_program(TPU, words)
    }

    /// Any program with the environment of the test, not yet running.
    pub(crate) fn spawn_program<W: AsRef<OsStr>>(&self, program: &str, words: &[W]) -> Spawn {
        let cwd = self.stands_in(words.iter().map(AsRef::as_ref));
        let mut words = self.command_words(program, words).into_iter();
        let mut spawn = Spawn::new(words.next().unwrap())
            .args(words)
            .cwd(cwd)
            .timeout(Duration::from_secs(60))
            .own_group()
            .env_clear();
        for (name, value) in &self.vars {
            spawn = spawn.env(name, value);
        }
        spawn
    }

    /// Where these words are typed: what starts jobs in the code of `alice`, all else in the directory of the test.
    fn stands_in<'w>(&self, words: impl Iterator<Item = &'w OsStr>) -> PathBuf {
        let words: Vec<&OsStr> = words.collect();
        let starts = |word: &&OsStr| *word == "--" || word.to_str().and_then(job_file).is_some();
        let code = self.path("code-alice");
        if takes_jobs(&words) && words.iter().any(starts) && code.is_dir() {
            code
        } else {
            self.path("")
        }
    }

    /// Starts `tpu` with fail points, as a process that can be stopped and continued. It is killed with
    /// this environment.
    #[expect(clippy::disallowed_methods, reason = "the test stops and continues this very process")]
    pub(crate) fn start_at_points(&self, line: &str, points: &str) -> Child {
        let words: Vec<&str> = line.split(' ').collect();
        let spawn = self.spawn(&words);
        Command::new(&spawn.program)
            .args(&spawn.args)
            .env_clear()
            .envs(spawn.env.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))))
            .env("FAILPOINTS", points)
            .current_dir(spawn.cwd.unwrap())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Runs what `spawn` describes.
    #[must_use = "say how it should have ended: .exits(0)"]
    pub(crate) fn output(&self, spawn: &Spawn) -> CommandOutput {
        let output = proc::run(spawn).unwrap();
        let words = spawn.args.iter().map(|word| word.to_string_lossy().into_owned());
        CommandOutput {
            command: format!(
                "{} {}\nin {}",
                spawn.program.to_string_lossy(),
                words.collect::<Vec<_>>().join(" "),
                spawn.cwd.as_deref().unwrap_or(Path::new(".")).display()
            ),
            root: self.root().to_owned(),
            socket: self.tmux.socket().to_owned(),
            code: output.status.shell_code(),
            stdout: output.text(),
            stderr: output.complaint(),
        }
    }

    /// Starts `tpu` and leaves it running, with additional variables. It is killed when dropped.
    pub(crate) fn start_tpu(&self, line: &str, vars: &[(&str, &str)]) -> Running {
        self.start_program(TPU, line, vars)
    }

    /// The same with another program.
    #[expect(clippy::disallowed_methods, reason = "the test ends this process on purpose")]
    pub(crate) fn start_program(
        &self,
        program: &str,
        line: &str,
        vars: &[(&str, &str)],
    ) -> Running {
        let words: Vec<&str> = line.split_whitespace().collect();
        let cwd = self.stands_in(words.iter().map(OsStr::new));
        let words = self.command_words(program, &words);
        let child = Command::new(&words[0])
            .args(&words[1..])
            .env_clear()
            .envs(&self.vars)
            .envs(vars.iter().copied())
            .current_dir(cwd)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Running(child)
    }

    /// The doors of this place, for what is asked of the library itself; `env` is what a process would have.
    pub(crate) fn ctx(&self, env: Env) -> Ctx {
        open(Opening {
            data: self.data_path(),
            tmux_socket: Some(self.tmux.socket().to_owned()),
            env,
            actor: "test".to_owned(),
            tpu: TPU.into(),
            layers: Vec::new(),
            patterns: None,
            secrets: None,
            kinds: tpu::built_in::kinds(),
        })
    }

    /// The data file.
    pub(crate) fn data_path(&self) -> PathBuf {
        self.path("data.json")
    }

    /// The lines of the journal, oldest first.
    pub(crate) fn journal(&self) -> Vec<tpu_system::store::Event> {
        let path = Paths::new(self.data_path()).events();
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The bytes of the data file.
    pub(crate) fn data_bytes(&self) -> Vec<u8> {
        std::fs::read(self.data_path()).unwrap()
    }

    /// The data file as JSON.
    pub(crate) fn data(&self) -> Value {
        serde_json::from_slice(&self.data_bytes()).unwrap()
    }

    /// Replaces the data file.
    pub(crate) fn write_data(&self, data: &Value) {
        write_file(&self.data_path(), &serde_json::to_string_pretty(data).unwrap());
    }

    /// Changes the data file as if somebody had, under the lock.
    pub(crate) fn change(&self, change: impl FnOnce(&mut tpu_core::model::data::Data)) {
        let clock = Arc::new(SystemClock::new());
        let who = Who { pid: std::process::id(), host: "test".into(), command: "test".into() };
        let store = Store::open(Paths::new(self.data_path()), Arc::new(OsDisk), clock, who);
        let changed = store.transact("test", |tx| -> Result<(), StoreError> {
            change(&mut tx.data);
            Ok(())
        });
        drop(changed.unwrap());
    }

    /// Makes unconfirmed launches a minute older, as if that had passed. Under the lock: launchers may be calling
    /// back at this moment.
    pub(crate) fn a_minute_later(&self, user: &str) {
        self.change(|data| {
            let user = data.user_mut(&UserName::from(user)).unwrap();
            let windows: Vec<JobNumber> = user.jobs().iter().map(|job| job.windows_id).collect();
            for window in windows {
                let launch = user.job_mut(window).and_then(|job| job.launch.as_mut());
                if let Some(launch) = launch.filter(|launch| !launch.confirmed) {
                    launch.at = launch.at.plus_seconds(-60);
                }
            }
        });
    }

    /// Lets the last reaction of a lineage have been long ago, so that its back-off is over.
    pub(crate) fn a_year_ago(&self, user: &str, window: u64) {
        self.change(|data| {
            let window = JobNumber(u32::try_from(window).unwrap());
            let job = data.job_mut(&JobId::new(UserName::from(user), window)).unwrap();
            job.recovery.as_mut().unwrap().last_action_at =
                Some(Timestamp::from_second(1_000_000_000));
        });
    }

    /// What an installation of the original with two users looks like.
    pub(crate) fn two_users(&self) -> Value {
        let user = |id: u32, name: &str| {
            json!({
                "id": id, "name": name, "tmux_name": name,
                "working_dir": { "1": self.path(&format!("code-{name}")) },
                "job_data": [],
                "config_aliases": { "lr": "config.training.learning_rate" },
                "settings": { "monitor_after_run": true, "time_zone": "us" },
                "windows_offset": 1, "logs": [],
            })
        };
        json!({
            "users": { "alice": user(0, "alice"), "bob": user(1, "bob") },
            "user_list": ["alice", "bob"], "id_list": [0, 1],
            "id_user_dict": { "0": "alice", "1": "bob" },
            "user_id_dict": { "alice": 0, "bob": 1 },
            "tpu_aliases": { "v2-1": "lab-tpuvm-v2-32-1" },
            "all_tpus": {
                "europe-west4-a": ["lab-tpuvm-v2-32-1"], "preemptible": [], "spot": [],
            },
            "monitor_config": { "test_freq": 3600, "checking_freq": 30 },
            "wandb_api_key": null, "conda_env_name": "NNX", "monitor_all_check_time": 20,
            "MONITOR_logs": [], "ack_MONITOR": false,
        })
    }

    /// A record as the original writes it, not live.
    pub(crate) fn record(&self, user: &str, window: u64, status: &str) -> Value {
        json!({
            "user": user, "windows_id": window, "job_dir_id": 1,
            "job_dir": self.path(&format!("code-{user}")), "tpu": "local", "job_tags": null,
            "log_dir": null, "stage_dir": null, "extra_configs": "", "status": status,
            "error": null, "stage": 0, "monitor": true, "rules": {}, "extra_msgs": {},
            "start_time": "20250420_011026", "customized_settings": {},
        })
    }

    /// The records of a user.
    pub(crate) fn jobs(&self, user: &str) -> Vec<Value> {
        self.data()["users"][user]["job_data"].as_array().unwrap().clone()
    }

    /// One record; fails the test if there is none.
    #[track_caller]
    pub(crate) fn job(&self, user: &str, window: u64) -> Value {
        let found = self.jobs(user).into_iter().find(|job| job["windows_id"] == window);
        found.unwrap_or_else(|| panic!("{user} has no record {window}:\n{:#}", self.data()))
    }

    /// Waits until the record of a job of `alice` says with what its command ended; returns it. Not for one that
    /// is killed: its launcher may be gone with its window before it can say so.
    #[track_caller]
    pub(crate) fn wait_exit(&self, window: u64) -> Value {
        wait_until("its end", || {
            self.job("alice", window)["extra_msgs"]["launch"]["exit"].is_number()
        });
        self.job("alice", window)
    }

    /// Waits until the record of a job of `alice` has this status; returns it.
    #[track_caller]
    pub(crate) fn wait_status(&self, window: u64, status: &str) -> Value {
        let clock = SystemClock::new();
        let mut pause = Duration::from_millis(2);
        loop {
            let job = self.job("alice", window);
            if job["status"] == status {
                return job;
            }
            assert!(
                clock.monotonic() < Duration::from_secs(60),
                "alice/{window} is not {status}: {job:#}\n{}",
                self.pane("alice", window)
            );
            clock.sleep(pause);
            pause = (2 * pause).min(Duration::from_millis(100));
        }
    }

    /// Waits until a file below the directory of the test exists, and reads it.
    #[track_caller]
    pub(crate) fn wait_file(&self, below: &str) -> Vec<u8> {
        let path = self.path(below);
        wait_for(&format!("the file {}", path.display()), || std::fs::read(&path).ok())
    }

    /// Waits until a job has written a process id there; returns that process.
    #[track_caller]
    pub(crate) fn wait_pid(&self, below: &str) -> Process {
        let path = self.path(below);
        let pid = wait_for(&format!("a pid in {}", path.display()), || {
            std::fs::read_to_string(&path).ok()?.strip_suffix('\n')?.parse().ok()
        });
        Process::read(pid).unwrap()
    }

    /// Creates an empty file for which a job waits.
    pub(crate) fn touch(&self, below: &str) {
        write_file(&self.path(below), "");
    }

    // -- the windows

    /// `=alice:7` exists as a window of that index.
    pub(crate) fn has_window(&self, session: &str, index: u64) -> bool {
        self.windows(session).contains(&index)
    }

    /// The window indices of a session; none if there is no such session.
    pub(crate) fn windows(&self, session: &str) -> Vec<u64> {
        let target = format!("={session}");
        let listed = self.tmux.try_run(&["list-windows", "-t", &target, "-F", "#{window_index}"]);
        listed.text().lines().map(|line| line.parse().unwrap()).collect()
    }

    /// The id of the pane in a window.
    pub(crate) fn pane_id(&self, session: &str, index: u64) -> Option<String> {
        let panes = self.tmux.try_run(&[
            "list-panes",
            "-a",
            "-F",
            "#{session_name} #{window_index} #{pane_id}",
        ]);
        let wanted = format!("{session} {index} ");
        panes.text().lines().find_map(|line| line.strip_prefix(&wanted).map(str::to_owned))
    }

    /// What a window shows, with its history; empty if it is gone.
    pub(crate) fn pane(&self, session: &str, index: u64) -> String {
        let Some(id) = self.pane_id(session, index) else { return String::new() };
        self.tmux.try_run(&["capture-pane", "-p", "-S", "-", "-t", &id]).text()
    }

    /// The directory where the launcher of a job keeps its files.
    pub(crate) fn state_of(&self, user: &str, window: u64) -> PathBuf {
        self.path(&format!("tpu-state/jobs/{user}/{window}"))
    }

    /// Every live process in whose environment this test's directory stands, except the test itself. One with a home of its
    /// own names no state file.
    fn processes(&self) -> Vec<Process> {
        let wanted = memchr::memmem::Finder::new(self.path("").as_os_str().as_bytes()).into_owned();
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| {
            std::fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environ| wanted.find(&environ).is_some())
        })
        .filter_map(Process::read)
        .filter(|process| !process.zombie)
        .collect()
    }
}

impl Drop for TestEnv {
    fn drop(&mut self) {
        self.tmux.kill_server();
        let clock = SystemClock::new();
        let mut pause = Duration::from_millis(2);
        // No assertion: this also runs while a failed test unwinds.
        while clock.monotonic() < Duration::from_secs(20) {
            let left = self.processes();
            if left.is_empty() {
                break;
            }
            for process in left {
                drop(procs::signal(&process, Signal::Kill));
            }
            clock.sleep(pause);
            pause = (2 * pause).min(Duration::from_millis(50));
        }
    }
}

/// Whether the files that these words name are job files: those of Cloudmesh hold hosts as well.
fn takes_jobs(words: &[&OsStr]) -> bool {
    words.first().is_none_or(|first| *first != "cms" && *first != "import")
}

/// A word that names a job file, as what stands before its name, and the name.
fn job_file(word: &str) -> Option<(&str, &str)> {
    let at = word.find('=').filter(|_| word.starts_with("--")).map_or(0, |at| at + 1);
    let (option, file) = word.split_at(at);
    let end = Path::new(file).extension()?;
    (end == "yaml" || end == "yml").then_some((option, file))
}

/// Whether a process still lives.
pub(crate) fn lives(process: &Process) -> bool {
    procs::is_alive(process.pid, process.start)
}

/// Waits until a process has ended.
#[track_caller]
pub(crate) fn wait_gone(process: &Process) {
    wait_until(&format!("the end of {} ({})", process.pid, process.name), || !lives(process));
}

/// A `tpu` that is running; killed and reaped when dropped.
pub(crate) struct Running(Child);

impl Running {
    /// SIGKILL, and the end of it.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Its process.
    pub(crate) fn process(&self) -> Process {
        Process::read(self.0.id()).unwrap()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        assert!(procs::signal(&Process::read(self.0.id()).unwrap(), signal).unwrap());
    }

    /// Waits for its end; returns the exit code.
    pub(crate) fn wait(mut self) -> i32 {
        self.0.wait().unwrap().code().unwrap_or(-1)
    }

    fn end(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}
