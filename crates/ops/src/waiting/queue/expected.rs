//! When what waits is expected to begin: what runs is looked at, `plan::expected` plays it on.

use std::collections::HashMap;
use std::ffi::OsString;
use std::time::Duration;

use crate::act::outlook;
use crate::base::queue_entries::awaited::AwaitedEnds;
use crate::base::queue_entries::occupancy;
use crate::observe::snapshot::LookMemory;
use crate::{Ctx, Error};
use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::{JobId, JobNumber, UserName};
use tpu_core::model::job::{Status, Succession};
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::{JobView, Whose};
use tpu_core::plan::expected::{self as plan, Effort, ExpectedStart, Foreseen, Present};

use super::field::{Avoided, Field};
use super::{limits, presence, unbegun, wishes};

/// How far is looked ahead for one entry.
pub const OF_ONE: Effort = Effort(500_000);
/// How far for a list: of many that wait not all that could be said is worth the time.
pub(crate) const OF_LIST: Effort = Effort(20_000);
/// So many instants are worth a look.
const LEAST: usize = 4;
/// So many that ran before say how long one like them runs.
const LIKE_IT: usize = 9;

/// When those of the entries that are wanted are expected to begin.
pub fn expected(
    ctx: &Ctx,
    data: &Data,
    is_wanted: &dyn Fn(&QueueEntry) -> bool,
    effort: Effort,
) -> Result<HashMap<JobId, ExpectedStart>, Error> {
    let entries = &data.queues().entries;
    // Of too many to see beyond the next start nothing is said.
    if !entries.iter().any(is_wanted) || entries.len().saturating_mul(LEAST) > effort.0 {
        return Ok(HashMap::new());
    }
    let look = outlook::look(ctx, &mut LookMemory::default(), &Whose::default())?;
    let present = presence::count_all(ctx, entries);
    let avoided = Avoided::new();
    let field = Field::of(ctx, data, wishes(data, &present), None, &avoided)?;
    let foreseen = foreseen(data, &look.jobs, look.at, &present);
    let present = Present {
        queues: data.queues(),
        at_work: &occupancy::at_work(data, &limits::over(ctx, data)),
        limits: &occupancy::of_users(ctx, data),
        now: ctx.clock.now(),
    };
    Ok(plan::expected(present, &foreseen, &field, is_wanted, effort))
}

/// What the jobs that were seen tell of the time to come.
fn foreseen(data: &Data, jobs: &[JobView], at: Timestamp, present: &[bool]) -> Foreseen {
    let seen = Seen::of(data, jobs, at);
    let mut foreseen = Foreseen::default();
    for job in jobs.iter().filter(|job| job.leaf && job.shown.status == Status::Running) {
        if let Some(left) = seen.remaining_s(job) {
            foreseen.ends.insert(job.id.clone(), at.plus(Duration::from_secs(left)));
        }
    }
    let ends = AwaitedEnds::of_file(data);
    for (entry, is_present) in data.queues().entries.iter().zip(present) {
        let awaits = ends.awaits(entry);
        let awaits = plan::Awaits { is_vain: awaits.is_vain || !is_present, ..awaits };
        if awaits != plan::Awaits::default() {
            foreseen.awaits.insert(entry.id(), awaits);
        }
        if let Some(seconds) = seen.duration_s(entry) {
            foreseen.runs_for.insert(entry.id(), seconds);
        }
    }
    foreseen
}

/// The jobs that were seen, as far as they tell how long others run.
struct Seen<'a> {
    data: &'a Data,
    jobs: HashMap<&'a JobId, &'a JobView>,
    /// When they were seen.
    at: Timestamp,
    /// How long the members of each group ran, the newest last.
    groups: HashMap<JobId, Ran>,
    /// How long a user's jobs of one directory and one program did.
    likes: HashMap<Like, Ran>,
}

/// For how many seconds jobs ran.
#[derive(Clone, Debug, Default)]
struct Ran {
    /// Those that have ended well.
    whole: Vec<u64>,
    /// Those that run, with what is left to them.
    so_far: Vec<u64>,
}

impl Ran {
    /// For how long one more like them will run: as most of the newest did, or will have.
    fn usual_s(&self) -> Option<u64> {
        let known = if self.whole.is_empty() { &self.so_far } else { &self.whole };
        let newest = known.get(known.len().saturating_sub(LIKE_IT)..).unwrap_or_default();
        plan::median_s(newest.to_vec())
    }
}

