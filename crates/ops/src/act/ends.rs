//! Records how the commands of jobs have ended.

use std::time::Duration;

use tpu_core::model::data::Data;
use tpu_core::model::entry::Shunned;
use tpu_core::model::facts::{ErrorKind, RunFact};
use tpu_core::model::ids::JobId;
use tpu_core::model::job::{Event, Job, Status, StoredVerdict};
use tpu_core::model::target::Machines;
use tpu_core::plan::diagnose::{JobFacts, diagnose};
use tpu_engine::runner::window::beside;
use tpu_system::store::Tx;

use crate::base::ctx::{job_mut, job_of};
use crate::base::queue_entries::back::{self, Back};
use crate::base::records;
use crate::observe::printed::Printed;
use crate::observe::runners;
use crate::{Ctx, Error, Kind};

/// A target that could not be reached is given to a job that waits again only after so long.
const SHUNNED: Duration = Duration::from_secs(300);

/// What the end of a job leaves to those that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vacated {
    /// Whether something waits, and may be started by whoever has seen the end. A person who kills a job starts the next
    /// one: what is at work in the window of the job is stopped with it, in the middle of a start.
    pub is_wanted: bool,
    /// Process id of the tmux server in which the job was.
    pub server: Option<u32>,
    /// Whether its record is gone: it waits in the queue again, or was cleaned away.
    pub is_without_record: bool,
}

impl Vacated {
    /// By the data file.
    pub fn of(data: &Data, id: &JobId) -> Self {
        let job = data.job(id);
        let is_stopped =
            |job: &Job| job.is_being_killed() || matches!(job.status, Status::Killed(_));
        let server = job.and_then(|job| job.place.as_ref()).map(|place| place.server_pid);
        let is_without_record = job.is_none();
        // What was claimed may have to go back.
        let waits =
            !data.queues().entries.is_empty() || data.jobs().any(|job| job.waited.is_some());
        let is_wanted = waits && !job.is_some_and(is_stopped);
        Self { is_wanted, server, is_without_record }
    }
}

/// Writes down that a job's command has ended with `code`, and what follows from it. Doing it twice
/// changes nothing.
pub(crate) fn record_end(ctx: &Ctx, id: &JobId, code: i32) -> Result<Vacated, Error> {
    let now = ctx.clock.now();
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    let exit = Some(job.exit(code));
    let printed = Printed::before(ctx, job, exit);
    let run = beside::with_cause(ctx, job, RunFact::ended(job.exit(code)));
    let facts = JobFacts { run: &run, verdict: printed.telling(), target: None, now };
    ctx.transact(|tx| {
        record(tx, id, code, &facts, &printed)?;
        Ok(Vacated::of(&tx.data, id))
    })
}

/// The same of several jobs: what they have printed is read together, and written down at once.
pub(crate) fn record_all(ctx: &Ctx, ended: &[(JobId, i32)]) -> Result<(), Error> {
    if ended.is_empty() {
        return Ok(());
    }
    let (now, data) = (ctx.clock.now(), ctx.data()?);
    let known = |(id, code): &(JobId, i32)| Some((data.job(id)?, *code));
    let jobs: Vec<(&Job, i32)> = ended.iter().filter_map(known).collect();
    let mut seen = Vec::new();
    for (_, places) in runners::by_engine(jobs.iter().map(|(job, _)| *job)) {
        let theirs: Vec<(&Job, i32)> =
            places.iter().filter_map(|index| jobs.get(*index)).copied().collect();
        let ending = theirs.iter().map(|(job, code)| (*job, Some(job.exit(*code))));
        let printed = Printed::all_before(ctx, &data, &ending.collect::<Vec<_>>());
        for ((job, code), printed) in theirs.into_iter().zip(printed) {
            let run = beside::with_cause(ctx, job, RunFact::ended(job.exit(code)));
            seen.push((job.id(), code, run, printed));
        }
    }
    ctx.transact(|tx| {
        for (id, code, run, printed) in &seen {
            let facts = JobFacts { run, verdict: printed.telling(), target: None, now };
            match record(tx, id, *code, &facts, printed) {
                // Somebody else has written it since.
                Err(error) if matches!(error.kind, Kind::NotFound | Kind::Refused) => {}
                other => other?,
            }
        }
        Ok(())
    })
}

/// Puts back into the queue what has waited there and did not reach its machine. Whether it did: of a machine of a provider,
/// which may have been taken away, the rules of the job know more than its queue.
fn waits_again(tx: &mut Tx<'_>, id: &JobId, facts: &JobFacts<'_>) -> Result<bool, Error> {
    let job = job_of(&tx.data, id)?;
    let target = tx.data.target(&job.tpu);
    let is_of_own = target.is_some_and(|target| target.machines == Machines::Fixed);
    let is_unreached = facts.run.cause == Some(ErrorKind::Launch) && is_of_own;
    let Some(launch) = job.launch.as_ref().filter(|_| is_unreached) else { return Ok(false) };
    let token = launch.token.clone();
    let (target, until) = (job.tpu.clone(), facts.now.plus(SHUNNED));
    let shunned = Shunned { target, until, why: facts.run.why().to_owned() };
    back::give_back(tx, id, &token, Back::Unreached(shunned))
}

/// The same as part of a transaction.
fn record(
    tx: &mut Tx<'_>,
    id: &JobId,
    code: i32,
    facts: &JobFacts<'_>,
    printed: &Printed,
) -> Result<(), Error> {
    if waits_again(tx, id, facts)? {
        return Ok(());
    }
    let job = job_mut(&mut tx.data, id)?;
    let shown = diagnose(job, facts);
    let Some(launch) = job.launch.as_mut() else { return Ok(()) };
    // An error gives way to a good end, and to nothing else, also to one that was written down while somebody acted
    // on the error.
    let mended = matches!(job.status, Status::Error(_)) && shown.status == Status::Finished;
    if launch.exit.is_some() && !mended {
        return Ok(());
    }
    launch.exit.get_or_insert(code);
    // A successor may have ended it already.
    launch.ended.get_or_insert(facts.now);
    job.confirm_launch();
    // Whatever became of it meanwhile, this is the last that it printed.
    job.keep_reached(&printed.numbers());
    // Whoever kills it writes the status; a final one stays.
    let is_open = job.status.is_live() || mended;
    if job.is_being_killed() || job.child.is_some() || !is_open {
        return Ok(());
    }
    let line = if let Status::Error(kind) = &shown.status {
        job.apply(&Event::Failed(*kind))?;
        let verdict = StoredVerdict::new(*kind, shown.evidence.as_ref());
        let line = format!("{kind}: {}", verdict.line);
        job.verdict = Some(verdict);
        line
    } else {
        job.apply(if mended { &Event::FinishedByProof } else { &Event::Finished })?;
        format!("exit code {code}")
    };
    let kind = if shown.status == Status::Finished { "finished" } else { "error" };
    records::note(tx, id, kind, line);
    Ok(())
}
