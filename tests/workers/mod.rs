//! Jobs and commands on the workers of a target.
//!
//! slow: real connections to sshd, jobs on the other side.

mod google;
mod recipes;
mod simulated;
mod ssh;
mod window_gone;
