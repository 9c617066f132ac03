//! All integration tests: one binary, one module for each promise. What tmux, a file or a process does
//! is tested here; what a value decides is tested beside the value.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper that fails ends its test, as an assertion does"
)]

mod common;

mod bad_input;
mod classify_corpus;
mod classify_fuzz;
mod classify_rules;
mod clean;
mod cli_table;
mod cloud_contract;
mod cloud_sim;
mod crash;
mod daemon;
mod decide;
mod diagnose;
mod display;
mod found;
mod golden;
mod hostile;
mod kill;
mod launch;
mod layers;
mod lease;
mod monitor_rim;
mod monitor_rows;
mod monitor_snapshots;
mod monitor_tmux;
mod monitor_update;
mod original;
mod races;
mod reapply;
mod regression;
mod remote_local;
mod resume;
mod sim;
mod store_disk;
mod store_document;
mod store_os;
mod store_properties;
mod store_reading;
mod tmux_server;
mod torture;
