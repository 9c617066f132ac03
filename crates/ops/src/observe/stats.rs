//! Statistics of what ran: gathers attempts from records and archive and what the journal adds to them, and has them
//! counted ([`tpu_core::plan::stats`]). It reads each once, writes nothing, and asks nobody.
//!
//! A record knows when its launch was claimed and, mostly, when it ended. The journal knows the rest as far as it reaches
//! back: since when a job had been queued, when an end was noticed that nobody reported, which attempt began from scratch,
//! and how long targets were waited for.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::tz::TimeZone;

use tpu_core::model::accelerators;
use tpu_core::model::data::Data;
use tpu_core::model::ids::{JobId, JobNumber, TargetName, UserName};
use tpu_core::model::job::Job;
use tpu_core::model::prices::{self, Prices};
use tpu_core::model::target::Pricing;
use tpu_core::model::time::{Timestamp, Zone};
use tpu_core::model::view::Whose;
use tpu_core::plan::stats::run::{self, CapacityWait, Past, PastRun, Period, RanOn, RunOutcome};
use tpu_core::plan::stats::{By, Stats, stats};
use tpu_core::plan::types;
use tpu_system::store::{Archived, AttemptId, Event};

use super::{archive, at_work, wake};
use crate::base::queue_entries::{BECOME, RENUMBERED};
use crate::{Ctx, Error};

