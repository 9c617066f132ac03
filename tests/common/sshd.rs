//! Real hosts: an OpenSSH server of a test's own on each of some loopback addresses, with keys, ports and
//! homes in a temporary directory. Ended by their process ids, with everything that ran on them.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal as RawSignal, kill_process};
use tpu_system::remote::Worker;
use tpu_system::remote::ssh::SshConfig;
use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::proc::{self, Spawn};
use tpu_system::sys::procs::{self, Process, Signal, Table};

use super::cables::{self, Cables};
use super::tmux::{write_file, write_script};
use super::wait::wait_until;

/// The server, where Debian and others keep it.
const SSHD: &str = "/usr/sbin/sshd";

/// Whether there is a server to test with; says so if not.
pub(crate) fn is_installed() -> bool {
    let found = Path::new(SSHD).is_file();
    if !found {
        let said = writeln!(std::io::stderr(), "skipped: there is no {SSHD} (openssh-server)");
        said.unwrap();
    }
    found
}

/// Some hosts.
pub(crate) struct Hosts {
    dir: tempfile::TempDir,
    servers: Vec<Server>,
    world: World,
    /// What each machine has on a disk of its own.
    own: Option<PathBuf>,
    /// Their network, if they have one of their own.
    cables: Option<Cables>,
}

/// What hosts have of their own, beside an address and a home.
enum World {
    /// Nothing: they are this machine under other addresses.
    Shared,
    /// A disk in the place of this directory.
    Disk(PathBuf),
    /// A name that begins so, a boot and GPUs.
    Machine(&'static str),
}

struct Server {
    address: String,
    child: Option<Child>,
}

impl Hosts {
    /// So many hosts, each with a server and a home of its own.
    pub(crate) fn new(count: usize) -> Self {
        Self::with(count, World::Shared)
    }

    /// The same, on which a directory is on a disk of their own. None where that cannot be, which is said.
    pub(crate) fn with_own(count: usize, hidden: &Path) -> Option<Self> {
        let mount = "mount -t tmpfs none \"$0\"";
        let tried = Spawn::new("unshare").args(["-m", "sh", "-c", mount]).arg(hidden);
        if !proc::run(&tried).is_ok_and(|output| output.status.success()) {
            let said = writeln!(std::io::stderr(), "skipped: no mounts of our own can be made");
            said.unwrap();
            return None;
        }
        Some(Self::with(count, World::Disk(hidden.to_owned())))
    }

    /// Hosts that take themselves for machines of their own, `h1`, `h2` and so on for the name `h`, each with another
    /// boot and with four GPUs by the word of an `nvidia-smi`. None where that cannot be, which is said.
    pub(crate) fn machines(count: usize, name: &'static str) -> Option<Self> {
        let tried = Spawn::new("unshare").args(["-m", "-u", "hostname", "h0"]);
        if !proc::run(&tried).is_ok_and(|output| output.status.success()) {
            let said = writeln!(std::io::stderr(), "skipped: no namespaces can be made");
            said.unwrap();
            return None;
        }
        Some(Self::with(count, World::Machine(name)))
    }

    /// The same, each in a network of its own, which a cable joins to where `tpu` runs. None where that cannot be.
    pub(crate) fn wired(count: usize, name: &'static str) -> Option<Self> {
        let cables = Cables::new(count)?;
        drop(Self::machines(0, name)?);
        Some(Self::within(count, World::Machine(name), Some(cables)))
    }

    /// From now on each machine has a disk of its own in the place of this directory, which keeps what is on it.
    pub(crate) fn give_disks(&mut self, place: &Path) {
        std::fs::create_dir_all(place).unwrap();
        self.own = Some(place.to_owned());
        for index in 0..self.servers.len() {
            self.shut(index);
            self.begin(index);
        }
    }

