//! The environment: variables, directories, and who and where this process is. Read once, in `main`.
//!
//! Everything below gets an [`Env`] as a value, so two tests can have two environments in one process.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use rustix::fs::{Access, access};

use super::procs;

/// What the process was given at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Env {
    /// All variables, byte for byte.
    pub vars: BTreeMap<OsString, OsString>,
    /// Working directory; `.` if it cannot be told (somebody removed it).
    pub cwd: PathBuf,
    /// Real user id.
    pub uid: u32,
    /// `$HOME`, else the home of the user in the system's list of users, else `/`.
    pub home: PathBuf,
    /// Host name as the kernel knows it.
    pub hostname: String,
    /// Changes with every boot of the host. Where the kernel offers none (no Linux) it is `-`, and a boot
    /// is noticed only by what does not survive it.
    pub boot_id: String,
    /// Own process id.
    pub pid: u32,
    /// Start of the process, where it is not the kernel's word that counts: in simulations.
    pub start: Option<u64>,
}

impl Env {
    /// The same for somebody else: of the variables only those that say where this process is at home, and how it speaks.
    /// What else the account has in its environment is nobody else's.
    #[must_use]
    pub fn without_secrets(mut self) -> Self {
        const KEPT: [&str; 7] = ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TZ", "USER"];
        self.vars.retain(|name, _| {
            let name = name.to_str().unwrap_or_default();
            let ours =
                ["TPU_", "XDG_", "TMUX_TMPDIR", "CLOUDSDK_", "GOOGLE_", "KUBE", "SLURM_", "SSH_"];
            KEPT.contains(&name) || ours.iter().any(|prefix| name.starts_with(prefix))
        });
        self
    }

    /// Reads the environment of this process.
    #[expect(clippy::disallowed_methods, reason = "sys::env is the door to the environment")]
    pub fn read() -> Self {
        let pid = std::process::id();
        Self {
            vars: std::env::vars_os().collect(),
            cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            uid: rustix::process::getuid().as_raw(),
            home: std::env::home_dir().unwrap_or_else(|| PathBuf::from("/")),
            hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            boot_id: std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
                .map_or_else(|_| "-".to_owned(), |id| id.trim().to_owned()),
            pid,
            start: None,
        }
    }

    /// An environment for tests and simulations: these variables, host `testhost`, home and working
    /// directory from `HOME` (else `/`), and the real user and process.
    pub fn fixed<K, V>(vars: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let vars: BTreeMap<OsString, OsString> =
            vars.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        let home = vars.get(OsStr::new("HOME")).map_or_else(|| PathBuf::from("/"), PathBuf::from);
        let pid = std::process::id();
        Self {
            vars,
            cwd: home.clone(),
            uid: rustix::process::getuid().as_raw(),
            home,
            hostname: "testhost".to_owned(),
            boot_id: "boot-1".to_owned(),
            pid,
            start: None,
        }
    }

    /// Start of the process in kernel ticks since boot ([`procs::start_time`]); 0 if it cannot be told.
    /// Together with pid and boot id it names this process for ever. Most commands do not want to know it.
    pub fn started(&self) -> u64 {
        self.start.or_else(|| procs::start_time(self.pid)).unwrap_or(0)
    }

    /// The machine's own time zone, in which the original wrote its start times.
    pub fn local_zone(&self) -> jiff::tz::TimeZone {
        self.non_empty("TZ")
            .and_then(|name| jiff::tz::TimeZone::get(name).ok())
            .unwrap_or_else(jiff::tz::TimeZone::system)
    }

    /// A variable as text; `None` if it is not set or is no UTF-8.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.var_os(name)?.to_str()
    }

    /// A variable byte for byte.
    pub fn var_os(&self, name: &str) -> Option<&OsStr> {
        self.vars.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Whether a program of this name lies in the search path.
    pub fn has_program(&self, name: &str) -> bool {
        let path = self.var_os("PATH").unwrap_or_default();
        let runs = |file: PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
        std::env::split_paths(path).any(|dir| runs(dir.join(name)))
    }

    /// A variable as text, where an empty one counts as not set.
    pub fn non_empty(&self, name: &str) -> Option<&str> {
        self.var(name).filter(|value| !value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn the_real_environment_names_this_process() {
        let env = Env::read();
        assert_eq!(env.pid, std::process::id());
        assert!(env.var("PATH").is_some());
        assert!(!env.hostname.is_empty());
        assert!(env.cwd.is_absolute());
        if cfg!(target_os = "linux") {
            assert_eq!(env.boot_id.len(), 36);
            assert!(procs::is_alive(env.pid, env.started()));
        }
    }

    #[test]
    fn variables_are_bytes_first_and_text_if_they_can() {
        let raw = OsString::from_vec(vec![b'x', 0xff]);
        let env = Env::fixed([("HOME", OsString::from("/h")), ("RAW", raw.clone())]);
        assert_eq!(env.home, PathBuf::from("/h"));
        assert_eq!(env.var("RAW"), None);
        assert_eq!(env.var_os("RAW"), Some(raw.as_os_str()));
        assert_eq!(Env::fixed([("EMPTY", "")]).non_empty("EMPTY"), None);
    }
}
