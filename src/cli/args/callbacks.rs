//! The arguments of what scripts and launchers call back with.

use clap::{Args, Subcommand};

/// `tpu finish-job`, `fail-job`.
#[derive(Debug, Args)]
pub struct Finish {
    /// SESSION:WINDOW
    #[arg(value_name = "SESSION:WINDOW")]
    pub window: String,
    /// Believe it although the text says otherwise
    #[arg(long)]
    pub force: bool,
    /// Exit code of the job
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub exit_code: Option<i32>,
}

/// `tpu launcher`.
#[derive(Debug, Args)]
pub struct Launcher {
    /// What has happened
    #[command(subcommand)]
    pub step: LauncherStep,
}

/// The moments at which the launcher script calls back.
#[derive(Debug, Subcommand)]
pub enum LauncherStep {
    /// The window is open: may the job start?
    Begin {
        /// Launch token
        token: String,
    },
    /// Runs the job on the workers of its target, and prints what they say
    Workers {
        /// Launch token
        token: String,
    },
    /// The job has ended
    Exited {
        /// Launch token
        token: String,
        /// Exit code
        #[arg(allow_negative_numbers = true)]
        code: i32,
    },
}
