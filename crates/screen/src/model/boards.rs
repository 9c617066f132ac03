//! The tabs beside the jobs: what they show, and which row of it is chosen.

use std::collections::HashMap;

use crate::message::Problem;
use crate::model::{Model, Usage};
use crate::tabs::Tab;
use tpu_core::model::ids::JobId;
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::JobView;
use tpu_core::plan::board::Row;
use tpu_core::plan::expected::ExpectedStart;
use tpu_core::plan::filter::Filter;
use tpu_ops::act::board::Board;
use tpu_ops::act::hosts::figures::Figures;
use tpu_ops::observe::journal::Event;
use tpu_ops::waiting::preview::{Entry, Plan};
use tpu_ops::waiting::queue::WaitingOutlook;

/// What was asked for, what came, and how old it is.
#[derive(Clone, Debug)]
pub struct Asked<T> {
    /// The newest answer.
    pub seen: Option<T>,
    /// When it came.
    pub at: Option<Timestamp>,
    /// When an answer came last, be it none.
    pub heard: Option<Timestamp>,
    /// Why there is no newer one.
    pub problem: Option<Problem>,
    /// Since when an answer is awaited.
    pub waiting: Option<Timestamp>,
    /// Whether somebody wants a new answer now.
    pub wanted: bool,
}

impl<T> Default for Asked<T> {
    fn default() -> Self {
        Self { seen: None, at: None, heard: None, problem: None, waiting: None, wanted: false }
    }
}

impl<T> Asked<T> {
    /// Takes an answer in. What was seen before stays when there is none.
    pub fn answered(&mut self, answer: Result<T, Problem>, now: Timestamp) {
        (self.waiting, self.wanted, self.heard) = (None, false, Some(now));
        match answer {
            Ok(seen) => {
                (self.seen, self.at, self.problem) = (Some(seen), Some(now), None);
            }
            Err(problem) => self.problem = Some(problem),
        }
    }

    /// Whether to ask (again): nothing is awaited, and the last answer is so old or somebody wants a new one.
    pub fn is_due(&self, now: Timestamp, every_s: u64) -> bool {
        let is_old = self.heard.is_none_or(|at| now.seconds_since(at) >= every_s);
        self.waiting.is_none() && (is_old || self.wanted)
    }

    /// Seconds since the newest answer.
    pub fn age_s(&self, now: Timestamp) -> Option<u64> {
        self.at.map(|at| now.seconds_since(at))
    }
}

/// Which row of a tab is chosen, and which rows there are.
#[derive(Clone, Debug, Default)]
pub struct Choosing {
    /// The chosen row by its key, so that it stays chosen when rows come and go.
    pub selected: Option<String>,
    /// First row on the screen.
    pub top: usize,
    /// Only rows that pass this: on the targets the language of [`Filter`], else words that a row holds.
    pub filter: String,
    /// The rows that the filter lets through. Computed when something changes, not for every frame.
    pub rows: Vec<BoardRow>,
    /// Whether the rows must be computed again.
    pub stale: bool,
}

/// Everything that the tabs beside the jobs show.
#[derive(Clone, Debug, Default)]
pub struct Boards {
    /// The targets.
    pub targets: Asked<Board>,
    /// What machines said last of themselves and of the jobs on them.
    pub figures: Asked<Figures>,
    /// What has happened, oldest first.
    pub events: Asked<Vec<Event>>,
    /// How often the time of the timelines above the events has been halved, around the chosen event.
    pub zoom: u32,
    /// What will happen by itself.
    pub plan: Asked<Plan>,
    /// Why each entry of the queue does not begin, when machines have been asked, and when it is expected to.
    pub queue: Asked<HashMap<JobId, WaitingOutlook>>,
    /// What ran, counted.
    pub usage: Usage,
    choosing: [Choosing; 5],
}

/// One row of such a tab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardRow {
    /// What tells it from the others.
    pub key: String,
    /// Its place in what was answered.
    pub at: usize,
}

fn of_tab<T>([targets, queue, events, plan, usage]: [T; 5], tab: Tab) -> T {
    match tab {
        Tab::Jobs | Tab::Targets => targets,
        Tab::Queue => queue,
        Tab::Events => events,
        Tab::Plan => plan,
        Tab::Usage => usage,
    }
}

impl Boards {
    /// The choice on a tab.
    pub fn choosing(&self, tab: Tab) -> &Choosing {
        of_tab(self.choosing.each_ref(), tab)
    }

