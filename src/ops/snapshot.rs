//! One look at everything: data + panes + exits + text -> [`JobView`]s. The screen, `check`, `--json` and
//! MONITOR all show what this returns; none computes a status of its own.
//!
//! Looking never writes. A [`Memory`] keeps what was read of each pane, so that a refresh captures only
//! panes that changed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::classify::{Classifier, Input};
use crate::model::data::{Data, User};
use crate::model::facts::{Class, PaneFact, TmuxFact, Verdict};
use crate::model::ids::{JobId, TargetName, UserName};
use crate::model::job::{Job, StartTime, Status};
use crate::model::lineage::Lineage;
use crate::model::time::Timestamp;
use crate::model::view::{JobView, MonitorHealth, Orphan, Shown, Snapshot, TmuxHealth};
use crate::plan::diagnose::{Facts, diagnose};
use crate::plan::next;
use crate::plan::place::{self, Window};
use crate::tmux::Capture;

use super::{Ctx, Error, records};

/// Lines of a pane that a refresh reads first.
const TAIL: u32 = 70;

/// Lines that are read when the tail does not decide.
const WIDE: u32 = 2_000;

/// Last lines of a pane that a view carries.
const SHOWN_LINES: usize = 40;

/// What was read of a pane, as long as the pane has not changed since.
#[derive(Clone, Debug)]
struct Reading {
    fingerprint: Fingerprint,
    verdict: Verdict,
    tail: Vec<String>,
}

/// Changes when a pane prints or its job ends.
type Fingerprint = (u32, u64, u64, u32, u32, Option<i32>);

/// What earlier looks have read. An empty one makes the first look a full one.
#[derive(Debug, Default)]
pub struct Memory {
    readings: HashMap<String, Reading>,
    data: Option<Arc<Data>>,
}

/// Rounds of [`settled`]. Each that is not the last has seen another version of the data.
const ROUNDS: u32 = 4;

