//! Runs, exits and text of jobs: what the facts are made of. Only what has changed is read, and only as far
//! back as it takes to decide.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::Ctx;
use crate::base::fact_cache::{self, HeardOf};
use crate::base::watch;
use crate::observe::fleet::{ProviderFacts, Question};
use crate::observe::runners;
use tpu_core::classify::{stall, started_over};
use tpu_core::model::arguments::ArgumentStyle;
use tpu_core::model::data::User;
use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{Class, TmuxFact, Verdict};
use tpu_core::model::ids::UserName;
use tpu_core::model::job::{Job, Status};
use tpu_core::model::time::Timestamp;
use tpu_core::plan::diagnose::JobFacts;
use tpu_core::text;
use tpu_engine::runner::window::beside;
use tpu_engine::runner::{Observed, OutputMark, OutputWanted, RunRef, Want};
use tpu_system::tmux::Look;

use super::records::Records;
use super::{reach, read_text};

/// Lines above the screen that are read first.
const TAIL: u32 = 70;

/// Lines that are read when the tail does not decide.
const WIDE: u32 = 2_000;

/// So many panes are held at once. What was read is dropped with its verdict, but the memory of the largest answer stays with
/// the process: of a thousand panes that was 8 MB of the 25 of a screen. Another call of tmux takes a few ms; an engine may keep
/// somebody waiting, and is asked once.
const HELD: usize = 250;

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

/// Changes when a run prints or ends; and with how much of it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fingerprint {
    printed: OutputMark,
    heard: Option<Timestamp>,
    /// What its user has set: see [`super::reach`].
    reach: u32,
}

/// What earlier looks have read of each pane, and what the control plane last said. An empty one makes the
/// first look a full one.
#[derive(Debug, Default)]
pub struct LookMemory {
    readings: HashMap<String, Reading>,
    fleet: Option<(Duration, Arc<ProviderFacts>)>,
    /// What providers were asked and have not answered yet.
    questions: Vec<Question>,
    /// How old an answer may be, in seconds, that another daemon has got.
    shared_s: u64,
    pub(super) records: Records,
    /// Whether engines are waited for as long as whoever stops runs waits for them.
    is_patient: bool,
}

/// A daemon waits so long for another one that asks.
const OTHER_ASKS: Duration = Duration::from_secs(3);

impl LookMemory {
    /// That of a single look, after which runs are stopped.
    pub(super) fn patient() -> Self {
        Self { is_patient: true, ..Self::default() }
    }

    /// Asks what [`Self::fleet`] is going to ask, and waits for nothing, so that others can be asked meanwhile. The
    /// time from which on the answers are waited for.
    pub(super) fn ask_ahead(&mut self, ctx: &Ctx, age: Duration) -> Duration {
        let now = ctx.clock.monotonic();
        if ctx.actor != watch::ACTOR && self.serving(ctx, age).is_none() {
            ProviderFacts::ask_ahead(ctx, &mut self.questions);
        }
        now
    }

    /// What was said less than `age` ago, if nothing has been said since.
    fn serving(&mut self, ctx: &Ctx, age: Duration) -> Option<Arc<ProviderFacts>> {
        let now = ctx.clock.monotonic();
        let is_answered = self.is_answered();
        let (asked, fleet) = self.fleet.as_ref()?;
        let serves = now < *asked + age && fleet.is_of_today(ctx) && !is_answered;
        serves.then(|| Arc::clone(fleet))
    }

    /// What the control plane says, asked now unless it was asked less than `age` ago. It is waited for from `since`
    /// on.
    pub(super) fn fleet(
        &mut self,
        ctx: &Ctx,
        (age, since): (Duration, Duration),
    ) -> Arc<ProviderFacts> {
        if let Some(fleet) = self.serving(ctx, age) {
            return fleet;
        }
        let now = ctx.clock.monotonic();
        let (fleet, age) = if ctx.actor != watch::ACTOR {
            (self.glance(ctx, since), Duration::ZERO)
        } else if watch::has_others(ctx) {
            self.ask_for_all(ctx)
        } else {
            (self.ask(ctx), Duration::ZERO)
        };
        self.fleet = Some((now.saturating_sub(age), Arc::clone(&fleet)));
        fleet
    }

