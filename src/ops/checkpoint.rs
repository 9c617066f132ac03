//! Complete checkpoints: entries of a log directory named by a step, not temporary, not empty.

use std::fs;
use std::path::Path;

use regex::Regex;

/// What is known about the checkpoints of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checkpoints {
    /// The newest complete one: its step and its name.
    Newest(u64, String),
    /// The directories can be read and hold none.
    None,
    /// `log_dir` is not on this machine. Whether that means anything depends on whose directory it is.
    NotHere,
    /// They cannot be read from here (`gs://…`, no right to), for this reason.
    Unknown(String),
}

/// Looks into `log_dir` and `log_dir/checkpoints`.
pub fn find(log_dir: &str, pattern: Option<&Regex>) -> Checkpoints {
    if log_dir.contains("://") {
        return Checkpoints::Unknown(format!("{log_dir} is not on this machine's file system"));
    }
    let root = Path::new(log_dir);
    match fs::metadata(root) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => return Checkpoints::Unknown(format!("{log_dir} is no directory")),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Checkpoints::NotHere,
        Err(e) => return Checkpoints::Unknown(format!("{log_dir} cannot be seen from here: {e}")),
    }
    let mut newest: Option<(u64, String)> = None;
    for dir in [root.to_owned(), root.join("checkpoints")] {
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => return Checkpoints::Unknown(format!("{}: {e}", dir.display())),
        };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(step) = step_of(&name, pattern) else { continue };
            if is_complete(&entry.path()) && newest.as_ref().is_none_or(|(best, _)| step > *best) {
                newest = Some((step, name));
            }
        }
    }
    newest.map_or(Checkpoints::None, |(step, name)| Checkpoints::Newest(step, name))
}

/// The step in the name of a checkpoint; `None` if it is none, or a temporary one.
fn step_of(name: &str, pattern: Option<&Regex>) -> Option<u64> {
    if name.contains("tmp") || name.ends_with(".partial") {
        return None;
    }
    if let Some(pattern) = pattern {
        let found = pattern.captures(name)?;
        return found.get(1).or_else(|| found.get(0))?.as_str().parse().ok();
    }
    // `10`, `checkpoint_10`, `ckpt-00010.json`, `step_10.pt`, `checkpoint_epoch20.pth`, `model.ckpt-10.index`.
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    let digits = stem.trim_start_matches(|c: char| !c.is_ascii_digit());
    let prefix = stem.strip_suffix(digits)?;
    let word = prefix.trim_end_matches(['_', '-']).to_ascii_lowercase();
    let known = ["", "checkpoint", "ckpt", "step", "checkpoint_epoch", "epoch", "checkpoint_step"];
    known.contains(&word.as_str()).then(|| digits.parse().ok())?
}

/// A file with content, or a directory with an entry.
fn is_complete(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => {
            fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
        }
        Ok(meta) => meta.len() > 0,
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(find(log, None), Checkpoints::None);
        fs::create_dir(dir.path().join("checkpoint_30")).unwrap();
        fs::File::create(dir.path().join("checkpoint_40")).unwrap();
        let nested = dir.path().join("checkpoints").join("checkpoint_20");
        fs::create_dir_all(&nested).unwrap();
        assert_eq!(find(log, None), Checkpoints::None, "empty ones do not count");
        fs::File::create(nested.join("weights")).unwrap();
        assert_eq!(find(log, None), Checkpoints::Newest(20, "checkpoint_20".to_owned()));
        assert!(matches!(find("gs://bucket/run", None), Checkpoints::Unknown(_)));
        assert_eq!(find("/no/such/dir", None), Checkpoints::NotHere);
        drop(fs::File::create(dir.path().join("file")).unwrap());
        let below = |name: &str| find(dir.path().join(name).to_str().unwrap(), None);
        assert!(matches!(below("file"), Checkpoints::Unknown(_)));
        assert!(
            matches!(below("file/run"), Checkpoints::Unknown(_)),
            "a part of it is no directory"
        );
    }
}
