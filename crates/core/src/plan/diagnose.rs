//! Record + facts -> the shown status. The one place where a status is concluded from facts.
//!
//! In order of trust: what the control plane or the engine that runs it says, what the launcher recorded, what
//! the text says. Not knowing is an answer of its own and changes nothing.

use crate::model::exit::Exit;
use crate::model::facts::{
    COPYING, Class, ErrorKind, Evidence, Origin, Phase, Progress, RunFact, RunState, SETTING_UP,
    Source, TargetFact, TargetState, Verdict,
};
use crate::model::job::{Job, Status};
use crate::model::launch::LAUNCH_LIMIT_S;
use crate::model::time::Timestamp;
use crate::model::view::{Pending, Shown};

use super::answer;

/// A failure of the program is taken for a preemption only if the control plane says so within this
/// many seconds of it. Later the target may have been taken for reasons of its own.
const PROGRAM_JUDGED_S: u64 = 600;

/// The name of an exit code as evidence.
const EXIT_CODE: &str = "exit-code";

/// Everything that was observed about one job.
#[derive(Clone, Debug)]
pub struct JobFacts<'a> {
    /// Its run.
    pub run: &'a RunFact,
    /// What the classifier read since the launch.
    pub verdict: Option<&'a Verdict>,
    /// The latest answer of its target's control plane: a state, that the question failed
    /// (`TargetState::Unknown`), or that nobody watches it (`TargetState::NotWatched`). `None` if
    /// nobody has asked.
    pub target: Option<&'a TargetFact>,
    /// Now.
    pub now: Timestamp,
}

/// Concludes the status that is shown for `job`.
pub fn diagnose(job: &Job, facts: &JobFacts<'_>) -> Shown {
    match &job.status {
        Status::Finished | Status::Killed(_) | Status::Resumed(_) | Status::Rerunned(_) => {
            Conclusion::stored(job)
        }
        Status::Error(kind) => errored(job, *kind, facts),
        Status::Unset | Status::Starting | Status::Running => live(job, facts),
    }
    .shown(job, facts)
}

/// A status with its reason, before phase and progress are added.
struct Conclusion {
    status: Status,
    evidence: Option<Evidence>,
    unknown: Option<String>,
    pending: Option<Pending>,
    /// What it is doing, where somebody knows better than its output.
    phase: Option<Phase>,
}

