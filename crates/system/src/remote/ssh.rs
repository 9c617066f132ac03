//! Workers reached by the user's own OpenSSH: keys, agents, jump hosts and `~/.ssh/config` hold.
//!
//! One connection for each worker is opened and kept (`ControlMaster`, `ControlPersist`): whatever is done
//! next, by whichever `tpu`, costs one round trip. At most 32 are being opened at a time.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::sys::proc::{self, Spawn};
use crate::sys::shared;
use tpu_core::model::variables;

use super::each::Gate;
use super::far::{FarRemote, Way};
use super::{Remote, RemoteError, Worker};

/// Connections that are being opened at a time.
static OPENING: Gate = Gate::new(32);
/// How long the opening of one may take: a time-out of 10 s for each address of a name.
const PATIENCE: Duration = Duration::from_secs(45);
/// The longest path of a socket (`sun_path`), with the 17 characters that OpenSSH adds while it makes it.
const LONGEST_SOCKET: usize = 107 - 17;
/// How workers are reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SshConfig {
    /// The account on the workers; else what OpenSSH takes.
    pub user: Option<String>,
    /// The key for it; else what OpenSSH takes.
    pub key: Option<String>,
    /// Further words for ssh, which come first and so win.
    pub options: Vec<String>,
    /// Where the sockets of kept connections are.
    pub sockets: PathBuf,
    /// Where keys of workers are remembered, beside the user's own file.
    pub known_hosts: PathBuf,
    /// What stands for the workers there, where addresses are given to new machines again.
    pub alias: Option<String>,
}

impl SshConfig {
    /// Host and port of a worker: `host`, `host:port`, `[v6]:port` or a bare v6 address.
    pub fn place(address: &str) -> (&str, Option<&str>) {
        if let Some((host, rest)) = address.strip_prefix('[').and_then(|a| a.split_once(']')) {
            return (host, rest.strip_prefix(':'));
        }
        match address.split_once(':') {
            Some((host, port)) if !port.contains(':') => (host, Some(port)),
            _ => (address, None),
        }
    }

    /// The socket of a worker's kept connection. Who reaches it differently has another one.
    pub fn socket(&self, worker: &Worker) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        let Self { user, key, options, .. } = self;
        (&worker.address, user, key, options, self.alias_of(worker)).hash(&mut hasher);
        self.sockets.join(format!("{:016x}", hasher.finish()))
    }

    fn alias_of(&self, worker: &Worker) -> Option<String> {
        self.alias.as_ref().map(|alias| format!("{alias}-{}", worker.index))
    }
}

/// Where sockets of kept connections can be: short enough for their names, and nobody else's.
pub fn sockets(runtime: Option<&str>, uid: u32) -> PathBuf {
    let below = |dir: &str| Path::new(dir).join("tpu-ssh");
    // OpenSSH would take a % for something else.
    let fits = |dir: &PathBuf| {
        let text = dir.to_string_lossy();
        text.len() + 1 + 16 <= LONGEST_SOCKET && !text.contains(['%', '"'])
    };
    let runtime = runtime.filter(|dir| dir.starts_with('/')).map(below).filter(fits);
    runtime.unwrap_or_else(|| PathBuf::from(format!("/tmp/tpu-ssh-{uid}")))
}

/// The door to workers over ssh.
pub fn open(config: SshConfig) -> Box<dyn Remote> {
    let way = Ssh { config };
    Box::new(FarRemote { way: Arc::new(way) })
}

struct Ssh {
    config: SshConfig,
}

impl Ssh {
    /// `ssh`, with all that leads to the worker, without a command.
    fn ssh(&self, worker: &Worker) -> Spawn {
        let (host, port) = SshConfig::place(&worker.address);
        let mut spawn = Spawn::new("ssh").args(self.config.options.iter().cloned());
        if let Some(key) = &self.config.key {
            spawn = spawn.args(["-i", key]).args(["-o", "IdentitiesOnly=yes"]);
        }
        if let Some(user) = &self.config.user {
            spawn = spawn.args(["-l", user]);
        }
        if let Some(port) = port {
            spawn = spawn.args(["-p", port]);
        }
        if let Some(alias) = self.config.alias_of(worker) {
            spawn = spawn.args(["-o".to_owned(), format!("HostKeyAlias={alias}")]);
        }
        let path = |name: &str, path: &Path, more: &str| {
            let mut option = OsString::from(name);
            option.push("=\"");
            option.push(path);
            option.push("\"");
            option.push(more);
            option
        };
        let known = path("UserKnownHostsFile", &self.config.known_hosts, " ~/.ssh/known_hosts");
        let fixed = [
            "ControlMaster=auto",
            "ControlPersist=600",
            "StrictHostKeyChecking=accept-new",
            "ConnectTimeout=10",
            "ServerAliveInterval=5",
            "ServerAliveCountMax=3",
            "LogLevel=ERROR",
            // What somebody has written for typing there is not for us.
            "RemoteCommand=none",
            "PermitLocalCommand=no",
        ];
        for option in fixed.iter().map(OsString::from) {
            spawn = spawn.arg("-o").arg(option);
        }
        spawn = spawn.arg("-o").arg(path("ControlPath", &self.config.socket(worker), ""));
        spawn = spawn.arg("-o").arg(known);
        // What is started on behalf of a job would be taken for its own, and be stopped with it.
        for name in variables::claiming() {
            spawn = spawn.env_remove(name);
        }
        spawn.args(["--", host])
    }

