//! Statistics of what ran: attempts and waits in, rows of figures out. Nothing is kept for them; all of it follows from
//! records, journal and archive.
//!
//! Time is that of attempts at work, without what they waited at their engines: what lies in the period counts, cut at its
//! ends and, by week, at the weeks'. What happened at an instant (an end, a failure, a beginning) counts where that
//! instant lies. Lineages count where their youngest attempt ran and when it ended.
//!
//! Useful work is told by how far a run came: each attempt shows how long a step takes at most, and the youngest how many
//! steps there are in the end. Whatever else was worked was done again.

pub mod figures;
pub mod run;

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use self::figures::{Figures, GotOn, RepeatedLine};
use self::run::{Past, PastRun, Period, RunOutcome};
use super::budget;
use crate::model::calendar::{self, Day};
use crate::model::facts::ErrorKind;
use crate::model::ids::{JobId, JobNumber, UserName};
use crate::model::time::{Timestamp, Zone};
use crate::model::words::words;

/// What rows stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Users.
    #[default]
    User,
    /// Targets.
    Target,
    /// Accelerator types.
    Type,
    /// Zones.
    Zone,
    /// Tags.
    Tag,
    /// Weeks.
    Week,
    /// Kinds of target.
    Kind,
}

words! {
    /// The word on the command line and in documents.
    By {
        User: "user",
        Target: "target",
        Type: "type",
        Zone: "zone",
        Tag: "tag",
        Week: "week",
        Kind: "kind",
    }
}

impl By {
    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.as_str() == word)
    }

    /// The one so many places further, round the end.
    #[must_use]
    pub fn moved(self, places: usize) -> Self {
        let at = Self::ALL.into_iter().position(|by| by == self).unwrap_or(0);
        Self::ALL.into_iter().cycle().nth(at + places).unwrap_or(self)
    }

    /// The one before, round the end.
    #[must_use]
    pub fn before(self) -> Self {
        self.moved(Self::ALL.len() - 1)
    }
}

/// Where nobody says what a row would be called.
pub const UNKNOWN: &str = "unknown";
/// The row of what has no tag.
pub(crate) const NO_TAG: &str = "-";
/// Lines of failures that are kept of each row.
const LINES: usize = 5;

/// Figures under a name.
#[derive(Clone, Debug, PartialEq)]
pub struct StatsRow {
    /// The user, target, type, zone, tag, week or kind.
    pub key: String,
    /// Its figures.
    pub figures: Figures,
}

/// What an hour of the day, or a day, has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Seconds of work.
    pub seconds: u64,
    /// Preemptions.
    pub preemptions: u32,
}

impl Seen {
    /// Preemptions in an hour of work; `None` where nothing worked.
    pub fn preemptions_per_hour(self) -> Option<f64> {
        (self.seconds > 0).then(|| f64::from(self.preemptions) / figures::hours(self.seconds))
    }
}

/// What came of counting.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Weeks in their order; of all else that with most hours first.
    pub rows: Vec<StatsRow>,
    /// All of it together.
    pub total: Figures,
    /// By hour of day.
    pub hours: [Seen; 24],
    /// By day, those on which something happened.
    pub days: BTreeMap<Day, Seen>,
}

/// Counts.
pub fn stats(past: &Past, by: By, period: &Period, zone: &Zone) -> Stats {
    let mut count = Count {
        by,
        zone,
        rows: HashMap::new(),
        total: Figures::default(),
        lines: HashMap::new(),
        hours: [Seen::default(); 24],
        days: BTreeMap::new(),
    };
    let lineages = Lineages::of(&past.runs);
    for (at, run) in past.runs.iter().enumerate() {
        count.time(run, period);
        count.events(run, lineages.father(at), period);
    }
    for leaf in lineages.leaves() {
        count.lineage(&lineages.back_from(leaf), period);
    }
    for wait in past.capacity.iter().filter(|wait| period.holds(wait.at)) {
        let run = lineages.run_of(&wait.job, wait.at);
        let key = match (by, run) {
            (By::User, _) => wait.job.user.as_str().to_owned(),
            (By::Type, _) => wait.accelerator.clone(),
            (By::Zone, _) => wait.zone.clone(),
            (By::Week, _) => Day::of(wait.at, zone).week().to_string(),
            (By::Target | By::Tag | By::Kind, Some(run)) => key(run, by),
            (By::Target | By::Tag | By::Kind, None) => UNKNOWN.to_owned(),
        };
        count.both(&key, |figures| {
            if wait.came {
                figures.capacity.add(wait.waited_s);
            } else {
                figures.in_vain += 1;
            }
        });
    }
    count.done()
}

