//! The arguments of the commands that reach into the machines of a target.

use clap::{Args, Subcommand};

/// The commands that reach into machines.
#[derive(Debug, Subcommand)]
pub enum Workers {
    /// Find what is wrong with a target and set it right
    #[command(after_help = "Examples:\n  tpu solve v2-32-p2\n  tpu solve lab-tpuvm-v4-8-1")]
    Solve(OnMachines),
    /// Mount the shared disk on a target's machines
    #[command(
        after_help = "Examples:\n  tpu mount-disk v2-32-p2\n  tpu mount-disk v2-32-p2 --force"
    )]
    MountDisk(OnMachines),
    /// Log a target's machines in to Weights & Biases
    #[command(after_help = "Examples:\n  tpu set-wandb v2-32-p2\n  tpu set-wandb lab-tpuvm-v4-8-1")]
    SetWandb(OnMachines),
    /// Check the Python environment and the devices of a target
    #[command(after_help = "Examples:\n  tpu check-env v2-32-p2\n  tpu check-env lab-tpuvm-v4-8-1")]
    CheckEnv(OnMachines),
    /// Run a test program on every machine of a target
    #[command(after_help = "Examples:\n  tpu test v2-32-p2\n  tpu test lab-tpuvm-v4-8-1")]
    Test(OnMachines),
    /// Log in to a target's machine, or run a command there
    #[command(
        after_help = "Examples:\n  tpu ssh v2-32-p2\n  tpu ssh v2-32-p2 all --command 'df -h'"
    )]
    Ssh(OnMachines),
    /// End what runs on a target's machines
    #[command(
        after_help = "Examples:\n  tpu kill-remote v2-32-p2\n  tpu kill-remote lab-tpuvm-v4-8-1"
    )]
    KillRemote(OnMachines),
    /// Copy logs and checkpoints to another zone
    #[command(
        after_help = "Examples:\n  tpu cp /logs/run-7 us-central1-a\n  tpu cp /logs/run-7 us-central2-b europe-west4-a"
    )]
    Cp(OnMachines),
}

/// What the commands about machines are given.
#[derive(Debug, Args)]
pub struct OnMachines {
    /// Target, alias or full name, and what the command takes beside it
    #[arg(value_name = "TARGET")]
    pub words: Vec<String>,
    /// Command to run there
    #[arg(long, value_name = "CMD")]
    pub command: Option<String>,
    /// Also where it is done already
    #[arg(long)]
    pub force: bool,
    /// Zone [default: as registered]
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
}

impl Workers {
    /// The command as typed, and what it is given.
    pub fn parts(&self) -> (&'static str, &OnMachines) {
        match self {
            Self::Solve(of) => ("solve", of),
            Self::MountDisk(of) => ("mount-disk", of),
            Self::SetWandb(of) => ("set-wandb", of),
            Self::CheckEnv(of) => ("check-env", of),
            Self::Test(of) => ("test", of),
            Self::Ssh(of) => ("ssh", of),
            Self::KillRemote(of) => ("kill-remote", of),
            Self::Cp(of) => ("cp", of),
        }
    }
}