/// Looks until no end is judged by a record that is older than it.
///
/// Facts are read after the data, so that a new job is not missed in them. A job that ends between the
/// two has told its record first (`finish-job`, then the exit): read too early, the record would make of
/// it a script that ended without a word. `once` says whether it saw such an end.
fn settled<T>(
    ctx: &Ctx,
    mut once: impl FnMut(&Arc<Data>, &TmuxFact) -> Result<(T, bool), Error>,
) -> Result<T, Error> {
    let mut data = ctx.data()?;
    let mut round = 1;
    loop {
        fail::fail_point!("look-read");
        let (seen, has_ended) = once(&data, &ctx.tmux.look())?;
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

/// Looks at the jobs of one user, or of everybody.
pub fn look(ctx: &Ctx, memory: &mut Memory, user: Option<&UserName>) -> Result<Snapshot, Error> {
    settled(ctx, |data, tmux| look_once(ctx, memory, user, data, tmux))
}

/// One look; also whether a job has ended whose record says otherwise.
fn look_once(
    ctx: &Ctx,
    memory: &mut Memory,
    user: Option<&UserName>,
    data: &Arc<Data>,
    tmux: &TmuxFact,
) -> Result<(Snapshot, bool), Error> {
    if let Some(name) = user {
        super::ctx::user_of(data, name)?;
    }
    let scope = |u: &User| user.is_none_or(|name| u.name == *name);
    let jobs: Vec<(&User, &Job)> = data
        .users()
        .iter()
        .filter(|u| scope(u))
        .flat_map(|u| u.jobs().iter().map(move |job| (u, job)))
        .collect();
    let now = ctx.clock.now();
    let seen = observe(ctx, memory, &jobs, tmux);
    let has_ended = jobs.iter().zip(&seen).any(|((_, job), seen)| seen.has_ended(job));
    let views = jobs
        .iter()
        .zip(&seen)
        .map(|((user, job), seen)| view(ctx, data, user, job, seen, now))
        .collect();
    let orphans = match tmux {
        TmuxFact::Up { panes, .. } => {
            data.users().iter().filter(|u| scope(u)).flat_map(|u| orphans(u, panes)).collect()
        }
        TmuxFact::Down { .. } | TmuxFact::Unknown { .. } => Vec::new(),
    };
    memory.data = Some(Arc::clone(data));
    let snapshot = Snapshot {
        at: now,
        user: user.cloned(),
        users: data.users().iter().map(|user| user.name.clone()).collect(),
        jobs: views,
        orphans,
        tmux: match tmux {
            TmuxFact::Up { .. } => TmuxHealth::Up,
            TmuxFact::Down { .. } => TmuxHealth::Down,
            TmuxFact::Unknown { reason } => TmuxHealth::Unknown(reason.clone()),
        },
        monitor: MonitorHealth::NotRunning,
    };
    Ok((snapshot, has_ended))
}

/// One job as it stands now.
pub fn look_at(ctx: &Ctx, id: &JobId) -> Result<JobView, Error> {
    settled(ctx, |data, tmux| {
        let job = super::ctx::job_of(data, id)?;
        let user = super::ctx::user_of(data, &id.user)?;
        let seen = observe(ctx, &mut Memory::default(), &[(user, job)], tmux);
        let seen = seen.first().expect("one job in, one observation out");
        Ok((view(ctx, data, user, job, seen, ctx.clock.now()), seen.has_ended(job)))
    })
}

/// Who claims a target: by the facts alive, and by the facts dead.
#[derive(Debug, Default)]
pub struct TargetUsers {
    /// Jobs at work there, or of which nothing certain is known.
    pub live: Vec<JobId>,
    /// Jobs whose records look live and whose facts say that they are over.
    pub dead: Vec<JobId>,
}

/// Sorts the jobs whose records claim `target` into living and dead.
pub fn users_of_target(ctx: &Ctx, data: &Data, target: &TargetName) -> TargetUsers {
    let claims: Vec<(&User, &Job)> = data
        .users()
        .iter()
        .flat_map(|user| user.jobs().iter().map(move |job| (user, job)))
        .filter(|(_, job)| job.tpu == *target && job.status.is_live())
        .collect();
    let mut users = TargetUsers::default();
    if claims.is_empty() {
        return users;
    }
    let tmux = ctx.tmux.look();
    let seen = observe(ctx, &mut Memory::default(), &claims, &tmux);
    for ((_, job), seen) in claims.iter().zip(&seen) {
        let shown = diagnose(job, &seen.facts(ctx.clock.now()));
        // A program whose text shows a failure may still hold the device: only its end frees it.
        let over = !shown.status.is_live() && (seen.exit.is_some() || !seen.window_is_here());
        if over { users.dead.push(job.id()) } else { users.live.push(job.id()) }
    }
    users
}

/// Everything observed about one job.
#[derive(Debug)]
struct Seen<'a> {
    window: Window<'a>,
    exit: Option<i32>,
    verdict: Option<Verdict>,
    tail: Vec<String>,
}

impl Seen<'_> {
    fn facts(&self, now: Timestamp) -> Facts<'_> {
        Facts {
            window: self.window.clone(),
            exit: self.exit,
            verdict: self.verdict.clone(),
            target: None,
            now,
        }
    }

    /// Whether the facts show an end that the record does not know yet.
    fn has_ended(&self, job: &Job) -> bool {
        job.status.is_live() && (self.exit.is_some() || !self.window_is_here())
    }

    fn window_is_here(&self) -> bool {
        matches!(&self.window, Window::Here(pane) if !pane.dead)
    }
}

/// Finds windows and exits, and reads the panes that have changed since `memory` was filled.
fn observe<'a>(
    ctx: &Ctx,
    memory: &mut Memory,
    jobs: &[(&User, &Job)],
    tmux: &'a TmuxFact,
) -> Vec<Seen<'a>> {
    let server = match tmux {
        TmuxFact::Up { place, .. } => place.server_pid,
        TmuxFact::Down { .. } | TmuxFact::Unknown { .. } => 0,
    };
    let mut seen: Vec<Seen<'a>> = jobs
        .iter()
        .map(|(user, job)| {
            let window = place::find(job, &user.tmux_name, tmux);
            let by_pane = match &window {
                Window::Here(pane) => pane.exit,
                _ => None,
            };
            let by_record = job.launch.as_ref().and_then(|launch| launch.exit);
            let exit = by_pane.or(by_record).or_else(|| {
                if job.status.is_live() { records::recorded_exit(ctx, job) } else { None }
            });
            Seen { window, exit, verdict: None, tail: Vec::new() }
        })
        .collect();

    read_panes(ctx, memory, jobs, &mut seen, server, TAIL);
    let undecided: Vec<usize> =
        (0..seen.len()).filter(|i| seen.get(*i).is_some_and(|seen| is_undecided(seen))).collect();
    if !undecided.is_empty() {
        widen(ctx, memory, jobs, &mut seen, &undecided);
    }
    seen
}

