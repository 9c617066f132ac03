//! What a controller says of itself: since when it is up, and for how long a message to it may be on its way.

use std::time::Duration;

use super::ask;
use super::client::{Client, ProgramCall};

/// Slurm's own values where it says none.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);
const MIN_JOB_AGE: Duration = Duration::from_secs(300);

/// What matters of `scontrol show config`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ControllerConfig {
    /// When the controller was started, in its own words.
    pub(super) boot: String,
    /// A message is given up after this.
    pub(super) message_timeout: Duration,
    /// What is over is forgotten after this, and not before.
    pub(super) min_job_age: Duration,
    /// What says whose place is taken for whom: `preempt/partition_prio`.
    pub(super) preemption: String,
}

/// Asks for it.
pub(super) fn ask(client: &dyn Client, limit: Duration) -> Result<ControllerConfig, String> {
    let call = ProgramCall::new("scontrol", limit).args(["show", "config"]);
    let text = ask::ask(client, &call)?;
    read(&text).ok_or_else(|| "it does not say since when it is up".to_owned())
}

fn read(text: &str) -> Option<ControllerConfig> {
    let value = |name: &str| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    };
    let seconds = |name: &str| {
        let number: String = value(name)?.chars().take_while(char::is_ascii_digit).collect();
        number.parse().ok().map(Duration::from_secs)
    };
    Some(ControllerConfig {
        boot: value("BOOT_TIME")?,
        message_timeout: seconds("MessageTimeout").unwrap_or(MESSAGE_TIMEOUT),
        min_job_age: seconds("MinJobAge").unwrap_or(MIN_JOB_AGE),
        preemption: value("PreemptType").unwrap_or_else(|| "preempt/none".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_and_patience_are_read() {
        let text = "Configuration data as of 2026-11-22T03:03:30\nBOOT_TIME               = 2026-11-22T03:03:04\nMessageTimeout          = 10 sec\n";
        let config = read(text).unwrap();
        assert_eq!(
            (config.boot.as_str(), config.message_timeout.as_secs()),
            ("2026-11-22T03:03:04", 10)
        );
        assert_eq!(read("BOOT_TIME = x").unwrap().message_timeout, MESSAGE_TIMEOUT);
        assert_eq!(read("Slurmctld(primary) at vm is DOWN"), None);
    }
}
