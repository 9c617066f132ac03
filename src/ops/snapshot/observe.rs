//! Windows, exits and text of jobs: what the facts are made of. Only panes that changed are captured, and
//! only as far back as it takes to decide.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::classify::stall;
use crate::model::data::User;
use crate::model::exit::Exit;
use crate::model::facts::{Class, PaneFact, RunFact, TmuxFact, Verdict};
use crate::model::ids::UserName;
use crate::model::job::{Job, Status};
use crate::model::time::Timestamp;
use crate::ops::fleet::{Fleet, Question};
use crate::ops::heard::{self, HeardOf};
use crate::ops::watch;
use crate::ops::{Ctx, records};
use crate::plan::diagnose::Facts;
use crate::runner::window::place::{Indexed, Window};
use crate::text;
use crate::tmux::Capture;

use super::{reach, read_text, since_launch};

/// Lines above the screen that are read first.
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
    tail: Arc<str>,
    /// The longest pause between its outputs that was seen.
    usual: Option<Duration>,
}

/// Changes when a pane prints, is resized, or its job ends; and with how much of it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fingerprint {
    server: u32,
    activity: u64,
    history_size: u64,
    cursor: (u32, u32),
    size: (u32, u32),
    exit: Option<i32>,
    /// What its user has set: see [`super::reach`].
    reach: u32,
}

/// What earlier looks have read of each pane, and what the control plane last said. An empty one makes the
/// first look a full one.
#[derive(Debug, Default)]
pub struct Memory {
    readings: HashMap<String, Reading>,
    fleet: Option<(Duration, Arc<Fleet>)>,
    /// What providers were asked and have not answered yet.
    questions: Vec<Question>,
}

impl Memory {
    /// What the control plane says, asked now unless it was asked less than `age` ago.
    pub(super) fn fleet(&mut self, ctx: &Ctx, age: Duration) -> Arc<Fleet> {
        let now = ctx.clock.monotonic();
        if let Some((asked, fleet)) = &self.fleet
            && now < *asked + age
            && fleet.is_of_today(ctx)
        {
            return Arc::clone(fleet);
        }
        let fleet = if ctx.actor == watch::ACTOR { self.ask(ctx) } else { self.glance(ctx) };
        self.fleet = Some((now, Arc::clone(&fleet)));
        fleet
    }

    /// MONITOR waits for the answer, and writes down for others what it has heard.
    fn ask(&self, ctx: &Ctx) -> Arc<Fleet> {
        let fleet = Fleet::ask(ctx).after(|| self.before(ctx));
        if fleet.is_worth_keeping() {
            heard::keep(ctx, fleet.heard());
        }
        Arc::new(fleet)
    }

    /// What was heard in earlier looks, else by MONITOR.
    fn before(&self, ctx: &Ctx) -> HeardOf {
        self.fleet.as_ref().map_or_else(|| heard::last(ctx), |(_, fleet)| fleet.heard())
    }

    /// A person who looks is not kept waiting: then what was known before is shown, with its age.
    fn glance(&mut self, ctx: &Ctx) -> Arc<Fleet> {
        let known = self.fleet.as_ref().map(|(_, fleet)| &**fleet);
        let (fleet, silent) = Fleet::glance(ctx, &mut self.questions, known);
        let fleet = fleet.after(|| self.before(ctx));
        ctx.warn(silent.iter().map(|silent| fleet.late(silent, ctx.clock.now())));
        Arc::new(fleet)
    }

    /// When the control plane was last asked, on the monotonic clock.
    pub fn asked_at(&self) -> Option<Duration> {
        self.fleet.as_ref().map(|(at, _)| *at)
    }
}

/// Everything observed about one job.
#[derive(Debug)]
pub(super) struct Seen<'a> {
    pub(super) run: RunFact,
    window: Window<'a>,
    pub(super) verdict: Option<Verdict>,
    pub(super) tail: Arc<str>,
}

impl Seen<'_> {
    /// The observations as facts.
    pub(super) fn facts(&self, now: Timestamp) -> Facts<'_> {
        Facts { run: &self.run, verdict: self.verdict.as_ref(), target: None, now }
    }

    /// Whether the facts show an end that the record does not know yet.
    pub(super) fn has_ended(&self, job: &Job) -> bool {
        job.status.is_live() && (self.run.exit.is_some() || !self.run.is_there())
    }

    /// The id of the pane in which it runs, if it is there.
    pub(super) fn pane_id(&self) -> Option<String> {
        match &self.window {
            Window::Here(pane) => Some(pane.pane_id.clone()),
            _ => None,
        }
    }

    /// Whether the text read so far did not say enough.
    fn is_undecided(&self) -> bool {
        matches!(&self.verdict, Some(verdict) if verdict.class == Class::None)
    }
}

