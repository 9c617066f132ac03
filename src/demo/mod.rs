//! `tpu demo`: a lab of its own in a temporary directory, with jobs that really train, and a story that
//! is told and checked.
//!
//! Everything happens through the same use cases that keys and commands call. Nothing is left behind.
//! Start with [`story`]; [`train`] is what the jobs run. Where a person watches, [`witness`] reads again and again what is
//! written down, [`tale`] makes of it what has become of the jobs, [`caption`] the line on the screen and [`report`] the
//! text at the end.

pub mod caption;
pub mod cluster;
pub mod lab;
mod queue;
pub mod report;
pub mod story;
pub mod tale;
pub mod train;
pub mod witness;
