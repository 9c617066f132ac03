//! `tpu check`, `check-simp`, `explain`: how jobs are, and why.

use std::time::Duration;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{Check, Maj};
use crate::cli::print::{
    self,
    block::{self, Show},
};
use crate::cli::print::{Output, table};
use tpu_core::model::capacity::Share;
use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{Class, ErrorKind, Evidence, Source};
use tpu_core::model::job::Status;
use tpu_core::model::target::Machines;
use tpu_core::model::time;
use tpu_core::model::view::{JobView, Snapshot, Whose};
use tpu_core::text::escape;
use tpu_ops::act::hosts::figures::{self, Figures};
use tpu_ops::act::results::{self, Results};
use tpu_ops::act::{missed, outlook, selection};
use tpu_ops::base::{another_tpu, code_dir, watch};
use tpu_ops::observe::journal::{self, Event};
use tpu_ops::observe::printed::{self, Ending};
use tpu_ops::observe::{classify, log_files, snapshot, tracked_run};
use tpu_ops::waiting::queue::shown::{self, WaitingMembers};
use tpu_ops::waiting::whose::Purpose;
use tpu_ops::{Ctx, Error};
use tpu_system::sys::accounts;
use tpu_wire::figures::JobFiguresPart;
use tpu_wire::jobs::{ExplainDocument, JobPart, SnapshotDocument};

use super::queue;

/// So often is looked for jobs that are meant and not found.
const TRIES: u32 = 3;

/// `check`: a block for each job.
pub(in crate::cli) fn check(app: &App, args: &Check) -> Outcome {
    let (look, show) = look(app, args)?;
    let text = || block::all(&look, show);
    let daemon = watch::running(app.ctx()?);
    let another = daemon.as_ref().and_then(another_tpu::of_daemon);
    Ok(printed_or_json(app, &look, text)?.notes(another.into_iter().collect()))
}

/// The jobs as text, or with `--json` as the document of them, with what is known of their processes.
fn printed_or_json(app: &App, look: &Snapshot, text: impl FnOnce() -> String) -> Outcome {
    let ctx = app.ctx()?;
    let figures = if app.global.json { figures::last(ctx, &*ctx.data()?) } else { Figures::new() };
    let document = || SnapshotDocument::from(look).with(&figures, look);
    Ok(Output::either(&app.global, text, document))
}

/// `check-simp`: a table.
pub(in crate::cli) fn table(app: &App, args: &Check) -> Outcome {
    let (look, show) = look(app, args)?;
    let text = || {
        if look.jobs.is_empty() {
            block::all(&look, show)
        } else {
            table::jobs(&look, show, app.width())
        }
    };
    printed_or_json(app, &look, text)
}

/// `caj`: everybody's jobs.
pub(in crate::cli) fn everybody(app: &App, args: Check) -> Outcome {
    check(app, &Check { all_users: true, ..args })
}

/// `maj`: everybody's jobs, every `monitor_all_check_time` seconds.
pub(in crate::cli) fn again_and_again(app: &App, args: Maj) -> Outcome {
    let ctx = app.ctx()?;
    let every = Duration::from_secs(ctx.data()?.monitor_all_check_time().max(1).into());
    let all = Check { all_users: true, ..args.check };
    let mut round = 0;
    loop {
        round += 1;
        let output = check(app, &all)?;
        if args.rounds == Some(round) {
            return Ok(output);
        }
        let cleared = if app.on_terminal() { print::clear() } else { Ok(()) };
        let text = print::printed(&output, &app.global);
        let choice = print::choice(app.global.color);
        match cleared.and_then(|()| print::to_stdout(&text, choice)) {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => return Ok(Output::default()),
            Err(e) => {
                return Err(Error::failed(format!("cannot print: {e}"))
                    .hint("the output was closed or its disk is full"));
            }
            Ok(()) => ctx.clock.sleep(every),
        }
    }
}

