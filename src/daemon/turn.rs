//! One turn: settle what is half done, look, write down what the facts show, decide, set the crew to work.

use std::sync::Arc;
use std::time::Duration;

use tpu_core::model::facts::{Progress, TargetState};
use tpu_core::model::ids::JobId;
use tpu_core::model::job::{Job, Status, Succession};
use tpu_core::model::rules::Action;
use tpu_core::model::target::Pricing;
use tpu_core::plan::answer;
use tpu_core::plan::decide::Decision;
use tpu_core::plan::returned;
use tpu_ops::act::launch::plan::Reaction;
use tpu_ops::act::notices::{self, PhaseSeen};
use tpu_ops::act::outlook::Survey;
use tpu_ops::act::{missed, outlook, reconcile, record_facts};
use tpu_ops::base::ctx::job_of;
use tpu_ops::base::lease;
use tpu_ops::observe::snapshot::{self, LookMemory};
use tpu_ops::waiting::queue::pass;
use tpu_ops::{Ctx, Error};

use super::foretold::Planned;
use super::idle;
use super::job_work::{Crew, Task};

/// A kill of somebody of whom nobody knows whether he lives is completed after so many seconds.
const KILL_OVERDUE_S: u64 = 60;

/// Between two looks at something that was begun.
const IN_FLIGHT: Duration = Duration::from_secs(2);

/// Between two looks for a target that somebody waits for, whose process a restart has ended.
const IN_LINE: Duration = Duration::from_secs(15);

/// Between two timed questions to the control plane, while a target is at work that can be taken away: its
/// word may be the only sign. And while none is.
const AT_RISK_EVERY: Duration = Duration::from_secs(10);
const OTHERS_EVERY: Duration = Duration::from_secs(30);

/// The same where several daemons share what one was told.
const SHARED_EVERY: Duration = Duration::from_secs(60);

/// Between two looks while an engine has jobs, or a job goes on without its window: of their ends nothing tells by
/// itself, and what has ended is to come back within five seconds.
const WITHOUT_NEWS_EVERY: Duration = Duration::from_secs(4);

/// The rest after a turn that failed.
const AFTER_TROUBLE: Duration = Duration::from_secs(5);

/// Why there is a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// It was time for one.
    Timed,
    /// It was time for one, and a target is at work that can be taken away.
    AtRisk,
    /// Something has happened: an end, a lost connection, an `ack`, a command.
    Happened,
}

impl Cause {
    /// How old an answer of the control plane may be that serves such a turn.
    fn answer_serves(self) -> Duration {
        match self {
            Self::Timed => OTHERS_EVERY,
            Self::AtRisk | Self::Happened => snapshot::ASKED_AT_MOST,
        }
    }

    /// The same for an answer that the daemon of another account has got: together they ask about as often as one.
    fn shared_answer_serves(self) -> Duration {
        match self {
            Self::Timed => SHARED_EVERY,
            Self::AtRisk => AT_RISK_EVERY,
            Self::Happened => snapshot::ASKED_AT_MOST,
        }
    }
}

/// What a turn leaves for the loop.
#[derive(Debug)]
pub(super) struct Turn {
    /// How long nothing has to be looked at, if nothing happens.
    pub(super) rest: Duration,
    /// Whether any job may be at work.
    pub(super) has_live_jobs: bool,
    /// Whether the next turn needs an answer of the control plane that this one did not have.
    pub(super) is_curious: bool,
    /// Whether a target is at work that can be taken away.
    pub(super) is_at_risk: bool,
    /// Jobs at work of which people are told by what they show.
    pub(super) phases: Vec<PhaseSeen>,
    /// What would have been done, where nothing was.
    pub(super) planned: Vec<Planned>,
    /// Whether there is nothing to do, now or later: nobody is at work, nobody waits, and no rule will bring anything back.
    pub(super) is_idle: bool,
}

impl Turn {
    /// Why there is the next one, if nothing happens before it.
    pub(super) fn next_cause(&self) -> Cause {
        match (self.is_curious, self.is_at_risk) {
            (true, _) => Cause::Happened,
            (false, true) => Cause::AtRisk,
            (false, false) => Cause::Timed,
        }
    }
}

impl Default for Turn {
    fn default() -> Self {
        Self {
            rest: AFTER_TROUBLE,
            has_live_jobs: true,
            is_curious: false,
            is_at_risk: true,
            phases: Vec::new(),
            planned: Vec::new(),
            is_idle: false,
        }
    }
}

/// Looks once and does nothing: no record changes, and nobody who waits begins.
pub(super) fn watch(ctx: &Ctx, memory: &mut LookMemory, cause: Cause) -> Result<Turn, Error> {
    memory.share_for(cause.shared_answer_serves());
    let survey = outlook::survey(ctx, memory, cause.answer_serves())?;
    let is_at_risk = is_at_risk(&survey);
    Ok(Turn {
        rest: regular_rest(&survey),
        has_live_jobs: survey.data.jobs().any(|job| job.status.is_live()),
        is_curious: false,
        is_at_risk,
        phases: notices::phases(&survey),
        planned: Planned::of(&survey),
        is_idle: is_idle(&survey),
    })
}

