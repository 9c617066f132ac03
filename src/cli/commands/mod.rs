//! One file for each command or family of commands: words to a request, the outcome to text and JSON.

pub(super) mod again;
pub(super) mod aliases;
pub(super) mod attach;
pub(super) mod callbacks;
pub(super) mod check;
pub(super) mod classify;
pub(super) mod cloud;
pub(super) mod daemon;
pub(super) mod dirs;
pub(super) mod doctor;
pub(super) mod help;
pub(super) mod history;
pub(super) mod kill;
pub(super) mod logs;
pub(super) mod records;
pub(super) mod run;
pub(super) mod settings;
pub(super) mod sweep;
pub(super) mod targets;
pub(super) mod users;
pub(super) mod wait;
