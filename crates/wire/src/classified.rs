//! What the classifier says of a text.

use schemars::JsonSchema;
use serde::Serialize;

use tpu_core::model::facts::{Class, Evidence, Phase, Source, Verdict};
use tpu_ops::observe::classify::LineVerdict;

use super::jobs::ProgressPart;
use super::words::Word;

/// The verdict on a text.
#[derive(Serialize, JsonSchema)]
pub struct VerdictDocument<'a> {
    /// What the text says.
    pub class: Word<Class>,
    /// What the job seems to be doing.
    pub phase: Option<Word<Phase>>,
    /// The newest numbers.
    pub progress: ProgressPart,
    /// What the verdict rests on; null if nothing decides.
    pub evidence: Option<TextEvidencePart<'a>>,
}

impl<'a> From<&'a Verdict> for VerdictDocument<'a> {
    fn from(verdict: &'a Verdict) -> Self {
        Self {
            class: Word(verdict.class),
            phase: verdict.phase.map(Word),
            progress: ProgressPart::from(&verdict.progress),
            evidence: verdict.evidence.as_ref().map(TextEvidencePart::from),
        }
    }
}

/// What a verdict rests on.
#[derive(Serialize, JsonSchema)]
pub struct TextEvidencePart<'a> {
    /// The kind of fact.
    pub source: Word<Source>,
    /// The rule's id, or the name of the fact.
    pub rule: &'a str,
    /// The text that matched, or the fact in words.
    pub line: &'a str,
    /// Its number, counted from the end: the last line is 1.
    pub line_no: Option<usize>,
    /// The worker whose line it was.
    pub worker: Option<&'a str>,
}

impl<'a> From<&'a Evidence> for TextEvidencePart<'a> {
    fn from(evidence: &'a Evidence) -> Self {
        Self {
            source: Word(evidence.source),
            rule: &evidence.rule,
            line: &evidence.line,
            line_no: evidence.line_no,
            worker: evidence.worker.as_deref(),
        }
    }
}

/// The verdict on one line, as `classify --lines` prints it: a document on each line, without a version.
#[derive(Serialize, JsonSchema)]
pub struct LinePart<'a> {
    /// Number of the line, from 1.
    pub n: usize,
    /// What the line says.
    pub class: Word<Class>,
    /// The rule that decided.
    pub rule: Option<&'a str>,
}

impl<'a> From<&'a LineVerdict> for LinePart<'a> {
    fn from(line: &'a LineVerdict) -> Self {
        Self { n: line.n, class: Word(line.class), rule: line.rule.as_deref() }
    }
}

/// How many rules a pattern file gives.
#[derive(Serialize, JsonSchema)]
pub struct PatternsDocument {
    /// Together with the built-in ones.
    pub rules: usize,
}