/// Turns once; `cause` decides whether the control plane is asked anew.
pub(super) fn turn(
    ctx: &Arc<Ctx>,
    memory: &mut LookMemory,
    crew: &mut Crew,
    cause: Cause,
) -> Result<Turn, Error> {
    let began = ctx.clock.monotonic();
    // Taken back before the look: what is asked for after it is asked for again.
    if ctx.data()?.ack() {
        ctx.transact(|tx| {
            tx.data.set_ack(false);
            Ok(())
        })?;
        crew.rouse();
    }
    reconcile::reconcile(ctx)?;
    // What somebody began and the crew does not carry out waits for its target: it is looked at by itself.
    let waits = |job: &Job| job.intent.is_some() && !crew.is_busy(&job.id());
    let is_begun = ctx.data()?.jobs().any(waits);
    let mut serves = cause.answer_serves();
    if is_begun {
        serves = serves.min(IN_FLIGHT);
    }
    memory.share_for(cause.shared_answer_serves());
    let mut survey = outlook::survey(ctx, memory, serves)?;
    if record_facts::record_facts(ctx, &survey)? > 0 {
        survey = outlook::survey(ctx, memory, OTHERS_EVERY)?;
    }
    complete_kills(ctx, &survey, crew);
    let missed = reattach(ctx, &survey, crew);
    settle_returned(ctx, &survey, crew);
    act(ctx, &survey, crew)?;
    // After what the rules say: who is at work already comes back before others begin.
    let passage = pass::dispatch(ctx, &|id| crew.is_busy(id))?;
    let is_waited_for = passage.waiting > 0;
    for haul in passage.hauls {
        crew.set_to(ctx, haul.entry().clone(), Task::Haul(Box::new(haul)));
    }
    let queue = ctx.data()?;
    let waits = |id: &JobId| queue.queues().entry(id).is_some();
    let now = survey.snapshot.at;
    let is_due = |job: &Job| {
        job.is_being_killed()
            || missed.contains(&job.id())
            || survey.decisions.iter().any(|of| of.job == job.id() && of.is_due(now))
    };
    crew.keep(|id| waits(id) || survey.data.job(id).is_some_and(is_due));
    let planned =
        |id: &JobId| survey.decisions.iter().any(|of| of.job == *id && of.action != Action::Pass);
    crew.keep_in_vain(|id| waits(id) || planned(id));
    let regular = regular_rest(&survey).as_secs();
    let due_s = survey
        .decisions
        .iter()
        .filter(|decision| decision.action != Action::Pass && !crew.is_busy(&decision.job))
        .filter_map(|decision| {
            let due = decision.not_before?.seconds_since(now);
            Some(due.max(crew.rest_of(&decision.job, ctx.clock.monotonic()).as_secs()).max(1))
        });
    let regular = if is_begun { regular.min(IN_FLIGHT.as_secs()) } else { regular };
    let regular = if is_waited_for { regular.min(IN_LINE.as_secs()) } else { regular };
    let rest_s = due_s.min().map_or(regular, |due| due.min(regular));
    // What happened a moment after the last question is to be seen in the answer to the next one.
    let is_old = memory.asked_at().is_some_and(|at| at < began);
    let is_curious = is_curious(&survey) || cause == Cause::Happened && is_old;
    let rest = Duration::from_secs(rest_s);
    Ok(Turn {
        rest: if is_curious { rest.min(snapshot::ASKED_AT_MOST) } else { rest },
        is_curious,
        is_at_risk: is_at_risk(&survey),
        phases: notices::phases(&survey),
        planned: Vec::new(),
        has_live_jobs: survey.data.jobs().any(|job| job.status.is_live()),
        is_idle: !is_waited_for && is_idle(&survey),
    })
}

/// Whether there is nothing to do, now or later.
fn is_idle(survey: &Survey) -> bool {
    let is_over = |of: &Decision| of.action == Action::Pass && !of.waits;
    survey.decisions.iter().all(is_over) && idle::has_nothing(&survey.data)
}

/// The rest after a turn in which nothing was begun and nothing is due.
fn regular_rest(survey: &Survey) -> Duration {
    let mut rest = Duration::from_secs(u64::from(survey.data.monitor_config().checking_freq()));
    if is_at_risk(survey) {
        rest = rest.min(AT_RISK_EVERY);
    }
    if has_jobs_at_engines(survey) || has_jobs_without_window(survey) {
        rest = rest.min(WITHOUT_NEWS_EVERY);
    }
    rest
}

