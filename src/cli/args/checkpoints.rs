//! The arguments of `tpu checkpoints` and `tpu storage`.

use clap::{Args, Subcommand};

/// `tpu checkpoints`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CheckpointsArgs {
    /// What to do [default: list them]
    #[command(subcommand)]
    pub step: Option<CheckpointsStep>,
    /// Jobs, user [default: all of yours]
    #[arg(value_name = "JOB|USER")]
    pub words: Vec<String>,
}

/// What can be done with checkpoints.
#[derive(Debug, Subcommand)]
pub enum CheckpointsStep {
    /// Copy the newest complete one to another directory, bucket or region
    #[command(
        after_help = "Examples:\n  tpu checkpoints copy 7 gs://lab-eu/runs/7\n  tpu checkpoints copy /nfs/logs/run europe-west4-a\n\nCut off, the same command goes on where it was. What a copy costs is in prices.egress;\nthe places of regions are those of the setting checkpoint_copy."
    )]
    Copy {
        /// A job, or a directory or gs:// address of a run or of a checkpoint
        #[arg(value_name = "FROM")]
        from: String,
        /// A directory, a gs:// address, or a zone or region that the setting knows
        #[arg(value_name = "TO")]
        to: String,
        /// The region from which it is taken
        #[arg(value_name = "SOURCE")]
        source: Option<String>,
        /// All complete checkpoints, not only the newest
        #[arg(long)]
        all: bool,
        /// The one of this step
        #[arg(long, value_name = "N", conflicts_with = "all")]
        step: Option<u64>,
    },
    /// Delete checkpoints that nobody needs; lists them first, deletes with -y
    #[command(
        after_help = "Examples:\n  tpu checkpoints prune 7 --keep newest\n  tpu checkpoints prune alice --keep every 10k -y\n\nOnly in log directories, and never what a job that lives or may be resumed needs."
    )]
    Prune {
        /// Jobs, user [default: all of yours]
        #[arg(value_name = "JOB|USER")]
        words: Vec<String>,
        /// newest, best (the lowest loss), or every N (500, 10k)
        #[arg(long, value_name = "RULE", num_args = 1..=2, required = true)]
        keep: Vec<String>,
        /// Only log directories below the places of this region or continent, of all users
        #[arg(long, value_name = "REGION")]
        region: Option<String>,
        /// Do not list what stays
        #[arg(short, long)]
        quiet: bool,
    },
}

/// `tpu storage`.
#[derive(Debug, Args)]
pub struct StorageArgs {
    /// Buckets and directories, each shown by what is directly below it [default: all buckets of the project]
    #[arg(value_name = "gs://BUCKET|DIR")]
    pub places: Vec<String>,
    /// Ask now, whatever the age of the last answer
    #[arg(long)]
    pub fresh: bool,
    /// Print the rows as a table for other programs
    #[arg(long)]
    pub csv: bool,
}
