//! What is printed about the daemon: how it is, what it plans, what it has done; and `ack`.

use std::ffi::OsString;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{Cli, Command, DaemonStep, MonitorLog, RunDaemon, StartDaemon};
use crate::cli::print::{Output, table};
use tpu_core::model::time::{self, Zone};
use tpu_core::model::view::{MonitorHealth, Next};
use tpu_core::text::{counted, escape};
use tpu_ops::Error;
use tpu_ops::act::service::{self, RunningDaemon};
use tpu_ops::base::another_tpu;
use tpu_ops::base::watch::{self, Hosting, Note};
use tpu_ops::front::upgrade;
use tpu_ops::waiting::ack;
use tpu_ops::waiting::preview::{self, Entry};
use tpu_system::sys::procs;
use tpu_wire::daemon::{
    AckDocument, MonitorStartedDocument, MonitorStatusDocument, MonitorStoppedDocument,
    PlanDocument,
};
use tpu_wire::events::{ClearedLogDocument, EventsDocument};
use tpu_wire::words::TimePart;

use super::history;

/// What people are told when nothing happens by itself.
const OFF: &str = "the daemon does not run: nothing happens by itself until `tpu daemon start`";

/// `daemon start`.
pub(in crate::cli) fn start(app: &App, args: &StartDaemon) -> Outcome {
    let StartDaemon { beside_original, also } = args;
    let mut how = service::How {
        flags: app.flags(),
        beside_original: *beside_original,
        ..service::How::default()
    };
    if app.global.dry_run {
        return dry_run_start(app, &how);
    }
    let mut serves = "";
    if let Some(serving) = also.wanted() {
        let flags = serving.to_flags(&app.env.cwd);
        how.serving = Some([vec!["--serve".to_owned()], flags].concat());
        serves = " It answers over HTTP: what it prints says where.";
    }
    let ctx = app.ctx()?;
    let runs = service::start(ctx, &how)?;
    let text = if runs.ran_before {
        format!("The daemon runs already: {}.", runs.in_words(ctx))
    } else {
        format!("The daemon runs: {}.{serves}", runs.in_words(ctx))
    };
    let ends = (runs.ran_before && runs.ends_idle).then_some(
        "a command started it, and it stops after an hour without work; to have one that stays: tpu daemon stop, then \
         tpu daemon start",
    );
    let note = watch::running(ctx).filter(|_| runs.ran_before);
    let another = note.as_ref().and_then(another_tpu::of_daemon);
    let notes = ends.map(str::to_owned).into_iter().chain(another).collect();
    Ok(Output::new(text, &started(&runs)).notes(notes))
}

fn started(runs: &RunningDaemon) -> MonitorStartedDocument<'static> {
    let session = (runs.hosting == Some(Hosting::Tmux)).then_some(service::SESSION);
    let (pid, ran_before) = (runs.pid, runs.ran_before);
    MonitorStartedDocument { running: true, pid, session, ran_before }
}

/// What a dry run of `daemon start` says.
fn dry_run_start(app: &App, how: &service::How) -> Outcome {
    app.ctx()?.data()?;
    service::may_start(app.ctx()?, how)?;
    Ok(match watch::running(app.ctx()?) {
        Some(note) => Output::would(&format!("do nothing: the daemon runs, process {}", note.pid)),
        None => Output::would("start the daemon"),
    })
}

/// The same of `daemon run`: one that only watches may begin whoever acts.
pub(in crate::cli) fn dry_run_run(app: &App, args: &RunDaemon) -> Outcome {
    let beside_original = args.how.beside_original || args.watch_only;
    service::is_free(app.ctx()?)?;
    dry_run_start(app, &service::How { beside_original, ..service::How::default() })
}

/// `daemon stop`.
pub(in crate::cli) fn stop(app: &App) -> Outcome {
    if app.global.dry_run {
        service::may_stop(app.ctx()?)?;
        return Ok(Output::would("end the daemon"));
    }
    let pid = service::stop(app.ctx()?)?;
    let text = "The daemon has stopped. Running jobs continue; failed jobs are not restarted.";
    Ok(Output::new(text, &MonitorStoppedDocument { running: false, pid }))
}

