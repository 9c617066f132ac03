//! What is printed about the daemon: how it is, what it plans, what it has done; and `ack`.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{MonitorLog, RunDaemon, StartDaemon};
use crate::cli::print::{Output, table};
use tpu_core::model::time::{self, Zone};
use tpu_core::model::view::{MonitorHealth, Next};
use tpu_core::text::escape;
use tpu_ops::Error;
use tpu_ops::act::service;
use tpu_ops::base::watch::{self, Hosting};
use tpu_ops::waiting::ack;
use tpu_ops::waiting::preview::{self, Entry};
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
    let session = (runs.hosting == Some(Hosting::Tmux)).then_some(service::SESSION);
    let (pid, ran_before) = (runs.pid, runs.ran_before);
    let document = MonitorStartedDocument { running: true, pid, session, ran_before };
    Ok(Output::new(text, &document).notes(ends.map(str::to_owned).into_iter().collect()))
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
        watches: note.watches,
        hosting: Some(note.hosting.as_str()),
        ends_idle: Some(note.ends_idle),
    };
    Ok(Output::new(text, &document))
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
    let text = "The daemon's log begins anew; `tpu history` keeps what was in it.";
    Ok(Output::new(text, &ClearedLogDocument { cleared: true }))
}
