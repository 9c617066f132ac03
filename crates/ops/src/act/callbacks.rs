//! What scripts and launchers call back with: it has begun, it ended well, it failed, it has ended.

use std::time::Duration;

use tpu_core::model::data::Data;
use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{ErrorKind, Evidence, Source};
use tpu_core::model::ids::{JobId, JobNumber, LaunchToken, TargetName};
use tpu_core::model::job::{Event, Job, StartTime, Status, StoredVerdict};
use tpu_core::model::time::Timestamp;
use tpu_core::plan::answer;
use tpu_engine::runner::window::beside;
use tpu_engine::runner::window::place::{self, Window};
use tpu_system::sys::proc::Spawn;

use super::ends::{self, Vacated};
use super::stage;
use crate::base::ctx::{job_mut, job_of, user_of};
use crate::base::environment;
use crate::base::records;
use crate::observe::printed::Printed;
use crate::observe::{runners, snapshot};
use crate::{Ctx, Error};

pub use tpu_core::classify::own_line;

/// Which job a callback is about: `$TPU_JOB` first, then the argument `SESSION:WINDOW`.
pub fn subject(ctx: &Ctx, argument: &str) -> Result<JobId, Error> {
    let data = ctx.data()?;
    if let Some(id) = ctx.env.non_empty("TPU_JOB").and_then(JobId::parse) {
        let job = job_of(&data, &id)?;
        // What is left of an earlier job of that number must not speak for this one.
        if let (Some(token), Some(launch)) = (ctx.env.non_empty("TPU_LAUNCH"), &job.launch)
            && launch.token.as_str() != token
        {
            return Err(Error::refused(format!("this process is of another launch than {id}"))
                .hint("outside of the job: unset TPU_JOB TPU_LAUNCH, and name SESSION:WINDOW"));
        }
        return Ok(id);
    }
    let unknown = || {
        Error::usage(format!("'{argument}' is not SESSION:WINDOW"))
            .hint("in a script: tmux display-message -p -t \"$TMUX_PANE\" '#S:#I'")
    };
    let (session, window) = argument.rsplit_once(':').ok_or_else(unknown)?;
    let window = JobNumber(window.parse().map_err(|_| unknown())?);
    let user = data.user_of_session(session).ok_or_else(|| {
        Error::not_found(format!("no user has the tmux session '{session}'"))
            .hint("`tpu list-users` lists the users and their sessions")
    })?;
    job_of(&data, &JobId::new(user.name.clone(), window)).map(Job::id)
}

/// `upd-log`: where the job logs and where its code is.
#[derive(Clone, Debug)]
pub struct Begun {
    /// Log directory.
    pub log_dir: String,
    /// Stage directory.
    pub stage_dir: String,
    /// Target, as the script names it.
    pub target: String,
}

/// The script says that its job has begun.
pub fn upd_log(ctx: &Ctx, id: &JobId, begun: &Begun) -> Result<(), Error> {
    let now = ctx.clock.now();
    ctx.transact(|tx| {
        let job = job_of(&tx.data, id)?;
        may_be_told(job)?;
        if job.is_native() {
            return Err(Error::refused(format!(
                "{id} runs a command: where it logs, where its code is and its target are known"
            ))
            .hint("nothing is left to be told; leave upd-log out of what `-- COMMAND` runs"));
        }
        // An unset variable of a script comes as an empty word, and says nothing.
        let said = |word: &String| (!word.is_empty()).then(|| word.clone());
        // Its provider's name for its own target is no word of another one.
        let own = &job.tpu;
        let other = said(&begun.target).filter(|word| *word != own.of_provider().as_str());
        let target = other.map(|word| match tx.data.resolve_target(&word) {
            Some(target) => target.name,
            None => TargetName::new(word),
        });
        let job = job_mut(&mut tx.data, id)?;
        job.apply(&Event::Started)?;
        job.log_dir = said(&begun.log_dir).or(job.log_dir.take());
        job.stage_dir = said(&begun.stage_dir).or(job.stage_dir.take());
        job.tpu = target.unwrap_or_else(|| job.tpu.clone());
        if job.start_time == StartTime::Unset {
            job.start_time = StartTime::At(now);
        }
        job.confirm_launch();
        records::note(tx, id, "started", format!("logs in {}", begun.log_dir));
        Ok(())
    })
}

