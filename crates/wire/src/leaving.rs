//! Leaving: `uninstall` and `export`.

use tpu_ops::front::export::ExportReport;
use tpu_ops::front::uninstall::{Leftover, LeftoverKind, Silent};

use super::document::documents;
use super::words::{Members, Word};

documents! {
    /// What tpu has put outside its data, and what became of it.
    pub struct UninstallDocument<'a> {
        /// Whether it was only listed.
        listed_only: bool,
        /// What is removed; where it was only listed, what would be.
        removed: Vec<LeftoverPart<'a>>,
        /// What could not be removed.
        failed: Vec<FailedLeftoverPart<'a>>,
        /// Who did not answer. The same command again finishes there.
        silent: Vec<SilentPart<'a>>,
        /// What stays, a sentence each.
        stays: &'a [String],
    }

    /// What an export has.
    pub struct ExportDocument<'a> from report: &'a ExportReport {
        /// Its directory.
        dir: String = report.dir.display().to_string(),
        /// The rows of each table.
        rows: Members<usize> = report.rows.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
        /// Attempts whose output was written.
        logs: usize,
        /// Copies of code that were written.
        code: usize,
        /// What could not be read, and why.
        missing: Vec<&'a str> = report.missing.iter().map(|error| error.message.as_str()).collect(),
    }

    /// Something that is removed.
    pub struct LeftoverPart<'a> from item: &'a Leftover {
        /// What it is.
        kind: Word<LeftoverKind>,
        /// Where it is: a file, a process, a target, a cluster.
        place: &'a str,
        /// What exactly.
        what: &'a str,
    }

    /// Something that could not be removed.
    pub struct FailedLeftoverPart<'a> {
        /// What it is.
        kind: Word<LeftoverKind>,
        /// Where it is.
        place: &'a str,
        /// Why.
        why: &'a str,
    }

    /// A target or a cluster that did not answer.
    pub struct SilentPart<'a> from silent: &'a Silent {
        /// Its name.
        place: &'a str,
        /// Why.
        why: &'a str,
    }
}
