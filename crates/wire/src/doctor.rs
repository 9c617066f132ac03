//! What `doctor` finds and does.

use schemars::JsonSchema;
use serde::Serialize;

use tpu_ops::front::doctor::{Finding, Severity};

use super::words::Word;

/// What was looked at, and how it is.
#[derive(Serialize, JsonSchema)]
pub struct FindingsDocument<'a> {
    /// Each thing.
    pub findings: Vec<FindingPart<'a>>,
    /// What was mended, in words.
    pub fixed: &'a [String],
}

/// One thing that was looked at.
#[derive(Serialize, JsonSchema)]
pub struct FindingPart<'a> {
    /// How bad it is.
    pub severity: Word<Severity>,
    /// What is so.
    pub what: &'a str,
    /// What to do; null if nothing is to be done.
    pub remedy: Option<&'a str>,
}

impl<'a> From<&'a Finding> for FindingPart<'a> {
    fn from(finding: &'a Finding) -> Self {
        Self {
            severity: Word(finding.severity),
            what: &finding.what,
            remedy: finding.remedy.as_deref(),
        }
    }
}

/// A backup that is the data file again.
#[derive(Serialize, JsonSchema)]
pub struct RestoredDocument {
    /// Its path.
    pub restored: String,
}

/// Whether a lock that was asked about is free.
#[derive(Serialize, JsonSchema)]
pub struct LockDocument {
    /// Whether it is.
    pub free: bool,
}
