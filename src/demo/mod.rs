//! The story of `tpu demo`, and the small real training that its jobs run.
//!
//! Needs nothing but tmux. Start with [`train`].

pub mod train;
