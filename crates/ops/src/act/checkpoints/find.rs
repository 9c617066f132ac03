//! Finds the checkpoints below a place: steps, sizes, whether each is whole, and what is in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use regex::Regex;

use crate::observe::checkpoint::Checkpoints;
use crate::{Ctx, Error, Kind};
use tpu_core::model::checkpoint::{
    self, Completeness, MARKER, Medium, belongs_to, comes_first, completeness,
    is_to_hold_something, marked_beside, step_of,
};
use tpu_core::model::data::User;
use tpu_core::model::objects::{ObjectAt, ObjectFact, StoragePlace};
use tpu_core::model::time::Timestamp;

use super::shelf::{self, Shelf};

/// A file or an object of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointPart {
    /// Its path within the checkpoint; empty where that is a single file.
    pub path: String,
    /// Its bytes.
    pub size: u64,
    /// When it was written.
    pub written: Option<Timestamp>,
    /// The object, if it is one.
    pub object: Option<ObjectFact>,
}

/// A file or a directory that is a checkpoint, or is one with what lies beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointEntry {
    /// Where it is itself.
    pub place: StoragePlace,
    /// Its path below the place that was looked at: `checkpoints/step_10`.
    pub below: String,
    /// What is in it, without the mark of a copy.
    pub parts: Vec<CheckpointPart>,
}

impl CheckpointEntry {
    /// Whether it is one file or object.
    pub(crate) fn is_single(&self) -> bool {
        matches!(self.parts.as_slice(), [one] if one.path.is_empty())
    }

    fn name(&self) -> &str {
        self.below.rsplit('/').next().unwrap_or(&self.below)
    }
}

/// A checkpoint, whole or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundCheckpoint {
    /// Its step.
    pub step: u64,
    /// Whether it is whole.
    pub state: Completeness,
    /// What it consists of: one file or directory mostly, else several in one directory, of which that comes first
    /// which is written last.
    pub entries: Vec<CheckpointEntry>,
}

impl FoundCheckpoint {
    /// The bytes of it.
    pub fn bytes(&self) -> u64 {
        self.parts().map(|part| part.size).sum()
    }

    /// When its newest part was written.
    pub fn written(&self) -> Option<Timestamp> {
        self.parts().filter_map(|part| part.written).max()
    }

    /// Every file or object of it.
    pub fn parts(&self) -> impl Iterator<Item = &CheckpointPart> {
        self.entries.iter().flat_map(|entry| &entry.parts)
    }

    /// Where it is: its first file or directory.
    pub fn place(&self) -> String {
        self.entries.first().map(|entry| entry.place.to_string()).unwrap_or_default()
    }

    /// The same below the place that was looked at.
    pub fn below(&self) -> &str {
        self.entries.first().map_or("", |entry| &entry.below)
    }

    /// The same, and how many more files and directories it has.
    pub fn place_in_words(&self) -> String {
        match self.entries.len() {
            0 | 1 => self.place(),
            many => format!("{} and {} beside it", self.place(), many - 1),
        }
    }

    /// Whether something in it, or its name, tells that it is a checkpoint and not just something with a number.
    pub fn tells(&self) -> bool {
        self.entries.iter().any(|entry| {
            checkpoint::tells(entry.name(), entry.parts.iter().map(|part| part.path.as_str()))
        })
    }
}

/// The setting for unusual names of checkpoints.
pub fn pattern(ctx: &Ctx, user: Option<&User>) -> Result<Option<Regex>, Error> {
    let Some(text) = ctx.settings(user)?.checkpoint_pattern else { return Ok(None) };
    Regex::new(&text).map(Some).map_err(|e| {
        Error::usage(format!("the setting checkpoint_pattern is no regular expression: {e}"))
            .hint("the step is its first group: ^weights-(\\d+)$")
    })
}

/// The newest that is whole.
pub fn newest(found: &[FoundCheckpoint]) -> Option<&FoundCheckpoint> {
    found.iter().filter(|one| one.state.is_complete()).max_by_key(|one| one.step)
}

