//! The arguments of the commands about jobs.

use clap::{Args, ValueEnum};

use super::{CommandOptions, FileOptions, JobOptions, TypeOptions};

/// `tpu run`.
#[derive(Debug, Default, Args)]
pub struct Run {
    /// Target, user, directory slot, KEY=VALUE, in any order; or FILE.yaml
    #[arg(value_name = "TARGET|USER|N|KEY=VALUE|FILE")]
    pub words: Vec<String>,
    /// Of a job file.
    #[command(flatten)]
    pub of_file: FileOptions,
    /// Do not open the monitor afterwards
    #[arg(short, long)]
    pub quiet: bool,
    /// Go on where a check would refuse: busy target, shell characters in values
    #[arg(short, long)]
    pub force: bool,
    /// Create the target again without asking if it was preempted
    #[arg(long)]
    pub apply: bool,
    /// Do not use the notes as a tag
    #[arg(long)]
    pub no_tag: bool,
    /// Ask for notes
    #[arg(long)]
    pub ask_notes: bool,
    /// Take the best free target of the type (without one, of any type)
    #[arg(long)]
    pub auto: bool,
    /// Of a type.
    #[command(flatten)]
    pub of_type: TypeOptions,
    /// With a type: wait in the queue until one is free, even across a reboot
    #[arg(long)]
    pub wait: bool,
    /// Of the job.
    #[command(flatten)]
    pub of_job: JobOptions,
    /// Several jobs as one group, whose members these are: 0-3 or 0,2,5-7; 0-9%2 runs two at once
    #[arg(long, value_name = "MEMBERS")]
    pub array: Option<String>,
    /// What it runs.
    #[command(flatten)]
    pub of_command: CommandOptions,
}

/// `tpu show`.
#[derive(Debug, Args)]
pub struct ShowJob {
    /// The job: 7, w=7; and its user
    #[arg(value_name = "JOB|USER")]
    pub words: Vec<String>,
    /// Only what the engine says about it, in its own words
    #[arg(long)]
    pub raw: bool,
}

/// `tpu script`.
#[derive(Debug, Args)]
pub struct ScriptOfJob {
    /// The job: 7, w=7; and its user
    #[arg(value_name = "JOB|USER")]
    pub words: Vec<String>,
    /// Print a job file, which can be submitted again
    #[arg(long)]
    pub yaml: bool,
}

/// `tpu check`, `check-simp`.
#[derive(Debug, Args)]
pub struct Check {
    /// Users; of a list also jobs (7, w=7, 7,9-12), names, tag:NAME, tpu:NAME, status:NAME
    #[arg(value_name = "USER|JOB")]
    pub words: Vec<String>,
    /// What to show: w number, d directory, t target, s status, v output
    #[arg(long, value_name = "LETTERS")]
    pub show: Option<String>,
    /// Everybody's jobs
    #[arg(long)]
    pub all_users: bool,
    /// Hide tags
    #[arg(long)]
    pub no_tags: bool,
    /// Show zones
    #[arg(long)]
    pub zone: bool,
    /// Hide attempts that have a successor
    #[arg(long)]
    pub leaves: bool,
    /// Show the members of groups one by one
    #[arg(long)]
    pub members: bool,
    /// Accepted without effect (columns, col=N): here each job is one row
    #[arg(long, hide = true, value_name = "N")]
    pub columns: Option<u32>,
}

/// `tpu monitor`.
#[derive(Debug, Args)]
pub struct MonitorArgs {
    /// What to show.
    #[command(flatten)]
    pub check: Check,
    /// Print changes line by line, for screen readers, pipes and plain terminals
    #[arg(long, conflicts_with = "show")]
    pub plain: bool,
}

/// `tpu maj`.
#[derive(Debug, Args)]
pub struct Maj {
    /// What to show.
    #[command(flatten)]
    pub check: Check,
    /// Stop after so many rounds [default: at Ctrl-C]
    #[arg(long, value_name = "N")]
    pub rounds: Option<u32>,
}

