//! `tpu clean` and its parts: `clear-*`, `-czw`, `-czj`.

use serde_json::json;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::Clean;
use crate::cli::print::Output;
use crate::cli::resolve;
use crate::model::ids::UserName;
use crate::ops::clean::{self, Cleaned, Ends};

/// `clean`.
pub(in crate::cli) fn clean(app: &App, args: &Clean) -> Outcome {
    let user = resolve::only_user(app, &args.words)?;
    let ctx = app.ctx()?;
    if app.global.dry_run {
        return would(app, &user, Ends::All, args.re);
    }
    Ok(told(app, &clean::clean(ctx, &user, args.re)?))
}

/// What a dry run says.
fn would(app: &App, user: &UserName, ends: Ends, ancestors_too: bool) -> Outcome {
    let windows = clean::choose(app.ctx()?, user, ends, ancestors_too)?;
    let names: Vec<String> = windows.iter().map(ToString::to_string).collect();
    let text = if names.is_empty() {
        "Would archive nothing.".to_owned()
    } else {
        format!("Would archive windows {} of {user}.", names.join(", "))
    };
    Ok(Output::new(text, json!({ "would": { "user": user, "windows": windows } })))
}

/// `clear-finished`, `clear-error`, `clear-all`.
pub(in crate::cli) fn clear(app: &App, words: &[String], ends: Ends) -> Outcome {
    let user = resolve::only_user(app, words)?;
    if app.global.dry_run {
        return would(app, &user, ends, false);
    }
    Ok(told(app, &clean::clear(app.ctx()?, &user, ends, false)?))
}

/// `-czw`.
pub(in crate::cli) fn windows(app: &App, words: &[String]) -> Outcome {
    let user = resolve::only_user(app, words)?;
    Ok(told(app, &clean::close_orphans(app.ctx()?, &user)?))
}

/// `-czj`.
pub(in crate::cli) fn jobs(app: &App, words: &[String]) -> Outcome {
    let user = resolve::only_user(app, words)?;
    Ok(told(app, &clean::archive_windowless(app.ctx()?, &user)?))
}

fn told(app: &App, cleaned: &Cleaned) -> Output {
    let warnings = app.ctx().map(crate::ops::Ctx::take_warnings).unwrap_or_default();
    let json = json!({ "archived": cleaned.archived, "closed": cleaned.closed });
    Output::new(cleaned.summary(), json).notes(warnings)
}
