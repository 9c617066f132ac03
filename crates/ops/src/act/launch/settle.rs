//! Writes down what came of submissions, of those of a group in one transaction: an attempt exists, it has failed, or
//! nobody knows, which is left to the next look.

use crate::base::queue_entries::back::{self, Back};
use crate::base::{lease, records};
use crate::{Ctx, Error, Kind};
use tpu_core::model::capacity::Share;
use tpu_core::model::ids::{JobId, JobNumber, TargetName};
use tpu_core::model::job::{Handle, Job, Launch};
use tpu_engine::runner::{RunError, RunRef, Runner, StopOrder, StopPart, Submitted, Unreached};
use tpu_system::store::Tx;

use super::plan::{LaunchPlan, Parent};

/// A job that was started.
#[derive(Clone, Debug)]
pub struct Launched {
    /// Which job.
    pub job: JobId,
    /// tmux session of its window.
    pub session: String,
    /// Pane of its window, `%12`; empty where an engine has it.
    pub pane: String,
    /// Process id of the tmux server of that window.
    pub server: Option<u32>,
    /// What it computes on.
    pub target: TargetName,
    /// The attempt it succeeds.
    pub parent: Option<JobNumber>,
    /// What it was given of its target, where that is counted.
    pub share: Option<Share>,
    /// What the engine calls it that has it, where people call it so.
    pub called: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// Its command, and where its code is from, in words.
    pub what: String,
}

impl Launched {
    /// In words: which job has started, on what, and what it runs.
    pub fn in_words(&self) -> String {
        let name = self.name.as_ref().map(|name| format!(" \"{name}\"")).unwrap_or_default();
        let share = self.share.as_ref().map(Share::in_words).filter(|words| !words.is_empty());
        let with = share.map(|share| format!(" with {share}")).unwrap_or_default();
        let called = self.called.as_ref().map(|called| format!(", where it is called {called}"));
        let called = called.unwrap_or_default();
        format!("Started {}{name} on {}{with}{called}: {}", self.job, self.target, self.what)
    }
}

/// A claimed attempt, and what came of its submission.
pub(super) struct Came<'a> {
    pub(super) plan: &'a LaunchPlan,
    pub(super) job: &'a Job,
    pub(super) outcome: Outcome,
}

/// What comes of a submission.
pub(super) enum Outcome {
    /// It is started.
    Started(Submitted),
    /// Nobody knows, for this reason.
    Unclear(String),
    /// It is not started.
    Failed(Error),
}

impl Outcome {
    /// What a runner has said.
    pub(super) fn of(job: &Job, said: Result<Submitted, RunError>) -> Self {
        match said {
            Ok(submitted) => {
                fail::fail_point!("launch-opened");
                Self::Started(submitted)
            }
            // Nobody asks back for an engine: the next look settles whether it has the job.
            Err(RunError::Unreachable(why)) if job.engine.is_some() => Self::Unclear(why.message),
            Err(error) => Self::Failed(error.into()),
        }
    }
}

impl Came<'_> {
    /// Whether the record stands as it is.
    fn is_open(&self) -> bool {
        matches!(self.outcome, Outcome::Unclear(_))
    }

    /// Writes it down. Whether the attempt exists by its record.
    fn write(&self, tx: &mut Tx<'_>) -> Result<bool, Error> {
        match &self.outcome {
            Outcome::Started(submitted) => confirm(tx, self.job, &submitted.handle),
            Outcome::Unclear(_) => Ok(false),
            Outcome::Failed(error) => fail(tx, self.plan, self.job, error),
        }
    }

    /// What is to be said of it, once it is written down.
    fn told(
        self,
        ctx: &Ctx,
        runner: &dyn Runner,
        written: Result<bool, Error>,
    ) -> Result<Launched, Error> {
        let Self { plan, job, outcome } = self;
        match outcome {
            Outcome::Started(submitted) => {
                confirmed(plan, job, (runner, &submitted.handle), written)?;
                let (called, server) = match &submitted.handle {
                    Handle::Engine { run, .. } => (run.name.clone(), None),
                    Handle::Window { place, .. } => (None, Some(place.server_pid)),
                };
                fail::fail_point!("launch-confirmed");
                Ok(Launched {
                    job: job.id(),
                    session: plan.session.clone(),
                    pane: submitted.pane.unwrap_or_default(),
                    server,
                    target: plan.target.name.clone(),
                    parent: plan.parent.as_ref().map(|parent| parent.window),
                    share: job.share.clone(),
                    called,
                    name: plan.spec.name.clone(),
                    what: plan.in_short(ctx),
                })
            }
            Outcome::Unclear(why) => {
                let id = job.id();
                let what = format!("whether {id} was started is unknown: {why}");
                Err(Error::unreachable(what).hint(format!(
                    "nothing is started a second time; `tpu check {}` shows it",
                    id.user
                )))
            }
            Outcome::Failed(error) => Err(given_up(plan, job, &error, &written)),
        }
    }
}

