//! Numbers and facts about a job in words, as several panels need them.

use super::spans::{dotted, outside};
use crate::model::Model;
use crate::trace::Trace;
use tpu_core::model::time;
use tpu_core::model::view::{InQueue, JobView, MonitorHealth, Snapshot};
use tpu_core::plan::next;
use tpu_core::text;

/// A number with up to four significant digits: `0.4123`, `12.5`, `1.2e-5`.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".to_owned();
    }
    let (digits, exponent) = if !(1e-3..1e6).contains(&size) {
        let text = format!("{value:.3e}");
        match text.split_once('e') {
            Some((digits, exponent)) => (digits.to_owned(), format!("e{exponent}")),
            None => (text, String::new()),
        }
    } else if size < 1.0 {
        (format!("{value:.4}"), String::new())
    } else if size < 100.0 {
        (format!("{value:.3}"), String::new())
    } else {
        (format!("{value:.1}"), String::new())
    };
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits}{exponent}")
}

/// An epoch: whole when it is, else with one digit.
pub(super) fn epoch(value: f64) -> String {
    if value.fract().abs() < 0.05 { format!("{value:.0}") } else { format!("{value:.1}") }
}

pub(super) use tpu_core::model::facts::percent;

/// The last part of the working directory, for the screen.
pub(super) fn dir(job: &JobView) -> String {
    outside(job.dir_name())
}

/// What people know it by, for a title: its name, else what it runs.
pub(super) fn known(job: &JobView) -> String {
    /// More of it leaves no room for the rest.
    const MOST: usize = 30;
    text::cut(&outside(job.known_as().unwrap_or_default()), MOST).into_owned()
}

/// How far the job is and how fast: `epoch 31/100 · step 12000/40000 · 4.2 it/s · ETA 3h 10m`.
pub(super) fn progress(job: &JobView) -> String {
    progress_with(job, None)
}

/// The same; what the pane does not say is taken from what the screen remembers of the lineage.
pub(super) fn progress_with(job: &JobView, trace: Option<&Trace>) -> String {
    let p = &job.shown.progress;
    let speed = p.steps_per_s.or_else(|| trace?.speed());
    let eta = p.eta_s.or_else(|| trace?.eta_s(job));
    let live = job.shown.status.is_live();
    let of = |all: Option<String>| all.map(|all| format!("/{all}")).unwrap_or_default();
    dotted([
        p.epoch
            .map(|at| format!("epoch {}{}", epoch(at), of(p.epochs.map(epoch))))
            .unwrap_or_default(),
        p.step
            .map(|at| format!("step {at}{}", of(p.total.map(|all| all.to_string()))))
            .unwrap_or_default(),
        speed.filter(|_| live).map(|speed| format!("{} it/s", number(speed))).unwrap_or_default(),
        eta.filter(|_| live)
            .and_then(whole_seconds)
            .map(|s| format!("ETA {}", time::age(s)))
            .unwrap_or_default(),
    ])
}

/// Whole seconds of a printed duration; `None` for what is no duration.
pub(super) fn whole_seconds(seconds: f64) -> Option<u64> {
    let sensible = seconds.is_finite() && (0.0..1e9).contains(&seconds);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    sensible.then_some(seconds as u64)
}

/// What will happen to the job by itself.
pub(super) fn outlook(job: &JobView, snapshot: Option<&Snapshot>) -> String {
    outside(&next::outlook(job, !is_daemon_off(snapshot)))
}

/// Whether it is known that no daemon runs.
pub(super) fn is_daemon_off(snapshot: Option<&Snapshot>) -> bool {
    snapshot.is_some_and(|snapshot| snapshot.monitor == MonitorHealth::NotRunning)
}

/// When something that waits is expected to begin.
pub(super) fn starts(model: &Model, job: &JobView) -> Option<String> {
    let zone = &model.setup.zone;
    model.boards.starts(job)?.told(model.now, &|at| zone.short(at, model.now))
}

/// Where something stands in its queue, how urgent it is, and why it does not begin.
pub(super) fn waits(model: &Model, job: &JobView, queued: &InQueue) -> String {
    let starts = starts(model, job);
    dotted([
        format!("place {} in {}", queued.position, outside(queued.queue.as_str())),
        format!("priority {}", queued.priority),
        job.age_s.map(|age| format!("for {}", time::age(age))).unwrap_or_default(),
        model.boards.why_waits(job).map(outside).unwrap_or_default(),
        starts.map(|starts| format!("start {starts}")).unwrap_or_default(),
    ])
}

/// `rule oom: pass`, for a job that failed.
pub(super) fn rule(job: &JobView) -> String {
    match (job.failure(), job.rule_action()) {
        (Some(kind), Some(action)) => format!("rule {kind}: {action}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown: Vec<_> =
            [0.412_345, 12.5, 1e-3, 1.234e-5, 1e-5, 2_000_000.0, 250.04, 0.0].map(number).to_vec();
        assert_eq!(shown, ["0.4123", "12.5", "0.001", "1.234e-5", "1e-5", "2e6", "250", "0"]);
        assert_eq!((epoch(31.0), epoch(3.456)), ("31".to_owned(), "3.5".to_owned()));
        assert_eq!((percent(0.999), percent(1.0)), ("99 %".to_owned(), "100 %".to_owned()));
        assert_eq!((percent(0.29), percent(50.0 / 300.0)), ("29 %".to_owned(), "16 %".to_owned()));
        assert_eq!(whole_seconds(f64::NAN), None);
    }
}
