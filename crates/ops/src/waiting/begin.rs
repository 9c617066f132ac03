//! The one door by which jobs begin: [`start`] at once or in line at a terminal, [`queue`] when their turns come.
//!
//! Commands, keys and requests over HTTP call these two. What they give back carries the sentences that people read. In a
//! dry run nothing begins, and it is a plan.

use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::{JobId, QueueName};
use tpu_core::plan::board::Pick;
use tpu_core::plan::choice::Assignment;
use tpu_core::plan::queue::WaitReason;
use tpu_core::text::counted;

use crate::act::hosts::detect;
use crate::act::launch::attempt::Launched;
use crate::act::launch::group::LaunchedGroup;
use crate::act::launch::plan::LaunchPlan;
use crate::act::launch::{self, RunRequest};
use crate::{Ctx, Error};

use super::queue::keep::{self, Attendant};
use super::queue::once::{Entered, Once};
use super::queue::pass::{self, Mine, Passage};
use super::queue::submit::{self, Placed, Submission};
use super::queue::wish::Wish;
use super::queue::{at_once, now, presence, standing_of, why};

/// When a job starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At once or not at all.
    Now,
    /// As soon as there is a place for it: this process waits in line.
    Wait,
}

/// What came of a start.
#[derive(Debug)]
pub enum StartOutcome {
    /// A job has started, on a target that was chosen if it named none.
    Job(Launched, Option<Pick>),
    /// Members of a group have started.
    Group(LaunchedGroup),
    /// A dry run: this would be started.
    Would(Box<LaunchPlan>, Option<Pick>),
    /// A dry run: it would wait in line, for what this says.
    WouldWait(String),
}

impl StartOutcome {
    /// In words: what has started, or would.
    pub fn in_words(&self) -> String {
        match self {
            Self::Job(launched, _) => launched.in_words(),
            Self::Group(launched) => launched.in_words(),
            Self::Would(plan, _) => plan.to_text(),
            Self::WouldWait(what) => format!("Would be {what}."),
        }
    }

    /// The job or the group that has started.
    pub fn job(&self) -> Option<&JobId> {
        match self {
            Self::Job(launched, _) => Some(&launched.job),
            Self::Group(launched) => Some(&launched.group),
            Self::Would(..) | Self::WouldWait(_) => None,
        }
    }

    /// In lines: why its target was chosen, and what has not started.
    pub fn remarks(&self) -> Vec<String> {
        match self {
            Self::Job(_, Some(pick)) | Self::Would(_, Some(pick)) => {
                vec![format!("{}: {}", pick.target, pick.reason)]
            }
            Self::Group(launched) => launched.remarks(),
            Self::Job(..) | Self::Would(..) | Self::WouldWait(_) => Vec::new(),
        }
    }
}

/// Starts a job or a group, on the target that is named or on the best free one.
pub fn start(
    ctx: &Ctx,
    request: &RunRequest,
    when: When,
    attendant: &dyn Attendant,
) -> Result<StartOutcome, Error> {
    detect::on_first_need(ctx, &request.spec)?;
    match Wish::of(request).filter(|_| request.on.is_none()) {
        Some(wish) if ctx.store.is_dry_run() => would_choose(ctx, request, &wish, when),
        Some(wish) => {
            let (launched, pick) = match when {
                When::Wait => keep::wait(ctx, request, attendant)?,
                When::Now => {
                    now::take(ctx, &wish, request)?.ok_or_else(|| now::nothing(ctx, &wish))?
                }
            };
            Ok(StartOutcome::Job(launched, Some(pick)))
        }
        None => on_named(ctx, request, attendant),
    }
}

