//! `tpu submit`, `tpu queue` and what changes what waits.

use clap::{Args, Subcommand};

use super::{CommandOptions, FileOptions, JobOptions, TypeOptions};

/// `tpu submit`.
#[derive(Debug, Default, Args)]
pub struct Submit {
    /// Targets, types, a pool or a pattern; user, directory slot, KEY=VALUE, in any order; or FILE.yaml
    #[arg(value_name = "TARGET|USER|N|KEY=VALUE|FILE")]
    pub words: Vec<String>,
    /// Of a job file.
    #[command(flatten)]
    pub of_file: FileOptions,
    /// Go on where a check would refuse: shell characters in values
    #[arg(short, long)]
    pub force: bool,
    /// Do not use the notes as a tag
    #[arg(long)]
    pub no_tag: bool,
    /// Of a type.
    #[command(flatten)]
    pub of_type: TypeOptions,
    /// Of the job.
    #[command(flatten)]
    pub of_job: JobOptions,
    /// Several jobs as one group, whose members these are: 0-3 or 0,2,5-7; 0-9%2 runs two at once
    #[arg(long, value_name = "MEMBERS", conflicts_with_all = ["sweep", "zip"])]
    pub array: Option<String>,
    /// One job for each combination of values: lr=1e-3,1e-4 config.seed=0-4
    #[arg(long, conflicts_with = "zip")]
    pub sweep: bool,
    /// The same with the first values together, then the second ones, and so on
    #[arg(long)]
    pub zip: bool,
    /// How many members of a group run at once
    #[arg(long, value_name = "N")]
    pub at_once: Option<u32>,
    /// Hold it: it starts after `tpu unhold`
    #[arg(long)]
    pub hold: bool,
    /// Copy the code when the job starts, not now
    #[arg(long)]
    pub stage_late: bool,
    /// Create a registered target if none is free
    #[arg(long)]
    pub apply: bool,
    /// What it runs.
    #[command(flatten)]
    pub of_command: CommandOptions,
}

/// `tpu queue`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  tpu queue\n  tpu queue create night --max-parallel 3 --on v4-8"
)]
pub struct QueueCommand {
    /// A user whose jobs are listed; with a type, target, directory or alias: what to submit
    #[arg(value_name = "USER|TYPE|N|KEY=VALUE")]
    pub words: Vec<String>,
    /// Pass the number of resumes to the program as --config.stage
    #[arg(long)]
    pub log_stage: bool,
    /// Do not use the notes as a tag
    #[arg(long)]
    pub no_tag: bool,
    /// Ask for notes
    #[arg(long)]
    pub ask_notes: bool,
    /// What to do with it
    #[command(subcommand)]
    pub step: Option<QueueStep>,
}

/// What can be done with queues.
#[derive(Debug, Subcommand)]
pub enum QueueStep {
    /// List queued jobs in order, and why they wait
    #[command(
        visible_alias = "show",
        after_help = "Examples:\n  tpu queue list\n  tpu queue show night --json"
    )]
    List(SomeQueues),
    /// Create a queue
    #[command(
        after_help = "Examples:\n  tpu queue create night --max-parallel 3\n  tpu queue create strict --policy fifo --on v4-8"
    )]
    Create(SetQueue),
    /// Change a queue
    #[command(
        after_help = "Examples:\n  tpu queue set night --max-parallel none\n  tpu queue set night --on v4-8,v5e-8"
    )]
    Set(SetQueue),
    /// Remove an empty queue
    #[command(after_help = "Examples:\n  tpu queue remove night\n  tpu queue remove strict")]
    Remove(OneQueue),
    /// Pause a queue: none of its jobs starts
    #[command(after_help = "Examples:\n  tpu queue pause night\n  tpu queue pause default")]
    Pause(OneQueue),
    /// Resume a paused or drained queue
    #[command(after_help = "Examples:\n  tpu queue resume night\n  tpu queue resume default")]
    Resume(OneQueue),
    /// Drain a queue: it takes no new jobs
    #[command(after_help = "Examples:\n  tpu queue drain night\n  tpu queue drain default")]
    Drain(OneQueue),
    /// Start queued jobs from here, until none waits
    #[command(after_help = "Examples:\n  tpu queue run\n  tpu queue run --once")]
    Run(RunQueue),
}

/// Queues by their names.
#[derive(Debug, Args)]
pub struct SomeQueues {
    /// Queues, and a user
    #[arg(value_name = "QUEUE|USER")]
    pub words: Vec<String>,
}

/// One queue.
#[derive(Debug, Args)]
pub struct OneQueue {
    /// The queue
    #[arg(value_name = "QUEUE")]
    pub queue: String,
}

/// `tpu queue create|set`.
#[derive(Debug, Args)]
pub struct SetQueue {
    /// The queue
    #[arg(value_name = "QUEUE")]
    pub queue: String,
    /// Whether jobs that fit may pass others that do not: fifo (no), backfill (yes)
    #[arg(long, value_name = "POLICY")]
    pub policy: Option<String>,
    /// How many of its jobs run at once, or `none`
    #[arg(long, value_name = "N")]
    pub max_parallel: Option<String>,
    /// Start its jobs on one of these targets, types or pools only; or `none`
    #[arg(long, value_name = "TARGETS", value_delimiter = ',')]
    pub on: Vec<String>,
}

/// `tpu queue run`.
#[derive(Debug, Args)]
pub struct RunQueue {
    /// Look once and end
    #[arg(long)]
    pub once: bool,
}

/// `tpu dequeue`.
#[derive(Debug, Args)]
pub struct Dequeue {
    /// Queued jobs (12 or a name), user
    #[arg(value_name = "JOB|USER")]
    pub words: Vec<String>,
    /// All queued jobs of the user
    #[arg(long)]
    pub all: bool,
}

/// `tpu requeue`.
#[derive(Debug, Args)]
pub struct Requeue {
    /// Jobs, their user, priority=0-100, queue=NAME
    #[arg(value_name = "JOB|USER|KEY=VALUE", required = true)]
    pub words: Vec<String>,
    /// Stop without waiting for a checkpoint
    #[arg(long)]
    pub now: bool,
    /// Hold them: they start after `tpu unhold`
    #[arg(long)]
    pub hold: bool,
}

/// `tpu hold`.
#[derive(Debug, Args)]
pub struct HoldJobs {
    /// Queued jobs (12 or a name), user
    #[arg(value_name = "JOB|USER", required = true)]
    pub words: Vec<String>,
    /// Why, in words
    #[arg(long, value_name = "TEXT")]
    pub why: Option<String>,
}

/// `tpu priority`.
#[derive(Debug, Args)]
pub struct SetPriority {
    /// Queued jobs (12 or a name), user, and the priority, from 0 to 100
    #[arg(value_name = "JOB|USER|N", required = true)]
    pub words: Vec<String>,
    /// Move it before all others of its priority
    #[arg(long)]
    pub first: bool,
}
