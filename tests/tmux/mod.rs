//! The tmux server, and what people do to theirs.

mod hostile_settings;
mod server;
