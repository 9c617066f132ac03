//! JobMan's files as ours: a config of its second or third version becomes one job, word for word in the command.
//!
//! ```text
//! text ─ yaml ─ interpolated: ${a.b} filled in
//!      ─ config: each key of JobMan's has one place in ours, or a note that says why it has none
//!      ─ setup: its modules, in the order in which JobMan sets them up
//!      → one document of ours, read and checked as if it had been typed
//! tasks.yaml ─ tasks: one job of ours for each, in an order in which what has to end before stands before
//! ```
//! Source of the keys: JobMan's README of version 2 and the schema of version 3, as they were published.

mod block;
mod config;
mod interpolated;
mod parts;
mod setup;
mod tasks;

use super::BadFile;
use super::converted::{ConversionNote, Converted};
use super::yaml::{self, Yaml, YamlValue};

pub use tasks::{JobmanTask, Tasks, is_tasks, tasks};

/// Whether a document is a config of JobMan's: it has blocks that stand in no file of ours.
pub fn is_config(document: &Yaml) -> bool {
    let is_map =
        |key: &str| document.get(key).is_some_and(|value| matches!(value.value, YamlValue::Map(_)));
    let blocks = ["job", "gcsfuse", "ssh", "docker", "conda", "venv", "command"];
    document.get("target").is_none()
        && document.get("jobs").is_none()
        && (is_map("tpu") || blocks.into_iter().any(is_map))
}

/// Reads a config.
pub fn read(text: &str) -> Result<Converted, BadFile> {
    let document = yaml::read(text)?;
    if is_tasks(&document) {
        let hint = "submit it as it is: tpu submit tasks.yaml";
        let what = "this is a file of tasks, of which each becomes a job";
        return Err(
            BadFile::new(document.line, "accelerators", what, hint).at_column(document.column)
        );
    }
    convert(&document)
}

/// The same of a document that was read.
pub fn convert(document: &Yaml) -> Result<Converted, BadFile> {
    config::converted(&interpolated::filled(document)?)
}