/// What is asked.
#[derive(Clone, Debug)]
pub struct StatsRequest {
    /// Whose.
    pub whose: Whose,
    /// What rows stand for.
    pub by: By,
    /// From this instant on.
    pub since: Option<Timestamp>,
    /// Up to this one; up to now without.
    pub until: Option<Timestamp>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct StatsReport {
    /// What rows stand for.
    pub by: By,
    /// The part of time that was counted.
    pub period: Period,
    /// The figures.
    pub stats: Stats,
    /// Attempts of which nobody knows when they ended: their hours are in no row.
    pub endless: u32,
    /// How far the journal reaches back; what it alone knows is not known of earlier times.
    pub journal_since: Option<Timestamp>,
}

/// What was gathered for one who counts again and again. It is read anew only once something has changed.
#[derive(Default)]
pub struct StatsMemory(Option<(u64, Gathered)>);

/// Counts what ran.
pub fn report(ctx: &Ctx, request: &StatsRequest, zone: &Zone) -> Result<StatsReport, Error> {
    report_from(ctx, &mut StatsMemory::default(), request, zone)
}

/// The same for one who has counted before: where neither the data nor the journal nor the archive has changed, nothing
/// is read.
pub fn report_from(
    ctx: &Ctx,
    memory: &mut StatsMemory,
    request: &StatsRequest,
    zone: &Zone,
) -> Result<StatsReport, Error> {
    // The mark is taken first: what changes while all this is read is read the next time.
    let mark = wake::history(ctx);
    let gathered = match memory.0.take().filter(|(known, _)| *known == mark) {
        Some((_, gathered)) => gathered,
        None => with_begun(ctx, gather(ctx, usize::MAX)?)?,
    };
    let (_, gathered) = memory.0.insert((mark, gathered));
    let now = ctx.clock.now();
    let until = request.until.map_or(now, |until| until.min(now));
    let period = Period { since: request.since, until };
    let past = gathered.past.of(&request.whose);
    let stats = stats(&past, request.by, &period, zone);
    let endless = gathered.endless.iter().filter(|id| request.whose.includes(&id.user)).count();
    Ok(StatsReport {
        by: request.by,
        period,
        stats,
        endless: u32::try_from(endless).unwrap_or(u32::MAX),
        journal_since: gathered.journal_since,
    })
}

/// What was gathered.
pub(super) struct Gathered {
    pub(super) past: Past,
    /// Attempts of which nobody knows when they ended.
    endless: Vec<JobId>,
    journal_since: Option<Timestamp>,
}

/// Everything that ran, as far as anybody remembers; of the archive no more than its newest so many records.
pub(super) fn gather(ctx: &Ctx, most_archived: usize) -> Result<Gathered, Error> {
    let data = ctx.data()?;
    let journal = Journal::read(ctx)?;
    let mut known =
        Known { ctx, data: &data, journal: &journal, on: HashMap::new(), prices: HashMap::new() };
    let zone = ctx.env.local_zone();
    let mut runs = Vec::new();
    for told in data.jobs().filter_map(|job| ToldRun::of(job, &zone)) {
        runs.push(known.run(told, None)?);
    }
    // What was brought back, or was on its way to the archive when somebody died, is in both.
    let seen = data.jobs().map(AttemptId::of).collect();
    let told = move |archived: Archived| (archived.at, ToldRun::of(&archived.job, &zone));
    for archived in ctx.store.archived_beside(seen, told).take(most_archived) {
        let (at, told) = archived?;
        if let Some(told) = told {
            runs.push(known.run(told, Some(at))?);
        }
    }
    let endless = ended_by_their_successors(&mut runs);
    let capacity = journal.capacity;
    Ok(Gathered { past: Past { runs, capacity }, endless, journal_since: journal.since })
}

/// The same with what engines have begun since the records were written.
fn with_begun(ctx: &Ctx, mut gathered: Gathered) -> Result<Gathered, Error> {
    let data = ctx.data()?;
    let mut begun = at_work::of_waiting(ctx, &data, data.jobs());
    for run in gathered.past.runs.iter_mut().filter(|run| run.outcome == RunOutcome::AtWork) {
        if let Some(worked) = begun.remove(&run.id) {
            run.worked = Some(worked);
        }
    }
    Ok(gathered)
}

/// What a record alone says of its attempt.
struct ToldRun {
    run: PastRun,
    /// The group of which it is a member.
    group: Option<JobId>,
    /// Whether it had a part of its target.
    is_part: bool,
}

impl ToldRun {
    /// What this record says; `None` of one that never began.
    fn of(job: &Job, zone: &TimeZone) -> Option<Self> {
        let began = archive::began_in(zone, job)?;
        Some(Self {
            run: PastRun::of(job, began),
            group: job.member().map(|member| JobId::new(job.user.clone(), member.group)),
            is_part: job.share.is_some(),
        })
    }
}

/// Where nothing says when an attempt ended, it did when the next one of its lineage began. Those of which not even that
/// is known are taken out.
fn ended_by_their_successors(runs: &mut Vec<PastRun>) -> Vec<JobId> {
    let is_open = |run: &PastRun| run.ended.is_none() && run.outcome != RunOutcome::AtWork;
    let mut begins: HashMap<JobId, Timestamp> = HashMap::new();
    for run in runs.iter() {
        if let Some(father) = run.father {
            begins.insert(JobId::new(run.id.user.clone(), father), run.began);
        }
    }
    for run in runs.iter_mut().filter(|run| is_open(run)) {
        run.ended = begins.get(&run.id).copied().filter(|at| *at >= run.began);
    }
    let endless = runs.iter().filter(|run| is_open(run)).map(|run| run.id.clone()).collect();
    runs.retain(|run| !is_open(run));
    endless
}

/// What is looked up for many attempts.
struct Known<'a> {
    ctx: &'a Ctx,
    data: &'a Data,
    journal: &'a Journal,
    on: HashMap<TargetName, Arc<RanOn>>,
    prices: HashMap<UserName, Prices>,
}