    /// The same, to be changed.
    pub(crate) fn choosing_mut(&mut self, tab: Tab) -> &mut Choosing {
        of_tab(self.choosing.each_mut(), tab)
    }

    /// The chosen row of a tab.
    pub fn chosen(&self, tab: Tab) -> Option<&BoardRow> {
        let choosing = self.choosing(tab);
        let selected = choosing.selected.as_ref()?;
        choosing.rows.iter().find(|row| row.key == *selected)
    }

    /// Why something waits: as it was found out when machines were last asked, else what follows from records.
    pub(crate) fn why_waits<'a>(&'a self, job: &'a JobView) -> Option<&'a str> {
        let queued = job.shown.queued.as_ref()?;
        let asked = || self.queue.seen.as_ref()?.get(&job.id)?.why.as_deref();
        queued.reason.as_deref().or_else(asked)
    }

    /// When something that waits is expected to begin.
    pub fn starts(&self, job: &JobView) -> Option<&ExpectedStart> {
        job.shown.queued.as_ref()?;
        self.queue.seen.as_ref()?.get(&job.id)?.expected.as_ref()
    }

    /// Asks for everything again, whatever its age.
    pub(crate) fn look_again(&mut self) {
        (self.targets.wanted, self.events.wanted, self.plan.wanted) = (true, true, true);
        (self.figures.wanted, self.queue.wanted, self.usage.asked.wanted) = (true, true, true);
    }

    /// Says that what the tabs show has changed.
    pub fn changed(&mut self) {
        self.choosing.iter_mut().for_each(|choosing| choosing.stale = true);
    }

    /// Seconds for which the answer that a tab waits for has been awaited.
    pub(crate) fn waiting_s(&self, tab: Tab, now: Timestamp) -> Option<u64> {
        let since = match tab {
            Tab::Jobs => None,
            Tab::Targets => self.targets.waiting,
            Tab::Queue => self.queue.waiting,
            Tab::Events => self.events.waiting,
            Tab::Plan => self.plan.waiting,
            Tab::Usage => self.usage.asked.waiting,
        };
        since.map(|at| now.seconds_since(at))
    }

    /// The zones that gave no answer when the targets were last asked about, and why the first did not.
    pub fn silent(&self) -> Option<(String, &str)> {
        let silent = &self.targets.seen.as_ref()?.silent;
        let (first, why) = silent.first()?;
        let zones: Vec<&str> = silent.iter().map(|(zone, _)| zone.as_str()).collect();
        Some((if first == "-" { "the cloud".to_owned() } else { zones.join(", ") }, why))
    }

    /// Age and problem of what a tab shows.
    pub fn state(&self, tab: Tab, now: Timestamp) -> (Option<u64>, Option<&Problem>) {
        match tab {
            Tab::Jobs => (None, None),
            Tab::Targets => (self.targets.age_s(now), self.targets.problem.as_ref()),
            Tab::Queue => (self.queue.age_s(now), self.queue.problem.as_ref()),
            Tab::Events => (self.events.age_s(now), self.events.problem.as_ref()),
            Tab::Plan => (self.plan.age_s(now), self.plan.problem.as_ref()),
            Tab::Usage => (self.usage.asked.age_s(now), self.usage.asked.problem.as_ref()),
        }
    }
}

