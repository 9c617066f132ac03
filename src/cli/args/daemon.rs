//! The arguments of the commands about the daemon.

use std::path::Path;

use clap::{Args, Subcommand};

use tpu_ops::base::watch::Hosting;

use super::ServeArgs;

/// `tpu daemon`.
#[derive(Debug, Args)]
pub struct Daemon {
    /// What to do with it
    #[command(subcommand)]
    pub step: DaemonStep,
}

/// What can be done with the daemon.
#[derive(Debug, Clone, Subcommand)]
pub enum DaemonStep {
    /// Run it here, until Ctrl-C or SIGTERM
    Run(RunDaemon),
    /// Start it in a tmux session (tpu-daemon), else without a terminal
    Start(StartDaemon),
    /// Stop it; jobs continue
    Stop,
    /// Start it and servers anew after an upgrade; jobs continue
    Restart,
    /// Say whether it runs (exit code 0) or not (1)
    Status,
    /// Show what it would do next for each job, and why
    Plan,
    /// Start it automatically (systemd or crontab); asks first
    Install(StartDaemon),
    /// Undo `install`; a running daemon continues
    Uninstall,
}

/// `tpu daemon run`.
#[derive(Debug, Clone, Default, Args)]
pub struct RunDaemon {
    /// Do nothing; say what would be done, and why
    #[arg(long)]
    pub watch_only: bool,
    /// How whoever starts it hosts it
    #[arg(long, hide = true, value_parser = Hosting::ARRANGED.map(Hosting::as_str))]
    pub hosting: Option<String>,
    /// End after an hour without anything to do
    #[arg(long, hide = true)]
    pub ends_idle: bool,
    /// As for `start`
    #[command(flatten)]
    pub how: StartDaemon,
}

/// `tpu daemon start`.
#[derive(Debug, Clone, Default, Args)]
pub struct StartDaemon {
    /// Act also while MONITOR.py of the Python tool before tpu runs, which acts on the same jobs (or set
    /// `TPU_BESIDE_ORIGINAL=1`)
    #[arg(long)]
    pub beside_original: bool,
    /// Whether it answers over HTTP
    #[command(flatten)]
    pub also: AlsoServe,
}

/// Whether the daemon answers over HTTP as well, and where.
#[derive(Debug, Clone, Default, Args)]
pub struct AlsoServe {
    /// Answer over HTTP as well, as `tpu serve` does
    #[arg(long)]
    pub serve: bool,
    /// Where, and as what
    #[command(flatten)]
    pub how: ServeArgs,
}

impl AlsoServe {
    /// Where it is to answer, if it is: whoever says where means that it is.
    pub fn wanted(&self) -> Option<&ServeArgs> {
        (self.serve || !self.how.to_flags(Path::new("")).is_empty()).then_some(&self.how)
    }
}

/// `tpu -Ml`.
#[derive(Debug, Args)]
pub struct MonitorLog {
    /// Time zone: us, cn, or a name such as Europe/Berlin [default: yours]
    #[arg(value_name = "ZONE")]
    pub zone: Option<String>,
    /// The last N events
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    pub lines: usize,
}
