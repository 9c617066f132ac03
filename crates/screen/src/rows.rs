//! The rows of the list: lineages folded under their leaf, sorted and grouped, what the filter lets through.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap, HashSet};

use tpu_core::model::groups;
use tpu_core::model::ids::{JobId, JobNumber};
use tpu_core::model::view::{JobView, Snapshot};
use tpu_core::model::words::words;
use tpu_core::plan::filter::Filter;

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
    /// The name of the group that begins here: this row is its head, and the job its first one.
    pub head: Option<String>,
    /// Positions of the members that this row stands for, the row of a group of jobs: the job is then the member
    /// that somebody wants to see first, and the id that of the group. A head with members is folded, and its id that
    /// of the job.
    pub members: Vec<usize>,
}

impl Row {
    /// Whether it is the head of a group and not a job.
    pub fn is_head(&self) -> bool {
        self.head.is_some()
    }

    /// Whether it can be selected: a job, or something that stands for several.
    pub fn can_be_chosen(&self) -> bool {
        !self.is_head() || self.is_group()
    }

    /// Whether it stands for the members of a group of jobs.
    pub fn is_group(&self) -> bool {
        !self.members.is_empty()
    }
}

/// What a column sorts by.
#[derive(Clone, Debug, PartialEq)]
pub enum SortKey {
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
    /// Nothing: at the end, whichever way round.
    Nothing,
}

/// By what the rows are grouped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Group {
    /// Not at all.
    #[default]
    None,
    /// By target.
    Target,
    /// By directory.
    Directory,
    /// By user.
    User,
}

// In the order in which a key goes through them.
words! {
    /// Its name.
    Group {
        None: "none",
        Target: "target",
        Directory: "directory",
        User: "user",
    }
}

impl Group {
    fn of(self, job: &JobView) -> String {
        match self {
            Self::None => String::new(),
            Self::Target => job.target_label.clone(),
            Self::Directory => job.dir.1.clone(),
            Self::User => job.id.user.to_string(),
        }
    }
}

/// In which order the lineages stand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrangement {
    /// The column that sorts, and whether the largest comes first; the order of the file if none.
    pub sort: Option<(Sort, bool)>,
    /// The groups.
    pub group: Group,
}

/// A column that sorts.
#[derive(Clone, Copy, Debug)]
pub struct Sort {
    /// Its name.
    pub id: &'static str,
    /// What it sorts by.
    pub key: fn(&JobView) -> SortKey,
}

