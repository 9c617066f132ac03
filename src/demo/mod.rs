//! `tpu demo`: a lab of its own in a temporary directory, with jobs that really train, and a story that
//! is told and checked.
//!
//! Everything happens through the same use cases that keys and commands call. Nothing is left behind.
//! Start with [`story`]; [`train`] is what the jobs run.

pub mod lab;
pub mod story;
pub mod train;
