//! Jobs and commands on the workers of a target.

mod google;
mod recipes;
mod simulated;
mod ssh;
