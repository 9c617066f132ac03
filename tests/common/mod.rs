//! What several tests need.

pub(crate) mod scenario;
pub(crate) mod tmux;
pub(crate) mod wait;
