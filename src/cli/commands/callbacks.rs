//! What scripts and launchers call: `upd-log`, `finish-job`, `fail-job`, `launcher`.

use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::cli::Outcome;
use crate::cli::app::{App, asked_to_end};
use crate::cli::args::{Command, Finish, LauncherStep};
use crate::cli::print::Output;
use tpu_core::model::ids::{JobId, LaunchToken};
use tpu_core::model::job::Status;
use tpu_ops::act::callbacks::{self, Begun};
use tpu_ops::act::relay::{self, Relayed};
use tpu_ops::act::setup::{self, SetUpHere};
use tpu_ops::act::unwritten;
use tpu_ops::act::{limits, workers};
use tpu_ops::base::{conda, environment};
use tpu_ops::waiting::queue::pass;
use tpu_ops::{Ctx, Error};
use tpu_system::sys::clock::SystemClock;
use tpu_system::sys::env::Env;
use tpu_system::sys::proc::{self, ProcError, Spawn};
use tpu_system::sys::pty;
use tpu_wire::jobs::{FailedDocument, FinishedDocument, JobIdDocument, JobIdPart};
use tpu_wire::words::Word;

/// The job into whose window a callback prints. Each of its lines is marked, so that no reader of the window takes
/// it for the job's. What the other steps of the launcher print is the job's, the workers' and ssh's.
pub(in crate::cli) fn speaks_in_window_of(command: &Command, env: &Env) -> Option<JobId> {
    let is_callback = match command {
        Command::UpdLog(_) | Command::FinishJob(_) | Command::FailJob(_) => true,
        Command::Launcher(args) => {
            !matches!(args.step, LauncherStep::Workers { .. } | LauncherStep::SetUp { .. })
        }
        _ => false,
    };
    env.non_empty("TPU_JOB").filter(|_| is_callback).and_then(JobId::parse)
}

/// `upd-log SESSION:WINDOW LOG STAGE TPU TIME`; the time is not used, as in the original.
pub(in crate::cli) fn upd_log(app: &App, words: &[String]) -> Outcome {
    let [window, log_dir, stage_dir, target, ..] = words else {
        return Err(Error::usage("upd-log needs SESSION:WINDOW LOG_DIR STAGE_DIR TPU TIME")
            .hint("an unset variable in run_remote.sh leaves an argument out"));
    };
    let ctx = app.ctx()?;
    let id = callbacks::subject(ctx, window)?;
    let begun =
        Begun { log_dir: log_dir.clone(), stage_dir: stage_dir.clone(), target: target.clone() };
    callbacks::upd_log(ctx, &id, &begun)?;
    let document = JobIdDocument { job: JobIdPart::from(&id) };
    Ok(Output::new(format!("{id} logs in {log_dir}."), &document))
}

/// `finish-job SESSION:WINDOW`.
pub(in crate::cli) fn finish(app: &App, args: &Finish) -> Outcome {
    let ctx = app.ctx()?;
    let id = callbacks::subject(ctx, &args.window)?;
    callbacks::finish_job(ctx, &id, args.force)?;
    pass::after_word(ctx, &id);
    let document = FinishedDocument { job: JobIdPart::from(&id), status: Word(Status::Finished) };
    Ok(Output::new(format!("{id} is finished."), &document))
}

/// `fail-job SESSION:WINDOW`.
pub(in crate::cli) fn fail(app: &App, args: &Finish) -> Outcome {
    let ctx = app.ctx()?;
    let id = callbacks::subject(ctx, &args.window)?;
    let kind = callbacks::fail_job(ctx, &id, args.exit_code)?;
    pass::after_word(ctx, &id);
    let document = FailedDocument {
        job: JobIdPart::from(&id),
        status: Word(Status::Error(kind)),
        error: Word(kind),
    };
    Ok(Output::new(format!("{id} failed: {kind}."), &document))
}

/// Exit code of a relay that has relayed the job to its end, and some process still holds its terminal.
const HELD: u8 = 10;

fn become_on_pty(words: &[OsString]) -> Error {
    if let Err(e) = pty::adopt() {
        return Error::failed(format!("the job cannot take its terminal: {e}"))
            .hint("start it again; if it fails again, look at /dev/pts");
    }
    became_nothing(&proc::become_program(&program(words)))
}

/// Becomes a command with the variables of the shell in which it was typed. If that fails,
/// bash tries: it runs files without `#!`, and prints the usual errors.
fn become_as_typed(env: &Env, state: &Path, (names, words): (&str, &[OsString])) -> Error {
    let vars = match environment::of_command(env, state, (names, words)) {
        Ok(vars) => vars,
        Err(error) => return error,
    };
    let vars: Vec<_> = vars.into_iter().map(|(name, value)| (name, Some(value))).collect();
    let with_vars = |program: Spawn| Spawn { env: vars.clone(), ..program.env_clear() };
    drop(proc::become_program(&with_vars(program(words))));
    let bash = Spawn::new("/bin/bash").args(["-c", "\"$@\"", "bash"]).args(words);
    // These would change what bash does before it comes to the command.
    let plain =
        ["BASH_ENV", "SHELLOPTS", "BASHOPTS"].into_iter().fold(with_vars(bash), Spawn::env_remove);
    became_nothing(&proc::become_program(&plain))
}

