//! The copies of code on this disk, and which records name them.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::job::Job;
use tpu_core::model::spec::JobSpec;
use tpu_engine::runner::code_removal::CodeCopy;

use super::launch_paths::roots;
use crate::Ctx;

/// The directories below which copies lie: that of ours, and those that settings name.
pub(crate) fn roots_of_copies(ctx: &Ctx) -> BTreeSet<PathBuf> {
    let data = ctx.data();
    let users = data.iter().flat_map(|data| data.users());
    let named = users.filter_map(|user| roots(ctx, user).ok()).map(|roots| roots.stage.into());
    let mut all: BTreeSet<PathBuf> = named.filter(|root: &PathBuf| root.is_absolute()).collect();
    all.insert(ctx.store.paths().state().join("stage"));
    all
}

/// What lies below these roots under the names that launches give to copies, perhaps with this ending.
pub(crate) fn with_names_of_copies(roots: &BTreeSet<PathBuf>, ending: &str) -> Vec<CodeCopy> {
    let mut found = Vec::new();
    let dirs = |dir: &Path| {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        dirs.filter_map(|entry| entry.file_name().into_string().ok()).collect::<Vec<_>>()
    };
    for root in roots {
        for user in dirs(root) {
            for name in dirs(&root.join(&user)) {
                if name.strip_suffix(ending).is_some_and(is_name_of_copy) {
                    found.push(CodeCopy { root: root.clone(), user: user.clone(), name });
                }
            }
        }
    }
    found
}

/// Whether a directory has a name as launches give them: `20261120_140211-7-9f3a01`.
pub(crate) fn is_name_of_copy(name: &str) -> bool {
    let digits = |text: &str, count: usize| {
        text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let mut parts = name.splitn(3, '-');
    let (Some(time), Some(window), Some(token)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let time = time.split_once('_').is_some_and(|(day, time)| digits(day, 8) && digits(time, 6));
    time && digits(window, window.len().max(1))
        && token.len() == 6
        && token.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The copies that a record names: the one in which its job works, and the one that was made when it was submitted.
pub(crate) fn copies_of(job: &Job) -> impl Iterator<Item = &str> {
    let submitted = job.staged().map(|staged| staged.copy.as_str());
    job.stage_dir.as_deref().into_iter().chain(submitted)
}

/// The names of the copies that a record needs: its own, and those in which its code lies or its job runs. They hold time,
/// window and token, and are the same on whichever mount.
pub(crate) fn names_of(job: &Job) -> Vec<String> {
    let origin = job.staged().map(|staged| staged.from.as_str());
    let dirs = [Some(job.job_dir.as_str()), job.workplace(), origin];
    let around = dirs.into_iter().flatten().flat_map(around);
    copies_of(job).filter_map(base).map(str::to_owned).chain(around).collect()
}

/// The copies around a directory, by their names.
fn around(dir: &str) -> Vec<String> {
    let parts = Path::new(dir).iter().filter_map(|part| part.to_str());
    parts.filter(|part| is_name_of_copy(part)).map(str::to_owned).collect()
}

/// The names of all copies that a job or an entry of the queue needs: what is in the archive alone needs none.
pub(crate) fn names_in_use(data: &Data) -> HashSet<String> {
    let of_entry = |entry: &QueueEntry| {
        let JobSpec { staged, code, execution, .. } = &entry.spec;
        let dirs = [
            staged.as_ref().map(|staged| staged.copy.clone()),
            staged.as_ref().map(|staged| staged.from.clone()),
            code.as_ref().map(|code| code.top.clone()),
            execution.workplace.clone(),
        ];
        dirs.into_iter().flatten().flat_map(|dir| around(&dir)).collect::<Vec<_>>()
    };
    let waits = data.queues().entries.iter().flat_map(of_entry);
    data.jobs().flat_map(names_of).chain(waits).collect()
}

/// Whether a job or an entry of the queue needs a copy, or nobody can say.
pub(crate) fn is_in_use(ctx: &Ctx, copy: &str) -> bool {
    ctx.data().map_or(true, |data| names_in_use(&data).contains(copy))
}

/// The name of a directory.
fn base(dir: &str) -> Option<&str> {
    Path::new(dir).file_name()?.to_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_a_launch_gives_are_those_of_copies() {
        assert!(is_name_of_copy("20261120_140211-7-9f3a01"));
        for other in ["results", "20261120_140211", "20261120-7-9f3a01", "20261120_140211-x-9f3a01"]
        {
            assert!(!is_name_of_copy(other), "{other}");
        }
        assert!(!is_name_of_copy("20261120_140211-7-9f3a01-mine"));
    }
}
