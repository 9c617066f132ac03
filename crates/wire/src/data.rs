//! The data file by path, and how an installation begins.

use std::collections::BTreeMap;

use serde_json::Value;

use tpu_ops::base::data::Changed;
use tpu_ops::front::import::{FoundUser, Report};

use super::document::{documents, part};

documents! {
    /// What stands at a path of the data file.
    pub struct DataDocument<'a> {
        /// The path as it was typed; null for the whole file.
        path: Option<&'a str>,
        /// What stands there; secrets do not leave.
        value: Value,
    }

    /// What has changed in the data file.
    pub struct ChangedDataDocument<'a> from changed: &'a [Changed] {
        /// Place by place.
        changed: Vec<ChangedPart<'a>> = part(changed),
    }

    /// A place of the data file that has changed.
    pub struct ChangedPart<'a> from place: &'a Changed {
        /// Where.
        path: &'a str,
        /// What was there; null also if nothing was.
        old: Option<&'a Value>,
        /// What is there now.
        new: &'a Value,
    }

    /// An installation that has begun.
    pub struct BegunDocument<'a> {
        /// The user who was made known.
        user: &'a str,
        /// What was done, in words.
        done: &'a [String],
    }

    /// What was found in an installation of the original.
    pub struct FoundDocument<'a> from (report, done): (&'a Report, &'a [String]) {
        /// Its data file.
        data: String = report.data.to_string_lossy().into_owned(),
        /// Its users.
        users: Vec<FoundUserPart<'a>>,
        /// How many targets it names.
        targets: usize,
        /// How many aliases of targets it has.
        aliases: usize,
        /// Keys that are nobody's; they stay.
        unknown_keys: &'a [String],
        /// Whether reading and writing it gives the very same bytes.
        same_bytes: bool,
        /// What the original keeps beside it, and what becomes of that.
        beside: &'a [String],
        /// What a person should know.
        remarks: &'a [String],
        /// What using the file changes.
        changes: &'a [String],
        /// What was done, in words.
        done: &'a [String] = done,
    }

    /// A user of an installation of the original.
    pub struct FoundUserPart<'a> from user: &'a FoundUser {
        /// Name.
        name: &'a str,
        /// tmux session.
        tmux_name: &'a str,
        /// How many directories.
        dirs: usize,
        /// How many jobs by status.
        jobs: &'a BTreeMap<String, usize>,
    }
}
