//! What is to be done about a job now: its shown status, its rules, what its lineage has been through,
//! and the clock -> one [`Decision`] with its reason. **The one place where this is concluded**: the daemon
//! acts on it, and every surface shows it.
//!
//! The checks stand in [`decide`] in the order in which they are made; the first that objects gives
//! the reason why nothing is done. An action is never concluded from what is unknown, too old, or only
//! text where a control plane could know better.

use super::answer::{self, Judgement};
use super::backoff;
use super::budget::{ALIKE_LIMIT, Budget, QUICK_LIMIT, QUICK_S, RetryCounts, RetryStanding, Spent};
use super::diagnose::JobFacts;
use super::resume_from::ResumeFrom;
use crate::model::facts::{ErrorKind, RunState, TargetFact, TargetState};
use crate::model::ids::{JobId, JobNumber};
use crate::model::job::{Intent, Job, KILLING, Lease, Status, who};
use crate::model::rules::Action;
use crate::model::target::Machines;
use crate::model::time::Timestamp;
use crate::model::view::Shown;

/// What a look at runs said is acted on for so many seconds.
pub(crate) const LOOK_LIMIT_S: u64 = 60;

/// Everything that a decision rests on.
#[derive(Clone, Debug)]
pub struct Situation<'a> {
    /// The record.
    pub job: &'a Job,
    /// The windows of its lineage, first to leaf: a child may be known by its own link alone.
    pub lineage: &'a [JobNumber],
    /// What `diagnose` made of it and of `facts`.
    pub shown: &'a Shown,
    /// The facts; `facts.now` is the clock.
    pub facts: &'a JobFacts<'a>,
    /// When runs were looked at.
    pub looked_at: Timestamp,
    /// Live jobs of other lineages on its target, if the target is exclusive.
    pub rivals: &'a [JobId],
    /// Who asks, as an owner of leases; a lease of one's own is no obstacle.
    pub me: Option<&'a str>,
    /// What is known of those who have begun something with the job.
    pub owners: Owners<'a>,
    /// Lengthens the back-off, from 0 to 1; see [`backoff::jitter_of`].
    pub jitter: f64,
    /// For so long it is tried again after failures of infrastructure once the quick reactions are used up; 0: not at all.
    pub patience_s: u64,
}

/// Whether those who have begun something are still there: `Some(false)` if provably not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Owners<'a> {
    /// The owner of the lineage's lease.
    pub lease: Option<bool>,
    /// Whoever began the intent.
    pub intent: Option<bool>,
    /// The lease of the target, if somebody has it, and whether its owner is there.
    pub target: Option<(&'a Lease, Option<bool>)>,
    /// The account that an engine has the job of, if it is another one than ours.
    pub account: Option<&'a str>,
}

/// Why the successor of a job could not begin now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoStart {
    /// For a person.
    pub why: String,
    /// Whether it stays so until a person does something.
    pub is_lasting: bool,
}

/// What is to be done about one job.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Which job.
    pub job: JobId,
    /// The failure it answers; `None` when nothing is wrong.
    pub event: Option<ErrorKind>,
    /// What to do. [`Action::Pass`]: nothing, for now.
    pub action: Action,
    /// Why this, or why nothing; for a person.
    pub reason: String,
    /// When to begin; `None` when nothing is to be done.
    pub not_before: Option<Timestamp>,
    /// How often it may still be done, where the rules ask for something and that is counted.
    pub budget_left: Option<u32>,
    /// Whether the lineage is over: its budget is used up, or it dies as soon as it is started.
    /// `reason` then belongs into `Recovery::stopped`.
    pub stopped: bool,
    /// Whether its quick reactions have just been used up: `budget::patient` then belongs into its record.
    pub begins_patience: bool,
    /// Whether nothing is done only for now: what is waited for comes by itself.
    pub waits: bool,
}

impl Decision {
    /// Whether the action is to begin at `now`.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.action != Action::Pass && self.not_before.is_some_and(|at| at <= now)
    }
}

impl Decision {
    /// The same, once it is known where the successor of `job` would begin. What could not begin is not
    /// announced; what somebody has begun is carried on, so that it is given up with a reason.
    #[must_use]
    pub fn beginning_at(self, job: &Job, start: Result<Option<ResumeFrom>, NoStart>) -> Self {
        let reason = match start {
            Err(_) if begun(job).is_some() => return self,
            Err(NoStart { why, is_lasting }) => {
                let reason = format!("{}, but {why}", self.reason);
                return Self {
                    waits: !is_lasting,
                    action: Action::Pass,
                    not_before: None,
                    budget_left: None,
                    reason,
                    ..self
                };
            }
            Ok(None | Some(ResumeFrom::Found(_))) => return self,
            Ok(Some(ResumeFrom::Perhaps(_, why) | ResumeFrom::InWorkDir(_, why))) => {
                format!("whether there is a checkpoint is unknown: {why}")
            }
            Ok(Some(ResumeFrom::Nothing(_))) => {
                "from nothing, since there is no checkpoint yet".to_owned()
            }
        };
        Self { reason: format!("{}; {reason}", self.reason), ..self }
    }
}

