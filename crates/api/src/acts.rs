//! What is done to a job: `POST /api/v1/jobs/{user}/{number}/{verb}`, and what of it is changed by `PATCH`.

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use tpu_core::model::entry::Priority;
use tpu_core::model::ids::JobId;
use tpu_core::model::job::Succession;
use tpu_core::model::rules::Rules;
use tpu_core::model::setup::SetUpHow;
use tpu_ops::act::kill;
use tpu_ops::act::launch::check::parse_rules;
use tpu_ops::act::resume::{self, AgainRequest};
use tpu_ops::base::ctx::job_of;
use tpu_ops::base::environment::WhichEnvironment;
use tpu_ops::front::clean::{self, Ends, Extent};
use tpu_ops::waiting::queue::requeue::{self, Requeued};
use tpu_ops::waiting::queue::{edit, pass};
use tpu_ops::waiting::{rules, unhold};
use tpu_ops::{Ctx, Error};
use tpu_wire::cleaned::{CleanedDocument, WouldCleanDocument};
use tpu_wire::jobs::{ExplainDocument, JobIdPart};
use tpu_wire::launches::{KilledDocument, KilledPart, SuccessorDocument, WouldConcernDocument};
use tpu_wire::queue::WaitingChangedDocument;

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::jobs::{self, with_now};
use super::route::{Gives, Route, Versions, shape};
use super::takes::Parameter;

/// Whose job, which, and whether it is only to be said what would be done.
const ACT: [Parameter; 3] = [jobs::JOB[0], jobs::JOB[1], DRY_RUN];
const DRY_RUN: Parameter = Parameter::flag("dry_run", "say what would be done, and do nothing");
/// The same, and whether a check that refuses is passed over.
const FORCED: [Parameter; 4] = [
    jobs::JOB[0],
    jobs::JOB[1],
    DRY_RUN,
    Parameter::flag("force", "go on where a check would refuse"),
];

/// The same, and where it is to go on.
const AGAIN: [Parameter; 6] = [
    FORCED[0],
    FORCED[1],
    FORCED[2],
    FORCED[3],
    Parameter::flag("however_ended", "also where it has not failed, but finished or was killed"),
    Parameter::text("target", "go on there: its name, or an alias of it; where it was without"),
];

/// What is changed of a job; what is not said stays.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct JobChange {
    /// How urgent it is, from 0 to 100; of what waits.
    priority: Option<u8>,
    /// Its tag; an empty one takes it away.
    tags: Option<String>,
    /// Its rules, as `tpu set-rule` reads them.
    rule: Option<String>,
}

