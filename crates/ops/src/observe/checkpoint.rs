//! The newest complete checkpoint of a log directory ([`tpu_core::model::checkpoint`] says what that is). That there is
//! none is said only where everything could be read and nothing looks like one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use regex::Regex;

use tpu_core::model::checkpoint::{
    Completeness, Medium, belongs_to, comes_first, completeness, is_named_like_one,
    is_to_hold_something, marked_beside, may_be_one, step_of, together,
};
use tpu_core::model::ids::JobId;
use tpu_core::model::time::Timestamp;
use tpu_engine::runner::files::{Content, Entry, Files, Listing};

use super::runners;
use crate::base::ctx::job_of;
use crate::{Ctx, Error};

/// What is known about the checkpoints of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checkpoints {
    /// The newest complete one: its step, and its path below the directory.
    Newest(u64, String),
    /// The newest, by its path below the directory, is a copy that is not whole: whoever begins there begins with a half one.
    HalfCopied(String),
    /// The directories can be read and hold nothing that may be one.
    None,
    /// `log_dir` is not there. Whether that means anything depends on whose directory it is.
    NotHere,
    /// Their disk was asked, and has not answered: whoever asks again may know.
    Silent(String),
    /// They cannot be read from here (`gs://…`, no right to), or something there may be one, for this reason.
    Unknown(String),
}

/// The checkpoints of one attempt, by their usual names.
pub fn of_attempt(ctx: &Ctx, id: &JobId) -> Result<Checkpoints, Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    let log = job.log_dir.as_deref().unwrap_or_default();
    Ok(find(&*runners::of(ctx, job).files(), log, None))
}

/// Looks into `log_dir` and `log_dir/checkpoints`.
pub fn find(files: &dyn Files, log_dir: &str, pattern: Option<&Regex>) -> Checkpoints {
    find_since(files, log_dir, pattern, None)
}

/// The same of what was written since. What a disk does not say that of may be one.
pub fn find_since(
    files: &dyn Files,
    log_dir: &str,
    pattern: Option<&Regex>,
    since: Option<Timestamp>,
) -> Checkpoints {
    if log_dir.contains("://") {
        return Checkpoints::Unknown(format!("{log_dir} is not on this machine's file system"));
    }
    let root = Path::new(log_dir);
    let mut found = Found { root: root.to_owned(), ..Found::default() };
    match files.list(root) {
        Ok(Listing::Entries { entries, unread }) => {
            let entries = found.written_since(files, (root, entries), since, pattern);
            found.look((root, entries, unread), pattern);
        }
        Ok(Listing::NoDirectory) => {
            return Checkpoints::Unknown(format!("{log_dir} is no directory"));
        }
        Ok(Listing::NotThere) => return Checkpoints::NotHere,
        Err(e) if is_silence(&e) => return Checkpoints::Silent(format!("{log_dir}: {e}")),
        Err(e) => return Checkpoints::Unknown(format!("{log_dir} cannot be seen from here: {e}")),
    }
    let below = root.join("checkpoints");
    match files.list(&below) {
        Ok(Listing::Entries { entries, unread }) => {
            let entries = found.written_since(files, (&below, entries), since, pattern);
            found.look((&below, entries, unread), pattern);
        }
        Ok(Listing::NoDirectory) => found.doubt(&below, &"it is no directory"),
        Ok(Listing::NotThere) => {}
        // The newest may be there.
        Err(e) if is_silence(&e) => {
            return Checkpoints::Silent(format!("{}: {e}", below.display()));
        }
        Err(e) => found.doubt(&below, &e),
    }
    found.newest(files)
}

/// Whether a disk was asked that has not answered.
fn is_silence(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut
}

/// A step, and the directory in which something of it lies; the highest step comes first.
type StepIn = (Reverse<u64>, PathBuf);

/// What was found in some directories.
#[derive(Default)]
struct Found {
    /// The directory in which all of it lies.
    root: PathBuf,
    /// What has the name of one, by its step, the highest first, and the directory in which it lies: what is of one step
    /// there is one together.
    named: BTreeMap<StepIn, Vec<(String, Content)>>,
    /// Steps of copies that are not whole, and where.
    marked: BTreeSet<StepIn>,
    /// The first reason why there may be a checkpoint although none was found.
    doubt: Option<String>,
}