    /// The same for where nobody can be asked.
    fn silent(&self, worker: &Worker) -> Spawn {
        let mut spawn = self.ssh(worker);
        spawn.args.splice(0..0, ["-T", "-o", "BatchMode=yes"].map(OsString::from));
        spawn
    }

    fn error(worker: &Worker, reason: String) -> RemoteError {
        let (worker, address) = (worker.index, worker.address.clone());
        RemoteError::Unreachable { worker, address, reason }
    }

    /// A directory of our own for the sockets.
    fn prepare(&self, worker: &Worker) -> Result<(), RemoteError> {
        use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
        let dir = &self.config.sockets;
        let mut builder = std::fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(dir);
        let looked = made.and_then(|()| std::fs::symlink_metadata(dir));
        let io = |source| RemoteError::Io {
            worker: worker.index,
            op: "create",
            path: dir.display().to_string(),
            source,
        };
        let found = looked.map_err(io)?;
        let uid = rustix::process::getuid().as_raw();
        if !found.is_dir() || found.uid() != uid || found.mode() & 0o022 != 0 {
            let what = format!("{} is not a directory of this account alone", dir.display());
            return Err(RemoteError::Request { what });
        }
        Ok(())
    }
}

impl Way for Ssh {
    fn reach(&self, worker: &Worker) -> Result<(), RemoteError> {
        if worker.address.is_empty() {
            return Err(Self::error(worker, "its address is not known yet".to_owned()));
        }
        let (host, port) = SshConfig::place(&worker.address);
        let is_plain =
            |text: &str| text.chars().all(|c| c.is_alphanumeric() || ".-_:%@".contains(c));
        let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok());
        if host.is_empty() || host.starts_with('-') || !is_plain(host) || !is_port {
            let what = format!("worker {}: '{}' is no address", worker.index, worker.address);
            return Err(RemoteError::Request { what });
        }
        let socket = self.config.socket(worker);
        if UnixStream::connect(&socket).is_ok() {
            return Ok(());
        }
        let _place = OPENING.enter();
        self.prepare(worker)?;
        let spawn = self.silent(worker).arg("true").timeout(PATIENCE).own_group();
        let output = proc::run(&spawn)
            .map_err(|source| RemoteError::Program { worker: worker.index, source })?;
        if output.status.shell_code() == 255 {
            return Err(Self::error(worker, self.reason(&output.stderr)));
        }
        // What OpenSSH has learned of a machine, other accounts are to know as well.
        shared::hand_down(&self.config.known_hosts);
        Ok(())
    }

    fn spawn(&self, worker: &Worker, command: &str) -> Spawn {
        self.silent(worker).arg(command)
    }

    fn terminal(&self, worker: &Worker, command: Option<&str>) -> Spawn {
        let mut spawn = self.ssh(worker);
        if let Some(command) = command {
            spawn.args.insert(0, "-t".into());
            spawn = spawn.arg(command);
        }
        spawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssh() -> Ssh {
        let config = SshConfig {
            user: Some("alice".to_owned()),
            key: Some("/k e y".to_owned()),
            options: vec!["-F".to_owned(), "none".to_owned()],
            sockets: "/run/user/7/tpu-ssh".into(),
            known_hosts: "/state/known_hosts".into(),
            alias: Some("tpu.lab-1.99".to_owned()),
        };
        Ssh { config }
    }

    fn worker(address: &str) -> Worker {
        Worker { index: 2, address: address.to_owned() }
    }

    #[test]
    fn addresses_in_every_spelling() {
        for (address, expected) in [
            ("10.0.0.1", ("10.0.0.1", None)),
            ("host:2222", ("host", Some("2222"))),
            ("[::1]:22", ("::1", Some("22"))),
            ("fe80::1", ("fe80::1", None)),
        ] {
            assert_eq!(SshConfig::place(address), expected);
        }
        assert!(matches!(
            ssh().reach(&worker("")),
            Err(RemoteError::Unreachable { worker: 2, .. })
        ));
        for wrong in [":22", "-oProxyCommand=x", "a b", "host:port", "host:99999", "$(id)"] {
            assert!(
                matches!(ssh().reach(&worker(wrong)), Err(RemoteError::Request { .. })),
                "{wrong}"
            );
        }
    }

    #[test]
    fn what_the_user_wants_comes_first() {
        let spawn = ssh().silent(&worker("10.0.0.1:2222"));
        let words: Vec<String> =
            spawn.args.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let text = words.join(" ");
        assert!(text.starts_with("-T -o BatchMode=yes -F none -i /k e y -o Identities"), "{text}");
        assert!(text.contains("-l alice -p 2222 -o HostKeyAlias=tpu.lab-1.99-2"), "{text}");
        assert!(text.ends_with(" -- 10.0.0.1"), "{text}");
        assert!(
            variables::claiming().all(|name| spawn.env.contains(&(OsString::from(name), None)))
        );
    }

    #[test]
    fn sockets_have_short_names() {
        assert_eq!(sockets(Some("/run/user/7"), 7), Path::new("/run/user/7/tpu-ssh"));
        let long = format!("/{}", "x".repeat(80));
        assert_eq!(sockets(Some(&long), 7), Path::new("/tmp/tpu-ssh-7"));
        assert_eq!(sockets(None, 7), Path::new("/tmp/tpu-ssh-7"));
        assert_eq!(sockets(Some("relative"), 7), Path::new("/tmp/tpu-ssh-7"));
        assert_ne!(ssh().config.socket(&worker("a")), ssh().config.socket(&worker("b")));
    }
}