/// All that is below a place and in `checkpoints/` there, the oldest step first. An error where it is not known; a place
/// that is not there has none.
pub fn below(
    ctx: &Ctx,
    shelf: Option<&Shelf>,
    place: &StoragePlace,
    pattern: Option<&Regex>,
) -> Result<Vec<FoundCheckpoint>, Error> {
    let mut found = match place {
        StoragePlace::Directory(dir) => {
            let unread = |e: io::Error| {
                Error::unreachable(format!("what is in {} is unknown: {e}", dir.display()))
                    .hint("nothing was changed; try again when it can be read")
            };
            on_disk(dir, pattern).map_err(unread)?
        }
        StoragePlace::Bucket(at) => {
            let shelf = shelf.ok_or_else(|| shelf::none_for(at))?;
            in_bucket(at, &shelf.all(ctx, &at.bucket, &at.prefix())?, pattern)
        }
    };
    found.sort_unstable_by(|a, b| a.step.cmp(&b.step).then_with(|| a.below().cmp(b.below())));
    Ok(found)
}

/// Where checkpoints lie below a place.
const WITHIN: [&str; 2] = ["", "checkpoints"];

fn joined(within: &str, name: &str) -> String {
    if within.is_empty() { name.to_owned() } else { format!("{within}/{name}") }
}

/// The step of what has the name of a checkpoint, also one that is being written.
fn step_in(name: &str, pattern: Option<&Regex>) -> Option<u64> {
    step_of(name, pattern).or_else(|| {
        let begun = name.find(".orbax-checkpoint-tmp").and_then(|at| name.get(..at));
        let begun = begun.or_else(|| name.strip_suffix(".partial"))?;
        step_of(begun, pattern)
    })
}

/// What lies in one directory, by the steps of which it is.
#[derive(Default)]
struct Lying {
    /// Each with how it is by itself.
    by_step: BTreeMap<u64, Vec<(CheckpointEntry, Completeness)>>,
    /// What has a name that is given while it is written: it is nobody's part yet.
    being_written: Vec<FoundCheckpoint>,
    /// Steps of which copies are not whole.
    marked: BTreeSet<u64>,
}

impl Lying {
    fn add(&mut self, medium: Medium, pattern: Option<&Regex>, mut entry: CheckpointEntry) {
        let name = entry.name();
        if let Some(step) = marked_beside(name) {
            self.marked.insert(step);
            return;
        }
        let of_another = || belongs_to(name).and_then(|of| step_of(&of, pattern));
        let own = step_of(name, pattern).or_else(of_another);
        let Some(step) = own.or_else(|| step_in(name, pattern)) else { return };
        let is_empty_file = entry.is_single() && entry.parts.iter().all(|part| part.size == 0);
        let state = if is_empty_file {
            Completeness::Incomplete("it is empty".to_owned())
        } else {
            completeness(name, medium, entry.parts.iter().map(|part| part.path.as_str()))
        };
        entry.parts.retain(|part| part.path != MARKER);
        if own.is_some() {
            self.by_step.entry(step).or_default().push((entry, state));
        } else {
            self.being_written.push(FoundCheckpoint { step, state, entries: vec![entry] });
        }
    }

    fn joined(self) -> Vec<FoundCheckpoint> {
        let mut found = self.being_written;
        for (step, mut all) in self.by_step {
            let holds = |entry: &CheckpointEntry| entry.parts.iter().any(|part| part.size > 0);
            // What is empty beside others says something, or is nothing.
            if all.iter().any(|(entry, _)| holds(entry)) {
                all.retain(|(entry, state)| {
                    let is_half = *state == Completeness::HalfCopied;
                    holds(entry) || is_half || is_to_hold_something(entry.name())
                });
            }
            all.sort_unstable_by(|(a, _), (b, _)| {
                let key = |entry: &CheckpointEntry| !comes_first(entry.name());
                (key(a), &a.below).cmp(&(key(b), &b.below))
            });
            let names: Vec<_> =
                all.iter().map(|(entry, state)| (entry.name(), state.clone())).collect();
            let state = if self.marked.contains(&step) {
                Completeness::HalfCopied
            } else {
                checkpoint::together(&names)
            };
            let entries = all.into_iter().map(|(entry, _)| entry).collect();
            found.push(FoundCheckpoint { step, state, entries });
        }
        found
    }
}

fn on_disk(root: &Path, pattern: Option<&Regex>) -> io::Result<Vec<FoundCheckpoint>> {
    let mut found = Vec::new();
    for within in WITHIN {
        let mut lying = Lying::default();
        let dir = if within.is_empty() { root.to_owned() } else { root.join(within) };
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            // What has the name is a file.
            Err(e) if e.kind() == io::ErrorKind::NotADirectory && !within.is_empty() => continue,
            Err(e) => return Err(e),
        };
        for entry in entries {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            if !may_count(&name, pattern) {
                continue;
            }
            let mut parts = Vec::new();
            parts_of(&entry.path(), "", &mut parts)?;
            let place = StoragePlace::Directory(entry.path());
            let below = joined(within, &name);
            lying.add(Medium::Disk, pattern, CheckpointEntry { place, below, parts });
        }
        found.extend(lying.joined());
    }
    Ok(found)
}