/// `tpu resume`, `rerun`.
#[derive(Debug, Default, Args)]
pub struct Again {
    /// Job (7 or w=7, or its name), tpu=TARGET, user
    #[arg(value_name = "JOB|TARGET|USER")]
    pub words: Vec<String>,
    /// Also what a check would refuse: an attempt that was killed or finished, another accelerator
    #[arg(short, long)]
    pub force: bool,
    /// Also one that has finished or was killed, and nothing else that a check refuses
    #[arg(skip)]
    pub however_ended: bool,
    /// Create the target again without asking if it was preempted
    #[arg(long)]
    pub apply: bool,
    /// Of a job file: set up what is not so (auto), all of it (force), or nothing
    /// (skip)
    #[arg(long, value_name = "HOW")]
    pub setup: Option<String>,
    /// With the variables that this shell exports now, not those of the first start
    #[arg(long, conflicts_with = "clean_env")]
    pub env_now: bool,
    /// With no variable of a shell
    #[arg(long)]
    pub clean_env: bool,
}

/// Commands that take several jobs.
#[derive(Debug, Args)]
pub struct Many {
    /// Which jobs.
    #[arg(
        value_name = "JOB|USER",
        help = "Jobs: numbers (7, w=7, 7,9-12), names (llama, job[0-5], 12_3), tag:NAME, tpu:NAME, status:NAME, user"
    )]
    pub words: Vec<String>,
    /// Every job of the user that this command applies to
    #[arg(long)]
    pub all: bool,
}

/// `tpu kill`.
#[derive(Debug, Args)]
pub struct Kill {
    /// Which
    #[command(flatten)]
    pub jobs: Many,
    /// Also if workers never answer again: it may still run there
    #[arg(short, long)]
    pub force: bool,
}

/// `tpu clean`.
#[derive(Debug, Args)]
pub struct Clean {
    /// User; numbers or names of jobs, for no others than these
    #[arg(value_name = "USER|JOB")]
    pub words: Vec<String>,
    /// Also the ancestors of attempts that are still alive (-re)
    #[arg(long)]
    pub re: bool,
    /// Also what a rule is about to bring back
    #[arg(short, long)]
    pub force: bool,
    /// Also the copies of the code, with what the jobs wrote there; if no job is named, also those of jobs in the archive
    #[arg(long)]
    pub with_results: bool,
}

/// `tpu clear-finished`, `clear-error`, `clear-all`, `-czj`.
#[derive(Debug, Args)]
pub struct Clear {
    /// User
    #[arg(value_name = "USER")]
    pub words: Vec<String>,
    /// Also what a rule is about to bring back
    #[arg(short, long)]
    pub force: bool,
}

/// `tpu -czw`.
#[derive(Debug, Args)]
pub struct CloseWindows {
    /// User
    #[arg(value_name = "USER")]
    pub words: Vec<String>,
    /// Also windows that a person or the Python tool before tpu has opened, after a question; none that somebody looks at
    #[arg(short, long)]
    pub force: bool,
}

/// `tpu logs`.
#[derive(Debug, Args)]
pub struct Logs {
    /// Job (number or name), user
    #[arg(value_name = "JOB|USER")]
    pub words: Vec<String>,
    /// Go on printing what comes
    #[arg(short, long)]
    pub follow: bool,
    /// The last N lines only
    #[arg(short = 'n', long, value_name = "N")]
    pub lines: Option<usize>,
    /// Lines that match this regular expression
    #[arg(long, value_name = "REGEX")]
    pub grep: Option<String>,
    /// Lines of this worker alone, from 0
    #[arg(long, value_name = "WORKER")]
    pub worker: Option<u32>,
}

/// `tpu files`.
#[derive(Debug, Args)]
pub struct JobFilesArgs {
    /// Job (number or name), user
    #[arg(value_name = "JOB|USER")]
    pub words: Vec<String>,
    /// Copy these files or directories here
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub get: Vec<String>,
    /// Copy them into this directory
    #[arg(long, value_name = "DIR")]
    pub to: Option<String>,
}

/// `tpu history`.
#[derive(Debug, Args)]
pub struct History {
    /// Job (number or name), user
    #[arg(value_name = "JOB|USER")]
    pub words: Vec<String>,
    /// The last N events
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    pub lines: usize,
    /// Only what happened since you last used this option
    #[arg(long)]
    pub since_last: bool,
}

/// `tpu wait`.
#[derive(Debug, Args)]
pub struct Wait {
    /// Jobs (numbers, names, selectors), user
    #[arg(value_name = "JOB|USER")]
    pub words: Vec<String>,
    /// What to wait for
    #[arg(long = "for", value_name = "WHAT", default_value = "end")]
    pub what: WaitFor,
    /// Give up after this long: 90s, 30m, 2h
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<String>,
}

/// What `tpu wait` waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WaitFor {
    /// All have ended, one way or another.
    End,
    /// All have finished well.
    Finished,
    /// One has failed.
    Error,
}