/// Why nothing is done.
struct Held {
    reason: String,
    stopped: bool,
    waits: bool,
}

impl Held {
    /// For now: somebody acts, or an answer is to come.
    fn for_now(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), stopped: false, waits: true }
    }
}

impl<T: Into<String>> From<T> for Held {
    fn from(reason: T) -> Self {
        Self { reason: reason.into(), stopped: false, waits: false }
    }
}

/// An action that nothing objects to, and the failure it answers.
struct Choice {
    event: ErrorKind,
    action: Action,
    reason: String,
}

/// Decides what is to be done about a job now.
pub fn decide(situation: &Situation<'_>) -> Decision {
    let job = situation.job;
    let mut decision = Decision {
        job: job.id(),
        event: None,
        action: Action::Pass,
        reason: String::new(),
        not_before: None,
        budget_left: None,
        stopped: false,
        begins_patience: false,
        waits: false,
    };
    let kind = match failure(situation) {
        Ok(kind) => kind,
        Err(held) => return Decision { reason: held.reason, ..decision },
    };
    decision.event = Some(kind);
    let chosen = is_wanted(situation, kind)
        .and_then(|()| is_ours(situation))
        .and_then(|()| choose(situation, kind))
        .and_then(|choice| is_free(situation).map(|()| choice));
    let choice = match chosen {
        Ok(choice) => choice,
        Err(Held { reason, stopped, waits }) => {
            return Decision { reason, stopped, waits, ..decision };
        }
    };
    decision.event = Some(choice.event);
    let counts = RetryCounts::of(job, &situation.shown.progress, choice.event);
    let budget = Budget::of(job, choice.event);
    let now = situation.facts.now;
    let standing = counts.standing(budget, situation.patience_s, now);
    decision.budget_left = match standing {
        RetryStanding::Quick(left) => Some(left),
        RetryStanding::Over(_) => Some(counts.left(budget)),
        RetryStanding::Patient => None,
    };
    if begun(job).is_some() {
        let Choice { action, reason, .. } = choice;
        return Decision { action, reason, not_before: Some(now), ..decision };
    }
    if let RetryStanding::Over(spent) = standing {
        let reason = over(job, spent, budget, &choice);
        return Decision { reason, stopped: true, ..decision };
    }
    decision.begins_patience =
        standing == RetryStanding::Patient && counts.patient_since().is_none();
    let pause = counts.pause(budget, standing);
    let not_before = Some(backoff::not_before(pause, now, situation.jitter));
    let Choice { action, mut reason, .. } = choice;
    if standing == RetryStanding::Patient {
        reason += "; its quick tries are used up: it is tried less often, as long as the setting patience says";
    }
    Decision { action, reason, not_before, ..decision }
}

/// The failure of a job that could be acted on. Only the leaf of a lineage has one.
fn failure(situation: &Situation<'_>) -> Result<ErrorKind, Held> {
    let job = situation.job;
    let leaf = situation.lineage.last().copied().filter(|leaf| *leaf != job.windows_id);
    if let Some(child) = job.child.or(leaf) {
        return Err(format!("it continues as job {child}").into());
    }
    if let Some(unknown) = &situation.shown.unknown {
        return Err(format!("nothing while this is unknown: {unknown}").into());
    }
    match &situation.shown.status {
        Status::Error(kind) => Ok(*kind),
        Status::Unset | Status::Starting | Status::Running => Err("nothing is wrong".into()),
        status @ (Status::Finished
        | Status::Killed(_)
        | Status::Resumed(_)
        | Status::Rerunned(_)) => Err(format!("it is {status}").into()),
    }
}

/// Whether anybody wants something to happen by itself. What a person has ruled out needs no facts.
fn is_wanted(situation: &Situation<'_>, kind: ErrorKind) -> Result<(), Held> {
    let job = situation.job;
    if !job.monitor {
        return Err("the daemon only observes this job (monitor=false)".into());
    }
    let some_rule_acts = job.rules.iter().any(|(_, action)| action != Action::Pass);
    if !some_rule_acts && begun(job).is_none() {
        return Err(left_alone(situation, kind).into());
    }
    Ok(())
}

