//! Slurm: partitions of real clusters as targets, and of one that is played.

mod arrays;
mod carried_out;
pub(crate) mod cluster;
mod ends;
mod keys;
mod lab;
mod leaves_nothing;
mod login;
mod never;
mod options;
mod preempted;
mod proof;
mod queued;
mod readme;
mod runs;
mod silent;
pub(crate) mod sim;
mod versions;