impl Conclusion {
    fn new(status: Status, evidence: Option<Evidence>) -> Self {
        Self { status, evidence, unknown: None, pending: None, phase: None }
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

    /// The stored status, because it has not been started yet.
    fn pending(job: &Job, run: &RunFact) -> Self {
        let pending = Pending {
            reason: run.reason.as_deref().map(str::to_owned),
            expected_start: run.expected,
            raw: run.raw.to_string(),
        };
        Self { pending: Some(pending), ..Self::new(job.status.clone(), Some(run.evidence())) }
    }

    /// Something is made ready before its command begins, and somebody says how far that is.
    fn made_ready(job: &Job, run: &RunFact) -> Option<Self> {
        let phase = match &*run.raw {
            SETTING_UP => Phase::SettingUp,
            COPYING => Phase::Staging,
            _ => return None,
        };
        let stored = Self::new(job.status.clone(), Some(run.evidence()));
        Some(Self { phase: Some(phase), ..stored })
    }

    fn shown(self, job: &Job, facts: &JobFacts<'_>) -> Shown {
        let read = facts.verdict.map(|verdict| &verdict.progress);
        let (phase, progress) = if self.status.is_live() {
            let phase = facts.verdict.and_then(|verdict| verdict.phase);
            (phase, read.cloned().unwrap_or_default())
        } else {
            // What was kept at the end outranks a window in which anything may have happened since.
            let reached = job.reached.as_deref().cloned().or_else(|| read.map(Progress::reached));
            (None, reached.unwrap_or_default())
        };
        let starting =
            matches!(self.status, Status::Starting | Status::Unset) && self.pending.is_none();
        let phase = self.phase.or(phase).or(starting.then_some(Phase::Staging));
        Shown {
            status: self.status,
            unknown: self.unknown,
            pending: self.pending,
            queued: None,
            phase,
            progress,
            evidence: self.evidence,
        }
    }
}

/// A live record: facts in order of trust.
fn live(job: &Job, facts: &JobFacts<'_>) -> Conclusion {
    let run = facts.run;
    // Only its own place says anything about it: two places must not conclude different things.
    if run.state == RunState::Elsewhere {
        return Conclusion::unknown(job, &format!("not watched from here: {}", run.why()));
    }
    if let Some(kind) = cause_by_engine(run) {
        return Conclusion::failed(kind, run.evidence());
    }
    // Somebody did not want it any more: that is no failure, whatever its text and its code say.
    if run.is_cancelled && run.is_over() && run.source == Source::Engine {
        return Conclusion::new(Status::Killed(None), Some(run.evidence()));
    }
    // Whoever is told to end may end well: it was told because its time was over.
    let cause = cause_by_supervisor(run);
    if let Some(kind @ (ErrorKind::Timeout | ErrorKind::Stalled)) = cause {
        return Conclusion::failed(kind, run.evidence());
    }
    // What has ended well cannot be taken away any more: this fact outlasts whatever the target does.
    if let Some(exit) = run.exit.filter(|exit| exit.is_success()) {
        return Conclusion::new(Status::Finished, Some(exit_fact(exit)));
    }
    if let Some(evidence) = proof_of_preemption(job, facts) {
        return Conclusion::failed(ErrorKind::Preempted, evidence);
    }
    if let Some(kind) = cause {
        return Conclusion::failed(kind, run.evidence());
    }
    if let Some(exit) = run.exit {
        return ended(job, exit, facts);
    }
    match run.state {
        RunState::Elsewhere | RunState::Unknown => Conclusion::unknown(job, run.why()),
        RunState::Gone | RunState::Ended if run.is_cancelled => closed(job, facts),
        RunState::Gone | RunState::Ended => gone(job, facts),
        RunState::Pending => Conclusion::pending(job, run),
        RunState::Starting => Conclusion::stored(job),
        RunState::Running => at_work(job, facts),
    }
}

/// The engine's own word for why a run is over. It knows the code and the node as well, and outranks both the
/// code and the text.
fn cause_by_engine(run: &RunFact) -> Option<ErrorKind> {
    run.cause.filter(|_| run.source == Source::Engine && run.is_over() && !is_unstarted(run))
}

/// The word of our own supervisor for why a run has ended: it never began the command, or ended it.
fn cause_by_supervisor(run: &RunFact) -> Option<ErrorKind> {
    let is_said = run.source == Source::Exit && run.exit.is_some();
    run.cause.filter(|kind| is_said && is_by_supervisor(*kind))
}

/// Whether our supervisor has found nothing of a run any more where it ran: its exit code is no word of the command.
fn is_lost_by_supervisor(run: &RunFact) -> bool {
    run.source == Source::Exit && run.exit.is_some() && run.cause == Some(ErrorKind::Lost)
}

/// Whether it is a reason for which our supervisor ends a command, or never begins it.
fn is_by_supervisor(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Setup | ErrorKind::Timeout | ErrorKind::Stalled | ErrorKind::Launch)
}

/// Whether nothing was ever seen of a run: its launch may still be under way.
fn is_unstarted(run: &RunFact) -> bool {
    run.state == RunState::Gone && run.cause == Some(ErrorKind::Launch)
}

/// Nothing of the run is there, for certain, and no exit was recorded. One that is still being started is not
/// missed.
fn gone(job: &Job, facts: &JobFacts<'_>) -> Conclusion {
    let run = facts.run;
    let is_young = |at| facts.now.seconds_since(at) < LAUNCH_LIMIT_S;
    if is_unstarted(run) && job.launch.as_ref().is_some_and(|launch| is_young(launch.at)) {
        return Conclusion::made_ready(job, run).unwrap_or_else(|| Conclusion::stored(job));
    }
    Conclusion::failed(run.cause.unwrap_or(ErrorKind::Lost), run.evidence())
}

/// Somebody has closed its window, and nothing of it is left. Where its target is not well, that may be why.
fn closed(job: &Job, facts: &JobFacts<'_>) -> Conclusion {
    let run = facts.run;
    let state = facts.target.map_or(TargetState::NotWatched, |target| target.state);
    let is_old = || facts.target.is_some_and(|target| !answer::is_fresh(target, facts.now));
    match state {
        TargetState::NotWatched => Conclusion::new(Status::Killed(None), Some(run.evidence())),
        TargetState::Ready if !is_old() => {
            Conclusion::new(Status::Killed(None), Some(run.evidence()))
        }
        TargetState::Ready | TargetState::Unknown => {
            let why = format!("{}; whether {} is well is not known", run.why(), job.tpu);
            Conclusion::unknown(job, &why)
        }
        TargetState::Pending
        | TargetState::Deleting
        | TargetState::Stopped
        | TargetState::Preempted
        | TargetState::Gone => gone(job, facts),
    }
}

