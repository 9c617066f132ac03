//! What `doctor` finds and does.

use tpu_ops::front::doctor::{Finding, Severity};

use super::document::documents;
use super::words::Word;

documents! {
    /// What was looked at, and how it is.
    pub struct FindingsDocument<'a> {
        /// Each thing.
        findings: Vec<FindingPart<'a>>,
        /// What was mended, in words.
        fixed: &'a [String],
    }

    /// One thing that was looked at.
    pub struct FindingPart<'a> from finding: &'a Finding {
        /// How bad it is.
        severity: Word<Severity>,
        /// What is so.
        what: &'a str,
        /// What to do; null if nothing is to be done.
        remedy: Option<&'a str>,
    }

    /// A backup that is the data file again.
    pub struct RestoredDocument {
        /// Its path.
        restored: String,
    }

    /// Whether a lock that was asked about is free.
    pub struct LockDocument {
        /// Whether it is.
        free: bool,
    }
}