/// A pane to be read for the job at `index`.
struct Wanted {
    index: usize,
    capture: Capture,
    fingerprint: Fingerprint,
}

/// Observes `jobs`; the result keeps their order.
pub(super) fn observe<'a>(
    ctx: &Ctx,
    memory: &mut Memory,
    jobs: &[(&User, &Job)],
    tmux: &'a TmuxFact,
) -> Vec<Seen<'a>> {
    let server = match tmux {
        TmuxFact::Up { place, .. } => place.server_pid,
        TmuxFact::Down { .. } | TmuxFact::Unknown { .. } => 0,
    };
    let mut seen = windows_and_exits(ctx, jobs, tmux);
    let changed = changed_panes(memory, jobs, &mut seen, (ctx, server));
    read(ctx, memory, jobs, &mut seen, changed);
    let undecided = further_back(memory, &seen);
    read(ctx, memory, jobs, &mut seen, undecided);
    let now = ctx.clock.now();
    for seen in &mut seen {
        mark_silence(memory, seen, now);
    }
    seen
}

/// Puts the silence of a running job on its verdict.
fn mark_silence(memory: &Memory, seen: &mut Seen<'_>, now: Timestamp) {
    // A server that does not say when a pane last printed says nothing about its silence.
    let Window::Here(pane) = &seen.window else { return };
    if pane.activity == 0 {
        return;
    }
    if let (Some(verdict), None) = (&mut seen.verdict, seen.run.exit) {
        let usual = memory.readings.get(&pane.pane_id).and_then(|reading| reading.usual);
        let silence = now.seconds_since(Timestamp::from_second(pane.activity.cast_signed()));
        stall::mark(verdict, Duration::from_secs(silence), usual);
    }
}

/// The facts about `jobs` that need no text; the result keeps their order.
pub(super) fn windows_and_exits<'a>(
    ctx: &Ctx,
    jobs: &[(&User, &Job)],
    tmux: &'a TmuxFact,
) -> Vec<Seen<'a>> {
    let panes = Indexed::new(tmux);
    jobs.iter().map(|(user, job)| window_and_exit(ctx, user, job, &panes)).collect()
}

fn window_and_exit<'a>(ctx: &Ctx, user: &User, job: &Job, panes: &Indexed<'a>) -> Seen<'a> {
    let window = panes.find(job, &user.tmux_name);
    let by_pane = match &window {
        Window::Here(pane) => pane.exit,
        _ => None,
    };
    let by_record = job.launch.as_ref().and_then(|launch| launch.exit);
    let code = by_pane
        .or(by_record)
        .or_else(|| if is_open(job) { records::recorded_exit(ctx, job) } else { None });
    let run = window.fact(job, code.map(|code| job.exit(code)));
    Seen { run, window, verdict: None, tail: Arc::default() }
}

/// Whether the end of a job's program may have been recorded by its launcher alone.
fn is_open(job: &Job) -> bool {
    let unseen = job.launch.as_ref().is_some_and(|launch| launch.exit.is_none());
    job.status.is_live() || unseen && matches!(job.status, Status::Error(_))
}

/// Takes over what is remembered of panes that stand as they stood, and lists the others.
fn changed_panes(
    memory: &Memory,
    jobs: &[(&User, &Job)],
    seen: &mut [Seen<'_>],
    (ctx, server): (&Ctx, u32),
) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    let mut reaches: HashMap<&UserName, u32> = HashMap::new();
    for (index, ((user, job), seen)) in jobs.iter().zip(seen.iter_mut()).enumerate() {
        let Window::Here(pane) = &seen.window else { continue };
        if !wants_text(job) {
            continue;
        }
        let reach = *reaches.entry(&user.name).or_insert_with(|| reach(ctx, user));
        let fingerprint = fingerprint(server, pane, reach);
        match memory.readings.get(&pane.pane_id) {
            Some(reading) if reading.fingerprint == fingerprint => {
                seen.verdict = Some(reading.verdict.clone());
                seen.tail = Arc::clone(&reading.tail);
            }
            _ => wanted.push(Wanted { index, capture: capture(pane, TAIL), fingerprint }),
        }
    }
    wanted
}

