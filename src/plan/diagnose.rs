//! Record + facts -> the shown status. The one place where a status is concluded from facts.
//!
//! In order of trust: what the control plane says, what the launcher recorded, what the text says. Not
//! knowing is an answer of its own and changes nothing.

use crate::model::facts::{
    Class, ErrorKind, Evidence, Phase, Progress, Source, TargetFact, TargetState, Verdict,
};
use crate::model::job::{Job, LaunchMode, Status};
use crate::model::time::Timestamp;
use crate::model::view::Shown;

use super::place::Window;

/// After this many seconds a claimed launch without a window has failed.
pub const LAUNCH_LIMIT_S: u64 = 30;

/// A control plane's answer older than this proves nothing.
pub const TARGET_FACT_LIMIT_S: u64 = 60;

/// Everything that was observed about one job.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// Its window.
    pub window: Window<'a>,
    /// Exit code of its command, from the pane option or the launcher's file.
    pub exit: Option<i32>,
    /// What the classifier read since the launch.
    pub verdict: Option<Verdict>,
    /// What the control plane says about its target.
    pub target: Option<&'a TargetFact>,
    /// Now.
    pub now: Timestamp,
}

/// Concludes the status that is shown for `job`.
pub fn diagnose(job: &Job, facts: &Facts<'_>) -> Shown {
    match &job.status {
        Status::Finished | Status::Killed | Status::Resumed(_) | Status::Rerunned(_) => {
            Conclusion::stored(job)
        }
        Status::Error(kind) => errored(job, *kind, facts),
        Status::Unset | Status::Starting | Status::Running => live(job, facts),
    }
    .shown(facts)
}

/// A status with its reason, before phase and progress are added.
struct Conclusion {
    status: Status,
    evidence: Option<Evidence>,
    unknown: Option<String>,
}

impl Conclusion {
    fn new(status: Status, evidence: Option<Evidence>) -> Self {
        Self { status, evidence, unknown: None }
    }

    fn failed(kind: ErrorKind, evidence: Evidence) -> Self {
        Self::new(Status::Error(kind), Some(evidence))
    }

    /// The stored status with the stored reason.
    fn stored(job: &Job) -> Self {
        let evidence = job
            .verdict
            .as_ref()
            .filter(|v| !v.ignored)
            .map(|v| Evidence::fact(Source::Record, v.rule.clone(), v.line.clone()));
        Self::new(job.status.clone(), evidence)
    }

    /// The stored status, because nothing certain can be said.
    fn unknown(job: &Job, reason: &str) -> Self {
        Self { unknown: Some(reason.to_owned()), ..Self::stored(job) }
    }

    fn shown(self, facts: &Facts<'_>) -> Shown {
        let (phase, progress) = match &facts.verdict {
            Some(verdict) => (verdict.phase, verdict.progress.clone()),
            None => (None, Progress::default()),
        };
        let phase = if self.status.is_live() { phase } else { None };
        let starting = matches!(self.status, Status::Starting | Status::Unset);
        let phase = phase.or(starting.then_some(Phase::Staging));
        Shown {
            status: self.status,
            unknown: self.unknown,
            phase,
            progress,
            evidence: self.evidence,
        }
    }
}

/// A live record: facts in order of trust.
fn live(job: &Job, facts: &Facts<'_>) -> Conclusion {
    if let Some(evidence) = proof_of_preemption(facts) {
        return Conclusion::failed(ErrorKind::Preempted, evidence);
    }
    if let Some(code) = facts.exit {
        return ended(job, code, facts);
    }
    match &facts.window {
        Window::Elsewhere(reason) => {
            Conclusion::unknown(job, &format!("not watched from here: {reason}"))
        }
        Window::Unknown(reason) => Conclusion::unknown(job, reason),
        Window::Lost(reason) => Conclusion::failed(
            ErrorKind::Lost,
            Evidence::fact(Source::Exit, "window-lost", reason.clone()),
        ),
        Window::Gone => gone(job, facts),
        Window::Here(pane) if pane.dead => Conclusion::failed(
            ErrorKind::Lost,
            Evidence::fact(Source::Exit, "pane-dead", "the window's program has ended".to_owned()),
        ),
        Window::Here(_) => at_work(job, facts),
    }
}

