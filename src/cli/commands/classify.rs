//! `tpu classify`: text through the classifier, as jobs are read.

use std::path::Path;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::Classify;
use crate::cli::console;
use crate::cli::print::{Output, block};
use tpu_core::model::exit::Exit;
use tpu_core::text::counted;
use tpu_ops::observe::classify::{self, Circumstances};
use tpu_ops::{Ctx, Error};
use tpu_wire::classified::{LinePart, PatternsDocument, VerdictDocument};

/// Classifies a file or standard input, or checks a pattern file.
pub(in crate::cli) fn classify(app: &App, args: &Classify) -> Outcome {
    if args.check_patterns {
        return check_patterns(app, args.file.as_deref());
    }
    let text = read(args.file.as_deref())?;
    let ctx = app.ctx()?;
    if args.lines {
        return Ok(lines(app, ctx, &text));
    }
    let whose = if args.script { Exit::Script } else { Exit::Program };
    let known =
        Circumstances { exit: args.exit_code.map(whose), api_state: args.api_state.clone() };
    let verdict = classify::block(ctx, &text, &known);
    let mut human = format!("{}\n", verdict.class.as_str());
    human += &verdict.phase.map_or(String::new(), |phase| format!("phase: {}\n", phase.as_str()));
    let progress = verdict.progress.in_words();
    if !progress.is_empty() {
        human += &format!("progress: {}\n", progress.join(" · "));
    }
    human += &verdict
        .evidence
        .as_ref()
        .map_or(String::new(), |evidence| format!("why: {}\n", block::evidence(evidence)));
    Ok(Output::new(human, &VerdictDocument::from(&verdict)))
}

/// One verdict for each line; with `--json` one object for each line.
fn lines(app: &App, ctx: &Ctx, text: &[u8]) -> Output {
    let mut printed = String::new();
    for line in classify::lines(ctx, text) {
        printed += &if app.global.json {
            serde_json::to_string(&LinePart::from(&line)).unwrap_or_default()
        } else {
            format!(
                "{:>6}  {:<17} {}",
                line.n,
                line.class.as_str(),
                line.rule.as_deref().unwrap_or("")
            )
        };
        printed.push('\n');
    }
    Output::lines(printed)
}

fn read(file: Option<&Path>) -> Result<Vec<u8>, Error> {
    let read = match file {
        Some(path) if path != Path::new("-") => std::fs::read(path),
        _ => console::read_all(),
    };
    read.map_err(|e| {
        let name = file.map_or("standard input".to_owned(), |path| path.display().to_string());
        Error::not_found(format!("cannot read {name}: {e}")).hint("as in: tpu classify output.log")
    })
}

/// Checks a pattern file, by default the lab's own.
fn check_patterns(app: &App, file: Option<&Path>) -> Outcome {
    let own = app.config_dir.as_ref().map(|dir| dir.join("patterns.toml"));
    let Some(path) = file.map(Path::to_owned).or(own) else {
        return Err(Error::usage("there is no home directory, so which pattern file?")
            .hint("as in: tpu classify --check-patterns FILE"));
    };
    let text = String::from_utf8(read(Some(&path))?)
        .map_err(|_| Error::usage(format!("{} is no UTF-8", path.display())))?;
    let rules = classify::check_patterns(&text, &path.display().to_string())?;
    Ok(Output::new(
        format!("{}: good; {} in all.", path.display(), counted(rules, "rule")),
        &PatternsDocument { rules },
    ))
}
