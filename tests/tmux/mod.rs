//! The tmux server, and what people do to theirs.
//!
//! slow: real servers, with the settings that people have.

mod hostile_settings;
mod server;