/// What is done to one job.
pub(super) fn routes() -> Vec<Route> {
    // What a trial says has a shape of its own.
    let killed = Gives::OneOf(&[
        shape::<KilledDocument<'_>>,
        shape::<WaitingChangedDocument<'_>>,
        shape::<WouldConcernDocument<'_>>,
    ]);
    let waiting =
        Gives::OneOf(&[shape::<WaitingChangedDocument<'_>>, shape::<WouldConcernDocument<'_>>]);
    let ignored = Gives::OneOf(&[shape::<ExplainDocument<'_>>, shape::<WouldConcernDocument<'_>>]);
    let cleaned = Gives::OneOf(&[shape::<CleanedDocument<'_>>, shape::<WouldCleanDocument<'_>>]);
    let again = Gives::OneOf(&[shape::<SuccessorDocument<'_>>, shape::<WouldConcernDocument<'_>>]);
    let post = |path, says, gives, run| {
        Route::post(path, says, gives, run).with(&ACT).versions(Versions::Heeded)
    };
    vec![
        post(
            "/api/v1/jobs/{user}/{number}/kill",
            "Stops a job, or takes it out of the queue",
            killed,
            kill,
        )
        .with(&FORCED)
        .slow(),
        post(
            "/api/v1/jobs/{user}/{number}/resume",
            "Starts its successor from its last checkpoint",
            again,
            resume,
        )
        .with(&AGAIN)
        .slow(),
        post(
            "/api/v1/jobs/{user}/{number}/rerun",
            "Starts its successor from scratch",
            again,
            rerun,
        )
        .with(&AGAIN)
        .slow(),
        post(
            "/api/v1/jobs/{user}/{number}/first",
            "Lets what waits begin before all others of its priority",
            waiting,
            first,
        )
        .slow(),
        post("/api/v1/jobs/{user}/{number}/hold", "Lets what waits not begin", waiting, hold),
        post("/api/v1/jobs/{user}/{number}/unhold", "Lets it begin in its turn", waiting, unhold).slow(),
        post(
            "/api/v1/jobs/{user}/{number}/ignore",
            "Lets a job that has failed count as running until it prints another error",
            ignored,
            ignore,
        )
        .slow(),
        post(
            "/api/v1/jobs/{user}/{number}/requeue",
            "Stops it and puts it back into the queue",
            waiting,
            requeue,
        )
        .slow(),
        post(
            "/api/v1/jobs/{user}/{number}/pause",
            "Stops it, at a checkpoint where it can, and holds what is to go on from there",
            waiting,
            pause,
        )
        .slow(),
        post(
            "/api/v1/jobs/{user}/{number}/clean",
            "Moves the records of what has ended to the archive, with all attempts, and closes their windows",
            cleaned,
            clean,
        )
        .with(&FORCED)
        .slow(),
        Route::patch(
            "/api/v1/jobs/{user}/{number}",
            "Changes priority, tag or rules",
            Gives::Json(shape::<ExplainDocument<'_>>),
            change,
        )
        .with(&jobs::JOB)
        .takes(shape::<JobChange>)
        .versions(Versions::Heeded),
    ]
}

/// Whether a job waits in a queue and has no attempt yet.
fn waits(ctx: &Ctx, id: &JobId) -> Result<bool, Error> {
    Ok(ctx.data()?.queues().entry(id).is_some())
}

fn would(id: &JobId) -> Answer {
    Answer::document(&WouldConcernDocument { would: vec![JobIdPart::from(id)] })
}

fn kill(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let (ctx, id) = (asked.ctx, asked.job());
    jobs::still(asked)?;
    let one = std::slice::from_ref(&id);
    if waits(ctx, &id)? {
        return waiting(asked, edit::dequeue);
    }
    if asked.is_trial() {
        let (can, problems) = kill::dry_run(ctx, one, asked.flag("force"));
        return match Error::all(problems) {
            Some(error) if can.is_empty() => Err(with_now(asked, error)),
            _ => Ok(would(&id)),
        };
    }
    let mut done = kill::kill(ctx, one, asked.flag("force"));
    let (_, result) = done.pop().ok_or_else(|| Error::failed("nothing was killed"))?;
    let killed = result.map_err(|error| with_now(asked, error))?;
    // A place became free.
    pass::look_after(ctx);
    Ok(Answer::document(&KilledDocument { killed: vec![KilledPart::from(&killed)] }))
}

fn resume(asked: &Asked<'_>) -> Result<Answer, Failure> {
    again(asked, Succession::Resume)
}

fn rerun(asked: &Asked<'_>) -> Result<Answer, Failure> {
    again(asked, Succession::Rerun)
}

fn again(asked: &Asked<'_>, how: Succession) -> Result<Answer, Failure> {
    let id = asked.job();
    jobs::still(asked)?;
    let is_forced = asked.flag("force");
    if is_forced && asked.text("target").is_some() {
        // What others keep there, or fill, would be passed over.
        asked.who.uses_targets()?;
    }
    let request = AgainRequest {
        job: id.clone(),
        how,
        target: asked.text("target").map(str::to_owned),
        on: None,
        force: is_forced,
        however_ended: asked.flag("however_ended"),
        from_nothing: false,
        setup: SetUpHow::default(),
        turn: None,
        environment: WhichEnvironment::Kept,
    };
    if asked.is_trial() {
        resume::plan(asked.ctx, &request).map_err(|error| with_now(asked, error))?;
        return Ok(would(&id));
    }
    let again = resume::again(asked.ctx, &request).map_err(|error| with_now(asked, error))?;
    Ok(Answer::document(&SuccessorDocument::from(&again.launched)))
}

fn hold(asked: &Asked<'_>) -> Result<Answer, Failure> {
    jobs::still(asked)?;
    waiting(asked, |ctx, ids| edit::hold(ctx, ids, None))
}

fn unhold(asked: &Asked<'_>) -> Result<Answer, Failure> {
    jobs::still(asked)?;
    let is_trial = asked.is_trial();
    waiting(asked, |ctx, ids| match ids {
        // An engine does what it is told, whatever becomes of our records.
        [id] if !waits(ctx, id)? && is_trial => unhold::dry_run(ctx, id),
        [id] if !waits(ctx, id)? => unhold::unhold(ctx, id),
        ids => edit::unhold(ctx, ids),
    })
}

/// Changes what waits; a trial makes the change on a copy, which refuses what the change would.
fn waiting(
    asked: &Asked<'_>,
    act: impl FnOnce(&Ctx, &[JobId]) -> Result<(), Error>,
) -> Result<Answer, Failure> {
    let id = asked.job();
    act(asked.ctx, std::slice::from_ref(&id)).map_err(|error| with_now(asked, error))?;
    Ok(if asked.is_trial() { would(&id) } else { changed(asked.ctx, &id) })
}

/// That something waits otherwise now, and what has begun since.
fn changed(ctx: &Ctx, id: &JobId) -> Answer {
    let started = pass::look_after(ctx).begun();
    Answer::document(&WaitingChangedDocument::of(std::slice::from_ref(id), &started))
}

fn first(asked: &Asked<'_>) -> Result<Answer, Failure> {
    jobs::still(asked)?;
    let id = asked.job();
    if !waits(asked.ctx, &id)? {
        job_of(&*asked.ctx.data()?, &id)?;
        let error = Error::refused(format!("{id} does not wait"));
        return Err(with_now(asked, error.hint("look again: it may have begun")));
    }
    waiting(asked, edit::move_to_front)
}

fn ignore(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let (ctx, id) = (asked.ctx, asked.job());
    jobs::still(asked)?;
    if asked.is_trial() {
        rules::may_ignore_error(ctx, &id).map_err(|error| with_now(asked, error))?;
        return Ok(would(&id));
    }
    rules::ignore_error(ctx, &id).map_err(|error| with_now(asked, error))?;
    asked.served.looks.after_change(ctx);
    jobs::one(asked)
}

fn requeue(asked: &Asked<'_>) -> Result<Answer, Failure> {
    put_back(asked, &Requeued::default())
}

fn pause(asked: &Asked<'_>) -> Result<Answer, Failure> {
    put_back(asked, &Requeued { is_held: true, ..Requeued::default() })
}

fn put_back(asked: &Asked<'_>, how: &Requeued) -> Result<Answer, Failure> {
    let (ctx, id) = (asked.ctx, asked.job());
    jobs::still(asked)?;
    if asked.is_trial() {
        requeue::dry_run(ctx, &id).map_err(|error| with_now(asked, error))?;
        return Ok(would(&id));
    }
    // Whoever may not have targets made does not have the queue make them.
    let keeps_targets = !asked.who.rights.may_use_targets();
    let done = requeue::requeue(ctx, &id, &Requeued { keeps_targets, ..how.clone() });
    let (waits, _) = done.map_err(|error| with_now(asked, error))?;
    Ok(changed(ctx, &waits))
}

fn clean(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let (ctx, id) = (asked.ctx, asked.job());
    jobs::still(asked)?;
    let extent = Extent { force: asked.flag("force"), ..Extent::of(Ends::All) };
    let one = std::slice::from_ref(&id);
    // What there is not has not been cleaned away.
    job_of(&*ctx.data()?, &id)?;
    let cleaned = if asked.is_trial() {
        clean::dry_run_clean_some(ctx, &id.user, one, extent)
    } else {
        clean::clean_some(ctx, &id.user, one, extent)
    };
    let cleaned = cleaned.map_err(|error| with_now(asked, error))?;
    match cleaned.kept.first() {
        Some(kept) if cleaned.archived.is_empty() => {
            let error = Error::refused(format!("{} stays: {}", kept.job, kept.reason));
            Err(with_now(asked, error.hint("what has ended is cleaned; `kill` ends it")))
        }
        _ if asked.is_trial() => {
            Ok(Answer::document(&WouldCleanDocument::from((&id.user, &cleaned))))
        }
        _ => Ok(Answer::document(&CleanedDocument::from(&cleaned))),
    }
}

fn change(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let (ctx, id) = (asked.ctx, asked.job());
    let JobChange { priority, tags, rule } = asked.json()?;
    jobs::still(asked)?;
    // All of it is read before any of it is done.
    let priority = priority.map(|number| {
        Priority::parse(&number.to_string()).ok_or_else(|| {
            Error::usage(format!("priority: {number}")).hint("a whole number from 0 to 100")
        })
    });
    let (priority, rule) = (priority.transpose()?, rule.as_deref().map(parse_rules).transpose()?);
    if priority.is_some() && (tags.is_some() || rule.is_some()) {
        // Else the one could be done, and the other not.
        let what = "priority is about what waits, tags and rule are about what has begun";
        return Err(Error::usage(what).hint("say one of both").into());
    }
    if rule.as_ref().is_some_and(Rules::take_targets_down) {
        asked.who.uses_targets()?;
    }
    let changed = match priority {
        Some(priority) => edit::set_priority(ctx, std::slice::from_ref(&id), priority),
        None => rules::change(ctx, &id, tags.as_deref(), rule.as_ref()),
    };
    changed.map_err(|error| with_now(asked, error))?;
    asked.served.looks.after_change(ctx);
    // It is changed, whether it can be looked at or not.
    Ok(jobs::one(asked).unwrap_or_else(|_| Answer::text("").status(StatusCode::NO_CONTENT)))
}
