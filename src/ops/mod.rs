//! The use cases: one verb, one file, the same function for a key, a command and MONITOR.
//!
//! Each is a plain function `(ctx, request) -> Result<outcome, Error>`; [`ctx::Ctx`] holds every effect,
//! built differently for production and simulation. Nothing here knows terminals. Start with
//! [`snapshot`] (how jobs are) and [`launch`] (how one begins).

pub mod ctx;
pub mod error;
pub mod open;

pub mod snapshot;

pub mod fleet;
pub mod launch;
pub mod lease;
pub mod provision;
pub mod recover;
pub mod resume;

pub mod attach;
pub mod callbacks;
pub mod checkpoint;
pub mod classify;
pub mod clean;
pub mod kill;
pub mod logs;
pub mod panes;
pub mod processes;
pub mod record_facts;
pub mod records;
pub mod rules;
pub mod stage;

pub mod aliases;
pub mod dirs;
pub mod doctor;
pub mod settings;
pub mod targets;
pub mod users;
pub mod watch;

pub mod outlook;
pub mod service;

pub use ctx::Ctx;
pub use error::{Error, Kind};