/// The window is gone, its server is the one that had it, and no exit was recorded.
fn gone(job: &Job, facts: &Facts<'_>) -> Conclusion {
    match &job.launch {
        Some(launch) if !launch.confirmed => {
            if facts.now.seconds_since(launch.at) < LAUNCH_LIMIT_S {
                Conclusion::stored(job)
            } else {
                Conclusion::failed(
                    ErrorKind::Launch,
                    Evidence::fact(Source::Exit, "no-window", "its window was never opened"),
                )
            }
        }
        _ => Conclusion::failed(
            ErrorKind::Lost,
            Evidence::fact(Source::Exit, "window-gone", "its window was closed"),
        ),
    }
}

/// The window is there and nothing has ended: the text may show a failure, and never more than that.
fn at_work(job: &Job, facts: &Facts<'_>) -> Conclusion {
    let Some(verdict) = &facts.verdict else {
        return Conclusion::stored(job);
    };
    let running = if verdict.class == Class::None { job.status.clone() } else { Status::Running };
    match verdict.class.failure() {
        // Text never proves a preemption; while the job is at work only the control plane can.
        None | Some(ErrorKind::Preempted) => Conclusion::new(running, None),
        Some(_) if is_ignored(job, verdict) => Conclusion::new(running, None),
        Some(kind) => Conclusion::new(Status::Error(kind), verdict.evidence.clone()),
    }
}

/// The command has ended.
fn ended(job: &Job, code: i32, facts: &Facts<'_>) -> Conclusion {
    let native = job.launch.as_ref().is_some_and(|launch| launch.mode == LaunchMode::Native);
    let fact = Evidence::fact(Source::Exit, "exit-code", exit_in_words(code));
    if native && code == 0 {
        return Conclusion::new(Status::Finished, Some(fact));
    }
    let text = facts.verdict.as_ref().and_then(|verdict| {
        Some((verdict.class.failure()?, verdict.evidence.clone().unwrap_or_else(|| fact.clone())))
    });
    match text {
        Some((kind, evidence)) => Conclusion::failed(kind, evidence),
        None if code > 128 => Conclusion::failed(ErrorKind::KilledBySignal, fact),
        None if native => Conclusion::failed(ErrorKind::Unknown, fact),
        None => Conclusion::failed(
            ErrorKind::Unknown,
            Evidence::fact(
                Source::Exit,
                "no-finish-job",
                format!("the script ended ({}) without `tpu finish-job`", exit_in_words(code)),
            ),
        ),
    }
}

/// A stored error: it stays, is named more precisely, or gives way to renewed progress.
fn errored(job: &Job, kind: ErrorKind, facts: &Facts<'_>) -> Conclusion {
    let at_work = facts.exit.is_none() && matches!(&facts.window, Window::Here(pane) if !pane.dead);
    match &facts.verdict {
        Some(verdict) if at_work && verdict.class == Class::Running && has_steps(verdict) => {
            Conclusion::new(Status::Running, None)
        }
        Some(verdict) if kind == ErrorKind::Unknown => match verdict.class.failure() {
            Some(found) if found != ErrorKind::Unknown => {
                Conclusion::new(Status::Error(found), verdict.evidence.clone())
            }
            _ => Conclusion::stored(job),
        },
        _ => Conclusion::stored(job),
    }
}

/// Whether the text shows steps being made, not just words of a live run.
fn has_steps(verdict: &Verdict) -> bool {
    !verdict.progress.is_empty()
}

/// Whether a person has said that this very line is no error.
fn is_ignored(job: &Job, verdict: &Verdict) -> bool {
    match (&job.verdict, &verdict.evidence) {
        (Some(stored), Some(evidence)) => stored.ignored && stored.line == evidence.line,
        _ => false,
    }
}

/// The control plane's word that the target was taken away, if it is fresh.
fn proof_of_preemption(facts: &Facts<'_>) -> Option<Evidence> {
    let target = facts.target?;
    let age_s = facts.now.seconds_since(target.observed_at);
    let taken = matches!(target.state, TargetState::Preempted | TargetState::Gone);
    (taken && age_s <= TARGET_FACT_LIMIT_S).then(|| Evidence {
        age_s: Some(age_s),
        ..Evidence::fact(
            Source::Api,
            "target-state",
            format!("{} is {}", target.name, target.raw_state),
        )
    })
}

/// `exit code 1`, `exit code 137 (SIGKILL)`.
fn exit_in_words(code: i32) -> String {
    let signal = match code - 128 {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        _ => return format!("exit code {code}"),
    };
    format!("exit code {code} ({signal})")
}
