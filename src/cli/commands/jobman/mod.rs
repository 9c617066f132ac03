//! `jobman`: what somebody types who comes from JobMan. Each command calls what the command of ours calls that does the
//! same; but a job keeps its number here, whatever attempt it has come to.

mod called;
mod listed;
mod queue;

use crate::cli::Outcome;
use crate::cli::app::{App, UNDONE};
use crate::cli::args::{
    Again, HoldJobs, Jobman, JobmanIds, JobmanStep, Kill, Logs, Many, Requeue, Ssh, Submit, Wait,
    WaitFor, Workers,
};
use crate::cli::print::Output;
use tpu_core::model::ids::{JobId, JobNumber, TargetName};
use tpu_core::model::job::Succession;
use tpu_ops::act::kill::is_left_alone;
use tpu_ops::act::successor::could_follow;
use tpu_ops::base::ctx::job_of;
use tpu_ops::front::teardown;
use tpu_ops::{Error, Kind};
use tpu_wire::jobman::{JobmanDoneDocument, JobmanDonePart};

use super::attended::attended;
use super::queue::hold;
use super::waiting::of_several;
use super::{attach, billing, kill, logs, quota, requeue, resume, storage, tasks, wait, workers};
use called::{Called, Stands};

/// What a command of it does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) struct JobmanDoes {
    /// Whether it only looks.
    pub looks: bool,
    /// Whether something is lost by it.
    pub destroys: bool,
    /// Whether it prints as it goes, or reads keys.
    pub needs_terminal: bool,
}

/// What a command does.
pub(in crate::cli) fn nature(args: &Jobman) -> JobmanDoes {
    let (looks, destroys, needs_terminal) = match &args.step {
        JobmanStep::List
        | JobmanStep::Status { .. }
        | JobmanStep::Quota(_)
        | JobmanStep::Billing(_)
        | JobmanStep::Storage(_) => (true, false, false),
        JobmanStep::Queue(of) => (of.looks(), false, false),
        JobmanStep::Create { .. } | JobmanStep::Start(_) | JobmanStep::Resume(_) => {
            (false, false, false)
        }
        JobmanStep::Run { .. } | JobmanStep::Ssh { .. } => (false, false, true),
        JobmanStep::Stop(_)
        | JobmanStep::Cancel(_)
        | JobmanStep::Reboot { .. }
        | JobmanStep::Requeue(_)
        | JobmanStep::Delete(_)
        | JobmanStep::Clean { .. } => (false, true, false),
    };
    JobmanDoes { looks, destroys, needs_terminal }
}

/// `jobman …`.
pub(in crate::cli) fn run(app: App, args: &Jobman) -> Outcome {
    let asks = matches!(args.step, JobmanStep::Delete(_) | JobmanStep::Clean { .. });
    // Who types them in JobMan is not asked: what they end can be begun again.
    let app = if asks { app } else { app.agreeing() };
    if nature(args).looks {
        return does(&app, args);
    }
    attended(|app| does(app, args))(&app)
}

fn does(app: &App, args: &Jobman) -> Outcome {
    match &args.step {
        JobmanStep::Create { file, config } => {
            let words = file.iter().chain(config).cloned().collect();
            tasks::submit_any(app, &Submit { words, ..Submit::default() })
        }
        JobmanStep::Start(of) | JobmanStep::Resume(of) => each(app, of, |of| begin(app, of, None)),
        JobmanStep::Stop(of) => each(app, of, |of| stop(app, of, Waits::Stays)),
        JobmanStep::Cancel(of) => each(app, of, |of| stop(app, of, Waits::Goes)),
        JobmanStep::Reboot { ids, force, force_prefix } => {
            let setup = (*force || *force_prefix).then_some("force");
            each(app, ids, |of| reboot(app, of, setup))
        }
        JobmanStep::Requeue(of) => each(app, of, |of| {
            let words = vec![of.word()];
            requeue::requeue(app, &Requeue { words, now: false, hold: false })
        }),
        JobmanStep::Delete(of) => delete(app, &called::all(app, &of.ids)?),
        JobmanStep::Clean { all: true, .. } => delete(app, &called::ended(app)?),
        JobmanStep::Clean { ids, .. } => delete(app, &called::all(app, ids)?),
        JobmanStep::List => listed::list(app),
        JobmanStep::Status { id } => listed::status(app, id.as_deref()),
        JobmanStep::Run { id, cmd_only, force, force_prefix } => {
            let setup = match (cmd_only, *force || *force_prefix) {
                (true, _) => Some("skip"),
                (false, true) => Some("force"),
                (false, false) => None,
            };
            run_here(app, &called::one(app, id)?, setup)
        }
        JobmanStep::Queue(of) => queue::queue(app, of),
        JobmanStep::Quota(of) => quota::run(app, of),
        JobmanStep::Billing(of) => billing::run(app, of),
        JobmanStep::Storage(of) => storage::run(app, of),
        JobmanStep::Ssh { id } => log_in(app, &called::one(app, id)?),
    }
}

