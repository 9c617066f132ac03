//! Whether the daemon acts. It only watches where it was started so, and while the original's monitor is at work, which acts
//! on the same jobs.

use std::mem::discriminant;
use std::time::Duration;

use tpu_core::model::data::Data;
use tpu_core::model::time::Timestamp;
use tpu_ops::Ctx;
use tpu_ops::base::original::{self, Original};

use super::DaemonRole;

/// Between two looks at the processes of the machine.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Why the daemon only watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Watches {
    /// It was started so.
    Ordered,
    /// A later program wrote the state file.
    Newer(u32),
    /// The original's monitor is at work.
    Beside(Original),
}

impl Watches {
    /// The reason, as it stands behind "since".
    pub(super) fn in_words(&self) -> String {
        match self {
            Self::Ordered => "it was started with --watch-only".to_owned(),
            Self::Newer(format) => format!(
                "a newer tpu wrote the state file (format {format}): with that one, tpu daemon restart"
            ),
            Self::Beside(original) => original.in_words(),
        }
    }

    /// Whether it is another reason, whatever has changed in the words of one.
    pub(super) fn is_other_than(&self, before: &Self) -> bool {
        match (self, before) {
            (Self::Beside(now), Self::Beside(before)) => discriminant(now) != discriminant(before),
            _ => discriminant(self) != discriminant(before),
        }
    }
}

/// What is known of the original's monitor.
#[derive(Debug, Default)]
pub(super) struct Neighbour {
    role: DaemonRole,
    looked: Option<Duration>,
    runs: Option<Original>,
    /// Length of its log, and when that was seen to grow.
    log: Option<usize>,
    grew: Option<Timestamp>,
    /// Why its processes cannot be seen.
    trouble: Option<String>,
}

impl Neighbour {
    pub(super) fn new(role: DaemonRole) -> Self {
        Self { role, ..Self::default() }
    }

    /// Looks at the processes of the machine, unless it has just done so. Whether that changes anything. Where they
    /// cannot be seen, what was seen before stands.
    pub(super) fn look(&mut self, ctx: &Ctx, now: Duration) -> bool {
        let is_due = self.looked.is_none_or(|looked| now >= looked + LOOK_EVERY);
        if self.role.acts_always() || self.role.watch_only || !is_due {
            return false;
        }
        self.looked = Some(now);
        match original::by_processes(ctx) {
            Ok(runs) => {
                self.trouble = None;
                let changed = runs.is_some() != self.runs.is_some();
                self.runs = runs;
                changed
            }
            Err(why) => {
                self.trouble = Some(why);
                false
            }
        }
    }

    /// Why the daemon only watches now, if it does.
    pub(super) fn watches(&mut self, ctx: &Ctx, data: Option<&Data>) -> Option<Watches> {
        if self.role.watch_only {
            return Some(Watches::Ordered);
        }
        // Whatever it began could not be written down.
        if let Some(data) = data.filter(|data| data.is_newer()) {
            return Some(Watches::Newer(data.format()));
        }
        if self.role.acts_always() {
            return None;
        }
        let by_log = data.and_then(|data| {
            let bytes = data.original_log().bytes;
            if self.log.replace(bytes).is_some_and(|before| bytes > before) {
                self.grew = Some(ctx.clock.now());
            }
            original::by_log(ctx, data, self.grew)
        });
        self.runs.clone().or(by_log).map(Watches::Beside)
    }

    /// Why nobody can tell whether the original's monitor runs.
    pub(super) fn trouble(&self) -> Option<&String> {
        self.trouble.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_reason_is_told_and_the_same_in_other_words_is_not() {
        let wrote = |age_s| Watches::Beside(Original::Wrote { age_s, left_s: 1_200 - age_s });
        let runs = || Watches::Beside(Original::Runs(Vec::new()));
        assert!(!wrote(7).is_other_than(&wrote(5)));
        assert!(wrote(7).is_other_than(&runs()) && runs().is_other_than(&Watches::Ordered));
        assert!(!Watches::Ordered.is_other_than(&Watches::Ordered));
    }
}
