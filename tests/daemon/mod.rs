//! The daemon in the built program.

mod brings_back;
mod fleet;
mod over_google;
mod reapply;
