//! The columns of the list, one entry each: adding a column is adding an entry to [`TABLE`].

use ratatui::text::{Line, Span};

use super::spans::{outside, span};
use super::{status, style, words};
use crate::model::groups;
use crate::model::job::Status;
use crate::model::time;
use crate::model::view::JobView;
use crate::screen::model::Model;
use crate::screen::rows::{Row, Sort, SortKey};
use crate::screen::theme::Role;
use crate::text;

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
    /// Fewer columns of the terminal than this make it useless, unless no job has more to say.
    pub least: usize,
    /// More than this is wasted on it.
    pub most: usize,
    /// What it could use for one job, where that is less than `most` and quickly told.
    pub natural: Option<fn(&JobView) -> usize>,
    /// The smaller, the sooner it gives way when room is short.
    pub keep: u8,
    /// Whether it is wanted at all.
    pub wanted: fn(&Model) -> bool,
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
        least: 6,
        most: 12,
        natural: Some(|job| text::width(job.id.user.as_str())),
        keep: 8,
        wanted: Model::everybody,
        sort: |job| word(job.id.user.as_str()),
        cell: |cell| plain(outside(cell.job.id.user.as_str())),
    },
    Column {
        id: "window",
        head: "w",
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
        keep: 10,
        wanted: |model| model.setup.columns.window,
        sort: |job| SortKey::Number(job.id.window.0.into()),
        cell: window,
    },
    Column {
        id: "dir",
        head: "dir",
        least: 9,
        most: 30,
        natural: Some(|job| text::width(words::dir_name(job))),
        keep: 7,
        wanted: |model| model.setup.columns.dir,
        sort: |job| word(words::dir_name(job)),
        cell: dir,
    },
    Column {
        id: "tags",
        head: "tags",
        least: 6,
        most: 20,
        natural: Some(|job| text::width(job.tags.as_deref().unwrap_or_default())),
        keep: 2,
        wanted: |model| {
            model.setup.columns.dir && model.jobs().iter().any(|job| job.tags.is_some())
        },
        sort: |job| job.tags.as_deref().map_or(SortKey::Nothing, word),
        cell: |cell| plain(outside(cell.job.tags.as_deref().unwrap_or_default())),
    },
    Column {
        id: "target",
        head: "tpu",
        least: 8,
        most: 18,
        natural: Some(|job| text::width(&job.target_label)),
        keep: 6,
        wanted: |model| model.setup.columns.target,
        sort: |job| word(&job.target_label),
        cell: |cell| plain(outside(&cell.job.target_label)),
    },
    Column {
        id: "status",
        head: "status",
        least: 21,
        most: 34,
        // What changes from moment to moment takes always the same room.
        natural: Some(|job| match job.member {
            Some(_) => 34,
            None if job.jobs() > 1 => 34,
            None => text::width(&status_text(job)).clamp(13, 21),
        }),
        keep: 11,
        wanted: |model| model.setup.columns.status,
        sort: |job| SortKey::Number(groups::urgency(job).into()),
        cell: shown_status,
    },
    Column {
        id: "progress",
        head: "done",
        least: 5,
        most: 17,
        natural: None,
        keep: 5,
        wanted: |model| model.setup.columns.status,
        sort: |job| number(job.shown.progress.fraction()),
        cell: progress,
    },
    Column {
        id: "loss",
        head: "loss",
        least: 6,
        most: 7,
        natural: None,
        keep: 1,
        // Also of what has ended: how far it came stays to be seen.
        wanted: |model| {
            model.setup.columns.status && model.jobs().iter().any(|job| loss(job).is_some())
        },
        sort: |job| number(job.shown.progress.loss),
        cell: |cell| {
            let value = loss(cell.job).filter(|_| !cell.row.is_group()).unwrap_or_default();
            plain(format!("{value:>width$}", width = cell.width.min(6)))
        },
    },
    Column {
        id: "age",
        head: "age",
        least: 7,
        most: 7,
        natural: None,
        keep: 4,
        wanted: |model| model.setup.columns.status,
        sort: |job| number(job.age_s.map(seconds)),
        cell: |cell| {
            plain(
                members(cell).filter_map(|job| job.age_s).max().map(time::age).unwrap_or_default(),
            )
        },
    },
    Column {
        id: "output",
        head: "output",
        least: 20,
        most: 200,
        natural: None,
        keep: 3,
        wanted: |model| model.setup.columns.output,
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

/// The columns that the list has and that sort, from left to right.
pub fn sortable(model: &Model) -> impl Iterator<Item = Sort> + '_ {
    let shown = TABLE.iter().filter(|column| (column.wanted)(model) && column.id != "output");
    shown.map(|column| Sort { id: column.id, key: column.sort })
}

