//! `tpu data get|set|merge`: data.json by path.

use serde_json::Value;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::DataStep;
use crate::cli::print::Output;
use tpu_ops::Error;
use tpu_ops::base::data::{self, Changed};
use tpu_wire::data::{ChangedDataDocument, DataDocument};

use super::board::read;

/// One of them.
pub(in crate::cli) fn run(app: &App, step: &DataStep) -> Outcome {
    let ctx = app.ctx()?;
    match step {
        DataStep::Get { path } => {
            let value = data::get(ctx, path.as_deref())?;
            let text = match &value {
                Value::String(text) => text.clone(),
                other => format!("{other:#}"),
            };
            Ok(Output::new(text, &DataDocument { path: path.as_deref(), value }))
        }
        DataStep::Set { path, value } => {
            // What is no JSON is text, as people type it.
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value.as_str()));
            Ok(told(&data::set(ctx, path, &value)?))
        }
        DataStep::Merge { file } => {
            let value: Value = serde_json::from_slice(&read(file)?).map_err(|e| {
                Error::usage(format!("{} is no JSON: {e}", file.display()))
                    .hint("correct that place")
            })?;
            Ok(told(&data::merge(ctx, &value)?))
        }
    }
}

fn told(changed: &[Changed]) -> Output {
    let mut text = String::new();
    for Changed { path, old, new } in changed {
        let old = old.as_ref().map_or("nothing".to_owned(), short);
        text += &format!("{path}: {old} -> {}\n", short(new));
    }
    if changed.is_empty() {
        "Nothing is different.".clone_into(&mut text);
    }
    Output::new(text, &ChangedDataDocument::from(changed))
}

/// A value on one line that a person reads at a glance.
fn short(value: &Value) -> String {
    tpu_core::text::cut(&value.to_string(), 60).into_owned()
}
