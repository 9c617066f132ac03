//! What several commands say and refuse of what waits, and of several jobs.

use crate::cli::Outcome;
use crate::cli::app::{App, UNDONE};
use crate::cli::print::Output;
use tpu_core::model::entry::Priority;
use tpu_core::model::ids::JobId;
use tpu_core::text::escape;
use tpu_ops::base::called::WaitingCalled;
use tpu_ops::base::known_as;
use tpu_ops::waiting::queue::field::Avoided;
use tpu_ops::waiting::queue::pass;
use tpu_ops::waiting::queue::{self, places};
use tpu_ops::{Ctx, Error};

/// Reads how urgent something is.
pub(super) fn priority(text: &str) -> Result<Priority, Error> {
    Priority::parse(text).ok_or_else(|| {
        Error::usage(format!("priority {text}: no number from 0 to 100"))
            .hint("higher ones come first; without a word it is 50")
    })
}

/// That something was taken out.
pub(super) fn never_began(called: &WaitingCalled) -> String {
    format!("{called} {} no more, and never began.", called.waits())
}

/// Refuses to wait where nothing of what waits could ever begin as things are set up.
pub(super) fn refuse_hopeless(ctx: &Ctx, waiting: usize) -> Result<(), Error> {
    let data = ctx.data()?;
    let hopeless = places::hopeless(ctx, &data, &pass::Mine::All.meant(ctx));
    if hopeless.len() < waiting {
        return Ok(());
    }
    let named = hopeless.iter().take(MOST_NAMED);
    let mut lines: Vec<String> =
        named.map(|(id, why)| format!("{id} can never start as things are: {why}")).collect();
    let more = hopeless.len().saturating_sub(lines.len());
    lines.extend((more > 0).then(|| format!("{more} more: tpu queue")));
    let hint = hopeless.into_iter().find_map(|(_, why)| why.hint).unwrap_or_default();
    Err(Error::refused(lines.join("\n"))
        .hint(format!("{hint}\nto take what waits out of the queue: tpu dequeue NUMBER")))
}

/// So many of those that wait are named.
const MOST_NAMED: usize = 5;

/// What waits, and why, as far as it is for `queue run` to start it.
pub(super) fn still_waiting(ctx: &Ctx) -> Vec<String> {
    let Ok(data) = ctx.data() else { return Vec::new() };
    let is_mine = pass::Mine::All.meant(ctx);
    let Ok(mut standings) = queue::standings(ctx, &data, &Avoided::new()) else {
        return Vec::new();
    };
    standings.retain(|one| data.queues().entries.get(one.entry).is_some_and(&is_mine));
    let rest = standings.split_off(standings.len().min(MOST_NAMED));
    places::tell(ctx, &data, &mut standings, &is_mine);
    let mut lines = Vec::new();
    for standing in &standings {
        let Some(entry) = data.queues().entries.get(standing.entry) else { continue };
        let made = if entry.applies { ", and does not run: tpu daemon start" } else { "" };
        lines.push(format!("{} waits: {}{made}", entry.id(), escape(&queue::why(ctx, standing))));
    }
    if !rest.is_empty() {
        lines.push(format!("{} more wait: tpu queue", rest.len()));
    }
    lines
}

/// Asks before jobs of somebody else are changed, as `kill` asks before it ends them.
pub(super) fn agree_to_change(app: &App, ids: &[JobId]) -> Result<(), Error> {
    if !app.asks() {
        return Ok(());
    }
    let mut others = Vec::new();
    for id in ids {
        if !app.is_own(&id.user)? {
            others.push(id.to_string());
        }
    }
    if others.is_empty() {
        return Ok(());
    }
    app.agree(&format!("Change {}, of somebody else?", others.join(", ")), UNDONE)
}

/// Whether a person is asked before jobs end or places in the queue are given up: if they are several, a group,
/// or somebody else's.
pub(super) fn needs_question(
    app: &App,
    jobs: &[JobId],
    waiting: &[WaitingCalled],
) -> Result<bool, Error> {
    if !app.asks() {
        return Ok(false);
    }
    let data = app.ctx()?.data()?;
    let is_group = |called: &WaitingCalled| match &called.members {
        Some(members) => members.len() > 1,
        None => data.queues().entry(&called.id).is_some_and(|entry| entry.spec.array.is_some()),
    };
    if jobs.len() + waiting.len() != 1 || waiting.iter().any(is_group) {
        return Ok(true);
    }
    let mut all = jobs.iter().chain(waiting.iter().map(|called| &called.id));
    all.try_fold(false, |asks, id| Ok(asks || !app.is_own(&id.user)?))
}

/// What waits, with what people know it by; of very many the first ones.
pub(super) fn in_words(ctx: &Ctx, waiting: &[WaitingCalled]) -> Result<String, Error> {
    const MOST: usize = 20;
    let (first, more) = waiting.split_at(waiting.len().min(MOST));
    let shown = known_as::waiting_in_words(&*ctx.data()?, first).join(", ");
    Ok(match more.len() {
        0 => shown,
        more => format!("{shown} and {more} more"),
    })
}

/// The outcome where some went well, all, or nothing. Each that did not has a line that says why; the exit code is that
/// of the worst.
pub(super) fn of_several(mut output: Output, nothing: bool, problems: Vec<Error>) -> Outcome {
    match Error::worst(problems) {
        None => Ok(output),
        Some(error) if nothing => Err(error),
        Some(error) => {
            output.code = output.code.max(error.kind.exit_code());
            let lines =
                error.message.lines().chain(error.hint.iter().flat_map(|hint| hint.lines()));
            output.notes.extend(lines.map(str::to_owned));
            Ok(output)
        }
    }
}