/// Does the same with several jobs, one after the other; what speaks against one keeps the others from nothing.
fn each(app: &App, of: &JobmanIds, does: impl Fn(&Called) -> Outcome) -> Outcome {
    let all = called::all(app, &of.ids)?;
    let (mut lines, mut notes, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    let mut done: Vec<(String, JobId)> = Vec::new();
    let mut code = 0;
    for called in all {
        match does(&called) {
            Ok(output) => {
                lines.push(output.text.trim().to_owned());
                notes.extend(output.notes);
                code = code.max(output.code);
                done.push((called.padded(), called.id.clone()));
            }
            Err(error) => problems.push(error),
        }
    }
    let windows = done.iter().map(|(id, first)| Ok((id, newest(app, first)?)));
    let windows: Vec<(&String, Option<JobNumber>)> = windows.collect::<Result<_, Error>>()?;
    let part = |(id, window): &(&String, Option<JobNumber>)| JobmanDonePart {
        id: (*id).clone(),
        window: *window,
        deleted: None,
    };
    let document = JobmanDoneDocument { done: windows.iter().map(part).collect() };
    let output = Output::new(lines.join("\n"), &document).notes(notes).code(code);
    of_several(output, done.is_empty(), problems)
}

/// The newest attempt of a job, if it has one.
fn newest(app: &App, first: &JobId) -> Result<Option<JobNumber>, Error> {
    Ok(called::leaf(&*app.ctx()?.data()?, first).map(|leaf| leaf.window))
}

/// Begins a job again that does not run. Nothing is ever started beside what runs.
fn begin(app: &App, called: &Called, setup: Option<&str>) -> Outcome {
    let (id, word) = (called.padded(), called.word());
    match &called.stands {
        Stands::Waits { held: true } => attach::unhold(app, &[word]),
        Stands::Waits { held: false } => Err(Error::refused(format!("{id} waits for its turn"))
            .hint("`tpu queue` says why it does not begin")),
        // Whether what stands as running still does, the resume sees by the facts. A check that refuses is heard: this
        // may be another's machine by now.
        Stands::Runs | Stands::Failed | Stands::Ended => {
            let setup = setup.map(str::to_owned);
            let however_ended = called.stands == Stands::Ended;
            let again = Again {
                words: vec![word],
                force: false,
                however_ended,
                apply: true,
                setup,
                env_now: false,
                clean_env: false,
            };
            resume::again(app, &again, Succession::Resume).map_err(|error| match called.stands {
                Stands::Runs if error.kind == Kind::Refused => {
                    error.hint(format!("to stop it and begin it again: tpu jobman reboot {id}"))
                }
                _ => error,
            })
        }
    }
}

/// Whether what waits in the queue stays there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// It is held.
    Stays,
    /// It is taken out.
    Goes,
}

fn stop(app: &App, called: &Called, waits: Waits) -> Outcome {
    let words = vec![called.word()];
    let kill = |words| kill::kill(app, &Kill { jobs: Many { words, all: false }, force: false });
    match (&called.stands, waits) {
        (Stands::Waits { .. }, Waits::Stays) => {
            hold(app, &HoldJobs { words, why: Some("stopped".to_owned()) })
        }
        (Stands::Waits { .. }, Waits::Goes) => {
            let taken = kill(words)?;
            // With what waited in its place the rules of an earlier attempt hold again.
            let before = called::one(app, &called.padded()).ok();
            match before.filter(|before| before.stands == Stands::Failed && !app.global.dry_run) {
                Some(before) => Ok(joined(taken, stop(app, &before, waits)?)),
                None => Ok(taken),
            }
        }
        (Stands::Runs | Stands::Failed, _) if !is_over(app, called)? => kill(words),
        (Stands::Runs | Stands::Failed | Stands::Ended, _) => {
            Ok(Output::new(format!("{} does not run.", called.padded()), &NOTHING))
        }
    }
}

/// Whether nothing of a job is at work, and nothing brings it back.
fn is_over(app: &App, called: &Called) -> Result<bool, Error> {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    Ok(data.job(&called.leaf).is_some_and(|job| is_left_alone(job, ctx.clock.now())))
}

/// What two commands have said, and the worse of their exit codes.
fn joined(first: Output, second: Output) -> Output {
    let code = first.code.max(second.code);
    let text = format!("{}\n{}", first.text.trim_end(), second.text.trim_end());
    Output::new(text, &NOTHING).notes(first.notes).notes(second.notes).code(code)
}

const NOTHING: JobmanDoneDocument = JobmanDoneDocument { done: Vec::new() };

