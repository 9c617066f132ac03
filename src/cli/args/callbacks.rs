//! The arguments of what scripts and launchers call back with.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `tpu finish-job`, `fail-job`.
#[derive(Debug, Args)]
pub struct Finish {
    /// SESSION:WINDOW
    #[arg(value_name = "SESSION:WINDOW")]
    pub window: String,
    /// Accept it although the output says otherwise
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
    /// A window is open again: is the job still to be shown?
    Again {
        /// Launch token
        token: String,
    },
    /// Unlocks the terminal of which standard input is the other side
    PtyOpen,
    /// Takes the terminal of which standard input is the other side, and becomes another program
    PtyExec {
        /// The program and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Becomes a program with the variables of the shell in which it was typed
    AsTyped {
        /// The directory of the launch
        state: PathBuf,
        /// The names of its secrets, each ending in a comma
        names: String,
        /// The program and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Becomes a program that has the functions of conda
    WithConda {
        /// The directory of the launch
        state: PathBuf,
        /// The program and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Leaves the terminal that this was started from, and becomes another program
    Apart {
        /// The program and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Shows what is written at the terminal of which standard input is the other side, and keeps it
    Relay {
        /// The job
        job: String,
        /// The log
        log: PathBuf,
        /// Where output lies on its way to the log
        spool: PathBuf,
        /// The process whose end is the end of the job
        pid: Option<u32>,
    },
    /// Runs the job on the workers of its target, and prints what they say
    Workers {
        /// Launch token
        token: String,
    },
    /// Sets up what the job wants on this machine, and becomes its command
    SetUp {
        /// Launch token
        token: String,
    },
    /// The launcher ends before its job has: was its window closed?
    Closed {
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
