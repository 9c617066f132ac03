//! The JSON of `tpu classify`, field by field as scripts read it.

use serde::Serialize;

use super::LineVerdict;
use crate::model::facts::{Phase, Progress, Source, Verdict};

/// The verdict on a block.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockReport {
    /// Version of this format.
    pub schema: u32,
    /// The class by its word.
    pub class: &'static str,
    /// What the job seems to be doing.
    pub phase: Option<Phase>,
    /// The newest numbers; a number that was not printed is `null`.
    pub progress: Progress,
    /// What the class rests on; `null` if nothing decides.
    pub evidence: Option<EvidenceReport>,
}

/// What a verdict rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvidenceReport {
    /// Text, exit code or control plane.
    pub source: Source,
    /// The rule's id or the fact's name.
    pub rule: String,
    /// The text that matched, or the fact in words.
    pub line: String,
    /// Distance from the end of the text; the last line is 1.
    pub line_no: Option<usize>,
    /// The worker whose line it was.
    pub worker: Option<String>,
}

/// The verdict on one line of `--lines`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LineReport<'a> {
    /// Number of the line, from 1.
    pub n: usize,
    /// The class by its word.
    pub class: &'static str,
    /// The rule that decided.
    pub rule: Option<&'a str>,
}

impl From<&Verdict> for BlockReport {
    fn from(verdict: &Verdict) -> Self {
        let evidence = verdict.evidence.as_ref().map(|evidence| EvidenceReport {
            source: evidence.source,
            rule: evidence.rule.clone(),
            line: evidence.line.clone(),
            line_no: evidence.line_no,
            worker: evidence.worker.clone(),
        });
        Self {
            schema: 1,
            class: verdict.class.as_str(),
            phase: verdict.phase,
            progress: verdict.progress.clone(),
            evidence,
        }
    }
}

impl<'a> From<&'a LineVerdict> for LineReport<'a> {
    fn from(line: &'a LineVerdict) -> Self {
        Self { n: line.n, class: line.class.as_str(), rule: line.rule.as_deref() }
    }
}