/// Writes down what came of submissions: from here the attempts exist, or they are given up. The result keeps their
/// order.
pub(super) fn settle(
    ctx: &Ctx,
    runner: &dyn Runner,
    all: Vec<Came<'_>>,
) -> Vec<Result<Launched, Error>> {
    let written = if all.iter().all(Came::is_open) {
        Ok(all.iter().map(|_| Ok(false)).collect())
    } else {
        ctx.transact(|tx| Ok(all.iter().map(|came| came.write(tx)).collect::<Vec<_>>()))
    };
    let written: Vec<Result<bool, Error>> = match written {
        Ok(written) => written,
        Err(error) => all.iter().map(|_| Err(error.again())).collect(),
    };
    all.into_iter().zip(written).map(|(came, written)| came.told(ctx, runner, written)).collect()
}

/// Gives up an attempt of which nothing was submitted; what is to be said of it.
pub(super) fn give_up(ctx: &Ctx, plan: &LaunchPlan, job: &Job, error: &Error) -> Error {
    let written = ctx.transact(|tx| fail(tx, plan, job, error));
    given_up(plan, job, error, &written)
}

/// In the record of a launch that it is started. Whether the record still stands.
fn confirm(tx: &mut Tx<'_>, claimed: &Job, handle: &Handle) -> Result<bool, Error> {
    let Some(Launch { token, .. }) = &claimed.launch else { return Ok(false) };
    let job = records::of_launch(&mut tx.data, &claimed.id(), token)?;
    lease::free(job);
    job.keep_handle(handle.clone());
    let Some(launch) = &job.launch else { return Ok(false) };
    // Its launcher was let through: the launch worked, whatever has become of the job since.
    let has_begun = launch.confirmed || launch.ended.is_some();
    job.confirm_launch();
    Ok(has_begun || job.status.is_live())
}

/// What follows from the last transaction: from here the attempt exists.
///
/// If the record has been given up or killed meanwhile, the window is closed again: the launcher has not
/// started the job, because its own callback was refused.
fn confirmed(
    plan: &LaunchPlan,
    claimed: &Job,
    (runner, handle): (&dyn Runner, &Handle),
    stands: Result<bool, Error>,
) -> Result<(), Error> {
    let id = claimed.id();
    let close = || {
        let stop = StopOrder { part: StopPart::Whole, unreached: Unreached::Refuse };
        let mut submitted = claimed.clone();
        submitted.keep_handle(handle.clone());
        runner.stop(RunRef { job: &submitted, session: &plan.session }, stop)
    };
    match stands {
        Ok(true) => Ok(()),
        Ok(false) => {
            close()?;
            Err(Error::refused(format!("{id} was given up while it was being started"))
                .hint("it was stopped again; `tpu check` shows the record"))
        }
        // Killed and cleaned away. Its launcher has found no record either, and started nothing.
        Err(error) if matches!(error.kind, Kind::NotFound | Kind::Refused) => {
            close()?;
            Err(Error::refused(format!("{id} was cleaned away while it was being started"))
                .hint("it was stopped again; run it anew"))
        }
        Err(error) => Err(Error::new(
            error.kind,
            format!("{id} is started, but the record could not be confirmed: {error}"),
        )
        .hint("the next command sets it right")),
    }
}

