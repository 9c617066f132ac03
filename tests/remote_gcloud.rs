//! Workers behind `gcloud compute tpus tpu-vm ssh`, which runs a command again, up to ten times, when the
//! connection breaks: behind the real one, which asks `tpu sim serve` where they are, and everywhere behind a
//! stand-in that does what was measured of it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tpu::model::ids::LaunchToken;
use tpu::remote::gcloud::{self, GcloudConfig};
use tpu::remote::{Ask, End, Said, Started, Worker};

use crate::cloud_gcloud::serve;
use crate::common::env::TestEnv;
use crate::common::remote::Bench;
use crate::common::sshd::{Hosts, is_installed};
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

/// Where gcloud is, or nothing where it is not installed, which is said.
fn installed() -> Option<String> {
    let env = tpu::sys::env::Env::read();
    let path = env.var("PATH").unwrap_or_default();
    let found = path.split(':').map(|dir| format!("{dir}/gcloud"));
    found.into_iter().find(|file| Path::new(file).is_file())
}

/// What was measured of one worker (reference of gcloud, 2.8): ssh without a time-out of its own, and after
/// its exit code 255 the same command again, ten times in all, five seconds apart.
const STAND_IN: &str = r#"#!/bin/bash
flags=() place= key= command=
for word in "${@:5}"; do
  case $word in
    --ssh-key-file=*) key=${word#*=} ;;
    --ssh-flag=*) flags+=("${word#*=}") ;;
    --command=*) command=${word#*=} ;;
    --*) ;;
    *) place=$word ;;
  esac
done
for try in 1 2 3 4 5 6 7 8 9 10; do
  echo "SSH: Attempting to connect to worker 0..." >&2
  ssh -T -i "$key" -oStrictHostKeyChecking=no -oUserKnownHostsFile=/dev/null "${flags[@]}" "$place" -- "$command"
  code=$?
  [ $code -eq 255 ] || exit $code
  [ $try -lt 10 ] || break
  echo "Retrying: SSH command error: [/usr/bin/ssh] exited with return code [255]." >&2
  sleep 5
done
echo "ERROR: (gcloud.compute.tpus.tpu-vm.ssh) [/usr/bin/ssh] exited with return code [255]." >&2
exit 255
"#;

/// A program from its text.
fn write_script_as_is(path: &Path, text: &str) {
    write_file(path, text);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_the_real_gcloud_runs_again_is_started_once() {
    let Some(gcloud) = installed() else {
        eprintln!("skipped: gcloud is not installed");
        return;
    };
    if !is_installed() {
        return;
    }
    let hosts = Hosts::new(1);
    let env = TestEnv::new();
    drop(env.tpu("register n1 --zone us-central1-a --type v2-8").exits(0));
    drop(env.tpu("sim ready n1").exits(0));
    let served = serve(&env);
    // gcloud is as it is installed; its answers come from us, and its ssh is led to our host.
    let script = format!(
        "#!/bin/bash\nexport HOME='{home}'\n\
         export CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU='{tpu}'\n\
         export CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE='{compute}/compute/v1/'\n\
         export CLOUDSDK_AUTH_DISABLE_CREDENTIALS=true CLOUDSDK_CORE_PROJECT=lab\n\
         export CLOUDSDK_CORE_DISABLE_PROMPTS=1 CLOUDSDK_CORE_DISABLE_USAGE_REPORTING=true\n\
         export CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK=true\n\
         export CLOUDSDK_CONFIG='{home}/gcloud'\n\
         exec {gcloud} \"$@\"\n",
        home = env.root(),
        tpu = served.endpoint,
        compute = served.endpoint.trim_end_matches('/'),
    );
    started_once(&env, &hosts, &script);
}

#[test]
fn what_a_stand_in_runs_again_is_started_once() {
    if is_installed() {
        started_once(&TestEnv::new(), &Hosts::new(1), STAND_IN);
    }
}

/// A job over a connection that is cut, and a command that is not let to run twice, with this gcloud.
fn started_once(env: &TestEnv, hosts: &Hosts, gcloud: &str) {
    let program = env.path("gcloud-here");
    write_script_as_is(&program, gcloud);
    std::fs::create_dir_all(env.path(".ssh")).unwrap();
    let (ip, port) =
        hosts.addresses()[0].split_once(':').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let config = GcloudConfig {
        program: Some(program.to_str().unwrap().to_owned()),
        target: "n1".to_owned(),
        zone: Some("us-central1-a".to_owned()),
        project: Some("lab".to_owned()),
        user: Some("root".to_owned()),
        key: Some(hosts.path("client").to_str().unwrap().to_owned()),
        options: ["-F", "none", &format!("-oHostname={ip}"), "-p", &port]
            .map(str::to_owned)
            .to_vec(),
    };
    let workers = vec![Worker { index: 0, address: hosts.addresses()[0].clone() }];
    let bench = Bench { remote: gcloud::open(config), dir: hosts.path("") };
    let asked = bench.ask(&workers, &Ask { command: "echo hello  x; exit 3".into(), input: None });
    assert_eq!((asked[&0].0.as_str(), &asked[&0].2), ("hello x\n", &End::Exit(3)), "{asked:?}");

    let token = LaunchToken::from("t1");
    let work = bench.script(
        "echo x >>\"$GO.count\"; for i in {1..40}; do echo line $i; sleep 0.05; done; \
         until [ -e \"$GO\" ]; do sleep 0.02; done; echo over",
    );
    assert_eq!(bench.start(&workers, &work, "t1").remove(0).unwrap(), Started::New);
    let (mut text, mut from, mut cuts) = (String::new(), BTreeMap::new(), 0);
    let end = loop {
        let mut end = None;
        for (worker, said) in bench.remote.follow(&workers, &token, &from.clone()) {
            match said {
                Said::Line { bytes, end } => {
                    text += &String::from_utf8(bytes).unwrap();
                    from.insert(worker, end);
                    if text.contains("line 10\n") && cuts == 0 {
                        cuts += 1;
                        hosts.cut(0);
                    }
                }
                Said::End(how) => end = Some(how),
            }
            if text.contains("line 40\n") {
                write_file(&bench.go(), "");
            }
        }
        match end.unwrap() {
            End::Lost(_) => {
                let again = bench.start(&workers, &work, "t1").remove(0);
                assert_eq!(again.unwrap(), Started::Already);
            }
            End::Exit(code) => break code,
        }
    };
    assert_eq!((end, cuts), (0, 1));
    let lines: Vec<String> = (1..=40).map(|i| format!("line {i}")).chain(["over".into()]).collect();
    assert_eq!(text.lines().collect::<Vec<_>>(), lines);
    let count = || std::fs::read_to_string(bench.go().with_extension("count")).unwrap();
    assert_eq!(count(), "x\n", "started once");

    // A command that dies of a signal is one that gcloud runs again: it is not let.
    let ask = "echo x >>~/asked; kill -9 $PPID; sleep 60";
    let asked = bench.ask(&workers, &Ask { command: ask.into(), input: None });
    assert!(matches!(asked[&0].2, End::Lost(_)), "{asked:?}");
    wait_until("it was noted", || hosts.home(0).join("asked").exists());
    assert_eq!(std::fs::read_to_string(hosts.home(0).join("asked")).unwrap(), "x\n");
}
