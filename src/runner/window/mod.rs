//! Runs in tmux windows of this machine, with a launcher of ours as their supervisor.

pub mod place;
