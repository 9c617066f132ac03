//! All integration tests: one binary, one module for each promise. What tmux, a file or a process does
//! is tested here; what a value decides is tested beside the value.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper that fails ends its test, as an assertion does"
)]

mod api;
mod architecture;
mod classify;
mod cli;
mod cms;
mod common;
mod daemon;
mod first_hour;
mod hosts;
mod insight;
mod jobfile;
mod jobs;
mod kinds;
mod kubernetes;
mod notices;
mod packages;
mod page;
mod plan;
mod providers;
mod queue;
mod real;
mod remote;
mod runner;
mod screen;
mod sim;
mod slurm;
mod store;
mod targets;
mod tmux;
mod workers;