/// The run is there and nothing has ended: the text may show a failure, and never more than that.
fn at_work(job: &Job, facts: &JobFacts<'_>) -> Conclusion {
    // What it prints then is not its command's.
    if let Some(conclusion) = Conclusion::made_ready(job, facts.run) {
        return conclusion;
    }
    // That a window is open does not say that its program has begun; that an engine runs it does.
    let is_running = facts.run.source == Source::Engine
        || facts.verdict.is_some_and(|verdict| verdict.class != Class::None);
    let running = if is_running { Status::Running } else { job.status.clone() };
    // What runs it may have something to say of it at work: its node does not answer, its time is over, its window is gone.
    let said = facts.run.reason.as_ref().map(|_| facts.run.evidence());
    let Some(verdict) = facts.verdict else {
        let stored = Conclusion::stored(job);
        return Conclusion { status: running, evidence: said.or(stored.evidence), ..stored };
    };
    match failure_by_text(job, verdict).filter(|_| !facts.run.text_waits) {
        Some(kind) => Conclusion::new(Status::Error(kind), verdict.evidence.clone()),
        // That is no failure, but there is a reason to be told.
        None if matches!(verdict.phase, Some(Phase::Stalled | Phase::StartedOver)) => {
            Conclusion::new(running, verdict.evidence.clone())
        }
        None => Conclusion::new(running, said),
    }
}

/// The command has ended, and not for certain well.
fn ended(job: &Job, exit: Exit, facts: &JobFacts<'_>) -> Conclusion {
    let fact = exit_fact(exit);
    let is_lost = is_lost_by_supervisor(facts.run);
    let text = facts.verdict.and_then(|verdict| {
        let evidence = verdict.evidence.clone().unwrap_or_else(|| fact.clone());
        Some((failure_by_text(job, verdict)?, evidence))
    });
    // The text may say why nothing of it is there.
    match text.filter(|(kind, _)| !is_lost || *kind == ErrorKind::Lost) {
        None if is_lost => Conclusion::failed(ErrorKind::Lost, facts.run.evidence()),
        // A shell's notice of a signal says less than the code, and in more words.
        Some((ErrorKind::KilledBySignal, _)) | None if exit.signal().is_some() => {
            Conclusion::failed(ErrorKind::KilledBySignal, fact)
        }
        Some((kind, evidence)) => Conclusion::failed(kind, evidence),
        None => match ErrorKind::of_command(exit) {
            Some(kind) => Conclusion::failed(kind, fact),
            None => Conclusion::failed(ErrorKind::Unknown, unexplained(exit)),
        },
    }
}

/// A stored error: it gives way to a good end or to renewed progress, is judged by the control plane, is named more
/// precisely, or stays.
fn errored(job: &Job, kind: ErrorKind, facts: &JobFacts<'_>) -> Conclusion {
    // Nothing was taken away from what never began, whatever becomes of its target.
    if job.never_began() {
        return Conclusion::stored(job);
    }
    // It was seen while the command was at work, whose end says better.
    if let Some(exit) = good_end(job, kind, facts) {
        return Conclusion::new(Status::Finished, Some(exit_fact(exit)));
    }
    if let Some(evidence) = judged_as_preemption(job, kind, facts) {
        return Conclusion::failed(ErrorKind::Preempted, evidence);
    }
    // It outranks the code also where the record says it already.
    if let Some(cause) = cause_by_engine(facts.run) {
        if cause == kind || answer::was_proven(job) {
            return Conclusion::stored(job);
        }
        return Conclusion::failed(cause, facts.run.evidence());
    }
    // What our supervisor has ended it for stays, however well it ended then.
    if is_by_supervisor(kind) {
        return Conclusion::stored(job);
    }
    let Some(verdict) = facts.verdict else { return Conclusion::stored(job) };
    if is_in_progress_again(job, kind, verdict, facts) {
        return Conclusion::new(Status::Running, None);
    }
    match failure_by_text(job, verdict) {
        Some(found)
            if kind == ErrorKind::Unknown || found != kind && is_known_by_code(job, kind) =>
        {
            Conclusion::new(Status::Error(found), verdict.evidence.clone())
        }
        _ => Conclusion::stored(job),
    }
}

