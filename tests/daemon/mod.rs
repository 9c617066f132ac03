//! The daemon in the built program.
//!
//! slow: real daemons take their turns by the clock, and targets are made in their own time.

mod autostart;
mod brings_back;
mod closed;
mod fleet;
mod frameworks;
mod original;
mod over_google;
mod reapply;
mod shared;
mod upgrade;
mod woken;
