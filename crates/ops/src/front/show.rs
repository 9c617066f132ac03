//! One job in one place: what started it, what has happened to it, and what whatever runs it says of it.

use tpu_core::model::ids::JobId;
use tpu_core::model::target::Machines;
use tpu_core::model::view::JobView;

use crate::act::outlook;
use crate::base::ctx::job_of;
use crate::observe::journal::{self, Event};
use crate::observe::{log_files, runners};
use crate::{Ctx, Error};

/// Events that are shown.
const EVENTS: usize = 20;

/// Everything that there is to say of a job.
#[derive(Debug)]
pub struct Whole {
    /// How it is.
    pub view: JobView,
    /// What has happened to it last, the oldest first.
    pub events: Vec<Event>,
    /// What started it; `None` where that is not kept.
    pub script: Option<String>,
    /// What runs it says of it, or why it says nothing.
    pub told: Result<String, Error>,
}

/// Looks at a job from every side.
pub fn whole(ctx: &Ctx, id: &JobId) -> Result<Whole, Error> {
    let view = outlook::look_at(ctx, id)?;
    let events = journal::newest(ctx, Some(&id.user), Some(id.window), EVENTS)?;
    let script = script_of(ctx, id).unwrap_or_default();
    // Who has just not answered is not waited for once more.
    let told = match &view.shown.unknown {
        Some(why) if view.machines == Machines::Engine => Err(Error::unreachable(why.clone())),
        Some(_) | None => told(ctx, id),
    };
    Ok(Whole { view, events, script, told })
}

/// What started a job: a script, or what its engine was given.
pub fn script(ctx: &Ctx, id: &JobId) -> Result<String, Error> {
    script_of(ctx, id)?.ok_or_else(|| {
        Error::not_found(format!("what started {id} is not kept"))
            .hint(format!("`tpu show {} {}` says what is known of it", id.window, id.user))
    })
}

fn script_of(ctx: &Ctx, id: &JobId) -> Result<Option<String>, Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    Ok(runners::of(ctx, job).script(runners::run(&data, job)?)?)
}

/// What a job is to do, as a job file, and what of it no file can say.
pub fn as_file(ctx: &Ctx, id: &JobId) -> Result<(String, Vec<String>), Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    log_files::as_file(&data, job)
}

/// What runs a job says of it, in its own words.
pub fn told(ctx: &Ctx, id: &JobId) -> Result<String, Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    Ok(runners::of(ctx, job).describe(runners::run(&data, job)?)?)
}
