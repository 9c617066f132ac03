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
pub fn directory<'a>(job: &'a Job, before: impl Iterator<Item = &'a Job>) -> &'a str {
    &written_by(job, before).unwrap_or(job).job_dir
}

/// The same for people: where the first attempt was cleared away, the directory that its slot names.
pub fn known_directory<'a>(
    user: &'a User,
    job: &'a Job,
    before: impl Iterator<Item = &'a Job>,
) -> &'a str {
    let of_slot = || user.dir(job.job_dir_id?);
    match written_by(job, before) {
        Some(written) => &written.job_dir,
        None => of_slot().unwrap_or(&job.job_dir),
    }
}

/// The attempt that began where the code is written; `None` where that one is not known any more.
fn written_by<'a>(job: &'a Job, mut before: impl Iterator<Item = &'a Job>) -> Option<&'a Job> {
    let mut at = job;
    loop {
        let older = before.next();
        // A script may say by now that its copy lies elsewhere: the attempt before it says where it lay.
        let mut told = [Some(at), older].into_iter().flatten();
        let is_copy = told.any(|of| has_as_copy(of, &at.job_dir));
        let is_known = older.is_some() || std::ptr::eq(at, job);
        if at.father.is_none() || !is_copy && is_known {
            return Some(at);
        }
        at = older?;
    }
}

/// Whether a directory is the copy of its code.
fn has_as_copy(job: &Job, dir: &str) -> bool {
    let copy = job.stage_dir.as_deref().map(|copy| copy.trim_end_matches('/'));
    copy == Some(dir.trim_end_matches('/'))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::data::Data;
    use crate::model::ids::{JobId, UserName};

    /// A script's job that was resumed twice, in the copy of its first attempt.
    const RESUMED: &str = r#"{ "users": { "alice": { "working_dir": { "2": "/home/alice/imagenet" }, "job_data": [
        { "windows_id": 1, "job_dir_id": 2, "job_dir": "/home/alice/imagenet", "stage_dir": "/stage/20261130_1",
          "extra_msgs": { "child": 2 } },
        { "windows_id": 2, "job_dir_id": 2, "job_dir": "/stage/20261130_1", "stage_dir": "/stage/20261130_2/",
          "extra_msgs": { "father": 1, "child": 3 } },
        { "windows_id": 3, "job_dir_id": 2, "job_dir": "/stage/20261130_2", "stage_dir": "/stage/20261130_2",
          "extra_msgs": { "father": 2 } } ] } } }"#;

    #[test]
    fn a_resumed_script_is_known_by_the_directory_of_its_code() {
        let data = Data::parse(RESUMED.as_bytes()).unwrap();
        let id = |window| JobId::new(UserName::from("alice"), JobNumber(window));
        let [first, second, third] = [1, 2, 3].map(|window| data.job(&id(window)).unwrap());
        let written = "/home/alice/imagenet";
        assert_eq!(directory(first, std::iter::empty()), written);
        assert_eq!(directory(second, [first].into_iter()), written, "it named another copy");
        assert_eq!(directory(third, [second, first].into_iter()), written);
        let user = data.user(&UserName::from("alice")).unwrap();
        assert_eq!(known_directory(user, third, [second].into_iter()), written, "by its slot");
        assert_eq!(directory(third, [second].into_iter()), "/stage/20261130_2");
        // One whose first attempt runs in its copy is known by that.
        let alone = Job { father: None, ..third.clone() };
        assert_eq!(known_directory(user, &alone, std::iter::empty()), "/stage/20261130_2");
    }
}
