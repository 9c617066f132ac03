//! The checks of `doctor`, from time to time: what they find goes to the journal, once.

use std::collections::BTreeSet;
use std::time::Duration;

use tpu_ops::Ctx;
use tpu_ops::base::watch;
use tpu_ops::front::doctor::{self, Severity};

/// When the checks ran, and what they found then.
#[derive(Debug, Default)]
pub(super) struct Checks {
    ran: Option<Duration>,
    found: BTreeSet<String>,
}

impl Checks {
    /// Runs them if it is time. The first time is one interval after the start.
    pub(super) fn run(&mut self, ctx: &Ctx, now: Duration) {
        let Ok(data) = ctx.data() else { return };
        let every = Duration::from_secs(u64::from(data.monitor_config().test_freq));
        if now < *self.ran.get_or_insert(now) + every {
            return;
        }
        self.ran = Some(now);
        let findings = doctor::look(ctx);
        let found: BTreeSet<String> = findings
            .into_iter()
            .filter(|finding| finding.severity != Severity::Fine)
            .map(|finding| format!("{}: {}", finding.severity.as_str(), finding.what))
            .collect();
        for new in found.difference(&self.found) {
            // The next round says it again if it could not be noted.
            if watch::note(ctx, watch::ACTOR, "doctor", new).is_err() {
                return;
            }
        }
        self.found = found;
    }
}
