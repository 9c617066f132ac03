//! All integration tests: one binary, one module per promise. A test of something that tmux, a file or a
//! process does belongs here; what a value decides is tested beside the value.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper that fails ends its test, as an assertion does"
)]

mod common;

mod tmux_server;
