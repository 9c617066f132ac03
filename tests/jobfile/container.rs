//! A container of a real engine: the command has its variables, its words and its directory in it, its exit code is that of
//! the job, and it ends with the job.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;

use crate::common::env::{TestEnv, lives, wait_gone};
use crate::common::tmux::{write_file, write_script};
use crate::common::wait::wait_until;

use tpu_system::sys::procs::Process;

const PODMAN: &str = "/usr/bin/podman";
const RUNC: &str = "/usr/sbin/runc";

/// A small tree with a shell, as an image.
const MAKE_IMAGE: &str = r#"set -e
mkdir -p "$HOME"/root/{tmp,proc,dev,sys,etc}
for program in bash sh cat sleep env; do
    path=$(command -v "$program")
    mkdir -p "$HOME/root/bin"
    cp -L "$path" "$HOME/root/bin/$program"
    for library in $(ldd "$path" | grep -oE '/[^ ]+\.so[^ ]*'); do
        mkdir -p "$HOME/root$(dirname "$library")"
        cp -Ln "$library" "$HOME/root$library"
    done
done
tar -C "$HOME/root" -c . | docker import -q - lab/image:1
"#;

/// Shell text that stays until it is told to save.
const STAYS: &str = "  trap 'echo told > /shared/told; exit 0' USR1\n  : > /shared/began\n  while :; do sleep 0.3; done\n";

/// A place with an engine. None of its containers is left behind.
struct Engine {
    env: TestEnv,
}

impl Drop for Engine {
    fn drop(&mut self) {
        drop(self.env.output(&self.env.spawn_program("docker", &["rm", "-f", "-a"])));
    }
}

/// An engine with an image, as `docker`; `None` where there is none, which is said.
fn engine() -> Option<Engine> {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    if !Path::new(PODMAN).exists() || !Path::new(RUNC).exists() {
        drop(writeln!(std::io::stderr(), "skipped: there is no {PODMAN} with {RUNC}"));
        return None;
    }
    // What it keeps is the test's; it asks for no more than whoever runs the test has.
    let conf = "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=4096:4096\"]\nnetns = \"none\"\n";
    write_file(&env.path("containers.conf"), conf);
    std::fs::create_dir_all(env.path("bin")).unwrap();
    let of = |below: &str| env.path(below).display().to_string();
    let script = format!(
        "#!/bin/bash\nexport CONTAINERS_CONF={}\nexec {PODMAN} --runtime {RUNC} --cgroup-manager cgroupfs --storage-driver vfs \
         --root {} --runroot {} --tmpdir {} \"$@\"\n",
        of("containers.conf"),
        of("store"),
        of("run"),
        of("engine"),
    );
    write_script(&env.path("bin/docker"), &script);
    let path = env.variables()[OsStr::new("PATH")].to_str().unwrap().to_owned();
    env.set("PATH", format!("{}:{path}", env.path("bin").display()));
    drop(env.output(&env.spawn_program("bash", &["-c", MAKE_IMAGE])).exits(0));
    let tried = env.output(
        &env.spawn_program("docker", &["run", "--rm", "lab/image:1", "sh", "-c", "exit 7"]),
    );
    if tried.code != 7 {
        drop(writeln!(std::io::stderr(), "skipped: no container can be run: {}", tried.stderr));
        return None;
    }
    Some(Engine { env })
}

fn run(env: &TestEnv, command: &str) {
    let text = format!(
        "target: local\nenv: {{PLAIN: \"it's\"}}\nsetup:\n  - docker: {{image: 'lab/image:1', mounts: ['{}:/shared'], \
         workdir: /tmp}}\ncommand: |\n{command}",
        env.path("shared").display(),
    );
    write_file(&env.path("job.yaml"), &text);
    drop(env.tpu("run job.yaml -q").exits(0));
}

fn containers(env: &TestEnv) -> String {
    env.output(&env.spawn_program("docker", &["ps", "-a", "-q"])).exits(0).stdout
}

#[test]
fn a_command_in_a_real_container_is_as_it_is_outside() {
    let Some(engine) = engine() else { return };
    let env = &engine.env;
    std::fs::create_dir_all(env.path("shared")).unwrap();
    run(
        env,
        "  printf '%s|' \"$PLAIN\" '$HOME' \"two\n  lines\" \"$PWD\"; [ ! -e /usr/bin ] || exit 1\n  exit 7\n",
    );
    let job = env.wait_status(1, "error");
    assert_eq!(job["extra_msgs"]["launch"]["exit"], 7, "{job}");
    let said = env.tpu("logs 1").exits(0).stdout;
    assert!(said.contains("it's|$HOME|two\nlines|/tmp|"), "{said}");
    wait_until("its container is gone", || containers(env).is_empty());

    // A kill ends all of it.
    run(env, STAYS);
    wait_until("it is at work in its container", || env.path("shared/began").exists());
    let inspect = ["inspect", "-f", "{{.State.Pid}}", containers(env).trim()].map(str::to_owned);
    let pid = env.output(&env.spawn_program("docker", &inspect)).exits(0).stdout;
    let process = Process::read(pid.trim().parse().unwrap()).unwrap();
    assert!(lives(&process));
    drop(env.tpu("kill 2 -y").exits(0));
    wait_gone(&process);
    wait_until("its container is gone", || containers(env).is_empty());

    // A signal arrives inside.
    std::fs::remove_file(env.path("shared/began")).unwrap();
    drop(env.tpu("set-settings checkpoint_signal USR1").exits(0));
    run(env, STAYS);
    wait_until("it is at work in its container", || env.path("shared/began").exists());
    drop(env.tpu("requeue 3 --hold -y").exits(0));
    assert!(env.path("shared/told").exists());
    wait_until("its container is gone", || containers(env).is_empty());
}
