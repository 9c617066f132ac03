//! What runs attempts.
//!
//! slow: the same contract on every engine, a real Slurm cluster among them.

mod contract;
mod engines;
mod kubernetes;
mod originals;
mod slurm;
mod slurm_seeds;
mod windows;
