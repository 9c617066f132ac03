//! The data file by path, and how an installation begins.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use tpu_ops::base::data::Changed;
use tpu_ops::front::import::{FoundUser, Report};

/// What stands at a path of the data file.
#[derive(Serialize, JsonSchema)]
pub struct DataDocument<'a> {
    /// The path as it was typed; null for the whole file.
    pub path: Option<&'a str>,
    /// What stands there; secrets do not leave.
    pub value: Value,
}

/// What has changed in the data file.
#[derive(Serialize, JsonSchema)]
pub struct ChangedDataDocument<'a> {
    /// Place by place.
    pub changed: Vec<ChangedPart<'a>>,
}

impl<'a> From<&'a [Changed]> for ChangedDataDocument<'a> {
    fn from(changed: &'a [Changed]) -> Self {
        let part =
            |Changed { path, old, new }: &'a Changed| ChangedPart { path, old: old.as_ref(), new };
        Self { changed: changed.iter().map(part).collect() }
    }
}

/// A place of the data file that has changed.
#[derive(Serialize, JsonSchema)]
pub struct ChangedPart<'a> {
    /// Where.
    pub path: &'a str,
    /// What was there; null also if nothing was.
    pub old: Option<&'a Value>,
    /// What is there now.
    pub new: &'a Value,
}

/// An installation that has begun.
#[derive(Serialize, JsonSchema)]
pub struct BegunDocument<'a> {
    /// The user who was made known.
    pub user: &'a str,
    /// What was done, in words.
    pub done: &'a [String],
}

/// What was found in an installation of the original.
#[derive(Serialize, JsonSchema)]
pub struct FoundDocument<'a> {
    /// Its data file.
    pub data: String,
    /// Its users.
    pub users: Vec<FoundUserPart<'a>>,
    /// How many targets it names.
    pub targets: usize,
    /// How many aliases of targets it has.
    pub aliases: usize,
    /// Keys that are nobody's; they stay.
    pub unknown_keys: &'a [String],
    /// Whether reading and writing it gives the very same bytes.
    pub same_bytes: bool,
    /// What the original keeps beside it, and what becomes of that.
    pub beside: &'a [String],
    /// What a person should know.
    pub remarks: &'a [String],
    /// What using the file changes.
    pub changes: &'a [String],
    /// What was done, in words.
    pub done: &'a [String],
}

impl<'a> From<(&'a Report, &'a [String])> for FoundDocument<'a> {
    fn from((report, done): (&'a Report, &'a [String])) -> Self {
        Self {
            data: report.data.to_string_lossy().into_owned(),
            users: report.users.iter().map(FoundUserPart::from).collect(),
            targets: report.targets,
            aliases: report.aliases,
            unknown_keys: &report.unknown_keys,
            same_bytes: report.same_bytes,
            beside: &report.beside,
            remarks: &report.remarks,
            changes: &report.changes,
            done,
        }
    }
}

/// A user of an installation of the original.
#[derive(Serialize, JsonSchema)]
pub struct FoundUserPart<'a> {
    /// Name.
    pub name: &'a str,
    /// tmux session.
    pub tmux_name: &'a str,
    /// How many directories.
    pub dirs: usize,
    /// How many jobs by status.
    pub jobs: &'a BTreeMap<String, usize>,
}

impl<'a> From<&'a FoundUser> for FoundUserPart<'a> {
    fn from(FoundUser { name, tmux_name, dirs, jobs }: &'a FoundUser) -> Self {
        Self { name, tmux_name, dirs: *dirs, jobs }
    }
}