/// Whether a job is at work on a target that can be taken away.
fn is_at_risk(survey: &Survey) -> bool {
    survey.data.jobs().filter(|job| job.status.is_live()).any(|job| {
        let known = survey.data.target(&job.tpu).map(|target| target.pricing);
        let seen = survey.fleet.fact(&survey.data, &job.tpu);
        let is_watched = seen.state != TargetState::NotWatched;
        is_watched && (known.is_some_and(Pricing::is_reclaimable) || seen.pricing.is_reclaimable())
    })
}

/// Whether an engine has a job that has not ended.
fn has_jobs_at_engines(survey: &Survey) -> bool {
    survey.data.jobs().any(|job| job.status.is_live() && job.engine.is_some())
}

/// Whether a job goes on without its window: nothing that is asked in between tells of its end.
fn has_jobs_without_window(survey: &Survey) -> bool {
    survey.snapshot.jobs.iter().any(|view| view.shown.without_window().is_some())
}

/// Whether something depends on an answer that its control plane was asked for too early: a job has ended since, or had
/// just begun.
fn is_curious(survey: &Survey) -> bool {
    let waits = |job: &Job| {
        matches!(job.status, Status::Error(_))
            && job.child.is_none()
            && job.rules.iter().any(|(_, action)| action != Action::Pass)
    };
    survey
        .data
        .jobs()
        .filter(|job| job.status.is_live() || waits(job))
        .any(|job| answer::is_asked_too_early(job, &survey.fleet.fact(&survey.data, &job.tpu)))
}

/// Kills that somebody began and cannot complete any more.
fn complete_kills(ctx: &Arc<Ctx>, survey: &Survey, crew: &mut Crew) {
    let now = survey.snapshot.at;
    let me = lease::me(&ctx.env);
    for job in survey.data.jobs().filter(|job| job.is_being_killed()) {
        let Some(intent) = &job.intent else { continue };
        let is_ours = match lease::is_alive(ctx, &intent.by) {
            // One that this daemon began and could not complete is nobody else's.
            Some(alive) => !alive || intent.by == me,
            None => now.seconds_since(intent.at) > KILL_OVERDUE_S,
        };
        if is_ours {
            crew.set_to(ctx, job.id(), Task::Kill);
        }
    }
}

/// Jobs that may go on on workers, without a window that would show it: the workers are asked.
fn reattach(ctx: &Arc<Ctx>, survey: &Survey, crew: &mut Crew) -> Vec<JobId> {
    let unknown = survey.snapshot.jobs.iter().filter(|view| view.shown.unknown.is_some());
    let is_free = |job: &&Job| job.intent.is_none() && job.child.is_none();
    let jobs = unknown.filter_map(|view| survey.data.job(&view.id)).filter(is_free);
    let missed = missed::of(ctx, jobs);
    for id in &missed {
        crew.set_to(ctx, id.clone(), Task::Reattach);
    }
    missed
}

/// Attempts that were lost, and are there beside their successors.
fn settle_returned(ctx: &Arc<Ctx>, survey: &Survey, crew: &mut Crew) {
    let views = &survey.snapshot.jobs;
    for view in views.iter().filter(|view| view.window_alive == Some(true)) {
        let Some(lost) = survey.data.job(&view.id) else { continue };
        let Some(window) = lost.child else { continue };
        let child = JobId { window, ..view.id.clone() };
        let shown = views.iter().find(|view| view.id == child).map(|view| &view.shown);
        let successor = survey.data.job(&child).zip(shown);
        if let Some(who) = returned::returned(lost, view.window_alive, successor) {
            crew.set_to(ctx, view.id.clone(), Task::Returned(who));
        }
    }
}

/// Sets the crew to everything that is due.
fn act(ctx: &Arc<Ctx>, survey: &Survey, crew: &mut Crew) -> Result<(), Error> {
    let now = survey.snapshot.at;
    for (view, decision) in survey.snapshot.jobs.iter().zip(&survey.decisions) {
        if !decision.is_due(now) || crew.is_busy(&decision.job) {
            continue;
        }
        let seen = job_of(&survey.data, &decision.job)?;
        if let Some(task) = task(seen, decision, &view.shown.progress) {
            crew.set_to(ctx, decision.job.clone(), task);
        }
    }
    Ok(())
}

/// What carries a decision out.
fn task(seen: &Job, decision: &Decision, progress: &Progress) -> Option<Task> {
    let reaction =
        Reaction { event: decision.event?, progress: progress.clone(), seen: seen.clone() };
    let reaction = Box::new(reaction);
    Some(match decision.action {
        Action::Pass => return None,
        Action::Resume => Task::Again(Succession::Resume, reaction),
        Action::Rerun => Task::Again(Succession::Rerun, reaction),
        action @ (Action::Reapply | Action::Restart | Action::Wait) => {
            Task::Recover(action, reaction)
        }
    })
}
