//! A tmux server of one test's own: its own socket directory, home and configuration; gone at the end.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::env::Env;
use tpu_system::sys::proc::{self, Output, Spawn};
use tpu_system::sys::procs;
use tpu_system::sys::random::{OsRandom, Random as _};
use tpu_system::tmux::oneshot::OneShot;

/// Owns a socket on which a server may run, and ends exactly that server when dropped.
pub(crate) struct PrivateTmux {
    dir: tempfile::TempDir,
    socket: String,
    env: Env,
}

impl PrivateTmux {
    /// A place without a server. One that is started there, by whomever, reads `config`.
    pub(crate) fn new(config: &str) -> Self {
        Self::with_env(config, &[])
    }

    /// The same, with additional variables.
    pub(crate) fn with_env(config: &str, vars: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        write_file(&dir.path().join(".tmux.conf"), config);
        let path = Env::read().var("PATH").unwrap_or("/usr/bin:/bin").to_owned();
        let home = dir.path().to_str().unwrap();
        let own = [("HOME", home), ("TMUX_TMPDIR", home), ("PATH", &path), ("SHELL", "/bin/sh")];
        let env = Env::fixed(own.iter().chain(vars).copied());
        // The name alone would do, should the directory ever be lost on the way.
        let socket = format!("tpu-test-{}", OsRandom.hex(6));
        Self { dir, socket, env }
    }

    /// A directory of the test, removed at the end.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The name of the socket.
    pub(crate) fn socket(&self) -> &str {
        &self.socket
    }

    /// The environment that leads to the server.
    pub(crate) fn env(&self) -> &Env {
        &self.env
    }

    /// The door under test.
    pub(crate) fn one_shot(&self) -> OneShot {
        OneShot::new(Some(self.socket()), &self.env)
    }

    /// What a person would type; returns what tmux said, even a refusal.
    pub(crate) fn try_run(&self, args: &[&str]) -> Output {
        let mut spawn = Spawn::new("tmux")
            .args(["-u", "-L", self.socket()])
            .args(args)
            .timeout(Duration::from_secs(20))
            .env_clear();
        for (name, value) in &self.env.vars {
            spawn = spawn.env(name, value);
        }
        proc::run(&spawn).unwrap()
    }

    /// What a person would type, and what tmux prints. Fails the test if tmux refuses.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> String {
        let output = self.try_run(args);
        assert!(output.status.success(), "tmux {args:?}: {}", output.complaint());
        output.text().trim_end_matches('\n').to_owned()
    }

    /// The pid of the running server.
    pub(crate) fn server_pid(&self) -> Option<u32> {
        self.try_run(&["display-message", "-p", "#{pid}"]).text().trim().parse().ok()
    }

    /// Ends the server and waits until it is gone.
    pub(crate) fn kill_server(&self) {
        let Some(pid) = self.server_pid() else { return };
        let start = procs::start_time(pid).unwrap_or(0);
        drop(self.try_run(&["kill-server"]));
        let clock = SystemClock::new();
        // No assertion: this also runs while a failed test unwinds.
        while procs::is_alive(pid, start) && clock.monotonic() < Duration::from_secs(20) {
            clock.sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for PrivateTmux {
    fn drop(&mut self) {
        self.kill_server();
    }
}

/// Writes a file of a test.
pub(crate) fn write_file(path: &Path, text: &str) {
    std::fs::File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// Writes a program of a test: a shell script.
pub(crate) fn write_script(path: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    write_file(path, &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
