//! A control plane that is slow or broken holds nobody who looks: the jobs are shown, and why nothing is known
//! of their targets.

use std::io::Write as _;
use std::net::TcpListener;
use std::time::Duration;

use serde_json::json;

use tpu_core::model::facts::{TargetFact, TargetState};
use tpu_core::model::ids::TargetName;
use tpu_core::model::time::Timestamp;
use tpu_system::sys::clock::{Clock as _, SystemClock};

use crate::common::env::TestEnv;
use crate::common::server::Server;
use crate::common::tmux::write_file;

/// What is looked at: a job whose target's control plane stands at this address.
fn lab(address: &str) -> TestEnv {
    let mut env = TestEnv::new();
    let mut data = env.two_users();
    let mut record = env.record("alice", 1, "finished");
    record["tpu"] = "lab-tpuvm-v2-32-1".into();
    data["users"]["alice"]["job_data"] = json!([record]);
    env.write_data(&data);
    for (name, value) in [
        ("TPU_CLOUD", "google"),
        ("TPU_PROJECT", "lab"),
        ("TPU_CLOUD_AUTH", "none"),
        ("TPU_CLOUD_ENDPOINT", address),
    ] {
        env.set(name, value);
    }
    env
}

/// Looks at it.
fn look(address: &str) {
    let env = lab(address);
    // Each request may take a minute: without a limit of its own the command would be over time here.
    for line in ["check alice", "check-simp", "explain 1"] {
        drop(
            env.tpu(line).exits(0).says(&["no answer within 3 s; nothing was heard of it before"]),
        );
    }
}

#[test]
fn one_that_accepts_and_never_answers() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    look(&format!("http://{}", silent.local_addr().unwrap()));
}

#[test]
fn what_monitor_has_heard_is_told_with_its_age() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", silent.local_addr().unwrap());
    let env = lab(&address);
    let an_hour_ago = Timestamp::from_second(SystemClock::new().now().as_second() - 3_700);
    let name = TargetName::new("lab-tpuvm-v2-32-1");
    let heard = TargetFact::new(name, TargetState::Ready, "READY", an_hour_ago);
    let cloud = format!("google, project lab at {address}");
    let kept = |cloud: &str| json!({ "providers": { cloud: [heard] } }).to_string();
    std::fs::create_dir_all(env.path("tpu-state")).unwrap();
    write_file(&env.path("tpu-state/heard.json"), &kept(&cloud));
    drop(env.tpu("check alice").exits(0).says(&["within 3 s; what is known is 1h 01m old"]));
    // What another control plane has said is no word about these targets; nor is what nobody can read.
    for other in [kept("google, project other"), "{".to_owned()] {
        write_file(&env.path("tpu-state/heard.json"), &other);
        drop(env.tpu("check alice").exits(0).says(&["nothing was heard of it before"]));
    }
}

#[test]
fn one_that_dribbles() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let (mut stream, clock) = (stream, SystemClock::new());
                let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
                let mut goes_on = stream.write_all(head).is_ok();
                while goes_on {
                    goes_on = stream.write_all(b" ").is_ok();
                    clock.sleep(Duration::from_millis(50));
                }
            });
        }
    });
    look(&address);
}

#[test]
fn one_that_is_overloaded() {
    let server = Server::new(|_| Some((503, "{}".to_owned())));
    look(&server.url());
}