/// Starts a job or a group on the target that it names, which is made usable first if somebody wants that.
fn on_named(
    ctx: &Ctx,
    request: &RunRequest,
    attendant: &dyn Attendant,
) -> Result<StartOutcome, Error> {
    if ctx.store.is_dry_run() {
        return Ok(StartOutcome::Would(Box::new(launch::plan(ctx, request)?), None));
    }
    if attendant.makes_usable(request.target())? {
        let provided =
            launch::provide_target(ctx, request, &mut |step| attendant.sees_step(Some(step)));
        attendant.sees_step(None);
        provided?;
    }
    if request.spec.array.is_some() {
        return Ok(StartOutcome::Group(launch::launch_group(ctx, request)?));
    }
    Ok(StartOutcome::Job(launch::launch(ctx, request)?, None))
}

/// Says on which target a job would start that names none, or for what it would wait.
fn would_choose(
    ctx: &Ctx,
    request: &RunRequest,
    wish: &Wish,
    when: When,
) -> Result<StartOutcome, Error> {
    match now::picks(ctx, wish)?.into_iter().next() {
        Some(pick) => {
            let Pick { target, reason } = pick.clone();
            let on = request.on(&Assignment { target, reason, busy: None });
            Ok(StartOutcome::Would(Box::new(launch::plan(ctx, &on)?), Some(pick)))
        }
        None if when == When::Wait => {
            Ok(StartOutcome::WouldWait(keep::in_line(ctx, wish, presence::waiting(ctx))))
        }
        None => Err(now::nothing(ctx, wish)),
    }
}

/// Jobs of one user that are to wait for their turns.
#[derive(Clone, Copy)]
pub struct QueueRequest<'a> {
    /// What each asks for, and how it waits.
    pub jobs: &'a [(RunRequest, Submission)],
    /// The key by which a request that is sent twice begins nothing twice.
    pub once: Option<&'a Once>,
    /// Tells a problem with the place at which a job says what it is about.
    pub placed: &'a Placed<'a>,
}

impl<'a> QueueRequest<'a> {
    /// Jobs of no file, in a request without a key.
    pub fn of(jobs: &'a [(RunRequest, Submission)]) -> Self {
        Self { jobs, once: None, placed: &|_, _, error| error }
    }
}

/// What came of jobs that were to wait.
#[derive(Debug)]
pub enum QueueOutcome {
    /// They are in their queues, and some may have started since.
    New(QueuedJobs),
    /// A request with this key was answered before.
    Answered(Entered),
    /// A dry run: these would be queued.
    Would(Vec<JobId>),
}

/// Puts jobs into their queues, all of them or none, and starts what can start. A job that this process keeps starts at
/// once, or is taken out again.
pub fn queue(ctx: &Ctx, request: &QueueRequest<'_>) -> Result<QueueOutcome, Error> {
    request.jobs.iter().try_for_each(|(job, _)| detect::on_first_need(ctx, &job.spec))?;
    let ids = match submit::enter_once(ctx, request.jobs, request.once, request.placed)? {
        Entered::New(ids) => ids,
        before => return Ok(QueueOutcome::Answered(before)),
    };
    if ctx.store.is_dry_run() {
        return Ok(QueueOutcome::Would(ids));
    }
    let (passage, trouble) = match (ids.as_slice(), request.jobs) {
        ([id], [(_, how)]) if how.is_kept => {
            (at_once::begun(ctx, id, pass::pass(ctx, Mine::Own(id), 1))?, None)
        }
        _ => pass::look(ctx, usize::MAX),
    };
    let each = ids.into_iter().zip(request.jobs);
    let jobs = each.map(|(id, (request, how))| QueuedJob {
        id,
        name: request.spec.name.clone(),
        members: request.spec.array.as_ref().map(|array| array.indexes().to_vec()),
        queue: how.queue.clone(),
    });
    Ok(QueueOutcome::New(QueuedJobs { jobs: jobs.collect(), passage, trouble }))
}

/// What became of a request, if it was answered lately. Where the process has died that was to start its job at once, that
/// job is taken out: nothing has become of it.
pub fn answered(ctx: &Ctx, once: &Once) -> Result<Option<Entered>, Error> {
    let before = once.known(&*ctx.data()?, ctx.clock.now());
    match &before {
        Some(Entered::Before(jobs)) if presence::clear_left(ctx, jobs)? => Ok(None),
        _ => Ok(before),
    }
}

