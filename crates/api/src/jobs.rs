//! `/api/v1/jobs`: all jobs, page by page; one of them; why it is as it is.

use serde_json::{Map, Value};

use tpu_core::model::ids::JobId;
use tpu_core::model::view::{JobView, MonitorHealth};
use tpu_core::plan::filter::Filter;
use tpu_core::text::fnv1a;
use tpu_ops::act::hosts::figures;
use tpu_ops::act::{outlook, results};
use tpu_ops::base::ctx::job_of;
use tpu_ops::base::error::did_you_mean;
use tpu_ops::front::precedent;
use tpu_ops::observe::{journal, tracked_run};
use tpu_ops::{Error, Kind};
use tpu_wire::events::EventsDocument;
use tpu_wire::figures::JobFiguresPart;
use tpu_wire::files::FilesDocument;
use tpu_wire::jobfile::StartedWithDocument;
use tpu_wire::jobs::{ExplainDocument, JobPart, JobsPageDocument, MonitorPart, RulesDocument};
use tpu_wire::words::TimePart;

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::looks::version;
use super::openapi;
use super::route::{Gives, Route, Versions, shape};
use super::takes::{Needs, Parameter};

/// Jobs of a page where nobody says how many.
const PAGE: usize = 100;
/// Files that are listed of what a job wrote.
const FILES: usize = 1_000;
/// Events of a timeline.
const EVENTS: usize = 1_000;

/// Whose job, and which.
pub(super) const JOB: [Parameter; 2] = [
    Parameter::text("user", "whose job it is"),
    Parameter::number("number", "number of the job", (1, u32::MAX as u64)),
];

/// Which jobs, and what of them.
const LIST: [Parameter; 5] = [
    Parameter::text("filter", "which, as the screen's filter: `status:error tag:sweep`"),
    Parameter::text("user", "whose; everybody's without"),
    Parameter::text("cursor", "`next` of the page before"),
    Parameter::number("limit", "how many of a page; 100 without", (1, 1_000)),
    Parameter::text("fields", "which members of each, parted by commas; all without"),
];