impl Known<'_> {
    /// The attempt of a record, with the instant at which it was archived if it was.
    fn run(&mut self, told: ToldRun, archived: Option<Timestamp>) -> Result<PastRun, Error> {
        let ToldRun { mut run, group, is_part } = told;
        let began = run.began;
        let noted = self.journal.ran_on(&run.id, began);
        run.on = noted.unwrap_or_else(|| self.on(&run.on.target));
        let noticed = self.journal.ended(&run.id, began);
        run.ended = match (run.ended, noticed) {
            (Some(ended), Some(noticed)) => Some(ended.min(noticed).max(began)),
            (ended, noticed) => ended.or(noticed).map(|ended| ended.max(began)),
        };
        if run.outcome == RunOutcome::AtWork {
            match archived {
                // Nobody looks at it any more.
                Some(at) => {
                    run.outcome = RunOutcome::Stopped;
                    run.ended = run.ended.or(Some(at.max(began)));
                }
                None => run.ended = None,
            }
        }
        run.is_from_nothing |= self.journal.says_from_nothing(&run.id, began);
        let since = self.journal.since_queued(&run.id, group.as_ref());
        if run.father.is_none() || since.is_some() {
            run.waited_s = self.journal.waited(since.unwrap_or_default(), began);
        }
        run.per_hour = if is_part { None } else { self.per_hour(&run)? };
        Ok(run)
    }

    fn on(&mut self, name: &TargetName) -> Arc<RanOn> {
        if let Some(known) = self.on.get(name) {
            return Arc::clone(known);
        }
        let target = self.data.target(name);
        let target = target.as_ref();
        let on = Arc::new(RanOn {
            target: name.clone(),
            accelerator: target
                .and_then(|target| target.accelerator.clone())
                .or_else(|| types::guess(name.as_str())),
            zone: target.and_then(|target| target.zone.clone()),
            kind: target.map(|target| target.kind.as_str().to_owned()),
            pricing: target.map(|target| target.pricing),
        });
        self.on.insert(name.clone(), Arc::clone(&on));
        on
    }

    /// What an hour costs by the settings of its owner. Nobody says what a part of a machine costs.
    fn per_hour(&mut self, run: &PastRun) -> Result<Option<f64>, Error> {
        let user = &run.id.user;
        if !self.prices.contains_key(user) {
            let settings = self.ctx.settings(self.data.user(user))?;
            self.prices.insert(user.clone(), settings.prices);
        }
        let (Some(accelerator), Some(pricing)) = (&run.on.accelerator, run.on.pricing) else {
            return Ok(None);
        };
        let of = (accelerator.as_str(), accelerators::chips(accelerator));
        Ok(self.prices.get(user).and_then(|table| prices::per_hour(table, of, pricing)))
    }
}

/// The kind of the events about waits for targets.
pub(super) const WAITED: &str = "waited";
/// The kind of the event by which a job enters a queue.
const QUEUED: &str = "queued";
/// Events by which an attempt is over: its end, or what is done about it.
const ENDS: [&str; 6] = ["error", "killed", "finished", "reapply", "wait", "restart"];
/// Events after which it goes on, whatever was said before.
const GOES_ON: [&str; 2] = ["progress", "ignored"];

/// What the journal knows of attempts.
#[derive(Default)]
struct Journal {
    since: Option<Timestamp>,
    /// When jobs and groups were queued.
    queued: HashMap<JobId, Vec<Timestamp>>,
    /// Ends, and what took them back (`false`), by job, in the order in which they happened.
    ends: HashMap<JobId, Vec<(Timestamp, bool)>>,
    /// Attempts that began from scratch.
    from_nothing: HashMap<JobId, Vec<Timestamp>>,
    /// On what attempts began, as that was then.
    on: HashMap<JobId, Vec<(Timestamp, Arc<RanOn>)>>,
    capacity: Vec<CapacityWait>,
}

impl Journal {
    fn read(ctx: &Ctx) -> Result<Self, Error> {
        let kinds: Vec<&str> = [QUEUED, RENUMBERED, WAITED]
            .into_iter()
            .chain(ENDS)
            .chain(GOES_ON)
            .chain(run::BEGINS)
            .collect();
        let mut journal = Self { since: ctx.store.journal_begins()?, ..Self::default() };
        let mut renumbered = Vec::new();
        // Thousands begin on the same few.
        let mut known: HashMap<String, Arc<RanOn>> = HashMap::new();
        for event in ctx.store.events_of(&kinds) {
            let event = event?;
            let (Some(user), Some(number)) = (&event.user, event.job) else { continue };
            let id = JobId::new(user.clone(), number);
            if let Some(on) = ran_on(&event.data) {
                let on = known.entry(event.data.to_string()).or_insert_with(|| Arc::new(on));
                let all = journal.on.entry(id.clone()).or_default();
                all.push((event.at, Arc::clone(on)));
            }
            match event.kind.as_str() {
                QUEUED => journal.queued.entry(id).or_default().push(event.at),
                RENUMBERED => renumbered.extend(becomes(&event).map(|to| (id, to))),
                WAITED => journal.capacity.extend(capacity(id, &event)),
                kind if ENDS.contains(&kind) => {
                    journal.ends.entry(id).or_default().push((event.at, true));
                }
                kind if GOES_ON.contains(&kind) => {
                    journal.ends.entry(id).or_default().push((event.at, false));
                }
                kind if run::begins_anew(kind) || event.text.ends_with("from nothing") => {
                    journal.from_nothing.entry(id).or_default().push(event.at);
                }
                _ => {}
            }
        }
        for (from, to) in renumbered {
            if let Some(since) = journal.queued.get(&from).cloned() {
                journal.queued.entry(to).or_default().extend(since);
            }
        }
        journal.queued.values_mut().for_each(|all| all.sort_unstable());
        journal.ends.values_mut().for_each(|all| all.reverse());
        Ok(journal)
    }

