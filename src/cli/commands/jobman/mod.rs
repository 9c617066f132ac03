//! `jobman`: what somebody types who comes from JobMan. Each command calls what the command of ours calls that does the
//! same; but a job keeps its number here, whatever attempt it has come to.

mod called;
mod listed;

use crate::cli::Outcome;
use crate::cli::app::{App, UNDONE};
use crate::cli::args::{
    Again, HoldJobs, Jobman, JobmanIds, JobmanStep, Kill, Logs, Many, Requeue, Ssh, Submit, Wait,
    WaitFor, Workers,
};
use crate::cli::print::Output;
use crate::model::ids::{JobId, JobNumber, TargetName};
use crate::model::job::{Job, Succession};
use crate::ops::ctx::job_of;
use crate::ops::{Error, Kind, teardown};
use crate::wire::jobman::{JobmanDoneDocument, JobmanDonePart};

use super::{attach, jobfile, kill, logs, queue, requeue, resume, wait, workers};
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
        JobmanStep::List | JobmanStep::Status { .. } => (true, false, false),
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
    match &args.step {
        JobmanStep::Create { file, config } => {
            let words = file.iter().chain(config).cloned().collect();
            jobfile::submit_any(&app, &Submit { words, ..Submit::default() })
        }
        JobmanStep::Start(of) | JobmanStep::Resume(of) => {
            each(&app, of, |of| begin(&app, of, None))
        }
        JobmanStep::Stop(of) => each(&app, of, |of| stop(&app, of, Waits::Stays)),
        JobmanStep::Cancel(of) => each(&app, of, |of| stop(&app, of, Waits::Goes)),
        JobmanStep::Reboot { ids, force, force_prefix } => {
            let setup = (*force || *force_prefix).then_some("force");
            each(&app, ids, |of| reboot(&app, of, setup))
        }
        JobmanStep::Requeue(of) => each(&app, of, |of| {
            let words = vec![of.word()];
            requeue::requeue(&app, &Requeue { words, now: true, hold: false })
        }),
        JobmanStep::Delete(of) => delete(&app, &called::all(&app, &of.ids)?),
        JobmanStep::Clean { all: true, .. } => delete(&app, &called::ended(&app)?),
        JobmanStep::Clean { ids, .. } => delete(&app, &called::all(&app, ids)?),
        JobmanStep::List => listed::list(&app),
        JobmanStep::Status { id } => listed::status(&app, id.as_deref()),
        JobmanStep::Run { id, cmd_only, force, force_prefix } => {
            let setup = match (cmd_only, *force || *force_prefix) {
                (true, _) => Some("skip"),
                (false, true) => Some("force"),
                (false, false) => None,
            };
            run_here(&app, &called::one(&app, id)?, setup)
        }
        JobmanStep::Ssh { id } => log_in(&app, &called::one(&app, id)?),
    }
}

