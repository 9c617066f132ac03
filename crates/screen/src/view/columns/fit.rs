//! Which columns the list has, and how wide they are.

use super::{Column, TABLE};
use crate::model::Model;
use tpu_core::model::view::JobView;
use tpu_core::text;

/// So much of a name is seen before a column that can be missed.
const NAMED: usize = 12;

/// A column that is kept so little is no name, and none that a row cannot do without.
const LESSER: u8 = 35;

/// So much one is kept that somebody has added: before figures, behind names.
const ADDED: u8 = 65;

/// The columns that fit into `width`, each with its share, one blank between two.
///
/// Every column first gets the least it needs; the ones that are kept least give way until that fits, lesser ones also
/// until names are seen. What is left over goes round, one at a time, to those that can use more, words before bars.
pub fn fit(model: &Model, width: usize) -> Vec<(&'static Column, usize)> {
    let mut columns = wanted(model);
    let is_chosen = model.setup.columns.chosen.is_some();
    // Who adds one that is not shown by itself wants to see it.
    let keep = |column: &Column| match column.spare {
        Some(_) if is_chosen => ADDED,
        _ => column.keep,
    };
    let may_go = |keep: u8| keep <= LESSER && !is_chosen;
    while let Some(weakest) = columns.iter().map(|(column, _)| keep(column)).min()
        && columns.len() > 1
        && (needed(&columns) > width || may_go(weakest) && named(&columns) > width)
    {
        columns.retain(|(column, _)| keep(column) != weakest);
    }
    add_spare(model, &mut columns, width);
    let mut left = width.saturating_sub(needed(&columns));
    let mut shares: Vec<_> = columns.iter().map(|column| (column.0, least(column))).collect();
    with_tags(model, &mut columns);
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

/// What columns need at least, with one blank between two.
fn needed(columns: &[(&Column, usize)]) -> usize {
    columns.iter().map(|column| least(column) + 1).sum::<usize>().saturating_sub(1)
}

/// What they need so that names are seen.
fn named(columns: &[(&Column, usize)]) -> usize {
    let cut = |(column, most): &(&Column, usize)| match column.natural {
        Some(_) => NAMED.min(*most).saturating_sub(least(&(*column, *most))),
        None => 0,
    };
    needed(columns) + columns.iter().map(cut).sum::<usize>()
}

/// Columns of the terminal from which on no column has to give way, but that of tags, which stand behind the directory
/// as well, and each job says whole how it is.
pub fn named_width(model: &Model) -> usize {
    let columns: Vec<_> =
        wanted(model).into_iter().filter(|(column, _)| column.id != "tags").collect();
    let status = columns.iter().find(|(column, _)| column.id == "status");
    let cut = status.map_or(0, |column| column.1.saturating_sub(NAMED.max(least(column))));
    named(&columns) + cut
}

/// The least of a wanted column: no more than it can use.
fn least((column, most): &(&Column, usize)) -> usize {
    column.least.min(*most)
}

/// Adds those that are shown by themselves only where the others have all that they can use, a bar the least of it.
fn add_spare(model: &Model, columns: &mut Vec<(&'static Column, usize)>, width: usize) {
    if model.setup.columns.chosen.is_some() {
        return;
    }
    let useful = |(column, most): &(&Column, usize)| match column.natural {
        Some(_) => *most,
        None => least(&(*column, *most)),
    };
    let mut taken: usize = columns.iter().map(|column| useful(column) + 1).sum();
    for (column, most) in spare(model) {
        taken += most + 1;
        if taken > width + 1 {
            return;
        }
        let is_behind = |other: &Column| place(other) > place(column);
        let at = columns.iter().position(|(other, _)| is_behind(other)).unwrap_or(columns.len());
        columns.insert(at, (column, most));
    }
}

/// Where tags have no column of their own they stand behind the directory, which can use their room.
fn with_tags(model: &Model, columns: &mut [(&'static Column, usize)]) {
    if columns.iter().any(|(column, _)| column.id == "tags") {
        return;
    }
    let tags = TABLE.iter().find(|column| column.id == "tags").map(place);
    let tags = tags.and_then(|at| model.list.widths.get(at).copied().flatten());
    for (column, most) in columns.iter_mut().filter(|(column, _)| column.id == "dir") {
        *most = (*most + tags.map_or(0, |tags| tags + 2)).min(column.most);
    }
}

/// Where a column stands.
fn place(column: &Column) -> usize {
    TABLE.iter().position(|other| other.id == column.id).unwrap_or(TABLE.len())
}

/// Columns of the terminal that all columns together can use, also those for which there must be room to spare.
pub fn useful_width(model: &Model) -> usize {
    let spare = spare(model).filter(|_| model.setup.columns.chosen.is_none());
    let all = wanted(model).into_iter().chain(spare);
    all.map(|(_, most)| most + 1).sum::<usize>().saturating_sub(1)
}

/// What each column of [`TABLE`] could use for these jobs; nothing where it has nothing to say about any. Earlier attempts
/// count where some are shown: else nothing is to be kept free for them. Walks over all of them, so it is computed once per
/// look and kept in the model.
pub fn natural_widths(jobs: &[JobView], with_attempts: bool) -> Vec<Option<usize>> {
    let widest = |column: &Column| {
        let rows = || jobs.iter().filter(|job| job.leaf || with_attempts);
        let natural = column.natural.and_then(|width| rows().map(width).max());
        // The head with its arrow is always seen.
        let head = (text::width(column.head) + 2).min(column.least);
        natural.unwrap_or(column.most).clamp(head, column.most)
    };
    TABLE.iter().map(|column| (column.has)(jobs).then(|| widest(column))).collect()
}

/// The columns that somebody has chosen, or else those that have something to say, wherever there is room for them.
pub fn shown(model: &Model) -> impl Iterator<Item = &'static Column> + '_ {
    TABLE.iter().filter(|column| match &model.setup.columns.chosen {
        // Whose a job is must be seen, where it is not always the same.
        Some(chosen) => chosen.contains(column.id) || column.id == "user" && (column.asked)(model),
        None => column.spare.is_none() && is_wanted(model, column),
    })
}

/// Whether a column is asked for and has something to say.
fn is_wanted(model: &Model, column: &Column) -> bool {
    (column.asked)(model) && !matches!(model.list.widths.get(place(column)), Some(None))
}

/// The columns for which there must be room to spare, in the order in which they get it.
fn spare(model: &Model) -> impl Iterator<Item = (&'static Column, usize)> + '_ {
    let mut columns: Vec<&Column> =
        TABLE.iter().filter(|column| column.spare.is_some() && is_wanted(model, column)).collect();
    columns.sort_by_key(|column| column.spare);
    columns.into_iter().map(|column| (column, most(model, column)))
}

/// The shown columns, with the most that each can use for the jobs that are there.
fn wanted(model: &Model) -> Vec<(&'static Column, usize)> {
    shown(model).map(|column| (column, most(model, column))).collect()
}

/// The most that a column can use for the jobs that are there.
fn most(model: &Model, column: &Column) -> usize {
    match model.list.widths.get(place(column)) {
        // An earlier attempt says in the place of its directory what it is, and has more to say of how it is.
        Some(Some(width))
            if ["dir", "status"].contains(&column.id) && !model.list.unfolded.is_empty() =>
        {
            (*width).max(column.least)
        }
        Some(Some(width)) => *width,
        Some(None) | None => column.most,
    }
}
