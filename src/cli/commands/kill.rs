//! `tpu kill` and `tpu kill-window`.

use crate::cli::Outcome;
use crate::cli::app::{App, Undone};
use crate::cli::args::Kill;
use crate::cli::print::Output;
use tpu_core::model::ids::{JobId, JobNumber, UserName};
use tpu_core::model::job::{Launch, Succession};
use tpu_core::model::time;
use tpu_core::plan::resume_from::ResumeFrom;
use tpu_ops::act::kill::Killed;
use tpu_ops::act::{kill, resume, selection};
use tpu_ops::base::called::JobWord;
use tpu_ops::base::known_as;
use tpu_ops::front::clean;
use tpu_ops::waiting::queue::members;
use tpu_ops::waiting::queue::pass;
use tpu_ops::waiting::queue::shown::waits_yet;
use tpu_ops::waiting::whose::{Meant, Purpose, Several};
use tpu_ops::{Ctx, Error};
use tpu_wire::cleaned::CleanedDocument;
use tpu_wire::jobs::JobIdPart;
use tpu_wire::launches::{KilledDocument, KilledPart, WouldConcernDocument};

use super::queue;
use super::waiting::{in_words, needs_question, never_began, of_several};

/// Stops jobs.
pub(in crate::cli) fn kill(app: &App, of: &Kill) -> Outcome {
    let args = &of.jobs;
    let ctx = app.ctx()?;
    let Meant { jobs, waiting } = app.requester()?.many(
        &args.words,
        Several { all: args.all, purpose: Purpose::Change },
        |view| {
            view.shown.status.is_live()
                || view.shown.unknown.is_some() && view.stored.is_live()
                // A rule is to bring it back, or may: whoever kills all of them means this one, too.
                || view.may_come_back()
        },
    )?;
    let waits: Vec<JobId> = waiting.iter().map(|called| called.id.clone()).collect();
    let undone = Undone { what: "nothing was killed", hint: "add -y to kill without a question" };
    // What is to be taken out may begin while somebody is asked.
    let before = members::at_work(ctx, &waiting)?;
    let begun_since = || -> Result<Vec<JobId>, Error> {
        let now = members::at_work(ctx, &waiting)?.into_iter();
        Ok(now.filter(|id| !before.contains(id) && !jobs.contains(id)).collect())
    };
    if jobs.is_empty() {
        if app.global.dry_run {
            let document =
                WouldConcernDocument { would: waits.iter().map(JobIdPart::from).collect() };
            let text = format!("Would take out of the queue {}.", in_words(ctx, &waiting)?);
            return Ok(Output::new(text, &document));
        }
        if needs_question(app, &jobs, &waiting)? {
            app.agree(&format!("Take {} out of the queue?", in_words(ctx, &waiting)?), undone)?;
        }
        let mut output = queue::take_out_called(app, &waiting)?;
        let mut problems = Vec::new();
        for (job, result) in kill::kill(ctx, &begun_since()?, of.force) {
            match result {
                Ok(_) => output.notes.push(format!("{job} had begun meanwhile, and is killed")),
                Err(error) => problems.push(error),
            }
        }
        return of_several(output, false, problems);
    }
    if app.global.dry_run {
        let (jobs, problems) = kill::dry_run(ctx, &jobs, of.force);
        let all: Vec<JobId> = waits.into_iter().chain(jobs).collect();
        return of_several(listed(ctx, "Would kill", &all)?, all.is_empty(), problems);
    }
    let also = match waiting.as_slice() {
        [] => String::new(),
        waiting => format!(" and take {} out of the queue", in_words(ctx, waiting)?),
    };
    if needs_question(app, &jobs, &waiting)? {
        // What would be refused is refused before anybody is asked.
        let (able, problems) = kill::dry_run(ctx, &jobs, of.force);
        if let (true, true, Some(refused)) =
            (able.is_empty(), waiting.is_empty(), Error::worst(problems))
        {
            return Err(refused);
        }
        app.agree(&format!("Kill {}{also}?", names(ctx, &jobs)?), undone)?;
    }
    // Before anything ends: else what waits would begin in the places that become free.
    members::take_out(ctx, &waiting)?;
    let jobs: Vec<JobId> = begun_since()?.into_iter().chain(jobs.iter().cloned()).collect();
    let mut text = String::new();
    for called in &waiting {
        text += &format!("{}\n", never_began(called));
    }
    let mut done = Vec::new();
    let mut problems = Vec::new();
    for (job, result) in kill::kill(ctx, &jobs, of.force) {
        match result {
            Ok(killed) => {
                text += &match killed.was_not_running() {
                    Some(ended) => format!("{ended}.\n"),
                    None if jobs.len() == 1 => way_back(app, &job)?,
                    None => format!("Killed {job}.\n"),
                };
                done.push(killed);
            }
            Err(error) => problems.push(error),
        }
    }
    text += &way_back_of_array(ctx, &done)?;
    let nothing = done.is_empty() && waiting.is_empty();
    for (_, launched, _) in pass::look_after(ctx).started {
        text += &format!("{}\n", launched.in_words());
    }
    let document = KilledDocument { killed: done.iter().map(KilledPart::from).collect() };
    of_several(Output::new(text, &document), nothing, problems)
}