fn reboot(app: &App, called: &Called, setup: Option<&str>) -> Outcome {
    if called.stands != Stands::Runs {
        return begin(app, called, setup);
    }
    // What could not be begun again is not stopped.
    could_follow(app.ctx()?, &called.leaf, Succession::Resume)?;
    let stopped = stop(app, called, Waits::Stays)?;
    if app.global.dry_run || stopped.code != 0 {
        return Ok(stopped);
    }
    Ok(joined(stopped, begin(app, &called::one(app, &called.padded())?, setup)?))
}

/// Takes jobs away with their TPUs, after a question that names them.
fn delete(app: &App, all: &[Called]) -> Outcome {
    let ctx = app.ctx()?;
    if all.is_empty() {
        return Err(Error::not_found("no job has ended").hint("`tpu jobman list` lists them"));
    }
    let mut targets: Vec<TargetName> = Vec::new();
    for called in all {
        if let Some(attempt) = called::leaf(&*ctx.data()?, &called.id) {
            teardown::may_tear_down(ctx, &attempt)?;
            targets.extend(teardown::target_of(ctx, &attempt)?.map(|target| target.name));
        }
    }
    targets.sort_unstable();
    targets.dedup();
    let names: Vec<String> = all.iter().map(Called::padded).collect();
    let of_targets: Vec<String> =
        targets.iter().map(|target| format!(", and {target} with everything on it")).collect();
    let what = format!("{}{}", names.join(", "), of_targets.concat());
    if app.global.dry_run {
        return Ok(Output::would(&format!("delete {what}")));
    }
    app.agree(&format!("Delete {what}?"), UNDONE)?;
    let (mut said, mut problems, mut done) = (Output::default(), Vec::new(), Vec::new());
    for called in all {
        match delete_one(app, called) {
            Ok((output, deleted)) => {
                said = joined(said, output);
                done.push(JobmanDonePart { id: called.padded(), window: None, deleted });
            }
            Err(error) => problems.push(error),
        }
    }
    let nothing = done.is_empty();
    let document = JobmanDoneDocument { done };
    let output = Output::new(said.text.trim_start(), &document).notes(said.notes).code(said.code);
    of_several(output.notes(ctx.take_warnings()), nothing, problems)
}

/// Takes out what waits in the place of a job, then the job itself with its TPU.
fn delete_one(app: &App, called: &Called) -> Result<(Output, Option<TargetName>), Error> {
    let ctx = app.ctx()?;
    let id = called.padded();
    let taken = match called.stands {
        Stands::Waits { .. } => stop(app, called, Waits::Goes)?,
        Stands::Runs | Stands::Failed | Stands::Ended => Output::default(),
    };
    // It may have begun meanwhile.
    let Some(attempt) = called::leaf(&*ctx.data()?, &called.id) else { return Ok((taken, None)) };
    let log_dir = job_of(&*ctx.data()?, &attempt)?.log_dir.clone();
    let torn = teardown::tear_down(ctx, &attempt)?;
    let with = torn.target.as_ref().map(|target| format!(" with {target}")).unwrap_or_default();
    let logs = log_dir.map(|dir| format!("; what it printed stays: {dir}")).unwrap_or_default();
    let left = torn
        .left
        .iter()
        .map(|name| format!("{id} was on {name} before, which stays: tpu delete {name}"));
    let deleted = Output::new(format!("Deleted {id}{with}{logs}"), &NOTHING);
    Ok((joined(taken, deleted.notes(left.collect())), torn.target))
}

/// Begins a job here and shows what it prints; the exit code says how it ended.
fn run_here(app: &App, called: &Called, setup: Option<&str>) -> Outcome {
    let begun = begin(app, called, setup)?;
    if app.global.dry_run {
        return Ok(begun);
    }
    let leaf = newest(app, &called.id)?.unwrap_or(called.id.window);
    let words = vec![format!("w={leaf}"), called.id.user.to_string()];
    let of = Logs { words: words.clone(), follow: true, lines: None, grep: None, worker: None };
    // It has printed what is kept, and says what is only shown.
    let shown = logs::logs(app, &of)?;
    let mut ended = wait::wait(app, &Wait { words, what: WaitFor::Finished, timeout: None })?;
    ended.text.insert_str(0, &shown.text);
    Ok(ended.notes(begun.notes))
}

fn log_in(app: &App, called: &Called) -> Outcome {
    let data = app.ctx()?.data()?;
    let target = job_of(&data, &called.leaf).map(|job| job.tpu.to_string()).map_err(|_| {
        Error::refused(format!("{} has no TPU yet", called.padded()))
            .hint("`tpu queue` says why it does not begin")
    })?;
    let of = Ssh { target, worker: None, command: None };
    workers::run(app, &Workers::Ssh(of.into()))
}