impl PartialEq for Sort {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

fn compare(a: &SortKey, b: &SortKey, reverse: bool) -> Ordering {
    let order = match (a, b) {
        (SortKey::Nothing, SortKey::Nothing) => return Ordering::Equal,
        (SortKey::Nothing, _) => return Ordering::Greater,
        (_, SortKey::Nothing) => return Ordering::Less,
        (SortKey::Number(a), SortKey::Number(b)) => a.total_cmp(b),
        (SortKey::Word(a), SortKey::Word(b)) => a.cmp(b),
        (SortKey::Number(_), SortKey::Word(_)) => Ordering::Less,
        (SortKey::Word(_), SortKey::Number(_)) => Ordering::Greater,
    };
    if reverse { order.reverse() } else { order }
}

/// The rows for a snapshot: lineages in the order of `arrangement`, attempts below their leaf from young to
/// old. The members of a group of jobs are one row, where the first of them would stand; unfolded, each has its own
/// below that.
///
/// An earlier attempt has a row when its lineage is unfolded, and also when the filter finds it but not
/// its leaf: what somebody looks for is never hidden in a fold.
pub fn rows(
    snapshot: &Snapshot,
    filter: &Filter,
    unfolded: &BTreeSet<JobId>,
    arrangement: &Arrangement,
) -> Vec<Row> {
    let places: HashMap<&JobId, usize> =
        snapshot.jobs.iter().enumerate().map(|(at, job)| (&job.id, at)).collect();
    let job_at = |at: usize| snapshot.jobs.get(at);
    let is_leaf = |job: &JobView| job.leaf || leaf_of(job).is_none_or(|l| !places.contains_key(&l));
    let leaves = snapshot.jobs.iter().enumerate().filter(|(_, job)| is_leaf(job));
    let mut order: Vec<usize> = leaves.map(|(at, _)| at).collect();
    if let Some((sort, reverse)) = &arrangement.sort {
        let key = |at: &usize| job_at(*at).map_or(SortKey::Nothing, sort.key);
        let mut keyed: Vec<(SortKey, usize)> = order.iter().map(|at| (key(at), *at)).collect();
        keyed.sort_by(|(a, _), (b, _)| compare(a, b, *reverse));
        order = keyed.into_iter().map(|(_, at)| at).collect();
    }
    let group = |at: usize| job_at(at).map(|job| arrangement.group.of(job)).unwrap_or_default();
    if arrangement.group != Group::None {
        order.sort_by_key(|at| group(*at));
    }
    let is_found = |job: &JobView| (job.member.is_some() || job.jobs() > 1) && filter.matches(job);
    let in_order = order.iter().filter_map(|at| Some((*at, job_at(*at)?)));
    let crowds = groups::several(in_order.filter(|(_, job)| is_found(job)));
    let lineage = Lineage { snapshot, filter, unfolded, places: &places };
    let mut rows: Vec<Row> = Vec::with_capacity(order.len());
    let mut last_group = None;
    let mut begun: HashSet<&JobId> = HashSet::new();
    for at in order {
        let Some(job) = job_at(at) else { continue };
        let crowd = groups::of(job).filter(|_| filter.matches(job));
        let crowd = crowd.and_then(|id| crowds.get_key_value(&id));
        let before = rows.len();
        match crowd {
            None => lineage.add_rows(at, &mut rows),
            // The whole group stands where its first member does.
            Some((id, _)) if !begun.insert(id) => continue,
            Some((id, members)) => {
                rows.push(of_group(snapshot, id, members));
                if unfolded.contains(id) {
                    // Those that wait have no number but the group's, whose row stands for them.
                    let has_begun = |at: &&usize| job_at(**at).is_some_and(|job| !job.is_queued());
                    for member in members.iter().filter(has_begun) {
                        lineage.add_rows(*member, &mut rows);
                    }
                }
            }
        }
        if let (true, Some(first)) = (arrangement.group != Group::None, rows.get(before)) {
            let name = group(at);
            if last_group.as_ref() != Some(&name) {
                let head = Some(name.clone());
                let head = Row { head, folded: 0, members: Vec::new(), ..first.clone() };
                rows.insert(before, head);
                last_group = Some(name);
            }
        }
    }
    rows
}

/// The same rows where these groups are folded: their heads stand for what was below them.
pub(crate) fn with_folded_heads(
    rows: Vec<Row>,
    snapshot: &Snapshot,
    folded: &BTreeSet<String>,
) -> Vec<Row> {
    let mut kept: Vec<Row> = Vec::with_capacity(rows.len());
    let mut rows = rows.into_iter().peekable();
    while let Some(row) = rows.next() {
        let Some(name) = row.head.clone().filter(|name| folded.contains(name)) else {
            kept.push(row);
            continue;
        };
        let mut below = Vec::new();
        while let Some(row) = rows.next_if(|row| !row.is_head()) {
            below.push(row);
        }
        let mut members: Vec<usize> = Vec::new();
        let mut known = HashSet::new();
        for row in below.iter().filter(|row| !row.attempt) {
            let own = if row.is_group() { row.members.as_slice() } else { &[row.job] };
            members.extend(own.iter().copied().filter(|at| known.insert(*at)));
        }
        let worst = of_group(snapshot, &row.id, &members);
        match snapshot.jobs.get(worst.job) {
            Some(job) if !members.is_empty() => {
                kept.push(Row { head: Some(name), id: job.id.clone(), ..worst });
            }
            // Nothing but earlier attempts that somebody looked for.
            _ => {
                kept.push(row);
                kept.append(&mut below);
            }
        }
    }
    kept
}

/// The one row of a group.
fn of_group(snapshot: &Snapshot, id: &JobId, members: &[usize]) -> Row {
    let urgency = |at: &&usize| snapshot.jobs.get(**at).map_or(u8::MAX, groups::urgency);
    let worst = members.iter().min_by_key(urgency).copied().unwrap_or_default();
    let members = members.to_vec();
    Row { job: worst, id: id.clone(), attempt: false, folded: 0, head: None, members }
}

/// What is needed to say which rows a lineage has.
struct Lineage<'a> {
    snapshot: &'a Snapshot,
    filter: &'a Filter,
    unfolded: &'a BTreeSet<JobId>,
    places: &'a HashMap<&'a JobId, usize>,
}

impl Lineage<'_> {
    /// Adds the rows of the lineage with this leaf.
    fn add_rows(&self, at: usize, rows: &mut Vec<Row>) {
        let job_at = |at: usize| self.snapshot.jobs.get(at);
        let Some(job) = job_at(at) else { return };
        let older: Vec<usize> = attempts(job)
            .filter_map(|window| self.places.get(&JobId::new(job.id.user.clone(), window)).copied())
            .collect();
        let found = self.filter.matches(job);
        let open = self.unfolded.contains(&job.id);
        let hit = |at: &usize| job_at(*at).is_some_and(|job| self.filter.matches(job));
        let shown: Vec<usize> =
            older.iter().copied().filter(|at| if found { open } else { hit(at) }).collect();
        let row = |at: usize, attempt: bool, folded: usize| {
            let id = job_at(at)?.id.clone();
            Some(Row { job: at, id, attempt, folded, head: None, members: Vec::new() })
        };
        if found {
            rows.extend(row(at, false, older.len().saturating_sub(shown.len())));
        }
        rows.extend(shown.into_iter().filter_map(|at| row(at, true, 0)));
    }
}

/// The youngest attempt of a job's lineage.
fn leaf_of(job: &JobView) -> Option<JobId> {
    let leaf = job.lineage.last().copied().filter(|leaf| *leaf != job.id.window)?;
    Some(JobId::new(job.id.user.clone(), leaf))
}

/// The attempts before a job, from young to old.
pub fn attempts(job: &JobView) -> impl Iterator<Item = JobNumber> + '_ {
    let older = job.lineage.iter().copied().take_while(|window| *window != job.id.window);
    older.collect::<Vec<_>>().into_iter().rev()
}