    /// Lets answers that another daemon has got serve this one while they are younger than this.
    pub fn share_for(&mut self, age: Duration) {
        self.shared_s = age.as_secs();
    }

    /// What one of several daemons hears, which ask one at a time, and how old that is: what one was told serves all.
    fn ask_for_all(&mut self, ctx: &Ctx) -> (Arc<ProviderFacts>, Duration) {
        let young_s = self.shared_s;
        let known = || {
            let fleet = ProviderFacts::of_others(ctx, young_s)?;
            let age = Duration::from_secs(ctx.clock.now().seconds_since(fleet.asked_at()));
            Some((Arc::new(fleet), age))
        };
        if let Some(known) = known() {
            return known;
        }
        let deadline = ctx.clock.monotonic() + OTHER_ASKS;
        let is_patient = || ctx.clock.monotonic() < deadline;
        let asked = ctx.store.asking_providers(&is_patient, || {
            // Somebody may have asked since.
            known().unwrap_or_else(|| (self.ask(ctx), Duration::ZERO))
        });
        match asked {
            Ok(Ok(asked)) => asked,
            // Whoever asks takes too long, or nobody can be kept from asking.
            Ok(Err(_)) | Err(_) => (self.ask(ctx), Duration::ZERO),
        }
    }

    /// Whether a provider that had not answered in time has done so since: what it said is as old as it ever will
    /// be for whoever looks at once.
    pub fn is_answered(&mut self) -> bool {
        self.questions.iter_mut().any(Question::is_answered)
    }

    /// What the daemon hears, and writes down for others.
    fn ask(&mut self, ctx: &Ctx) -> Arc<ProviderFacts> {
        let known = self.fleet.as_ref().map(|(_, fleet)| &**fleet);
        let fleet =
            ProviderFacts::in_turn(ctx, &mut self.questions, known).after(|| self.before(ctx));
        if fleet.is_worth_keeping() {
            fact_cache::keep(ctx, fleet.heard(), fleet.whole());
        }
        Arc::new(fleet)
    }

    /// What was heard in earlier looks, else by the daemon.
    fn before(&self, ctx: &Ctx) -> HeardOf {
        self.fleet.as_ref().map_or_else(|| fact_cache::last(ctx), |(_, fleet)| fleet.heard())
    }

    /// A person who looks is not kept waiting: then what was known before is shown, with its age.
    fn glance(&mut self, ctx: &Ctx, since: Duration) -> Arc<ProviderFacts> {
        let known = self.fleet.as_ref().map(|(_, fleet)| &**fleet);
        let (fleet, silent) = ProviderFacts::glance(ctx, &mut self.questions, (known, since));
        let fleet = fleet.after(|| self.before(ctx));
        ctx.warn(silent.iter().map(|silent| fleet.late(silent, ctx.clock.now())));
        Arc::new(fleet)
    }

    /// What the providers said last, if that still serves.
    pub(crate) fn said(&self) -> Option<&ProviderFacts> {
        self.fleet.as_ref().map(|(_, fleet)| &**fleet)
    }

    /// When the control plane was last asked, on the monotonic clock.
    pub fn asked_at(&self) -> Option<Duration> {
        self.fleet.as_ref().map(|(at, _)| *at)
    }
}

/// Everything observed about one job.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) at: Observed,
    pub(super) verdict: Option<Verdict>,
    pub(super) tail: Arc<str>,
}

impl Seen {
    /// The observations as facts.
    pub(super) fn facts(&self, now: Timestamp) -> JobFacts<'_> {
        JobFacts { run: &self.at.run, verdict: self.verdict.as_ref(), target: None, now }
    }

    /// Whether the facts show an end that the record does not know yet.
    pub(super) fn has_ended(&self, job: &Job) -> bool {
        job.status.is_live() && (self.at.run.exit.is_some() || !self.at.run.is_there())
    }

    /// Whether the text read so far did not say enough.
    fn is_undecided(&self) -> bool {
        matches!(&self.verdict, Some(verdict) if verdict.class == Class::None)
    }
}

/// By what the readings of a run are found again: its pane, or its launch where no window shows it.
fn key<'a>(job: &'a Job, at: &'a Observed) -> &'a str {
    let token = job.launch.as_ref().map_or("", |launch| launch.token.as_str());
    at.pane.as_deref().unwrap_or(token)
}

