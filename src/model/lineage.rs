//! The chain of attempts of one logical run, from `father` and `child`. Broken and cyclic chains are
//! read as far as they make sense: `doctor` mends them, nothing else trips over them.

use super::data::User;
use super::ids::WindowId;
use super::job::Job;

/// The attempts of one logical run, from the first to the leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    /// Their windows. Never empty.
    pub windows: Vec<WindowId>,
}

impl Lineage {
    /// The lineage of a job; `None` if the user has no such job.
    pub fn of(user: &User, window: WindowId) -> Option<Self> {
        let start = user.job(window)?;
        let mut windows = vec![window];
        let mut at = start;
        while let Some(father) = father_of(user, at) {
            if windows.contains(&father.windows_id) {
                break;
            }
            windows.insert(0, father.windows_id);
            at = father;
        }
        at = start;
        while let Some(child) = child_of(user, at) {
            if windows.contains(&child.windows_id) {
                break;
            }
            windows.push(child.windows_id);
            at = child;
        }
        Some(Self { windows })
    }

    /// The youngest attempt.
    pub fn leaf(&self) -> Option<WindowId> {
        self.windows.last().copied()
    }
}

/// Every lineage of a user, in the order of their first attempts in the file.
pub fn lineages(user: &User) -> Vec<Lineage> {
    let mut all: Vec<Lineage> = Vec::new();
    for job in user.jobs() {
        if all.iter().any(|lineage| lineage.windows.contains(&job.windows_id)) {
            continue;
        }
        all.extend(Lineage::of(user, job.windows_id));
    }
    all
}

/// The leaf of the lineage of a job.
pub fn leaf_of(user: &User, window: WindowId) -> Option<WindowId> {
    Lineage::of(user, window)?.leaf()
}

/// The attempt that `job` continues: a link counts if the other end does not point elsewhere.
fn father_of<'a>(user: &'a User, job: &Job) -> Option<&'a Job> {
    let father = user.job(job.father?)?;
    (father.child.is_none_or(|child| child == job.windows_id)).then_some(father)
}

/// The attempt that continues `job`; found by its father's link if the child's is missing.
fn child_of<'a>(user: &'a User, job: &Job) -> Option<&'a Job> {
    match job.child {
        Some(child) => user
            .job(child)
            .filter(|child| child.father.is_none_or(|father| father == job.windows_id)),
        None => user.jobs().iter().find(|other| other.father == Some(job.windows_id)),
    }
}
