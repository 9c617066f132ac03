//! `tpu sweep`.

use clap::Args;

/// `tpu sweep`.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// A group, by its number or name, or several jobs; and their user
    #[arg(value_name = "JOB|USER", required = true)]
    pub words: Vec<String>,
    /// By the last loss, or by the lowest: last, best
    #[arg(long, value_name = "LOSS", default_value = "last")]
    pub by: String,
}
