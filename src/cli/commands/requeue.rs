//! `requeue`: puts jobs back into the queue.

use crate::cli::Outcome;
use crate::cli::app::{App, Undone};
use crate::cli::args::Requeue;
use crate::cli::print::Output;
use tpu_core::model::ids::{JobId, QueueName};
use tpu_core::model::job::Status;
use tpu_ops::Error;
use tpu_ops::waiting::queue::pass;
use tpu_ops::waiting::queue::requeue::{self, Requeued};
use tpu_ops::waiting::queue::shown::waits_yet;
use tpu_ops::waiting::whose::{Meant, Purpose, Several};
use tpu_ops::waiting::words::nobody_starts;
use tpu_wire::queue::WaitingChangedDocument;

use super::kill;
use super::waiting::{needs_question, of_several, priority};

/// `requeue`.
pub(in crate::cli) fn requeue(app: &App, args: &Requeue) -> Outcome {
    let ctx = app.ctx()?;
    let mut how = Requeued { is_held: args.hold, now: args.now, ..Requeued::default() };
    let mut words = Vec::new();
    for word in &args.words {
        match word.split_once('=') {
            Some(("priority", value)) => how.priority = priority(value)?,
            Some(("queue", value)) => how.queue = Some(QueueName::from(value)),
            _ => words.push(word.clone()),
        }
    }
    let several = Several { all: false, purpose: Purpose::Change };
    // What has ended well is begun again only where it is named by itself.
    let has_finished = |status: &Status| *status == Status::Finished;
    let meant = app.requester()?.many(&words, several, |view| !has_finished(&view.stored))?;
    let Meant { mut jobs, waiting } = meant;
    let data = ctx.data()?;
    let mut problems: Vec<Error> = waiting.iter().map(|called| waits_yet(&data, called)).collect();
    if jobs.len() > 1 {
        let finished = |id: &mut JobId| data.job(id).is_some_and(|job| has_finished(&job.status));
        problems.extend(jobs.extract_if(.., finished).map(|id| {
            Error::refused(format!("{id} is finished: name it alone to start it again"))
                .hint(format!("tpu requeue {} {}", id.window, id.user))
        }));
    }
    if jobs.is_empty() {
        return of_several(Output::default(), true, problems);
    }
    if app.global.dry_run {
        let would = kill::listed(ctx, "Would put back into the queue", &jobs)?;
        return of_several(would, false, problems);
    }
    let names = kill::names(ctx, &jobs)?;
    let undone =
        Undone { what: "nothing was stopped", hint: "add -y to stop them without a question" };
    if needs_question(app, &jobs, &[])? {
        // What would be refused is refused before anybody is asked.
        let refused = jobs.iter().map(|job| requeue::dry_run(ctx, job)).filter_map(Result::err);
        let refused: Vec<Error> = refused.collect();
        if let (true, Some(error)) = (refused.len() == jobs.len(), Error::worst(refused)) {
            return Err(error);
        }
        app.agree(&format!("Stop {names} and let it wait for its turn?"), undone)?;
    }
    let (mut lines, mut notes) = (Vec::new(), Vec::new());
    let mut waiting: Vec<JobId> = Vec::new();
    for job in &jobs {
        match requeue::requeue(ctx, job, &how) {
            Ok((waits, remark)) => {
                lines.push(format!("{job} continues as {waits} when its turn comes."));
                notes.extend(remark);
                waiting.push(waits);
            }
            Err(error) => problems.push(error),
        }
    }
    let passage = pass::look_after(ctx);
    lines.extend(passage.in_words());
    if ctx.data()?.queues().entries.iter().any(|entry| waiting.contains(&entry.id())) {
        notes.extend(nobody_starts(ctx));
    }
    let started = passage.begun();
    let document = WaitingChangedDocument::of(&waiting, &started);
    let output = Output::new(lines.join("\n"), &document).notes(notes);
    of_several(output, waiting.is_empty(), problems)
}