/// How to sort by the column of this name.
pub fn sort_of(id: &str) -> Option<Sort> {
    let column = TABLE.iter().find(|column| column.id == id)?;
    Some(Sort { id: column.id, key: column.sort })
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

/// So much of a name is seen before a column that can be missed.
const NAMED: usize = 12;

/// The columns that fit into `width`, each with its share, one blank between two.
///
/// Every column first gets the least it needs; the ones that are kept least give way until that fits. What
/// is left over goes round, one at a time, to those that can use more, words before bars.
pub fn fit(model: &Model, width: usize) -> Vec<(&'static Column, usize)> {
    let mut columns = wanted(model);
    let needed = |columns: &[(&Column, usize)]| -> usize {
        columns.iter().map(|column| least(column) + 1).sum::<usize>().saturating_sub(1)
    };
    // No name is cut for the weakest one: that says in a column what the detail says as well.
    let named = |columns: &[(&Column, usize)]| -> usize {
        let cut = |(column, most): &(&Column, usize)| match column.natural {
            Some(_) => NAMED.min(*most).saturating_sub(least(&(*column, *most))),
            None => 0,
        };
        needed(columns) + columns.iter().map(cut).sum::<usize>()
    };
    if named(&columns) > width {
        columns.retain(|(column, _)| column.keep > 1);
    }
    while columns.len() > 1 && needed(&columns) > width {
        if let Some(weakest) = columns.iter().map(|(column, _)| column.keep).min() {
            columns.retain(|(column, _)| column.keep != weakest);
        }
    }
    let mut left = width.saturating_sub(needed(&columns));
    let mut shares: Vec<_> = columns.iter().map(|column| (column.0, least(column))).collect();
    // Which one it is and how it is are never cut before what it is called; then words: a cut name hurts more than a short
    // bar.
    let is_next: [fn(&Column) -> bool; 3] = [
        |column| ["window", "status"].contains(&column.id),
        |column| column.natural.is_some(),
        |column| column.natural.is_none(),
    ];
    for is_next in is_next {
        while left > 0 {
            let before = left;
            for ((column, share), (_, most)) in shares.iter_mut().zip(&columns) {
                if left > 0 && *share < *most && is_next(column) {
                    *share += 1;
                    left -= 1;
                }
            }
            if left == before {
                break;
            }
        }
    }
    shares
}

/// The least of a wanted column: no more than it can use.
fn least((column, most): &(&Column, usize)) -> usize {
    column.least.min(*most)
}

/// Columns of the terminal that all wanted columns together can use.
pub fn useful_width(model: &Model) -> usize {
    wanted(model).iter().map(|(_, most)| most + 1).sum::<usize>().saturating_sub(1)
}

/// What each column of [`TABLE`] could use for these jobs. Walks over all of them, so it is computed once
/// per look and kept in the model.
pub fn natural_widths(jobs: &[JobView]) -> Vec<usize> {
    let widest = |column: &Column| {
        let natural = column.natural.and_then(|width| jobs.iter().map(width).max());
        // The head with its arrow is always seen.
        let head = (text::width(column.head) + 2).min(column.least);
        natural.unwrap_or(column.most).clamp(head, column.most)
    };
    TABLE.iter().map(widest).collect()
}

/// The wanted columns, with the most that each can use for the jobs that are there.
fn wanted(model: &Model) -> Vec<(&'static Column, usize)> {
    let widths = model.list.widths.iter().copied().map(Some).chain(std::iter::repeat(None));
    let columns = TABLE.iter().zip(widths).filter(|(column, _)| (column.wanted)(model));
    // An earlier attempt says in the place of its directory what it is.
    let attempts = !model.list.unfolded.is_empty();
    let most = |column: &Column, width: Option<usize>| match width {
        Some(width) if attempts && column.id == "dir" => width.max(column.least),
        Some(width) => width,
        None => column.most,
    };
    columns.map(|(column, width)| (column, most(column, width))).collect()
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

/// The directory with its tags; for an earlier attempt, what became of it.
fn dir(cell: &Cell<'_>) -> Line<'static> {
    if cell.row.attempt {
        let younger = cell.job.lineage.iter().skip_while(|id| **id != cell.job.id.window).nth(1);
        let younger = younger.map(|id| format!(" → {id}")).unwrap_or_default();
        return dim(cell, format!("└ attempt{younger}"));
    }
    let mut line = plain(words::dir(cell.job));
    if let Some(tags) = cell.job.tags.as_deref().filter(|tags| !cell.own_tags && !tags.is_empty()) {
        line.push_span(span(format!(" #{}", outside(tags)), style(cell.model, Role::Dim)));
    }
    line
}

fn shown_status(cell: &Cell<'_>) -> Line<'static> {
    let status::Shown { glyph, role, .. } = status::of(cell.job);
    if cell.row.is_group() {
        let words = format!("{glyph} {}", groups::counts(members(cell)));
        return Line::from(span(words, style(cell.model, role)));
    }
    Line::from(span(status_text(cell.job), style(cell.model, role)))
}

/// The newest loss of a job, unless another attempt tells it.
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
