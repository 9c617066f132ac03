//! `tpu jobman`: the command line of JobMan, as its manual spells it.

use clap::{Args, Subcommand};

/// `tpu jobman`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tpu jobman create --config=configs/quick-start.yaml\n  tpu jobman list\n  tpu jobman reboot 000007 --force\n\nA job keeps its number through every resume and reboot. Called by the name\n`jobman`, tpu is the same."
)]
pub struct Jobman {
    /// What to do
    #[command(subcommand)]
    pub step: JobmanStep,
}

/// What can be done with jobs.
#[derive(Debug, Subcommand)]
pub enum JobmanStep {
    /// Submit the job of a config
    #[command(
        after_help = "Examples:\n  tpu jobman create config.yaml\n  tpu jobman create --config=configs/quick-start.yaml"
    )]
    Create {
        /// A config of JobMan, or a job file
        #[arg(value_name = "CONFIG", required_unless_present = "config")]
        file: Option<String>,
        /// The same
        #[arg(long, value_name = "CONFIG", conflicts_with = "file")]
        config: Option<String>,
    },
    /// Begin jobs again that have been stopped or have ended
    Start(JobmanIds),
    /// The same
    Resume(JobmanIds),
    /// Stop jobs; their TPUs stay
    Stop(JobmanIds),
    /// The same; what waits is taken out of the queue
    Cancel(JobmanIds),
    /// Stop jobs, and begin them again
    Reboot {
        /// Which
        #[command(flatten)]
        ids: JobmanIds,
        /// Set up everything anew
        #[arg(long)]
        force: bool,
        /// The same: what a task needs once per machine is set up anew
        #[arg(long)]
        force_prefix: bool,
    },
    /// Stop jobs, and let them wait for their turn
    Requeue(JobmanIds),
    /// Take jobs away, and delete their TPUs; asks before
    Delete(JobmanIds),
    /// The same; --all: every job of the user that has ended
    Clean {
        /// Which
        #[arg(value_name = "ID", required_unless_present = "all")]
        ids: Vec<String>,
        /// All that have ended
        #[arg(long, conflicts_with = "ids")]
        all: bool,
    },
    /// List jobs with their TPUs, and the cores of each zone
    List,
    /// Show how jobs are: since when, and how far
    Status {
        /// Which; all without one
        #[arg(value_name = "ID")]
        id: Option<String>,
    },
    /// Begin a job again, and show what it prints until it ends
    Run {
        /// Which
        id: String,
        /// Set up nothing before
        #[arg(long)]
        cmd_only: bool,
        /// Set up everything anew
        #[arg(long, conflicts_with = "cmd_only")]
        force: bool,
        /// The same: what a task needs once per machine is set up anew
        #[arg(long, conflicts_with = "cmd_only")]
        force_prefix: bool,
    },
    /// Log in to the first worker of a job's TPU
    Ssh {
        /// Which
        id: String,
    },
}

/// Jobs by their numbers.
#[derive(Debug, Args)]
pub struct JobmanIds {
    /// Numbers: 000007, 7
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
}
