//! Checkpoints as things that are listed, copied and cleared away, on disks and in buckets.
//!
//! `find` looks, `shelf` is the way to the buckets, `copy` carries one over as a whole or not at all, `prune` takes away what
//! nobody needs ([`tpu_core::plan::prune`] decides), `across` brings one to the region where a job goes on.

pub mod across;
pub mod copy;
pub mod find;
pub mod listed;
pub mod prune;
pub mod shelf;
mod state;
mod transfer;
pub(crate) mod work_dir;
