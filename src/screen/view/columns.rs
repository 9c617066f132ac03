//! The columns of the list, one entry each: adding a column is adding an entry to [`TABLE`]. Which of them are shown,
//! and how wide, says [`fit()`].

use std::collections::BTreeSet;

use ratatui::text::{Line, Span};

use super::layout::Layout;
use super::spans::{outside, span};
use super::{status, style, words};
use crate::model::facts::Progress;
use crate::model::groups;
use crate::model::job::Status;
use crate::model::time::{self, Timestamp};
use crate::model::view::JobView;
use crate::screen::model::Model;
use crate::screen::rows::{Row, Sort, SortKey};
use crate::screen::theme::Role;
use crate::text;

mod fit;

pub use fit::{fit, named_width, natural_widths, shown, useful_width};

/// What a cell is made of.
pub struct Cell<'a> {
    /// The whole model, for styles and settings.
    pub model: &'a Model,
    /// The row.
    pub row: &'a Row,
    /// Its job.
    pub job: &'a JobView,
    /// Columns of the terminal that the cell has.
    pub width: usize,
    /// Whether tags have a column of their own.
    pub own_tags: bool,
}

/// One column.
pub struct Column {
    /// Its name, for settings and tests.
    pub id: &'static str,
    /// Its head.
    pub head: &'static str,
    /// What it says, for whoever chooses.
    pub what: &'static str,
    /// Fewer columns of the terminal than this make it useless, unless no job has more to say.
    pub least: usize,
    /// More than this is wasted on it.
    pub most: usize,
    /// What it could use for one job, where that is less than `most` and quickly told.
    pub natural: Option<fn(&JobView) -> usize>,
    /// The smaller, the sooner it gives way when room is short.
    pub keep: u8,
    /// Whether it is asked for, where nobody has chosen columns by name.
    pub asked: fn(&Model) -> bool,
    /// Whether there is something to say in it about any of these jobs.
    pub has: fn(&[JobView]) -> bool,
    /// For one that is shown by itself only where there is room to spare: the smaller, the sooner.
    pub spare: Option<u8>,
    /// What it sorts by.
    pub sort: fn(&JobView) -> SortKey,
    /// Its content for one row.
    pub cell: fn(&Cell<'_>) -> Line<'static>,
}

/// All columns, from left to right.
pub const TABLE: &[Column] = &[
    Column {
        id: "user",
        head: "user",
        what: "whose it is",
        least: 6,
        most: 12,
        natural: Some(|job| text::width(job.id.user.as_str())),
        keep: 80,
        asked: Model::everybody,
        has: |_| true,
        spare: None,
        sort: |job| word(job.id.user.as_str()),
        cell: |cell| plain(outside(cell.job.id.user.as_str())),
    },
    Column {
        id: "window",
        head: "w",
        what: "its number, and how many attempts or members it stands for",
        least: 11,
        most: 11,
        natural: Some(|job| {
            // The row of a group says how many members it has.
            let group = match job.jobs() {
                1 => 2 * usize::from(job.member.is_some()),
                several => 2 + several.to_string().len(),
            };
            job.label().len() + group + 3 * usize::from(job.lineage.len() > 1)
        }),
        keep: 100,
        asked: |model| model.setup.columns.window,
        has: |_| true,
        spare: None,
        sort: |job| SortKey::Number(job.id.window.0.into()),
        cell: window,
    },
    Column {
        id: "dir",
        head: "dir",
        what: "the directory, with its tags",
        least: 9,
        most: 30,
        natural: Some(|job| text::width(job.dir_name())),
        keep: 70,
        asked: |model| model.setup.columns.dir,
        has: |_| true,
        spare: None,
        sort: |job| word(job.dir_name()),
        cell: dir,
    },
    Column {
        id: "tags",
        head: "tags",
        what: "its tags, in a column of their own",
        least: 6,
        most: 20,
        natural: Some(|job| text::width(job.tags.as_deref().unwrap_or_default())),
        keep: 10,
        asked: |model| model.setup.columns.dir,
        has: |jobs| jobs.iter().any(|job| job.tags.is_some()),
        spare: None,
        sort: |job| job.tags.as_deref().map_or(SortKey::Nothing, word),
        cell: |cell| plain(outside(cell.job.tags.as_deref().unwrap_or_default())),
    },
    Column {
        id: "target",
        head: "tpu",
        what: "the target",
        least: 8,
        most: 18,
        natural: Some(|job| text::width(&job.target_label)),
        keep: 60,
        asked: |model| model.setup.columns.target,
        has: |_| true,
        spare: None,
        sort: |job| word(&job.target_label),
        cell: |cell| plain(outside(&cell.job.target_label)),
    },
    Column {
        id: "kind",
        head: "kind",
        what: "the kind of its target",
        least: 5,
        most: 10,
        natural: Some(|job| text::width(job.kind.as_str())),
        keep: 11,
        asked: |model| model.setup.columns.target,
        has: |jobs| {
            jobs.windows(2)
                .any(|two| two.first().map(|job| &job.kind) != two.last().map(|job| &job.kind))
        },
        spare: Some(5),
        sort: |job| word(job.kind.as_str()),
        cell: |cell| plain(alone(cell, Some(outside(cell.job.kind.as_str())))),
    },
    Column {
        id: "status",
        head: "status",
        what: "how it is",
        least: 21,
        most: 34,
        // What changes from moment to moment takes always the same room.
        natural: Some(|job| match job.member {
            Some(_) => 21,
            None if job.jobs() > 1 => 21,
            // Mostly it is folded.
            None if !job.leaf => 13,
            None => text::width(&status_text(job)).clamp(13, 21),
        }),
        keep: 110,
        asked: asks_status,
        has: |_| true,
        spare: None,
        sort: |job| SortKey::Number(groups::urgency(job).into()),
        cell: shown_status,
    },
    Column {
        id: "progress",
        head: "done",
        what: "how much is done",
        least: 5,
        most: 17,
        natural: None,
        keep: 50,
        asked: asks_status,
        has: |_| true,
        spare: None,
        sort: |job| number(job.shown.progress.fraction()),
        cell: progress,
    },
    Column {
        id: "loss",
        head: "loss",
        what: "the newest loss",
        least: 6,
        most: 7,
        natural: None,
        keep: 20,
        asked: asks_status,
        has: |jobs| jobs.iter().any(|job| loss(job).is_some()),
        spare: None,
        sort: |job| number(job.shown.progress.loss),
        cell: |cell| plain(right(cell, loss(cell.job))),
    },
    Column {
        id: "speed",
        head: "it/s",
        what: "steps per second",
        least: 5,
        most: 6,
        natural: None,
        keep: 16,
        asked: asks_status,
        has: |jobs| jobs.iter().any(is_timed),
        spare: Some(1),
        sort: |job| number(job.shown.progress.steps_per_s),
        cell: |cell| plain(right(cell, speed(cell.model, cell.job).map(words::number))),
    },
    Column {
        id: "eta",
        head: "ETA",
        what: "how long it still needs",
        least: 6,
        most: 7,
        natural: None,
        keep: 18,
        asked: asks_status,
        has: |jobs| jobs.iter().any(is_timed),
        spare: Some(2),
        sort: |job| number(job.shown.progress.eta_s),
        cell: |cell| plain(alone(cell, left_s(cell.model, cell.job).map(time::age))),
    },
    Column {
        id: "started",
        head: "started",
        what: "when it began",
        least: 7,
        most: 7,
        natural: None,
        keep: 14,
        asked: asks_status,
        has: |jobs| jobs.iter().any(|job| job.started_at.is_some()),
        spare: Some(3),
        sort: |job| instant(job.started_at),
        cell: |cell| plain(alone(cell, short(cell, cell.job.started_at))),
    },
    Column {
        id: "ended",
        head: "ended",
        what: "when it ended",
        least: 6,
        most: 7,
        natural: None,
        keep: 30,
        asked: asks_status,
        has: |jobs| jobs.iter().any(|job| job.ended_at.is_some()),
        spare: None,
        sort: |job| instant(job.ended_at),
        cell: |cell| plain(alone(cell, short(cell, cell.job.ended_at))),
    },
    Column {
        id: "age",
        head: "time",
        what: "how long it has run, or ran, or has waited",
        least: 7,
        most: 7,
        natural: None,
        keep: 40,
        asked: asks_status,
        has: |_| true,
        spare: None,
        sort: |job| number(job.age_s.map(seconds)),
        cell: |cell| {
            plain(
                members(cell).filter_map(|job| job.age_s).max().map(time::age).unwrap_or_default(),
            )
        },
    },
    Column {
        id: "gpus",
        head: "GPUs",
        what: "how many GPUs it was given",
        least: 4,
        most: 4,
        natural: None,
        keep: 12,
        asked: asks_status,
        has: |jobs| jobs.iter().any(|job| gpus(job).is_some()),
        spare: Some(4),
        sort: |job| gpus(job).map_or(SortKey::Nothing, |count| SortKey::Number(count.into())),
        cell: |cell| plain(right(cell, gpus(cell.job).map(|count| count.to_string()))),
    },
    Column {
        id: "output",
        head: "output",
        what: "the newest line of its output",
        least: 20,
        most: 200,
        natural: None,
        keep: 36,
        asked: |model| model.setup.columns.output,
        has: |_| true,
        spare: None,
        sort: |_| SortKey::Nothing,
        cell: |cell| {
            if cell.row.is_group() {
                return Line::default();
            }
            if let Some(why) = cell.model.boards.why_waits(cell.job) {
                return dim(cell, outside(why));
            }
            let newest = cell.job.tail.lines().rev().find(|line| !line.trim().is_empty());
            dim(cell, outside(newest.map_or("", |line| line.trim())))
        },
    },
];

/// The names of the columns that are on the screen, or would be if the list were.
pub fn on_screen(model: &Model) -> BTreeSet<&'static str> {
    let area = Layout::of(model).list;
    let width = area.map_or(usize::from(model.size.0), |area| usize::from(area.width));
    fit(model, width.saturating_sub(4)).into_iter().map(|(column, _)| column.id).collect()
}

