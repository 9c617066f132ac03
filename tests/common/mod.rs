//! What several tests need.

pub(crate) mod sim;
pub(crate) mod tmux;
pub(crate) mod wait;
