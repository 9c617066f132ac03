//! Which function each command calls. The one file of `cli` that knows the screen, the demo and MONITOR.

use std::sync::Arc;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::demo::lab;
use crate::demo::story::{Sabotage, Story};
use crate::model::ids::JobId;
use crate::model::view::Whose;
use crate::ops::provision::Change;
use crate::ops::{Error, clean::Ends, watch};
use crate::wire::pages::{DemoDocument, ScreenDocument};

use super::Outcome;
use super::app::{App, asked_to_end};
use super::args::{Command, DaemonStep, SimEvent, State};
use super::commands::{
    aliases, attach, board, callbacks, check, classify, clean, cloud, daemon as monitor_cmds, data,
    dirs, doctor, help, history, init, inventory, kill, logs, news, resume, rules, run, settings,
    targets, users, wait, workers,
};
use super::print::{self, Output};
use super::screen;

/// Runs a command, or what happens when none was typed.
pub(super) fn run(app: App, command: Option<Command>) -> Outcome {
    let warnings = app.warnings.clone();
    let circumstances = if app.global.verbose { app.circumstances() } else { Vec::new() };
    let outcome = match command {
        Some(command) if app.global.dry_run && acts_at_once(&command) => {
            run_command(app, command).map(Output::dry_run_of)
        }
        Some(command) => run_command(app, command),
        None => bare(app),
    };
    outcome.map(|output| output.notes(warnings.take()).notes(circumstances))
}

/// Whether a command changes the state and nothing else, so that its change is tried out and dropped.
fn acts_at_once(command: &Command) -> bool {
    matches!(
        command,
        Command::AddTag(_)
            | Command::IgnoreError(_)
            | Command::SetRule(_)
            | Command::AddUser(_)
            | Command::DelUser(_)
            | Command::SetCur(_)
            | Command::SetDir(_)
            | Command::DelDir(_)
            | Command::SwapDir(_)
            | Command::AddConfigAlias(_)
            | Command::DelConfigAlias(_)
            | Command::SetSettings(_)
            | Command::ResetSettings(_)
            | Command::ResetWindowNum(_)
            | Command::AddTpuAlias(_)
            | Command::Register(_)
            | Command::DelRegistered(_)
            | Command::Board(_)
            | Command::State(_)
            | Command::Ack
            | Command::ClearMonitorLog
            | Command::SetMonitorConfig(_)
            | Command::UpdLog(_)
            | Command::FinishJob(_)
            | Command::FailJob(_)
            | Command::Doctor(_)
    ) || matches!(command, Command::Sim(of) if !matches!(of.event, SimEvent::List | SimEvent::Serve { .. }))
}

