//! The shells of workers.

mod contract;
mod door;
mod gcloud;
mod simulated;
mod ssh;
