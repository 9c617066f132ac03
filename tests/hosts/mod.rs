//! A lab's own machines: made known by patterns, chosen by policies, given out slot by slot.
//!
//! slow: real machines behind sshd; who is silent is waited for until it counts as gone.

mod add;
mod between;
mod choose;
mod elsewhere;
mod figures;
mod gpus;
mod leaving;
mod lost;
mod meant;
mod own_way;
mod proof;
mod pyenv;
mod readme;
mod shared;
mod shells;
mod variables;

use std::io::Write as _;

use serde_json::{Value, json};

use crate::common::env::TestEnv;
use crate::common::sshd::{Hosts, is_installed};
use crate::common::tmux::write_file;

/// Real machines of somebody's own, and a `tpu` that reaches them.
pub(crate) struct Lab {
    pub(crate) env: TestEnv,
    pub(crate) hosts: Hosts,
}

impl Lab {
    /// So many machines, none of them known yet. None where there can be none, which is said.
    pub(crate) fn new(count: usize) -> Option<Self> {
        Some(Self::of(is_installed().then(|| Hosts::machines(count, "h")).flatten()?))
    }

    /// The same as [`Lab::with`], each machine behind a cable. None where that cannot be, which is said.
    pub(crate) fn wired(count: usize, limits: &str) -> Option<Self> {
        let lab = Self::perhaps_wired(count, limits);
        if lab.is_none() {
            let said = writeln!(std::io::stderr(), "skipped: no networks of our own can be made");
            said.unwrap();
        }
        lab
    }

    /// The same, and nothing is said.
    pub(crate) fn perhaps_wired(count: usize, limits: &str) -> Option<Self> {
        let lab = Self::of(is_installed().then(|| Hosts::wired(count, "h")).flatten()?);
        drop(lab.add(&format!("h[1-{count}] {limits}")).exits(0));
        Some(lab)
    }

    fn of(hosts: Hosts) -> Self {
        let mut env = TestEnv::new();
        env.run_through(hosts.reached_through());
        env.set("TPU_USER", "alice");
        env.set("TPU_SSH_DIR", hosts.path("s"));
        let settings = json!({ "ssh_options": hosts.options(), "ssh_key": hosts.path("client") });
        write_file(&env.path("settings.json"), &settings.to_string());
        env.set("TPU_SETTINGS", env.path("settings.json"));
        Self { env, hosts }
    }

    /// The same, with all of them known as `h1`, `h2` and so on.
    pub(crate) fn with(count: usize, limits: &str) -> Option<Self> {
        let lab = Self::new(count)?;
        drop(lab.add(&format!("h[1-{count}] {limits}")).exits(0));
        Some(lab)
    }

    /// `hosts add` with the addresses of all machines.
    pub(crate) fn add(&self, said: &str) -> crate::common::output::CommandOutput {
        let addresses = self.hosts.addresses().join(",");
        self.env.tpu(&format!("hosts add {said} --address {addresses} --json"))
    }

    /// What `hosts` says of one.
    pub(crate) fn host(&self, name: &str) -> Value {
        self.env.tpu(&format!("hosts list {name} --json")).exits(0).json()["hosts"][0].clone()
    }
}