fn run_command(app: App, command: Command) -> Outcome {
    match command {
        Command::Run(args) => run_then_watch(app, |app| run::run(app, &args), args.quiet),
        Command::Check(args) => check::check(&app, &args),
        Command::CheckSimp(args) => check::table(&app, &args),
        Command::Monitor(args) => monitor(app, &screen::scope(&args)),
        Command::Caj(args) => check::everybody(&app, args),
        Command::Maj(args) => check::again_and_again(&app, args),
        Command::Resume(args) => resume::resume(&app, &args),
        Command::Rerun(args) => resume::rerun(&app, &args),
        Command::Kill(args) => kill::kill(&app, &args),
        Command::KillWindow(args) => kill::kill_window(&app, &args.words),
        Command::Clean(args) => clean::clean(&app, &args),
        Command::ClearFinished(args) => clean::clear(&app, &args, Ends::Finished),
        Command::ClearError(args) => clean::clear(&app, &args, Ends::Failed),
        Command::ClearAll(args) => clean::clear(&app, &args, Ends::All),
        Command::ClearZombieWindows(args) => clean::windows(&app, &args),
        Command::ClearZombieJobs(args) => clean::jobs(&app, &args),
        Command::AddTag(args) => rules::add_tag(&app, &args.words),
        Command::IgnoreError(args) => rules::ignore_error(&app, &args.words),
        Command::CheckRules => Ok(rules::check_rules()),
        Command::SetRule(args) => rules::set_rule(&app, &args.words),
        Command::GetStageDir(args) => rules::stage_dir(&app, &args.words),
        Command::Logs(args) => logs::logs(&app, &args),
        Command::Explain(args) => check::explain(&app, &args.words),
        Command::History(args) if args.since_last => news::since_last(&app, &args),
        Command::History(args) => history::history(&app, &args),
        Command::Attach(args) => attach::attach(&app, &args.words),
        Command::Wait(args) => wait::wait(&app, &args),
        Command::AddUser(args) => users::add(&app, &args),
        Command::DelUser(args) => users::delete(&app, &args.words),
        Command::ListUsers => users::list(&app),
        Command::SetCur(args) => dirs::set_current(&app, &args.words),
        Command::SetDir(args) => dirs::set(&app, &args.words),
        Command::Ls(args) => dirs::list(&app, &args.words),
        Command::GetDir(args) => dirs::get(&app, &args.words),
        Command::DelDir(args) => dirs::delete(&app, &args.words),
        Command::SwapDir(args) => dirs::swap(&app, &args.words),
        Command::AddConfigAlias(args) => aliases::add(&app, &args.words),
        Command::ShowConfigAlias(args) => aliases::list(&app, &args.words),
        Command::DelConfigAlias(args) => aliases::delete(&app, &args.words),
        Command::GetSettings(args) => settings::get(&app, &args),
        Command::SetSettings(args) => settings::set(&app, &args.words),
        Command::ResetSettings(args) => settings::reset(&app, &args.words),
        Command::ResetWindowNum(args) => settings::reset_window_number(&app, &args.words),
        Command::AddTpuAlias(args) => targets::add_alias(&app, &args.words),
        Command::ListTpuAliases => targets::list_aliases(&app),
        Command::Register(args) => targets::register(&app, &args),
        Command::DelRegistered(args) => targets::forget(&app, &args.words),
        Command::Apply(args) => cloud::apply(&app, &args),
        Command::Applyy(args) => cloud::insist(&app, &args),
        Command::Reapply(args) => cloud::reapply(&app, &args),
        Command::Delete(of) => cloud::change(&app, ("delete", &of.target), Change::Delete),
        Command::Start(of) => cloud::change(&app, ("start", &of.target), Change::Start),
        Command::Stop(of) => cloud::change(&app, ("stop", &of.target), Change::Stop),
        Command::Restart(of) => cloud::change(&app, ("restart", &of.target), Change::Restart),
        Command::CheckStatus(args) => cloud::check_status(&app, &args),
        Command::Describe(of) => inventory::describe(&app, &of),
        Command::Targets(args) => inventory::targets(&app, &args),
        Command::Board(command) => board::run(&app, &command),
        Command::Workers(command) => workers::run(&app, &command),
        Command::Sim(args) => cloud::sim(&app, &args.event),
        Command::Daemon(args) => daemon(app, args.step),
        Command::Ack => monitor_cmds::ack(&app),
        Command::MonitorLog(args) => monitor_cmds::log(&app, &args),
        Command::ClearMonitorLog => monitor_cmds::clear_log(&app),
        Command::SetMonitorConfig(args) => settings::set_monitor(&app, &args.words),
        Command::GetMonitorConfig => settings::get_monitor(&app),
        Command::UpdLog(args) => callbacks::upd_log(&app, &args.words),
        Command::FinishJob(args) => callbacks::finish(&app, &args),
        Command::FailJob(args) => callbacks::fail(&app, &args),
        Command::Launcher(_) if app.global.dry_run => {
            Ok(Output::would("do what a launcher does for its job"))
        }
        Command::Launcher(args) => {
            app.console.streams()?;
            callbacks::launcher(&app, &args.step)
        }
        Command::State(State::Init(args)) => init::run(&app, &args),
        Command::State(State::Data(args)) => data::run(&app, &args.step),
        Command::Classify(args) => classify::classify(&app, &args),
        Command::Doctor(args) => doctor::doctor(&app, &args),
        Command::Demo(args) => demo(&app, &args),
        Command::DemoTrain { words } => {
            app.console.streams()?;
            demo_train(&words)
        }
        Command::Tldr => Ok(help::tldr()),
        Command::Help { command, all } => help::help(command.as_deref(), all),
        Command::Completions { shell } => help::completions(shell),
        Command::Man { command } => help::man(command.as_deref()),
    }
}

/// `tpu` alone: the monitor for people who have users, else how to begin.
fn bare(app: App) -> Outcome {
    let has_users = app.ctx()?.data().is_ok_and(|data| !data.users().is_empty());
    if has_users && app.on_terminal() {
        return monitor(app, &screen::Scope::default());
    }
    Ok(help::welcome())
}

/// `run`, and on a terminal the monitor afterwards, on the new job.
fn run_then_watch(
    app: App,
    run: impl FnOnce(&App) -> Result<run::Ran, Error>,
    quiet: bool,
) -> Outcome {
    let ran = run(&app)?;
    let is_watched = |job: &JobId| !quiet && app.on_terminal() && is_monitor_wanted(&app, job);
    let Some(job) = ran.job.filter(is_watched) else { return Ok(ran.output) };
    // Said before the screen opens, and there when it closes: whatever the screen meets, the job has started.
    let started = ran.output.notes(app.warnings.take());
    print::output(&started, &app.global);
    let again = format!("tpu monitor {}", job.user);
    let scope = screen::Scope {
        whose: Whose::of([job.user.clone()]),
        select: Some(job),
        ..screen::Scope::default()
    };
    Ok(monitor(app, &scope).unwrap_or_else(|error| {
        let note =
            format!("the monitor did not open: {}; once that is mended: {again}", error.message);
        Output::default().notes(vec![note])
    }))
}