/// That one job was killed, how long it had run, how far it had come, and how it goes on.
fn way_back(app: &App, id: &JobId) -> Result<String, Error> {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let launch = data.job(id).and_then(|job| job.launch.as_ref());
    let ran = launch.and_then(Launch::ran_s);
    let ran = ran.map(|seconds| format!(" after {}", time::age(seconds)));
    // What cannot be looked at is said by the resume.
    let start = resume::start_of(ctx, &resume::by_rules(id, Succession::Resume)).ok().flatten();
    let (checkpoint, verb) = match start {
        Some(ResumeFrom::Found(at)) => (format!(", checkpoint {}", at.step), "resume"),
        Some(ResumeFrom::Nothing(_)) => (String::new(), "rerun"),
        Some(ResumeFrom::Perhaps(..) | ResumeFrom::InWorkDir(..)) | None => {
            (String::new(), "resume")
        }
    };
    let at_work = app.requester()?.user_at_work(&data).ok().flatten();
    let is_own = at_work.is_some_and(|user| user == id.user);
    let whose = if is_own { String::new() } else { format!(" {}", id.user) };
    let ran = ran.unwrap_or_default();
    Ok(format!("Killed {id}{ran}{checkpoint}: tpu {verb} {}{whose}\n", id.window))
}

/// How several jobs go on that were killed, where all are members of one array.
fn way_back_of_array(ctx: &Ctx, killed: &[Killed]) -> Result<String, Error> {
    let data = ctx.data()?;
    let stopped = killed.iter().filter(|killed| killed.failed.is_none()).map(|killed| &killed.job);
    let arrays: Vec<Option<(&UserName, JobNumber)>> =
        stopped.map(|id| Some((&id.user, data.job(id)?.member()?.group))).collect();
    Ok(match arrays.as_slice() {
        [Some(first), rest @ ..]
            if !rest.is_empty() && rest.iter().all(|other| other.as_ref() == Some(first)) =>
        {
            let (user, array) = first;
            format!("To resume them: tpu resume {array} {user}\n")
        }
        _ => String::new(),
    })
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
    let waits = JobWord::Number(id.window).waiting(&data, &id.user);
    if let [waits, ..] = waits.as_slice()
        && data.job(&id).is_none()
    {
        return Err(waits_yet(&data, waits));
    }
    if app.global.dry_run {
        clean::dry_run_kill_window(ctx, &id)?;
        return listed(ctx, "Would close the window of", &[id]);
    }
    if app.asks() && !app.is_own(&id.user)? {
        clean::dry_run_kill_window(ctx, &id)?;
        let undone =
            Undone { what: "nothing was closed", hint: "add -y to close it without a question" };
        let which = names(ctx, std::slice::from_ref(&id))?;
        app.agree(&format!("Close the window of {which}?"), undone)?;
    }
    let cleaned = clean::kill_window(ctx, &id)?;
    Ok(Output::new(cleaned.summary(), &CleanedDocument::from(&cleaned)))
}

pub(super) fn listed(ctx: &Ctx, what: &str, jobs: &[JobId]) -> Outcome {
    let document = WouldConcernDocument { would: jobs.iter().map(JobIdPart::from).collect() };
    Ok(Output::new(format!("{what} {}.", names(ctx, jobs)?), &document))
}

/// Jobs with what people know them by.
pub(super) fn names(ctx: &Ctx, jobs: &[JobId]) -> Result<String, Error> {
    Ok(known_as::in_words(&*ctx.data()?, jobs).join(", "))
}