/// What a run counts under, whenever it was.
fn key(run: &PastRun, by: By) -> String {
    let or = |text: &Option<String>, other: &str| text.clone().unwrap_or_else(|| other.to_owned());
    match by {
        By::User => run.id.user.as_str().to_owned(),
        By::Target => run.on.target.as_str().to_owned(),
        By::Type => or(&run.on.accelerator, UNKNOWN),
        By::Zone => or(&run.on.zone, UNKNOWN),
        By::Kind => or(&run.on.kind, UNKNOWN),
        By::Tag => or(&run.tag, NO_TAG),
        By::Week => String::new(),
    }
}

/// Counting, half done.
struct Count<'a> {
    by: By,
    zone: &'a Zone,
    rows: HashMap<String, Figures>,
    total: Figures,
    /// Lines of failures, by row (`None`: of all), kind, and what alike ones have in common.
    lines: HashMap<(Option<String>, ErrorKind, String), (String, u32)>,
    hours: [Seen; 24],
    days: BTreeMap<Day, Seen>,
}

impl Count<'_> {
    /// The row of something that happened to a run at an instant.
    fn key_at(&self, run: &PastRun, at: Timestamp) -> String {
        if self.by == By::Week {
            return Day::of(at, self.zone).week().to_string();
        }
        key(run, self.by)
    }

    /// Counts something in a row and in all.
    fn both(&mut self, key: &str, add: impl Fn(&mut Figures)) {
        add(self.rows.entry(key.to_owned()).or_default());
        add(&mut self.total);
    }

    /// How long it worked.
    fn time(&mut self, run: &PastRun, period: &Period) {
        let stretches = run.stretches(period.until).into_iter();
        let inside: Vec<_> = stretches.filter_map(|(from, to)| period.clip(from, to)).collect();
        if inside.is_empty() {
            return;
        }
        let mut rows: BTreeMap<String, u64> = BTreeMap::new();
        for (from, to) in &inside {
            for (key, seconds) in self.seen(run, (*from, *to)) {
                *rows.entry(key).or_default() += seconds;
            }
        }
        for (key, seconds) in rows {
            let figures = self.rows.entry(key).or_default();
            figures.worked(seconds, run.per_hour);
            figures.attempts += 1;
        }
        let seconds = inside.iter().map(|(from, to)| to.seconds_since(*from)).sum();
        self.total.worked(seconds, run.per_hour);
        self.total.attempts += 1;
    }

    /// Counts a time in which it was at work by hour and day; its seconds by row.
    fn seen(&mut self, run: &PastRun, (from, to): (Timestamp, Timestamp)) -> BTreeMap<String, u64> {
        let mut weeks: BTreeMap<String, u64> = BTreeMap::new();
        let mut week = None;
        for slice in calendar::slices(from, to, self.zone) {
            if let Some(hour) = self.hours.get_mut(slice.hour) {
                hour.seconds += slice.seconds;
            }
            self.days.entry(slice.day).or_default().seconds += slice.seconds;
            if self.by == By::Week {
                let now = slice.day.week();
                match &mut week {
                    Some((of, seconds)) if *of == now => *seconds += slice.seconds,
                    other => {
                        if let Some((of, seconds)) = other.replace((now, slice.seconds)) {
                            weeks.insert(of.to_string(), seconds);
                        }
                    }
                }
            }
        }
        if let Some((of, seconds)) = week {
            weeks.insert(of.to_string(), seconds);
        }
        if self.by != By::Week {
            weeks.insert(key(run, self.by), to.seconds_since(from));
        }
        weeks
    }

    /// What happened to it.
    fn events(&mut self, run: &PastRun, father: Option<&PastRun>, period: &Period) {
        if let Some(begins) = run.at_work_since().filter(|at| period.holds(*at)) {
            let key = self.key_at(run, begins);
            if let Some(waited) = run.whole_wait_s() {
                self.both(&key, |figures| figures.queue.add(waited));
            }
            let failed = father.filter(|father| matches!(father.outcome, RunOutcome::Failed(_)));
            if let Some(ended) = failed.and_then(|father| father.ended) {
                let took = begins.seconds_since(ended);
                self.both(&key, |figures| figures.recoveries.add(took));
            }
        }
        let (RunOutcome::Failed(kind), Some(ended)) = (run.outcome, run.ended) else { return };
        if !period.holds(ended) {
            return;
        }
        let key = self.key_at(run, ended);
        self.both(&key, |figures| figures.failed_by(kind));
        if run.is_preempted() {
            if let Some(hour) = self.hours.get_mut(calendar::hour_of(ended, self.zone)) {
                hour.preemptions += 1;
            }
            self.days.entry(Day::of(ended, self.zone)).or_default().preemptions += 1;
        }
        if let Some(line) = &run.line {
            let common = budget::in_common(line);
            for row in [Some(key), None] {
                let known = self.lines.entry((row, kind, common.clone()));
                known.or_insert_with(|| (line.clone(), 0)).1 += 1;
            }
        }
    }

    /// What became of a lineage, from its youngest attempt back.
    fn lineage(&mut self, runs: &[&PastRun], period: &Period) {
        let Some(leaf) = runs.first() else { return };
        let end = leaf.ended.unwrap_or(period.until);
        if !period.holds(end) {
            return;
        }
        let key = self.key_at(leaf, end);
        // What has only waited had no time in which it could get on.
        let first = runs.iter().rev().find_map(|run| run.at_work_since());
        let useful_s = first.and_then(|_| useful_s(runs, end));
        #[expect(clippy::cast_precision_loss, reason = "seconds of a run fit a float")]
        let wall_s = first.map_or(0, |first| end.seconds_since(first)) as f64;
        self.both(&key, |figures| {
            match leaf.outcome {
                RunOutcome::AtWork => {}
                RunOutcome::Finished => figures.finished += 1,
                RunOutcome::Failed(_) => figures.failed += 1,
                RunOutcome::Stopped => figures.killed += 1,
            }
            if let Some(useful_s) = useful_s {
                let GotOn { useful_s: useful, wall_s: wall, lineages } = &mut figures.got_on;
                *useful += useful_s.min(wall_s);
                *wall += wall_s;
                *lineages += 1;
            }
        });
    }

    fn done(mut self) -> Stats {
        for ((row, kind, _), (line, times)) in std::mem::take(&mut self.lines) {
            let figures = match &row {
                Some(key) => self.rows.entry(key.clone()).or_default(),
                None => &mut self.total,
            };
            figures.lines.push(RepeatedLine { kind, line, times });
        }
        let most_first = |figures: &mut Figures| {
            figures.lines.sort_by(|a, b| (b.times, &a.line).cmp(&(a.times, &b.line)));
            figures.lines.truncate(LINES);
        };
        most_first(&mut self.total);
        self.rows.values_mut().for_each(most_first);
        let rows = self.rows.into_iter().map(|(key, figures)| StatsRow { key, figures });
        let mut rows: Vec<StatsRow> = rows.collect();
        rows.sort_by(|a, b| {
            let by_time = b.figures.seconds.cmp(&a.figures.seconds);
            let first = if self.by == By::Week { Ordering::Equal } else { by_time };
            first.then_with(|| a.key.cmp(&b.key))
        });
        Stats { rows, total: self.total, hours: self.hours, days: self.days }
    }
}

