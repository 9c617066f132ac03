//! Text through the classifier, on its own: no job, no tmux.

pub use tpu_core::classify::LineVerdict;
use tpu_core::classify::{Classifier, Input, PatternError, before_end};
use tpu_core::model::exit::Exit;
use tpu_core::model::facts::Verdict;
use tpu_core::model::view::JobView;

use crate::{Ctx, Error};

/// What is known about a text beside the text.
#[derive(Clone, Debug, Default)]
pub struct Circumstances {
    /// How the job has ended, if it has.
    pub exit: Option<Exit>,
    /// State of its target, in the control plane's own word.
    pub api_state: Option<String>,
}

/// The verdict on a block.
pub fn block(ctx: &Ctx, text: &[u8], known: &Circumstances) -> Verdict {
    ctx.classifier().classify(&Input {
        text,
        exit: known.exit,
        api_state: known.api_state.as_deref(),
        ..Input::default()
    })
}

/// What the last lines of a job's output say by themselves.
pub fn tail(ctx: &Ctx, view: &JobView) -> Verdict {
    let (text, id) = (view.tail.as_bytes(), view.id.to_string());
    let text = if view.exit.is_some() { before_end(text, &id) } else { text };
    ctx.classifier().classify(&Input { text, ..Input::default() })
}

/// The verdict on each line on its own.
pub fn lines(ctx: &Ctx, text: &[u8]) -> Vec<LineVerdict> {
    ctx.classifier().classify_lines(text)
}

/// Checks a pattern file; the number of rules that then hold.
pub fn check_patterns(text: &str, file: &str) -> Result<usize, Error> {
    let (classifier, errors) = Classifier::with_overlay(text, file);
    if errors.is_empty() {
        return Ok(classifier.rules().len());
    }
    let messages: Vec<String> = errors.iter().map(PatternError::to_string).collect();
    Err(Error::usage(messages.join("\n"))
        .hint("until they are corrected, only the built-in patterns are used"))
}
