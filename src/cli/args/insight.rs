//! The arguments of what looks back: statistics, the archive.

use clap::{Args, Subcommand};

use super::Deferred;

/// The commands that look back.
#[derive(Debug, Subcommand)]
pub enum Insight {
    /// Count hours, cost, waiting, preemptions and failures
    #[command(
        after_help = "Examples:\n  tpu stats --by zone --since 30d\n  tpu stats alice --by week --csv > alice.csv\n\nCounted from records, journal and archive; prices are those of the settings."
    )]
    Stats(Deferred<StatsArgs>),
    /// Look at jobs that were cleaned away, or bring them back
    #[command(
        after_help = "Examples:\n  tpu archive list alice status:error age>7d\n  tpu archive show 7\n  tpu archive restore 7,9-12 alice\n\nA filter is as in the monitor: status: tag: tpu: type: zone: dir: user: age>2h !not."
    )]
    Archive(Deferred<ArchiveArgs>),
}

/// `tpu stats`.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Whose [default: everybody's]
    #[arg(value_name = "USER")]
    pub words: Vec<String>,
    /// One row for each user, target, type, zone, tag, week or kind
    #[arg(long, value_name = "WHAT", default_value = "user")]
    pub by: String,
    /// From so long ago, or from a day on: 30d, 2026-11-01
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Up to so long ago, or up to a day
    #[arg(long, value_name = "WHEN")]
    pub until: Option<String>,
    /// Print the rows as a table for other programs
    #[arg(long)]
    pub csv: bool,
}

/// `tpu archive`.
#[derive(Debug, Args)]
pub struct ArchiveArgs {
    /// What to do
    #[command(subcommand)]
    pub step: ArchiveStep,
}

/// What can be done with the archive.
#[derive(Debug, Subcommand)]
pub enum ArchiveStep {
    /// List what was cleaned away, the newest last
    List {
        /// User; the rest is a filter
        #[arg(value_name = "USER|FILTER")]
        words: Vec<String>,
        /// No more than so many, the newest
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        lines: usize,
    },
    /// Show a record as it was when it was cleaned away
    Show {
        /// Number, user
        #[arg(value_name = "N|USER", required = true)]
        words: Vec<String>,
    },
    /// Print what it has printed, if that is still there
    Logs {
        /// Number, user
        #[arg(value_name = "N|USER", required = true)]
        words: Vec<String>,
        /// The last lines only
        #[arg(short = 'n', long, value_name = "N")]
        lines: Option<usize>,
    },
    /// Bring records back among the jobs; nothing begins by it
    Restore {
        /// Numbers, user
        #[arg(value_name = "N|USER", required = true)]
        words: Vec<String>,
    },
}