/// The names of those that somebody has chosen, also where there is no room for them; else of those on the screen.
pub fn marked(model: &Model) -> BTreeSet<&'static str> {
    model.setup.columns.chosen.clone().unwrap_or_else(|| on_screen(model))
}

/// Reads the names of columns. There is no column of a name that is an error.
pub fn chosen(names: &[String]) -> Result<BTreeSet<&'static str>, UnknownColumn> {
    let known =
        |name: &String| named(name).map(|column| column.id).ok_or(UnknownColumn(name.clone()));
    names.iter().map(known).collect()
}

/// There is no column of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("monitor_columns: there is no column '{0}'")]
pub struct UnknownColumn(String);

impl UnknownColumn {
    /// The names that there are.
    pub fn hint() -> String {
        let names: Vec<&str> = TABLE.iter().map(|column| column.id).collect();
        format!("the columns are {}", names.join(", "))
    }
}

/// The columns that the list has and that sort, from left to right.
pub fn sortable(model: &Model) -> impl Iterator<Item = Sort> + '_ {
    let shown = shown(model).filter(|column| column.id != "output");
    shown.map(|column| Sort { id: column.id, key: column.sort })
}

/// The column of this name.
pub fn named(id: &str) -> Option<&'static Column> {
    TABLE.iter().find(|column| column.id == id)
}