/// What jobs have in common that run about equally long.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Like {
    user: UserName,
    dir: String,
    program: Option<Vec<OsString>>,
}

impl<'a> Seen<'a> {
    fn of(data: &'a Data, jobs: &'a [JobView], at: Timestamp) -> Self {
        let by_id = jobs.iter().map(|job| (&job.id, job)).collect();
        let (groups, likes) = (HashMap::new(), HashMap::new());
        let mut seen = Self { data, jobs: by_id, at, groups, likes };
        for job in jobs.iter().filter(|job| job.leaf) {
            let is_over = job.shown.status == Status::Finished;
            let Some(before) = seen.lineage_s(job) else { continue };
            let rest = if is_over { Some(0) } else { seen.remaining_s(job) };
            let Some(ran) = rest.map(|rest| before.saturating_add(rest)) else { continue };
            let note =
                |of: &mut Ran| if is_over { &mut of.whole } else { &mut of.so_far }.push(ran);
            if let Some(member) = job.member {
                let group = JobId::new(job.id.user.clone(), member.group);
                note(seen.groups.entry(group).or_default());
            }
            if let Some(record) = data.job(&job.id) {
                let dir = record.staged().map_or(&record.job_dir, |staged| &staged.from);
                note(
                    seen.likes
                        .entry(like(&job.id.user, dir, record.command.as_deref()))
                        .or_default(),
                );
            }
        }
        seen
    }

    /// For how long the attempts of its lineage have run, together.
    fn lineage_s(&self, leaf: &JobView) -> Option<u64> {
        let attempt = |window: &JobNumber| {
            let id = JobId::new(leaf.id.user.clone(), *window);
            self.jobs.get(&id)?.worked_s(self.at)
        };
        // Of attempts that were cleared away nobody knows.
        leaf.lineage.iter().map(attempt).sum()
    }

    /// For how long a job will still run that does.
    fn remaining_s(&self, job: &JobView) -> Option<u64> {
        if job.shown.status != Status::Running || job.shown.unknown.is_some() {
            return None;
        }
        let before = self.data.job(&job.id).and_then(|record| record.father);
        let from = before.map_or(0.0, |father| {
            self.reached(&JobId::new(job.id.user.clone(), father)).unwrap_or_default()
        });
        plan::remaining_s(&job.shown.progress, from, job.worked_s(self.at)?)
    }

    /// The share at which an attempt ended.
    fn reached(&self, job: &JobId) -> Option<f64> {
        self.data.job(job)?.reached.as_ref()?.fraction()
    }

    /// For how long a job of an entry will run: as the other members of its group, else as jobs of the same directory
    /// and program.
    fn duration_s(&self, entry: &QueueEntry) -> Option<u64> {
        let group = entry.spec.member.map_or(entry.number, |member| member.group);
        let group = JobId::new(entry.user.clone(), group);
        let of_group = self.groups.get(&group).and_then(Ran::usual_s);
        let of_like = || {
            let dir = unbegun::dir(self.data, entry);
            let like = like(&entry.user, &dir, entry.spec.command.as_deref());
            self.likes.get(&like).and_then(Ran::usual_s)
        };
        let whole = of_group.or_else(of_like)?;
        let goes_on = entry.succeeds.filter(|of| of.how == Succession::Resume);
        let from = goes_on.and_then(|of| self.reached(&JobId::new(entry.user.clone(), of.job)));
        Some(from.map_or(whole, |from| plan::rest_s(whole, from)))
    }
}

/// What a job has in common with others: of its command the program, which is its first two words, as in
/// `python3 train.py`.
fn like(user: &UserName, dir: &str, command: Option<&[OsString]>) -> Like {
    let is_program = |word: &&OsString| {
        let word = word.to_string_lossy();
        !word.starts_with('-') && !word.contains('=')
    };
    let program = command.map(|words| {
        let program: Vec<OsString> = words.iter().take(2).take_while(is_program).cloned().collect();
        // What a shell is to do is said by its option.
        if program.len() < 2 { words.to_vec() } else { program }
    });
    Like { user: user.clone(), dir: dir.to_owned(), program }
}