/// Does the same with several jobs, one after the other; what speaks against one keeps the others from nothing.
fn each(app: &App, of: &JobmanIds, does: impl Fn(&Called) -> Outcome) -> Outcome {
    let all = called::all(app, &of.ids)?;
    let (mut lines, mut notes, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    let mut done: Vec<(String, JobId)> = Vec::new();
    for called in all {
        match does(&called) {
            Ok(output) => {
                lines.push(output.text.trim_end().to_owned());
                notes.extend(output.notes);
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
    let output = Output::new(lines.join("\n"), &document).notes(notes);
    kill::of_several(output, done.is_empty(), problems)
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
        // Whether what stands as running still does, the resume sees by the facts.
        Stands::Runs | Stands::Ended => {
            let force = called.stands == Stands::Ended;
            let setup = setup.map(str::to_owned);
            let again = Again { words: vec![word], force, apply: true, setup };
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
    match (&called.stands, waits) {
        (Stands::Waits { .. }, Waits::Stays) => {
            queue::hold(app, &HoldJobs { words, why: Some("stopped".to_owned()) })
        }
        (Stands::Ended, _) => {
            Ok(Output::new(format!("{} does not run.", called.padded()), &NOTHING))
        }
        (Stands::Waits { .. } | Stands::Runs, _) => {
            kill::kill(app, &Kill { jobs: Many { words, all: false }, force: false })
        }
    }
}

const NOTHING: JobmanDoneDocument = JobmanDoneDocument { done: Vec::new() };

fn reboot(app: &App, called: &Called, setup: Option<&str>) -> Outcome {
    let stopped = match called.stands {
        Stands::Runs => stop(app, called, Waits::Stays)?,
        Stands::Waits { .. } | Stands::Ended => Output::default(),
    };
    if app.global.dry_run && called.stands == Stands::Runs {
        return Ok(stopped);
    }
    let begun = begin(app, &called::one(app, &called.padded())?, setup)?;
    let text = format!("{}{}", stopped.text, begun.text);
    Ok(Output::new(text, &NOTHING).notes(stopped.notes).notes(begun.notes))
}

/// Takes jobs away with their TPUs, after a question that names them.
fn delete(app: &App, all: &[Called]) -> Outcome {
    let ctx = app.ctx()?;
    let (mut waiting, mut leaves) = (Vec::new(), Vec::new());
    for called in all {
        match &called.stands {
            Stands::Waits { .. } => waiting.push(called),
            Stands::Runs | Stands::Ended => leaves.push((called, called.leaf.clone())),
        }
    }
    let mut targets: Vec<TargetName> = Vec::new();
    for (_, leaf) in &leaves {
        teardown::may_tear_down(ctx, leaf)?;
        targets.extend(teardown::target_of(ctx, leaf)?.map(|target| target.name));
    }
    targets.dedup();
    let names: Vec<String> = all.iter().map(Called::padded).collect();
    let of_targets: Vec<String> =
        targets.iter().map(|target| format!(", and {target} with everything on it")).collect();
    let what = format!("{}{}", names.join(", "), of_targets.concat());
    if all.is_empty() {
        return Err(Error::not_found("no job has ended").hint("`tpu jobman list` lists them"));
    }
    if app.global.dry_run {
        return Ok(Output::would(&format!("delete {what}")));
    }
    app.agree(&format!("Delete {what}?"), UNDONE)?;
    let (mut lines, mut problems, mut done) = (Vec::new(), Vec::new(), Vec::new());
    for called in waiting {
        match stop(app, called, Waits::Goes) {
            Ok(output) => {
                lines.push(output.text.trim_end().to_owned());
                done.push((called.padded(), None));
            }
            Err(error) => problems.push(error),
        }
    }
    for (called, leaf) in leaves {
        let id = called.padded();
        let log_dir = job_of(&*ctx.data()?, &leaf).ok().and_then(|job: &Job| job.log_dir.clone());
        match teardown::tear_down(ctx, &leaf) {
            Ok(torn) => {
                let with = torn.target.as_ref().map(|target| format!(" with {target}"));
                let with = with.unwrap_or_default();
                let logs = log_dir.map(|dir| format!("; what it printed stays: {dir}"));
                lines.push(format!("Deleted {id}{with}{}", logs.unwrap_or_default()));
                done.push((id, torn.target));
            }
            Err(error) => problems.push(error),
        }
    }
    let part = |(id, deleted): &(String, Option<TargetName>)| JobmanDonePart {
        id: id.clone(),
        window: None,
        deleted: deleted.clone(),
    };
    let document = JobmanDoneDocument { done: done.iter().map(part).collect() };
    let notes = ctx.take_warnings();
    let output = Output::new(lines.join("\n"), &document).notes(notes);
    kill::of_several(output, done.is_empty(), problems)
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
    drop(logs::logs(app, &of)?);
    let ended = wait::wait(app, &Wait { words, what: WaitFor::Finished, timeout: None })?;
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
