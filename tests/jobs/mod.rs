//! Launch, watch, kill, bring back, clear away: one attempt and its successors, in the built program.
//!
//! slow: jobs in real windows, killed at one step after the other.

mod callbacks;
mod clean;
mod curves;
mod followed;
mod from_nothing;
mod groups;
mod hostile_output;
mod ignore_error;
mod kill;
mod killed_launches;
mod launch;
mod lease;
mod other_windows_survive;
mod pty;
mod races;
mod reached;
mod regression;
mod resume;
mod scripts;
mod server_gone;
mod shown;
mod slots;
mod started;
mod supervisors;
