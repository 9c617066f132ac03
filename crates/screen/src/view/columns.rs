//! The columns of the list, one entry each: adding a column is adding an entry to [`TABLE`]. Which of them are shown,
//! and how wide, says [`fit()`].

use std::collections::BTreeSet;

use ratatui::text::Line;

use super::spans::outside;
use super::words;
use crate::model::Model;
use crate::rows::{Row, Sort, SortKey};
use crate::typed::ColumnName;
use tpu_core::model::groups;
use tpu_core::model::time::{self, Timestamp};
use tpu_core::model::view::JobView;
use tpu_core::text;

mod cells;
mod fit;

pub(super) use cells::bar;
pub use fit::{fit, named_width, natural_widths, shown, useful_width};

use cells::{
    alone, cost, dim, dir, gpus, is_timed, known, left_s, loss, members, plain, progress, right,
    short, shown_status, speed, status_text, window,
};

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
        id: "name",
        head: "name",
        what: "its name, or else what it runs",
        least: 8,
        most: 30,
        natural: Some(|job| text::width(job.known_as().unwrap_or_default())),
        keep: 55,
        asked: |model| model.setup.columns.window,
        has: |jobs| jobs.iter().any(|job| job.known_as().is_some()),
        spare: None,
        sort: |job| job.known_as().map_or(SortKey::Nothing, word),
        cell: known,
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
        spare: Some(6),
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
            None => text::width(&status_text(job)).max(13),
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
        id: "waited",
        head: "waited",
        what: "how long it waited for its turn, or waits",
        least: 8,
        most: 8,
        natural: None,
        keep: 13,
        asked: asks_status,
        has: |jobs| jobs.iter().any(|job| job.waited_s.is_some()),
        spare: Some(7),
        sort: |job| number(job.waited_s.map(seconds)),
        cell: |cell| plain(alone(cell, cell.job.waited_s.map(time::age))),
    },
    Column {
        id: "cost",
        head: "cost",
        what: "what its attempts have cost, by the prices of the settings",
        least: 6,
        most: 8,
        natural: None,
        keep: 15,
        asked: asks_status,
        has: |jobs| jobs.iter().any(|job| job.cost.is_some()),
        spare: Some(4),
        sort: |job| number(job.cost),
        cell: |cell| plain(format!("{:>width$}", cost(cell), width = cell.width.min(7))),
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
        spare: Some(5),
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
pub(crate) fn sortable(model: &Model) -> impl Iterator<Item = Sort> + '_ {
    let shown = shown(model).filter(|column| column.id != "output");
    shown.map(|column| Sort { id: column.id, key: column.sort })
}

/// How each column may be named, from left to right.
pub fn names() -> Vec<ColumnName> {
    TABLE.iter().map(|column| ColumnName { id: column.id, head: column.head }).collect()
}

/// The column of this name.
pub fn named(id: &str) -> Option<&'static Column> {
    TABLE.iter().find(|column| column.id == id)
}

/// How to sort by the column of this name.
pub(crate) fn sort_of(id: &str) -> Option<Sort> {
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

fn instant(at: Option<Timestamp>) -> SortKey {
    #[expect(clippy::cast_precision_loss, reason = "seconds of this age fit into a float")]
    at.map_or(SortKey::Nothing, |at| SortKey::Number(at.as_second() as f64))
}