fn look(app: &App, args: &Check) -> Result<(Snapshot, Show), Error> {
    let ctx = app.ctx()?;
    let (selectors, words) = selection::selectors(&args.words);
    let (whose, called) = if args.all_users {
        let data = ctx.data()?;
        let mut sorted = selection::sort(&words, &data)?;
        sorted.no_selector()?;
        let called = sorted.take_jobs(&data)?;
        sorted.no_pair()?;
        (Whose::default(), called)
    } else {
        app.requester()?.users_and_jobs_of_list(&words)?
    };
    let is_chosen = !selectors.is_empty() || !called.is_empty();
    let members = if args.members { WaitingMembers::Each } else { WaitingMembers::Folded };
    let mut tries = 0;
    let mut look = loop {
        tries += 1;
        let mut look = shown::look(ctx, &mut snapshot::LookMemory::default(), &whose, members)?;
        if !is_chosen {
            break look;
        }
        let data = ctx.data()?;
        selection::choose_called(&data, &mut look.jobs, &called, &whose)?;
        selection::choose(&data, &mut look.jobs, &selectors)?;
        look.orphans.clear();
        // Between both it may have begun, and be another entry than the one that waited.
        if !look.jobs.is_empty() || tries == TRIES {
            break look;
        }
    };
    if args.leaves {
        look.jobs.retain(|job| job.leaf);
    }
    let data = ctx.data()?;
    if app.global.json {
        shown::foresee(ctx, &data, &mut look.jobs)?;
    }
    let settings = ctx.settings(whose.only().and_then(|name| data.user(name)))?;
    let chosen = args.show.as_deref();
    if let Some(odd) = chosen.and_then(|letters| letters.chars().find(|c| !"wdtsv".contains(*c))) {
        return Err(Error::usage(format!(
            "--show={}: '{odd}' is none of w, d, t, s, v",
            chosen.unwrap_or_default()
        ))
        .hint("w number, d directory, t target, s status, v output"));
    }
    let shown =
        |letter: char, default: bool| chosen.map_or(default, |letters| letters.contains(letter));
    let show = Show {
        chosen: is_chosen,
        members: args.members,
        dir: shown('d', settings.monitor_dir),
        target: shown('t', settings.monitor_tpu),
        status: shown('s', true),
        verbose: shown('v', settings.monitor_verbose),
        tags: !args.no_tags,
        zone: args.zone,
        length: usize::try_from(settings.show_length).unwrap_or(usize::MAX),
    };
    Ok((look, show))
}

/// What the log alone shows, where that is not the reason for the status; and the fact that counts more.
fn text_alone(ctx: &Ctx, view: &JobView, ending: Option<&Ending>) -> String {
    if view.tail.is_empty() {
        return if ending.is_some() { String::new() } else { "log: not read\n".to_owned() };
    }
    let verdict = classify::tail(ctx, view);
    let said = |evidence: &Evidence| (evidence.rule.clone(), evidence.line.trim().to_owned());
    let shown = view.shown.evidence.as_ref();
    if verdict.evidence.as_ref().map(said) == shown.map(said) {
        // The text is what decided, or it says the same.
        return String::new();
    }
    let line = verdict.evidence.as_ref().map(|e| format!(": {}", block::evidence(e)));
    let log = match verdict.class {
        Class::Running => "the log looks fine".to_owned(),
        Class::Finished => "the log shows a good end".to_owned(),
        Class::Failed(kind) => format!("the log shows {kind}{}", line.unwrap_or_default()),
        Class::None => "the log shows nothing special".to_owned(),
    };
    let fact = shown.filter(|e| e.source != Source::Text).map(|e| format!(", but {}", fact(e)));
    format!("{log}{}\n", fact.unwrap_or_default())
}

/// A fact that counts more than the log, as the end of a sentence.
fn fact(evidence: &Evidence) -> String {
    let said = block::evidence(evidence);
    match (evidence.source, evidence.line.trim().strip_prefix("exit code ")) {
        (Source::Exit | Source::Record, Some(code)) => {
            format!("it ended with code {}", escape(code))
        }
        (Source::Exit | Source::Text, _) => said,
        (Source::Engine, _) => format!("what runs it says: {said}"),
        (Source::Api, _) => format!("its control plane says: {said}"),
        (Source::Record, _) => format!("its record says: {said}"),
    }
}

