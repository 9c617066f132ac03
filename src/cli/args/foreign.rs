//! The commands for people who come from other tools.

use clap::Subcommand;

use super::{Cms, Deferred, FromKind, ImportFrom, Jobman};

/// What other tools know, and what is typed there.
#[derive(Debug, Subcommand)]
pub enum Foreign {
    /// Import hosts and clusters of Cloudmesh
    #[command(
        after_help = "Examples:\n  tpu import cloudmesh spec.yaml --dry-run\n  tpu import cloudmesh lab-cluster.yaml"
    )]
    Import(Deferred<ImportFrom>),
    /// Run commands of Cloudmesh
    Cms(Deferred<Box<Cms>>),
    /// Run commands of JobMan
    Jobman(Deferred<Jobman>),
    /// What kinds of target bring along.
    #[command(flatten)]
    OfKind(FromKind),
}
