//! What the classifier says of a text.

use tpu_core::model::facts::{Class, Evidence, Phase, Source, Verdict};
use tpu_ops::observe::classify::LineVerdict;

use super::document::documents;
use super::jobs::ProgressPart;
use super::words::Word;

documents! {
    /// The verdict on a text.
    pub struct VerdictDocument<'a> from verdict: &'a Verdict {
        /// What the text says.
        class: Word<Class>,
        /// What the job seems to be doing.
        phase: Option<Word<Phase>>,
        /// The newest numbers.
        progress: ProgressPart,
        /// What the verdict rests on; null if nothing decides.
        evidence: Option<TextEvidencePart<'a>>,
    }

    /// What a verdict rests on.
    pub struct TextEvidencePart<'a> from evidence: &'a Evidence {
        /// The kind of fact.
        source: Word<Source>,
        /// The rule's id, or the name of the fact.
        rule: &'a str,
        /// The text that matched, or the fact in words.
        line: &'a str,
        /// Its number, counted from the end: the last line is 1.
        line_no: Option<usize>,
        /// The worker whose line it was.
        worker: Option<&'a str>,
    }

    /// The verdict on one line, as `classify --lines` prints it: a document on each line, without a version.
    pub struct LinePart<'a> from line: &'a LineVerdict {
        /// Number of the line, from 1.
        n: usize,
        /// What the line says.
        class: Word<Class>,
        /// The rule that decided.
        rule: Option<&'a str>,
    }

    /// How many rules a pattern file gives.
    pub struct PatternsDocument {
        /// Together with the built-in ones.
        rules: usize,
    }
}
