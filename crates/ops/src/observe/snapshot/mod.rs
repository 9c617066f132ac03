//! How jobs are: data + panes + exits + text -> [`JobView`]s, and what their rules answer. What would begin where is not
//! looked for here, so that whatever acts can ask how jobs are.
//!
//! Looking never writes. `observe` finds windows and exits and reads the panes that have changed since
//! the last look, which a [`LookMemory`] remembers.

mod observe;
mod records;
mod spent;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tpu_core::classify::Input;
use tpu_core::model::data::{Data, User};
use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{ErrorKind, RunFact, RunState, Source, TmuxFact, Verdict};
use tpu_core::model::ids::{JobId, JobNumber, TargetName};
use tpu_core::model::job::{Job, Launch, Recovery, Status, StoredVerdict};
use tpu_core::model::lineage;
use tpu_core::model::target::{Machines, Target};
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::{JobView, Snapshot, TmuxHealth, Whose};
use tpu_core::plan::choice::may_go_elsewhere;
use tpu_core::plan::decide::{Decision, Owners, Situation, decide};
use tpu_core::plan::diagnose::{JobFacts, diagnose};
use tpu_core::plan::slots::{self, Tenant};
use tpu_core::plan::{answer, backoff, budget};
use tpu_system::tmux::Look;

use super::fleet::ProviderFacts;
use super::{orphans, runners, worker_processes};
use crate::base::records::may_be_at_work;
use crate::base::{known_as, lease, watch};
use crate::{Ctx, Error};
use observe::{Seen, observe, runs_and_exits};
use records::{OfRecord, OfTarget};
use spent::PricesOf;

pub use observe::LookMemory;

/// Rounds of [`settled`]. Each that is not the last has seen another version of the data.
const ROUNDS: u32 = 4;

/// An answer of the control plane serves so long, where nothing has happened that asks for a new one.
pub const ANSWER_SERVES: Duration = Duration::from_secs(15);

/// However much happens, the control plane is asked no more often than this.
pub const ASKED_AT_MOST: Duration = Duration::from_secs(1);

