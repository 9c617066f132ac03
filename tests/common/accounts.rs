//! Real accounts of this machine, in a group of their own; gone at the end, with every process of theirs. Only root can make
//! them: elsewhere their tests are skipped, and say so.

use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::getuid;
use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::proc::{self, Spawn};
use tpu_system::sys::procs::{self, Process, Signal};
use tpu_system::sys::random::{OsRandom, Random as _};

use super::env::{TPU, TestEnv};
use super::output::CommandOutput;

/// Accounts that share a group, and one that does not.
pub(crate) struct Accounts {
    env: TestEnv,
    group: String,
    all: Vec<Account>,
}

/// One account.
pub(crate) struct Account {
    /// Its name.
    pub(crate) name: String,
    uid: u32,
    home: PathBuf,
}

impl Accounts {
    /// Makes so many accounts of one group, and behind them one that is not in it. `None`, which is said, where that cannot
    /// be done.
    pub(crate) fn new(count: usize) -> Option<Self> {
        let programs = ["useradd", "groupadd", "userdel", "groupdel", "setpriv"];
        let is_there = |name: &&str| {
            ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
                .map(|dir| Path::new(dir).join(name))
                .iter()
                .any(|it| it.exists())
        };
        if !getuid().is_root() || !programs.iter().all(is_there) {
            drop(writeln!(std::io::stderr(), "skipped: only root with useradd can make accounts"));
            return None;
        }
        let (env, mark) = (TestEnv::new(), OsRandom.hex(3));
        let group = format!("tpu{mark}");
        let mut accounts = Self { env, group, all: Vec::new() };
        // Everybody reaches the program, and what is theirs of this directory.
        mode(&accounts.env.path(""), 0o755);
        std::fs::copy(TPU, accounts.program()).unwrap();
        mode(&accounts.program(), 0o755);
        root("groupadd", &[&accounts.group]);
        for (n, name) in ('a'..='z').take(count + 1).enumerate() {
            let name = format!("{name}{mark}");
            let home = accounts.env.path(&format!("home-{name}"));
            let place = home.to_str().unwrap();
            let fixed =
                ["--no-create-home", "--user-group", "--shell", "/bin/bash", "--home-dir", place];
            let in_group = ["--groups", &accounts.group];
            let groups: &[&str] = if n < count { &in_group } else { &[] };
            root("useradd", &[&fixed, groups, &[&name]].concat());
            let uid = number_of("/etc/passwd", &name);
            std::fs::create_dir(&home).unwrap();
            chown(&home, Some(uid), Some(uid)).unwrap();
            accounts.all.push(Account { name, uid, home });
        }
        Some(accounts)
    }

    fn program(&self) -> PathBuf {
        self.env.path("tpu")
    }

    /// Their group.
    pub(crate) fn group(&self) -> &str {
        &self.group
    }

    /// A text as outputs show it, without the directory of the test.
    pub(crate) fn shown(&self, text: &str) -> String {
        text.replace(self.env.root(), "[DIR]")
    }

    /// The accounts.
    pub(crate) fn all(&self) -> &[Account] {
        &self.all
    }

    /// The number of their group.
    pub(crate) fn gid(&self) -> u32 {
        number_of("/etc/group", &self.group)
    }

    /// Gives the first of them another login shell; `false`, which is said, where this machine has none such.
    pub(crate) fn take_shell(&self, shell: &str) -> bool {
        let is_there = Path::new(shell).exists();
        if is_there {
            // Without a password an account is locked, also for a key.
            root("usermod", &["--shell", shell, "--password", "*", &self.all[0].name]);
        } else {
            drop(writeln!(std::io::stderr(), "skipped: there is no {shell}"));
        }
        is_there
    }

    /// A directory for what they share, which everybody reaches.
    pub(crate) fn place(&self) -> PathBuf {
        let place = self.env.path("srv");
        std::fs::create_dir(&place).unwrap();
        mode(&place, 0o755);
        place
    }

    /// Runs `tpu` as an account, in its home.
    #[must_use = "say how it should have ended: .exits(0)"]
    pub(crate) fn tpu<W: AsRef<str>>(&self, account: &Account, words: &[W]) -> CommandOutput {
        let program = self.program();
        self.env.output(&self.spawn(account, program.to_str().unwrap(), words))
    }