/// What the output of a job that is over adds to its status: a failure that its exit code hides, or the last line
/// where nobody knows why it failed.
fn ends_in(view: &JobView, ending: Option<&Ending>) -> String {
    let Some(ending) = ending else { return String::new() };
    match (&view.shown.status, &ending.failure, &ending.last) {
        (Status::Finished, Some(failure), _) => format!(
            "its output ends in: {}; a pipe such as `| tee` hides the program's own exit code: set \
             -o pipefail\n",
            escape(failure.line.trim())
        ),
        (Status::Error(ErrorKind::Unknown), _, Some(last)) => {
            format!("last output: {}\n", escape(last))
        }
        _ => String::new(),
    }
}

/// `explain`: why a job has the status it has.
pub(in crate::cli) fn explain(app: &App, words: &[String]) -> Outcome {
    if let Some(output) = queue::explain(app, words)? {
        return Ok(output);
    }
    let id = app.requester()?.one_job(words, Purpose::Look)?;
    let ctx = app.ctx()?;
    let view = outlook::look_at(ctx, &id)?;
    let text = explained(ctx, &view)?;
    let data = ctx.data()?;
    let record = data.job(&id);
    let figures = figures::last(ctx, &data);
    let spec = record.and_then(|job| job.spec.as_ref());
    let document = ExplainDocument {
        job: JobPart::from(&view),
        chosen: spec.and_then(|spec| spec.chosen.as_deref()),
        submitted_by: spec.and_then(|spec| spec.execution.submitted_by.as_deref()),
        figures: JobFiguresPart::of(&figures, [(&view.id, &view.target)], ctx.clock.now()).pop(),
    };
    Ok(Output::new(text, &document))
}

/// Who submitted a job of somebody else, and which other account did something to it last.
fn by_whom(ctx: &Ctx, view: &JobView) -> Result<String, Error> {
    let data = ctx.data()?;
    let execution = data.job(&view.id).and_then(|job| job.execution());
    let by = execution.and_then(|execution| execution.submitted_by.as_deref());
    let mut text = by.map(|by| format!("submitted: by {}\n", escape(by))).unwrap_or_default();
    let own = accounts::name(ctx.env.uid);
    let events = journal::newest(ctx, Some(&view.id.user), Some(view.id.window), 1)?;
    if let Some(Event { account: Some(account), kind, at, .. }) = events.last()
        && *account != own
    {
        let age = time::age(ctx.clock.now().seconds_since(*at));
        text += &format!("account: {} ({}, {age} ago)\n", escape(account), escape(kind));
    }
    Ok(text)
}

/// Why a job is where it is, and what it was given there.
fn place(ctx: &Ctx, view: &JobView) -> Result<String, Error> {
    let data = ctx.data()?;
    let Some(job) = data.job(&view.id) else { return Ok(String::new()) };
    let chosen = job.spec.as_ref().and_then(|spec| spec.chosen.as_ref());
    let chosen = chosen.map(|why| format!("target: {}, {why}\n", view.target));
    let any_of = job.spec.as_ref().and_then(|spec| spec.any_of.as_ref());
    let order = any_of.and_then(|any_of| any_of.order.as_ref());
    let order = order.map(|why| format!("order: {why}\n"));
    let given = job.share.as_ref().map(Share::in_words).filter(|words| !words.is_empty());
    let given = given.map(|words| format!("given: {words}\n"));
    let uses = figures::of_job(ctx, &data, &view.id).and_then(|(host, figures)| {
        let now = ctx.clock.now();
        let gpus = figures.gpus_in_words(&host.known(now)?.machine);
        let words = [figures.in_words(), gpus].concat().join(", ");
        Some(format!("uses: {words}; {} ago\n", time::age(host.age_s(now)?)))
    });
    Ok([chosen, order, given, uses].into_iter().flatten().collect())
}

