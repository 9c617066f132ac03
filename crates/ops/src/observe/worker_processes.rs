//! The processes of a job on the workers of its target: whether any may live there, and their end.
//!
//! [`stop`] ends exactly what carries the token of the launch. Nothing is started here.

use tpu_core::model::data::Data;
use tpu_core::model::job::Job;
use tpu_engine::runner::window::beside;
use tpu_system::remote::{RemoteError, Stopped, Worker};

use super::doors;
use super::fleet::AskedOnce;
use crate::{Ctx, Error};

/// The workers on which the command of a job may live.
pub fn of_job(ctx: &Ctx, job: &Job) -> Vec<Worker> {
    beside::workers(ctx, job)
}

/// Whether the command of a job may live on workers, whatever its window says: it was started there, its end
/// there is not known, and the machines are not known to be gone.
pub(crate) fn may_live(ctx: &Ctx, data: &Data, job: &Job) -> bool {
    let recorded = of_job(ctx, job);
    !recorded.is_empty() && {
        !doors::still_there(&AskedOnce::new(ctx, data, &job.tpu), job, recorded).is_empty()
    }
}

/// Stops the command of a job on its workers, and says how many processes got a signal, and which workers
/// could not be reached. Those whose machines are gone by the control plane's word have nothing to be
/// stopped. Fails where something is known to live and does not end.
pub fn stop(ctx: &Ctx, job: &Job) -> Result<(usize, Option<Error>), Error> {
    let recorded = of_job(ctx, job);
    let (Some(launch), false) = (&job.launch, recorded.is_empty()) else {
        return Ok((0, None));
    };
    let data = ctx.data()?;
    let asked = AskedOnce::new(ctx, &data, &job.tpu);
    let there = doors::still_there(&asked, job, recorded);
    if there.is_empty() {
        return Ok((0, None));
    }
    let door = match doors::to(ctx, &asked) {
        Ok(door) => door,
        // None of them can be reached.
        Err(error) => {
            let message = format!("{}: {}", job.id(), error.message);
            return Ok((0, Some(Error { message, ..error })));
        }
    };
    let (mut signalled, mut unseen, mut stuck) = (0, Vec::new(), false);
    for (_, answer) in door.remote.stop(&there, &launch.token) {
        match answer {
            Ok(Stopped::Ended(count)) => signalled += count,
            Ok(Stopped::NotRunning) => {}
            Err(error) => {
                // What is known to live is nothing that anybody could go past.
                stuck |=
                    matches!(error, RemoteError::Stop { .. } | RemoteError::Unstoppable { .. });
                unseen.push(error.to_string());
            }
        }
    }
    let failed = (!unseen.is_empty()).then(|| unstopped(job, &unseen));
    match failed {
        Some(error) if stuck => Err(error),
        unseen => Ok((signalled, unseen)),
    }
}

fn unstopped(job: &Job, failed: &[String]) -> Error {
    Error::unreachable(format!("{}: {}", job.id(), failed.join("; "))).hint(format!(
        "it may still run there; repeat the command, or let the daemon do so; past what never answers \
         again goes: tpu kill w={} {} --force",
        job.windows_id, job.user
    ))
}
