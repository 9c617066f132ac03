//! The shells of workers.
//!
//! slow: real connections to sshd that break and are mended.

mod contract;
mod door;
mod gcloud;
mod simulated;
mod ssh;
