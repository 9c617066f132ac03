//! Servers of ssh on loopback addresses, for as many machines as a figure needs.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tpu_system::sys::proc::{self, Spawn};
use tpu_system::sys::procs::{self, Process, Signal, Table as Processes};

/// The server, where Debian and others keep it.
pub(crate) const SSHD: &str = "/usr/sbin/sshd";

/// The server, ended with everything that it has begun.
pub(crate) struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let below: Vec<Process> = Processes::read()
            .map(|table| table.descendants(self.0.id()).into_iter().cloned().collect())
            .unwrap_or_default();
        drop(self.0.kill());
        drop(self.0.wait());
        for process in below {
            drop(procs::signal(&process, Signal::Kill));
        }
    }
}

/// sshd listens on sixteen addresses at most (`MAX_LISTEN_SOCKS` in its servconf.h).
pub(crate) const PER_SERVER: u8 = 16;

/// The address of a machine.
pub(crate) fn ip(machine: u8) -> String {
    format!("127.0.1.{machine}")
}

/// Keys for servers and for whoever reaches them.
pub(crate) fn make_keys(dir: &Path) -> io::Result<()> {
    for key in ["host", "client"] {
        let spawn = Spawn::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]);
        proc::run(&spawn.arg(dir.join(key))).map_err(io::Error::other)?;
    }
    Ok(())
}

/// The server of sixteen machines, from this one on.
#[expect(clippy::disallowed_methods, reason = "the server is ended by its process id")]
pub(crate) fn serve(dir: &Path, port: u16, first: u8) -> io::Result<Server> {
    let at = |name: &str| dir.join(name).display().to_string();
    if rustix::process::getuid().is_root() {
        std::fs::create_dir_all("/run/sshd")?;
    }
    let addresses: Vec<String> =
        (first..=first + (PER_SERVER - 1)).map(|n| format!("ListenAddress {}\n", ip(n))).collect();
    let config = format!(
        "Port {port}\n{}HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\n\
         PidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nMaxStartups 1000\n\
         LogLevel ERROR\nSetEnv HOME={}\n",
        addresses.concat(),
        at("host"),
        at("client.pub"),
        dir.display(),
    );
    let file = dir.join(format!("sshd-{first}.conf"));
    std::fs::File::create(&file)?.write_all(config.as_bytes())?;
    let child = Command::new(SSHD)
        .args(["-D", "-e", "-f"])
        .arg(file)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(Server(child))
}