/// How to sort by the column of this name.
pub fn sort_of(id: &str) -> Option<Sort> {
    named(id).map(|column| Sort { id: column.id, key: column.sort })
}

fn word(text: &str) -> SortKey {
    SortKey::Word(text.to_lowercase())
}

fn number(value: Option<f64>) -> SortKey {
    value.map_or(SortKey::Nothing, SortKey::Number)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "no job is so old that a float cannot count its seconds"
)]
fn seconds(age: u64) -> f64 {
    age as f64
}

fn asks_status(model: &Model) -> bool {
    model.setup.columns.status
}

/// Whether it may be known how fast a job is.
fn is_timed(job: &JobView) -> bool {
    let Progress { step, steps_per_s, eta_s, .. } = &job.shown.progress;
    job.shown.status.is_live() && (step.is_some() || steps_per_s.is_some() || eta_s.is_some())
}

fn instant(at: Option<Timestamp>) -> SortKey {
    #[expect(clippy::cast_precision_loss, reason = "seconds of this age fit into a float")]
    at.map_or(SortKey::Nothing, |at| SortKey::Number(at.as_second() as f64))
}

/// A moment as people name it: the time of a moment of today, else the day.
fn short(cell: &Cell<'_>, at: Option<Timestamp>) -> Option<String> {
    at.map(|at| cell.model.setup.zone.short(at, cell.model.now))
}

