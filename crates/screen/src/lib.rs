//! The screen: a model, messages that change it, and a view that draws it.
//!
//! ```text
//!   terminal ─┐                                 ┌─> view ─> frame
//!   looks     ├─> Message ─> update(&mut Model) ┤
//!   answers  ─┘        pure: no I/O, no clock   └─> Effect ─> Backend, on threads ─> Message
//! ```
//!
//! `model`, `message`, `update` and `view` are pure and tested by sending messages and reading frames;
//! `terminal`, `feed`, `effect` and the loop in `run` are the rim. The screen computes no status of its own and never
//! touches files or tmux: what it shows is a [`Snapshot`](tpu_core::model::view::Snapshot), what it does is
//! asked of a [`Backend`]. [`plain`] tells in lines what a screen would show. Start reading with [`message`], then [`update`].

mod acts;
pub mod backend;
pub mod bridge;
pub mod chart;
pub mod effect;
pub mod feed;
pub mod fuzzy;
pub mod keys;
pub mod log_filter;
pub mod message;
pub mod model;
pub mod pane;
pub mod plain;
pub mod recording;
pub mod rows;
mod run;
pub mod tabs;
mod terminal;
pub mod theme;
pub mod trace;
pub mod typed;
pub mod update;
pub mod view;

pub use backend::Backend;
pub use run::{MonitorError, Options, record, run};