/// A part of the output of the job at `index` that is to be read.
struct ToRead {
    index: usize,
    above: u32,
    fingerprint: Fingerprint,
}

/// Observes `jobs`; the result keeps their order.
pub(super) fn observe(
    ctx: &Ctx,
    memory: &mut LookMemory,
    jobs: &[(&User, &Job)],
    tmux: &Look<'_>,
) -> Vec<Seen> {
    let mut seen = if memory.is_patient {
        let runs: Vec<RunRef<'_>> = runs(jobs).collect();
        let observed = runners::observe_patiently(ctx, &runs, &tmux.fact);
        with_exits(ctx, jobs, observed)
    } else {
        runs_and_exits(ctx, jobs, &tmux.fact)
    };
    let changed = changed(ctx, memory, jobs, &mut seen);
    read((ctx, tmux), memory, jobs, &mut seen, &changed);
    let undecided = further_back(memory, jobs, &seen);
    read((ctx, tmux), memory, jobs, &mut seen, &undecided);
    let now = ctx.clock.now();
    for ((_, job), seen) in jobs.iter().zip(&mut seen) {
        mark(memory, job, seen, now);
    }
    seen
}

/// Puts on the verdict about a running job that it does not go on from its checkpoint, and its silence.
fn mark(memory: &LookMemory, job: &Job, seen: &mut Seen, now: Timestamp) {
    // Earlier versions told no program of it but by an argument.
    let from = job.launch.as_ref().and_then(|launch| launch.from.as_ref());
    let from = from.and_then(|from| from.step.filter(|_| from.path.is_some()));
    if let (Some(verdict), Some(from)) = (&mut seen.verdict, from) {
        let word = match job.arguments.unwrap_or_default() {
            ArgumentStyle::Config => "--config.load_from or $TPU_CHECKPOINT",
            ArgumentStyle::Flags | ArgumentStyle::Hydra => "$TPU_CHECKPOINT",
        };
        started_over::mark(verdict, from, word);
    }
    // Whoever does not say when a run last printed says nothing about its silence.
    let Some(heard) = seen.at.run.last_output else { return };
    if let (Some(verdict), None) = (&mut seen.verdict, seen.at.run.exit) {
        let usual = memory.readings.get(key(job, &seen.at)).and_then(|reading| reading.usual);
        stall::mark(verdict, Duration::from_secs(now.seconds_since(heard)), usual);
    }
}

/// The facts about `jobs` that need no text; the result keeps their order.
pub(super) fn runs_and_exits(ctx: &Ctx, jobs: &[(&User, &Job)], tmux: &TmuxFact) -> Vec<Seen> {
    let runs: Vec<RunRef<'_>> = runs(jobs).collect();
    with_exits(ctx, jobs, runners::observe(ctx, &runs, tmux))
}

fn with_exits(ctx: &Ctx, jobs: &[(&User, &Job)], observed: Vec<Observed>) -> Vec<Seen> {
    let seen = |(at, (_, job)): (Observed, &(&User, &Job))| {
        let at = Observed { run: beside::with_copying(ctx, job, at.run), ..at };
        Seen { at, verdict: None, tail: Arc::default() }
    };
    observed.into_iter().zip(jobs).map(seen).collect()
}

fn runs<'a>(jobs: &'a [(&User, &Job)]) -> impl Iterator<Item = RunRef<'a>> {
    jobs.iter().map(|(user, job)| RunRef { job, session: &user.tmux_name })
}

/// Takes over what is remembered of runs that have printed nothing since, and lists the others.
fn changed(
    ctx: &Ctx,
    memory: &LookMemory,
    jobs: &[(&User, &Job)],
    seen: &mut [Seen],
) -> Vec<ToRead> {
    let mut wanted = Vec::new();
    let mut reaches: HashMap<&UserName, u32> = HashMap::new();
    for (index, ((user, job), seen)) in jobs.iter().zip(seen.iter_mut()).enumerate() {
        let Some(printed) = seen.at.printed else { continue };
        if !wants_text(job) {
            continue;
        }
        let reach = *reaches.entry(&user.name).or_insert_with(|| reach(ctx, user));
        let fingerprint = Fingerprint { printed, heard: seen.at.run.last_output, reach };
        match memory.readings.get(key(job, &seen.at)) {
            Some(reading) if reading.fingerprint == fingerprint => {
                seen.verdict = Some(reading.verdict.clone());
                seen.tail = Arc::clone(&reading.tail);
            }
            _ => wanted.push(ToRead { index, above: TAIL, fingerprint }),
        }
    }
    wanted
}

