//! `tpu jobman`: the command line of JobMan, as its manual spells it.

use clap::{Args, Subcommand};

use super::{BillingArgs, QuotaArgs, StorageArgs};

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
    /// Start jobs again that were stopped or have ended
    Start(JobmanIds),
    /// The same
    Resume(JobmanIds),
    /// Stop jobs; their TPUs stay
    Stop(JobmanIds),
    /// The same; what waits is taken out of the queue
    Cancel(JobmanIds),
    /// Stop jobs and start them again
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
    /// Stop jobs and queue them again
    Requeue(JobmanIds),
    /// Delete jobs and their TPUs, after a question
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
    /// Start a job again, and show its output until it ends
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
    /// Show the tasks of a file, and what is there for them
    Queue(JobmanQueue),
    /// Show what may be had of TPUs, as `tpu quota`
    Quota(QuotaArgs),
    /// Show what a month has cost, as `tpu billing`
    Billing(BillingArgs),
    /// Show how much lies in buckets and directories, as `tpu storage`
    Storage(StorageArgs),
    /// Log in to the first worker of a job's TPU
    Ssh {
        /// Which
        id: String,
    },
}

/// Tasks of a file.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tpu jobman queue tasks.yaml\n  tpu jobman queue tasks.yaml --reset-failed\n\nWhat it has of new tasks, `tpu submit tasks.yaml` queues."
)]
pub struct JobmanQueue {
    /// The file [default: `queue_machines/tasks.yaml`]
    #[arg(value_name = "TASKS.yaml")]
    pub file: Option<String>,
    /// Start a task again that has ended
    #[arg(long, value_name = "ID", group = "does")]
    pub reset: Option<String>,
    /// The same, with all jobs that have ended
    #[arg(long, group = "does")]
    pub reset_all: bool,
    /// The same, with failed jobs
    #[arg(long, group = "does")]
    pub reset_failed: bool,
    /// The same, with jobs whose id matches: train-*
    #[arg(long, value_name = "PATTERN", group = "does")]
    pub reset_pattern: Option<String>,
    /// Move a waiting task to the front
    #[arg(long, value_name = "ID", group = "does")]
    pub prioritize: Option<String>,
    /// Show one task with all its attempts
    #[arg(long, value_name = "ID", group = "does")]
    pub task: Option<String>,
    /// Accepted without effect: here is nothing to clean up
    #[arg(long, group = "does")]
    pub cleanup: bool,
    /// Only jobs that finished well
    #[arg(long)]
    pub done: bool,
    /// Hidden ones, too
    #[arg(long)]
    pub show_all: bool,
}

/// Jobs by their numbers.
#[derive(Debug, Args)]
pub struct JobmanIds {
    /// Numbers: 000007, 7
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
}

impl JobmanQueue {
    /// Whether nothing is changed by it.
    pub fn looks(&self) -> bool {
        let resets = self.reset_all || self.reset_failed || self.reset_pattern.is_some();
        !resets && self.reset.is_none() && self.prioritize.is_none()
    }
}
