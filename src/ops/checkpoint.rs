//! Complete checkpoints: entries of a log directory named by a step, not temporary, not empty. That there is
//! none is said only where everything could be read and nothing looks like one.

use std::io;
use std::path::Path;

use regex::Regex;

use crate::model::ids::JobId;
use crate::runner::files::{Content, Entry, Files, Listing};

use super::ctx::job_of;
use super::{Ctx, Error, runners};

/// What is known about the checkpoints of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checkpoints {
    /// The newest complete one: its step and its name.
    Newest(u64, String),
    /// The directories can be read and hold nothing that may be one.
    None,
    /// `log_dir` is not there. Whether that means anything depends on whose directory it is.
    NotHere,
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
    if log_dir.contains("://") {
        return Checkpoints::Unknown(format!("{log_dir} is not on this machine's file system"));
    }
    let root = Path::new(log_dir);
    let mut found = Found::default();
    match files.list(root) {
        Ok(Listing::Entries { entries, unread }) => found.look((root, entries, unread), pattern),
        Ok(Listing::NoDirectory) => {
            return Checkpoints::Unknown(format!("{log_dir} is no directory"));
        }
        Ok(Listing::NotThere) => return Checkpoints::NotHere,
        Err(e) => return Checkpoints::Unknown(format!("{log_dir} cannot be seen from here: {e}")),
    }
    let below = root.join("checkpoints");
    match files.list(&below) {
        Ok(Listing::Entries { entries, unread }) => found.look((&below, entries, unread), pattern),
        Ok(Listing::NoDirectory) => found.doubt(&below, &"it is no directory"),
        Ok(Listing::NotThere) => {}
        Err(e) => found.doubt(&below, &e),
    }
    match (found.newest, found.doubt) {
        (Some((step, name)), _) => Checkpoints::Newest(step, name),
        (None, Some(reason)) => Checkpoints::Unknown(reason),
        (None, None) => Checkpoints::None,
    }
}

/// What was found in some directories.
#[derive(Default)]
struct Found {
    newest: Option<(u64, String)>,
    /// The first reason why there may be a checkpoint although none was found.
    doubt: Option<String>,
}

impl Found {
    /// Looks at what lies in a directory, and why there may be more.
    fn look(
        &mut self,
        (dir, entries, unread): (&Path, Vec<Entry>, Option<io::Error>),
        pattern: Option<&Regex>,
    ) {
        for Entry { name, content } in entries {
            let path = dir.join(&name);
            let name = name.to_string_lossy().into_owned();
            let step = step_of(&name, pattern);
            if step.is_none() && !may_be_one(&name) {
                continue;
            }
            match content {
                // Empty, or removed meanwhile.
                Ok(Some(Content::Nothing) | None) => {}
                Ok(Some(Content::File)) if step.is_none() && !is_named_like_one(&name) => {}
                Ok(Some(Content::File | Content::Directory)) => match step {
                    Some(step) if self.newest.as_ref().is_none_or(|(best, _)| step > *best) => {
                        self.newest = Some((step, name));
                    }
                    Some(_) => {}
                    None => self.doubt(&path, &"it may be one, and its name tells no step"),
                },
                Err(e) => self.doubt(&path, &e),
            }
        }
        if let Some(e) = unread {
            self.doubt(dir, &e);
        }
    }

    fn doubt(&mut self, path: &Path, reason: &dyn std::fmt::Display) {
        self.doubt.get_or_insert_with(|| format!("{}: {reason}", path.display()));
    }
}

/// Whether it is being written, or was when its program was stopped.
fn is_temporary(name: &str) -> bool {
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
fn step_of(name: &str, pattern: Option<&Regex>) -> Option<u64> {
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
fn is_named_like_one(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let tells = name.contains("checkpoint") || name.contains("ckpt");
    // The one that is looked into.
    name != "checkpoints" && (tells || usual_step(&name).is_some() || holds_weights(&name))
}

/// Whether a name without a step that is known may be one of a checkpoint; if its name ends in a number, then
/// as a directory.
fn may_be_one(name: &str) -> bool {
    let has_number = name.ends_with(|c: char| c.is_ascii_digit());
    !is_temporary(name) && !is_to_be_looked_at(name) && (has_number || is_named_like_one(name))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::runner::files::ThisDisk;

    fn find(log: &str) -> Checkpoints {
        super::find(&ThisDisk, log, None)
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
        assert_eq!(find(log), Checkpoints::Newest(20, "checkpoint_20".to_owned()));
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
    fn what_cannot_be_read_is_no_proof_of_none() {
        let look = |name: &str, content: io::Result<Option<Content>>, unread| {
            let mut found = Found::default();
            let log = Entry { name: "output.log".into(), content: Ok(Some(Content::File)) };
            let entries = vec![Entry { name: name.into(), content }, log];
            found.look((Path::new("/run"), entries, unread), None);
            (found.newest, found.doubt)
        };
        let broken = || io::Error::from_raw_os_error(5);
        let (newest, doubt) = look("notes", Ok(Some(Content::File)), Some(broken()));
        assert!(newest.is_none() && doubt.is_some_and(|why| why.contains("os error 5")));
        let (newest, doubt) = look("checkpoint_1", Err(broken()), None);
        assert!(newest.is_none() && doubt.is_some_and(|why| why.contains("checkpoint_1")));
        assert_eq!(look("checkpoint_1", Ok(None), None), (None, None), "gone meanwhile");
    }
}
