//! `tpu history --since-last`: what is new for a user.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::History;
use crate::cli::print::Output;
use tpu_ops::observe::news;
use tpu_wire::events::NewsDocument;

use super::history;

/// Prints what has happened since the last time, and remembers this one.
pub(in crate::cli) fn since_last(app: &App, args: &History) -> Outcome {
    let user = app.requester()?.only_user(&args.words)?;
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let news = news::since_last(ctx, &user, args.lines)?;
    let mut text = history::lines(app, (&data, &news.events), &app.zone(&data, Some(&user))?);
    if news.events.is_empty() {
        text = format!("Nothing has happened to {user}'s jobs since you last asked.");
    }
    let mut notes = Vec::new();
    if news.more > 0 {
        notes.push(format!(
            "{} older ones are new as well: tpu history {user} -n {}",
            news.more,
            news.more + news.events.len()
        ));
    }
    Ok(Output::new(text, &NewsDocument::from(&news)).notes(notes))
}
