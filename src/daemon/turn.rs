//! One turn: settle what is half done, look, write down what the facts show, decide, set the crew to work.

use std::sync::Arc;
use std::time::Duration;

use crate::model::facts::Progress;
use crate::model::job::{Job, Succession};
use crate::model::rules::Action;
use crate::ops::ctx::job_of;
use crate::ops::launch::heal;
use crate::ops::launch::plan::Reaction;
use crate::ops::snapshot::{self, Memory, Survey};
use crate::ops::{Ctx, Error, lease, record_facts};
use crate::plan::decide::Decision;

use super::crew::{Crew, Task};

/// A kill of somebody of whom nobody knows whether he lives is completed after so many seconds.
const KILL_OVERDUE_S: u64 = 60;

/// Seconds between two looks at something that was begun.
const IN_FLIGHT_S: u64 = 2;

/// The rest after a turn that failed.
const AFTER_TROUBLE: Duration = Duration::from_secs(5);

/// What a turn leaves for the loop.
#[derive(Debug)]
pub(super) struct Turn {
    /// How long nothing has to be looked at, if nothing happens.
    pub(super) rest: Duration,
    /// Whether any job may be at work.
    pub(super) has_live_jobs: bool,
}

impl Default for Turn {
    fn default() -> Self {
        Self { rest: AFTER_TROUBLE, has_live_jobs: true }
    }
}

/// Turns once.
pub(super) fn turn(ctx: &Arc<Ctx>, memory: &mut Memory, crew: &mut Crew) -> Result<Turn, Error> {
    // Taken back before the look: what is asked for after it is asked for again.
    if ctx.data()?.ack() {
        ctx.transact(|tx| {
            tx.data.set_ack(false);
            Ok(())
        })?;
    }
    heal::heal(ctx)?;
    let mut survey = snapshot::survey(ctx, memory)?;
    if record_facts::record_facts(ctx, &survey)? > 0 {
        survey = snapshot::survey(ctx, memory)?;
    }
    complete_kills(ctx, &survey, crew);
    act(ctx, &survey, crew)?;
    let now = survey.snapshot.at;
    let regular = u64::from(survey.data.monitor_config().checking_freq());
    let due_s = survey
        .decisions
        .iter()
        .filter(|decision| decision.action != Action::Pass && !crew.is_busy(&decision.job))
        .filter_map(|decision| decision.not_before)
        .map(|at| at.seconds_since(now).max(1));
    // What was begun and waits for its target: an operation in flight is looked at by itself.
    let is_begun = survey.data.jobs().any(|job| job.intent.is_some());
    let regular = if is_begun { regular.min(IN_FLIGHT_S) } else { regular };
    let rest_s = due_s.min().map_or(regular, |due| due.min(regular));
    Ok(Turn {
        rest: Duration::from_secs(rest_s),
        has_live_jobs: survey.data.jobs().any(|job| job.status.is_live()),
    })
}

/// Kills that somebody began and cannot complete any more.
fn complete_kills(ctx: &Arc<Ctx>, survey: &Survey, crew: &mut Crew) {
    let now = survey.snapshot.at;
    let me = lease::me(&ctx.env);
    for job in survey.data.jobs().filter(|job| job.is_being_killed()) {
        let Some(intent) = &job.intent else { continue };
        let is_ours = match lease::is_alive(ctx, &intent.by) {
            // One that this MONITOR began and could not complete is nobody else's.
            Some(alive) => !alive || intent.by == me,
            None => now.seconds_since(intent.at) > KILL_OVERDUE_S,
        };
        if is_ours {
            crew.set_to(ctx, job.id(), Task::Kill);
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