/// The rows of a tab that its filter lets through. The journal stands with the newest event first, the
/// plan with what comes next first.
pub fn rows(model: &Model, tab: Tab) -> Vec<BoardRow> {
    let boards = &model.boards;
    let filter = boards.choosing(tab).filter.to_lowercase();
    let row = |(at, (key, text)): (usize, (String, String))| {
        filter
            .split_whitespace()
            .all(|word| match word.strip_prefix('!') {
                Some("") => true,
                Some(not) => !text.to_lowercase().contains(not),
                None => text.to_lowercase().contains(word),
            })
            .then_some(BoardRow { key, at })
    };
    match tab {
        Tab::Jobs => Vec::new(),
        Tab::Targets => {
            let filter = Filter::parse(&boards.choosing(tab).filter);
            let targets = boards.targets.seen.iter().flat_map(|seen| &seen.targets).enumerate();
            let shown = targets.filter(|(_, row)| filter.matches_target(row, model.now));
            let mut shown: Vec<(usize, &Row)> = shown.collect();
            // This machine, others, what a cloud has, engines; each kind by itself.
            shown.sort_by_key(|(_, row)| (row.fact.machines.rank(), &row.kind));
            shown.into_iter().map(|(at, row)| BoardRow { key: key(row), at }).collect()
        }
        Tab::Queue => {
            let jobs = model.jobs().iter().enumerate();
            let waiting = jobs.filter_map(|(at, job)| Some((at, job, job.shown.queued.as_ref()?)));
            let texts = waiting.map(|(at, job, queued)| {
                let words = [job.known_as(), job.tags.as_deref(), Some(&job.target_label)];
                let words: Vec<&str> = words.into_iter().flatten().collect();
                let why = boards.why_waits(job).unwrap_or_default();
                let key = job.id.to_string();
                let text =
                    format!("{key} {} {} {} {why}", queued.word(), queued.queue, words.join(" "));
                (at, (key, text))
            });
            texts.filter_map(row).collect()
        }
        Tab::Events => {
            let events = boards.events.seen.iter().flatten();
            let mine = |event: &&Event| {
                event.user.as_ref().is_none_or(|user| model.scope.whose.includes(user))
            };
            let texts = events.enumerate().filter(|(_, event)| mine(event)).map(|(at, event)| {
                let window = event.job.map(|job| job.to_string()).unwrap_or_default();
                let user = event.user.as_ref().map(ToString::to_string).unwrap_or_default();
                let key = format!("{} {user}/{window} {}", event.at.to_rfc3339(), event.kind);
                (
                    at,
                    (
                        format!("{key} {}", event.text),
                        format!("{key} {} {}", event.text, event.actor),
                    ),
                )
            });
            let mut rows: Vec<_> = texts.filter_map(row).collect();
            rows.reverse();
            rows
        }
        Tab::Plan => {
            let entries = boards.plan.seen.iter().flat_map(|plan| &plan.jobs).enumerate();
            let mine = |entry: &Entry| model.scope.whose.includes(&entry.view.id.user);
            let mut wanted: Vec<(usize, &Entry)> =
                entries.filter(|(_, entry)| concerns(entry) && mine(entry)).collect();
            wanted.sort_by_key(|(at, entry)| {
                let next = entry.next.as_ref().filter(|next| next.action != "pass");
                (next.is_none(), next.and_then(|next| next.in_s).unwrap_or(u64::MAX), *at)
            });
            let texts = wanted.into_iter().map(|(at, entry)| {
                let action =
                    entry.next.as_ref().map(|next| next.action.clone()).unwrap_or_default();
                let key = entry.view.id.to_string();
                let target = &entry.view.target_label;
                (at, (key.clone(), format!("{key} {target} {action} {}", entry.reason)))
            });
            texts.filter_map(row).collect()
        }
        Tab::Usage => {
            let rows = boards.usage.asked.seen.iter().flat_map(|seen| &seen.rows).enumerate();
            let texts = rows.map(|(at, row)| (at, (row.key.clone(), row.key.clone())));
            texts.filter_map(row).collect()
        }
    }
}

/// What tells a target from others; one that only the control plane knows may have the name of another.
fn key(row: &Row) -> String {
    match (&row.zone, row.is_known) {
        (Some(zone), false) => format!("{} in {zone}", row.target),
        _ => row.target.as_str().to_owned(),
    }
}

/// Whether there is anything to plan for a job: it failed, or somebody acts on it. What an attempt's
/// successor has taken over is over.
pub fn concerns(entry: &Entry) -> bool {
    (entry.next.is_some() && entry.view.leaf) || entry.lease.is_some()
}

/// The jobs that the chosen row of a tab is about.
pub fn jobs_of(model: &Model, row: &BoardRow) -> Vec<JobId> {
    let boards = &model.boards;
    match model.tab {
        // What ran long ago is no longer among the jobs.
        Tab::Jobs | Tab::Usage => Vec::new(),
        Tab::Targets => {
            let item = boards.targets.seen.as_ref().and_then(|seen| seen.targets.get(row.at));
            item.map(|item| item.jobs.clone()).unwrap_or_default()
        }
        Tab::Queue => model.jobs().get(row.at).map(|job| job.id.clone()).into_iter().collect(),
        Tab::Events => {
            let event = boards.events.seen.as_ref().and_then(|events| events.get(row.at));
            let job = event.and_then(|event| Some(JobId::new(event.user.clone()?, event.job?)));
            job.into_iter().collect()
        }
        Tab::Plan => {
            let entry = boards.plan.seen.as_ref().and_then(|plan| plan.jobs.get(row.at));
            entry.map(|entry| entry.view.id.clone()).into_iter().collect()
        }
    }
}
