//! What several tests need.

pub(crate) mod env;
pub(crate) mod tmux;
pub(crate) mod wait;
