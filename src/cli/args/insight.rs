//! The arguments of what looks back, and at what is left: statistics, quotas, bills, the archive.

use clap::{Args, Subcommand};

use super::{CheckpointsArgs, Deferred, StorageArgs};

/// The commands that look back.
#[derive(Debug, Subcommand)]
pub enum Insight {
    /// Show hours, cost, waiting, preemptions and failures
    #[command(
        after_help = "Examples:\n  tpu stats --by zone --since 30d\n  tpu stats alice --by week --csv > alice.csv\n\nCounted from records, journal and archive; prices are those of the settings."
    )]
    Stats(Deferred<StatsArgs>),
    /// Show the quota of TPUs and how much of it is used
    #[command(
        after_help = "Examples:\n  tpu quota\n  tpu quota v4 v6e us-central2\n  tpu quota --all --csv > quota.csv\n\nAddresses, instances and disks follow after the TPUs. TPUs count as the names of\ntypes do (v4-32: 32). Answers are shown again for five minutes, with\ntheir age."
    )]
    Quota(Deferred<QuotaArgs>),
    /// Show the cost of a month by day and category
    #[command(
        after_help = "Examples:\n  tpu billing\n  tpu billing --month 2026-10 --by sku\n  tpu billing --month 2026-10 --csv > bill.csv\n\nThe table of BigQuery that Cloud Billing exports to is said once:\n  tpu set-settings billing_table PROJECT.DATASET.TABLE\nAnswers are shown again for an hour, with their age; each question is a\nquery, which BigQuery bills."
    )]
    Billing(Deferred<BillingArgs>),
    /// List archived jobs, or restore them
    #[command(
        after_help = "Examples:\n  tpu archive list alice status:error age>7d\n  tpu archive show 7\n  tpu archive restore 7,9-12 alice\n\nA filter is as in the monitor: status: tag: tpu: type: zone: dir: user: age>2h !not."
    )]
    Archive(Deferred<ArchiveArgs>),
    /// List, copy or prune checkpoints
    #[command(
        after_help = "Examples:\n  tpu checkpoints 7\n  tpu checkpoints copy 7 europe-west4-a\n  tpu checkpoints prune 7 --keep every 10k\n\nWhole is what its framework loads again: no temporary name, no half copy, in a bucket with Orbax's commit_success.txt."
    )]
    Checkpoints(Deferred<CheckpointsArgs>),
    /// Show the size of buckets and directories
    #[command(
        after_help = "Examples:\n  tpu storage\n  tpu storage gs://lab-us /nfs/logs --csv\n\nAn answer is kept for a quarter of an hour; --fresh asks anew."
    )]
    Storage(Deferred<StorageArgs>),
    /// Show the disk use of copies, results, logs and state
    #[command(after_help = "Examples:\n  tpu disk\n  tpu disk alice --json")]
    Disk(Deferred<DiskArgs>),
}

/// `tpu disk`.
#[derive(Debug, Args)]
pub struct DiskArgs {
    /// Users whose copies and logs are shown [default: all]
    #[arg(value_name = "USER")]
    pub words: Vec<String>,
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
    /// From this time on: 30d (ago), 2026-11-01
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Up to this time: 30d (ago), 2026-11-01
    #[arg(long, value_name = "WHEN")]
    pub until: Option<String>,
    /// Print the rows as a table for other programs
    #[arg(long)]
    pub csv: bool,
}

/// `tpu quota`.
#[derive(Debug, Args)]
pub struct QuotaArgs {
    /// Zones, regions and types, or their first letters [default: all]
    #[arg(value_name = "ZONE|TYPE")]
    pub words: Vec<String>,
    /// Also quotas that are neither granted nor used
    #[arg(long)]
    pub all: bool,
    /// Ask now, whatever the age of the last answer
    #[arg(long)]
    pub fresh: bool,
    /// Print the rows as a table for other programs
    #[arg(long)]
    pub csv: bool,
}

/// `tpu billing`.
#[derive(Debug, Args)]
pub struct BillingArgs {
    /// Which month, as 2026-10 [default: this one]
    #[arg(long, value_name = "YYYY-MM")]
    pub month: Option<String>,
    /// One row for each service, sku or project of a day
    #[arg(long, value_name = "WHAT", default_value = "service")]
    pub by: String,
    /// Ask now, whatever the age of the last answer
    #[arg(long)]
    pub fresh: bool,
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
        /// At most this many, the newest
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        lines: usize,
    },
    /// Show a record as it was when it was cleaned away
    Show {
        /// Number, user
        #[arg(value_name = "N|USER", required = true)]
        words: Vec<String>,
        /// If several jobs had this number: the N-th before the newest
        #[arg(long, value_name = "N", default_value_t = 0)]
        older: usize,
    },
    /// Print its output, if that is still stored
    Logs {
        /// Number, user
        #[arg(value_name = "N|USER", required = true)]
        words: Vec<String>,
        /// The last lines only
        #[arg(short = 'n', long, value_name = "N")]
        lines: Option<usize>,
        /// If several jobs had this number: the N-th before the newest
        #[arg(long, value_name = "N", default_value_t = 0)]
        older: usize,
    },
    /// Restore records to the list of jobs; nothing is started
    Restore {
        /// Numbers, user
        #[arg(value_name = "N|USER", required = true)]
        words: Vec<String>,
        /// If several jobs had the number: the N-th before the newest
        #[arg(long, value_name = "N", default_value_t = 0)]
        older: usize,
    },
}
