//! Which function each command calls. The one file of `cli` that knows the screen and the daemon; `demo`
//! knows the demo, `serve` the API.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use tpu_core::model::ids::JobId;
use tpu_core::model::job::Succession;
use tpu_core::model::view::Whose;
use tpu_ops::act::provision::Change;
use tpu_ops::act::{record_facts, service};
use tpu_ops::base::watch::Hosting;
use tpu_ops::front::clean::Ends;
use tpu_ops::front::jobfile::is_file;
use tpu_ops::{Ctx, Error};
use tpu_system::sys::proc;
use tpu_wire::pages::{KindDocument, ScreenDocument};

use super::Outcome;
use super::app::{App, asked_to_end};
use super::args::{
    ArchiveStep, CheckpointsStep, Cli, Command, DaemonStep, Foreign, FromKind, HostsStep, Http,
    Insight, JobFiles, NotifyStep, QueueStep, RunDaemon, SecretsStep, ServeArgs, ServeCommand,
    SimEvent, StartDaemon, State, TokenStep, Workers,
};
use super::commands::attended::{self, attended};
use super::commands::cms::CmsDoes;
use super::commands::cms::service::{self as cms_service, Service};
use super::commands::first::begins;
use super::commands::jobman::JobmanDoes;
use super::commands::{
    aliases, archive, attach, billing, board, callbacks, check, checkpoints, classify, clean,
    cloud, cms, daemon as monitor_cmds, daemon_unit, data, dirs, disk, doctor, export, files,
    first, help, history, hosts, import, init, inventory, jobfile, jobman, kill, logs, news,
    notify, queue, quota, requeue, resume, rules, run, secrets, settings, show, stats, storage,
    sweep, targets, tasks, tokens, uninstall, users, wait, workers,
};
use super::print::{self, Output};
use super::screen::{self, Nature};
use super::verb::{Borrowing, Does, Verb, acts, changes, looks, untried};
use super::{demo, left_out, legacy, serve, sim};

/// Runs a command, or what happens when none was typed.
pub(super) fn run(app: App, command: Option<Command>) -> Outcome {
    let warnings = app.warnings.clone();
    let circumstances = if app.global.verbose { app.circumstances() } else { Vec::new() };
    let outcome = match command {
        Some(command) => verb(command).run(app),
        None => bare(app),
    };
    outcome.map(|output| output.notes(warnings.take()).notes(circumstances))
}

/// What the words of a command ask for; nothing special where they cannot be understood, which the command says
/// itself.
pub fn nature(words: &[String]) -> Nature {
    let typed: Vec<OsString> = words.iter().map(OsString::from).collect();
    let understood = Cli::parse_words(&legacy::rewrite(typed)).ok();
    let of = |cli: Cli| {
        let verb = verb(cli.command?);
        let is_real = !cli.global.dry_run;
        Some(Nature {
            needs_terminal: verb.needs_terminal && is_real,
            destroys: verb.destroys && is_real,
            can_be_tried: verb.can_be_tried(),
        })
    };
    understood.and_then(|(cli, _)| of(cli)).unwrap_or_default()
}