/// In how many seconds a lineage got on, its youngest attempt first; `None` where nobody can tell what of it was done
/// again.
fn useful_s(runs: &[&PastRun], end: Timestamp) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "seconds of a run fit a float")]
    let lasted = |run: &PastRun| run.worked_s(end) as f64;
    let leaf = runs.first()?;
    if leaf.outcome == RunOutcome::AtWork {
        // How far it has come is written down at its end. To count of those at work the ones that never failed, and not
        // those that are back after a failure, would say too much.
        return None;
    }
    if leaf.is_from_nothing {
        return Some(lasted(leaf));
    }
    // What was worked before an attempt that began from scratch was for nothing.
    let since = runs.iter().position(|run| run.is_from_nothing)?;
    let runs = runs.get(..=since)?;
    let reached = leaf.reached?;
    let worked: f64 = runs.iter().map(|run| lasted(run)).sum();
    let mut before = 0.0;
    let mut step_s = f64::INFINITY;
    for run in runs.iter().rev() {
        let Some(end) = run.reached else { continue };
        if end > before {
            // It began at the end of the one before it at the latest: in its time it did so many steps at least.
            step_s = step_s.min(lasted(run) / (end - before));
        }
        before = end;
    }
    // Without the first one, which began at nothing, nobody can tell how many steps there were.
    runs.last()?.reached?;
    Some((reached * step_s).min(worked))
}

