//! The arguments of the commands that reach into the machines of a target.

use clap::{Args, Subcommand};

use super::Deferred;

/// The commands that reach into machines.
#[derive(Debug, Subcommand)]
pub enum Workers {
    /// Find and repair problems of a target
    #[command(
        after_help = "Examples:\n  tpu solve v2-32-p2\n  tpu solve lab-tpuvm-v4-8-1 --force\n\n\
        Makes the target usable, then follows the recipe 'solve': every step whose\n\
        check fails on a worker is set up there. Recipes are in recipes.toml beside\n\
        settings.json; assets/example/recipes.toml shows how one looks."
    )]
    Solve(Deferred<OfRecipe>),
    /// Mount the shared disk on a target's machines
    #[command(
        after_help = "Examples:\n  tpu mount-disk v2-32-p2\n  tpu mount-disk v2-32-p2 --force"
    )]
    MountDisk(Deferred<OfRecipe>),
    /// Log a target's machines in to Weights & Biases
    #[command(after_help = "Examples:\n  tpu set-wandb v2-32-p2\n  tpu set-wandb lab-tpuvm-v4-8-1")]
    SetWandb(Deferred<OfRecipe>),
    /// Check the Python environment and the devices of a target
    #[command(after_help = "Examples:\n  tpu check-env v2-32-p2\n  tpu check-env lab-tpuvm-v4-8-1")]
    CheckEnv(Deferred<OfRecipe>),
    /// Run a test program on every machine of a target
    #[command(after_help = "Examples:\n  tpu test v2-32-p2\n  tpu test lab-tpuvm-v4-8-1")]
    Test(Deferred<OfRecipe>),
    /// Open a shell on a target's machine or a job's node
    #[command(
        after_help = "Examples:\n  tpu ssh v2-32-p2\n  tpu ssh v2-32-p2 all --command 'df -h'\n  tpu ssh 7 node-12"
    )]
    Ssh(Deferred<Ssh>),
    /// Kill leftover processes on a target's machines
    #[command(
        after_help = "Examples:\n  tpu kill-remote v2-32-p2\n  tpu kill-remote v2-32-p2 --all-users"
    )]
    KillRemote(Deferred<KillRemote>),
    /// Copy files to a target's machines, or from them
    #[command(
        after_help = "Examples:\n  tpu cp config.yml v2-32-p2:~/run\n  tpu cp v2-32-p2:/tmp/trace traces --worker 0"
    )]
    Cp(Deferred<Copy>),
}

/// What the commands that follow a recipe are given.
#[derive(Debug, Args)]
pub struct OfRecipe {
    /// Target, alias or full name
    #[arg(value_name = "TARGET")]
    pub target: String,
    /// Also where it is done already
    #[arg(long)]
    pub force: bool,
}

/// `tpu describe`.
#[derive(Debug, Args)]
pub struct Describe {
    /// Target, alias or full name
    #[arg(value_name = "TARGET")]
    pub target: String,
    /// Ask its machines as well, by the recipe 'describe'
    #[arg(long)]
    pub machines: bool,
}

/// `tpu ssh`.
#[derive(Debug, Args)]
pub struct Ssh {
    /// Target, alias or full name; or a job: 7, bob/7
    #[arg(value_name = "TARGET|JOB")]
    pub target: String,
    /// Worker, from 0, or all; of a job at an engine the name of a node [default: the first]
    #[arg(value_name = "WORKER|NODE")]
    pub worker: Option<String>,
    /// Command to run there; none logs in
    #[arg(long, value_name = "CMD")]
    pub command: Option<String>,
}

/// `tpu kill-remote`.
#[derive(Debug, Args)]
pub struct KillRemote {
    /// Target, alias or full name
    #[arg(value_name = "TARGET")]
    pub target: String,
    /// Also processes of other users there, after a question
    #[arg(long)]
    pub all_users: bool,
    /// Also where a live job is at work
    #[arg(short, long)]
    pub force: bool,
}

/// `tpu cp`.
#[derive(Debug, Args)]
pub struct Copy {
    /// A file or directory here, or TARGET:PATH
    #[arg(value_name = "FROM")]
    pub from: String,
    /// A directory here, or TARGET:PATH of one
    #[arg(value_name = "TO")]
    pub to: String,
    /// The destination zone, when a run is copied between zones
    #[arg(value_name = "ZONE", hide = true)]
    pub zone: Option<String>,
    /// Worker, from 0, or all
    #[arg(long, value_name = "WORKER", default_value = "all")]
    pub worker: String,
}
