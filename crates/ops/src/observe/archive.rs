//! The archive: which records were cleaned away, what one of them says, what it printed, and bringing it back.
//!
//! A record that is brought back stays in the archive as well: nothing is ever taken out of that. What is in the data
//! file again counts as not archived.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use jiff::tz::TimeZone;

use tpu_core::model::data::Data;
use tpu_core::model::ids::{JobId, JobNumber, UserName};
use tpu_core::model::job::{Job, StartTime};
use tpu_core::model::lineage;
use tpu_core::model::time::Timestamp;
use tpu_core::plan::filter::{Filter, RecordFacts};
use tpu_core::plan::types;
use tpu_core::text::counted;
use tpu_engine::runner::Want;
use tpu_engine::runner::code_removal::is_without_code;
use tpu_system::store::AttemptId;

pub use tpu_system::store::Archived;

use super::lineage_attempts::attempts;
use super::runners;
use crate::base::called::JobWord;
use crate::base::ctx::user_of;
use crate::base::records;
use crate::{Ctx, Error};

/// Which of the archived records are wanted.
#[derive(Clone, Debug, Default)]
pub struct ArchiveRequest {
    /// Of this user.
    pub user: Option<UserName>,
    /// Those that pass.
    pub filter: Filter,
    /// No more than so many, the newest.
    pub most: usize,
}

/// An archived record in a list.
#[derive(Clone, Debug)]
pub struct ArchivedJob {
    /// The record, and when and by whom it was cleaned away.
    pub archived: Archived,
    /// The short name of its target.
    pub label: String,
    /// When it began, if anybody knows.
    pub began: Option<Timestamp>,
    /// When others were cleaned away that had its number, the newest first. Only of one that was looked for.
    pub others: Vec<Timestamp>,
}

/// What is in the archive, and how many more there are of what was asked for.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// The oldest first.
    pub jobs: Vec<ArchivedJob>,
    /// How many older ones pass as well.
    pub more: usize,
}

/// The archived records that pass, those that were cleaned away last at the end.
pub fn list(ctx: &Ctx, request: &ArchiveRequest) -> Result<Listed, Error> {
    let data = ctx.data()?;
    let (now, zone) = (ctx.clock.now(), ctx.env.local_zone());
    let there: HashSet<AttemptId> = data.jobs().map(AttemptId::of).collect();
    let mut listed = Listed::default();
    let (user, filter) = (request.user.clone(), request.filter.clone());
    let passing = move |archived: Archived| {
        let job = &archived.job;
        if user.as_ref().is_some_and(|user| job.user != *user) {
            return None;
        }
        let began = began_in(&zone, job);
        let label = data.target_label(&job.tpu);
        passes(&data, &filter, job, &label, began.map(|at| now.seconds_since(at)))
            .then(|| ArchivedJob { archived, label, began, others: Vec::new() })
    };
    for found in ctx.store.archived_beside(there, passing) {
        let Some(found) = found? else { continue };
        if listed.jobs.len() < request.most {
            listed.jobs.push(found);
        } else {
            listed.more += 1;
        }
    }
    listed.jobs.reverse();
    Ok(listed)
}

fn passes(data: &Data, filter: &Filter, job: &Job, label: &str, age_s: Option<u64>) -> bool {
    if filter.is_empty() {
        return true;
    }
    let target = data.target(&job.tpu);
    let told = target.as_ref().and_then(|target| target.accelerator.clone());
    let accelerator = told.or_else(|| types::guess(job.tpu.as_str()));
    filter.matches_record(&RecordFacts {
        job,
        label,
        accelerator: accelerator.as_deref(),
        zone: target.as_ref().and_then(|target| target.zone.as_deref()),
        age_s,
    })
}

/// When an attempt began: when its launch was claimed, else what its record says.
pub fn began(ctx: &Ctx, job: &Job) -> Option<Timestamp> {
    began_in(&ctx.env.local_zone(), job)
}