/// Says that no rule restarts the job after this failure, and what to type instead.
fn left_alone(situation: &Situation<'_>, kind: ErrorKind) -> String {
    let (number, user) = (situation.job.windows_id, &situation.job.user);
    let progress = &situation.shown.progress;
    let is_of_code =
        matches!(kind, ErrorKind::PythonError | ErrorKind::CommandNotFound | ErrorKind::FileError);
    // A resume runs the code as it was: it helps only where there is progress to keep.
    let what = if is_of_code && progress.step.is_none() && progress.epoch.is_none() {
        "Fix the code, then: tpu rerun"
    } else {
        "To restart: tpu resume"
    };
    format!("no automatic restart (rule {kind}=pass). {what} {number} {user}")
}

/// Whether it is for us to act: watched from here, seen lately, in nobody's hands.
fn is_ours(situation: &Situation<'_>) -> Result<(), Held> {
    let Situation { job, facts, owners, .. } = situation;
    let run = facts.run;
    match run.state {
        RunState::Elsewhere => {
            let why = format!("only a daemon at its own place acts on it: {}", run.why());
            return Err(why.into());
        }
        RunState::Unknown => {
            let why = format!("nothing while it cannot be looked at: {}", run.why());
            return Err(Held::for_now(why));
        }
        RunState::Pending
        | RunState::Starting
        | RunState::Running
        | RunState::Ended
        | RunState::Gone => {}
    }
    if let Some(account) = owners.account {
        return Err(format!("only {account}'s daemon acts on it").into());
    }
    let age_s = facts.now.seconds_since(situation.looked_at);
    if age_s > LOOK_LIMIT_S {
        return Err(Held::for_now(format!("nothing on what was seen {age_s} s ago")));
    }
    if job.recovery.as_ref().is_some_and(|recovery| recovery.killed) {
        let reason = "somebody has killed it".to_owned();
        return Err(Held { reason, stopped: true, waits: false });
    }
    if let Some(stopped) = job.recovery.as_ref().and_then(|recovery| recovery.stopped.as_ref()) {
        return Err(Held { reason: stopped.clone(), stopped: true, waits: false });
    }
    if let Some(login) = job.recovery.as_ref().and_then(|recovery| recovery.login.as_ref()) {
        return Err(Held::for_now(needs_login(login)));
    }
    // Whoever acts by a rule does so under the lease. One who lives and has given it back could not
    // complete what was begun.
    let under_way = |intent: &Intent| {
        owners.intent == Some(true)
            && job
                .lease
                .as_ref()
                .is_some_and(|lease| lease.owner == intent.by && lease.runs(facts.now))
    };
    if let Some(intent) = &job.intent
        && (intent.action == KILLING || under_way(intent))
    {
        let why = format!("{} is under way, begun by {}", intent.action, who(&intent.by));
        return Err(Held::for_now(why));
    }
    let held = job.lease.as_ref().filter(|lease| is_held(situation, lease, owners.lease));
    match held {
        Some(lease) => Err(Held::for_now(format!("{} is acting on it", who(&lease.owner)))),
        None => Ok(()),
    }
}

/// Whether a lease keeps us away: it is another's, who is not provably dead, and runs still.
fn is_held(situation: &Situation<'_>, lease: &Lease, alive: Option<bool>) -> bool {
    situation.me != Some(lease.owner.as_str())
        && alive != Some(false)
        && lease.runs(situation.facts.now)
}

/// What the rules ask for, given the state of the target.
fn choose(situation: &Situation<'_>, kind: ErrorKind) -> Result<Choice, Held> {
    let Situation { job, facts, .. } = situation;
    let (action, reason) = if let Some((action, by)) = begun(job) {
        (action, format!("{action} was begun by {} and has to be completed", who(by)))
    } else {
        let action = by_rule(situation, kind)?;
        (action, format!("the rule for {kind} is {action}"))
    };
    let choice = Choice { event: kind, action, reason };
    match facts.target {
        Some(target) if target.state == TargetState::NotWatched => unwatched(job, choice, target),
        Some(target) if answer::is_fresh(target, facts.now) => watched(job, choice, target),
        Some(_) => Err(Held::for_now(format!("the last answer about {} is too old", job.tpu))),
        None => Err(Held::for_now(format!("nobody has asked about {} yet", job.tpu))),
    }
}

/// The action that somebody began and did not complete. It is counted already; how far it came is known
/// to whoever carries it out.
fn begun(job: &Job) -> Option<(Action, &str)> {
    let intent = job.intent.as_ref()?;
    Some((intent.by_rule()?, intent.by.as_str()))
}