    /// Lets a host be started anew as far as one can see: another boot, and nothing of before runs.
    pub(crate) fn reboot(&mut self, index: usize) {
        self.kill(index);
        write_file(&self.home(index).join("boot"), &format!("boot-{index}-after\n"));
        self.begin(index);
    }

    /// The same, when it is shut down by somebody: whatever runs is asked to end and has the time to.
    pub(crate) fn shut_down(&mut self, index: usize) {
        self.shut(index);
        for process in self.commands(index) {
            drop(procs::signal(&process, Signal::Terminate));
        }
        wait_until("what ran has ended", || self.commands(index).is_empty());
        self.reboot(index);
    }

    /// Has somebody else's process on a GPU of a machine, by the word of its `nvidia-smi`.
    pub(crate) fn occupy(&self, index: usize, gpu: u32) {
        let said = format!("GPU-{gpu}, {}\n", std::process::id());
        write_file(&self.home(index).join("apps"), &said);
    }

    fn with(count: usize, world: World) -> Self {
        Self::within(count, world, None)
    }

    fn within(count: usize, world: World, cables: Option<Cables>) -> Self {
        let dir = tempfile::Builder::new().prefix("sshd-").tempdir().unwrap();
        for key in ["host", "client"] {
            let spawn = Spawn::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]);
            let made = proc::run(&spawn.arg(dir.path().join(key))).unwrap();
            assert!(made.status.success(), "{}", made.complaint());
        }
        std::fs::copy(dir.path().join("client.pub"), dir.path().join("authorized")).unwrap();
        if rustix::process::getuid().is_root() {
            std::fs::create_dir_all("/run/sshd").unwrap();
        }
        let mut hosts = Self { dir, servers: Vec::new(), world, own: None, cables };
        for index in 0..count {
            let address = match &hosts.cables {
                None => format!("127.0.0.{}", 11 + index),
                Some(cables) => {
                    let (ip, port) = cables.address(index);
                    format!("{ip}:{port}")
                }
            };
            hosts.servers.push(Server { address, child: None });
            hosts.begin(index);
        }
        hosts
    }

    /// Below the directory of the hosts.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    /// The home of the account on a host.
    pub(crate) fn home(&self, index: usize) -> PathBuf {
        self.path(&format!("home-{index}"))
    }

    /// `127.0.0.11:40123` of each.
    pub(crate) fn addresses(&self) -> Vec<String> {
        self.servers.iter().map(|server| server.address.clone()).collect()
    }

    /// All of them as workers of one target.
    pub(crate) fn workers(&self) -> Vec<Worker> {
        Worker::all(&self.addresses())
    }

    /// The way to them.
    pub(crate) fn config(&self) -> SshConfig {
        SshConfig {
            key: Some(self.path("client").to_str().unwrap().to_owned()),
            options: self.options(),
            sockets: self.path("s"),
            known_hosts: self.path("known_hosts"),
            ..SshConfig::default()
        }
    }

    /// Words for ssh that keep it from the files of whoever runs the tests.
    pub(crate) fn options(&self) -> Vec<String> {
        let known = format!("UserKnownHostsFile={}", self.path("known_hosts").display());
        ["-F", "none", "-o", "GlobalKnownHostsFile=none", "-o", &known].map(str::to_owned).to_vec()
    }

    /// Starts the server of a host, on the port that it had, else on a free one.
    #[expect(clippy::disallowed_methods, reason = "the test ends this very server")]
    pub(crate) fn begin(&mut self, index: usize) {
        let old = self.servers[index].address.clone();
        let (ip, port) = if let Some((ip, port)) = old.split_once(':') {
            (ip.to_owned(), port.parse().unwrap())
        } else {
            let free = TcpListener::bind((old.as_str(), 0)).unwrap();
            (old.clone(), free.local_addr().unwrap().port())
        };
        let home = self.home(index);
        std::fs::create_dir_all(&home).unwrap();
        let mut path = "/usr/local/bin:/usr/bin:/bin".to_owned();
        if matches!(self.world, World::Machine(_)) {
            path = format!("{}:{path}", self.furnish(index).display());
        }
        let at = |name: &str| self.path(name).display().to_string();
        // The first of its list would take ten times as long, for secrets that nobody keeps here.
        let config = format!(
            "Port {port}\nListenAddress {ip}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\n\
             PidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             MaxStartups 1000\nMaxSessions 100\nLogLevel ERROR\nSetEnv HOME={} PATH={path}\n\
             KexAlgorithms curve25519-sha256\n",
            at("host"),
            at("authorized"),
            home.display(),
        );
        let file = self.path(&format!("sshd-{index}.conf"));
        write_file(&file, &config);
        let log = std::fs::File::create(self.path(&format!("sshd-{index}.log"))).unwrap();
        let mut command = match &self.world {
            World::Shared => Command::new(SSHD),
            World::Machine(name) => {
                let own = "hostname \"$0\" && mount --bind \"$1\" /proc/sys/kernel/random/boot_id && \
                           { [ -z \"$3\" ] || mount --bind \"$2\" \"$3\"; } && shift 3 && exec \"$@\"";
                let disk = home.join("disk");
                std::fs::create_dir_all(&disk).unwrap();
                let mut words = self.cables.as_ref().map_or_else(Vec::new, |all| all.on(index));
                words.push("unshare".to_owned());
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]);
                command.args(["-m", "-u", "sh", "-c", own, &format!("{name}{}", index + 1)]);
                let place = self.own.clone().unwrap_or_default();
                command.arg(home.join("boot")).args([disk, place]).arg(SSHD);
                command
            }
            World::Disk(hidden) => {
                let mount = "mount -t tmpfs none \"$0\" && exec \"$@\"";
                let mut command = Command::new("unshare");
                command.args(["-m", "sh", "-c", mount]).arg(hidden).arg(SSHD);
                command
            }
        };
        let mut child = command
            .args(["-D", "-e", "-f"])
            .arg(&file)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let log = self.path(&format!("sshd-{index}.log"));
        wait_until("the server listens", || {
            if let Some(status) = child.try_wait().unwrap() {
                panic!("sshd: {status}: {}", std::fs::read_to_string(&log).unwrap());
            }
            match &self.cables {
                None => std::net::TcpStream::connect((ip.as_str(), port)).is_ok(),
                // Nobody out here reaches it.
                Some(_) => cables::is_listening(child.id(), &ip, port),
            }
        });
        self.servers[index] = Server { address: format!("{ip}:{port}"), child: Some(child) };
    }

    /// What makes a host a machine of its own; the directory with its programs.
    fn furnish(&self, index: usize) -> PathBuf {
        let (home, boot) = (self.home(index), self.home(index).join("boot"));
        if !boot.is_file() {
            write_file(&boot, &format!("boot-{index}\n"));
        }
        let programs = home.join("bin");
        std::fs::create_dir_all(&programs).unwrap();
        let apps = home.join("apps");
        let driver = format!(
            "case $1 in\n\
             --query-gpu=*) for gpu in 0 1 2 3; do echo \"$gpu, GPU-$gpu, Stand-in, 0, 1, 1024, 40\"; done ;;\n\
             --query-compute-apps=*) while IFS=', ' read -r gpu pid; do\n\
             [ ! -d \"/proc/$pid\" ] || echo \"$gpu, $pid\"; done 2>/dev/null <'{}' ;;\nesac\nexit 0",
            apps.display()
        );
        write_script(&programs.join("nvidia-smi"), &driver);
        programs
    }

    /// The processes that hold the connections of a host, not what runs there.
    fn connections(&self, index: usize) -> Vec<Process> {
        let Some(child) = &self.servers[index].child else { return Vec::new() };
        let Ok(table) = Table::read() else { return Vec::new() };
        let below = table.descendants(child.id());
        below.into_iter().filter(|process| process.name.starts_with("sshd")).cloned().collect()
    }

    /// What runs on a host by our hand.
    fn commands(&self, index: usize) -> Vec<Process> {
        let Ok(table) = Table::read() else { return Vec::new() };
        let uid = rustix::process::getuid().as_raw();
        let address = &self.servers[index].address;
        table.with_variable("TPU_MACHINE", address, uid).into_iter().cloned().collect()
    }

    /// Breaks every connection to a host; it can be reached again at once.
    pub(crate) fn cut(&self, index: usize) {
        for process in self.connections(index) {
            drop(procs::signal(&process, Signal::Kill));
        }
    }

    /// Ends the server of a host and its connections; what runs there goes on.
    pub(crate) fn shut(&mut self, index: usize) {
        let connections = self.connections(index);
        if let Some(mut child) = self.servers[index].child.take() {
            drop(child.kill());
            drop(child.wait());
        }
        for process in connections {
            drop(procs::signal(&process, Signal::Kill));
        }
    }

    /// Pulls the cable of a host: connections to it stand, and no word arrives. Of hosts with a network.
    pub(crate) fn pull_cable(&self, index: usize) {
        self.cables.as_ref().unwrap().pull(index);
    }

    /// Puts it back.
    pub(crate) fn put_cable_back(&self, index: usize) {
        assert!(self.cables.as_ref().unwrap().put_back(index), "the cable of {index}");
    }

    /// The words that run a program where the hosts are reached from.
    pub(crate) fn reached_through(&self) -> Vec<String> {
        self.cables.as_ref().map_or_else(Vec::new, Cables::to_hosts)
    }

    /// Lets a host say nothing more, or go on: connections to it stand, and no new one gets an answer.
    pub(crate) fn freeze(&self, index: usize, is_frozen: bool) {
        let child = self.servers[index].child.as_ref().unwrap().id();
        let signal = if is_frozen { RawSignal::STOP } else { RawSignal::CONT };
        let all = self.connections(index).into_iter().map(|process| process.pid);
        for pid in all.chain([child]) {
            let told = kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal);
            // A connection may have ended by itself.
            assert!(matches!(told, Ok(()) | Err(rustix::io::Errno::SRCH)), "{told:?}");
        }
    }

    /// Ends a host with everything that runs there, at one stroke as a loss of power does: nothing lives to write
    /// down how another one ended.
    pub(crate) fn kill(&mut self, index: usize) {
        self.shut(index);
        let mut held = BTreeSet::new();
        // One that was begun in the meantime is found by the next look.
        let all = loop {
            let all = self.commands(index);
            if all.iter().all(|process| held.contains(&(process.pid, process.start))) {
                break all;
            }
            for process in &all {
                // One that has ended by itself since is in no later look.
                let pid = Pid::from_raw(process.pid.cast_signed()).unwrap();
                if kill_process(pid, RawSignal::STOP).is_ok() {
                    held.insert((process.pid, process.start));
                }
            }
        };
        for process in all {
            drop(procs::signal(&process, Signal::Kill));
        }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let clock = SystemClock::new();
        for index in 0..self.servers.len() {
            if let Some(cables) = &self.cables {
                // Who is connected to it is to hear of its end.
                cables.put_back(index);
            }
            self.kill(index);
        }
        // No assertion: this also runs while a failed test unwinds. Kept connections end with their hosts.
        while clock.monotonic() < Duration::from_secs(10) {
            let all = (0..self.servers.len()).flat_map(|index| self.commands(index));
            let left: Vec<Process> = all.collect();
            let kept = std::fs::read_dir(self.path("s")).map_or(0, Iterator::count);
            if left.is_empty() && kept == 0 {
                return;
            }
            for process in left {
                drop(procs::signal(&process, Signal::Kill));
            }
            clock.sleep(Duration::from_millis(5));
        }
    }
}