/// The same; the original writes it down in the zone of its machine.
pub(crate) fn began_in(zone: &TimeZone, job: &Job) -> Option<Timestamp> {
    if let Some(launch) = &job.launch {
        return Some(launch.at);
    }
    match &job.start_time {
        StartTime::Unset => None,
        StartTime::At(at) => Some(*at),
        StartTime::Original(value) => Timestamp::parse_original(value.as_str()?, zone),
    }
}

/// The archived record of a job: of several that had its number the one that was cleaned away last, or, with `older`,
/// the one that was so many before that.
pub fn find(ctx: &Ctx, id: &JobId, older: usize) -> Result<ArchivedJob, Error> {
    let data = ctx.data()?;
    let (mut found, mut all) = (None, Vec::new());
    for archived in ctx.store.archived() {
        let archived = archived?;
        if archived.job.id() != *id {
            continue;
        }
        all.push(archived.at);
        if all.len() == older + 1 {
            found = Some(archived);
        }
    }
    if let Some(archived) = found {
        let label = data.target_label(&archived.job.tpu);
        let began = began(ctx, &archived.job);
        all.remove(older);
        return Ok(ArchivedJob { archived, label, began, others: all });
    }
    if !all.is_empty() {
        let what = format!("no more than {} had the number of {id}", counted(all.len(), "record"));
        return Err(Error::not_found(what).hint("without --older it is the newest of them"));
    }
    let error = Error::not_found(format!("{id} is not in the archive"));
    Err(match data.job(id) {
        Some(_) => error.hint(format!("it is among the jobs: tpu show {id}")),
        None => error.hint(format!("those that are: tpu archive list {}", id.user)),
    })
}

/// Those who have archived jobs that a word calls, with the newest of each. Of groups and patterns nothing is found.
pub fn newest_called(ctx: &Ctx, word: &JobWord) -> Result<Vec<JobId>, Error> {
    let is_meant = |job: &Job| match word {
        JobWord::Number(number) => job.windows_id == *number,
        JobWord::Members(_, members) => {
            members.len() == 1 && job.member().is_some_and(|member| members.contains(&member))
        }
        JobWord::Name(name) | JobWord::Part(name) => job.name() == Some(name.as_str()),
        JobWord::Names(..) => false,
    };
    let mut found: Vec<JobId> = Vec::new();
    for archived in ctx.store.archived() {
        let job = archived?.job;
        if is_meant(&job) && found.iter().all(|known| known.user != job.user) {
            found.push(job.id());
        }
    }
    Ok(found)
}

/// The archived records of a user that a word calls by a name: of each name the newest, and the members of its group. Each
/// with how many newer records have its number.
pub fn called(ctx: &Ctx, user: &UserName, word: &JobWord) -> Result<Vec<(JobId, usize)>, Error> {
    let mut newer: HashMap<JobNumber, usize> = HashMap::new();
    let mut groups: HashMap<String, Option<JobNumber>> = HashMap::new();
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for archived in ctx.store.archived() {
        let job = archived?.job;
        if job.user != *user {
            continue;
        }
        let passed = newer.entry(job.windows_id).or_default();
        let older = *passed;
        *passed += 1;
        if !word.is_name_of(&job) {
            continue;
        }
        let name = job.name().unwrap_or_default().to_owned();
        let group = job.member().map(|of| of.group);
        let is_newest = *groups.entry(name.clone()).or_insert(group) == group;
        if is_newest && seen.insert((name, job.member())) {
            found.push((job.id(), older));
        }
    }
    if found.is_empty() {
        return Err(Error::not_found(format!(
            "nothing of {user} in the archive is called '{word}'"
        ))
        .hint(format!("what is there: tpu archive list {user}")));
    }
    Ok(found)
}

/// What an archived job has printed, as far as it still lies where it logged.
pub fn output(ctx: &Ctx, of: &ArchivedJob) -> Result<Vec<u8>, Error> {
    let (job, id) = (&of.archived.job, of.archived.job.id());
    let kept = runners::output(ctx, &*ctx.data()?, job, Want::Kept { from: 0, most: u64::MAX })?;
    kept.map(|kept| kept.bytes.into()).ok_or_else(|| {
        let log = job.log_dir.as_deref().unwrap_or("none was reported");
        Error::not_found(format!("nothing that {id} has printed is left"))
            .hint(format!("its log directory: {log}"))
    })
}

