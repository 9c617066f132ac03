//! Text through the classifier, on its own: no job, no tmux.

use serde_json::{Value, json};

use crate::classify::report::{BlockReport, LineReport};
use crate::classify::{Classifier, Input, PatternError, before_end};
use crate::model::exit::Exit;
use crate::model::facts::Verdict;
use crate::model::view::JobView;

use super::{Ctx, Error};

/// What is known about a text beside the text.
#[derive(Clone, Debug, Default)]
pub struct Circumstances {
    /// How the job has ended, if it has.
    pub exit: Option<Exit>,
    /// State of its target, in the control plane's own word.
    pub api_state: Option<String>,
}

/// The verdict on a block, typed and as scripts read it.
pub fn block(ctx: &Ctx, text: &[u8], known: &Circumstances) -> Result<(Verdict, Value), Error> {
    let verdict = ctx.classifier().classify(&Input {
        text,
        exit: known.exit,
        api_state: known.api_state.as_deref(),
        ..Input::default()
    });
    let report = serde_json::to_value(BlockReport::from(&verdict))
        .map_err(|e| Error::failed(format!("cannot write the verdict as JSON: {e}")))?;
    Ok((verdict, report))
}

/// What the last lines of a job's output say by themselves.
pub fn tail(ctx: &Ctx, view: &JobView) -> Verdict {
    let (text, id) = (view.tail.as_bytes(), view.id.to_string());
    let text = if view.exit.is_some() { before_end(text, &id) } else { text };
    ctx.classifier().classify(&Input { text, ..Input::default() })
}

/// One line of a text: its number, class, rule, and all of that as scripts read it.
#[derive(Clone, Debug)]
pub struct Line {
    /// From 1.
    pub n: usize,
    /// The class by its word.
    pub class: &'static str,
    /// The rule that decided.
    pub rule: Option<String>,
    /// The same as JSON.
    pub json: Value,
}

/// The verdict on each line on its own.
pub fn lines(ctx: &Ctx, text: &[u8]) -> Vec<Line> {
    let verdicts = ctx.classifier().classify_lines(text);
    let lines = verdicts.into_iter().map(|line| Line {
        json: json!(LineReport::from(&line)),
        n: line.n,
        class: line.class.as_str(),
        rule: line.rule,
    });
    lines.collect()
}

/// Checks a pattern file; the number of rules that then hold.
pub fn check_patterns(text: &str, file: &str) -> Result<usize, Error> {
    let (classifier, errors) = Classifier::with_overlay(text, file);
    if errors.is_empty() {
        return Ok(classifier.rules().len());
    }
    let messages: Vec<String> = errors.iter().map(PatternError::to_string).collect();
    Err(Error::usage(messages.join("\n"))
        .hint("until they are mended, only the built-in patterns are used"))
}
