//! When a daemon ends that a command has started by itself: after an hour without anything to do.

use std::time::Duration;

use tpu_core::model::data::Data;
use tpu_core::model::job::Job;
use tpu_core::plan::budget;

/// Since when there is nothing to do.
#[derive(Debug, Default)]
pub(super) struct Idle {
    since: Option<Duration>,
}

impl Idle {
    /// Takes note of a turn that ended at `now`, on the monotonic clock.
    pub(super) fn turned(&mut self, now: Duration, is_idle: bool) {
        self.since = if is_idle { self.since.or(Some(now)) } else { None };
    }

    /// Whether there has been nothing to do for so long that the daemon may end.
    pub(super) fn is_over(&self, now: Duration) -> bool {
        self.since.is_some_and(|since| now >= since + patience())
    }
}

/// How long it stays without anything to do.
fn patience() -> Duration {
    fail::fail_point!("daemon-idle-ms", |ms| {
        Duration::from_millis(ms.and_then(|ms| ms.parse().ok()).unwrap_or_default())
    });
    Duration::from_secs(60 * 60)
}

/// Whether the records show nobody at work, nobody who waits or is to come back, and no target that is made or goes with
/// a job.
pub(super) fn has_nothing(data: &Data) -> bool {
    let queues = data.queues();
    let is_at_work =
        |job: &Job| job.status.is_live() || job.intent.is_some() || budget::is_to_come_back(job);
    queues.entries.is_empty()
        && queues.makings.is_empty()
        && queues.loans.is_empty()
        && !data.jobs().any(is_at_work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_counts_from_the_first_turn_without_anything_to_do() {
        let (second, mut idle) = (Duration::from_secs, Idle::default());
        idle.turned(second(10), true);
        idle.turned(second(3_000), true);
        assert!(!idle.is_over(second(3_609)) && idle.is_over(second(3_610)));
        idle.turned(second(3_611), false);
        assert!(!idle.is_over(second(9_999)));
    }

    #[test]
    fn a_job_that_a_rule_brings_back_is_something_to_do_and_one_that_stays_failed_is_not() {
        let is_idle = |of_job: &str, queue: &str| {
            let text = format!(
                r#"{{"users":{{"alice":{{"id":0,"name":"alice","tmux_name":"alice","job_data":[
                    {{"windows_id":1,"job_dir":"/d","tpu":"local",{of_job}}}]}}}}{queue}}}"#
            );
            has_nothing(&Data::parse(text.as_bytes()).unwrap())
        };
        let failed = r#""status":"error","error":"grpc""#;
        let resumes = r#""rules":{"grpc":"resume"}"#;
        assert!(is_idle(r#""status":"finished""#, "") && is_idle(failed, ""));
        assert!(!is_idle(r#""status":"running""#, ""));
        assert!(!is_idle(&format!("{failed},{resumes}"), ""), "it comes back");
        assert!(is_idle(&format!("{failed},{resumes},\"monitor\":false"), ""), "nobody acts on it");
        let killed = r#""extra_msgs":{"recovery":{"killed":true}}"#;
        assert!(is_idle(&format!("{failed},{resumes},{killed}"), ""), "a person has killed it");
        let blocked = r#""extra_msgs":{"recovery":{"blocked":true}}"#;
        assert!(
            !is_idle(&format!("{failed},{resumes},{blocked}"), ""),
            "once a person has done it"
        );
        let waits = r#","queue":{"entries":[{"user":"alice","number":2,"target":"local",
            "since":"2026-11-20T14:00:00Z"}]}"#;
        assert!(!is_idle(r#""status":"finished""#, waits));
    }
}