/// The script claims success. It is believed unless the text since the launch contradicts it.
pub fn finish_job(ctx: &Ctx, id: &JobId, force: bool) -> Result<(), Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    if job.status == Status::Finished {
        return Ok(());
    }
    may_be_told(job)?;
    if job.is_native() {
        may_be_corrected(ctx, &data, job, force)?;
    }
    let printed = Printed::by_now(ctx, job);
    if force {
        return ctx.transact(|tx| {
            let job = job_mut(&mut tx.data, id)?;
            may_be_told(job)?;
            job.apply(&Event::FinishedByProof)?;
            job.keep_reached(&printed.numbers());
            records::note(tx, id, "finished", "by finish-job --force");
            Ok(())
        });
    }
    let contradiction = printed.failure();
    ctx.transact(|tx| {
        let now = tx.now;
        let job = job_mut(&mut tx.data, id)?;
        may_be_told(job)?;
        may_be_mended(job, now)?;
        if contradiction.is_some() && is_proven(job) {
            return Ok(());
        }
        match &contradiction {
            None => {
                // An error that was seen while it was at work gives way: it has gone on since.
                let mended = matches!(job.status, Status::Error(_));
                job.apply(if mended { &Event::FinishedByProof } else { &Event::Finished })?;
                records::note(tx, id, "finished", "by finish-job");
            }
            Some((kind, evidence)) => {
                job.apply(&Event::Failed(*kind))?;
                job.verdict = Some(StoredVerdict::new(*kind, Some(evidence)));
                records::note(tx, id, "error", format!("{kind}: {}", evidence.line));
            }
        }
        job_mut(&mut tx.data, id)?.keep_reached(&printed.numbers());
        Ok(())
    })?;
    match contradiction {
        None => Ok(()),
        Some((kind, evidence)) => Err(Error::refused(format!(
            "{id} is {kind}, not finished: its output says \"{}\"",
            evidence.line.trim()
        ))
        .hint(format!("if it did finish: tpu finish-job {}:{} --force", id.user, id.window))),
    }
}

/// Refuses a callback about a job that is final or has a child, and says which.
fn may_be_told(job: &Job) -> Result<(), Error> {
    let (id, user) = (job.id(), &job.user);
    if let Some(child) = job.child {
        let refused = format!("{id} is {}: it continues as {user}/{child}", job.status);
        return Err(Error::refused(refused)
            .hint(format!("nothing was changed; `tpu check {user}` shows both")));
    }
    if !matches!(job.status, Status::Killed(_)) {
        return Ok(());
    }
    Err(Error::refused(format!("{id} was killed, and stays so: nothing was changed"))
        .hint(format!("to continue it: tpu resume w={} {user} --force", job.windows_id)))
}

/// Refuses a claim of success where somebody acts on a proven preemption already: he may have told the program to end.
fn may_be_mended(job: &Job, now: Timestamp) -> Result<(), Error> {
    if !is_proven(job) || !job.is_acted_on(now) {
        return Ok(());
    }
    let what = job.intent.as_ref().map_or("bringing it back", |intent| intent.action.as_str());
    let message =
        format!("{} was preempted, and {what} is under way: nothing was changed", job.id());
    Err(Error::refused(message).hint(format!("`tpu check {}` shows what comes of it", job.user)))
}

/// Whether a person may say that a command has ended well. While it runs nobody may: the job would be final,
/// nobody could stop it, and it would hold its target. After its end its exit code has said how it ended, and
/// whoever knows better has to insist.
fn may_be_corrected(ctx: &Ctx, data: &Data, job: &Job, force: bool) -> Result<(), Error> {
    let (id, window, user) = (job.id(), job.windows_id, &job.user);
    if !snapshot::is_over(ctx, data, job) {
        return Err(Error::refused(format!(
            "{id} runs a command: its exit code will say how it ended, and nothing else does before"
        ))
        .hint(format!("nothing is left to be done; to stop it: tpu kill w={window} {user}")));
    }
    if force {
        return Ok(());
    }
    let exit = runners::exit_of(ctx, job);
    let how = exit.map_or("nobody knows how".to_owned(), |exit| format!("with {exit}"));
    Err(Error::refused(format!("{id} ran a command, which ended {how}"))
        .hint(format!("if it did finish: tpu finish-job {user}:{window} --force")))
}

/// The script says that its job failed; the text says why.
pub fn fail_job(ctx: &Ctx, id: &JobId, exit_code: Option<i32>) -> Result<ErrorKind, Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    may_be_told(job)?;
    // Whatever number a script tells, and if it tells none: it failed.
    let exit = Exit::Script(exit_code.unwrap_or(1));
    let printed = Printed::before(ctx, job, Some(exit));
    let (kind, evidence) = printed.failure().unwrap_or_else(|| {
        let line = "the script said that it failed";
        (ErrorKind::Unknown, Evidence::fact(Source::Exit, "fail-job", line))
    });
    ctx.transact(|tx| {
        let job = job_mut(&mut tx.data, id)?;
        may_be_told(job)?;
        if is_proven(job) {
            return Ok(ErrorKind::Preempted);
        }
        job.apply(&Event::Failed(kind))?;
        job.keep_reached(&printed.numbers());
        job.verdict = Some(StoredVerdict::new(kind, Some(&evidence)));
        records::note(tx, id, "error", format!("{kind}: {}", evidence.line));
        Ok(kind)
    })
}

