//! The daemon and the API as one process: they begin together, and end together.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::common::env::TestEnv;
use crate::common::wait::wait_until;

/// What is answered at a socket.
fn asked(socket: &Path, path: &str) -> Option<String> {
    let mut stream = UnixStream::connect(socket).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

#[test]
fn monitor_answers_over_http_as_well_and_ends_with_it() {
    let env = TestEnv::new();
    env.write_data(&env.two_users());
    let socket = env.path("tpu.sock");
    let said = env.tpu("daemon start --serve --socket tpu.sock").exits(0);
    drop(said.says(&["daemon runs", "It answers over HTTP"]));
    wait_until("it answers", || asked(&socket, "/readyz").is_some());
    let jobs = asked(&socket, "/api/v1/jobs").unwrap();
    assert!(jobs.starts_with("HTTP/1.1 200") && jobs.contains("\"running\":true"), "{jobs}");
    // Another one would fight for the socket: it is refused before it listens.
    drop(
        env.tpu("daemon run --serve --socket tpu.sock").exits(4).says(&["the daemon runs already"]),
    );
    assert!(asked(&socket, "/readyz").is_some());
    drop(env.tpu("daemon stop").exits(0));
    wait_until("its socket is gone", || !socket.exists());
}

#[test]
fn a_monitor_that_cannot_listen_does_not_begin() {
    let env = TestEnv::new();
    env.write_data(&env.two_users());
    let said = env.tpu("daemon run --serve --listen 0.0.0.0:0").exits(4);
    drop(said.says(&["everybody on the way reads the tokens"]));
    drop(env.tpu("daemon status").exits(1));
}
