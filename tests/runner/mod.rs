//! What runs attempts.

mod contract;
mod engines;
mod slurm;
mod slurm_seeds;
mod windows;
