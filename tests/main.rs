//! All integration tests: one binary, one module for each promise. What tmux, a file or a process does
//! is tested here; what a value decides is tested beside the value.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper that fails ends its test, as an assertion does"
)]

mod common;

mod bad_input;
mod board;
mod callbacks;
mod classify_corpus;
mod classify_evidence;
mod classify_fuzz;
mod classify_heldout;
mod classify_rules;
mod clean;
mod clean_windows;
mod cli_table;
mod cloud_contract;
mod cloud_gcloud;
mod cloud_google;
mod cloud_monitor;
mod cloud_sim;
mod completions;
mod crash;
mod curves;
mod daemon;
mod decide;
mod demo;
mod diagnose;
mod display;
mod doctor;
mod first_contact;
mod fleet;
mod found;
mod golden;
mod hostile;
mod hostile_output;
mod ignore_error;
mod json_schema;
mod kill;
mod launch;
mod layers;
mod lease;
mod monitor_actions;
mod monitor_hands;
mod monitor_looks;
mod monitor_mouse;
mod monitor_remembered;
mod monitor_resize;
mod monitor_rim;
mod monitor_rows;
mod monitor_snapshots;
mod monitor_tabs;
mod monitor_tmux;
mod monitor_trouble;
mod monitor_update;
mod no_space;
mod original;
mod original_lock;
mod original_walk;
mod races;
mod reached;
mod readme;
mod real;
mod reapply;
mod recipes;
mod regression;
mod rehearse;
mod remote_contract;
mod remote_door;
mod remote_gcloud;
mod remote_local;
mod remote_ssh;
mod resume;
mod screen_asks;
mod scripts;
mod seat;
mod sim;
mod slow_cloud;
mod started;
mod store_disk;
mod store_document;
mod store_os;
mod store_properties;
mod store_reading;
mod strange_files;
mod times;
mod tmux_server;
mod torture;
mod whose;
mod words;
mod workers;
mod workers_google;
mod workers_ssh;
