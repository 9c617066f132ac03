//! How far a copy of code is, while it is made: shown to whoever waits for it, and written down for whoever looks at the job.

use std::time::Duration;

use tpu_core::model::job::Job;
use tpu_core::text;
use tpu_engine::runner::window::beside;

use crate::Ctx;

/// From so many bytes on it is said before the first of them is there.
const LARGE: u64 = 100_000_000;

/// At most once in so long.
const EVERY: Duration = Duration::from_secs(1);

/// A copy that is being made.
pub(super) struct CopyProgress<'a> {
    ctx: &'a Ctx,
    /// The job for which it is made, where there is one by now.
    job: Option<&'a Job>,
    bytes: u64,
    copied: u64,
    /// When it began, or was last spoken of.
    said_at: Duration,
    is_said: bool,
}

impl<'a> CopyProgress<'a> {
    /// A copy of so many bytes begins.
    pub(super) fn new(ctx: &'a Ctx, job: Option<&'a Job>, bytes: u64) -> Self {
        let said_at = ctx.clock.monotonic();
        let mut begun = Self { ctx, job, bytes, copied: 0, said_at, is_said: false };
        if bytes >= LARGE {
            begun.say();
        }
        begun
    }

    /// So many more are there.
    pub(super) fn copied(&mut self, bytes: u64) {
        self.copied += bytes;
        if self.ctx.clock.monotonic().saturating_sub(self.said_at) >= EVERY {
            self.said_at = self.ctx.clock.monotonic();
            self.say();
        }
    }

    fn say(&mut self) {
        let said = in_words(self.copied, self.bytes);
        self.ctx.onlooker.show(Some(&said));
        if let Some(job) = self.job {
            beside::record_copying(self.ctx, job, &said);
        }
        self.is_said = true;
        fail::fail_point!("copying-said");
    }
}

impl Drop for CopyProgress<'_> {
    fn drop(&mut self) {
        if !self.is_said {
            return;
        }
        self.ctx.onlooker.show(None);
        if let Some(job) = self.job {
            beside::forget_copying(self.ctx, job);
        }
    }
}

/// `copying 1.2 of 2.0 GB`.
fn in_words(copied: u64, bytes: u64) -> String {
    let all = text::bytes(bytes);
    if copied == 0 {
        return format!("copying {all}");
    }
    let copied = text::bytes(copied);
    let unit = all.split_once(' ').map_or("", |(_, unit)| unit);
    let copied = copied.strip_suffix(unit).map_or(copied.as_str(), str::trim_end);
    format!("copying {copied} of {all}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_is_the_same_is_said_once() {
        assert_eq!(in_words(1_200_000_000, 2_000_000_000), "copying 1.2 of 2.0 GB");
        assert_eq!(in_words(900_000_000, 2_000_000_000), "copying 900.0 MB of 2.0 GB");
        assert_eq!(in_words(0, 2_000_000_000), "copying 2.0 GB");
    }
}