/// Whether the control plane has said why it failed: no text that shows a failure renames that.
fn is_proven(job: &Job) -> bool {
    job.status == Status::Error(ErrorKind::Preempted) && answer::was_proven(job)
}

/// The launcher asks whether its launch still stands, and lets the code be copied (native mode).
pub fn begin(ctx: &Ctx, token: &LaunchToken) -> Result<(), Error> {
    let id = records::launched(ctx, token)?;
    let job = ctx.transact(|tx| {
        let job = records::of_launch(&mut tx.data, &id, token)?;
        may_begin(job)?;
        job.confirm_launch();
        Ok(job.clone())
    })?;
    if !job.is_native() {
        return Ok(());
    }
    if let Err(error) = stage::prepare(ctx, &*runners::of(ctx, &job).files(), &[&job]) {
        // Its text would not say why: what is printed here is ours.
        ctx.transact(|tx| {
            let job = records::of_launch(&mut tx.data, &id, token)?;
            may_begin(job)?;
            records::fail_launch(job, &error.message)?;
            records::note(tx, &id, "error", format!("launch: {}", error.message));
            Ok(())
        })?;
        return Err(error);
    }
    if beside::attends_workers(ctx, &id) {
        // Whether anything can begin there is not known yet.
        return Ok(());
    }
    started(ctx, &id, token)
}

/// Nothing keeps the command of a launch from beginning any more.
pub(super) fn started(ctx: &Ctx, id: &JobId, token: &LaunchToken) -> Result<(), Error> {
    ctx.transact(|tx| {
        let job = records::of_launch(&mut tx.data, id, token)?;
        if job.is_being_killed() {
            return Err(Error::refused(format!("{id} is being killed: it is not started"))
                .hint("nothing is left to do here; close this window"));
        }
        job.apply(&Event::Started)?;
        let logs = format!("logs in {}", job.log_dir.as_deref().unwrap_or("?"));
        records::note(tx, id, "started", logs);
        Ok(())
    })?;
    // It does not go back into the queue any more.
    environment::clear_laid_by(ctx);
    Ok(())
}

/// The launcher asks whether what goes on on workers is still to be shown.
pub fn again(ctx: &Ctx, token: &LaunchToken) -> Result<(), Error> {
    let id = records::launched(ctx, token)?;
    may_begin(job_of(&*ctx.data()?, &id)?)
}

/// Whether a launch still stands.
fn may_begin(job: &Job) -> Result<(), Error> {
    if !job.status.is_live() || job.is_being_killed() {
        return Err(Error::refused(format!("{} is {}: it is not started", job.id(), job.status))
            .hint("`tpu check` shows why"));
    }
    Ok(())
}

/// The launcher says that the job's command has ended. What that leaves to those that wait.
pub fn exited(ctx: &Ctx, token: &LaunchToken, code: i32) -> Result<Vacated, Error> {
    let id = records::launched(ctx, token)?;
    ends::record_end(ctx, &id, code)
}

/// The launcher ends, and has not come to the end of its job. Where somebody has closed its window, that is written
/// down: tmux answers, and has the window no more, while what ran in it is there and asks.
pub fn closed(ctx: &Ctx, token: &LaunchToken) -> Result<(), Error> {
    let id = records::launched(ctx, token)?;
    let data = ctx.data()?;
    let (job, session) = (job_of(&data, &id)?, &user_of(&data, &id.user)?.tmux_name);
    for _ in 0..LOOKS {
        let tmux = ctx.tmux.look();
        match place::find(job, session, &tmux, &*ctx.procs) {
            Window::Gone if !is_shutting_down(ctx) => {
                return Ok(beside::record_closed(ctx, &id, token)?);
            }
            // Without that word a rule may start again what a person has closed.
            Window::Unknown(_) => ctx.clock.sleep(BETWEEN_LOOKS),
            Window::Gone | Window::Here(_) | Window::Lost(_) | Window::Elsewhere(_) => break,
        }
    }
    Ok(())
}

/// How often a tmux that does not answer is asked whether a window is gone, and the pause between.
const LOOKS: u32 = 3;
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// Whether this machine is being shut down, which closes windows as well.
fn is_shutting_down(ctx: &Ctx) -> bool {
    let ask = Spawn::new("systemctl").args(["is-system-running"]);
    // Where there is no systemd it shuts nothing down.
    ctx.procs.tell(&ask).is_ok_and(|said| said.trim() == "stopping")
}