/// Jobs that were put into queues, and what has begun since.
#[derive(Debug)]
pub struct QueuedJobs {
    /// The jobs and groups, in the order of the request.
    pub jobs: Vec<QueuedJob>,
    /// What has begun, of these and of others that waited.
    pub passage: Passage,
    /// Why nothing was looked at that waits, where that is so.
    pub trouble: Option<String>,
}

/// A job or a group that was put into a queue.
#[derive(Debug)]
pub struct QueuedJob {
    /// Its number.
    pub id: JobId,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The members of a group.
    pub members: Option<Vec<u32>>,
    /// Its queue.
    pub queue: QueueName,
}

impl QueuedJobs {
    /// In lines: what was queued, what has started since, and why the first of the rest waits.
    pub fn in_words(&self, ctx: &Ctx) -> Result<Vec<String>, Error> {
        let queued = |job: &QueuedJob| {
            let name = job.name.as_ref().filter(|_| self.jobs.len() > 1);
            let called = name.map(|name| format!("{} {name}", job.id));
            let called = called.unwrap_or_else(|| job.id.to_string());
            match &job.members {
                None => format!("Queued {called} in {}.", job.queue),
                Some(members) => {
                    let jobs = counted(members.len(), "job");
                    format!("Queued {jobs} of group {called} in {}.", job.queue)
                }
            }
        };
        let mut lines: Vec<String> = self.jobs.iter().map(queued).collect();
        lines.extend(self.passage.in_words());
        if self.passage.is_left {
            lines.push(
                "Another process starts what waits at this moment, and sees this too.".to_owned(),
            );
        }
        if let Some(first) = self.first_waiting(ctx)? {
            let data = ctx.data()?;
            let waiting = data.queues().entry(&first).map_or(1, QueueEntry::waiting);
            let standing = standing_of(ctx, &data, &first).ok().flatten();
            if let Some(standing) = standing {
                let why = why(ctx, &standing);
                lines.push(match waiting {
                    1 => format!("It waits: {why}"),
                    waiting => format!("{waiting} wait: {why}"),
                });
                let has_no_place = matches!(standing.waits, Some(WaitReason::NoPlace { .. }));
                let by_cores = has_no_place.then(|| self.by_cores(&data)).flatten();
                if let Some(line) = by_cores {
                    lines.insert(0, line);
                }
            }
        }
        Ok(lines)
    }

    /// How many of several run, where the rest waits because a target has no more cores.
    fn by_cores(&self, data: &Data) -> Option<String> {
        let waits = self.jobs.iter().find_map(|job| data.queues().entry(&job.id))?;
        let total: usize =
            self.jobs.iter().map(|job| job.members.as_ref().map_or(1, Vec::len)).sum();
        let queue = data.queues().queue(&waits.queue);
        let wish = Wish::of_entry(data, waits, queue.as_ref());
        let target = wish.one_machine(data)?;
        let cpus = target.capacity.of_queue().filter(|_| !wish.ask.gpus.is_some())?;
        let at_once = (cpus / wish.ask.cpus.unwrap_or(1)).max(1);
        let is_ours = |entry: &JobId| self.jobs.iter().any(|job| job.id == *entry);
        let begun = self.passage.started.iter().filter(|(entry, ..)| is_ours(entry)).count();
        let name = &target.name;
        (begun > 0 && begun < total).then(|| {
            format!(
                "{begun} of {total} run now ({name} runs {at_once} at a time, one for each core); the others follow. \
                 To change that: tpu hosts set {name} --max-jobs N"
            )
        })
    }

    /// The first of them that still waits.
    pub fn first_waiting(&self, ctx: &Ctx) -> Result<Option<JobId>, Error> {
        let data = ctx.data()?;
        let mut jobs = self.jobs.iter().map(|job| &job.id);
        Ok(jobs.find(|id| data.queues().entry(id).is_some()).cloned())
    }
}
