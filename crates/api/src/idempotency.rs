//! Requests with keys of their own (`Idempotency-Key`): one that is sent again is answered as before, and begins nothing.

use std::fmt::Write as _;

use axum::http::StatusCode;
use ring::digest;

use tpu_core::model::ids::{JobId, UserName};
use tpu_ops::Error;
use tpu_ops::waiting::begin;
use tpu_ops::waiting::queue::once::{Entered, Once};
use tpu_wire::queue::SubmittedDocument;

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;

/// The longest key of a request.
const LONGEST_KEY: usize = 255;

/// The key of the request, if it has one.
pub(super) fn key(asked: &Asked<'_>, user: &UserName) -> Result<Option<Once>, Failure> {
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

/// The answer to a request that was answered before; `None` where it is to be carried out.
pub(super) fn known(asked: &Asked<'_>, once: &Once) -> Result<Option<Answer>, Failure> {
    if let Some(before) = begin::answered(asked.ctx, once)? {
        return replayed(asked, before).map(Some);
    }
    once.may_be_known(&*asked.ctx.data()?, asked.ctx.clock.now()).map(|()| None).map_err(|error| {
        let many = Failure::from(error).status(StatusCode::TOO_MANY_REQUESTS);
        many.header("retry-after", "3600")
    })
}

/// What a request has come to that was answered before: its jobs, as they are called now.
pub(super) fn replayed(asked: &Asked<'_>, before: Entered) -> Result<Answer, Failure> {
    let (Entered::Before(jobs) | Entered::New(jobs)) = before else {
        let error = Error::refused("this Idempotency-Key was sent with another request")
            .hint("take another key for another request; the same is answered as before for a day");
        return Err(Failure::from(error).status(StatusCode::UNPROCESSABLE_ENTITY));
    };
    let data = asked.ctx.data()?;
    let is_open = |id: &JobId| data.queues().entry(id).is_some_and(|entry| entry.keeper.is_some());
    if jobs.iter().any(is_open) {
        // Whether it begins is not known yet.
        let error = Error::refused("this request is being carried out").passing();
        let failure = Failure::from(error.hint("send it again in a moment"));
        return Err(failure.header("retry-after", "1"));
    }
    let begun: Vec<JobId> = jobs.iter().filter(|id| data.job(id).is_some()).cloned().collect();
    let document = SubmittedDocument::now(&data, &jobs, &begun);
    Ok(Answer::document(&document).header("idempotency-replayed", "true"))
}