/// Whether the tail of a pane did not say enough about a job whose state depends on its text.
fn is_undecided(seen: &Seen<'_>) -> bool {
    matches!(&seen.verdict, Some(verdict) if verdict.class == Class::None)
}

/// Whether the status of a job depends on its text.
fn wants_text(job: &Job) -> bool {
    match &job.status {
        Status::Unset | Status::Starting | Status::Running | Status::Error(_) => true,
        Status::Finished | Status::Killed | Status::Resumed(_) | Status::Rerunned(_) => false,
    }
}

fn fingerprint(server: u32, pane: &PaneFact) -> Fingerprint {
    (server, pane.activity, pane.history_size, pane.cursor_y, pane.cursor_x, pane.exit)
}

/// Reads the tails of panes that changed, in one call.
fn read_panes(
    ctx: &Ctx,
    memory: &mut Memory,
    jobs: &[(&User, &Job)],
    seen: &mut [Seen<'_>],
    server: u32,
    lines: u32,
) {
    let mut wanted: Vec<(usize, Capture, Fingerprint)> = Vec::new();
    for (index, ((_, job), seen)) in jobs.iter().zip(seen.iter_mut()).enumerate() {
        let Window::Here(pane) = &seen.window else { continue };
        if !wants_text(job) {
            continue;
        }
        let print = fingerprint(server, pane);
        match memory.readings.get(&pane.pane_id) {
            Some(reading) if reading.fingerprint == print => {
                seen.verdict = Some(reading.verdict.clone());
                seen.tail.clone_from(&reading.tail);
            }
            _ => wanted.push((
                index,
                Capture { pane_id: pane.pane_id.clone(), history: Some(lines), colours: false },
                print,
            )),
        }
    }
    capture(ctx, memory, jobs, seen, wanted);
}

/// Reads further back where the tail did not decide.
fn widen(
    ctx: &Ctx,
    memory: &mut Memory,
    jobs: &[(&User, &Job)],
    seen: &mut [Seen<'_>],
    undecided: &[usize],
) {
    let mut wanted = Vec::new();
    for index in undecided {
        let Some(Window::Here(pane)) = seen.get(*index).map(|seen| &seen.window) else { continue };
        // Everything there is was in the tail already.
        if pane.history_size <= u64::from(TAIL) {
            continue;
        }
        let Some(reading) = memory.readings.get(&pane.pane_id) else { continue };
        let capture =
            Capture { pane_id: pane.pane_id.clone(), history: Some(WIDE), colours: false };
        wanted.push((*index, capture, reading.fingerprint));
    }
    capture(ctx, memory, jobs, seen, wanted);
}

fn capture(
    ctx: &Ctx,
    memory: &mut Memory,
    jobs: &[(&User, &Job)],
    seen: &mut [Seen<'_>],
    wanted: Vec<(usize, Capture, Fingerprint)>,
) {
    if wanted.is_empty() {
        return;
    }
    let captures: Vec<Capture> = wanted.iter().map(|(_, capture, _)| capture.clone()).collect();
    // A capture that fails leaves the job without text, which is what is then known about it.
    let Ok(texts) = ctx.tmux.capture(&captures) else { return };
    for ((index, capture, fingerprint), text) in wanted.into_iter().zip(texts) {
        let (Some(text), Some(seen), Some((_, job))) = (text, seen.get_mut(index), jobs.get(index))
        else {
            continue;
        };
        let text = since_launch(job, &text);
        let verdict =
            Classifier::builtin().classify(&Input { text, exit_code: seen.exit, api_state: None });
        let tail = last_lines(text);
        seen.verdict = Some(verdict.clone());
        seen.tail.clone_from(&tail);
        memory.readings.insert(capture.pane_id, Reading { fingerprint, verdict, tail });
    }
}

/// The text that belongs to this launch of the job.
pub fn since_launch<'a>(job: &Job, text: &'a [u8]) -> &'a [u8] {
    match &job.launch {
        Some(launch) => crate::classify::after_launch(text, launch.token.as_str()),
        None => text,
    }
}

/// The last lines that are not blank, made harmless.
fn last_lines(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    let from = lines.len().saturating_sub(SHOWN_LINES);
    lines.iter().skip(from).map(|line| crate::text::escape(line).into_owned()).collect()
}

/// Puts a record and what was observed together.
fn view(
    ctx: &Ctx,
    data: &Data,
    user: &User,
    job: &Job,
    seen: &Seen<'_>,
    now: Timestamp,
) -> JobView {
    let shown = diagnose(job, &seen.facts(now));
    let lineage = Lineage::of(user, job.windows_id).map(|l| l.windows).unwrap_or_default();
    let started_at = started_at(ctx, job);
    let ended = job.launch.as_ref().and_then(|launch| launch.ended);
    let next = next::next(job, &shown);
    JobView {
        id: job.id(),
        leaf: job.child.is_none(),
        lineage,
        dir: (job.job_dir_id, job.job_dir.clone()),
        target: job.tpu.clone(),
        target_label: data.target_label(&job.tpu),
        zone: data.target(&job.tpu).and_then(|target| target.zone),
        tags: job.job_tags.clone(),
        stored: job.status.clone(),
        stage: job.stage,
        rules: job.rules.clone(),
        monitor: job.monitor,
        next,
        started_at,
        age_s: started_at.map(|start| ended.unwrap_or(now).seconds_since(start)),
        log_dir: job.log_dir.clone(),
        stage_dir: job.stage_dir.clone(),
        exit_code: seen.exit,
        window_alive: match &seen.window {
            Window::Here(pane) => Some(!pane.dead),
            Window::Gone | Window::Lost(_) => Some(false),
            Window::Elsewhere(_) | Window::Unknown(_) => None,
        },
        pane_id: match &seen.window {
            Window::Here(pane) => Some(pane.pane_id.clone()),
            _ => None,
        },
        tail: seen.tail.clone(),
        configs: job.extra_configs.clone(),
        intent: job.intent.as_ref().map(|intent| intent.action.clone()),
        shown,
    }
}

fn started_at(ctx: &Ctx, job: &Job) -> Option<Timestamp> {
    match &job.start_time {
        StartTime::Unset => None,
        StartTime::At(instant) => Some(*instant),
        StartTime::Original(value) => {
            let zone = ctx.env.local_zone();
            Timestamp::parse_original(value.as_str()?, &zone)
        }
    }
}

/// Windows of a user's session that no record claims; never the home window 0.
fn orphans(user: &User, panes: &[PaneFact]) -> Vec<Orphan> {
    let mut orphans: BTreeMap<u32, Orphan> = BTreeMap::new();
    for pane in panes.iter().filter(|pane| pane.session == user.tmux_name) {
        let claimed = user.jobs().iter().any(|job| place::is_window_of(job, &user.tmux_name, pane));
        if pane.window_index != 0 && !claimed {
            orphans.insert(
                pane.window_index,
                Orphan {
                    session: pane.session.clone(),
                    window: pane.window_index,
                    window_id: pane.window_id.clone(),
                },
            );
        }
    }
    orphans.into_values().collect()
}

/// The failure that the facts show and the record does not hold yet.
pub fn unrecorded_failure(
    view: &JobView,
) -> Option<(crate::model::facts::ErrorKind, crate::model::job::StoredVerdict)> {
    let kind = view.failure()?;
    (view.stored != view.shown.status).then(|| (kind, stored_verdict(kind, &view.shown)))
}

/// Evidence as it is kept with the record.
pub fn stored_verdict(
    kind: crate::model::facts::ErrorKind,
    shown: &Shown,
) -> crate::model::job::StoredVerdict {
    let (rule, line) = match &shown.evidence {
        Some(evidence) => (evidence.rule.clone(), evidence.line.clone()),
        None => ("unknown".to_owned(), String::new()),
    };
    crate::model::job::StoredVerdict { kind, rule, line, ignored: false }
}