/// Steps per second of a job at work.
fn speed(model: &Model, job: &JobView) -> Option<f64> {
    let told = job.shown.progress.steps_per_s;
    let known = told.or_else(|| model.traces.of(job)?.speed());
    known.filter(|_| job.shown.status.is_live())
}

/// How many seconds a job at work still needs.
fn left_s(model: &Model, job: &JobView) -> Option<u64> {
    let told = job.shown.progress.eta_s;
    let known = told.or_else(|| model.traces.of(job)?.eta_s(job));
    known.filter(|_| job.shown.status.is_live()).and_then(words::whole_seconds)
}

fn gpus(job: &JobView) -> Option<u32> {
    let given = job.share.as_ref()?.gpus.as_ref()?;
    u32::try_from(given.len()).ok()
}

/// What is said of one job; the row of a group says nothing of it.
fn alone(cell: &Cell<'_>, said: Option<String>) -> String {
    said.filter(|_| !cell.row.is_group()).unwrap_or_default()
}

/// The same for a number.
fn right(cell: &Cell<'_>, said: Option<String>) -> String {
    format!("{:>width$}", alone(cell, said), width = cell.width.min(6))
}

fn plain(words: String) -> Line<'static> {
    Line::from(Span::raw(words))
}

fn dim(cell: &Cell<'_>, words: String) -> Line<'static> {
    Line::from(span(words, style(cell.model, Role::Dim)))
}

/// The jobs that a row stands for.
fn members<'a>(cell: &'a Cell<'_>) -> impl Iterator<Item = &'a JobView> {
    let alone = (!cell.row.is_group()).then_some(cell.job);
    let jobs = cell.model.jobs();
    cell.row.members.iter().filter_map(|at| jobs.get(*at)).chain(alone)
}

fn window(cell: &Cell<'_>) -> Line<'static> {
    if cell.row.is_group() {
        let jobs: usize = members(cell).map(JobView::jobs).sum();
        let many = span(format!(" ×{jobs}"), style(cell.model, Role::Dim));
        return Line::from(vec![Span::raw(cell.row.id.window.to_string()), many]);
    }
    let folded = match cell.row.folded {
        0 => String::new(),
        more => format!(" +{more}"),
    };
    let window = Span::raw(cell.job.label());
    Line::from(vec![window, span(folded, style(cell.model, Role::Dim))])
}

/// The least that is seen of tags behind a directory: ` #a…`.
const TAGS: usize = 4;

/// The directory with its tags; for an earlier attempt, what became of it.
fn dir(cell: &Cell<'_>) -> Line<'static> {
    if cell.row.attempt {
        let younger = cell.job.lineage.iter().skip_while(|id| **id != cell.job.id.window).nth(1);
        let younger = younger.map(|id| format!(" → {id}")).unwrap_or_default();
        return dim(cell, format!("└ attempt{younger}"));
    }
    let mut line = plain(words::dir(cell.job));
    // Of fewer columns than this nobody could tell the tags: the name stands there whole instead.
    let fits = line.width() + TAGS <= cell.width || line.width() > cell.width;
    let tags = cell.job.tags.as_deref().filter(|tags| !cell.own_tags && !tags.is_empty() && fits);
    if let Some(tags) = tags {
        line.push_span(span(format!(" #{}", outside(tags)), style(cell.model, Role::Dim)));
    }
    line
}

fn shown_status(cell: &Cell<'_>) -> Line<'static> {
    let status::Shown { glyph, role, .. } = status::of(cell.job);
    if cell.row.is_group() {
        let words = format!("{glyph} {}", groups::counts(members(cell)));
        if text::width(&words) > cell.width {
            return status::in_short(cell.model, &status::tally(members(cell)));
        }
        return Line::from(span(words, style(cell.model, role)));
    }
    Line::from(span(status_text(cell.job), style(cell.model, role)))
}

/// The newest loss of a job, also of one that has ended, unless another attempt tells it.
fn loss(job: &JobView) -> Option<String> {
    let goes_on = matches!(job.shown.status, Status::Resumed(_) | Status::Rerunned(_));
    job.shown.progress.loss.filter(|_| !goes_on).map(words::number)
}

/// Glyph and word, with the epoch of a job at work.
fn status_text(job: &JobView) -> String {
    let shown = status::of(job);
    if let Some(queued) = &job.shown.queued {
        return format!("{} {}, place {}", shown.glyph, shown.word, queued.position);
    }
    let epoch = job.shown.progress.epoch.filter(|_| shown.word == "running");
    let epoch = epoch.map(|at| format!(" ep {}", words::epoch(at))).unwrap_or_default();
    format!("{} {}{epoch}", shown.glyph, shown.word)
}

/// A bar and a share where there is room, else the share alone.
fn progress(cell: &Cell<'_>) -> Line<'static> {
    // Of what another attempt continues, that one tells how far it is.
    let goes_on = matches!(cell.job.shown.status, Status::Resumed(_) | Status::Rerunned(_));
    let done = if cell.row.is_group() {
        mean(members(cell))
    } else {
        cell.job.shown.progress.fraction().filter(|_| !goes_on)
    };
    let Some(fraction) = done else {
        return Line::default();
    };
    let percent = format!("{:>5}", words::percent(fraction));
    let mut line = match cell.width.checked_sub(6).filter(|width| *width >= 5) {
        Some(width) => bar(cell.model, fraction, width),
        None => return plain(percent),
    };
    line.push_span(Span::raw(format!(" {percent}")));
    line
}

/// How far the members of a group are together, if anything is known of one; of the others nothing is done.
#[expect(clippy::cast_precision_loss, reason = "a group has few members")]
fn mean<'a>(members: impl Iterator<Item = &'a JobView>) -> Option<f64> {
    let (mut sum, mut all, mut is_known) = (0.0, 0_usize, false);
    for job in members {
        let fraction = match job.shown.status {
            Status::Finished => Some(1.0),
            _ => job.shown.progress.fraction(),
        };
        is_known |= fraction.is_some();
        sum += fraction.unwrap_or_default();
        all += job.jobs();
    }
    is_known.then(|| sum / all as f64)
}

/// A progress bar of `width` columns, in eighths of a column.
pub(super) fn bar(model: &Model, fraction: f64, width: usize) -> Line<'static> {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share from 0 to 1 of a small width"
    )]
    let eighths = (fraction.clamp(0.0, 1.0) * (width * 8) as f64) as usize;
    let part = PARTS.get(eighths % 8).copied().unwrap_or_default();
    let done = format!("{}{part}", "█".repeat(eighths / 8));
    let rest = width.saturating_sub(text::width(&done));
    Line::from(vec![
        span(done, style(model, Role::BarDone)),
        span("░".repeat(rest), style(model, Role::BarTodo)),
    ])
}