/// Panes whose tail did not decide and that have more to say.
fn further_back(memory: &Memory, seen: &[Seen<'_>]) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for (index, seen) in seen.iter().enumerate().filter(|(_, seen)| seen.is_undecided()) {
        let Window::Here(pane) = &seen.window else { continue };
        // Everything there is was in the tail already.
        if pane.history_size <= u64::from(TAIL) {
            continue;
        }
        if let Some(reading) = memory.readings.get(&pane.pane_id) {
            let fingerprint = reading.fingerprint;
            // A line has one character at least, its end.
            let lines = WIDE.max(fingerprint.reach);
            wanted.push(Wanted { index, capture: capture(pane, lines), fingerprint });
        }
    }
    wanted
}

/// Captures panes in one call, and classifies what they show.
fn read(
    ctx: &Ctx,
    memory: &mut Memory,
    jobs: &[(&User, &Job)],
    seen: &mut [Seen<'_>],
    wanted: Vec<Wanted>,
) {
    if wanted.is_empty() {
        return;
    }
    let captures: Vec<Capture> = wanted.iter().map(|wanted| wanted.capture.clone()).collect();
    // A capture that fails leaves the job without text, which is what is then known about it.
    let Ok(texts) = ctx.tmux.capture(&captures) else { return };
    for (Wanted { index, capture, fingerprint }, text) in wanted.into_iter().zip(texts) {
        let (Some(text), Some(seen), Some((_, job))) = (text, seen.get_mut(index), jobs.get(index))
        else {
            continue;
        };
        let text = since_launch(job, &text);
        let verdict = judged(ctx, job, text, (seen.run.exit, fingerprint.reach));
        let tail = last_lines(&String::from_utf8_lossy(text));
        seen.verdict = Some(verdict.clone());
        seen.tail = Arc::clone(&tail);
        let usual = usual_pause(memory.readings.get(&capture.pane_id), &fingerprint);
        let reading = Reading { fingerprint, verdict, tail, usual };
        memory.readings.insert(capture.pane_id, reading);
    }
}

/// What the text of a job says. Where that is a failure of which a person said that it is none, another one
/// behind it counts.
fn judged(ctx: &Ctx, job: &Job, text: &[u8], known: (Option<Exit>, u32)) -> Verdict {
    let verdict = read_text(ctx, job, text, known);
    let ignored = job.verdict.as_ref().filter(|stored| stored.ignored);
    let said = verdict.evidence.as_ref();
    let Some(line) = ignored
        .map(|stored| &stored.line)
        .filter(|line| said.is_some_and(|evidence| evidence.line == **line))
    else {
        return verdict;
    };
    let plain = text::strip(text);
    let plain = String::from_utf8_lossy(&plain);
    let behind = plain.rfind(line.trim()).and_then(|at| plain.get(at + line.trim().len()..));
    match behind.map(|behind| read_text(ctx, job, behind.as_bytes(), known)) {
        Some(newer) if newer.class.failure().is_some() => newer,
        _ => verdict,
    }
}

/// The last lines that are not blank, made harmless.
fn last_lines(text: &str) -> Arc<str> {
    let text = text.trim_end();
    let from =
        memchr::memrchr_iter(b'\n', text.as_bytes()).nth(SHOWN_LINES - 1).map_or(0, |at| at + 1);
    let mut shown = String::with_capacity(text.len() - from + 1);
    for line in text.get(from..).unwrap_or_default().lines() {
        shown.push_str(&text::escape(line.trim_end()));
        shown.push('\n');
    }
    shown.into()
}

fn capture(pane: &PaneFact, history: u32) -> Capture {
    Capture { pane_id: pane.pane_id.clone(), history: Some(history), colours: false }
}

/// The longest pause between outputs, after another one.
fn usual_pause(old: Option<&Reading>, new: &Fingerprint) -> Option<Duration> {
    let old = old?;
    let pause = new.activity.saturating_sub(old.fingerprint.activity);
    old.usual.max((pause > 0).then_some(Duration::from_secs(pause)))
}

fn fingerprint(server: u32, pane: &PaneFact, reach: u32) -> Fingerprint {
    Fingerprint {
        server,
        activity: pane.activity,
        history_size: pane.history_size,
        cursor: (pane.cursor_y, pane.cursor_x),
        size: (pane.width, pane.height),
        exit: pane.exit,
        reach,
    }
}

/// Whether the status of a job depends on its text.
fn wants_text(job: &Job) -> bool {
    match &job.status {
        Status::Unset | Status::Starting | Status::Running | Status::Error(_) => true,
        Status::Finished | Status::Killed(_) | Status::Resumed(_) | Status::Rerunned(_) => false,
    }
}
