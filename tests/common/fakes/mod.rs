//! What plays a part of the world: a disk and a tmux server in memory. The figures use the server too.

pub(crate) mod disk;
pub(crate) mod tmux;