/// The action that the rules name, once it is settled what happened.
fn by_rule(situation: &Situation<'_>, kind: ErrorKind) -> Result<Action, Held> {
    let Situation { job, facts, .. } = situation;
    let some_rule_acts = job.rules.iter().any(|(_, action)| action != Action::Pass);
    let judgement = answer::judgement(job, facts.target, facts.now);
    if let (Judgement::Open(why), true) = (&judgement, some_rule_acts) {
        let why = format!("no rule fires before it is known what happened: {why}");
        return Err(Held::for_now(why));
    }
    let action = job.rules.action(kind);
    if action == Action::Pass {
        return Err(left_alone(situation, kind).into());
    }
    if Budget::of(job, kind) == Budget::Program {
        return Err(
            format!("{kind} is a failure of the program: the same input fails again").into()
        );
    }
    Ok(action)
}

/// An action on a target without a control plane. An engine finds another machine by itself: whatever was to
/// be made anew, the job only has to go on.
fn unwatched(job: &Job, choice: Choice, target: &TargetFact) -> Result<Choice, Held> {
    if target.machines == Machines::Engine {
        return Ok(match choice.action {
            Action::Reapply | Action::Restart | Action::Wait => Choice {
                reason: format!("{}, and the engine of {} places it", choice.reason, target.name),
                action: Action::Resume,
                event: choice.event,
            },
            Action::Pass | Action::Resume | Action::Rerun => choice,
        });
    }
    let is_native = job.is_native();
    let is_reached = target.machines != Machines::Provided;
    match choice.action {
        Action::Resume | Action::Rerun if is_native && !is_reached => Err(format!(
            "the workers of {} are reached through its control plane, and the daemon runs without one",
            target.name
        )
        .into()),
        Action::Resume | Action::Rerun if choice.event != ErrorKind::Preempted => Ok(choice),
        Action::Resume
        | Action::Rerun
        | Action::Pass
        | Action::Reapply
        | Action::Restart
        | Action::Wait => Err(format!(
            "{}, but no control plane watches {}: set one up, or act by hand",
            choice.reason, target.name
        )
        .into()),
    }
}

/// An action on a target whose control plane has just answered.
fn watched(job: &Job, choice: Choice, target: &TargetFact) -> Result<Choice, Held> {
    let Choice { event, action, .. } = choice;
    let name = &target.name;
    match target.state {
        TargetState::Ready => ready(job, choice, target),
        TargetState::Preempted | TargetState::Gone => match action {
            Action::Reapply | Action::Wait => Ok(choice),
            Action::Resume | Action::Rerun | Action::Restart | Action::Pass => {
                taken_since(job, event, target)
            }
        },
        TargetState::Pending => {
            Err(Held::for_now(format!("{name} is on its way: {}", target.raw_state)))
        }
        TargetState::Deleting => Err(Held::for_now(format!("{name} is still being deleted"))),
        TargetState::Stopped if action == Action::Restart => Ok(choice),
        TargetState::Stopped => Err(format!("somebody has stopped {name}").into()),
        TargetState::NotWatched | TargetState::Unknown => {
            Err(Held::for_now(format!("the state of {name} is unknown ({})", target.raw_state)))
        }
    }
}

/// The target is usable. What was to be created is there: then the job only has to go on.
fn ready(job: &Job, choice: Choice, target: &TargetFact) -> Result<Choice, Held> {
    let Choice { event, action, .. } = choice;
    let name = &target.name;
    if begun(job).is_some() {
        return Ok(choice);
    }
    if event == ErrorKind::Preempted && !answer::was_proven(job) {
        return Err(format!("{name} is {}: nothing proves a preemption", target.raw_state).into());
    }
    let is_back = matches!(event, ErrorKind::Preempted | ErrorKind::NoCapacity);
    match action {
        Action::Reapply | Action::Wait if is_back => Ok(Choice {
            event,
            action: Action::Resume,
            reason: format!("{name} is {} again, after {event}", target.raw_state),
        }),
        Action::Wait => Ok(Choice {
            event,
            action: Action::Resume,
            reason: format!("{}, and {name} is {}", choice.reason, target.raw_state),
        }),
        Action::Pass | Action::Resume | Action::Rerun | Action::Reapply | Action::Restart => {
            Ok(choice)
        }
    }
}

