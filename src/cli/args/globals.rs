//! What may be said beside any command.

use std::path::{Path, PathBuf};

use clap::{ArgAction, Args, ValueEnum};

use tpu_core::model::ids::JobId;

/// Flags that stand before or after any command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Anywhere")]
pub struct Globals {
    /// State file [default: settings, else the user's data directory]
    #[arg(long, global = true, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Settings file that outranks the usual ones
    #[arg(long, global = true, value_name = "FILE")]
    pub settings: Option<PathBuf>,
    /// Whose jobs, directories and settings
    #[arg(long, global = true, value_name = "NAME")]
    pub user: Option<String>,
    /// tmux server to use (tmux -L NAME)
    #[arg(long, global = true, value_name = "NAME")]
    pub tmux_socket: Option<String>,
    /// Control plane of the targets: none, sim, google
    #[arg(long, global = true, value_name = "NAME")]
    pub cloud: Option<String>,
    /// Print one JSON document on stdout and nothing else
    #[arg(long, global = true)]
    pub json: bool,
    /// Answer yes to every question
    #[arg(short, long, global = true)]
    pub yes: bool,
    /// Never ask; questions become errors
    #[arg(long, global = true)]
    pub no_input: bool,
    /// Print what would be done and stop
    #[arg(long, global = true)]
    pub dry_run: bool,
    /// Print on stderr which data file, tmux server, user and cloud are used
    #[arg(long, global = true)]
    pub verbose: bool,
    /// Colours
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true
    )]
    pub color: Color,
    /// Print this help
    #[arg(short, long, global = true, action = ArgAction::HelpShort)]
    pub help: Option<bool>,
    /// The job into whose window this process prints, if it is one of its callbacks
    #[arg(skip)]
    pub window_of: Option<JobId>,
}

impl Globals {
    /// Those that a process which this one starts is to have: what is not in the environment. Paths begin in `dir`.
    pub fn to_flags(&self, dir: &Path) -> Vec<String> {
        let mut flags = Vec::new();
        if let Some(settings) = &self.settings {
            let path = dir.join(settings);
            flags.extend(["--settings".to_owned(), path.display().to_string()]);
        }
        if let Some(cloud) = &self.cloud {
            flags.extend(["--cloud".to_owned(), cloud.clone()]);
        }
        flags
    }
}

/// When to colour the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}
