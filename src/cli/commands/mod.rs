//! One file for each command or family of commands: words to a request, the outcome to text and JSON.

pub(super) mod aliases;
pub(super) mod attach;
pub(super) mod board;
pub(super) mod callbacks;
pub(super) mod check;
mod choose;
pub(super) mod classify;
pub(super) mod clean;
pub(super) mod cloud;
pub(super) mod daemon;
pub(super) mod data;
pub(super) mod dirs;
pub(super) mod doctor;
pub(super) mod help;
pub(super) mod history;
pub(super) mod init;
pub(super) mod kill;
pub(super) mod logs;
pub(super) mod news;
pub(super) mod resume;
pub(super) mod rules;
pub(super) mod run;
pub(super) mod settings;
pub(super) mod targets;
pub(super) mod users;
pub(super) mod wait;
pub(super) mod workers;