    /// The same with words between blanks.
    #[must_use = "say how it should have ended: .exits(0)"]
    pub(crate) fn types(&self, account: &Account, line: &str) -> CommandOutput {
        self.tpu(account, &line.split_whitespace().collect::<Vec<_>>())
    }

    fn spawn<W: AsRef<str>>(&self, account: &Account, program: &str, words: &[W]) -> Spawn {
        let name = account.name.as_str();
        let who =
            [format!("--reuid={name}"), format!("--regid={name}"), "--init-groups".to_owned()];
        let words = words.iter().map(|word| word.as_ref().to_owned());
        let home = account.home.to_str().unwrap();
        let below = |name: &str| format!("{home}/{name}");
        let path = self.env.variables().iter().find(|(name, _)| *name == "PATH").unwrap().1.clone();
        Spawn::new("setpriv")
            .args(who.into_iter().chain([program.to_owned()]).chain(words))
            .cwd(home)
            .timeout(Duration::from_secs(60))
            .own_group()
            .env_clear()
            .env("PATH", path)
            .env("HOME", home)
            .env("USER", name)
            .env("LOGNAME", name)
            .env("SHELL", "/bin/bash")
            .env("TZ", "UTC")
            .env("COLUMNS", "200")
            .env("TMUX_TMPDIR", home)
            .env("XDG_CONFIG_HOME", below("config"))
            .env("XDG_DATA_HOME", below("share"))
            .env("XDG_STATE_HOME", below("state"))
            .env("XDG_CACHE_HOME", below("cache"))
            .env("XDG_RUNTIME_DIR", below("runtime"))
            .env("TPU_TMUX_SOCKET", self.env.tmux().socket())
            .env("TPU_BESIDE_ORIGINAL", "1")
            .env("TPU_DAEMON_AUTOSTART", "false")
    }

    /// Runs a job of an account on this machine, to its end; `words` are for bash.
    #[track_caller]
    pub(crate) fn job(&self, account: &Account, words: &str) -> CommandOutput {
        let line = ["run", "local", "--json", "--", "bash", "-c", words];
        let ran = self.tpu(account, &line).exits(0);
        let number = ran.json()["launched"]["window"].as_u64().unwrap();
        drop(self.types(account, &format!("wait w={number}")).exits(0));
        ran
    }
}

impl Account {
    /// Where it is at home.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// The number of the account.
    pub(crate) fn uid(&self) -> u32 {
        self.uid
    }

    /// Ends its processes; whether there were any.
    fn end_processes(&self) -> bool {
        let is_own = |pid: &u32| {
            let about = std::fs::metadata(format!("/proc/{pid}"));
            about.is_ok_and(|about| about.uid() == self.uid)
        };
        let all = std::fs::read_dir("/proc").unwrap();
        let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let left: Vec<Process> = pids
            .filter(is_own)
            .filter_map(Process::read)
            .filter(|process| !process.zombie)
            .collect();
        for process in &left {
            // It may have ended in this moment.
            drop(procs::signal(process, Signal::Kill));
        }
        !left.is_empty()
    }
}

impl Drop for Accounts {
    fn drop(&mut self) {
        let clock = SystemClock::new();
        for account in &self.all {
            let words = ["-L", self.env.tmux().socket(), "kill-server"];
            drop(proc::run(&self.spawn(account, "tmux", &words)));
            // No assertion: this also runs while a failed test unwinds.
            while account.end_processes() && clock.monotonic() < Duration::from_secs(20) {
                clock.sleep(Duration::from_millis(2));
            }
            // The group of its name goes with it.
            drop(proc::run(&Spawn::new("userdel").args(["--force", &account.name])));
        }
        drop(proc::run(&Spawn::new("groupdel").args([&self.group])));
    }
}

/// Runs a program as root; fails the test if it fails.
#[track_caller]
fn root(program: &str, words: &[&str]) {
    let output =
        proc::run(&Spawn::new(program).args(words).timeout(Duration::from_secs(60))).unwrap();
    assert!(output.status.success(), "{program} {words:?}: {}", output.complaint());
}

/// The number of an account or a group in a list of this machine.
fn number_of(list: &str, name: &str) -> u32 {
    let list = std::fs::read_to_string(list).unwrap();
    let line = list.lines().find(|line| line.split(':').next() == Some(name)).unwrap();
    line.split(':').nth(2).unwrap().parse().unwrap()
}

/// Sets the mode of a file or directory.
pub(crate) fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
