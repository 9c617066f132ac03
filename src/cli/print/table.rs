//! Rows in columns: what `check-simp` and the lists print.

use tpu_core::model::groups::Folded;
use tpu_core::model::view::Snapshot;
use tpu_core::text;
use tpu_core::text::columns::{visible, widths};

pub(in crate::cli) use tpu_core::text::columns::columns;

use super::block::{self, Show};

/// Columns without a head.
pub(in crate::cli) fn aligned(rows: &[Vec<String>]) -> String {
    let Some((first, rest)) = rows.split_first() else { return String::new() };
    let first: Vec<&str> = first.iter().map(String::as_str).collect();
    columns(&first, rest)
}

/// The same, cut to `most` columns if somebody said how many there are: the widest cells but those of the
/// last columns, `whole` of them, give way, with an ellipsis.
fn within(most: Option<usize>, whole: usize, head: &[&str], rows: &[Vec<String>]) -> String {
    let Some(most) = most else { return columns(head, rows) };
    let mut widths = widths(head, rows);
    let gaps = widths.len().saturating_sub(1) * 2;
    let mut over = (widths.iter().sum::<usize>() + gaps).saturating_sub(most);
    let first = widths.len().saturating_sub(whole);
    let Some((first, _)) = widths.split_at_mut_checked(first) else { return columns(head, rows) };
    while over > 0 {
        let Some(widest) = first.iter_mut().filter(|width| **width > NARROWEST).max() else {
            break;
        };
        *widest -= 1;
        over -= 1;
    }
    let cut = |row: &Vec<String>| {
        let cells = row.iter().enumerate();
        cells
            .map(|(i, cell)| match first.get(i) {
                Some(width) if visible(cell) > *width => text::cut(cell, *width).into_owned(),
                _ => cell.clone(),
            })
            .collect()
    };
    columns(head, &rows.iter().map(cut).collect::<Vec<_>>())
}

/// No cell is cut to less.
const NARROWEST: usize = 8;

/// `check-simp`: one row for each job.
pub(in crate::cli) fn jobs(snapshot: &Snapshot, show: Show, most: Option<usize>) -> String {
    /// More of a name would cut the status, where the width is known.
    const NAME: usize = 24;
    let mut head = Vec::new();
    let everybody = snapshot.whose.only().is_none();
    let all = block::rows(snapshot, show);
    let names: Vec<String> = all.iter().map(block::known_as).collect();
    let wanted = [
        (everybody, "USER"),
        (true, "W"),
        (show.dir, "DIR"),
        (show.target, "TPU"),
        (show.zone, "ZONE"),
        (show.tags, "TAGS"),
        (show.status, "STATUS"),
        (names.iter().any(|name| !name.is_empty()), "NAME"),
    ];
    head.extend(wanted.iter().filter(|(wanted, _)| *wanted).map(|(_, name)| *name));
    let rows: Vec<Vec<String>> = all
        .iter()
        .zip(names)
        .filter_map(|(row, name)| match row {
            Folded::Job(job) => Some((*job, job.label(), block::status(job), name)),
            Folded::Group(group) => {
                Some((group.worst()?, group.group.to_string(), block::status_of(group), name))
            }
        })
        .map(|(job, label, status, name)| {
            let dir = std::path::Path::new(&job.dir.1);
            let cells = [
                job.id.user.to_string(),
                label,
                dir.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                text::escape(&job.target_label).into_owned(),
                job.zone.clone().unwrap_or_default(),
                job.tags.as_deref().map(text::escape).unwrap_or_default().into_owned(),
                status,
                most.map_or(name.clone(), |_| text::cut(&name, NAME).into_owned()),
            ];
            let kept = wanted.iter().zip(cells).filter(|((wanted, _), _)| *wanted);
            kept.map(|(_, cell)| cell).collect()
        })
        .collect();
    // A status has colours, and is cut nowhere.
    let whole = if head.ends_with(&["STATUS", "NAME"]) { 2 } else { 1 };
    within(most, whole, &head, &rows)
}
