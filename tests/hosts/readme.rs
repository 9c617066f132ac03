//! What the README says of one's own machines, typed word for word on real ones behind real servers of ssh.

use std::path::PathBuf;
use std::time::Duration;

use tpu::sys::clock::{Clock as _, SystemClock};
use tpu::sys::proc;

use crate::common::env::{TPU, TestEnv};
use crate::common::readme::{Example, HOSTS, PYTHON, examples, plain};
use crate::common::sshd::{Hosts, is_installed};
use crate::common::tmux::{write_file, write_script};

/// A newcomer with three machines that `ssh` knows.
struct Reader {
    env: TestEnv,
    home: String,
    code: PathBuf,
    /// End after whoever has connections to them.
    _hosts: Hosts,
}

impl Reader {
    /// None where a program is missing.
    fn new() -> Option<Self> {
        let hosts = is_installed().then(|| Hosts::machines(3, "gpu")).flatten()?;
        let mut env = TestEnv::new();
        let home = env.path("root").to_str().unwrap().to_owned();
        let code = PathBuf::from(format!("{home}/home/alice/digits"));
        std::fs::create_dir_all(&code).unwrap();
        write_file(&code.join("train.py"), include_str!("../../assets/example/train.py"));
        let bin = env.path("bin");
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(TPU, bin.join("tpu")).unwrap();
        let config = ssh_config(&env, &hosts);
        write_script(&bin.join("ssh"), &format!("exec /usr/bin/ssh -F {config} \"$@\""));
        for index in 0..3 {
            // Furnished with their GPUs already.
            let python = format!("[ \"$1\" != -V ] || exec echo Python 3.11.2\n{PYTHON}");
            write_script(&hosts.home(index).join("bin/python3"), &python);
        }
        env.set("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
        for (name, value) in [("USER", "alice"), ("LOGNAME", "alice")] {
            env.set(name, value);
        }
        env.set("HOME", format!("{home}/home/alice"));
        env.set("TPU_SSH_DIR", hosts.path("s"));
        std::fs::remove_file(env.data_path()).unwrap();
        let reader = Self { env, home, code, _hosts: hosts };
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

    /// Types an example, and again if it is a look, until it shows what the README shows.
    #[track_caller]
    fn follow(&self, example: &Example) {
        let Example { line, command, printed, .. } = example;
        let wanted = plain(&printed.join("\n"), &self.home);
        let clock = SystemClock::new();
        loop {
            let said = plain(&self.typed(command), &self.home);
            if printed.is_empty() || said == wanted {
                return;
            }
            let is_late = clock.monotonic() > Duration::from_secs(60);
            let is_look = command.starts_with("tpu check") || command == "tpu hosts";
            let differs =
                format!("README.md:{line}: {command}\nshows\n{wanted}\nand printed\n{said}");
            assert!(is_look && !is_late, "{differs}");
            clock.sleep(Duration::from_millis(20));
        }
    }
}

/// A configuration of ssh that knows `gpu1` to `gpu3`.
fn ssh_config(env: &TestEnv, hosts: &Hosts) -> String {
    let path = env.path("ssh-config");
    let one = |(number, address): (usize, String)| {
        let (ip, port) = address.split_once(':').unwrap();
        format!(
            "Host gpu{number}\n HostName {ip}\n Port {port}\n IdentityFile {}\n GlobalKnownHostsFile none\n",
            hosts.path("client").display()
        )
    };
    let text: String = (1..).zip(hosts.addresses()).map(one).collect();
    write_file(&path, &text);
    path.display().to_string()
}

#[test]
fn what_the_readme_says_of_ones_own_machines_is_what_happens_there() {
    let Some(reader) = Reader::new() else { return };
    let mut all = examples();
    all.retain(|example| example.section == HOSTS);
    assert!(all.len() > 5, "{} examples", all.len());
    for example in &all {
        reader.follow(example);
    }
    // What the text around them names.
    for line in ["tpu hosts probe lab", "tpu hosts detect gpu1", "tpu hosts show gpu2", "tpu pools"]
    {
        drop(reader.typed(line));
    }
}