/// Why a job has the status it has, for people.
pub(in crate::cli) fn explained(ctx: &Ctx, view: &JobView) -> Result<String, Error> {
    let is_over = !view.shown.status.is_live();
    let ending = if is_over { printed::ending(ctx, view)? } else { None };
    let ends = ends_in(view, ending.as_ref());
    let mut text = format!("{} is {}\n", view.id, block::status(view));
    if view.stored != view.shown.status {
        text += &format!("stored: {} (out of date)\n", view.stored);
    }
    text += &match &view.shown.evidence {
        Some(evidence) => format!("why: {}\n", block::evidence(evidence)),
        None if is_over && ending.is_none() => {
            "why: reported as failed; its output could not be read\n".to_owned()
        }
        None if ends.contains("ends in") => {
            "why: its exit code says so, though its output shows a failure\n".to_owned()
        }
        None => "why: no sign of trouble\n".to_owned(),
    };
    if let Some(reason) = &view.shown.unknown {
        text += &format!("unknown: {reason}\n");
        if let Some(said) = missed::told(ctx, &view.id)? {
            text += &format!("its workers: {said}\n");
        }
    }
    text += not_a_command(view).unwrap_or_default();
    text += &ends;
    text += &text_alone(ctx, view, ending.as_ref());
    let data = ctx.data()?;
    if let Some(trouble) = data.job(&view.id).and_then(|job| log_files::trouble(ctx, job)) {
        text += &format!("log: {}\n", escape(&trouble));
    }
    text += match (view.window_alive, view.machines) {
        (Some(true), Machines::Engine) => "engine: has it\n",
        (Some(false), Machines::Engine) => "engine: runs it no more\n",
        (None, Machines::Engine) => "engine: unknown\n",
        (Some(true), _) if view.pane_id.is_none() => "window: gone\n",
        (Some(true), _) => "window: open\n",
        (Some(false), _) => "window: gone\n",
        (None, _) => "window: unknown\n",
    };
    if let Some(at) = log_files::last_written(ctx, view) {
        let age = time::age(ctx.clock.now().seconds_since(at));
        text += &format!(
            "since: after {}, when its log was last written ({age} ago)\n",
            at.to_rfc3339()
        );
    }
    if !view.nodes.is_empty() {
        text += &format!("nodes: {}\n", view.nodes.join(", "));
    }
    if let Some(exit) = view.exit {
        let whose = if matches!(exit, Exit::Script(_)) { " (the script's)" } else { "" };
        text += &format!("exit code: {}{whose}\n", exit.code());
    }
    text += &place(ctx, view)?;
    text += &by_whom(ctx, view)?;
    text += &format!("rules: {}\n", view.rules);
    text += &match &view.next {
        Some(next) => format!("next: {}\n", next.reason),
        None => "next: nothing to do\n".to_owned(),
    };
    text += &where_it_is(ctx, view);
    Ok(text)
}

/// Advice where the command that was not found is a variable, as in `FOO=1 python train.py`.
fn not_a_command(view: &JobView) -> Option<&'static str> {
    let is_missing = view.shown.status == Status::Error(ErrorKind::CommandNotFound);
    let line = &view.shown.evidence.as_ref().filter(|_| is_missing)?.line;
    let word = line.split(": ").find(|word| word.contains('='))?;
    let name = word.split('=').next()?;
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some(
        "a variable is not a command: give it with --env NAME=VALUE, or -- env NAME=VALUE COMMAND\n",
    )
}

/// Where the code, the results and the logs of a job are.
fn where_it_is(ctx: &Ctx, view: &JobView) -> String {
    let shown = |dir: &str| escape(&code_dir::shown(ctx, dir)).into_owned();
    let copied = view.stage_dir.as_deref().map(|copy| format!(", copied to {}", shown(copy)));
    let found = results::seen_from_here(ctx, &view.id);
    let linked = found.as_ref().and_then(|found| {
        let names = found.linked.iter().map(|one| escape(&one.path.to_string_lossy()).into_owned());
        Some(names.collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty())
    });
    let wrote = found.as_ref().and_then(Results::in_words);
    let rows = [
        ("code", Some(shown(&view.dir.1) + &copied.unwrap_or_default())),
        ("linked", linked.map(|names| format!("{names} (they lie beside the code)"))),
        ("wrote", wrote.map(|files| format!("{files}: tpu files {}", view.id.window))),
        ("run", tracked_run::link(ctx, &view.id)),
        ("logs", view.log_dir.clone()),
    ];
    rows.into_iter().filter_map(|(name, is)| Some(format!("{name}: {}\n", is?))).collect()
}
