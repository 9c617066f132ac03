//! The chain of attempts of one logical run, from `father` and `child`. Broken and cyclic chains are
//! read as far as they make sense: `doctor` mends them, nothing else trips over them.

use std::collections::{HashMap, HashSet};

use super::data::User;
use super::ids::JobNumber;
use super::job::Job;

/// The attempts of one logical run, from the first to the leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    /// Their windows. Never empty.
    pub windows: Vec<JobNumber>,
}

impl Lineage {
    /// The lineage of a job; `None` if the user has no such job.
    pub fn of(user: &User, window: JobNumber) -> Option<Self> {
        Links::of(user).lineage(window)
    }

    /// The youngest attempt.
    pub fn leaf(&self) -> Option<JobNumber> {
        self.windows.last().copied()
    }
}

/// Every lineage of a user, in the order of their first attempts in the file.
pub fn lineages(user: &User) -> Vec<Lineage> {
    let links = Links::of(user);
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    for job in user.jobs() {
        if !seen.contains(&job.windows_id)
            && let Some(lineage) = links.lineage(job.windows_id)
        {
            seen.extend(lineage.windows.iter().copied());
            all.push(lineage);
        }
    }
    all
}

/// The directory in which the code of `job` is written. A resumed script works in the copy that its first
/// attempt was given; this is where that was copied from. `before`: the attempts before it, the youngest
/// first.
pub fn directory<'a>(job: &'a Job, mut before: impl Iterator<Item = &'a Job>) -> &'a str {
    let is_copy = |job: &Job| job.stage_dir.as_ref() == Some(&job.job_dir);
    let written = if is_copy(job) { before.find(|other| !is_copy(other)) } else { None };
    &written.unwrap_or(job).job_dir
}

/// The links of a user's jobs, looked up instead of searched for: for whoever asks about many of them.
#[derive(Debug)]
pub struct Links<'a> {
    jobs: HashMap<JobNumber, &'a Job>,
    /// The first job that names another one as its father.
    by_father: HashMap<JobNumber, &'a Job>,
}

impl<'a> Links<'a> {
    /// Those of all jobs of a user.
    pub fn of(user: &'a User) -> Self {
        let mut jobs = HashMap::new();
        let mut by_father = HashMap::new();
        for job in user.jobs() {
            jobs.entry(job.windows_id).or_insert(job);
            if let Some(father) = job.father {
                by_father.entry(father).or_insert(job);
            }
        }
        Self { jobs, by_father }
    }

    /// The lineage of one of them; `None` if there is no such job.
    pub fn lineage(&self, window: JobNumber) -> Option<Lineage> {
        let start = *self.jobs.get(&window)?;
        let mut seen = HashSet::from([window]);
        let mut windows = vec![window];
        let mut at = start;
        while let Some(father) = self.father(at).filter(|job| seen.insert(job.windows_id)) {
            windows.push(father.windows_id);
            at = father;
        }
        windows.reverse();
        at = start;
        while let Some(child) = self.child(at).filter(|job| seen.insert(job.windows_id)) {
            windows.push(child.windows_id);
            at = child;
        }
        Some(Lineage { windows })
    }

    /// The attempt that `job` continues: a link counts if the other end does not point elsewhere.
    fn father(&self, job: &Job) -> Option<&'a Job> {
        let father = *self.jobs.get(&job.father?)?;
        father.child.is_none_or(|child| child == job.windows_id).then_some(father)
    }

    /// The attempt that continues `job`; found by the child's link if the father's is missing.
    fn child(&self, job: &Job) -> Option<&'a Job> {
        match job.child {
            Some(child) => {
                let child = *self.jobs.get(&child)?;
                child.father.is_none_or(|father| father == job.windows_id).then_some(child)
            }
            None => self.by_father.get(&job.windows_id).copied(),
        }
    }
}
