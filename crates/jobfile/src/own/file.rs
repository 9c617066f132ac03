//! Jobs as a file again: what the reader makes of it are the same jobs.

use std::ffi::OsString;

use crate::yaml::Yaml;

use super::keys::KEYS;
use super::written::map;
use super::{Before, OwnJob};

/// The documents of jobs. A word of a command that is no text, in UTF-8, can stand in no file: it is the error.
pub fn documents(jobs: &[OwnJob]) -> Result<Vec<Yaml>, OsString> {
    jobs.iter().map(|job| among(job, jobs)).collect()
}

/// The document of one job; the error is as that of [`documents`].
pub fn document(job: &OwnJob) -> Result<Yaml, OsString> {
    among(job, std::slice::from_ref(job))
}

/// Keys that are written behind another one than on the page.
const BEHIND: [(&str, &str); 2] = [("output", "setup"), ("notify", "retry")];

fn among(job: &OwnJob, all: &[OwnJob]) -> Result<Yaml, OsString> {
    if let Some(word) = job.command.iter().flatten().find(|word| word.to_str().is_none()) {
        return Err(word.clone());
    }
    let mut job = job.clone();
    for (_, before) in &mut job.waits.after {
        if let Before::OfFile(index) = before
            && let Some(name) = all.get(*index).and_then(|job| job.name.clone())
        {
            *before = Before::Other((0, 0), name);
        }
    }
    let rank = |name: &str| {
        let behind = BEHIND.iter().find(|(key, _)| *key == name).map(|(_, other)| *other);
        (KEYS.iter().position(|key| key.name == behind.unwrap_or(name)), behind.is_some())
    };
    let mut said: Vec<_> = KEYS.iter().map(|key| (key.name, key.form.write(&mut job))).collect();
    said.sort_unstable_by_key(|(name, _)| rank(name));
    Ok(map(said))
}
