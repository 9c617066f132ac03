//! `tpu history --since-last`: what is new for a user.

use serde_json::json;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::History;
use crate::cli::print::Output;
use crate::cli::resolve;
use crate::model::time::{Timestamp, zone_of};
use crate::ops::{Error, news};

use super::history;

/// Prints what has happened since the last time, and remembers this one.
pub(in crate::cli) fn since_last(app: &App, args: &History) -> Outcome {
    let user = resolve::only_user(app, &args.words)?;
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let settings = ctx.settings(data.user(&user))?;
    let zone = zone_of(&settings.time_zone).ok_or_else(|| {
        Error::usage(format!("no time zone '{}'", settings.time_zone))
            .hint("us, cn, or a name such as Europe/Berlin: tpu set-settings time_zone us")
    })?;
    let news = news::since_last(ctx, &user, args.lines)?;
    let mut text = history::lines(&news.events, &zone);
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
    let json = json!({
        "events": news.events, "more": news.more, "since": news.since.map(Timestamp::to_rfc3339),
    });
    Ok(Output::new(text, json).notes(notes))
}
