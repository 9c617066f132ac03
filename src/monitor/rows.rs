//! The rows of the list: lineages folded under their leaf, what the filter lets through.

use std::collections::{BTreeSet, HashMap};

use super::filter::Filter;
use crate::model::ids::{JobId, WindowId};
use crate::model::view::{JobView, Snapshot};

/// One row of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Position of the job in the snapshot.
    pub job: usize,
    /// Which job.
    pub id: JobId,
    /// Whether it is an earlier attempt, shown below its leaf.
    pub attempt: bool,
    /// Earlier attempts that are not shown, on the row of a leaf.
    pub folded: usize,
}

/// The rows for a snapshot, in its order, attempts below their leaf from young to old.
///
/// An earlier attempt has a row when its lineage is unfolded, and also when the filter finds it but not
/// its leaf: what somebody looks for is never hidden in a fold.
pub fn rows(snapshot: &Snapshot, filter: &Filter, unfolded: &BTreeSet<JobId>) -> Vec<Row> {
    let places: HashMap<&JobId, usize> =
        snapshot.jobs.iter().enumerate().map(|(at, job)| (&job.id, at)).collect();
    let mut rows = Vec::with_capacity(snapshot.jobs.len());
    for (at, job) in snapshot.jobs.iter().enumerate() {
        if !job.leaf && leaf_of(job).is_some_and(|leaf| places.contains_key(&leaf)) {
            continue;
        }
        let older: Vec<usize> = attempts(job)
            .filter_map(|window| places.get(&JobId::new(job.id.user.clone(), window)).copied())
            .collect();
        let found = filter.matches(job);
        let open = unfolded.contains(&job.id);
        let shown: Vec<usize> = older
            .iter()
            .copied()
            .filter(|at| {
                let hit = snapshot.jobs.get(*at).is_some_and(|job| filter.matches(job));
                if found { open } else { hit }
            })
            .collect();
        if found {
            let folded = older.len().saturating_sub(shown.len());
            rows.push(Row { job: at, id: job.id.clone(), attempt: false, folded });
        }
        rows.extend(shown.into_iter().filter_map(|at| {
            let id = snapshot.jobs.get(at)?.id.clone();
            Some(Row { job: at, id, attempt: true, folded: 0 })
        }));
    }
    rows
}

/// The youngest attempt of a job's lineage.
fn leaf_of(job: &JobView) -> Option<JobId> {
    let leaf = job.lineage.last().copied().filter(|leaf| *leaf != job.id.window)?;
    Some(JobId::new(job.id.user.clone(), leaf))
}

/// The attempts before a job, from young to old.
pub fn attempts(job: &JobView) -> impl Iterator<Item = WindowId> + '_ {
    let older = job.lineage.iter().copied().take_while(|window| *window != job.id.window);
    older.collect::<Vec<_>>().into_iter().rev()
}