/// What each command calls.
pub(super) fn verb(command: Command) -> Verb {
    match command {
        Command::Run(args) => {
            let asks = args.ask_notes;
            Verb::new(Does::Act, move |app| {
                let file = args.words.iter().find(|word| is_file(word));
                let run = |app: &App| {
                    first::begin_to_run(app, &args.words, &args.of_command.command)?;
                    match file {
                        Some(file) => jobfile::run_file(app, &args, file),
                        None => run::run(app, &args),
                    }
                };
                run_then_watch(app, run, args.quiet)
            })
            .on_terminal_if(asks)
        }
        Command::Check(args) => looks(move |app| check::check(app, &args)),
        Command::Sweep(args) => looks(move |app| sweep::sweep(app, &args)),
        Command::CheckSimp(args) => looks(move |app| check::table(app, &args)),
        Command::Monitor(args) => {
            Verb::new(Does::Act, move |app| monitor(app, &screen::scope(&args))).on_terminal()
        }
        Command::Caj(args) => looks(move |app| check::everybody(app, args.into_inner())),
        Command::Maj(args) => {
            looks(move |app| check::again_and_again(app, args.into_inner())).on_terminal()
        }
        Command::Resume(args) => {
            acts(attended(move |app| resume::again(app, &args, Succession::Resume)))
        }
        Command::Rerun(args) => {
            acts(attended(move |app| resume::again(app, &args, Succession::Rerun)))
        }
        Command::Kill(args) => acts(move |app| kill::kill(app, &args)).destroys(),
        Command::KillWindow(args) => {
            acts(move |app| kill::kill_window(app, &args.words)).destroys()
        }
        Command::Clean(args) => acts(move |app| clean::clean(app, &args)).destroys(),
        Command::ClearFinished(args) => {
            acts(move |app| clean::clear(app, &args, Ends::Finished)).destroys()
        }
        Command::ClearError(args) => {
            acts(move |app| clean::clear(app, &args, Ends::Failed)).destroys()
        }
        Command::ClearAll(args) => acts(move |app| clean::clear(app, &args, Ends::All)).destroys(),
        Command::ClearZombieWindows(args) => acts(move |app| clean::windows(app, &args)).destroys(),
        Command::ClearZombieJobs(args) => acts(move |app| clean::jobs(app, &args)).destroys(),
        Command::Submit(args) => acts(attended(move |app| tasks::submit_any(app, &args))),
        Command::Queue(args) => {
            let kind: fn(Borrowing) -> Verb = match &args.step {
                None if queue::submits(&args) => acts,
                None | Some(QueueStep::List(_)) => looks,
                Some(QueueStep::Run(_)) => untried,
                Some(_) => changes,
            };
            let stays = matches!(&args.step, Some(QueueStep::Run(_)));
            let makes = match &args.step {
                None => queue::submits(&args),
                Some(step) => matches!(step, QueueStep::Create(_) | QueueStep::Set(_)),
            };
            let lets_begin =
                matches!(&args.step, Some(QueueStep::Resume(_))) || args.step.is_none() && makes;
            let run = move |app: &App| queue::run(app, &args);
            let run: Borrowing = if makes { Box::new(begins(run)) } else { Box::new(run) };
            let run: Borrowing = if lets_begin { Box::new(attended(run)) } else { run };
            kind(run).on_terminal_if(stays)
        }
        Command::Hold(args) => changes(move |app| queue::hold(app, &args)),
        Command::Requeue(args) => {
            acts(attended(move |app| requeue::requeue(app, &args))).destroys()
        }
        Command::Dequeue(args) => changes(move |app| queue::dequeue(app, &args)).destroys(),
        Command::Priority(args) => changes(move |app| queue::set_priority(app, &args)),
        Command::Unhold(args) => acts(attended(move |app| attach::unhold(app, &args.words))),
        Command::AddTag(args) => changes(move |app| rules::add_tag(app, &args.words)),
        Command::IgnoreError(args) => changes(move |app| rules::ignore_error(app, &args.words)),
        Command::CheckRules => looks(move |_| Ok(rules::check_rules())),
        Command::SetRule(args) => changes(move |app| rules::set_rule(app, &args.words)),
        Command::GetStageDir(args) => looks(move |app| rules::stage_dir(app, &args.words)),
        Command::Logs(args) => {
            let follows = args.follow;
            looks(move |app| logs::logs(app, &args)).on_terminal_if(follows)
        }
        Command::Files(args) => looks(move |app| files::files(app, &args)),
        Command::Explain(args) => looks(move |app| check::explain(app, &args.words)),
        Command::Show(args) => looks(move |app| show::show(app, &args)),
        Command::Script(args) => looks(move |app| show::script(app, &args)),
        Command::History(args) if args.since_last => looks(move |app| news::since_last(app, &args)),
        Command::History(args) => looks(move |app| history::history(app, &args)),
        Command::Attach(args) => acts(move |app| attach::attach(app, &args.words)).on_terminal(),
        Command::Wait(args) => looks(move |app| wait::wait(app, &args)).on_terminal(),
        Command::AddUser(args) => {
            let asks = args.name.is_none();
            changes(move |app| users::add(app, &args)).on_terminal_if(asks)
        }
        Command::DelUser(args) => changes(move |app| users::delete(app, &args.words)).destroys(),
        Command::ListUsers => looks(users::list),
        Command::SetCur(args) => changes(begins(move |app| dirs::set_current(app, &args.words))),
        Command::SetDir(args) => changes(begins(move |app| dirs::set(app, &args.words))),
        Command::Ls(args) => looks(move |app| dirs::list(app, &args.words)),
        Command::GetDir(args) => looks(move |app| dirs::get(app, &args.words)),
        Command::DelDir(args) => changes(move |app| dirs::delete(app, &args.words)),
        Command::SwapDir(args) => changes(move |app| dirs::swap(app, &args.words)),
        Command::AddConfigAlias(args) => changes(begins(move |app| aliases::add(app, &args.words))),
        Command::ShowConfigAlias(args) => looks(move |app| aliases::list(app, &args.words)),
        Command::DelConfigAlias(args) => changes(move |app| aliases::delete(app, &args.words)),
        Command::GetSettings(args) => looks(move |app| settings::get(app, &args)),
        Command::SetSettings(args) => changes(begins(move |app| settings::set(app, &args))),
        Command::ResetSettings(args) => {
            changes(move |app| settings::reset(app, &args.words)).destroys()
        }
        Command::ResetWindowNum(args) => {
            changes(move |app| settings::reset_window_number(app, &args.words))
        }
        Command::AddTpuAlias(args) => {
            changes(begins(move |app| targets::add_alias(app, &args.words)))
        }
        Command::ListTpuAliases => looks(targets::list_aliases),
        Command::Register(args) => changes(begins(move |app| targets::register(app, &args))),
        Command::DelRegistered(args) => {
            changes(move |app| targets::forget(app, &args.words)).destroys()
        }
        Command::Apply(args) => acts(begins(move |app| cloud::apply(app, &args))),
        Command::Applyy(args) => acts(begins(move |app| cloud::insist(app, &args))),
        Command::Reapply(args) => acts(move |app| cloud::reapply(app, &args)).destroys(),
        Command::Delete(of) => {
            acts(move |app| cloud::change(app, ("delete", &of.target), Change::Delete)).destroys()
        }
        Command::Start(of) => {
            acts(move |app| cloud::change(app, ("start", &of.target), Change::Start))
        }
        Command::Stop(of) => {
            acts(move |app| cloud::change(app, ("stop", &of.target), Change::Stop)).destroys()
        }
        Command::Restart(of) => {
            acts(move |app| cloud::change(app, ("restart", &of.target), Change::Restart)).destroys()
        }
        Command::CheckStatus(args) => looks(move |app| cloud::check_status(app, &args)),
        Command::Describe(of) => looks(move |app| inventory::describe(app, &of)),
        Command::Targets(args) => acts(move |app| inventory::targets(app, &args)),
        Command::Hosts(args) => {
            let kind: fn(Borrowing) -> Verb = match &args.step {
                None | Some(HostsStep::List(_) | HostsStep::Show(_) | HostsStep::Probe(_)) => looks,
                Some(_) => changes,
            };
            let destroys = matches!(&args.step, Some(HostsStep::Remove(_)));
            let makes = matches!(
                &args.step,
                Some(HostsStep::Add(_) | HostsStep::Set(_) | HostsStep::Detect(_))
            );
            let run = move |app: &App| hosts::run(app, &args);
            let run: Borrowing = if makes { Box::new(begins(run)) } else { Box::new(run) };
            kind(run).destroys_if(destroys)
        }
        Command::Pools(args) if args.step.is_none() => looks(move |app| hosts::pools(app, &args)),
        Command::Pools(args) => changes(move |app| hosts::pools(app, &args)),
        Command::Insight(Insight::Stats(args)) => looks(move |app| stats::run(app, &args)),
        Command::Insight(Insight::Quota(args)) => looks(move |app| quota::run(app, &args)),
        Command::Insight(Insight::Billing(args)) => looks(move |app| billing::run(app, &args)),
        Command::Insight(Insight::Archive(args)) => {
            let kind: fn(Borrowing) -> Verb = match &args.step {
                ArchiveStep::List { .. } | ArchiveStep::Show { .. } | ArchiveStep::Logs { .. } => {
                    looks
                }
                ArchiveStep::Restore { .. } => changes,
            };
            kind(Box::new(move |app: &App| archive::run(app, &args)))
        }
        Command::Insight(Insight::Checkpoints(args)) => {
            let kind: fn(Borrowing) -> Verb = if args.step.is_none() { looks } else { acts };
            let destroys = matches!(&args.step, Some(CheckpointsStep::Prune { .. }));
            kind(Box::new(move |app: &App| checkpoints::run(app, &args))).destroys_if(destroys)
        }
        Command::Insight(Insight::Storage(args)) => looks(move |app| storage::run(app, &args)),
        Command::Insight(Insight::Disk(args)) => looks(move |app| disk::run(app, &args)),
        Command::Foreign(Foreign::Import(args)) => {
            changes(begins(move |app| import::run(app, &args)))
        }
        Command::JobFiles(JobFiles::Convert(args)) => {
            looks(move |app| jobfile::convert(app, &args))
        }
        Command::JobFiles(JobFiles::Schema(args)) => looks(move |_| Ok(jobfile::schema(args.of))),
        Command::JobFiles(JobFiles::Notify(args)) => match args.step.clone() {
            None => looks(|app| notify::list(app, &[])),
            Some(NotifyStep::List { words }) => looks(move |app| notify::list(app, &words)),
            Some(NotifyStep::Test { words }) => acts(move |app| notify::test(app, &words)),
        },
        Command::JobFiles(JobFiles::Secrets(args)) => match args.step.clone() {
            None | Some(SecretsStep::List) => looks(secrets::list),
            Some(SecretsStep::Set { name }) => {
                changes(move |app| secrets::set(app, &name)).on_terminal()
            }
            Some(SecretsStep::Remove { name }) => {
                changes(move |app| secrets::remove(app, &name)).destroys()
            }
        },
        Command::Http(Http::Serve(args)) => {
            Verb::new(Does::CannotBeTried, move |app| serve::serve(app, &args))
        }
        Command::Http(Http::Token(args)) => match args.step.clone() {
            None | Some(TokenStep::List) => looks(tokens::list),
            Some(TokenStep::Create(args)) => changes(begins(move |app| tokens::create(app, &args))),
            Some(TokenStep::Revoke { name }) => {
                changes(move |app| tokens::revoke(app, &name)).destroys()
            }
        },
        Command::Foreign(Foreign::Cms(args)) => {
            match cms_service::wanted(&args) {
                None => {}
                Some(Err(error)) => return looks(move |_| Err(error)),
                Some(Ok(Service::Info(address))) => {
                    return looks(move |_| Ok(cms_service::info(address)));
                }
                Some(Ok(Service::Start(address))) => {
                    let how = ServeArgs { listen: Some(address), ..ServeArgs::default() };
                    let listen = ServeCommand { how, open: false };
                    return Verb::new(Does::CannotBeTried, move |app| serve::serve(app, &listen));
                }
            }
            let (does, destroys) = cms::nature(&args);
            let kind: fn(Borrowing) -> Verb = match does {
                CmsDoes::Look => looks,
                CmsDoes::Change => changes,
                CmsDoes::Act => acts,
            };
            let run = move |app: &App| cms::run(app, &args);
            let run: Borrowing =
                if does == CmsDoes::Act { Box::new(attended(run)) } else { Box::new(run) };
            kind(run).destroys_if(destroys)
        }
        Command::Foreign(Foreign::OfKind(of)) => {
            let destroys = (of.0.destroys)(&of.1);
            Verb::new(Does::Act, move |app| of_kind(app, &of)).destroys_if(destroys)
        }
        Command::Foreign(Foreign::Jobman(args)) => {
            let JobmanDoes { looks, destroys, needs_terminal } = jobman::nature(&args);
            let does = if looks { Does::Look } else { Does::Act };
            Verb::new(does, move |app| jobman::run(app, &args))
                .destroys_if(destroys)
                .on_terminal_if(needs_terminal)
        }
        Command::Board(command) => changes(move |app| board::run(app, &command)),
        Command::Workers(command) => {
            let destroys = matches!(command, Workers::Solve(_) | Workers::KillRemote(_));
            let logs_in = matches!(&command, Workers::Ssh(of) if of.command.is_none());
            acts(move |app| workers::run(app, &command))
                .destroys_if(destroys)
                .on_terminal_if(logs_in)
        }
        Command::Sim(args) => {
            let kind: fn(Borrowing) -> Verb = match &args.event {
                SimEvent::List => looks,
                SimEvent::Serve { .. } => acts,
                _ => changes,
            };
            let serves = matches!(args.event, SimEvent::Serve { .. });
            kind(Box::new(move |app: &App| sim::sim(app, &args.event))).on_terminal_if(serves)
        }
        Command::Daemon(args) => {
            let step = args.step.clone();
            let destroys = matches!(step, DaemonStep::Stop);
            let stays = matches!(step, DaemonStep::Run(_));
            Verb::new(Does::Act, move |app| daemon(app, &step))
                .destroys_if(destroys)
                .on_terminal_if(stays)
        }
        Command::Ack => changes(monitor_cmds::ack),
        Command::MonitorLog(args) => looks(move |app| monitor_cmds::log(app, &args)),
        Command::ClearMonitorLog => changes(monitor_cmds::clear_log).destroys(),
        Command::SetMonitorConfig(args) => {
            changes(begins(move |app| settings::set_monitor(app, &args.words)))
        }
        Command::GetMonitorConfig => looks(settings::get_monitor),
        Command::UpdLog(args) => changes(move |app| callbacks::upd_log(app, &args.words)),
        Command::FinishJob(args) => changes(move |app| callbacks::finish(app, &args)),
        Command::FailJob(args) => changes(move |app| callbacks::fail(app, &args)),
        Command::Launcher(args) => acts(move |app| {
            if app.global.dry_run {
                return Ok(Output::would("do what a launcher does for its job"));
            }
            callbacks::launcher(app, &args.step)
        })
        .on_terminal(),
        Command::State(State::Init(args)) => {
            Verb::new(Does::Change, move |app| init::run(app, &args))
        }
        Command::State(State::Data(args)) => changes(move |app| data::run(app, &args.step)),
        Command::State(State::Export(args)) => acts(move |app| export::run(app, &args)),
        Command::State(State::Uninstall) => acts(uninstall::run).destroys(),
        Command::Classify(args) => looks(move |app| classify::classify(app, &args)),
        Command::Doctor(args) => {
            let destroys = args.fix || args.restore.is_some();
            changes(move |app| doctor::doctor(app, &args)).destroys_if(destroys)
        }
        Command::Demo(args) => untried(move |app| demo::demo(app, &args, nature)).on_terminal(),
        Command::DemoTrain { words } => untried(move |_| demo::train(&words)).on_terminal(),
        Command::Tldr => looks(move |_| Ok(help::tldr())),
        Command::Help { command, all } => looks(move |_| help::help(command.as_deref(), all)),
        Command::Completions { shell } => looks(move |_| help::completions(shell)),
        Command::Man { command } => looks(move |_| help::man(command.as_deref())),
    }
}

