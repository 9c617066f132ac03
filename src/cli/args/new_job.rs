//! The options that `tpu run` and `tpu submit` share.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::{Brought, OfJob};

/// Options beside a job file.
#[derive(Clone, Debug, Default, Args)]
pub struct FileOptions {
    /// With FILE.yaml: a value for {{KEY}} in it
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// With FILE.yaml: set up what is not so (auto), all of it (force), or nothing
    /// (skip)
    #[arg(long, value_name = "HOW")]
    pub setup: Option<String>,
}

/// Options beside a type: which targets of it serve.
#[derive(Clone, Debug, Default, Args)]
pub struct TypeOptions {
    /// With a type: on-demand targets only
    #[arg(short = 'n', long, conflicts_with = "pre")]
    pub norm: bool,
    /// With a type: preemptible and spot targets only
    #[arg(short = 'p', long, alias = "preemptible")]
    pub pre: bool,
    /// With a type: only in these zones, regions or continents
    #[arg(long, value_name = "ZONE", value_delimiter = ',')]
    pub zone: Vec<String>,
}

/// Options about the job.
#[derive(Clone, Debug, Default, Args)]
pub struct JobOptions {
    /// How to choose among several machines: the first, any, most room or least room:
    /// sequential, random, smart, frugal [default: the setting]
    #[arg(long, value_name = "POLICY")]
    pub policy: Option<String>,
    /// Pass the number of resumes to the program as --config.stage
    #[arg(long)]
    pub log_stage: bool,
    /// Name of the job; its restarts keep it
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Use the code of this directory, as if you typed the command there
    #[arg(short = 'C', long, value_name = "PATH")]
    pub directory: Option<PathBuf>,
    /// Run the command where it is typed, in no copy of the code
    #[arg(long)]
    pub in_place: bool,
    /// Make a copy of the code for each member of an array or sweep, not one for all
    #[arg(long)]
    pub copy_each: bool,
    /// Give the command this variable, with the value that it has here or with this one, wherever
    /// the job runs
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,
    /// Give the command no variable of this shell
    #[arg(long)]
    pub clean_env: bool,
    /// Notify this receiver too, beside those of the setting: [EVENT,…=]WHERE, as in
    /// error,finished=me@example.org, a URL, tmux, or a command; `none` notifies nobody
    #[arg(long, value_name = "RECEIVER")]
    pub notify: Vec<String>,
}

/// The options of kinds of target, and the command, which ends the line.
#[derive(Clone, Debug, Default, Args)]
pub struct CommandOptions {
    /// Options of one kind of target alone, by their names
    #[command(flatten)]
    pub of_kind: Brought<OfJob>,
    /// Run this command instead of staging.sh
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