/// What is read of jobs.
pub(super) fn routes() -> Vec<Route> {
    let page = Gives::Json(shape::<JobsPageDocument<'_>>);
    let explained = Gives::Json(shape::<ExplainDocument<'_>>);
    vec![
        Route::get("/api/v1/jobs", "Lists jobs, page by page", page, list)
            .with(&LIST)
            .versions(Versions::Told),
        Route::get("/api/v1/jobs/{user}/{number}", "Shows a job", explained, one)
            .with(&JOB)
            .versions(Versions::Told),
        Route::get(
            "/api/v1/jobs/{user}/{number}/explain",
            "Says why a job is as it is",
            explained,
            explain,
        )
        .with(&JOB)
        .versions(Versions::Told),
        Route::get(
            "/api/v1/jobs/{user}/{number}/files",
            "Lists what a job wrote",
            Gives::Json(shape::<FilesDocument<'_>>),
            files,
        )
        .with(&JOB),
        Route::get(
            "/api/v1/jobs/{user}/{number}/timeline",
            "Says what has happened to a job, the newest last",
            Gives::Json(shape::<EventsDocument<'_>>),
            timeline,
        )
        .with(&JOB),
        Route::get(
            "/api/v1/jobs/{user}/{number}/jobfile",
            "Says what a job was started with, as a body that starts another like it",
            Gives::Json(shape::<StartedWithDocument<'_>>),
            started_with,
        )
        .with(&JOB)
        // What is in its environment is for those who could read it there.
        .needs(Needs::Acting),
        Route::get(
            "/api/v1/rules",
            "Lists what may happen by itself when a job fails",
            Gives::Json(shape::<RulesDocument<'_>>),
            |_| Ok(Answer::document(&RulesDocument::named())),
        ),
    ]
}

/// The page after `cursor`.
fn list(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let seen = asked.served.looks.now(asked.ctx)?;
    let filter = Filter::parse(asked.text("filter").unwrap_or_default());
    if let Some(problem) = filter.problem() {
        return Err(Error::usage(format!("filter: {problem}"))
            .hint("as in status:error tag:sweep tpu:v4 age>2h !text")
            .into());
    }
    let cursor = asked.text("cursor").map(|cursor| {
        JobId::parse(cursor).ok_or_else(|| {
            let hint = "take it from `next` of the page before";
            Error::usage(format!("cursor={cursor}")).hint(hint)
        })
    });
    let cursor = cursor.transpose()?;
    let fields = asked.text("fields").map(known).transpose()?;
    let limit = asked.number("limit").and_then(|limit| usize::try_from(limit).ok()).unwrap_or(PAGE);
    let user = asked.text("user");
    let mut meant = seen.behind(cursor.as_ref()).filter(|(_, job)| {
        let is_of = user.is_none_or(|user| job.id.user.as_str() == user);
        is_of && asked.who.rights.may_see(&job.id.user) && filter.matches(job)
    });
    let page: Vec<(usize, &JobView)> = meant.by_ref().take(limit).collect();
    let is_more = meant.next().is_some();
    let next = page.last().filter(|_| is_more).map(|(_, job)| job.id.to_string());
    let runs = seen.snapshot.monitor != MonitorHealth::NotRunning;
    let versions: Vec<u64> = page.iter().map(|(at, _)| seen.version(*at)).collect();
    let tag = in_quotes(fnv1a(format!("{versions:?} {next:?} {fields:?} {runs}").bytes()));
    if asked.has(&tag) {
        return Ok(Answer::unchanged(&tag));
    }
    let document = JobsPageDocument {
        generated_at: TimePart(seen.snapshot.at),
        jobs: page.iter().map(|(_, job)| JobPart::from(*job)).collect(),
        next: next.as_deref(),
        monitor: MonitorPart::from(&seen.snapshot.monitor),
    };
    Ok(Answer::document_with(&document, fields.as_deref()).header("etag", tag))
}

fn in_quotes(version: u64) -> String {
    format!("\"{version:x}\"")
}

/// The members that are wished for; `user` and `window` say which job it is, and are always there.
fn known(fields: &str) -> Result<Vec<&str>, Error> {
    let fields: Vec<&str> = fields.split(',').map(str::trim).collect();
    let description = openapi::description();
    let members = description.pointer("/components/schemas/JobPart/properties");
    let members = members.and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let known: Vec<&str> = members.map(String::as_str).collect();
    match fields.iter().find(|field| !known.contains(field)) {
        None => Ok([vec!["user", "window"], fields].concat()),
        Some(odd) => {
            let hint = did_you_mean(odd, known.iter().copied());
            Err(Error::usage(format!("fields: a job has no {odd}"))
                .hint(hint.unwrap_or_else(|| known.join(", "))))
        }
    }
}

/// The newest of what the journal has of a job.
fn timeline(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let id = asked.job();
    let events = journal::newest(asked.ctx, Some(&id.user), Some(id.window), EVENTS)?;
    if events.is_empty() {
        // The journal keeps what was cleaned away; of what there never was it has nothing.
        job_of(&*asked.ctx.data()?, &id)?;
    }
    Ok(Answer::document(&EventsDocument::from(&*events)))
}

/// What a job was started with, as a body that starts another like it.
fn started_with(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let (document, left_out) = precedent::as_file(asked.ctx, &asked.job())?;
    Ok(Answer::document(&StartedWithDocument { job_file: document.plain(), left_out: &left_out }))
}

/// What a job wrote, by name: nothing of it is handed out.
fn files(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let id = asked.job();
    let results = results::of(asked.ctx, &id)?;
    let run = tracked_run::link(asked.ctx, &id);
    Ok(Answer::document(&FilesDocument::of(&id, (&results, run.as_deref()), FILES)))
}

/// A job as all see it at the last look.
pub(super) fn one(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let seen = asked.served.looks.now(asked.ctx)?;
    match seen.job(&asked.job()) {
        Some(view) => shown(asked, view),
        // It has begun since.
        None => explain(asked),
    }
}

/// A job as it is now.
fn explain(asked: &Asked<'_>) -> Result<Answer, Failure> {
    with_view(asked, |view| shown(asked, view))
}

/// Does something with a job as it is now. What waits has no attempt that could be looked at by itself.
fn with_view<T>(
    asked: &Asked<'_>,
    act: impl FnOnce(&JobView) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let id = asked.job();
    if asked.ctx.data()?.queues().entry(&id).is_some() {
        asked.served.looks.after_change(asked.ctx);
        let seen = asked.served.looks.now(asked.ctx)?;
        if let Some(view) = seen.job(&id) {
            return act(view);
        }
    }
    act(&outlook::look_at(asked.ctx, &id)?)
}

fn shown(asked: &Asked<'_>, view: &JobView) -> Result<Answer, Failure> {
    let answer = answer(asked, view)?;
    let tag = tag(&answer);
    Ok(if asked.has(&tag) { Answer::unchanged(&tag) } else { answer.header("etag", tag) })
}

fn answer(asked: &Asked<'_>, view: &JobView) -> Result<Answer, Failure> {
    let data = asked.ctx.data()?;
    let spec = data.job(&view.id).and_then(|job| job.spec.as_deref());
    let entry = data.queues().entry(&view.id);
    let execution = spec.map(|spec| &spec.execution);
    let execution = execution.or(entry.map(|entry| &entry.spec.execution));
    let figures = figures::last(asked.ctx, &data);
    let now = asked.ctx.clock.now();
    Ok(Answer::document(&ExplainDocument {
        job: JobPart::from(view),
        chosen: spec.and_then(|spec| spec.chosen.as_deref()),
        submitted_by: execution.and_then(|execution| execution.submitted_by.as_deref()),
        figures: JobFiguresPart::of(&figures, [(&view.id, &view.target)], now).pop(),
    }))
}

/// Refuses where whoever asks has seen another version of a job than the one that there is now.
pub(super) fn still(asked: &Asked<'_>) -> Result<(), Failure> {
    match asked.header("if-match") {
        None => Ok(()),
        Some(any) if any.trim() == "*" => with_view(asked, |_| Ok(())),
        Some(_) => {
            // What is looked at here is seen again by the change: others may come in between.
            asked.ctx.insist_on(&asked.job())?;
            with_view(asked, |view| {
                let is_still = asked.still(&tag(&answer(asked, view)?));
                is_still.map_err(|failure| failure.now(now(view)))
            })
        }
    }
}

/// What went wrong, with how the job stands now where that is why.
pub(super) fn with_now(asked: &Asked<'_>, error: Error) -> Failure {
    let refused = error.kind == Kind::Refused;
    let now = refused.then(|| with_view(asked, |view| Ok(now(view))).ok()).flatten();
    let failure = Failure::from(error);
    match now {
        Some(now) => failure.now(now),
        None => failure,
    }
}

fn now(view: &JobView) -> Value {
    serde_json::to_value(JobPart::from(view)).unwrap_or_default()
}

/// The version of an answer: of what is said of the job, and behind it of what its machine has to do just now, which is
/// nothing that anybody insists on.
fn tag(answer: &Answer) -> String {
    let mut document: Value = serde_json::from_str(answer.body()).unwrap_or_default();
    let figures = document.get_mut("figures").map(Value::take).unwrap_or_default();
    format!("\"{:x}.{:x}\"", version(&document), version(&figures))
}