    /// When an attempt of which nobody reported the end was seen to be over.
    fn ended(&self, id: &JobId, began: Timestamp) -> Option<Timestamp> {
        let mut ended = None;
        let marks = self.ends.get(id)?.iter().filter(|(at, _)| *at >= began);
        for (at, is_end) in marks {
            match is_end {
                true => ended = ended.or(Some(*at)),
                false => ended = None,
            }
        }
        ended
    }

    /// On what an attempt began, if that was written down then.
    fn ran_on(&self, id: &JobId, began: Timestamp) -> Option<Arc<RanOn>> {
        let at = |at: &Timestamp| at.as_second().abs_diff(began.as_second());
        let nearest = self.on.get(id)?.iter().min_by_key(|(noted, _)| at(noted))?;
        // Its claim and the line about it are of one transaction.
        (at(&nearest.0) <= 60).then(|| Arc::clone(&nearest.1))
    }

    /// Whether it is said that an attempt began from scratch.
    fn says_from_nothing(&self, id: &JobId, began: Timestamp) -> bool {
        // Its claim and the line about it are of one transaction.
        let all = self.from_nothing.get(id).map(Vec::as_slice).unwrap_or_default();
        all.iter().any(|at| at.as_second().abs_diff(began.as_second()) <= 60)
    }

    /// When an attempt, or its group, was queued; `None` if neither ever was.
    fn since_queued(&self, id: &JobId, group: Option<&JobId>) -> Option<&[Timestamp]> {
        let of_group = group.and_then(|group| self.queued.get(group));
        self.queued.get(id).or(of_group).map(Vec::as_slice)
    }

    /// How long it waited in the queue since then; `None` of one that began before the journal.
    fn waited(&self, since: &[Timestamp], began: Timestamp) -> Option<u64> {
        if let Some(queued) = since.iter().rev().find(|queued| **queued <= began) {
            return Some(began.seconds_since(*queued));
        }
        self.since.is_some_and(|since| since <= began).then_some(0)
    }
}

/// The number under which an entry began.
pub(crate) fn becomes(event: &Event) -> Option<JobId> {
    let to = event.text.strip_prefix(BECOME)?.split(':').next()?;
    let number = to.rsplit('/').next()?.parse().ok()?;
    Some(JobId::new(event.user.clone()?, JobNumber(number)))
}

/// What the line about a beginning says of its target.
fn ran_on(data: &serde_json::Value) -> Option<RanOn> {
    let text = |key: &str| data.get(key)?.as_str().map(str::to_owned);
    Some(RanOn {
        target: TargetName::from(data.get("target")?.as_str()?),
        accelerator: text("type").or_else(|| types::guess(data.get("target")?.as_str()?)),
        zone: text("zone"),
        kind: text("kind"),
        pricing: text("pricing").and_then(|word| Pricing::parse(&word)),
    })
}

fn capacity(job: JobId, event: &Event) -> Option<CapacityWait> {
    let text = |key: &str| event.data.get(key)?.as_str().map(str::to_owned);
    Some(CapacityWait {
        at: event.at,
        job,
        accelerator: text("type")?,
        zone: text("zone")?,
        pricing: Pricing::parse(&text("pricing")?),
        waited_s: event.data.get("waited_s")?.as_u64()?,
        came: event.data.get("came")?.as_bool()?,
    })
}