impl Found {
    /// Of what lies in a directory what may be a checkpoint and was written since.
    fn written_since(
        &mut self,
        files: &dyn Files,
        (dir, mut entries): (&Path, Vec<Entry>),
        since: Option<Timestamp>,
        pattern: Option<&Regex>,
    ) -> Vec<Entry> {
        let Some(since) = since else { return entries };
        entries.retain(|entry| {
            let name = entry.name.to_string_lossy();
            let may_count = step_of(&name, pattern).is_some()
                || may_be_one(&name)
                || belongs_to(&name).is_some()
                || marked_beside(&name).is_some();
            if !may_count {
                return false;
            }
            let path = dir.join(&entry.name);
            match files.is_written_since(&path, since) {
                Ok(Some(is_own)) => return is_own,
                Ok(None) => self.doubt(&path, &"its disk does not say when it was written"),
                Err(e) => self.doubt(&path, &e),
            }
            false
        });
        entries
    }

    /// Looks at what lies in a directory, and why there may be more.
    fn look(
        &mut self,
        (dir, entries, unread): (&Path, Vec<Entry>, Option<io::Error>),
        pattern: Option<&Regex>,
    ) {
        for Entry { name, content } in entries {
            let path = dir.join(&name);
            let name = name.to_string_lossy().into_owned();
            if let Some(step) = marked_beside(&name) {
                self.marked.insert((Reverse(step), dir.to_owned()));
                continue;
            }
            let of_another = || belongs_to(&name).and_then(|of| step_of(&of, pattern));
            let step = step_of(&name, pattern).or_else(of_another);
            if step.is_none() && !may_be_one(&name) {
                continue;
            }
            match content {
                // Empty, or removed meanwhile.
                Ok(Some(Content::Nothing)) if step.is_none() || !is_to_hold_something(&name) => {}
                Ok(None) => {}
                Ok(Some(Content::File)) if step.is_none() && !is_named_like_one(&name) => {}
                Ok(Some(content)) => match step {
                    Some(step) => {
                        let key = (Reverse(step), dir.to_owned());
                        self.named.entry(key).or_default().push((name, content));
                    }
                    None => self.doubt(&path, &"it may be one, and its name tells no step"),
                },
                Err(e) => self.doubt(&path, &e),
            }
        }
        if let Some(e) = unread {
            self.doubt(dir, &e);
        }
    }

    /// The newest that is whole. What lies in the others need not be known.
    fn newest(mut self, files: &dyn Files) -> Checkpoints {
        for (key, mut all) in std::mem::take(&mut self.named) {
            if all.iter().all(|(_, content)| *content == Content::Nothing) {
                continue;
            }
            let (Reverse(step), dir) = &key;
            all.sort_unstable_by(|(a, _), (b, _)| (!comes_first(a), a).cmp(&(!comes_first(b), b)));
            let states: Vec<(&str, Completeness)> = all
                .iter()
                .map(|(name, content)| {
                    let state = match content {
                        Content::Nothing => Completeness::Incomplete(format!("{name} is empty")),
                        Content::File => Completeness::Complete,
                        Content::Directory => inside(files, name, &dir.join(name)),
                    };
                    (name.as_str(), state)
                })
                .collect();
            let state = if self.marked.contains(&key) {
                Completeness::HalfCopied
            } else {
                together(&states)
            };
            let name = dir.join(states.first().map_or("", |(name, _)| name));
            let name =
                name.strip_prefix(&self.root).unwrap_or(&name).to_string_lossy().into_owned();
            match state {
                Completeness::Complete => return Checkpoints::Newest(*step, name),
                Completeness::HalfCopied => return Checkpoints::HalfCopied(name),
                Completeness::Incomplete(_) => {}
            }
        }
        self.doubt.map_or(Checkpoints::None, Checkpoints::Unknown)
    }

    fn doubt(&mut self, path: &Path, reason: &dyn std::fmt::Display) {
        self.doubt.get_or_insert_with(|| format!("{}: {reason}", path.display()));
    }
}