/// A command that a kind of target brings along, with the command of ours that does it.
fn of_kind(app: App, of: &FromKind) -> Outcome {
    if (of.0.destroys)(&of.1) && !app.global.dry_run {
        // What it removes says how jobs have ended.
        record_facts::record_all_ends(app.ctx()?)?;
    }
    let it = (of.0.run)(&app.ctx()?.effects, &of.1)?;
    let own = Output::new(it.text, &KindDocument { answer: &it.answer });
    let (then, _) = Cli::parse_words(&it.then).map_err(|e| Error::usage(e.to_string()))?;
    let Some(does) = then.command else { return Ok(own) };
    let says = !own.text.is_empty() && !app.global.dry_run;
    // Who types them elsewhere is not asked.
    let mut ran = verb(does).run(app.agreeing())?;
    if says && ran.code == 0 {
        ran.text = own.text;
    }
    Ok(ran)
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
    let since = attended::now(&app)?;
    let mut ran = run(&app)?;
    ran.output = attended::attend(&app, since, ran.output);
    let is_watched = |job: &JobId| !quiet && screen::can_draw(&app) && is_monitor_wanted(&app, job);
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
            format!("the monitor did not open: {}; once that is repaired: {again}", error.message);
        Output::default().notes(vec![note])
    }))
}