/// Runs whose tail did not decide and that have more to say.
fn further_back(memory: &LookMemory, jobs: &[(&User, &Job)], seen: &[Seen]) -> Vec<ToRead> {
    let mut wanted = Vec::new();
    for (index, ((_, job), seen)) in jobs.iter().zip(seen).enumerate() {
        // Everything there is was in the tail already, unless there is more above it.
        let more = seen.at.printed.is_some_and(|printed| printed.above > u64::from(TAIL));
        if !more || !seen.is_undecided() {
            continue;
        }
        if let Some(reading) = memory.readings.get(key(job, &seen.at)) {
            let fingerprint = reading.fingerprint;
            // A line has one character at least, its end.
            wanted.push(ToRead { index, above: WIDE.max(fingerprint.reach), fingerprint });
        }
    }
    wanted
}

/// Reads outputs in as few calls as that takes, and classifies what they show.
fn read(
    at: (&Ctx, &Look<'_>),
    memory: &mut LookMemory,
    jobs: &[(&User, &Job)],
    seen: &mut [Seen],
    to_read: &[ToRead],
) {
    let all: Vec<&ToRead> = to_read.iter().collect();
    if all.len() <= HELD {
        return read_at_once(at, memory, jobs, seen, &all);
    }
    let is_of_engine =
        |one: &&ToRead| jobs.get(one.index).is_some_and(|(_, job)| job.engine.is_some());
    let (of_engines, panes): (Vec<&ToRead>, Vec<_>) = all.into_iter().partition(is_of_engine);
    for part in panes.chunks(HELD).chain([of_engines.as_slice()]) {
        read_at_once(at, memory, jobs, seen, part);
    }
}

fn read_at_once(
    (ctx, tmux): (&Ctx, &Look<'_>),
    memory: &mut LookMemory,
    jobs: &[(&User, &Job)],
    seen: &mut [Seen],
    to_read: &[&ToRead],
) {
    if to_read.is_empty() {
        return;
    }
    let runs: Vec<RunRef<'_>> = runs(jobs).collect();
    let wanted = to_read.iter().filter_map(|ToRead { index, above, .. }| {
        let want = Want::Shown { above: Some(*above), colours: false };
        Some(OutputWanted {
            run: *runs.get(*index)?,
            seen: seen.get(*index).map(|seen| &seen.at),
            want,
        })
    });
    // What cannot be read leaves the job without text, which is what is then known about it.
    let Ok(outputs) = runners::outputs(ctx, &wanted.collect::<Vec<_>>(), tmux) else { return };
    for (&&ToRead { index, fingerprint, .. }, output) in to_read.iter().zip(outputs) {
        let (Some(output), Some(seen), Some((_, job))) =
            (output, seen.get_mut(index), jobs.get(index))
        else {
            continue;
        };
        let verdict = judged(ctx, job, &output.bytes, (seen.at.run.exit, fingerprint.reach));
        let tail = last_lines(&String::from_utf8_lossy(&output.bytes));
        seen.verdict = Some(verdict.clone());
        seen.tail = Arc::clone(&tail);
        let key = key(job, &seen.at);
        let usual = usual_pause(memory.readings.get(key), &fingerprint);
        memory.readings.insert(key.to_owned(), Reading { fingerprint, verdict, tail, usual });
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

/// The longest pause between outputs, after another one.
fn usual_pause(old: Option<&Reading>, new: &Fingerprint) -> Option<Duration> {
    let old = old?;
    let pause = new.heard?.seconds_since(old.fingerprint.heard?);
    old.usual.max((pause > 0).then_some(Duration::from_secs(pause)))
}

/// Whether the status of a job depends on its text.
fn wants_text(job: &Job) -> bool {
    match &job.status {
        Status::Unset | Status::Starting | Status::Running | Status::Error(_) => true,
        Status::Finished | Status::Killed(_) | Status::Resumed(_) | Status::Rerunned(_) => false,
    }
}
