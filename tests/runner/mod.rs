//! What runs attempts.

mod contract;
mod engines;
mod kubernetes;
mod originals;
mod slurm;
mod slurm_seeds;
mod windows;
