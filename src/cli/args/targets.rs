//! The arguments of the commands about targets and the simulated cloud.

use std::path::PathBuf;

use super::{Brought, OfTarget};
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
    #[arg(long, alias = "preemptible", conflicts_with = "spot")]
    pub pre: bool,
    /// Spot
    #[arg(long)]
    pub spot: bool,
    /// The kind of target [default: what the other options say]
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// Its provider [default: that of the settings]
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// The project that it is in [default: that of the settings]
    #[arg(long, value_name = "NAME")]
    pub project: Option<String>,
    /// Address of its provider's API [default: that of the settings]
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    /// Addresses of its machines, for a target that no control plane knows
    #[arg(long, value_name = "HOST[:PORT],…", value_delimiter = ',')]
    pub address: Vec<String>,
    /// The account there
    #[arg(long, value_name = "NAME", requires = "address")]
    pub ssh_user: Option<String>,
    /// The key for it
    #[arg(long, value_name = "FILE", requires = "address")]
    pub ssh_key: Option<String>,
    /// Also where a job is at work, whose workers could not be reached then
    #[arg(short, long)]
    pub force: bool,
    /// Options of one kind of target alone, by their names
    #[command(flatten)]
    pub of_kind: Brought<OfTarget>,
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
    #[arg(long, alias = "preemptible", conflicts_with = "norm")]
    pub pre: bool,
    /// On demand (-norm)
    #[arg(long)]
    pub norm: bool,
    /// Queue the job, and wait here until it starts
    #[arg(long)]
    pub queued: bool,
}

/// `tpu applyy`.
#[derive(Debug, Args)]
pub struct Insist {
    /// What is asked for.
    #[command(flatten)]
    pub apply: Apply,
    /// t=SECONDS between two tries [default: 10], m=TIMES at most [default: 2000]
    #[arg(value_name = "KEY=VALUE")]
    pub words: Vec<String>,
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

/// `tpu targets`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Targets {
    /// What is in use and what it costs, by zone, type and pricing (prices: `set-settings prices`)
    #[arg(long)]
    pub cost: bool,
    /// What to do with them
    #[command(subcommand)]
    pub step: Option<TargetsStep>,
}

/// What can be done with all targets.
#[derive(Debug, Subcommand)]
pub enum TargetsStep {
    /// Register what the cloud has: shows the difference, and asks
    #[command(
        after_help = "Examples:\n  tpu targets import --dry-run\n  tpu targets import --alias '{type}-{pricing}{n}'"
    )]
    Import(Import),
}

/// `tpu targets import`.
#[derive(Debug, Args)]
pub struct Import {
    /// Alias for those without one, from {type} {family} {zone} {pricing} {name} {n}
    #[arg(long, value_name = "TEMPLATE")]
    pub alias: Option<String>,
    /// Only this provider's targets [default: every provider that a target or the settings name]
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Its project [default: that of the settings]
    #[arg(long, value_name = "NAME", requires = "provider")]
    pub project: Option<String>,
    /// Address of its API [default: that of the settings]
    #[arg(long, value_name = "URL", requires = "provider")]
    pub endpoint: Option<String>,
    /// Only what a kind of target finds by itself
    #[arg(long, value_name = "KIND", conflicts_with = "provider")]
    pub kind: Option<String>,
    /// Options of one kind of target alone, by their names
    #[command(flatten)]
    pub of_kind: Brought<OfTarget>,
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
    /// Preempt a target, with everything that runs on it
    Preempt(OneTarget),
    /// Make a target READY, whatever state it has
    Ready(OneTarget),
    /// Break the connection between the programs on a target
    Grpc(OneTarget),
    /// Break the connection to the workers of a target; what runs there continues
    Cut(OneTarget),
    /// Repair the connection to the workers of a target
    Mend(OneTarget),
    /// Run a scenario: what happens to which target, and when
    Play {
        /// A scenario, in TOML; - is standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Serve the simulated cloud behind Google's REST API, on this machine, until Ctrl-C
    Serve {
        /// Serve a simulated Kubernetes cluster instead, for kubectl
        #[arg(long, conflicts_with_all = ["scenario", "log"])]
        kubernetes: bool,
        /// Port; any free one if 0
        #[arg(long, value_name = "N", default_value_t = 0)]
        port: u16,
        /// Scenario that starts with the server, in TOML
        #[arg(long, value_name = "FILE")]
        scenario: Option<PathBuf>,
        /// Write a line of JSON for each request
        #[arg(long, value_name = "FILE")]
        log: Option<PathBuf>,
    },
    /// Trigger any event of a scenario now
    #[command(
        after_help = "Examples:\n  tpu sim event error class=auth call=list times=5\n  tpu sim event lose-answer call=create times=1\n  tpu sim event calm"
    )]
    Event {
        /// Its name
        #[arg(value_name = "EVENT")]
        name: String,
        /// What it needs, as in a scenario
        #[arg(value_name = "KEY=VALUE")]
        words: Vec<String>,
    },
    /// Lock the accelerators of a target, as another program would
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
        /// Only the next N creations fail
        #[arg(long, value_name = "N", requires = "off")]
        times: Option<u32>,
    },
}
