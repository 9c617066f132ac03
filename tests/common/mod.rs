//! What several tests need.

pub(crate) mod accounts;
pub(crate) mod boards;
pub(crate) mod cables;
pub(crate) mod crontab;
pub(crate) mod dice;
pub(crate) mod env;
pub(crate) mod fakes;
pub(crate) mod fleet;
pub(crate) mod json_schema;
pub(crate) mod lab;
pub(crate) mod output;
pub(crate) mod queued;
pub(crate) mod readme;
pub(crate) mod remote;
pub(crate) mod rest;
pub(crate) mod samples;
pub(crate) mod scenario;
pub(crate) mod screen;
pub(crate) mod server;
pub(crate) mod sim;
pub(crate) mod sshd;
pub(crate) mod terminal;
pub(crate) mod tmux;
pub(crate) mod usage;
pub(crate) mod wait;
pub(crate) mod within;