/// `daemon restart`.
pub(in crate::cli) fn restart(app: &App) -> Outcome {
    let ctx = app.ctx()?;
    let running = watch::running(ctx);
    let how = match &running {
        Some(note) => as_before(app, note)?,
        None => service::How { flags: app.flags(), ..service::How::default() },
    };
    if app.global.dry_run {
        upgrade::may_restart(ctx, running.as_ref(), &how)?;
        let servers = another_tpu::servers(ctx).iter().filter(|note| !note.is_newer()).count();
        let daemon = match &running {
            Some(note) => format!("start the daemon anew (process {})", note.pid),
            None => "start the daemon".to_owned(),
        };
        let more = if servers > 0 {
            format!(", and {}", counted(servers, "server"))
        } else {
            String::new()
        };
        return Ok(Output::would(&format!("{daemon}{more}")));
    }
    let done = upgrade::restart(ctx, &how)?;
    let mut text = match done.before {
        Some(before) => {
            format!(
                "The daemon runs again: {} (before: process {before}).",
                done.daemon.in_words(ctx)
            )
        }
        None => format!("The daemon runs: {}.", done.daemon.in_words(ctx)),
    };
    for server in &done.servers {
        text += &format!("\nThe server answers again on {}.", server.address);
    }
    if !done.relinked.is_empty() {
        let ids: Vec<String> = done.relinked.iter().map(ToString::to_string).collect();
        text += &format!("\nTheir launchers call this tpu now: {}.", ids.join(", "));
    }
    let document = started(&done.daemon);
    Ok(Output::new(text, &document).notes(done.notes))
}

/// What the daemon that runs was started with.
fn as_before(app: &App, note: &Note) -> Result<service::How, Error> {
    let words: Vec<OsString> =
        procs::words_of(note.pid).into_iter().skip(1).map(OsString::from).collect();
    let usual = || service::How {
        flags: app.flags(),
        ends_idle: note.ends_idle,
        ..service::How::default()
    };
    let Ok((Cli { global, command: Some(Command::Daemon(daemon)) }, _)) = Cli::parse_words(&words)
    else {
        return Ok(usual());
    };
    let DaemonStep::Run(RunDaemon { watch_only, ends_idle, how, .. }) = &daemon.step else {
        return Ok(usual());
    };
    if *watch_only {
        let what = format!("the daemon only watches, in a terminal (process {})", note.pid);
        return Err(Error::refused(what).hint("end it there with Ctrl-C, and type the same again"));
    }
    // What it was told lies where it was started.
    let dir = &procs::working_dir(note.pid).unwrap_or_else(|| app.env.cwd.clone());
    let serving = how
        .also
        .wanted()
        .map(|serving| [vec!["--serve".to_owned()], serving.to_flags(dir)].concat());
    let flags = global.to_flags(dir);
    Ok(service::How { flags, serving, beside_original: how.beside_original, ends_idle: *ends_idle })
}

/// `daemon status`: exit code 0 if it runs, 1 if not.
pub(in crate::cli) fn status(app: &App) -> Outcome {
    let ctx = app.ctx()?;
    let now = ctx.clock.now();
    let Some(note) = watch::running(ctx) else {
        let document = MonitorStatusDocument {
            running: false,
            pid: None,
            since: None,
            turn_age_s: None,
            watches: None,
            hosting: None,
            ends_idle: None,
            version: None,
        };
        let output = Output::new(format!("{OFF}."), &document);
        return Ok(output.code(1));
    };
    let (up, turn) = (now.seconds_since(note.since), now.seconds_since(note.turned));
    let text = format!(
        "The daemon runs: process {}, for {}; last turn {} ago.\nHosted: {}.",
        note.pid,
        time::age(up),
        time::age(turn),
        service::hosted(ctx, note.hosting)
    );
    let ends = "It was started by a command, and ends after an hour without anything to do.";
    let ends = note.ends_idle.then(|| ends.to_owned());
    let watches = note.watches.as_ref().map(|why| format!("It only watches, since {why}."));
    let lines = std::iter::once(text).chain(ends).chain(watches);
    let text = lines.collect::<Vec<_>>().join("\n");
    let document = MonitorStatusDocument {
        running: true,
        pid: Some(note.pid),
        since: Some(TimePart(note.since)),
        turn_age_s: Some(turn),
        watches: note.watches.clone(),
        hosting: Some(note.hosting.as_str()),
        ends_idle: Some(note.ends_idle),
        version: note.version.as_deref(),
    };
    let another = another_tpu::of_daemon(&note).into_iter().collect();
    Ok(Output::new(text, &document).notes(another))
}

