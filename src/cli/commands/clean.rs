//! `tpu clean` and its parts: `clear-*`, `-czw`, `-czj`.

use crate::cli::Outcome;
use crate::cli::app::{App, Undone};
use crate::cli::args::{Clean, Clear, CloseWindows};
use crate::cli::print::Output;
use tpu_core::model::ids::{JobId, UserName};
use tpu_ops::act::orphan_windows;
use tpu_ops::front::clean::{self, Cleaned, Ends, Extent};
use tpu_ops::observe::orphans::{self, Closed, Left, Unmarked, Which};
use tpu_wire::cleaned::{CleanedDocument, WouldCleanDocument};

/// `clean`.
pub(in crate::cli) fn clean(app: &App, args: &Clean) -> Outcome {
    let (user, jobs) = app.requester()?.user_and_jobs(&args.words)?;
    let extent = Extent { ends: Ends::All, ancestors_too: args.re, force: args.force };
    let ctx = app.ctx()?;
    if args.with_results {
        let cleaning = clean::with_results(ctx, &user, &jobs, extent)?;
        if app.global.dry_run {
            return Ok(would(&user, &cleaning.would));
        }
        if cleaning.would.whole.copies > 0 {
            let what = cleaning.would.whole_in_words();
            let hint = "`tpu clean` without --with-results keeps what jobs wrote; `-y` answers yes";
            app.agree(&format!("Remove {what}?"), Undone { what: "nothing was done", hint })?;
        }
        return Ok(told(app, &cleaning.run(ctx)?));
    }
    if !jobs.is_empty() {
        return if app.global.dry_run {
            Ok(would(&user, &clean::dry_run_clean_some(ctx, &user, &jobs, extent)?))
        } else {
            let mut cleaned = clean::clean_some(ctx, &user, &jobs, extent)?;
            cleaned.remove_old_code(ctx);
            Ok(told(app, &cleaned))
        };
    }
    if app.global.dry_run {
        return Ok(would(&user, &clean::dry_run_clean(ctx, &user, extent)?));
    }
    Ok(told(app, &clean::clean(ctx, &user, extent)?))
}

/// `clear-finished`, `clear-error`, `clear-all`.
pub(in crate::cli) fn clear(app: &App, args: &Clear, ends: Ends) -> Outcome {
    let user = app.requester()?.only_user(&args.words)?;
    let extent = Extent { force: args.force, ..Extent::of(ends) };
    if app.global.dry_run {
        return Ok(would(&user, &clean::dry_run_clear(app.ctx()?, &user, extent)?));
    }
    Ok(told(app, &clean::clear(app.ctx()?, &user, extent)?))
}

/// `-czw`.
pub(in crate::cli) fn windows(app: &App, args: &CloseWindows) -> Outcome {
    let user = app.requester()?.only_user(&args.words)?;
    let ctx = app.ctx()?;
    let which = if args.force { Which::All } else { Which::Marked };
    if app.global.dry_run {
        let Closed { closed, left, .. } = orphans::dry_run(ctx, &user, which)?;
        return Ok(would(&user, &Cleaned { closed, left, ..Cleaned::default() }));
    }
    let mut agreed = Unmarked::default();
    if args.force {
        agreed = orphans::dry_run(ctx, &user, which)?.unmarked;
        let meant: Vec<String> = agreed.windows.iter().map(Left::in_words).collect();
        if !meant.is_empty() {
            let hint = "`tpu -czw` without --force closes only what tpu has marked";
            let question = format!("Close {}, and what runs there?", meant.join(", "));
            app.agree(&question, Undone { what: "nothing was closed", hint })?;
        }
    }
    let Closed { closed, left, .. } = orphan_windows::close(ctx, &user, which, &agreed)?;
    Ok(told(app, &Cleaned { closed, left, ..Cleaned::default() }))
}

/// `-czj`.
pub(in crate::cli) fn jobs(app: &App, args: &Clear) -> Outcome {
    let user = app.requester()?.only_user(&args.words)?;
    let ctx = app.ctx()?;
    if app.global.dry_run {
        let chosen = clean::windowless(ctx, &user, args.force)?;
        let ids = chosen.windows.into_iter().map(|window| JobId::new(user.clone(), window));
        let archived = ids.collect();
        return Ok(would(&user, &Cleaned { archived, kept: chosen.kept, ..Cleaned::default() }));
    }
    Ok(told(app, &clean::archive_windowless(ctx, &user, args.force)?))
}

/// What a dry run says.
fn would(user: &UserName, cleaned: &Cleaned) -> Output {
    Output::new(cleaned.would_in_words(user), &WouldCleanDocument::from((user, cleaned)))
}

/// What was done.
fn told(app: &App, cleaned: &Cleaned) -> Output {
    let warnings = app.ctx().map(|ctx| ctx.take_warnings()).unwrap_or_default();
    let text = format!("{}\n{}", cleaned.summary(), lines(&cleaned.remarks()));
    Output::new(text, &CleanedDocument::from(cleaned)).notes(warnings)
}

fn lines(remarks: &[String]) -> String {
    remarks.iter().flat_map(|remark| [remark.as_str(), "\n"]).collect()
}
