//! All integration tests: one binary, one module for each promise. What tmux, a file or a process does
//! is tested here; what a value decides is tested beside the value.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper that fails ends its test, as an assertion does"
)]

mod common;

mod cli_table;
mod crash;
mod golden;
mod hostile;
mod layers;
mod original;
mod races;
mod store_disk;
mod store_document;
mod store_os;
mod tmux_server;
