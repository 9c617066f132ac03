//! The arguments of what is about the state file: the beginning, and edits by path.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Deferred;

/// The commands about the state file.
#[derive(Debug, Subcommand)]
pub enum State {
    /// Set up a user, settings and example scripts
    #[command(
        after_help = "Examples:\n  tpu init\n  tpu init --from /shared/tpu_manager/data.json\n\nWithout a terminal nothing is asked: the flags say it, or the account and the directory do."
    )]
    Init(Deferred<Init>),
    /// Write jobs, curves, events and logs into a directory
    #[command(
        after_help = "Examples:\n  tpu export ~/jobs\n  tpu export ~/jobs alice\n\nTables are CSV and JSON; logs, code and job files lie in jobs/USER/NUMBER."
    )]
    Export(Deferred<Export>),
    /// Remove what tpu has installed; data and results stay
    #[command(
        after_help = "Examples:\n  tpu uninstall --dry-run\n  tpu uninstall -y\n\nRemoved are the daemon, its unit or crontab line, servers, files in ~/.tpu on\nhosts and workers, objects in clusters, tokens and completions. Jobs that run\ngo on. Exit code 6: somebody did not answer; the same again finishes it."
    )]
    Uninstall,
    /// Read or change values of the state file
    #[command(
        after_help = "Examples:\n  tpu data get users.alice.tmux_name\n  tpu data set conda_env_name NNX\n  tpu data merge more.json --dry-run"
    )]
    Data(Deferred<DataEdit>),
}

/// `tpu init`.
#[derive(Debug, Args)]
pub struct Init {
    /// Look at the data.json of the Python tool before tpu (or its directory), and say what using it means
    #[arg(long, value_name = "PATH")]
    pub from: Option<PathBuf>,
    /// With --from: use that file from now on (it stays where it is)
    #[arg(long, requires = "from")]
    pub adopt: bool,
    /// Name of the first user [default: the account's]
    #[arg(long, value_name = "NAME", conflicts_with = "from")]
    pub name: Option<String>,
    /// Directory of your code, which becomes slot 1 [default: this one]
    #[arg(long, value_name = "PATH", conflicts_with = "from")]
    pub dir: Option<PathBuf>,
    /// us, cn, or a name such as Europe/Berlin
    #[arg(long, value_name = "ZONE", conflicts_with = "from")]
    pub time_zone: Option<String>,
    /// Put the example scripts into that directory
    #[arg(long, conflicts_with = "from")]
    pub scripts: bool,
    /// Keep the state file in DIR, which the accounts of a group share
    #[arg(long, value_name = "DIR", conflicts_with = "from")]
    pub shared: Option<PathBuf>,
    /// With --shared: the group [default: that of DIR]
    #[arg(long, value_name = "GROUP", requires = "shared")]
    pub group: Option<String>,
}

/// `tpu export`.
#[derive(Debug, Args)]
pub struct Export {
    /// Directory to write into; it must be empty or not exist
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Whose jobs [default: everybody's]
    #[arg(value_name = "USER")]
    pub words: Vec<String>,
    /// Leave out the copies of code
    #[arg(long)]
    pub no_code: bool,
}

/// `tpu data`.
#[derive(Debug, Args)]
pub struct DataEdit {
    /// What to do
    #[command(subcommand)]
    pub step: DataStep,
}

/// What can be done with data.json by path.
#[derive(Debug, Subcommand)]
pub enum DataStep {
    /// Print a value, as of users.alice.id
    Get {
        /// Names with dots between, numbers in brackets; all of it if none
        path: Option<String>,
    },
    /// Set a value; checked as the whole file is when it is read
    Set {
        /// Names with dots between, numbers in brackets
        path: String,
        /// JSON, or else text
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Merge a JSON file into it: maps are merged, everything else is replaced
    Merge {
        /// File, or - for standard input
        file: PathBuf,
    },
}