/// Looks until no end is judged by a record that is older than it.
///
/// Facts are read after the data, so that a new job is not missed in them. A job that ends between the
/// two has told its record first (`finish-job`, then the exit): read too early, the record would make of
/// it a script that ended without a word. `once` says whether it saw such an end.
pub(crate) fn settled<T>(
    ctx: &Ctx,
    mut once: impl FnMut(&Arc<Data>, &Look<'_>) -> Result<(T, bool), Error>,
) -> Result<T, Error> {
    let mut data = ctx.data()?;
    let mut round = 1;
    loop {
        fail::fail_point!("look-read");
        let (seen, has_ended) = once(&data, &ctx.tmux.look_to_read())?;
        if !has_ended || round == ROUNDS {
            return Ok(seen);
        }
        let newer = ctx.data()?;
        if Arc::ptr_eq(&data, &newer) {
            return Ok(seen);
        }
        data = newer;
        round += 1;
    }
}

/// What a look found. What could begin where is not looked for here: `outlook` says it, and what follows from it.
pub(crate) struct Looked {
    pub(crate) snapshot: Snapshot,
    /// One for each of its jobs, in its order.
    pub(crate) decisions: Vec<Decision>,
    pub(crate) known: Known,
    /// Whether a job has ended whose record says otherwise.
    pub(crate) has_ended: bool,
}

/// What a look found of one job.
pub(crate) struct LookedAt {
    pub(crate) view: JobView,
    pub(crate) decision: Decision,
    pub(crate) known: Known,
    /// Whether it has ended and its record says otherwise.
    pub(crate) has_ended: bool,
}

/// What a look knew beside the jobs.
pub(crate) struct Known {
    /// The records that it saw.
    pub(crate) data: Arc<Data>,
    /// What was said about the targets.
    pub(crate) fleet: Arc<ProviderFacts>,
    /// The daemon that runs, as it says of itself.
    pub(crate) monitor: Option<watch::Note>,
    /// The control plane that answered, in words.
    pub(crate) cloud: String,
    /// When it looked.
    pub(crate) now: Timestamp,
}

/// One look at somebody's jobs, on an answer of the control plane that is younger than `age`.
pub(crate) fn look_once(
    ctx: &Ctx,
    memory: &mut LookMemory,
    whose: &Whose,
    (data, tmux, age): (&Arc<Data>, &Look<'_>, Duration),
) -> Result<Looked, Error> {
    for name in whose.named() {
        crate::base::ctx::user_of(data, name)?;
    }
    let scope = |u: &User| whose.includes(&u.name);
    let jobs: Vec<(&User, &Job)> = data
        .users()
        .iter()
        .filter(|u| scope(u))
        .flat_map(|u| u.jobs().iter().map(move |job| (u, job)))
        .collect();
    // Providers and what runs the jobs are asked side by side: silence of both is waited for once.
    let since = memory.ask_ahead(ctx, age);
    let seen = observe(ctx, memory, &jobs, tmux);
    let fleet = memory.fleet(ctx, (age, since));
    let now = ctx.clock.now();
    let has_ended = jobs.iter().zip(&seen).any(|((_, job), seen)| seen.has_ended(job));
    let (monitor, cloud) = (watch::running(ctx), ctx.usual_provider());
    let records = memory.records.of(data, whose, &jobs, &ctx.env.local_zone());
    let prices = PricesOf::users(ctx, data.users().iter().filter(|u| scope(u)));
    let viewer = Viewer { ctx, data, now, fleet: &fleet, prices };
    let found = jobs.iter().zip(records.iter()).zip(&seen);
    let (mut views, decisions): (Vec<JobView>, _) =
        found.map(|(((_, job), record), seen)| viewer.view(job, record, seen)).unzip();
    spent::add_up(&mut views);
    let orphans = match &tmux.fact {
        TmuxFact::Up { panes, .. } => {
            orphans::listed(ctx, data, data.users().iter().filter(|u| scope(u)), panes)
        }
        TmuxFact::Down { .. } | TmuxFact::Unknown { .. } => Vec::new(),
    };
    let snapshot = Snapshot {
        at: now,
        whose: whose.clone(),
        users: data.users().iter().map(|user| user.name.clone()).collect(),
        jobs: views,
        orphans,
        tmux: match &tmux.fact {
            TmuxFact::Up { .. } => TmuxHealth::Up,
            TmuxFact::Down { .. } => TmuxHealth::Down,
            TmuxFact::Unknown { reason } => TmuxHealth::Unknown(reason.clone()),
        },
        monitor: watch::health_of(ctx, monitor.as_ref()),
    };
    let known = Known { data: Arc::clone(data), fleet, monitor, cloud, now };
    Ok(Looked { snapshot, decisions, known, has_ended })
}

/// One look at one job. What the providers say is remembered.
pub(crate) fn look_once_at(
    ctx: &Ctx,
    id: &JobId,
    memory: &mut LookMemory,
    (data, tmux): (&Arc<Data>, &Look<'_>),
) -> Result<LookedAt, Error> {
    let job = crate::base::ctx::job_of(data, id)?;
    let user = crate::base::ctx::user_of(data, &id.user)?;
    let since = memory.ask_ahead(ctx, ANSWER_SERVES);
    let seen = observe(ctx, &mut LookMemory::default(), &[(user, job)], tmux);
    let seen = seen.first().expect("one job in, one observation out");
    let fleet = memory.fleet(ctx, (ANSWER_SERVES, since));
    let (monitor, cloud) = (watch::running(ctx), ctx.usual_provider());
    let now = ctx.clock.now();
    let prices = PricesOf::users(ctx, [user].into_iter());
    let viewer = Viewer { ctx, data, now, fleet: &fleet, prices };
    let record = OfRecord::of(data, user, job, &ctx.env.local_zone());
    let (view, decision) = viewer.view(job, &record, seen);
    let has_ended = seen.has_ended(job);
    let known = Known { data: Arc::clone(data), fleet, monitor, cloud, now };
    Ok(LookedAt { view, decision, known, has_ended })
}

/// One look at jobs that engines have, before they are stopped. No provider is asked.
pub(crate) fn look_at_engines(
    ctx: &Ctx,
    data: &Data,
    jobs: &[(&User, &Job)],
) -> Vec<(JobView, Decision)> {
    let seen = observe(ctx, &mut LookMemory::patient(), jobs, &ctx.tmux.look_to_read());
    let prices = PricesOf::users(ctx, jobs.iter().map(|(user, _)| *user));
    let (fleet, now) = (ProviderFacts::unasked(ctx), ctx.clock.now());
    let viewer = Viewer { ctx, data, now, fleet: &fleet, prices };
    let zone = ctx.env.local_zone();
    let view = |((user, job), seen): (&(&User, &Job), &Seen)| {
        viewer.view(job, &OfRecord::of(data, user, job, &zone), seen)
    };
    jobs.iter().zip(&seen).map(view).collect()
}

/// Who claims a target: by the facts alive, and by the facts dead.
#[derive(Clone, Debug, Default)]
pub(crate) struct TargetUsers {
    /// Jobs at work there, or of which nothing certain is known.
    pub live: Vec<JobId>,
    /// Jobs whose records look live and whose facts say that they are over.
    pub dead: Vec<JobId>,
    /// Jobs from which the target was taken, by its control plane's word, and of which something may still
    /// run here: they use nothing of it, and nothing begins beside them.
    pub left: Vec<JobId>,
}

impl TargetUsers {
    /// The jobs beside which nothing new begins: those at work, and those of which something is left.
    pub(crate) fn present(self) -> Vec<JobId> {
        let Self { mut live, left, .. } = self;
        live.extend(left);
        live
    }
}

/// Sorts the jobs whose records claim `target` into living and dead.
pub(crate) fn users_of_target(ctx: &Ctx, data: &Data, target: &TargetName) -> TargetUsers {
    let mut all = users_of_targets(ctx, data, |job| job.tpu == *target);
    all.remove(target).unwrap_or_default()
}

/// The same for every target that a record claims, of the records that `counts` lets count.
pub(crate) fn users_of_targets(
    ctx: &Ctx,
    data: &Data,
    counts: impl Fn(&Job) -> bool,
) -> HashMap<TargetName, TargetUsers> {
    let claims: Vec<(&User, &Job)> = data
        .users()
        .iter()
        .flat_map(|user| user.jobs().iter().map(move |job| (user, job)))
        .filter(|(_, job)| counts(job))
        .filter(|(_, job)| {
            job.status.is_live()
                || may_be_at_work(job)
                || worker_processes::may_live(ctx, data, job)
        })
        .collect();
    let mut targets: HashMap<TargetName, TargetUsers> = HashMap::new();
    if claims.is_empty() {
        return targets;
    }
    // No text: a failure in it does not free the device, and an end is an end without it.
    let tmux = ctx.tmux.look();
    let seen = runs_and_exits(ctx, &claims, &tmux);
    for ((_, job), seen) in claims.iter().zip(&seen) {
        let users = targets.entry(job.tpu.clone()).or_default();
        let has_left = || !seen.at.run.is_over() || has_processes(ctx, data, job);
        let list = if was_taken(job) && seen.at.run.exit.is_none() && has_left() {
            &mut users.left
        } else if has_ended(ctx, data, job, seen) {
            &mut users.dead
        } else {
            &mut users.live
        };
        list.push(job.id());
    }
    targets
}

/// Whether a job is over for certain: nothing of it is at work any more, here or on its workers.
pub fn is_over(ctx: &Ctx, data: &Data, job: &Job) -> bool {
    let Ok(user) = crate::base::ctx::user_of(data, &job.user) else { return false };
    let tmux = ctx.tmux.look();
    let seen = runs_and_exits(ctx, &[(user, job)], &tmux);
    seen.first().is_some_and(|seen| has_ended(ctx, data, job, seen))
}

fn has_ended(ctx: &Ctx, data: &Data, job: &Job, seen: &Seen) -> bool {
    // What has outlived its window holds the device as well as any.
    if seen.at.run.exit.is_none() && seen.at.run.is_over() && has_processes(ctx, data, job) {
        return false;
    }
    let shown = diagnose(job, &seen.facts(ctx.clock.now()));
    // A program whose text shows a failure may still hold the device: only its end frees it.
    !shown.status.is_live()
        && (seen.at.run.exit.is_some() || seen.at.run.is_over() && !is_being_opened(job))
        && !worker_processes::may_live(ctx, data, job)
}

/// Whether the target was taken from a job for certain.
fn was_taken(job: &Job) -> bool {
    job.status == Status::Error(ErrorKind::Preempted) && answer::was_proven(job)
}

/// The directory by which people know a job.
fn directory<'a>(data: &'a Data, job: &'a Job, lineage: &[JobNumber]) -> &'a str {
    let attempts = lineage.iter().rev().skip_while(|window| **window != job.windows_id).skip(1);
    let Some(user) = data.user(&job.user) else { return &job.job_dir };
    lineage::known_directory(user, job, attempts.filter_map(|window| user.job(*window)))
}

/// Whether a launch is neither confirmed nor given up: whatever a clock says of its age, its launcher would
/// be let through.
fn is_being_opened(job: &Job) -> bool {
    let is_open = |launch: &Launch| !launch.confirmed && launch.ended.is_none();
    job.status.is_live() && job.launch.as_ref().is_some_and(is_open)
}

/// Whether processes of a job live on this machine. Where that cannot be told, they may.
fn has_processes(ctx: &Ctx, data: &Data, job: &Job) -> bool {
    job.launch.is_some()
        && runners::processes(ctx, data, job).map_or(true, |found| !found.is_empty())
}

/// Characters of output that decide the status of a user's jobs, where they reach further back than what is
/// read anyway: the setting `monitor_length`.
pub fn reach(ctx: &Ctx, user: &User) -> u32 {
    ctx.settings(Some(user)).unwrap_or_default().monitor_length
}

/// What a text of a job says: the one way from text to verdict. `text` is what was read of its pane since the
/// launch, or of its log; `exit` is how the job has ended, if it has; `reach` is its user's [`reach`].
pub(crate) fn read_text(
    ctx: &Ctx,
    job: &Job,
    text: &[u8],
    (exit, reach): (Option<Exit>, u32),
) -> Verdict {
    // While a job runs, a line that looks like our end line was printed by the job itself.
    let ended = job.launch.is_some() && exit.is_some();
    let id = job.id().to_string();
    let text = if ended { tpu_core::classify::before_end(text, &id) } else { text };
    ctx.classifier().classify(&Input { text, exit, api_state: None, reach })
}

/// What every view of one look shares.
struct Viewer<'a> {
    ctx: &'a Ctx,
    data: &'a Data,
    now: Timestamp,
    fleet: &'a ProviderFacts,
    prices: PricesOf,
}

impl Viewer<'_> {
    /// For how long its user wants infrastructure to be waited for; that matters only to what was brought back before.
    fn patience_s(&self, job: &Job) -> u64 {
        let is_asked = |of: &Recovery| !of.is_over() && job.child.is_none();
        if !job.recovery.as_deref().is_some_and(is_asked) {
            return 0;
        }
        self.ctx.settings(self.data.user(&job.user)).unwrap_or_default().patience_s()
    }

    /// Puts a record and what was observed together, and decides about it. What is next of it is left open.
    fn view(&self, job: &Job, record: &OfRecord, seen: &Seen) -> (JobView, Decision) {
        let Self { ctx, data, now, .. } = *self;
        let OfRecord { lineage, started_at, target } = record;
        let OfTarget { known, label } = &**target;
        let target = self.fleet.fact_of(data, &job.tpu, known.as_ref());
        let facts = JobFacts { target: Some(&target), ..seen.facts(now) };
        let shown = diagnose(job, &facts);
        let ended = job.launch.as_ref().and_then(|launch| launch.ended);
        let account = runners::other_account(ctx, job);
        let decision = decide(&Situation {
            job,
            lineage,
            shown: &shown,
            facts: &facts,
            looked_at: now,
            rivals: &rivals(data, job, lineage),
            me: None,
            owners: Owners {
                lease: job.lease.as_ref().and_then(|l| lease::is_alive(ctx, &l.owner)),
                intent: job.intent.as_ref().and_then(|i| lease::is_alive(ctx, &i.by)),
                target: None,
                account: account.as_deref(),
            },
            // Only what has failed is brought back, and most has not.
            jitter: shown.status.failure().map_or(0.0, |_| backoff::jitter_of(job)),
            patience_s: shown.status.failure().map_or(0, |_| self.patience_s(job)),
        });
        let age_s = started_at.map(|start| ended.unwrap_or(now).seconds_since(start));
        let launch = job.launch.as_ref();
        let worked = launch.and_then(|launch| launch.worked_by(&seen.at.run, now));
        let worked_s = spent::worked_s((data, job), (*started_at, worked.as_deref()), &shown, now);
        let view = JobView {
            id: job.id(),
            leaf: job.child.is_none(),
            dir: (job.job_dir_id, directory(data, job, lineage).to_owned()),
            lineage: lineage.clone(),
            target: job.tpu.clone(),
            kind: known.as_ref().map(|target| target.kind.clone()).unwrap_or_default(),
            target_label: label.clone(),
            target_unknown: if shown.status.is_live() {
                self.fleet.doubt(data, &target, now)
            } else {
                None
            },
            machines: job.engine.as_ref().map_or(target.machines, |_| Machines::Engine),
            share: job.share.clone(),
            zone: known.as_ref().and_then(|target| target.zone.clone()),
            name: job.name().map(str::to_owned),
            runs: known_as::runs(job),
            title: None,
            member: job.member(),
            tags: job.job_tags.clone(),
            stored: job.status.clone(),
            stage: job.stage,
            from_step: job.launch.as_ref().and_then(Launch::from_step),
            restarts: job.restarts().max(seen.at.run.restarts),
            rules: job.rules.clone(),
            monitor: job.monitor,
            next: None,
            needs_person: job.child.is_none() && job.needs_person(),
            started_at: *started_at,
            ended_at: ended.filter(|_| !shown.status.is_live()),
            age_s,
            waited_s: spent::waited_s(job, worked.as_deref(), now),
            cost: self.prices.cost(job, known.as_ref(), worked_s),
            worked,
            log_dir: job.log_dir.clone(),
            stage_dir: job.stage_dir.clone(),
            exit: seen.at.run.exit,
            window_alive: match seen.at.run.state {
                RunState::Pending | RunState::Starting | RunState::Running => Some(true),
                RunState::Ended | RunState::Gone => Some(false),
                RunState::Elsewhere | RunState::Unknown => None,
            },
            pane_id: seen.at.pane.clone(),
            tail: Arc::clone(&seen.tail),
            nodes: seen.at.run.nodes.clone(),
            raw: raw_of(&seen.at.run),
            gpus: gpus_of(job),
            configs: job.extra_configs.clone(),
            intent: job.intent.as_ref().map(|intent| intent.action.clone()),
            shown,
        };
        (view, decision)
    }
}

/// The word of the engine that has a run, if one has.
fn raw_of(run: &RunFact) -> Option<String> {
    (run.source == Source::Engine && !run.raw.is_empty()).then(|| run.raw.to_string())
}

/// How many GPUs a job was given, else how many it asks for.
fn gpus_of(job: &Job) -> Option<u32> {
    let given = job.share.as_ref().and_then(|share| share.gpus.as_ref());
    let given = given.and_then(|gpus| u32::try_from(gpus.len()).ok());
    given.or_else(|| job.spec.as_ref()?.ask.gpus.count())
}

/// Jobs of other lineages whose records claim the target of `job`, if they leave it no room: those at work, and those
/// that have failed, may be at work still, and that nobody brings back. What is brought back is stopped then.
fn rivals(data: &Data, job: &Job, lineage: &[JobNumber]) -> Vec<JobId> {
    if !matches!(job.status, Status::Error(_)) {
        return Vec::new();
    }
    // One that was lost with its machine may go on on another one: that is found out when it begins.
    let is_elsewhere =
        |target: &Target| job.status.error().is_some_and(|kind| may_go_elsewhere(target, kind));
    let target = data.target(&job.tpu).filter(|target| !target.capacity.is_unlimited());
    let Some(target) = target.filter(|target| !is_elsewhere(target)) else {
        return Vec::new();
    };
    let holds =
        |other: &Job| other.status.is_live() || may_be_at_work(other) && !budget::comes_back(other);
    let tenants: Vec<Tenant<'_>> = data
        .jobs()
        .filter(|other| other.tpu == job.tpu && holds(other))
        .filter(|other| other.user != job.user || !lineage.contains(&other.windows_id))
        .map(|other| Tenant { job: other.id(), share: other.share.as_ref() })
        .collect();
    let ask = job.spec.as_ref().map(|spec| spec.ask.clone()).unwrap_or_default();
    match slots::give(&target.capacity, &tenants, &BTreeMap::new(), &ask, false) {
        Ok(_) => Vec::new(),
        Err(_) => tenants.into_iter().map(|tenant| tenant.job).collect(),
    }
}

/// The failure that the facts show and the record does not hold yet.
pub(crate) fn unrecorded_failure(view: &JobView) -> Option<(ErrorKind, StoredVerdict)> {
    let kind = view.failure()?;
    (view.stored != view.shown.status)
        .then(|| (kind, StoredVerdict::new(kind, view.shown.evidence.as_ref())))
}
