//! Workers behind `gcloud compute tpus tpu-vm ssh`, which runs a command again, up to ten times, when the
//! connection breaks: behind the real one, which asks `tpu sim serve` where they are, and everywhere behind a
//! stand-in that does what was measured of it.

use std::collections::BTreeMap;
use std::path::Path;

use tpu_core::model::ids::LaunchToken;
use tpu_system::remote::gcloud::{self, GcloudConfig};
use tpu_system::remote::{Ask, End, Output, Started, Upload, Worker};

use crate::common::env::TestEnv;
use crate::common::remote::{Bench, gcloud_here, workers, write_program};
use crate::common::sshd::{Hosts, is_installed};
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;
use crate::providers::gcloud::serve;

/// Where gcloud is, or nothing where it is not installed, which is said.
fn installed() -> Option<String> {
    let env = tpu_system::sys::env::Env::read();
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
    write_program(&program, gcloud);
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
    let asked =
        bench.ask(&workers, &Ask { command: "echo hello  x; exit 3".into(), ..Ask::default() });
    assert_eq!((asked[&0].0.as_str(), &asked[&0].2), ("hello x\n", &End::Exit(3)), "{asked:?}");

    let token = LaunchToken::from("t1");
    let work = bench.script(
        "echo x >>\"$GO.count\"; for i in {1..40}; do echo line $i; sleep 0.05; done; \
         until [ -e \"$GO\" ]; do sleep 0.4; done; echo over",
    );
    assert_eq!(bench.start(&workers, &work, "t1").remove(0).unwrap(), Started::New);
    let (mut text, mut from, mut cuts) = (String::new(), BTreeMap::new(), 0);
    let end = loop {
        let mut end = None;
        for (worker, said) in bench.remote.follow(&workers, &token, &from.clone()) {
            match said {
                Output::Line { bytes, end } => {
                    text += &String::from_utf8(bytes).unwrap();
                    from.insert(worker, end);
                    if text.contains("line 10\n") && cuts == 0 {
                        cuts += 1;
                        hosts.cut(0);
                    }
                }
                Output::End(how) => end = Some(how),
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
    let asked = bench.ask(&workers, &Ask { command: ask.into(), ..Ask::default() });
    assert!(matches!(asked[&0].2, End::Lost(_)), "{asked:?}");
    wait_until("it was noted", || hosts.home(0).join("asked").exists());
    assert_eq!(std::fs::read_to_string(hosts.home(0).join("asked")).unwrap(), "x\n");
}

/// How a shell command ends by way of a gcloud that does so with it.
fn ended(body: &str, command: &str) -> (String, String, End) {
    let dir = tempfile::tempdir().unwrap();
    let bench = gcloud_here(dir.path(), body);
    let ask = Ask { command: command.to_owned(), ..Ask::default() };
    bench.ask(&workers(1), &ask).remove(&0).unwrap()
}

#[test]
fn an_exit_code_is_believed_when_the_worker_has_said_it() {
    for code in [0, 1, 2, 7, 255] {
        let (out, err, end) = ended("bash -c \"$command\"", &format!("echo x; exit {code}"));
        assert_eq!((out.as_str(), err.as_str(), end), ("x\n", "", End::Exit(code)));
    }
    // gcloud answers 0 for what has failed, and fails of its own where nothing has.
    let (_, err, end) = ended("bash -c \"$command\"; exit 0", "printf half >&2; exit 3");
    assert_eq!((err.as_str(), end), ("half", End::Exit(3)));
    assert_eq!(ended("bash -c \"$command\"; exit 1", "exit 7").2, End::Exit(7));
    let not_found = "echo 'ERROR: (gcloud.compute.tpus.tpu-vm.ssh) NOT_FOUND: n1' >&2; exit 1";
    let (_, _, end) = ended(not_found, "true");
    assert!(matches!(&end, End::Lost(why) if why.contains("NOT_FOUND: n1")), "{end:?}");
    assert!(matches!(ended("exit 0", "true").2, End::Lost(_)));
    let (out, _, end) = ended("bash -c \"$command\"; exit 2", "echo x; kill -9 $$");
    assert!(out == "x\n" && matches!(end, End::Lost(_)), "{out}{end:?}");
    // It may be the shell of the worker that says 255, and the connection after the worker has spoken.
    assert!(matches!(ended("bash -c \"$command\"; exit 255", "true").2, End::Lost(_)));
    let (_, err, end) = ended("bash -c \"$command\"", "echo tpu: exit 0 >&2; kill -9 $$");
    assert!(err.starts_with("tpu: exit 0\n") && matches!(end, End::Lost(_)), "{err}{end:?}");
}

#[test]
fn what_a_second_run_reads_is_never_taken_for_a_script() {
    let dir = tempfile::tempdir().unwrap();
    let again = "head -c 120000 | bash -c \"$command\" >/dev/null 2>&1\n\
        echo 'Retrying: SSH command error: [/usr/bin/ssh] exited with return code [255].' >&2\n\
        echo >>again; bash -c \"$command\"";
    let bench = gcloud_here(dir.path(), again);
    let bytes = "\ntouch ~/taken-for-a-script\n".repeat(20_000).into_bytes();
    let upload = Upload { path: "~/file".into(), mode: 0o600, bytes };
    let kept = bench.remote.put(&workers(1), &upload).remove(0).1;
    assert!(kept.is_err());
    assert!(dir.path().join("again").exists(), "it was run again");
    let left: Vec<_> = std::fs::read_dir(dir.path().join("home")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    // One of which the first run has read nothing is as good as the first.
    let late = gcloud_here(dir.path(), "echo Retrying: >&2; bash -c \"$command\"");
    late.remote.put(&workers(1), &upload).remove(0).1.unwrap();
    let file = std::fs::read(dir.path().join("home/file")).unwrap();
    assert!(file == upload.bytes);
}

#[test]
fn at_most_32_connections_are_opened_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("alive")).unwrap();
    let body = "echo >alive/$$; ls alive | wc -l >>most; echo >>starts\n\
        until [ $(wc -l <starts) -ge 32 ]; do sleep 0.4; done\nbash -c \"$command\"; rm alive/$$";
    let bench = gcloud_here(dir.path(), body);
    for (worker, kept) in bench.remote.probe(&workers(48)) {
        assert_eq!(kept.unwrap(), [], "{worker}");
    }
    let most = std::fs::read_to_string(dir.path().join("most")).unwrap();
    let most: Vec<u32> = most.lines().map(|line| line.trim().parse().unwrap()).collect();
    assert!(most.len() == 48 && most.iter().all(|count| *count <= 32), "{most:?}");
    // Those that stand keep no other from being opened: here each waits for all.
    let command = "echo >>here; until [ $(wc -l <here) -ge 40 ]; do sleep 0.4; done";
    let ends = bench.ask(&workers(40), &Ask { command: command.to_owned(), ..Ask::default() });
    assert!(ends.values().all(|(_, _, end)| *end == End::Exit(0)), "{ends:?}");
}
