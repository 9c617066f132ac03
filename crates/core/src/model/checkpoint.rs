//! Checkpoints by name and by what lies in them: the one place that says which step one is of, and whether it is whole.
//!
//! Whole is what its framework will load again:
//! - its name is none that is given while it is written (`…tmp…`, `….partial`), and neither is that of a part of it;
//! - there is something in it;
//! - it is no copy of ours that is not whole ([`MARKER`]);
//! - in a bucket, where nothing can be renamed at once, Orbax writes `commit_success.txt` last (its documentation, "Checkpoint
//!   format guide"): one of Orbax's without it was not completed;
//! - `PyTorch`'s distributed checkpoints (`torch.distributed.checkpoint`) have their `.metadata` last: parts without it are none;
//! - of files that are counted (`model.ckpt-10.data-00000-of-00002`) all are there, and `TensorFlow`'s `.index`, which comes last.
//!
//! What lies side by side and is of one step is one checkpoint ([`together`]): a file of each rank, or weights and their
//! optimizer.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

/// Lies in what we copy as long as it is not whole.
pub const MARKER: &str = ".tpu-copying";

/// What Orbax writes last in a bucket.
pub const COMMITTED: &str = "commit_success.txt";

/// What tells that Orbax has written a directory.
const OF_ORBAX: [&str; 3] = ["_METADATA", "_CHECKPOINT_METADATA", "manifest.ocdbt"];

/// Whether a checkpoint is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// It can be loaded.
    Complete,
    /// It cannot, for this reason.
    Incomplete(String),
    /// It is a copy that has not been completed: whoever loads it loads a half one.
    HalfCopied,
}

impl Completeness {
    /// Whether it can be loaded.
    pub fn is_complete(&self) -> bool {
        *self == Self::Complete
    }

    /// Why it cannot.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Complete => None,
            Self::Incomplete(why) => Some(why),
            Self::HalfCopied => Some("it is a copy that is not whole yet"),
        }
    }
}

/// Where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// On a disk, where a directory gets its name when it is whole.
    Disk,
    /// In a bucket, where every object appears by itself.
    Bucket,
}

/// Judges a checkpoint by its name and the paths of what lies in it. A single file has one part with an empty path.
pub fn completeness<'a>(
    name: &str,
    medium: Medium,
    parts: impl IntoIterator<Item = &'a str>,
) -> Completeness {
    let incomplete = |why: &str| Completeness::Incomplete(why.to_owned());
    let (mut is_empty, mut is_committed, mut is_of_orbax) = (true, false, false);
    let (mut has_shards, mut has_metadata, mut temporary) = (false, false, None);
    for path in parts {
        if path == MARKER {
            return Completeness::HalfCopied;
        }
        is_empty = false;
        is_committed |= path == COMMITTED;
        let file = path.rsplit('/').next().unwrap_or(path);
        is_of_orbax |= OF_ORBAX.contains(&file);
        has_shards |= file.ends_with(".distcp");
        has_metadata |= file == ".metadata";
        let is_being_written =
            |part: &str| part.contains(".orbax-checkpoint-tmp") || part.ends_with(".partial");
        if temporary.is_none() && path.split('/').any(is_being_written) {
            temporary = Some(path);
        }
    }
    if is_temporary(name) {
        return incomplete("its name is one that is given while it is written");
    }
    if is_empty {
        return incomplete("nothing is in it");
    }
    if let Some(path) = temporary {
        return Completeness::Incomplete(format!(
            "{path} is still being written, or never was to its end"
        ));
    }
    if medium == Medium::Bucket && is_of_orbax && !is_committed {
        return incomplete("Orbax has not written commit_success.txt, which comes last");
    }
    if has_shards && !has_metadata {
        return incomplete("its .metadata, which comes last, is missing");
    }
    Completeness::Complete
}

/// The name of the mark beside files that are copied one by one and are one checkpoint: none of them tells of the others.
pub fn mark_beside(step: u64) -> String {
    format!("{MARKER}-{step}")
}

/// The step of such a mark.
pub fn marked_beside(name: &str) -> Option<u64> {
    name.strip_prefix(MARKER)?.strip_prefix('-')?.parse().ok()
}

