//! `tpu kill` and `tpu kill-window`.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::Kill;
use crate::cli::print::Output;
use crate::model::ids::JobId;
use crate::ops::queue::edit;
use crate::ops::selection;
use crate::ops::whose::{Purpose, Several};
use crate::ops::{Error, clean, kill};
use crate::wire::cleaned::CleanedDocument;
use crate::wire::jobs::JobIdPart;
use crate::wire::launches::{KilledDocument, KilledPart, WouldConcernDocument};

use super::queue;
use super::waiting::look_after;

/// Stops jobs.
pub(in crate::cli) fn kill(app: &App, of: &Kill) -> Outcome {
    let args = &of.jobs;
    let ctx = app.ctx()?;
    let (waiting, words) = queue::waiting_of(app, &args.words)?;
    let waits = !waiting.is_empty();
    if waits && app.global.dry_run && words.is_empty() {
        return of_several(listed("Would take out of the queue", &waiting), false, Vec::new());
    }
    if waits && words.is_empty() && !args.all {
        let undone = ("nothing was killed", "add -y to kill without a question");
        app.agree(&format!("Take {} out of the queue?", names(&waiting)), undone)?;
        return queue::take_out(app, &waiting);
    }
    let jobs = app.requester()?.many_jobs(
        &words,
        Several { all: args.all, purpose: Purpose::Change },
        |view| {
            view.shown.status.is_live()
                || view.shown.unknown.is_some() && view.stored.is_live()
                // A rule is about to bring it back: whoever kills all of them means this one, too.
                || view.planned().is_some()
        },
    )?;
    if app.global.dry_run {
        let (jobs, problems) = kill::dry_run(ctx, &jobs);
        let all: Vec<JobId> = waiting.into_iter().chain(jobs).collect();
        return of_several(listed("Would kill", &all), all.is_empty(), problems);
    }
    let undone = ("nothing was killed", "add -y to kill without a question");
    let all: Vec<JobId> = waiting.iter().chain(&jobs).cloned().collect();
    app.agree(&format!("Kill {}?", names(&all)), undone)?;
    let mut text = String::new();
    if waits {
        edit::dequeue(ctx, &waiting)?;
        let each = waiting.iter().map(|id| format!("{id} waits no more, and never began.\n"));
        text.extend(each);
    }
    let mut done = Vec::new();
    let mut problems = Vec::new();
    for (job, result) in kill::kill(ctx, &jobs, of.force) {
        match result {
            Ok(killed) => {
                let ended = killed.was_not_running();
                text += &format!("{}.\n", ended.unwrap_or_else(|| format!("Killed {job}")));
                done.push(killed);
            }
            Err(error) => problems.push(error),
        }
    }
    let nothing = done.is_empty();
    for (_, launched, _) in look_after(ctx).started {
        text += &format!("{}\n", launched.in_words());
    }
    let document = KilledDocument { killed: done.iter().map(KilledPart::from).collect() };
    of_several(Output::new(text, &document), nothing, problems)
}

/// The outcome where some went well, all, or nothing.
pub(super) fn of_several(mut output: Output, nothing: bool, problems: Vec<Error>) -> Outcome {
    match Error::all(problems) {
        None => Ok(output),
        Some(error) if nothing => Err(error),
        Some(error) => {
            output.code = error.kind.exit_code();
            output.notes.extend(error.message.lines().map(str::to_owned));
            Ok(output)
        }
    }
}

/// Closes windows and archives their records.
pub(in crate::cli) fn kill_window(app: &App, words: &[String]) -> Outcome {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let mut sorted = selection::sort(words, &data)?;
    sorted.no_selector()?;
    let called = sorted.take_jobs(&data)?;
    sorted.no_pair()?;
    let id = app.requester()?.one_number_of(&data, (sorted.user, &called), Purpose::Change)?;
    if app.global.dry_run {
        clean::dry_run_kill_window(ctx, &id)?;
        return Ok(listed("Would close the window of", &[id]));
    }
    let undone = ("nothing was closed", "add -y to close it without a question");
    app.agree(&format!("Close the window of {id}?"), undone)?;
    let cleaned = clean::kill_window(ctx, &id)?;
    Ok(Output::new(cleaned.summary(), &CleanedDocument::from(&cleaned)))
}

pub(super) fn listed(what: &str, jobs: &[JobId]) -> Output {
    let document = WouldConcernDocument { would: jobs.iter().map(JobIdPart::from).collect() };
    Output::new(format!("{what} {}.", names(jobs)), &document)
}

fn names(jobs: &[JobId]) -> String {
    jobs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
