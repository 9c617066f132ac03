//! `/api/v1/jobs`: all jobs, page by page; one of them; why it is as it is.

use serde_json::{Map, Value};

use crate::model::ids::JobId;
use crate::model::view::{JobView, MonitorHealth};
use crate::ops::error::did_you_mean;
use crate::ops::hosts::figures;
use crate::ops::{Error, snapshot};
use crate::plan::filter::Filter;
use crate::text::fnv1a;
use crate::wire::figures::JobFiguresPart;
use crate::wire::jobs::{ExplainDocument, JobPart, JobsPageDocument, MonitorPart};
use crate::wire::words::TimePart;

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::looks::{Part, Seen, without_ages};
use super::route::{Gives, Route, shape};
use super::takes::Parameter;

/// Jobs of a page where nobody says how many.
const PAGE: usize = 100;

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
        Route::get("/api/v1/jobs", "Lists jobs, page by page", page, list).with(&LIST),
        Route::get("/api/v1/jobs/{user}/{number}", "Shows a job", explained, one).with(&JOB),
        Route::get(
            "/api/v1/jobs/{user}/{number}/explain",
            "Says why a job is as it is",
            explained,
            explain,
        )
        .with(&JOB),
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
    let user = asked.text("user");
    let begin = asked.text("cursor").map_or(Ok(0), |cursor| behind(&seen, cursor))?;
    let limit = asked.number("limit").and_then(|limit| usize::try_from(limit).ok()).unwrap_or(PAGE);
    let each = seen.snapshot.jobs.iter().zip(&seen.parts).enumerate().skip(begin);
    let mut meant = each.filter(|(_, (job, _))| {
        let is_of = user.is_none_or(|user| job.id.user.as_str() == user);
        is_of && asked.who.rights.may_see(&job.id.user) && filter.matches(job)
    });
    let page: Vec<(usize, (&JobView, &Part))> = meant.by_ref().take(limit).collect();
    let is_more = meant.next().is_some();
    let next = page.last().filter(|_| is_more).map(|(_, (job, _))| job.id.to_string());
    let versions = page.iter().map(|(_, (_, part))| part.version.to_string());
    let said = versions.collect::<Vec<_>>().join(",")
        + &format!(
            "{next:?}{:?}{:?}",
            asked.text("fields"),
            seen.snapshot.monitor != MonitorHealth::NotRunning
        );
    let tag = format!("\"{:x}\"", fnv1a(said.bytes()));
    if asked.has(&tag) {
        return Ok(Answer::unchanged(&tag));
    }
    let jobs: Vec<String> = match asked.text("fields") {
        None => page.iter().map(|(_, (_, part))| part.json.clone()).collect(),
        Some(fields) => {
            let fields = known(fields)?;
            page.iter().map(|(_, (_, part))| only(&part.json, &fields)).collect()
        }
    };
    let document = JobsPageDocument {
        generated_at: TimePart(seen.snapshot.at),
        jobs: Vec::new(),
        next: next.as_deref(),
        monitor: MonitorPart::from(&seen.snapshot.monitor),
    };
    // The jobs are JSON already.
    let whole = crate::wire::text(&document);
    let whole = whole.replacen("\"jobs\":[]", &format!("\"jobs\":[{}]", jobs.join(",")), 1);
    Ok(Answer::text(whole).kind("application/json").header("etag", tag))
}

/// Where the jobs behind a page begin. The last job of a page may be gone by now.
fn behind(seen: &Seen, cursor: &str) -> Result<usize, Error> {
    let last = JobId::parse(cursor).ok_or_else(|| {
        Error::usage(format!("cursor={cursor}")).hint("take it from `next` of the page before")
    })?;
    let jobs = &seen.snapshot.jobs;
    if let Some(place) = jobs.iter().position(|job| job.id == last) {
        return Ok(place + 1);
    }
    let of_user =
        jobs.iter().position(|job| job.id.user == last.user && job.id.window > last.window);
    let users_end = || {
        let end = jobs.iter().rposition(|job| job.id.user == last.user);
        end.map_or(0, |end| end + 1)
    };
    Ok(of_user.unwrap_or_else(users_end))
}

/// The members that are wished for; `user` and `window` say which job it is, and are always there.
fn known(fields: &str) -> Result<Vec<&str>, Error> {
    let fields: Vec<&str> = fields.split(',').map(str::trim).collect();
    let schema = schemars::schema_for!(JobPart<'_>);
    let members = schema.get("properties").and_then(Value::as_object);
    let known: Vec<&str> =
        members.into_iter().flat_map(|members| members.keys()).map(String::as_str).collect();
    match fields.iter().find(|field| !known.contains(field)) {
        None => Ok([vec!["user", "window"], fields].concat()),
        Some(odd) => {
            let hint = did_you_mean(odd, known.iter().copied());
            Err(Error::usage(format!("fields: a job has no {odd}"))
                .hint(hint.unwrap_or_else(|| known.join(", "))))
        }
    }
}

fn only(json: &str, fields: &[&str]) -> String {
    let members: Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
    let kept = members.into_iter().filter(|(name, _)| fields.contains(&name.as_str()));
    Value::Object(kept.collect()).to_string()
}

/// A job as all see it at the last look.
pub(super) fn one(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let id = asked.job();
    let seen = asked.served.looks.now(asked.ctx)?;
    match seen.snapshot.jobs.iter().find(|job| job.id == id) {
        Some(view) => shown(asked, view),
        // A member of a group that waits stands in the list as a part of its group.
        None => explain(asked),
    }
}

/// A job as it is now.
fn explain(asked: &Asked<'_>) -> Result<Answer, Failure> {
    shown(asked, &snapshot::look_at(asked.ctx, &asked.job())?)
}

fn shown(asked: &Asked<'_>, view: &JobView) -> Result<Answer, Failure> {
    let answer = answer(asked, view)?;
    let tag = tag(&answer);
    Ok(if asked.has(&tag) { Answer::unchanged(&tag) } else { answer.header("etag", tag) })
}

fn answer(asked: &Asked<'_>, view: &JobView) -> Result<Answer, Failure> {
    let data = asked.ctx.data()?;
    let spec = data.job(&view.id).and_then(|job| job.spec.as_ref());
    let figures = figures::last(asked.ctx, &data);
    let now = asked.ctx.clock.now();
    Ok(Answer::document(&ExplainDocument {
        job: JobPart::from(view),
        chosen: spec.and_then(|spec| spec.chosen.as_deref()),
        figures: JobFiguresPart::of(&figures, [(&view.id, &view.target)], now).pop(),
    }))
}

/// Refuses where whoever asks has seen another version of a job than the one that there is now.
pub(super) fn still(asked: &Asked<'_>, id: &JobId) -> Result<(), Failure> {
    if asked.header("if-match").is_none() {
        return Ok(());
    }
    asked.served.looks.after_change(asked.ctx);
    let seen = asked.served.looks.now(asked.ctx)?;
    match seen.snapshot.jobs.iter().find(|job| job.id == *id) {
        Some(view) => asked.still(&tag(&answer(asked, view)?)),
        None => asked.still(&tag(&answer(asked, &snapshot::look_at(asked.ctx, id)?)?)),
    }
}

/// The version of an answer: what it says, but for what only grows older.
fn tag(answer: &Answer) -> String {
    let mut value: Value = serde_json::from_str(answer.body()).unwrap_or_default();
    without_ages(&mut value);
    format!("\"{:x}\"", fnv1a(value.to_string().bytes()))
}
