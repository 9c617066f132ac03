//! A control plane that is slow or broken holds nobody who looks: the jobs are shown, and why nothing is known
//! of their targets.

use std::io::Write as _;
use std::net::TcpListener;
use std::time::Duration;

use tpu::sys::clock::{Clock as _, SystemClock};

use crate::common::env::TestEnv;
use crate::common::server::Server;

/// What a look says of a job whose target's control plane stands at this address.
fn look(address: &str) -> String {
    let mut env = TestEnv::new();
    let mut data = env.two_users();
    let mut record = env.record("alice", 1, "finished");
    record["tpu"] = "lab-tpuvm-v2-32-1".into();
    data["users"]["alice"]["job_data"] = serde_json::json!([record]);
    env.write_data(&data);
    for (name, value) in [
        ("TPU_CLOUD", "google"),
        ("TPU_PROJECT", "lab"),
        ("TPU_CLOUD_AUTH", "none"),
        ("TPU_CLOUD_ENDPOINT", address),
    ] {
        env.set(name, value);
    }
    // Each request may take a minute: without a limit of its own the command would be over time here.
    for line in ["check alice", "check-simp", "explain 1"] {
        drop(env.tpu(line).exits(0).says(&["no answer within 3 s"]));
    }
    env.tpu("check alice").exits(0).to_string()
}

#[test]
fn one_that_accepts_and_never_answers() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    look(&format!("http://{}", silent.local_addr().unwrap()));
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
