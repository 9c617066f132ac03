//! Slurm: partitions of real clusters as targets, and of one that is played.
//!
//! slow: a real cluster, whose daemons have their own clocks.

mod absent;
mod arrays;
mod carried_out;
pub(crate) mod cluster;
mod ends;
mod keys;
mod lab;
mod leaves_nothing;
mod liars;
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
