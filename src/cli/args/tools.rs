//! The arguments of what is not about one job: `classify`, `doctor`, `demo`.

use std::path::PathBuf;

use clap::Args;

/// `tpu classify`.
#[derive(Debug, Args)]
pub struct Classify {
    /// File, or - for standard input
    pub file: Option<PathBuf>,
    /// Each line on its own
    #[arg(long)]
    pub lines: bool,
    /// Exit code of the job
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub exit_code: Option<i32>,
    /// The exit code is that of a script, which may hide the program's: 0 then only means that it has ended
    #[arg(long, requires = "exit_code")]
    pub script: bool,
    /// State of the target
    #[arg(long, value_name = "STATE")]
    pub api_state: Option<String>,
    /// Check a pattern file (the lab's own by default) and stop
    #[arg(long)]
    pub check_patterns: bool,
}

/// `tpu doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Put back a backup of data.json: the newest, or the N-th newest
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1")]
    pub restore: Option<usize>,
    /// Repair what needs no decision of yours
    #[arg(long, conflicts_with = "restore")]
    pub fix: bool,
    /// Whether this lock is to be had: what `doctor` asks a second process
    #[arg(long, hide = true, value_name = "FILE", conflicts_with_all = ["restore", "fix"])]
    pub probe_lock: Option<PathBuf>,
}

/// `tpu demo`.
#[derive(Debug, Args)]
pub struct Demo {
    /// Run the demo as text, check each step, clean up
    #[arg(long)]
    pub headless: bool,
    /// Record the screen to a file for asciinema, and end automatically
    #[arg(long, value_name = "FILE", conflicts_with_all = ["headless", "sabotage"])]
    pub record: Option<PathBuf>,
    /// Columns and rows of what is written
    #[arg(long, value_name = "COLSxROWS", default_value = "120x32", value_parser = screen_size, requires = "record")]
    pub size: (u16, u16),
    /// Break one thing on purpose, to see the demo notice
    #[arg(long, hide = true, value_name = "WHAT")]
    pub sabotage: Option<String>,
}

/// Reads `120x32`: no less than the screen needs to show a list, no more than fits a page.
fn screen_size(typed: &str) -> Result<(u16, u16), String> {
    let parts = typed.split_once('x').and_then(|(columns, rows)| {
        Some((columns.parse::<u16>().ok()?, rows.parse::<u16>().ok()?))
    });
    parts
        .filter(|(columns, rows)| (60..=400).contains(columns) && (16..=200).contains(rows))
        .ok_or_else(|| "columns and rows, from 60x16 to 400x200, as in 120x32".to_owned())
}
