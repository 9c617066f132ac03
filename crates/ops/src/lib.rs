//! The use cases of `tpu`: one verb, one file. A key, a command and the daemon call the same function.
//!
//! A use case is a plain function `(ctx, request) -> Result<outcome, Error>`. [`Ctx`] holds every effect, and tests fill
//! it with fakes. No use case knows terminals, HTTP or the documents that leave. The crate has five storeys. A storey uses
//! those below it and never one above it:
//!
//! ```text
//!   front      commands that a person types once: job files, imports, cleaning, tokens, billing
//!   waiting    the queue, and whose jobs a request means
//!   act        verbs that change a job or a target: launch, kill, resume, make a target
//!   observe    how jobs and targets are
//!   base       what every verb gets and gives: Ctx, Error, records, names, leases
//! ```
//!
//! * [`base`] reads and changes records. It asks no provider and no engine how anything is.
//! * [`observe`] asks tmux, engines and providers, and returns facts. It never decides what starts, and it starts nothing.
//! * [`act`] starts, stops and brings back. It knows that entries wait, but it never decides whose turn it is.
//! * [`waiting`] decides whose turn it is, and then calls `act`. It also says whose jobs a request means. It never knows
//!   which command asked.
//! * [`front`] puts the others together. No other storey uses it.
//!
//! `tests/architecture/layers` checks the order, and that no files use each other in a circle. Start with
//! [`act::outlook`] (how jobs are, and what is next) and [`act::launch`] (how a job starts).

// From the lowest storey to the highest.
pub mod base;

pub mod observe;

pub mod act;

pub mod waiting;

pub mod front;

pub use base::ctx::Ctx;
pub use base::error::{Error, Kind};
