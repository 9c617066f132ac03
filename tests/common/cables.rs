//! A network of a test's own: a namespace for its commands, and one for each host, which a cable joins to it. Nothing of
//! it is to be seen outside, and all of it is gone with the test, however that ends.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tpu_system::sys::proc::{self, Spawn};

/// The programs that make it (iproute2, util-linux).
const IP: &str = "/usr/sbin/ip";
const NSENTER: &str = "/usr/bin/nsenter";

/// A namespace, held by a program that ends with the test: its input does.
struct Namespace(Child);

impl Namespace {
    #[expect(clippy::disallowed_methods, reason = "the test ends this very program")]
    fn new() -> Option<Self> {
        let held = format!("{IP} link set lo up && echo up && exec cat");
        let mut child = Command::new("unshare")
            .args(["-n", "sh", "-c", &held])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut said = String::new();
        let heard = BufReader::new(child.stdout.take()?).read_line(&mut said);
        let namespace = Self(child);
        (heard.is_ok() && said == "up\n").then_some(namespace)
    }

    /// The words that run a program there.
    fn inside(&self) -> Vec<String> {
        vec![NSENTER.to_owned(), format!("--net=/proc/{}/ns/net", self.0.id()), "--".to_owned()]
    }

    /// Does these things there, one on each line as `ip` takes them; whether all were done.
    fn ip(&self, lines: &str) -> bool {
        let words = self.inside();
        let spawn = Spawn::new(&words[0]).args(words[1..].iter().cloned());
        let spawn = spawn.args([IP, "-batch", "-"]).stdin(lines);
        proc::run(&spawn).is_ok_and(|output| output.status.success())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The network.
pub(crate) struct Cables {
    hub: Namespace,
    hosts: Vec<Namespace>,
}

impl Cables {
    /// Joins so many hosts. None where that cannot be.
    pub(crate) fn new(count: usize) -> Option<Self> {
        if ![IP, NSENTER].iter().all(|program| Path::new(program).is_file()) {
            return None;
        }
        let mut cables = Self { hub: Namespace::new()?, hosts: Vec::new() };
        for index in 0..count {
            let host = Namespace::new()?;
            let (hub, own) = (cables.ip(None), cables.ip(Some(index)));
            let cable = format!("v{index}");
            let there = cables.hub.ip(&format!(
                "link add {cable} type veth peer name eth0 netns {}\n\
                 addr add {hub} peer {own} dev {cable}\nlink set {cable} up\n",
                host.0.id()
            ));
            let here = host.ip(&format!("addr add {own} peer {hub} dev eth0\nlink set eth0 up\n"));
            cables.hosts.push(host);
            (there && here).then_some(())?;
        }
        Some(cables)
    }

    /// The address of a host, or of where the commands run. What runs on hosts is found by it, so that no other
    /// test's may be the same.
    fn ip(&self, host: Option<usize>) -> String {
        let last = host.map_or(1, |index| index + 11);
        format!("10.{}.{}.{last}", self.hub.0.id() >> 8 & 0xff, self.hub.0.id() & 0xff)
    }

    /// The same with a port.
    pub(crate) fn address(&self, host: usize) -> (String, u16) {
        let high = u16::try_from(self.hub.0.id() >> 16).unwrap_or_default();
        (self.ip(Some(host)), 2200 + high)
    }

    /// The words that run a program where hosts can be reached from.
    pub(crate) fn to_hosts(&self) -> Vec<String> {
        self.hub.inside()
    }

    /// The words that run a program on a host.
    pub(crate) fn on(&self, host: usize) -> Vec<String> {
        self.hosts[host].inside()
    }

    /// Pulls the cable of a host. Nobody is told: what is sent is lost.
    pub(crate) fn pull(&self, host: usize) {
        assert!(self.hosts[host].ip("link set eth0 down\n"), "the cable of {host}");
    }

    /// Puts it back, if it was pulled.
    pub(crate) fn put_back(&self, host: usize) -> bool {
        self.hosts[host].ip("link set eth0 up\n")
    }
}

/// Whether a process or anybody in its network listens at an address.
pub(crate) fn is_listening(pid: u32, ip: &str, port: u16) -> bool {
    let bytes: Vec<u8> = ip.split('.').map(|byte| byte.parse().unwrap()).collect();
    let place = format!("{:08X}:{port:04X}", u32::from_le_bytes(bytes.try_into().unwrap()));
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
    // The second field is the place, and the fourth the state: 0A listens (proc_net_tcp).
    table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .any(|fields| matches!(fields[..], [_, at, _, "0A", ..] if at == place))
}