/// What became of records that were to be brought back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Those that are among the jobs again.
    pub restored: Vec<JobId>,
    /// Those that already were.
    pub already: Vec<JobId>,
    /// When others were cleaned away that had the number of one of those.
    pub others: Vec<(JobId, Vec<Timestamp>)>,
    /// Those whose code is gone by now, with the directory from which a rerun takes it.
    pub without_code: Vec<(JobId, String)>,
}

/// Why the daemon leaves alone what was brought back.
pub const STOPPED: &str = "it was brought back from the archive";

/// Brings records back among the jobs, all of them or none, in one transaction. Nothing begins by it: of what had
/// failed or was never seen to end, the daemon does nothing before a person has it go on. Each number comes with `older`, as
/// in [`find`].
pub fn restore(ctx: &Ctx, ids: &[(JobId, usize)]) -> Result<Restored, Error> {
    // Nothing is ever taken out of the archive, so it may be read before.
    let archived: Vec<Result<ArchivedJob, Error>> =
        ids.iter().map(|(id, older)| find(ctx, id, *older)).collect();
    let mut done = ctx.transact(|tx| {
        let mut done = Restored::default();
        for ((id, _), archived) in ids.iter().zip(archived) {
            user_of(&tx.data, &id.user)?;
            let of = archived?;
            if !of.archived.is_whole() {
                let what = format!("the archived record of {id} is damaged");
                return Err(Error::state(what)
                    .hint("what of it can be read: tpu archive show, and `archive.jsonl` itself"));
            }
            if !of.others.is_empty() {
                done.others.push((id.clone(), of.others));
            }
            let job = of.archived.job;
            if let Some(there) = tx.data.job(id) {
                if AttemptId::of(there) == AttemptId::of(&job) {
                    done.already.push(id.clone());
                    continue;
                }
                return Err(Error::refused(format!(
                    "{id} is another job by now: {}",
                    there.status
                ))
                .hint(format!(
                    "the archived one stays where it is: tpu archive show {id}; once the other \
                         one is cleaned away it is the one that comes back"
                )));
            }
            if tx.data.queues().entry(id).is_some() {
                return Err(Error::refused(format!("a job waits in the queue as {id}"))
                    .hint("the archived one stays where it is: try again when that has begun"));
            }
            bring_back(&mut tx.data, job);
            records::note(tx, id, "restored", "from the archive");
            done.restored.push(id.clone());
        }
        Ok(done)
    })?;
    // Nobody removes the code of what is among the jobs.
    let data = ctx.data()?;
    for user in data.users() {
        let restored = user.jobs().iter().filter(|job| done.restored.contains(&job.id()));
        for job in restored.filter(|job| has_lost_its_code(ctx, job)) {
            let attempts = attempts(ctx, user, job);
            let dir = lineage::directory(job, attempts.known.iter().skip(1));
            done.without_code.push((job.id(), dir.to_owned()));
        }
    }
    Ok(done)
}

/// Whether a job had a copy of its code, and it is gone or the code was removed from it. Where nobody can say it is not.
fn has_lost_its_code(ctx: &Ctx, job: &Job) -> bool {
    let Some(copy) = job.stage_dir.as_deref().map(Path::new) else { return false };
    let is_gone = || runners::of(ctx, job).files().is_dir(copy).is_ok_and(|is_there| !is_there);
    is_without_code(copy) || is_gone()
}

fn bring_back(data: &mut Data, job: Job) {
    let mut job = Job { lease: None, intent: None, ..job };
    if !job.status.is_final() {
        job.counts_mut().stopped = Some(STOPPED.to_owned());
    }
    if let Some(user) = data.user_mut(&job.user) {
        user.push_job(job);
    }
}
