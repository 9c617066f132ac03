//! From the text of a pane to a verdict with its evidence.
//!
//! Pure: no files, no clock, no jobs. What is known about texts is data (`assets/patterns.toml`, laid
//! over by a lab's own file); the order in which evidence decides is the table in [`decide`].
//!
//! ```text
//! bytes -> frames (escapes, redraws, our own words, wraps) -> scan (rules per line) -> decide (the table) -> Verdict
//!                  prefix (workers, dates)      rules, needles           progress
//! ```

#![warn(clippy::indexing_slicing, clippy::string_slice, clippy::wildcard_enum_match_arm)]

mod block;
mod builtin;
mod decide;
mod frames;
mod launch;
pub mod metrics;
mod needles;
mod numerals;
mod prefix;
mod progress;
mod rules;
mod scan;
mod sign;
pub mod stall;
pub mod started_over;
mod timeline;
mod traceback;
mod words;
mod wrap;

use std::sync::OnceLock;

pub use launch::{after_launch, before_end, own_line};
pub use rules::{PatternError, Rule, Scope, Weight};

use frames::Frames;
use rules::RuleFile;
use scan::RuleSet;

use crate::model::exit::Exit;
use crate::model::facts::{Class, Verdict};

/// What is known about one block of text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Input<'a> {
    /// The text, as bytes of a terminal. See [`after_launch`] for where it should begin.
    pub text: &'a [u8],
    /// How the job has ended, if it has.
    pub exit: Option<Exit>,
    /// The state of its target in the control plane's own word, such as `READY` or `PREEMPTED`.
    pub api_state: Option<&'a str>,
    /// Characters at its end that count, however many lines they are. The last 2 000 lines count anyway.
    pub reach: u32,
}

/// What one line says on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineVerdict {
    /// Number of the line, from 1.
    pub n: usize,
    /// Its class; [`Class::None`] if it decides nothing.
    pub class: Class,
    /// The rule that decided.
    pub rule: Option<String>,
}

/// Rules, compiled.
#[derive(Debug)]
pub struct Classifier {
    set: RuleSet,
}

impl Classifier {
    /// The built-in rules. Prepared at the first use, and not before.
    pub fn builtin() -> &'static Self {
        static BUILT: OnceLock<Classifier> = OnceLock::new();
        BUILT.get_or_init(|| Self { set: RuleSet::new(builtin::rules()) })
    }

    /// The built-in rules with a lab's file over them: same ids replace, new ids are added, ids under
    /// `disable` go. A file with mistakes is not used at all; every mistake is returned.
    pub fn with_overlay(text: &str, file_name: &str) -> (Self, Vec<PatternError>) {
        match RuleFile::read(builtin::rules(), text, file_name) {
            Ok(file) => (Self { set: RuleSet::new(file) }, Vec::new()),
            Err(errors) => (Self { set: RuleSet::new(builtin::rules()) }, errors),
        }
    }

    /// What a block of text says about its job.
    pub fn classify(&self, input: &Input<'_>) -> Verdict {
        decide::verdict(&self.set, input)
    }

    /// What each line of a text says on its own, blank ones too.
    pub fn classify_lines(&self, text: &[u8]) -> Vec<LineVerdict> {
        decide::lines(&self.set, &launch::without_ours(Frames::lines_of(text)))
    }

    /// All rules, in the order of their files.
    pub fn rules(&self) -> &[Rule] {
        self.set.rules()
    }
}
