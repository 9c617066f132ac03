//! `tpu hosts`.

use clap::{Args, Subcommand};

/// `tpu hosts`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  tpu hosts\n  tpu hosts set gpu[01-04] --max-jobs 2 --gpus 8"
)]
pub struct Hosts {
    /// What to do with them
    #[command(subcommand)]
    pub step: Option<HostsStep>,
}

/// What can be done with hosts.
#[derive(Debug, Subcommand)]
pub enum HostsStep {
    /// Say what targets have for jobs: it holds for those that start from then on
    #[command(
        after_help = "Examples:\n  tpu hosts set gpu[01-04] --max-jobs 2 --gpus 8\n  tpu hosts set local --max-jobs none"
    )]
    Set(SetHosts),
}

/// `tpu hosts set`.
#[derive(Debug, Args)]
pub struct SetHosts {
    /// Targets, or patterns of their names
    #[arg(value_name = "TARGET", required = true)]
    pub targets: Vec<String>,
    /// Jobs at a time, or `none` for no limit
    #[arg(long, value_name = "N")]
    pub max_jobs: Option<String>,
    /// GPUs to give out, or `none` to let every job see all
    #[arg(long, value_name = "N")]
    pub gpus: Option<String>,
    /// CPUs to give out, or `none`
    #[arg(long, value_name = "N")]
    pub cpus: Option<String>,
    /// Memory to give out, as in 256G, or `none`
    #[arg(long, value_name = "SIZE")]
    pub mem: Option<String>,
}
