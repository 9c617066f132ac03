//! The contracts between tpu and what runs jobs, and the two kinds of target that every installation has.
//!
//! * [`kinds`]: what a kind of target is ([`kinds::KindOfTarget`]), the registry, `local` and `ssh`.
//! * [`provider`]: machines that come and go.
//! * [`runner`]: what starts attempts and observes them; windows of tmux are one.

pub mod kinds;
pub mod provider;
pub mod runner;