/// Which attempts go on from which. Numbers come again in the course of years: the one that began last before its
/// successor is meant.
struct Lineages<'a> {
    runs: &'a [PastRun],
    /// By user and number, the one that began first at the front.
    by_id: HashMap<(&'a UserName, JobNumber), Vec<usize>>,
    fathers: Vec<Option<usize>>,
    has_child: Vec<bool>,
}

impl<'a> Lineages<'a> {
    fn of(runs: &'a [PastRun]) -> Self {
        let mut by_id: HashMap<(&UserName, JobNumber), Vec<usize>> = HashMap::new();
        for (at, run) in runs.iter().enumerate() {
            by_id.entry((&run.id.user, run.id.window)).or_default().push(at);
        }
        for all in by_id.values_mut() {
            all.sort_by_key(|at| runs.get(*at).map(|run| run.began));
        }
        let mut lineages = Self { runs, by_id, fathers: Vec::new(), has_child: Vec::new() };
        let fathers: Vec<Option<usize>> = runs.iter().map(|run| lineages.before(run)).collect();
        let mut has_child = vec![false; runs.len()];
        for father in fathers.iter().flatten() {
            if let Some(known) = has_child.get_mut(*father) {
                *known = true;
            }
        }
        (lineages.fathers, lineages.has_child) = (fathers, has_child);
        lineages
    }

    /// The attempt that another one goes on from: of those of its father's number the one that began last before it. Of
    /// two that began in the same second the smaller number did first, so no links run in a circle.
    fn before(&self, child: &PastRun) -> Option<usize> {
        let all = self.by_id.get(&(&child.id.user, child.father?))?;
        let order = |run: &PastRun| (run.began, run.id.window);
        let is_before =
            |at: &&usize| self.runs.get(**at).is_some_and(|run| order(run) < order(child));
        all.iter().rev().find(is_before).copied()
    }

    fn father(&self, at: usize) -> Option<&'a PastRun> {
        self.fathers.get(at).copied().flatten().and_then(|father| self.runs.get(father))
    }

    fn leaves(&self) -> impl Iterator<Item = usize> + '_ {
        self.has_child.iter().enumerate().filter(|(_, has)| !**has).map(|(at, _)| at)
    }

    /// An attempt and those before it.
    fn back_from(&self, leaf: usize) -> Vec<&'a PastRun> {
        let mut all = Vec::new();
        let mut at = Some(leaf);
        while let Some(run) = at.and_then(|at| self.runs.get(at)) {
            all.push(run);
            at = at.and_then(|at| self.fathers.get(at).copied().flatten());
        }
        all
    }

    /// The attempt that a job had when something happened for it: the next that began, else the last.
    fn run_of(&self, job: &'a JobId, at: Timestamp) -> Option<&'a PastRun> {
        let all = self.by_id.get(&(&job.user, job.window))?;
        let runs = || all.iter().filter_map(|known| self.runs.get(*known));
        runs().find(|run| run.began >= at).or_else(|| runs().next_back())
    }
}