/// Becomes a command that has the functions of conda.
fn become_with_conda(env: &Env, state: &Path, words: &[OsString]) -> Error {
    let mut vars: Vec<_> = env.vars.clone().into_iter().collect();
    conda::add_functions(&mut vars, words, state);
    let vars = vars.into_iter().map(|(name, value)| (name, Some(value)));
    let program = Spawn { env: vars.collect(), ..program(words).env_clear() };
    became_nothing(&proc::become_program(&program))
}

/// The first word is the program.
fn program(words: &[OsString]) -> Spawn {
    let mut words = words.iter();
    Spawn::new(words.next().cloned().unwrap_or_default()).args(words)
}

fn became_nothing(error: &ProcError) -> Error {
    Error::failed(error.to_string()).hint("the program must be there and may be run")
}

/// What is needed to keep the limits of a job whose launcher says that there are some. What cannot be opened now keeps
/// nobody from being shown what the job says.
fn limited<'a>(app: &'a App, relayed: &Relayed) -> Option<&'a Ctx> {
    let is_limited = relayed.pid.is_some() && limits::are_beside(&relayed.spool);
    if is_limited { app.ctx().ok() } else { None }
}

/// Has each look see that the log of a job takes nothing more, for as long as that lasts.
fn tell_of_log(app: &App, relayed: &Relayed, lasts: bool) {
    let (Ok(ctx), Some(token)) = (app.ctx(), relayed.token()) else { return };
    if lasts {
        unwritten::begins(&ctx.effects, &token);
    } else {
        unwritten::ends(&ctx.effects, &token);
    }
}

/// The launcher's own callbacks.
pub(in crate::cli) fn launcher(app: &App, step: &LauncherStep) -> Outcome {
    match step {
        LauncherStep::Begin { token } => {
            callbacks::begin(app.ctx()?, &LaunchToken::from(token.as_str()))?;
        }
        LauncherStep::Again { token } => {
            callbacks::again(app.ctx()?, &LaunchToken::from(token.as_str()))?;
        }
        LauncherStep::PtyOpen => pty::unlock().map_err(|e| {
            Error::failed(format!("the job cannot have a terminal: {e}"))
                .hint("this machine may have no more terminals: see /proc/sys/kernel/pty/max")
        })?,
        LauncherStep::AsTyped { state, names, words } => {
            return Err(become_as_typed(&app.env, state, (names, words)));
        }
        LauncherStep::WithConda { state, words } => {
            return Err(become_with_conda(&app.env, state, words));
        }
        LauncherStep::PtyExec { words } => return Err(become_on_pty(words)),
        LauncherStep::Apart { words } => {
            return Err(became_nothing(&proc::become_program_apart(&program(words))));
        }
        LauncherStep::Relay { job, log, spool, pid } => {
            let relayed =
                Relayed { job: job.clone(), log: log.clone(), spool: spool.clone(), pid: *pid };
            let (over, heard) = (AtomicBool::new(false), AtomicU64::new(0));
            let limited = JobId::parse(job).zip(limited(app, &relayed));
            let is_held = std::thread::scope(|scope| {
                if let Some((id, ctx)) = &limited {
                    scope.spawn(|| limits::keep(ctx, id, (log, &heard), &over));
                }
                let mut is_losing = |lasts: bool| tell_of_log(app, &relayed, lasts);
                let is_held = relay::run(&SystemClock::new(), &relayed, &heard, &mut is_losing);
                over.store(true, Ordering::Relaxed);
                is_held
            })?;
            return Ok(Output::default().code(if is_held { HELD } else { 0 }));
        }
        LauncherStep::Workers { token } => {
            // A window that closes takes nothing from the workers: no SIGHUP.
            let stop = asked_to_end(&[SIGINT, SIGTERM])?;
            let token = LaunchToken::from(token.as_str());
            let code = workers::attend(app.ctx()?, &token, &mut std::io::stdout(), &stop)?;
            // What does not fit into an exit code is a failure all the same.
            return Ok(Output::default().code(u8::try_from(code).unwrap_or(1)));
        }
        LauncherStep::SetUp { token } => {
            let stop = asked_to_end(&[SIGHUP, SIGINT, SIGTERM])?;
            let token = LaunchToken::from(token.as_str());
            match setup::set_up_here(app.ctx()?, &token, &mut std::io::stdout(), &stop)? {
                SetUpHere::Ready(words) => {
                    return Err(became_nothing(&proc::become_program(&program(&words))));
                }
                SetUpHere::Ended(code) => {
                    return Ok(Output::default().code(u8::try_from(code).unwrap_or(1)));
                }
            }
        }
        LauncherStep::Closed { token } => {
            callbacks::closed(app.ctx()?, &LaunchToken::from(token.as_str()))?;
        }
        LauncherStep::Exited { token, code } => {
            let (ctx, token) = (app.ctx()?, LaunchToken::from(token.as_str()));
            let vacated = callbacks::exited(ctx, &token, *code)?;
            pass::make_way(ctx, &vacated);
            // The window closes, so that its number is free.
            if vacated.is_without_record {
                return Err(Error::not_found("the job waits in the queue again")
                    .hint("`tpu queue` shows it; this window closes"));
            }
        }
    }
    Ok(Output::default())
}
