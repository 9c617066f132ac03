//! What docs/slurm.md says of a Slurm cluster, typed word for word on a real one, behind a real login node.

use std::path::PathBuf;

use super::cluster::{Cluster, Setup, is_installed};
use crate::common::readme::{Example, Newcomer, PYTHON, Page};
use crate::common::sshd::{self, Hosts};
use crate::common::tmux::write_script;
use crate::common::wait::wait_until;

/// A newcomer with a cluster, and with what `ssh` knows of its login node.
struct Reader {
    of: Newcomer,
    cluster: Cluster,
    /// Ends after whoever has connections to it.
    _hosts: Hosts,
}

impl Reader {
    /// None where a program is missing.
    fn new() -> Option<Self> {
        if !is_installed() || !sshd::is_installed() {
            return None;
        }
        let (cluster, hosts) = (Cluster::with(Setup::default()), Hosts::new(1));
        let mut of = Newcomer::new(&ssh_config(&cluster, &hosts));
        write_script(&of.bin.join("python3"), PYTHON);
        // The login node has not got the programs of this machine.
        let own = PathBuf::from(format!("{}/home/alice/env/bin", of.home));
        std::fs::create_dir_all(&own).unwrap();
        write_script(&own.join("python"), PYTHON);
        of.env.set("SLURM_CONF", cluster.conf());
        of.typed("tpu init --name alice");
        Some(Self { of, cluster, _hosts: hosts })
    }

    /// A command of the page, with the places and the cluster of this reader.
    fn of_the_reader(&self, command: &str) -> String {
        let conf = self.cluster.conf();
        command
            .replace("/shared", &format!("{}/shared", self.of.home))
            // The login node of a lab knows its cluster by itself.
            .replace("--login login1", &format!("--login login1 --cluster {conf}"))
    }

    /// Types an example until it prints what the page shows.
    #[track_caller]
    fn follow(&self, example: &Example) {
        self.of.follow(example, &self.of_the_reader(&example.command));
    }

    /// Somebody of higher rank takes all nodes, and goes again.
    fn be_preempted(&self) {
        let log = self.of.env.jobs("alice")[0]["log_dir"].as_str().unwrap().to_owned();
        let checkpoint = PathBuf::from(log).join("checkpoint_1/data");
        wait_until("its first checkpoint", || checkpoint.exists());
        let id = self.cluster.submit(&["--partition=high", "-N2", "--exclusive"], "sleep 1000");
        wait_until("the others have made place", || self.cluster.job(id).state == "RUNNING");
        self.of.env.wait_status(1, "resumed");
        self.cluster.run(&["scancel", &id.to_string()]);
    }
}

/// A configuration of ssh that knows `login1`.
fn ssh_config(cluster: &Cluster, hosts: &Hosts) -> String {
    let address = hosts.addresses()[0].clone();
    let (ip, port) = address.split_once(':').unwrap();
    format!(
        "Host login1\n HostName {ip}\n Port {port}\n User {}\n IdentityFile {}\n \
         GlobalKnownHostsFile none\n",
        cluster.run(&["id", "-un"]),
        hosts.path("client").display(),
    )
}

#[test]
fn what_the_page_says_of_a_cluster_is_what_happens_there() {
    let Some(reader) = Reader::new() else { return };
    let page = Page::with(9, "docs/slurm.md");
    let mut looks_at_base = 0;
    for example in &page.examples() {
        if example.command == "tpu check base" {
            looks_at_base += 1;
            reader.be_preempted();
        }
        reader.follow(example);
        if example.command == "tpu check" {
            // What the text around it names.
            for line in ["tpu check 2", "tpu logs base", "tpu script base", "tpu targets"] {
                drop(reader.of.typed(line));
            }
            let import = reader.of.typed("tpu targets import --kind slurm --dry-run");
            assert!(import.contains("+ high"), "{import}");
            drop(reader.of.typed("tpu kill 2_7"));
        }
    }
    assert_eq!(looks_at_base, 1, "the page says how a job has come back");
    // One array, `base` and its successor, one through the login node.
    let jobs = reader.of.env.jobs("alice");
    let mut names: Vec<String> = reader.cluster.jobs().iter().map(|job| job.name.clone()).collect();
    names.retain(|name| name.starts_with("tpu-"));
    names.sort();
    names.dedup();
    assert_eq!(names.len(), jobs.len() - 9, "{names:?}\n{jobs:#?}");
}
