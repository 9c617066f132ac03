//! The files of other tools as values: what they say, line by line, before anybody decides what becomes of it.
//!
//! **Never knows where a file lies or what is registered:** its text comes in as an argument, and what is made of it
//! is the business of `ops`.

pub mod cloudmesh;
pub mod converted;
pub mod jobman;
pub mod modules;
pub mod own;
pub mod sbatch;
pub mod yaml;

/// What is wrong with a file, where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFile {
    /// The line, counted from 1; `None` where the file as a whole is meant.
    pub line: Option<u64>,
    /// The column, in characters, counted from 1, where it is known.
    pub column: Option<u64>,
    /// The field, as in `cloudmesh.jobset.hosts.juliet.cpus`; empty where none is meant.
    pub field: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub hint: String,
}

impl BadFile {
    /// A problem with a field.
    pub fn new(
        line: u64,
        field: impl Into<String>,
        what: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let (field, what, hint) = (field.into(), what.into(), hint.into());
        Self { line: Some(line), column: None, field, what, hint }
    }

    /// The same with something else to do about it.
    #[must_use]
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    /// The same, at a column of its line.
    #[must_use]
    pub(crate) fn at_column(self, column: u64) -> Self {
        Self { column: Some(column), ..self }
    }

    /// The place behind the name of the file, and what is wrong: `:12: hosts.a.cpus: …`, with a column `:12:9: …`.
    pub fn in_words(&self) -> String {
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        let field = if self.field.is_empty() { String::new() } else { format!(" {}:", self.field) };
        let column = self.column.map(|column| format!(":{column}")).unwrap_or_default();
        format!("{line}{column}:{field} {}", self.what)
    }
}