/// Judges what is one checkpoint together, by the names of its files and directories and how each is by itself.
pub fn together(all: &[(&str, Completeness)]) -> Completeness {
    if all.iter().any(|(_, state)| *state == Completeness::HalfCopied) {
        return Completeness::HalfCopied;
    }
    if let Some((_, open)) = all.iter().find(|(_, state)| !state.is_complete()) {
        return open.clone();
    }
    match missing(all.iter().map(|(name, _)| *name)) {
        Some(why) => Completeness::Incomplete(why),
        None => Completeness::Complete,
    }
}

/// A file that says how many there are: what stands before its number, and how many.
fn shard(name: &str) -> Option<(&str, usize, usize)> {
    let (front, of) = name.split_once("-of-")?;
    let of = of.split(|c: char| !c.is_ascii_digit()).next()?;
    let digits = front.len() - front.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (stem, number) = front.split_at_checked(front.len() - digits)?;
    Some((stem.trim_end_matches('-'), number.parse().ok()?, of.parse().ok()?))
}

/// What is missing of counted files.
fn missing<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let names: BTreeSet<&str> = names.into_iter().collect();
    let mut known: BTreeMap<(&str, usize), BTreeSet<usize>> = BTreeMap::new();
    for (stem, number, of) in names.iter().filter_map(|name| shard(name)) {
        known.entry((stem, of)).or_default().insert(number);
    }
    known.into_iter().find_map(|((stem, of), numbers)| {
        if numbers.len() < of {
            return Some(format!("{} of {of} files {stem}-… are there", numbers.len()));
        }
        let index = format!("{}.index", stem.strip_suffix(".data")?);
        (!names.contains(index.as_str())).then(|| format!("{index}, which comes last, is missing"))
    })
}

/// What an entry without a step of its own belongs to: the name of the one that has it.
pub fn belongs_to(name: &str) -> Option<String> {
    let stem = match shard(name) {
        Some((stem, ..)) => stem.strip_suffix(".data")?,
        None => name.strip_suffix(".meta")?,
    };
    Some(format!("{stem}.index"))
}

/// Whether a file is that of several by which they are called: `TensorFlow` writes it last.
pub fn comes_first(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| ending == "index")
}

/// Whether a file that is empty was to hold something: others may be there to say that a thing is done.
pub fn is_to_hold_something(name: &str) -> bool {
    holds_weights(name) || shard(name).is_some()
}

/// Whether a name or what lies below it tells that it is a checkpoint, and not just something with a number: `10` and
/// `epoch_3` may be anything.
pub fn tells<'a>(name: &str, parts: impl IntoIterator<Item = &'a str>) -> bool {
    const ANYTHING: [&str; 3] = ["", "epoch", "iter"];
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    let word = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    let word = word.trim_end_matches(['_', '-']).to_ascii_lowercase();
    let is_of_framework = |path: &str| {
        let file = path.rsplit('/').next().unwrap_or(path);
        comes_last(path) || file.ends_with(".distcp") || holds_weights(file)
    };
    !ANYTHING.contains(&word.as_str())
        || holds_weights(name)
        || parts.into_iter().any(is_of_framework)
}

/// Whether a part of a checkpoint says that the others are there, so that it is copied last.
pub fn comes_last(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    file == COMMITTED || file == ".metadata" || OF_ORBAX.contains(&file)
}

/// Whether a checkpoint that lies on a disk needs [`COMMITTED`] where it is copied to a bucket.
pub fn wants_commit<'a>(parts: impl IntoIterator<Item = &'a str>) -> bool {
    let (mut is_of_orbax, mut is_committed) = (false, false);
    for path in parts {
        is_of_orbax |= path.rsplit('/').next().is_some_and(|file| OF_ORBAX.contains(&file));
        is_committed |= path == COMMITTED;
    }
    is_of_orbax && !is_committed
}

/// Whether it is being written, or was when its program was stopped.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.contains("tmp") || name.ends_with(".partial")
}

/// Whether it is for people to look at: `step_10.png` is no checkpoint, whatever stands before its ending.
fn is_to_be_looked_at(name: &str) -> bool {
    const ENDINGS: [&str; 16] = [
        "png", "jpg", "jpeg", "gif", "svg", "pdf", "mp4", "webm", "wav", "log", "txt", "csv",
        "yaml", "yml", "html", "md",
    ];
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()))
}