/// Whether an engine does not take an attempt as it is asked for.
fn is_not_taken(claimed: &Job, error: &Error) -> bool {
    let is_answer = matches!(error.kind, Kind::Usage | Kind::Refused) || error.needs_login;
    is_answer && claimed.engine.is_some()
}

/// Whether nothing is left of an attempt that an engine does not take: a person hears of it at once. What is part of a
/// lineage, or has waited in the queue, is told by its record.
fn leaves_nothing(plan: &LaunchPlan, claimed: &Job, error: &Error) -> bool {
    is_not_taken(claimed, error) && plan.parent.is_none() && plan.spec.queue.is_none()
}

/// In the record of a launch that no window came to be, or no run. Whether it has begun all the same: a tmux that did not answer in
/// time may have opened the window, and once its launcher has been let through, the job runs, whatever tmux said.
fn fail(tx: &mut Tx<'_>, plan: &LaunchPlan, claimed: &Job, error: &Error) -> Result<bool, Error> {
    let id = &claimed.id();
    let Some(Launch { token, .. }) = &claimed.launch else { return Ok(false) };
    let job = records::of_launch(&mut tx.data, id, token)?;
    if job.launch.as_ref().is_some_and(|launch| launch.confirmed || launch.ended.is_some()) {
        return Ok(true);
    }
    // It has waited in the queue, and tmux was not to be had: it waits again, and a window that opens late starts nothing.
    let unopened = Back::Unopened(error.message.clone());
    if error.kind == Kind::Unreachable && back::give_back(tx, id, token, unopened)? {
        return Ok(false);
    }
    let job = records::of_launch(&mut tx.data, id, token)?;
    // What somebody has judged meanwhile stands in the journal, and stays.
    let is_open = job.status.is_live() && !job.is_being_killed();
    let is_forgotten = leaves_nothing(plan, claimed, error) && is_open;
    records::fail_launch(job, &error.message)?;
    // What was to be done has been tried to its end.
    job.intent = None;
    records::note(tx, id, "error", format!("launch: {error}"));
    if let Some(user) = tx.data.user_mut(&id.user).filter(|_| is_forgotten) {
        drop(user.remove_job(id.window));
    }
    Ok(false)
}

/// What is to be said of an attempt that is not started.
fn given_up(
    plan: &LaunchPlan,
    claimed: &Job,
    error: &Error,
    written: &Result<bool, Error>,
) -> Error {
    let id: &JobId = &claimed.id();
    let is_not_taken = is_not_taken(claimed, error);
    if let Ok(true) = written {
        return Error::new(error.kind, format!("{id} is started, although tmux failed: {error}"))
            .hint(format!("`tpu check {}` shows it", id.user));
    }
    if leaves_nothing(plan, claimed, error) {
        let what = format!("{} does not take the job: {error}", plan.target.name);
        return Error::new(error.kind, what).hint(error.advice());
    }
    let kind = match error.kind {
        kind if is_not_taken => kind,
        Kind::Unreachable => Kind::Unreachable,
        _ => Kind::Failed,
    };
    let stands = match written {
        Ok(_) => "its record stays, as error: launch".to_owned(),
        Err(also) => format!("its record could not be marked, and will be: {also}"),
    };
    let (of_parent, next) = match &plan.parent {
        Some(Parent { window, how, .. }) => (
            format!(", and {}/{window} has been handed over to it", id.user),
            format!("tpu {} w={window} {}", how.verb(), id.user),
        ),
        None => (String::new(), format!("tpu rerun w={} {}", id.window, id.user)),
    };
    // What the error itself says to do is about a world in which nothing was changed.
    Error::new(kind, format!("{id} could not be started: {error}\n{stands}{of_parent}"))
        .hint(format!("once that is repaired: {next} (it continues from there)"))
}
