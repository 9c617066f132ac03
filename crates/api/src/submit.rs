//! `POST /api/v1/jobs`: jobs as a file says them, each request with a key of its own once.

use std::fmt::Write as _;

use axum::http::StatusCode;
use ring::digest;

use tpu_core::model::data::{Data, User};
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::job::Job;
use tpu_core::model::member::Array;
use tpu_ops::Error;
use tpu_ops::front::jobfile::body::{BodyFormat, SubmittedFile};
use tpu_ops::waiting::queue::once::{Entered, Once};
use tpu_ops::waiting::queue::{at_once, pass, presence};
use tpu_wire::jobs::JobIdPart;
use tpu_wire::launches::WouldConcernDocument;
use tpu_wire::queue::{SubmittedDocument, SubmittedPart};

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::route::{Gives, Route, shape};
use super::takes::Parameter;

/// The longest key of a request.
const LONGEST_KEY: usize = 255;

const SUBMIT: [Parameter; 2] = [
    Parameter::word(
        "start",
        "`queue` lets it wait for its turn, as without; `now` begins at once or refuses",
        &["queue", "now"],
    ),
    Parameter::flag("dry_run", "say what would be done, and do nothing"),
];

/// Where jobs are submitted.
pub(super) fn routes() -> Vec<Route> {
    let submitted =
        Gives::OneOf(&[shape::<SubmittedDocument<'_>>, shape::<WouldConcernDocument<'_>>]);
    vec![
        Route::post(
            "/api/v1/jobs",
            "Submits the jobs of a job file, all of them or none; with an Idempotency-Key once",
            submitted,
            submit,
        )
        .with(&SUBMIT)
        .takes_job_file()
        .slow(),
    ]
}

fn submit(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let ctx = asked.ctx;
    let data = ctx.data()?;
    let body = SubmittedFile::read(asked.body, written(asked)?)?;
    let user = asked.acting_for(body.for_user.clone(), "for_user: NAME, in the body")?;
    let once = once(asked, &user)?;
    if let Some(before) = once.as_ref().and_then(|once| once.known(&data, ctx.clock.now())) {
        // A server that was to begin it at once may have died before it could.
        let is_left = match &before {
            Entered::Before(ids) => presence::clear_left(ctx, ids)?,
            Entered::New(_) | Entered::Other => false,
        };
        if !is_left {
            return answered_before(&data, before);
        }
    }
    if let Some(once) = &once {
        once.may_be_known(&data, ctx.clock.now()).map_err(|error| {
            let many = Failure::from(error).status(StatusCode::TOO_MANY_REQUESTS);
            many.header("retry-after", "3600")
        })?;
    }
    let jobs = body.understood(ctx, &user)?;
    if jobs.make_targets() || jobs.take_targets_down() {
        asked.who.uses_targets()?;
    }
    let is_now = asked.text("start") == Some("now");
    if is_now {
        jobs.may_begin_at_once()?;
    }
    let commands = asked.served.commands.words();
    let (entered, all) = jobs.enter(ctx, &commands, (once.as_ref(), is_now))?;
    let ids = match entered {
        Entered::New(ids) => ids,
        before => return answered_before(&*ctx.data()?, before),
    };
    if asked.is_trial() {
        let would = ids.iter().map(JobIdPart::from).collect();
        return Ok(Answer::document(&WouldConcernDocument { would }));
    }
    let passage = match ids.as_slice() {
        [id] if is_now => at_once::start(ctx, id)?,
        _ => pass::look_after(ctx),
    };
    let started = passage.begun();
    let specs = all.iter().map(|(request, _)| &request.spec);
    Ok(Answer::document(&SubmittedDocument::of(ids.iter().zip(specs), &started)))
}

/// What a request has come to that was answered before: its jobs, as they are called now.
fn answered_before(data: &Data, before: Entered) -> Result<Answer, Failure> {
    let (Entered::Before(ids) | Entered::New(ids)) = before else {
        let error = Error::refused("this Idempotency-Key was sent with another request")
            .hint("take another key for another request; the same is answered as before for a day");
        return Err(Failure::from(error).status(StatusCode::UNPROCESSABLE_ENTITY));
    };
    let is_open = |id: &JobId| data.queues().entry(id).is_some_and(|entry| entry.keeper.is_some());
    if ids.iter().any(is_open) {
        // Whether it begins is not known yet.
        let error = Error::refused("this request is being carried out").passing();
        let failure = Failure::from(error.hint("send it again in a moment"));
        return Err(failure.header("retry-after", "1"));
    }
    let begun: Vec<JobId> = ids.iter().filter(|id| data.job(id).is_some()).cloned().collect();
    let document = SubmittedDocument {
        jobs: ids.iter().map(|id| part(data, id)).collect(),
        started: begun.iter().map(JobIdPart::from).collect(),
    };
    Ok(Answer::document(&document).header("idempotency-replayed", "true"))
}

/// A job or a group as it is known now.
fn part<'a>(data: &'a Data, id: &'a JobId) -> SubmittedPart<'a> {
    let (entry, job) = (data.queues().entry(id), data.job(id));
    let waiting = entry.and_then(|entry| entry.spec.array.as_ref());
    let begun = data.user(&id.user).map(User::jobs).unwrap_or_default().iter();
    let begun = begun.filter_map(Job::member).filter(|member| member.group == id.window);
    let mut members: Vec<u32> = begun.map(|member| member.index).collect();
    members.extend(waiting.into_iter().flat_map(Array::indexes));
    members.sort_unstable();
    members.dedup();
    SubmittedPart {
        user: &id.user,
        window: id.window,
        name: entry.and_then(|entry| entry.spec.name.as_deref()).or_else(|| job?.name()),
        members: (!members.is_empty()).then_some(members),
    }
}

/// The key of the request, if it has one.
fn once(asked: &Asked<'_>, user: &UserName) -> Result<Option<Once>, Failure> {
    if asked.headers.get("idempotency-key").is_none() || asked.is_trial() {
        return Ok(None);
    }
    let is_plain = |key: &&str| {
        !key.is_empty() && key.len() <= LONGEST_KEY && key.chars().all(|c| c.is_ascii_graphic())
    };
    let Some(key) = asked.header("idempotency-key").filter(is_plain) else {
        let error = Error::usage("Idempotency-Key: no key").hint(format!(
            "up to {LONGEST_KEY} letters, digits and signs, another for each request"
        ));
        return Err(error.into());
    };
    let mut said = digest::Context::new(&digest::SHA256);
    said.update(asked.text("start").unwrap_or("queue").as_bytes());
    said.update(b"\n");
    said.update(user.as_str().as_bytes());
    said.update(b"\n");
    said.update(asked.body);
    let mut hash = String::new();
    for byte in said.finish().as_ref() {
        // Writing to a String cannot fail.
        let _ = write!(hash, "{byte:02x}");
    }
    Ok(Some(Once { by: asked.who.name.clone(), key: key.to_owned(), said: hash }))
}

/// How the body is written.
fn written(asked: &Asked<'_>) -> Result<BodyFormat, Failure> {
    let said = asked.header("content-type").unwrap_or("application/json");
    let kind = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "application/json" => Ok(BodyFormat::Json),
        "application/yaml" | "application/x-yaml" | "text/yaml" | "text/x-yaml" => {
            Ok(BodyFormat::Yaml)
        }
        _ => {
            let error = Error::usage(format!("a body of {said}"))
                .hint("send application/json or application/yaml");
            Err(Failure::from(error).status(StatusCode::UNSUPPORTED_MEDIA_TYPE))
        }
    }
}