/// The step in the name of a checkpoint; `None` if it is none, or a temporary one.
pub fn step_of(name: &str, pattern: Option<&Regex>) -> Option<u64> {
    if is_temporary(name) {
        return None;
    }
    match pattern {
        Some(pattern) => {
            let found = pattern.captures(name)?;
            found.get(1).or_else(|| found.get(0))?.as_str().parse().ok()
        }
        None if is_to_be_looked_at(name) => None,
        None => usual_step(name),
    }
}

/// What stands before the step, where no program but a checkpoint's writer uses it.
const WORDS: [&str; 9] = [
    "",
    "checkpoint",
    "ckpt",
    "step",
    "checkpoint_epoch",
    "epoch",
    "checkpoint_step",
    "global_step",
    "iter",
];

/// The step in a name of a kind that is known: `10`, `checkpoint_10`, `ckpt-00010.json`, `step_10.pt`,
/// `checkpoint_epoch20.pth`, `iter_10.pth`, `model_10.pt`, `model.ckpt-10.index`, `epoch=3-step=10.ckpt`.
fn usual_step(name: &str) -> Option<u64> {
    let (stem, ending) = name.split_once('.').unwrap_or((name, ""));
    if let Some(step) = ending.strip_prefix("ckpt-").and_then(|rest| rest.strip_suffix(".index")) {
        return step.parse().ok();
    }
    if let Some((_, step)) = name.rsplit_once("step=") {
        return step.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    }
    let digits = stem.trim_start_matches(|c: char| !c.is_ascii_digit());
    let prefix = stem.strip_suffix(digits)?;
    let word = prefix.trim_end_matches(['_', '-']).to_ascii_lowercase();
    let is_known = WORDS.contains(&word.as_str()) || word == "model" && holds_weights(name);
    is_known.then(|| digits.parse().ok())?
}

/// Whether a name ends as those of files with weights do, whatever is added behind (`.pth.tar`).
fn holds_weights(name: &str) -> bool {
    const ENDINGS: [&str; 16] = [
        "ckpt",
        "pt",
        "pth",
        "safetensors",
        "index",
        "msgpack",
        "h5",
        "keras",
        "orbax",
        "pkl",
        "pickle",
        "npz",
        "npy",
        "bin",
        "tar",
        "zarr",
    ];
    name.split('.').skip(1).any(|part| ENDINGS.contains(&part.to_ascii_lowercase().as_str()))
}

/// Whether a file or a directory of this name is a checkpoint in all likelihood.
pub fn is_named_like_one(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let tells = name.contains("checkpoint") || name.contains("ckpt");
    // The one that is looked into.
    name != "checkpoints" && (tells || usual_step(&name).is_some() || holds_weights(&name))
}