/// The proof that a job with a stored error has ended well. It counts for nothing where an engine or our supervisor knows
/// why it ended, and where somebody acts on the error already: he may have told it to end.
fn good_end(job: &Job, kind: ErrorKind, facts: &JobFacts<'_>) -> Option<Exit> {
    let is_known = cause_by_engine(facts.run).is_some() || is_by_supervisor(kind);
    let exit = facts.run.exit.filter(|exit| exit.is_success());
    exit.filter(|_| !is_known && !job.is_acted_on(facts.now))
}

/// Whether the stored failure was told by the exit code alone, as it is by somebody who cannot see the
/// window: the text may say better.
fn is_known_by_code(job: &Job, kind: ErrorKind) -> bool {
    let fact = job.verdict.as_ref().is_some_and(|verdict| verdict.rule == EXIT_CODE);
    let by_code = [ErrorKind::KilledBySignal, ErrorKind::CommandNotFound, ErrorKind::FileError];
    fact && by_code.contains(&kind)
}

/// The proof that a job whose failure is stored was in truth preempted. The first answer after an end
/// judges it; what becomes of the target later is no business of a failure that was judged.
fn judged_as_preemption(job: &Job, kind: ErrorKind, facts: &JobFacts<'_>) -> Option<Evidence> {
    let judged = answer::judged_at(job).is_some();
    let elsewhere = facts.run.state == RunState::Elsewhere;
    // Where no target could be made, none is there: that is no preemption.
    let known = matches!(kind, ErrorKind::Preempted | ErrorKind::NoCapacity);
    if judged || elsewhere || known || job.intent.is_some() {
        return None;
    }
    let target = facts.target?;
    let ended = job.launch.as_ref().and_then(|launch| launch.ended);
    let in_time = match kind.origin() {
        Origin::Program => {
            ended.is_some_and(|ended| target.observed_at.seconds_since(ended) <= PROGRAM_JUDGED_S)
        }
        Origin::Infrastructure | Origin::User | Origin::Unknown => true,
    };
    if in_time { proof_of_preemption(job, facts) } else { None }
}

/// Whether a job with a stored error is at work again: steps are being made, and nobody has begun to act on
/// the error.
fn is_in_progress_again(
    job: &Job,
    kind: ErrorKind,
    verdict: &Verdict,
    facts: &JobFacts<'_>,
) -> bool {
    let run = facts.run;
    let at_work = run.exit.is_none() && run.state == RunState::Running;
    let steps = verdict.class == Class::Running && !verdict.progress.is_empty();
    // What a run on a target that was taken away printed last is there for ever, also when somebody has made
    // the target anew: the control plane takes its own word back, and the output goes on since it was given.
    let goes_on = || {
        let judged = answer::judged_at(job);
        judged
            .zip(run.last_output)
            .is_some_and(|(judged, heard)| heard.as_second() > judged.as_second())
    };
    let allowed = kind != ErrorKind::Preempted
        || facts.target.is_some_and(|target| answer::has_reappeared(job, target, facts.now))
            && goes_on();
    at_work && steps && allowed && job.intent.is_none() && job.child.is_none()
}

/// The failure that a text shows, unless a person said that this very line is none. A preemption is
/// never among them: only the control plane proves one.
fn failure_by_text(job: &Job, verdict: &Verdict) -> Option<ErrorKind> {
    let ignored = match (&job.verdict, &verdict.evidence) {
        (Some(stored), Some(evidence)) => stored.ignored && stored.line == evidence.line,
        _ => false,
    };
    verdict.class.failure().filter(|kind| !ignored && *kind != ErrorKind::Preempted)
}

/// The kind that is stored when a text is all there is to go by. What only the text calls a preemption
/// is a failure for reasons unknown, until the control plane has spoken.
pub fn kind_by_text(verdict: &Verdict) -> Option<ErrorKind> {
    let kind = verdict.class.failure()?;
    Some(if kind == ErrorKind::Preempted { ErrorKind::Unknown } else { kind })
}

/// The control plane's word that the target was taken away.
fn proof_of_preemption(job: &Job, facts: &JobFacts<'_>) -> Option<Evidence> {
    answer::proof_of_preemption(job, facts.target?, facts.now)
}

fn exit_fact(exit: Exit) -> Evidence {
    Evidence::fact(Source::Exit, EXIT_CODE, exit.to_string())
}

/// All there is to say of an end of which the text says nothing.
fn unexplained(exit: Exit) -> Evidence {
    match exit {
        Exit::Program(_) => exit_fact(exit),
        Exit::Script(_) => Evidence::fact(
            Source::Exit,
            "no-finish-job",
            format!("the script ended ({}) without `tpu finish-job`", exit.in_words()),
        ),
    }
}
