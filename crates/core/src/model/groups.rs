//! The members of one group as one row: how many there are, and how they stand, the worst first.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::facts::Phase;
use super::ids::{JobId, JobNumber, UserName};
use super::status::Status;
use super::view::JobView;

/// How soon somebody wants to see a job: what failed first, what is over last.
pub fn urgency(view: &JobView) -> u8 {
    let shown = &view.shown;
    match (&shown.status, shown.phase) {
        (status, _) if shown.unknown.is_some() && status.is_live() => 1,
        _ if shown.pending.is_some() || shown.queued.is_some() => 5,
        (Status::Error(_), _) => 0,
        (Status::Running, Some(phase)) if wants_a_look(phase) => 2,
        (Status::Running, _) => 3,
        (Status::Unset | Status::Starting, _) => 4,
        (Status::Finished, _) => 6,
        (Status::Killed(_), _) => 7,
        (Status::Resumed(_) | Status::Rerunned(_), _) => 8,
    }
}

/// The word for a job that has failed, and for which a person has to do something before its rules act.
pub const NEEDS_YOU: &str = "needs-you";

/// How a job stands, in the one word under which it is counted: its status, unless a person wants to know of more.
pub fn standing(view: &JobView) -> &'static str {
    let shown = &view.shown;
    if shown.unknown.is_some() && shown.status.is_live() {
        return "unknown";
    }
    match amiss(view) {
        Some(word) => word,
        None => shown.word(),
    }
}

/// Why a person should look at a job that no status tells of: it is at work and something is wrong with it, or it is
/// brought back only once a person has done something.
pub fn amiss(view: &JobView) -> Option<&'static str> {
    let shown = &view.shown;
    if shown.unknown.is_some() || shown.queued.is_some() || shown.pending.is_some() {
        return None;
    }
    match (&shown.status, shown.phase) {
        (Status::Error(_), _) => view.needs_person.then_some(NEEDS_YOU),
        (Status::Running, Some(phase)) => wants_a_look(phase).then(|| phase.as_str()),
        _ => None,
    }
}

/// Whether something is wrong with what is at work, or its window only waits for a person to type.
fn wants_a_look(phase: Phase) -> bool {
    phase.is_warning() || phase == Phase::IdlePrompt
}

/// How jobs stand, counted, the worst first: `1 error, 7 running, 2 pending`.
pub fn counts<'a>(members: impl IntoIterator<Item = &'a JobView>) -> String {
    let mut counted: BTreeMap<&str, (u8, usize)> = BTreeMap::new();
    for view in members {
        let (worst, count) = counted.entry(standing(view)).or_insert((u8::MAX, 0));
        *worst = urgency(view).min(*worst);
        *count += view.jobs();
    }
    let mut each: Vec<(u8, String)> =
        counted.iter().map(|(word, (worst, count))| (*worst, format!("{count} {word}"))).collect();
    each.sort_unstable();
    each.into_iter().map(|(_, each)| each).collect::<Vec<_>>().join(", ")
}

/// The group that a job is folded into, as an address that no attempt has. Of a member only the newest attempt
/// counts in its group. Those members that wait in a queue have that address already.
pub fn of(view: &JobView) -> Option<JobId> {
    if view.shown.queued.as_ref().is_some_and(|queued| queued.members.is_some()) {
        return Some(view.id.clone());
    }
    let member = view.member?;
    Some(JobId::new(view.id.user.clone(), member.group))
}

/// The members of one group that a list shows, by their newest attempts.
#[derive(Debug)]
pub struct GroupView<'a> {
    /// The members, in the order of the list. Never none.
    pub members: Vec<&'a JobView>,
    /// Whose they are.
    pub user: &'a UserName,
    /// The number of the group.
    pub group: JobNumber,
}

impl<'a> GroupView<'a> {
    /// The member that somebody wants to see first.
    pub fn worst(&self) -> Option<&'a JobView> {
        self.members.iter().copied().min_by_key(|view| urgency(view))
    }

    /// `10 members: 1 error, 7 running, 2 pending`.
    pub fn in_words(&self) -> String {
        let members: usize = self.members.iter().map(|view| view.jobs()).sum();
        format!("{members} members: {}", counts(self.members.iter().copied()))
    }
}

/// A row of a list in which groups are folded.
#[derive(Debug)]
pub enum Folded<'a> {
    /// A job by itself.
    Job(&'a JobView),
    /// A group, where its first member stood.
    Group(GroupView<'a>),
}

/// The groups of which several members are among these jobs, each with their places. One of which only one member is
/// there is that job.
pub fn several<'a>(jobs: impl Iterator<Item = (usize, &'a JobView)>) -> HashMap<JobId, Vec<usize>> {
    let mut groups: HashMap<JobId, (Vec<usize>, usize)> = HashMap::new();
    for (at, view) in jobs {
        if let Some(id) = of(view) {
            let (members, jobs) = groups.entry(id).or_default();
            members.push(at);
            *jobs += view.jobs();
        }
    }
    groups.retain(|_, (members, jobs)| members.len() > 1 || *jobs > 1);
    groups.into_iter().map(|(id, (members, _))| (id, members)).collect()
}

/// Folds the members of each group into one row, and their earlier attempts with them.
pub fn folded(jobs: &[JobView]) -> Vec<Folded<'_>> {
    let groups = several(jobs.iter().enumerate().filter(|(_, view)| view.leaf));
    let mut rows: Vec<Folded<'_>> = Vec::new();
    let mut begun: HashSet<&JobId> = HashSet::new();
    for view in jobs {
        match of(view).and_then(|id| groups.get_key_value(&id)) {
            None => rows.push(Folded::Job(view)),
            Some((id, members)) if begun.insert(id) => {
                let members = members.iter().filter_map(|at| jobs.get(*at)).collect();
                let (user, group) = (&view.id.user, id.window);
                rows.push(Folded::Group(GroupView { members, user, group }));
            }
            Some(_) => {}
        }
    }
    rows
}
