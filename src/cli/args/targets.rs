//! The arguments of the commands about targets and the simulated cloud.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `tpu register`.
#[derive(Debug, Args)]
pub struct Register {
    /// Full name
    pub name: String,
    /// Zone
    #[arg(long)]
    pub zone: Option<String>,
    /// Accelerator type, for example v2-32
    #[arg(long = "type", value_name = "TYPE")]
    pub accelerator: Option<String>,
    /// Preemptible
    #[arg(long, conflicts_with = "spot")]
    pub pre: bool,
    /// Spot
    #[arg(long)]
    pub spot: bool,
}

/// `tpu apply`, `tpu reapply`.
#[derive(Debug, Args)]
pub struct Apply {
    /// Target, alias or full name
    #[arg(value_name = "TARGET")]
    pub target: String,
    /// Accelerator type [default: as registered]
    #[arg(long = "type", value_name = "TYPE")]
    pub accelerator: Option<String>,
    /// Zone [default: as registered]
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
    /// Version of the machine's software [default: the usual one of the type]
    #[arg(long, value_name = "VERSION")]
    pub version: Option<String>,
    /// Spot
    #[arg(long, conflicts_with_all = ["pre", "norm"])]
    pub spot: bool,
    /// Preemptible
    #[arg(long, conflicts_with = "norm")]
    pub pre: bool,
    /// On demand (-norm)
    #[arg(long)]
    pub norm: bool,
}

/// Commands about one target.
#[derive(Debug, Args)]
pub struct OneTarget {
    /// Target, alias or full name
    #[arg(value_name = "TARGET")]
    pub target: String,
}

/// `tpu check-status`.
#[derive(Debug, Args)]
pub struct CheckStatus {
    /// Target, alias or full name; all that are known if none
    #[arg(value_name = "TARGET")]
    pub target: Option<String>,
}

/// `tpu sim`.
#[derive(Debug, Args)]
pub struct Sim {
    /// What happens
    #[command(subcommand)]
    pub event: SimEvent,
}

/// What can be made to happen in the simulated cloud.
#[derive(Debug, Subcommand)]
pub enum SimEvent {
    /// List the simulated targets
    List,
    /// Take a target away, with everything that runs on it
    Preempt(OneTarget),
    /// Make a target READY, whatever it was
    Ready(OneTarget),
    /// Let programs on a target lose their connection to each other
    Grpc(OneTarget),
    /// Break the way to the workers of a target; what runs there goes on
    Cut(OneTarget),
    /// Mend the way to the workers of a target
    Mend(OneTarget),
    /// Play a story: what happens to which target, and when
    Play {
        /// A scenario, in TOML; - is standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Let somebody else hold the accelerators of a target
    Lock {
        /// Target, alias or full name
        #[arg(value_name = "TARGET")]
        target: String,
        /// Let go of them again
        #[arg(long)]
        off: bool,
    },
    /// Give a target capacity again, or none
    Capacity {
        /// Target, alias or full name
        #[arg(value_name = "TARGET")]
        target: String,
        /// Creations fail from now on
        #[arg(long)]
        off: bool,
        /// Only so many creations fail
        #[arg(long, value_name = "N", requires = "off")]
        times: Option<u32>,
    },
}
