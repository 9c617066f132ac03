//! Answers that are kept in files of their own, so that nobody has to ask again at once, and so that silence can be told
//! with the age of what is known. Such a file may be lost: then it is asked again.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use tpu_core::model::time::Timestamp;

use super::{Store, atomic};

/// A file of JSON that may be lost.
pub struct CacheFile<'a> {
    /// By whose disk it is read and written.
    pub store: &'a Store,
    /// Where it is.
    pub path: PathBuf,
    /// The mode with which it is written.
    pub mode: u32,
}

impl CacheFile<'_> {
    /// Returns its contents, or nothing where it does not exist or cannot be read.
    pub fn read<T: DeserializeOwned + Default>(&self) -> T {
        let contents = self.store.disk().read(&self.path).ok();
        contents.and_then(|file| serde_json::from_slice(&file.bytes).ok()).unwrap_or_default()
    }

    /// Replaces its contents; a dry run does not. What cannot be written is not known to others: that is all.
    pub fn write<T: Serialize>(&self, contents: &T) {
        if let (false, Ok(bytes)) = (self.store.is_dry_run(), serde_json::to_vec(contents)) {
            drop(atomic::write_file(&**self.store.disk(), &self.path, &bytes, self.mode));
        }
    }
}

/// An answer, and when it was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Aged<T> {
    /// When.
    pub at: Timestamp,
    /// What was said.
    pub answer: T,
}

/// The last answers to questions, in one file.
pub struct AnswerCache<'a> {
    /// The file.
    pub file: CacheFile<'a>,
    /// Older answers are dropped, in seconds.
    pub kept_s: u64,
}

/// The contents of the file: answers by the questions.
#[derive(Default, Serialize, Deserialize)]
struct Answers {
    answers: BTreeMap<String, Aged<Value>>,
}

impl AnswerCache<'_> {
    /// Returns the last answer to a question.
    pub fn last<T: DeserializeOwned>(&self, question: &str) -> Option<Aged<T>> {
        let Aged { at, answer } = self.file.read::<Answers>().answers.remove(question)?;
        Some(Aged { at, answer: serde_json::from_value(answer).ok()? })
    }

    /// Keeps an answer that was given at this time.
    pub fn keep<T: Serialize>(&self, question: &str, at: Timestamp, answer: T) -> Aged<T> {
        if let Ok(answer) = serde_json::to_value(&answer) {
            let mut kept: Answers = self.file.read();
            kept.answers.retain(|_, old| at.seconds_since(old.at) < self.kept_s);
            kept.answers.insert(question.to_owned(), Aged { at, answer });
            self.file.write(&kept);
        }
        Aged { at, answer }
    }
}
