//! What the README says of a Slurm cluster, typed word for word on a real one, behind a real login node.

use std::path::PathBuf;
use std::time::Duration;

use tpu::sys::clock::{Clock as _, SystemClock};
use tpu::sys::proc;

use super::cluster::{Cluster, Setup, is_installed};
use crate::common::env::{TPU, TestEnv};
use crate::common::readme::{Example, PYTHON, SLURM, examples, plain};
use crate::common::sshd::{self, Hosts};
use crate::common::tmux::{write_file, write_script};
use crate::common::wait::wait_until;

/// A newcomer with a cluster, and with what `ssh` knows of its login node.
struct Reader {
    env: TestEnv,
    home: String,
    code: PathBuf,
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
        let mut env = TestEnv::new();
        let (cluster, hosts) = (Cluster::with(Setup::default()), Hosts::new(1));
        let home = env.path("root").to_str().unwrap().to_owned();
        let code = PathBuf::from(format!("{home}/home/alice/digits"));
        std::fs::create_dir_all(&code).unwrap();
        write_file(&code.join("train.py"), include_str!("../../assets/example/train.py"));
        let bin = env.path("bin");
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(TPU, bin.join("tpu")).unwrap();
        write_script(&bin.join("python3"), PYTHON);
        let config = ssh_config(&env, &cluster, &hosts);
        write_script(&bin.join("ssh"), &format!("exec /usr/bin/ssh -F {config} \"$@\""));
        // The login node has not got the programs of this machine.
        let own = PathBuf::from(format!("{home}/home/alice/env/bin"));
        std::fs::create_dir_all(&own).unwrap();
        write_script(&own.join("python"), PYTHON);
        env.set("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
        for (name, value) in [("USER", "alice"), ("LOGNAME", "alice")] {
            env.set(name, value);
        }
        env.set("HOME", format!("{home}/home/alice"));
        env.set("SLURM_CONF", cluster.conf());
        std::fs::remove_file(env.data_path()).unwrap();
        let reader = Self { env, home, code, cluster, _hosts: hosts };
        reader.typed("tpu init --name alice");
        Some(reader)
    }

    /// Types a command in the directory of the code; what is printed.
    #[track_caller]
    fn typed(&self, command: &str) -> String {
        let spawn = self.env.spawn_program("bash", &["-c", command]).cwd(&self.code);
        let output = proc::run(&spawn).unwrap();
        let text = format!("{}\n{}", output.text(), output.complaint());
        assert!(output.status.success(), "{command}\n{text}");
        text
    }

    /// What stands in the README for what a reader has of his own.
    fn of_the_reader(&self, command: &str) -> String {
        let conf = self.cluster.conf();
        command
            .replace("/shared", &format!("{}/shared", self.home))
            // The login node of a lab knows its cluster by itself.
            .replace("--login login1", &format!("--login login1 --cluster {conf}"))
    }

    /// Types an example, and again if it is a look, until it shows what the README shows.
    #[track_caller]
    fn follow(&self, example: &Example) {
        let Example { line, command, printed, .. } = example;
        let command = self.of_the_reader(command);
        let wanted = plain(&printed.join("\n"), &self.home);
        let place = format!("README.md:{line}: {command}");
        let is_look = command.starts_with("tpu check");
        let clock = SystemClock::new();
        loop {
            let said = plain(&self.typed(&command), &self.home);
            if printed.is_empty() || said == wanted {
                return;
            }
            let is_late = clock.monotonic() > Duration::from_secs(60);
            let differs = format!("{place}\nshows\n{wanted}\nand printed\n{said}");
            assert!(is_look && !is_late, "{differs}");
            clock.sleep(Duration::from_millis(20));
        }
    }

    /// Somebody of higher rank takes all nodes, and goes again.
    fn be_preempted(&self) {
        let log = self.env.jobs("alice")[0]["log_dir"].as_str().unwrap().to_owned();
        let checkpoint = PathBuf::from(log).join("checkpoint_1/data");
        wait_until("its first checkpoint", || checkpoint.exists());
        let id = self.cluster.submit(&["--partition=high", "-N2", "--exclusive"], "sleep 1000");
        wait_until("the others have made place", || self.cluster.job(id).state == "RUNNING");
        self.env.wait_status(1, "resumed");
        self.cluster.run(&["scancel", &id.to_string()]);
    }
}

/// A configuration of ssh that knows `login1`.
fn ssh_config(env: &TestEnv, cluster: &Cluster, hosts: &Hosts) -> String {
    let address = hosts.addresses()[0].clone();
    let (ip, port) = address.split_once(':').unwrap();
    let path = env.path("ssh-config");
    let text = format!(
        "Host login1\n HostName {ip}\n Port {port}\n User {}\n IdentityFile {}\n \
         GlobalKnownHostsFile none\n",
        cluster.run(&["id", "-un"]),
        hosts.path("client").display(),
    );
    write_file(&path, &text);
    path.display().to_string()
}

#[test]
fn what_the_readme_says_of_a_cluster_is_what_happens_there() {
    let Some(reader) = Reader::new() else { return };
    let mut all = examples();
    all.retain(|example| example.section == SLURM);
    assert!(all.len() > 8, "{} examples", all.len());
    let mut looks_at_base = 0;
    for example in &all {
        if example.command == "tpu check base" {
            looks_at_base += 1;
            reader.be_preempted();
        }
        reader.follow(example);
        if example.command == "tpu check" {
            // What the text around it names.
            for line in ["tpu check 2", "tpu logs base", "tpu script base", "tpu targets"] {
                drop(reader.typed(line));
            }
            let import = reader.typed("tpu targets import --kind slurm --dry-run");
            assert!(import.contains("+ high"), "{import}");
            drop(reader.typed("tpu kill 2_7"));
        }
    }
    assert_eq!(looks_at_base, 1, "the README says how a job has come back");
    // One array, `base` and its successor, those of the group that were preempted, one through the login node.
    let jobs = reader.env.jobs("alice");
    let mut names: Vec<String> = reader.cluster.jobs().iter().map(|job| job.name.clone()).collect();
    names.retain(|name| name.starts_with("tpu-"));
    names.sort();
    names.dedup();
    assert_eq!(names.len(), jobs.len() - 9, "{names:?}\n{jobs:#?}");
}
