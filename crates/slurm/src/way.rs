//! The way to a login node: OpenSSH, with a connection of our own that stays open.
//!
//! What is to run there arrives as quoted words, under `timeout`, and what it ended with is said behind it by a word
//! that nobody else knows: the exit code of a connection is its own affair.

use std::ffi::OsString;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::time::Duration;

use tpu_system::effects::Effects;
use tpu_system::remote::ssh::{self, SshConfig, sockets};
use tpu_system::remote::{Remote, Worker, for_any_shell};
use tpu_system::sys::proc::{self, Feed, Spawn};

use super::client::Silence;
use super::cluster::LoginNode;
use super::local::FIXED;

/// The way to one.
pub(super) struct LoginWay<'a> {
    conf: Option<String>,
    effects: &'a Effects,
    sockets: std::path::PathBuf,
    node: Worker,
    door: Box<dyn Remote>,
}

/// What a script left behind there.
pub(super) struct ThereSaid {
    pub(super) code: i32,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: String,
}

impl<'a> LoginWay<'a> {
    /// The cluster of a `slurm.conf` that is on that node, or its usual one.
    pub(super) fn new(login: &LoginNode, conf: Option<String>, effects: &'a Effects) -> Self {
        let sockets = effects.env.non_empty("TPU_SSH_DIR").map_or_else(
            || sockets(effects.env.non_empty("XDG_RUNTIME_DIR"), effects.env.uid),
            Into::into,
        );
        let config = SshConfig {
            user: login.user.clone(),
            key: login.key.clone(),
            options: Vec::new(),
            sockets: sockets.clone(),
            known_hosts: effects.store.paths().known_hosts(),
            alias: None,
        };
        let node = Worker { index: 0, address: login.address.clone() };
        Self { conf, effects, sockets, node, door: ssh::open(config) }
    }

    /// Runs a script there, with these words as its own.
    pub(super) fn there(
        &self,
        script: &str,
        words: &[String],
        (stdin, limit): (Option<Feed>, Duration),
    ) -> Result<ThereSaid, Silence> {
        self.prepare()?;
        let mark = format!("tpu-{}", self.effects.random.hex(8));
        let outer = format!("({script}); echo \"{mark} $?\" >&2; exit 0");
        let mut command = format!("exec sh -c {} sh", quoted(&outer));
        for word in words {
            command.push(' ');
            command.push_str(&quoted(word));
        }
        let Some(mut spawn) = self.door.terminal(&self.node, None) else {
            return Err(Silence::NotStarted("there is no way to a login node".to_owned()));
        };
        let connect = limit.as_secs().clamp(2, 10);
        let first = ["-T", "-o", "BatchMode=yes", "-o", &format!("ConnectTimeout={connect}")];
        spawn.args.splice(0..0, first.map(OsString::from));
        let mut spawn = spawn.arg(for_any_shell(&command)).timeout(limit).own_group();
        spawn.stdin = stdin;
        let output = match proc::run(&spawn) {
            Ok(output) => output,
            Err(proc::ProcError::Missing { program }) => {
                return Err(Silence::NotStarted(format!(
                    "there is no program '{program}' in PATH"
                )));
            }
            // It may be at work there still.
            Err(error) => return Err(Silence::Broken(self.broken(&error.to_string()))),
        };
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let Some((stderr, code)) = text.rsplit_once(&mark) else {
            let why = text.lines().map(str::trim).rfind(|line| !line.is_empty());
            return Err(Silence::Broken(self.broken(why.unwrap_or("the connection broke"))));
        };
        let code = code
            .trim()
            .parse()
            .map_err(|_| Silence::Broken(self.broken("the connection broke")))?;
        Ok(ThereSaid { code, stdout: output.stdout, stderr: stderr.trim().to_owned() })
    }

    fn broken(&self, why: &str) -> String {
        format!("login node {}: {why}", self.node.address)
    }

    /// A directory of this account alone for the sockets of open connections.
    fn prepare(&self) -> Result<(), Silence> {
        let dir = &self.sockets;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
        let found = made.and_then(|()| std::fs::symlink_metadata(dir));
        let found = found.map_err(|e| Silence::NotStarted(format!("{}: {e}", dir.display())))?;
        let is_ours =
            found.is_dir() && found.uid() == self.effects.env.uid && found.mode() & 0o022 == 0;
        if !is_ours {
            let what = format!("{} is not a directory of this account alone", dir.display());
            return Err(Silence::NotStarted(what));
        }
        Ok(())
    }

    /// The command that runs such words there, at a terminal of this machine.
    pub(super) fn at_terminal(&self, words: &[String]) -> Vec<String> {
        let conf = self.conf.as_ref().map(|conf| format!("env SLURM_CONF={} ", quoted(conf)));
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let command = format!("{}{}", conf.unwrap_or_default(), words.join(" "));
        let Some(Spawn { program, args, .. }) = self.door.terminal(&self.node, Some(&command))
        else {
            return Vec::new();
        };
        let text = |word: OsString| word.to_string_lossy().into_owned();
        std::iter::once(program).chain(args).map(text).collect()
    }

    /// `NAME=VALUE` words by which programs there say the same everywhere.
    pub(super) fn environment(&self, is_fixed: bool) -> String {
        let mut words = String::new();
        for name in ["PATH", "HOME", "USER", "LOGNAME"] {
            words += &format!("{name}=\"${{{name}-}}\" ");
        }
        for (name, value) in FIXED.iter().filter(|_| is_fixed) {
            words += &format!("{name}={value} ");
        }
        if let Some(conf) = &self.conf {
            words += &format!("SLURM_CONF={} ", quoted(conf));
        }
        words
    }
}

/// A word for whichever shell reads it there.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stays_one_word() {
        for word in ["it's $HOME", "", "a\nb", "-x", "`id`"] {
            let echo = Spawn::new("sh").args(["-c", &format!("printf %s {}", quoted(word))]);
            assert_eq!(proc::run(&echo).unwrap().text(), word);
        }
    }
}
