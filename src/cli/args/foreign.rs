//! The commands for people who come from other tools.

use clap::Subcommand;

use super::{Cms, Deferred, FromKind, ImportFrom, Jobman};

/// What other tools know, and what is typed there.
#[derive(Debug, Subcommand)]
pub enum Foreign {
    /// Take over what another tool knows: Cloudmesh
    #[command(
        after_help = "Examples:\n  tpu import cloudmesh spec.yaml --dry-run\n  tpu import cloudmesh lab-cluster.yaml"
    )]
    Import(Deferred<ImportFrom>),
    /// Type what Cloudmesh understands
    Cms(Deferred<Box<Cms>>),
    /// Type what JobMan understands
    Jobman(Deferred<Jobman>),
    /// What kinds of target bring along.
    #[command(flatten)]
    OfKind(FromKind),
}
