//! Commands that a person types once, and the start of the program. They put the other storeys together.

// The program itself.
pub mod autostart;
pub mod daemon_unit;
pub mod doctor;
pub mod export;
pub mod import;
pub mod init;
pub mod locks;
pub mod open;
pub mod settings;
pub mod share;

// Files of jobs.
pub mod cloudmesh;
pub mod jobfile;
pub mod precedent;

// Verbs about jobs.
pub mod clean;
pub mod old_code;
pub mod queue_list;
pub mod recover;
pub mod show;
pub mod teardown;

// Targets, money, room.
pub mod billing;
pub mod disk_use;
pub mod dry_run;
pub mod inventory;
pub mod kind_lists;
pub mod quota;
pub mod storage;

// Users, tokens, sessions.
pub mod aliases;
pub mod dirs;
pub mod sessions;
pub mod tokens;
pub mod uninstall;
pub mod upgrade;