/// Whether a name without a step that is known may be one of a checkpoint; if its name ends in a number, then
/// as a directory.
pub fn may_be_one(name: &str) -> bool {
    let has_number = name.ends_with(|c: char| c.is_ascii_digit());
    !is_temporary(name) && !is_to_be_looked_at(name) && (has_number || is_named_like_one(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_whole_is_what_its_framework_loads() {
        use Medium::{Bucket, Disk};
        let judge =
            |name: &str, medium, parts: &[&str]| completeness(name, medium, parts.iter().copied());
        for (name, medium, parts, whole) in [
            ("checkpoint_10", Disk, &["weights"][..], true),
            ("checkpoint_10", Disk, &[], false),
            ("checkpoint_10.msgpack", Bucket, &[""], true),
            ("10.orbax-checkpoint-tmp-3", Disk, &["_METADATA"], false),
            ("10.partial", Disk, &["weights"], false),
            ("10", Disk, &["_METADATA", "d/1"], true),
            ("10", Bucket, &["_METADATA", "d/1"], false),
            ("10", Bucket, &["_METADATA", "d/1", "commit_success.txt"], true),
            ("10", Disk, &["default.orbax-checkpoint-tmp-7/d/1"], false),
            ("step_10", Disk, &["__0_0.distcp", "__1_0.distcp"], false),
            ("step_10", Disk, &["__0_0.distcp", ".metadata"], true),
        ] {
            assert_eq!(judge(name, medium, parts).is_complete(), whole, "{name} {parts:?}");
        }
        let half = judge("10", Bucket, &["_METADATA", "commit_success.txt", MARKER]);
        assert_eq!(half, Completeness::HalfCopied);
        assert!(comes_last("10/commit_success.txt") && !comes_last("d/1"));
        assert!(
            wants_commit(["_METADATA"])
                && !wants_commit(["w"])
                && !wants_commit(["_METADATA", COMMITTED])
        );
    }

    #[test]
    fn what_is_of_one_step_is_whole_when_all_of_it_is_there() {
        use Completeness::{Complete, HalfCopied};
        let judge = |names: &[&str]| {
            let all: Vec<_> = names.iter().map(|name| (*name, Complete)).collect();
            together(&all).is_complete()
        };
        assert!(judge(&["step_10.rank0.pt", "step_10.rank1.pt"]));
        assert!(judge(&["model.ckpt-10.index"]));
        let (index, data) = ("m.ckpt-10.index", "m.ckpt-10.data-00000-of-00002");
        let more = "m.ckpt-10.data-00001-of-00002";
        assert!(judge(&[index, data, more, "m.ckpt-10.meta"]));
        assert!(!judge(&[index, data]), "one of two");
        assert!(!judge(&[data, more]), "its index comes last");
        assert!(judge(&["step_10-00001-of-00001.safetensors"]));
        assert!(!judge(&["step_10-00001-of-00002.safetensors"]));
        let empty = Completeness::Incomplete("it is empty".to_owned());
        assert_eq!(together(&[("a", Complete), ("b", empty.clone())]), empty);
        assert_eq!(together(&[("a", empty), ("b", HalfCopied)]), HalfCopied);
        assert_eq!(belongs_to(data).as_deref(), Some(index));
        assert_eq!(belongs_to("m.ckpt-10.meta").as_deref(), Some(index));
        assert_eq!((belongs_to("step_10.pt"), belongs_to("a-of-b")), (None, None));
        assert_eq!(marked_beside(&mark_beside(10)), Some(10));
        assert_eq!((marked_beside(MARKER), marked_beside("step_10")), (None, None));
    }

    #[test]
    fn a_number_alone_tells_nothing() {
        for (name, parts, tells_so) in [
            ("10", &["picture"][..], false),
            ("epoch_3", &["metrics.json"], false),
            ("iter-7", &[], false),
            ("10", &["_METADATA", "d/1"], true),
            ("10", &["model.safetensors"], true),
            ("epoch_3", &["state/rank0.pt"], true),
            ("iter_7", &["__0_0.distcp"], true),
            ("epoch_3.pt", &[""], true),
            ("checkpoint_10", &["w"], true),
            ("global_step10", &["w"], true),
        ] {
            assert_eq!(tells(name, parts.iter().copied()), tells_so, "{name} {parts:?}");
        }
    }

    #[test]
    fn names_of_checkpoints_tell_their_step() {
        for (name, step) in [
            ("10", Some(10)),
            ("checkpoint_10", Some(10)),
            ("ckpt-00010.json", Some(10)),
            ("step_10.pt", Some(10)),
            ("checkpoint_epoch20.pth", Some(20)),
            ("checkpoint_10.orbax-checkpoint-tmp-3", None),
            ("tmp_checkpoint_10", None),
            ("output.log", None),
            ("run2", None),
            ("checkpoint_", None),
            ("global_step500", Some(500)),
            ("iter_0000500", Some(500)),
            ("iter_500.pth", Some(500)),
            ("model_0000500.pt", Some(500)),
            ("model_2", None),
            ("model_2.py", None),
            ("epoch=3-step=500.ckpt", Some(500)),
            ("epoch=3-step=500-v1.ckpt", Some(500)),
            ("step=500-val=0.5.ckpt", Some(500)),
            ("val=0.5-step=500.ckpt", Some(500)),
            ("model.ckpt-10.index", Some(10)),
            ("model.ckpt-10.data-00000-of-00001", None),
            ("last.ckpt", None),
            ("step_10.png", None),
            ("10.log", None),
            ("checkpoint_10.json", Some(10)),
        ] {
            assert_eq!(step_of(name, None), step, "{name}");
        }
        let own = Regex::new(r"^weights-(\d+)$").unwrap();
        assert_eq!(step_of("weights-7", Some(&own)), Some(7));
        assert_eq!(step_of("checkpoint_10", Some(&own)), None);
    }
}