/// `daemon plan`: for every job the verdict, the rule that will fire, when, and what budget is left.
pub(in crate::cli) fn plan(app: &App) -> Outcome {
    let plan = preview::plan(app.ctx()?)?;
    let row = |entry: &Entry| {
        let name = entry.view.name.iter().map(|name| format!(" ({})", escape(name)));
        let job = std::iter::once(entry.view.id.to_string()).chain(name).collect();
        vec![job, entry.view.shown.status.to_string(), line(entry)]
    };
    let mut text = table::aligned(&plan.jobs.iter().map(row).collect::<Vec<_>>());
    if plan.jobs.is_empty() {
        "There are no jobs.".clone_into(&mut text);
    }
    let running = plan.monitor != MonitorHealth::NotRunning;
    let notes = if running { Vec::new() } else { vec![OFF.to_owned()] };
    Ok(Output::new(text, &PlanDocument::from(&plan)).notes(notes))
}

/// What is planned for one job, on one line.
fn line(entry: &Entry) -> String {
    let Some(next) = &entry.next else { return entry.reason.clone() };
    let Next { action, in_s, budget_left, reason, .. } = next;
    let when = match in_s {
        Some(0) => " now".to_owned(),
        Some(seconds) => format!(" in {}", time::age(*seconds)),
        None => String::new(),
    };
    let left = budget_left.map(|left| format!(" ({left} left)")).unwrap_or_default();
    format!("{action}{when}{left}: {reason}")
}

/// `ack`.
pub(in crate::cli) fn ack(app: &App) -> Outcome {
    let acked = ack::ack(app.ctx()?)?;
    let document = AckDocument::from(&acked);
    let names: Vec<&str> =
        document.jobs.iter().chain(&document.targets).map(String::as_str).collect();
    let woken = match names.as_slice() {
        [] => String::new(),
        names => format!(" Woken: {}.", names.join(", ")),
    };
    Ok(if acked.monitor == MonitorHealth::NotRunning {
        let text = format!("Noted for the next daemon.{woken}");
        Output::new(text, &document).notes(vec![OFF.to_owned()])
    } else {
        Output::new(format!("The daemon looks at once.{woken}"), &document)
    })
}

/// `-Ml`.
pub(in crate::cli) fn log(app: &App, args: &MonitorLog) -> Outcome {
    let ctx = app.ctx()?;
    let zone = match &args.zone {
        None => app.zone(&*ctx.data()?, None)?,
        Some(name) => Zone::named(name, ctx.env.local_zone()).ok_or_else(|| {
            Error::usage(format!("no time zone '{name}'"))
                .hint("local, us, cn, or a name such as Europe/Berlin: tpu -Ml cn")
        })?,
    };
    let events = watch::log(ctx, args.lines)?;
    let mut text = history::lines(app, (&*ctx.data()?, &events), &zone);
    if events.is_empty() {
        "The daemon has seen and done nothing yet.".clone_into(&mut text);
    }
    Ok(Output::new(text, &EventsDocument::from(&*events)))
}

/// `-Mc`.
pub(in crate::cli) fn clear_log(app: &App) -> Outcome {
    watch::clear_log(app.ctx()?)?;
    let text = "The daemon's log was cleared; `tpu history` keeps its events.";
    Ok(Output::new(text, &ClearedLogDocument { cleared: true }))
}