/// Whether the monitor is to open after a job of this user has started.
fn is_monitor_wanted(app: &App, job: &JobId) -> bool {
    let settings = app.ctx().and_then(|ctx| ctx.settings(ctx.data()?.user(&job.user)));
    settings.is_ok_and(|settings| settings.monitor_after_run)
}

/// The full-screen monitor.
fn monitor(app: App, scope: &screen::Scope) -> Outcome {
    let options = screen::options(&app, scope)?;
    if app.global.dry_run {
        // Its keys act on processes and windows, which nobody can try out.
        return Ok(Output::new("Would open the screen.", &ScreenDocument { would: "monitor" }));
    }
    app.console.streams()?;
    let code = screen::open(app.into_ctx()?, options)?;
    Ok(Output::default().code(code))
}

/// MONITOR.
fn daemon(app: App, step: DaemonStep) -> Outcome {
    match step {
        DaemonStep::Run if app.global.dry_run => monitor_cmds::dry_run_start(&app),
        DaemonStep::Run => {
            app.console.streams()?;
            let stop = asked_to_end(&[SIGINT, SIGTERM, SIGHUP])?;
            let mut ctx = app.into_ctx()?;
            watch::ACTOR.clone_into(&mut ctx.effects.actor);
            crate::daemon::run(&Arc::new(ctx), &stop, &mut std::io::stdout())?;
            Ok(Output::default())
        }
        DaemonStep::Start => monitor_cmds::start(&app),
        DaemonStep::Stop => monitor_cmds::stop(&app),
        DaemonStep::Status => monitor_cmds::status(&app),
        DaemonStep::Plan => monitor_cmds::plan(&app),
    }
}

/// The tour.
fn demo(app: &App, args: &super::args::Demo) -> Outcome {
    let sabotage = args.sabotage.as_deref().map(|word| {
        Sabotage::parse(word).ok_or_else(|| {
            Error::usage(format!("--sabotage {word}: nothing to break"))
                .hint(Sabotage::WORDS.map(|(word, _)| word).join(", "))
        })
    });
    let sabotage = sabotage.transpose()?;
    app.console.streams()?;
    let stop = asked_to_end(&[SIGINT, SIGTERM, SIGHUP])?;
    let root = tempfile::Builder::new()
        .prefix("tpu-demo-")
        .tempdir()
        .map_err(|e| Error::state(format!("cannot make a temporary directory: {e}")))?;
    let mut ctx = app.apart(root.path())?;
    if sabotage == Some(Sabotage::Classify) {
        lab::blind_to_oom(&ctx)?;
        ctx = app.apart(root.path())?;
    }
    let mut out = std::io::stdout();
    let mut story = Story::new(&ctx, &mut out, &stop, sabotage);
    let watched = !args.headless && app.on_terminal();
    let told = if watched {
        story.set_the_stage(root.path()).and_then(|job| {
            let options = screen::plain_options(app, job)?;
            screen::open(app.apart(root.path())?, options).map(drop)
        })
    } else {
        story.tell(root.path())
    };
    let taken_down = lab::take_down(&ctx);
    let gone =
        root.close().map_err(|e| Error::state(format!("cannot remove the demo's directory: {e}")));
    told?;
    taken_down?;
    gone?;
    let last = if watched {
        "Nothing is left behind. Next, in the directory of your code: tpu init"
    } else {
        "The story came true, and nothing is left behind."
    };
    Ok(Output::new(last, &DemoDocument { demo: "ok" }))
}

/// The training that the demo runs.
fn demo_train(words: &[String]) -> Outcome {
    use crate::demo::train::{TrainError, World, run};
    use crate::sys::clock::{Clock as _, SystemClock};
    let clock = SystemClock::new();
    let world = World {
        started: clock.now(),
        elapsed: &|| clock.monotonic(),
        pace: &|duration| clock.sleep(duration),
    };
    match run(words, &mut std::io::stdout().lock(), &world) {
        Ok(code) => Ok(Output::default().code(u8::try_from(code).unwrap_or(1))),
        Err(TrainError::Output(e)) if e.kind() == std::io::ErrorKind::BrokenPipe => {
            Ok(Output::default())
        }
        Err(error) => Err(Error::failed(error.to_string())),
    }
}