/// Whether the monitor is to open after a job of this user has started.
fn is_monitor_wanted(app: &App, job: &JobId) -> bool {
    let settings = app.ctx().and_then(|ctx| ctx.settings(ctx.data()?.user(&job.user)));
    settings.is_ok_and(|settings| settings.monitor_after_run)
}

/// The monitor, on the full screen or in lines.
fn monitor(app: App, scope: &screen::Scope) -> Outcome {
    let options = screen::options(&app, scope, nature)?;
    if app.global.dry_run && !scope.plain {
        // Its keys act on processes and windows, which nobody can try out.
        return Ok(Output::new("Would open the screen.", &ScreenDocument { would: "monitor" }));
    }
    let ctx = app.into_ctx()?;
    let code =
        if scope.plain { screen::tell(ctx, &options)? } else { screen::open(ctx, options, None)? };
    Ok(Output::default().code(code))
}

/// The daemon.
fn daemon(app: App, step: &DaemonStep) -> Outcome {
    if let DaemonStep::Run(RunDaemon { how, .. }) | DaemonStep::Start(how) = step {
        left_out::may_serve(&how.also)?;
    }
    match step {
        DaemonStep::Run(args) if app.global.dry_run => monitor_cmds::dry_run_run(&app, args),
        DaemonStep::Run(args) => run_daemon(app, args),
        DaemonStep::Start(args) => {
            first::begin(&app, None)?;
            monitor_cmds::start(&app, args)
        }
        DaemonStep::Stop => monitor_cmds::stop(&app),
        DaemonStep::Restart => {
            first::begin(&app, None)?;
            monitor_cmds::restart(&app)
        }
        DaemonStep::Install(args) => {
            first::begin(&app, None)?;
            daemon_unit::install(&app, args)
        }
        DaemonStep::Uninstall => daemon_unit::uninstall(&app),
        DaemonStep::Status => monitor_cmds::status(&app),
        DaemonStep::Plan => monitor_cmds::plan(&app),
    }
}

