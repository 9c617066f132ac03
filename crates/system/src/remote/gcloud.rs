//! Workers reached by `gcloud compute tpus tpu-vm ssh`, where nothing else is let through.
//!
//! It is no help beyond the connection (reference/gcloud.md §2.8): a command is run again up to ten times
//! when ssh ends with 255, so everything asked over it must be one that may arrive twice; each worker has
//! a gcloud of its own, because with several it answers 0 for failures and mixes their lines.

use std::sync::Arc;

use crate::sys::proc::Spawn;
use tpu_core::model::{login, variables};

use super::command::last_line;
use super::each::{Gate, Place};
use super::far::{FarRemote, Way};
use super::{Remote, RemoteError, Worker};

/// Connections that are being opened at a time: each takes a gcloud, which is a second of computing.
const OPENING: usize = 32;

/// How workers are reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GcloudConfig {
    /// The program; else `gcloud`.
    pub program: Option<String>,
    /// The target.
    pub target: String,
    /// Its zone.
    pub zone: Option<String>,
    /// Its project; else gcloud's own.
    pub project: Option<String>,
    /// The account on the workers; else gcloud's choice.
    pub user: Option<String>,
    /// The key for it; else gcloud's own.
    pub key: Option<String>,
    /// Further words for the ssh that it runs.
    pub options: Vec<String>,
}

/// The door to workers over gcloud.
pub fn open(config: GcloudConfig) -> Box<dyn Remote> {
    let way = Gcloud { config, gate: Gate::new(OPENING) };
    Box::new(FarRemote { way: Arc::new(way) })
}

struct Gcloud {
    config: GcloudConfig,
    gate: Gate,
}

impl Gcloud {
    fn gcloud(&self, worker: &Worker) -> Spawn {
        let config = &self.config;
        let place = match &config.user {
            Some(user) => format!("{user}@{}", config.target),
            None => config.target.clone(),
        };
        let mut words = vec![place, format!("--worker={}", worker.index), "--quiet".to_owned()];
        words.extend(config.zone.iter().map(|zone| format!("--zone={zone}")));
        words.extend(config.project.iter().map(|project| format!("--project={project}")));
        words.extend(config.key.iter().map(|key| format!("--ssh-key-file={key}")));
        let fixed = ["-oConnectTimeout=10", "-oServerAliveInterval=5", "-oServerAliveCountMax=3"];
        let flags = config.options.iter().map(String::as_str).chain(fixed);
        words.extend(flags.map(|flag| format!("--ssh-flag={flag}")));
        let mut spawn = Spawn::new(config.program.as_deref().unwrap_or("gcloud"))
            .args(["compute", "tpus", "tpu-vm", "ssh"])
            .args(words);
        for name in variables::claiming() {
            spawn = spawn.env_remove(name);
        }
        spawn
    }
}

impl Way for Gcloud {
    fn reach(&self, _: &Worker) -> Result<(), RemoteError> {
        Ok(())
    }

    fn enter(&self) -> Option<Place<'_>> {
        Some(self.gate.enter())
    }

    fn spawn(&self, worker: &Worker, command: &str) -> Spawn {
        self.gcloud(worker).arg(format!("--command={command}"))
    }

    fn is_trying_again(&self, complaint: &[u8]) -> bool {
        // It waits for 5 s between this line and the next try.
        memchr::memmem::find(complaint, b"Retrying: SSH command error").is_some()
    }

    fn reason(&self, complaint: &[u8]) -> String {
        // What it says of a login is many lines long.
        let line = last_line(complaint).unwrap_or_else(|| "gcloud has failed".to_owned());
        login::with_remedy(line, &String::from_utf8_lossy(complaint))
    }

    fn terminal(&self, worker: &Worker, command: Option<&str>) -> Spawn {
        let command = command.map(|command| format!("--command={command}"));
        self.gcloud(worker).args(command)
    }
}
