//! `tpu classify`: text through the classifier, as jobs are read.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::Classify;
use crate::cli::print::Output;

/// Classifies a file or standard input.
pub(in crate::cli) fn classify(app: &App, args: &Classify) -> Outcome {
    let _ = (app, args);
    Ok(Output::default())
}