/// The daemon until somebody ends it, and the API beside it, if it is wanted.
fn run_daemon(app: App, args: &RunDaemon) -> Outcome {
    let RunDaemon { watch_only, hosting, ends_idle, how } = args;
    let StartDaemon { beside_original, also } = how;
    let arranged = hosting.as_deref().and_then(Hosting::arranged);
    let role = crate::daemon::DaemonRole {
        watch_only: *watch_only,
        beside_original: *beside_original,
        hosting: arranged.unwrap_or_default(),
        ends_idle: *ends_idle,
    };
    if role.hosting == Hosting::Detached {
        proc::leave_terminal();
    }
    let run = |ctx: &Arc<Ctx>, stop: &AtomicBool| {
        crate::daemon::run(ctx, role, stop, &mut std::io::stdout()).map(|()| Output::default())
    };
    let stop = asked_to_end(&[SIGINT, SIGTERM, SIGHUP])?;
    let paths = arranged.map(|_| app.ctx().map(service::failure_path)).transpose()?;
    let ended = match also.wanted() {
        Some(serving) => serve::beside(app, serving, &stop, run),
        None => app.into_daemon().and_then(|ctx| run(&ctx, &stop)),
    };
    if let (Err(error), Some(path)) = (&ended, paths) {
        service::note_failure(&path, error);
    }
    ended
}