/// The job was to go on, and its target has been taken away in the meantime.
fn taken_since(job: &Job, event: ErrorKind, target: &TargetFact) -> Result<Choice, Held> {
    let state = format!("{} is {}", target.name, target.raw_state);
    match job.rules.action(ErrorKind::Preempted) {
        action @ (Action::Reapply | Action::Wait) => Ok(Choice {
            event: ErrorKind::Preempted,
            action,
            reason: format!("after {event}, {state}: the rule for preempted is {action}"),
        }),
        action @ (Action::Pass | Action::Resume | Action::Rerun | Action::Restart) => {
            Err(format!("{state}, and the rule for preempted is {action}").into())
        }
    }
}

/// Whether nobody else uses the target or works on it.
fn is_free(situation: &Situation<'_>) -> Result<(), Held> {
    let tpu = &situation.job.tpu;
    if let Some(rival) = situation.rivals.first() {
        return Err(Held::for_now(format!("{rival} uses {tpu}")));
    }
    match situation.owners.target {
        Some((lease, alive)) if is_held(situation, lease, alive) => {
            Err(Held::for_now(format!("{} is working on {tpu}", who(&lease.owner))))
        }
        Some(_) | None => Ok(()),
    }
}

/// That nothing is tried before somebody has logged in, with what to type then.
pub fn needs_login(login: &str) -> String {
    format!("it needs you: {login}; then: tpu ack")
}

/// Why a lineage is over.
fn over(job: &Job, spent: Spent, budget: Budget, choice: &Choice) -> String {
    let why = match spent {
        Spent::CrashLoop => {
            let attempts = crate::text::counted(QUICK_LIMIT as usize, "attempt");
            format!("{attempts} in a row died within {QUICK_S} s of their start")
        }
        Spent::Alike => {
            let times = crate::text::counted(ALIKE_LIMIT as usize, "time");
            format!("it has failed with the same exit code and line {times} in a row")
        }
        Spent::Budget => format!("its budget is used up: {budget}"),
        Spent::Patience => {
            "it was tried again for as long as the setting patience says, without progress"
                .to_owned()
        }
    };
    let again = format!("tpu resume w={} {}", job.windows_id, job.user);
    format!("stopped after {}: {why}; `{again}` begins anew", choice.event)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::{TargetName, UserName};
    use crate::plan::resume_from::CheckpointAt;

    fn job() -> Job {
        let id = JobId::new(UserName::from("alice"), JobNumber(7));
        Job::new(&id, TargetName::from("tpu-a"), "/d".to_owned())
    }

    fn reapply(job: &Job) -> Decision {
        Decision {
            job: job.id(),
            event: Some(ErrorKind::Preempted),
            action: Action::Reapply,
            reason: "the rule for preempted is reapply".to_owned(),
            not_before: Some(Timestamp::from_second(1_000)),
            budget_left: Some(9),
            stopped: false,
            begins_patience: false,
            waits: false,
        }
    }

    #[test]
    fn where_a_successor_would_begin_is_said_and_what_could_not_begin_is_not_announced() {
        let job = job();
        let planned = |start| reapply(&job).beginning_at(&job, start);
        assert_eq!(planned(Ok(None)), reapply(&job));
        let found = CheckpointAt {
            dir: "/log".to_owned(),
            name: "c_1".to_owned(),
            step: 1,
            is_in_work_dir: false,
        };
        assert_eq!(planned(Ok(Some(ResumeFrom::Found(found)))), reapply(&job));
        let anew = planned(Ok(Some(ResumeFrom::Nothing(Vec::new()))));
        assert_eq!(anew.action, Action::Reapply);
        assert!(anew.reason.ends_with("from nothing, since there is no checkpoint yet"));
        let perhaps =
            planned(Ok(Some(ResumeFrom::Perhaps("gs://b".to_owned(), "far away".to_owned()))));
        assert!(perhaps.reason.contains("is unknown: far away"), "{}", perhaps.reason);
        let held =
            planned(Err(NoStart { why: "its directory is gone".to_owned(), is_lasting: true }));
        assert_eq!((held.action, held.not_before, held.budget_left), (Action::Pass, None, None));
        assert_eq!(held.reason, "the rule for preempted is reapply, but its directory is gone");
    }

    #[test]
    fn what_was_begun_is_carried_on_so_that_it_is_given_up_with_a_reason() {
        let (action, by) = ("reapply".to_owned(), "h:b:1:2".to_owned());
        let intent = Intent { action, at: Timestamp::from_second(900), by };
        let job = Job { intent: Some(intent), ..job() };
        let carried = reapply(&job).beginning_at(
            &job,
            Err(NoStart { why: "its directory is gone".to_owned(), is_lasting: true }),
        );
        assert_eq!(carried, reapply(&job));
    }
}
