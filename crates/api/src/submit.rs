//! `POST /api/v1/jobs`: jobs as a file says them, each request with a key of its own once.

use tpu_ops::front::jobfile::body::{BesideBody, SubmittedFile};
use tpu_ops::waiting::begin::QueueOutcome;
use tpu_wire::jobs::JobIdPart;
use tpu_wire::launches::WouldConcernDocument;
use tpu_wire::queue::SubmittedDocument;

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::idempotency;
use super::route::{Gives, Route, shape};
use super::takes::Parameter;

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
    let body = SubmittedFile::read(asked.body, asked.job_file_format()?)?;
    let user = asked.acting_for(body.for_user.clone(), "for_user: NAME, in the body")?;
    let once = idempotency::key(asked, &user)?;
    if let Some(once) = &once
        && let Some(answer) = idempotency::known(asked, once)?
    {
        return Ok(answer);
    }
    let mut jobs = body.understood(asked.ctx, &user)?;
    if !asked.who.rights.may_administer() {
        jobs = jobs.for_an_operator(&asked.ctx.env.hostname)?;
    }
    if jobs.make_targets() || jobs.take_targets_down() {
        asked.who.uses_targets()?;
    }
    let is_now = asked.text("start") == Some("now");
    match jobs.queue(asked.ctx, &BesideBody { once: once.as_ref(), is_now })? {
        QueueOutcome::New(queued) => {
            Ok(Answer::document(&SubmittedDocument::of(&queued, &queued.passage.begun())))
        }
        QueueOutcome::Answered(before) => idempotency::replayed(asked, before),
        QueueOutcome::Would(jobs) => {
            let would = jobs.iter().map(JobIdPart::from).collect();
            Ok(Answer::document(&WouldConcernDocument { would }))
        }
    }
}