/// Whether a directory is whole, by the names in it. One that cannot be read counts as its name says, as it is there.
fn inside(files: &dyn Files, name: &str, dir: &Path) -> Completeness {
    match files.list(dir) {
        Ok(Listing::Entries { entries, unread: None }) => {
            let names: Vec<String> =
                entries.iter().map(|entry| entry.name.to_string_lossy().into_owned()).collect();
            completeness(name, Medium::Disk, names.iter().map(String::as_str))
        }
        Ok(Listing::Entries { .. } | Listing::NoDirectory) | Err(_) => Completeness::Complete,
        Ok(Listing::NotThere) => Completeness::Incomplete("it is gone".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use tpu_engine::runner::files::ThisDisk;

    fn find(log: &str) -> Checkpoints {
        super::find(&ThisDisk, log, None)
    }

    #[test]
    fn only_complete_checkpoints_count() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().to_str().unwrap();
        assert_eq!(find(log), Checkpoints::None);
        fs::create_dir(dir.path().join("checkpoint_30")).unwrap();
        fs::File::create(dir.path().join("checkpoint_40")).unwrap();
        let nested = dir.path().join("checkpoints").join("checkpoint_20");
        fs::create_dir_all(&nested).unwrap();
        assert_eq!(find(log), Checkpoints::None, "empty ones do not count");
        fs::File::create(nested.join("weights")).unwrap();
        assert_eq!(find(log), Checkpoints::Newest(20, "checkpoints/checkpoint_20".to_owned()));
        assert!(matches!(find("gs://bucket/run"), Checkpoints::Unknown(_)));
        assert_eq!(find("/no/such/dir"), Checkpoints::NotHere);
        drop(fs::File::create(dir.path().join("file")).unwrap());
        let below = |name: &str| find(dir.path().join(name).to_str().unwrap());
        assert!(matches!(below("file"), Checkpoints::Unknown(_)));
        assert!(
            matches!(below("file/run"), Checkpoints::Unknown(_)),
            "a part of it is no directory"
        );
    }

    #[test]
    fn files_of_one_step_are_one_and_a_half_copied_one_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().to_str().unwrap();
        let write = |name: &str, text: &str| {
            let mut file = fs::File::create(dir.path().join(name)).unwrap();
            io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        };
        for name in ["m.ckpt-10.data-00000-of-00002", "m.ckpt-10.data-00001-of-00002"] {
            write(name, "w");
        }
        assert!(!matches!(find(log), Checkpoints::Newest(..)), "its index comes last");
        write("m.ckpt-10.index", "w");
        assert_eq!(find(log), Checkpoints::Newest(10, "m.ckpt-10.index".to_owned()));
        write("step_20.rank0.pt", "w");
        write("step_20.rank1.pt", "");
        assert_eq!(find(log), Checkpoints::Newest(10, "m.ckpt-10.index".to_owned()));
        write("step_20.rank1.pt", "w");
        write("step_20.done", "");
        assert_eq!(find(log), Checkpoints::Newest(20, "step_20.rank0.pt".to_owned()));
        write(".tpu-copying-20", "");
        assert_eq!(find(log), Checkpoints::HalfCopied("step_20.rank0.pt".to_owned()));
    }

    #[test]
    fn what_cannot_be_read_is_no_proof_of_none() {
        let look = |name: &str, content: io::Result<Option<Content>>, unread| {
            let mut found = Found::default();
            let log = Entry { name: "output.log".into(), content: Ok(Some(Content::File)) };
            let entries = vec![Entry { name: name.into(), content }, log];
            found.look((Path::new("/run"), entries, unread), None);
            (found.named.pop_first().map(|((step, _), _)| step.0), found.doubt)
        };
        let broken = || io::Error::from_raw_os_error(5);
        let (newest, doubt) = look("notes", Ok(Some(Content::File)), Some(broken()));
        assert!(newest.is_none() && doubt.is_some_and(|why| why.contains("os error 5")));
        let (newest, doubt) = look("checkpoint_1", Err(broken()), None);
        assert!(newest.is_none() && doubt.is_some_and(|why| why.contains("checkpoint_1")));
        assert_eq!(look("checkpoint_1", Ok(None), None), (None, None), "gone meanwhile");
    }
}
