//! The arguments of the commands about MONITOR.

use clap::{Args, Subcommand};

/// `tpu daemon`.
#[derive(Debug, Args)]
pub struct Daemon {
    /// What to do with it
    #[command(subcommand)]
    pub step: DaemonStep,
}

/// What can be done with MONITOR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum DaemonStep {
    /// Run it here, until Ctrl-C or SIGTERM
    Run,
    /// Start it in a tmux session of its own (tpu-MONITOR)
    Start,
    /// End it; jobs go on
    Stop,
    /// Say whether it runs (exit code 0) or not (1)
    Status,
    /// Say what would happen next to each job, and why
    Plan,
}

/// `tpu -Ml`.
#[derive(Debug, Args)]
pub struct MonitorLog {
    /// Time zone: us, cn, or a name such as Europe/Berlin [default: yours]
    #[arg(value_name = "ZONE")]
    pub zone: Option<String>,
    /// The last N events
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    pub lines: usize,
}
