//! `tpu hosts`, `tpu pools`.

use clap::{Args, Subcommand};

use super::{Brought, OfMachine};

/// `tpu hosts`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  tpu hosts\n  tpu hosts add gpu[01-04] --max-jobs 2 --gpus 8"
)]
pub struct Hosts {
    /// What to do with them
    #[command(subcommand)]
    pub step: Option<HostsStep>,
}

/// What can be done with hosts.
#[derive(Debug, Subcommand)]
pub enum HostsStep {
    /// List machines with their limits, jobs and load
    #[command(after_help = "Examples:\n  tpu hosts list\n  tpu hosts list gpu[01-04]")]
    List(SomeHosts),
    /// Show details of one machine
    #[command(after_help = "Examples:\n  tpu hosts show gpu01\n  tpu hosts show gpu01 --json")]
    Show(SomeHosts),
    /// Add machines that ssh reaches
    #[command(
        after_help = "Examples:\n  tpu hosts add gpu[01-04].lab --user me --max-jobs 2 --gpus 8\n  tpu hosts add j[1-4] --address juliet[1-4].lab:2222 --pool lab --tag a100"
    )]
    Add(AddHosts),
    /// Set limits for jobs that start from now on
    #[command(
        after_help = "Examples:\n  tpu hosts set gpu[01-04] --max-jobs 2 --gpus 8\n  tpu hosts set local --max-jobs none"
    )]
    Set(SetHosts),
    /// Start no new jobs there; running ones continue
    #[command(
        after_help = "Examples:\n  tpu hosts drain gpu03 --why 'new disk on Monday'\n  tpu hosts drain gpu[01-04]"
    )]
    Drain(DrainHosts),
    /// Start jobs there again
    #[command(after_help = "Examples:\n  tpu hosts undrain gpu03\n  tpu hosts undrain gpu[01-04]")]
    Undrain(SomeHosts),
    /// Remove machines on which nothing runs
    #[command(after_help = "Examples:\n  tpu hosts remove gpu03\n  tpu hosts remove gpu[01-04]")]
    Remove(SomeHosts),
    /// Ask machines how they are
    #[command(after_help = "Examples:\n  tpu hosts probe gpu[01-04]\n  tpu hosts probe local")]
    Probe(SomeHosts),
    /// Ask machines what they have, and store it as their limits
    #[command(after_help = "Examples:\n  tpu hosts detect gpu[01-04]\n  tpu hosts detect local")]
    Detect(SomeHosts),
}

/// Hosts by their names.
#[derive(Debug, Args)]
pub struct SomeHosts {
    /// Machines, patterns of names, pools, tags
    #[arg(value_name = "HOST")]
    pub targets: Vec<String>,
}

/// What machines have for jobs, as typed.
#[derive(Debug, Args)]
pub struct HostLimits {
    /// Jobs at a time, or `none` for no limit
    #[arg(long, value_name = "N")]
    pub max_jobs: Option<String>,
    /// GPUs to give out, or `none` to let every job see all
    #[arg(long, value_name = "N")]
    pub gpus: Option<String>,
    /// CPUs to give out, or `none`
    #[arg(long, value_name = "N")]
    pub cpus: Option<String>,
    /// Memory to give out, as in 256G, or `none`
    #[arg(long, value_name = "SIZE")]
    pub mem: Option<String>,
}

/// `tpu hosts add`.
#[derive(Debug, Args)]
pub struct AddHosts {
    /// Names of the machines, or patterns of names
    #[arg(value_name = "HOST", required = true)]
    pub targets: Vec<String>,
    /// Addresses: hosts, HOST:PORT or patterns; as many as names [default: the names]
    #[arg(long, value_name = "ADDRESS")]
    pub address: Vec<String>,
    /// The account there (also: --user NAME)
    #[arg(long, value_name = "NAME")]
    pub ssh_user: Option<String>,
    /// The key for it
    #[arg(long, visible_alias = "key", value_name = "FILE")]
    pub ssh_key: Option<String>,
    /// What they have for jobs.
    #[command(flatten)]
    pub limits: HostLimits,
    /// Their pools; a job can ask for a pool instead of a machine
    #[arg(long, value_name = "NAME")]
    pub pool: Vec<String>,
    /// Their tags
    #[arg(long, value_name = "WORD")]
    pub tag: Vec<String>,
    /// The `activate` of a Python environment there: it is read before a job begins
    #[arg(long, value_name = "FILE")]
    pub pyenv: Option<String>,
    /// Any machine may answer at an address, and one at several (--identity any)
    #[arg(long)]
    pub any_identity: bool,
    /// Do not try whether they answer
    #[arg(long)]
    pub no_probe: bool,
    /// Options of one kind of target alone, by their names
    #[command(flatten)]
    pub of_kind: Brought<OfMachine>,
}

/// `tpu hosts set`.
#[derive(Debug, Args)]
pub struct SetHosts {
    /// Targets, patterns of names, pools, tags
    #[arg(value_name = "TARGET", required = true)]
    pub targets: Vec<String>,
    /// What they have for jobs.
    #[command(flatten)]
    pub limits: HostLimits,
    /// New list of their pools, or `none`
    #[arg(long, value_name = "NAME")]
    pub pool: Vec<String>,
    /// New list of their tags, or `none`
    #[arg(long, value_name = "WORD")]
    pub tag: Vec<String>,
    /// The `activate` of a Python environment there, read before a job begins, or `none`
    #[arg(long, value_name = "FILE")]
    pub pyenv: Option<String>,
}

/// `tpu hosts drain`.
#[derive(Debug, Args)]
pub struct DrainHosts {
    /// Machines, patterns of names, pools, tags
    #[arg(value_name = "HOST", required = true)]
    pub targets: Vec<String>,
    /// Purpose; shown to others who are refused the machine
    #[arg(long, value_name = "TEXT")]
    pub why: Option<String>,
}

/// `tpu pools`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Pools {
    /// What to do with them
    #[command(subcommand)]
    pub step: Option<PoolsStep>,
}

/// What can be done with pools of hosts.
#[derive(Debug, Subcommand)]
pub enum PoolsStep {
    /// Start jobs on the machines of a pool again
    #[command(after_help = "Examples:\n  tpu pools activate lab\n  tpu pools activate lab old")]
    Activate(SomePools),
    /// Start no new jobs on the machines of a pool
    #[command(after_help = "Examples:\n  tpu pools deactivate lab\n  tpu pools deactivate lab old")]
    Deactivate(SomePools),
    /// Set limits of the machines of a pool
    #[command(
        after_help = "Examples:\n  tpu pools set lab --max-jobs 2\n  tpu pools set lab --gpus 8"
    )]
    Set(SetHosts),
}

/// Pools by their names.
#[derive(Debug, Args)]
pub struct SomePools {
    /// Pools
    #[arg(value_name = "POOL", required = true)]
    pub pools: Vec<String>,
}