/// Whether a name is one of a checkpoint, of something that belongs to one, or of a mark: what is in others need not be
/// looked at.
fn may_count(name: &str, pattern: Option<&Regex>) -> bool {
    step_in(name, pattern).is_some() || belongs_to(name).is_some() || marked_beside(name).is_some()
}

/// Every file at or below a path. Links are followed as whoever loads it follows them.
fn parts_of(path: &Path, name: &str, parts: &mut Vec<CheckpointPart>) -> io::Result<()> {
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        // Removed meanwhile.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    if meta.is_dir() {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let file = entry.file_name();
            let Some(file) = file.to_str() else {
                let text = format!("{} has a name that is no text", entry.path().display());
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            };
            parts_of(&entry.path(), &joined(name, file), parts)?;
        }
        return Ok(());
    }
    let written = meta.modified().ok().and_then(|at| jiff::Timestamp::try_from(at).ok());
    parts.push(CheckpointPart {
        path: name.to_owned(),
        size: meta.len(),
        written: written.map(Timestamp::from_jiff),
        object: None,
    });
    Ok(())
}

/// The same of a list of objects below a prefix.
fn in_bucket(
    at: &ObjectAt,
    objects: &[ObjectFact],
    pattern: Option<&Regex>,
) -> Vec<FoundCheckpoint> {
    let prefix = at.prefix();
    let mut by_name: BTreeMap<(&str, &str), Vec<CheckpointPart>> = BTreeMap::new();
    for object in objects {
        let Some(rest) = object.at.name.strip_prefix(&prefix) else { continue };
        let (within, rest) = match rest.strip_prefix("checkpoints/") {
            Some(rest) => ("checkpoints", rest),
            None => ("", rest),
        };
        let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
        // What a console makes to show a directory is nothing in it.
        if name.is_empty() || path.is_empty() && rest.ends_with('/') || path.ends_with('/') {
            continue;
        }
        let part = CheckpointPart {
            path: path.to_owned(),
            size: object.size,
            written: object.updated,
            object: Some(object.clone()),
        };
        by_name.entry((within, name)).or_default().push(part);
    }
    let mut lying: BTreeMap<&str, Lying> = BTreeMap::new();
    for ((within, name), parts) in by_name {
        let below = joined(within, name);
        let place = StoragePlace::Bucket(at.join(&below));
        let entry = CheckpointEntry { place, below, parts };
        lying.entry(within).or_default().add(Medium::Bucket, pattern, entry);
    }
    lying.into_values().flat_map(Lying::joined).collect()
}

/// What a resume would find in a bucket of what was written since. What cannot be asked is unknown.
pub(crate) fn in_bucket_since(
    ctx: &Ctx,
    shelf: &Shelf,
    (at, since): (&ObjectAt, Option<Timestamp>),
    pattern: Option<&Regex>,
) -> Checkpoints {
    let place = StoragePlace::Bucket(at.clone());
    let mut found = match below(ctx, Some(shelf), &place, pattern) {
        Ok(found) => found,
        Err(error) if error.kind == Kind::Unreachable => return Checkpoints::Silent(error.message),
        Err(error) => return Checkpoints::Unknown(error.message),
    };
    found.retain(|one| since.is_none_or(|since| one.written().is_none_or(|at| at >= since)));
    let half = found.iter().rev().find(|one| one.state == Completeness::HalfCopied);
    match (newest(&found), half) {
        (Some(whole), Some(half)) if half.step < whole.step => {
            Checkpoints::Newest(whole.step, whole.below().to_owned())
        }
        (_, Some(half)) => Checkpoints::HalfCopied(half.below().to_owned()),
        (Some(whole), None) => Checkpoints::Newest(whole.step, whole.below().to_owned()),
        (None, None) => Checkpoints::None,
    }
}

/// Whether a path names a checkpoint itself, and not where several are.
pub fn is_one(place: &StoragePlace, pattern: Option<&Regex>) -> bool {
    let name = match place {
        StoragePlace::Directory(dir) => dir.file_name().and_then(|name| name.to_str()),
        StoragePlace::Bucket(at) => at.name.rsplit('/').next(),
    };
    name.is_some_and(|name| step_of(name, pattern).is_some() && checkpoint::is_named_like_one(name))
}
