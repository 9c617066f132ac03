//! `tpu archive list|show|logs|restore`: what was cleaned away.

use std::path::Path;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{ArchiveArgs, ArchiveStep};
use crate::cli::print::{Output, table};
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::time::{Timestamp, Zone};
use tpu_core::plan::filter::{Filter, HINT};
use tpu_core::text::{counted, escape};
use tpu_ops::act::selection;
use tpu_ops::base::called::JobWord;
use tpu_ops::base::code_dir;
use tpu_ops::observe::archive::{self, ArchiveRequest, ArchivedJob};
use tpu_ops::waiting::whose::{About, Purpose};
use tpu_ops::{Ctx, Error};
use tpu_wire::archive::{ArchiveDocument, ArchivedJobDocument, RestoredJobsDocument};
use tpu_wire::jobs::{JobIdPart, LogsDocument};

/// One of them.
pub(in crate::cli) fn run(app: &App, args: &ArchiveArgs) -> Outcome {
    match &args.step {
        ArchiveStep::List { words, lines } => list(app, words, *lines),
        ArchiveStep::Show { words, older } => show(app, words, *older),
        ArchiveStep::Logs { words, lines, older } => logs(app, words, (*lines, *older)),
        ArchiveStep::Restore { words, older } => restore(app, words, *older),
    }
}

fn list(app: &App, words: &[String], most: usize) -> Outcome {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let is_user = |word: &&String| data.user(&UserName::from(word.as_str())).is_some();
    let user = words.iter().find(is_user);
    let rest: Vec<&str> =
        words.iter().filter(|word| Some(*word) != user).map(String::as_str).collect();
    let filter = Filter::parse(&rest.join(" "));
    if let Some(problem) = filter.problem() {
        return Err(Error::usage(problem.to_owned()).hint(HINT));
    }
    let user = match user {
        None => None,
        Some(word) => {
            let word = Some(UserName::from(word.as_str()));
            let about = About { word, purpose: Purpose::Look, jobs: &[] };
            Some(app.requester()?.user(&data, &about)?)
        }
    };
    let zone = app.zone(&data, user.as_ref())?;
    let listed = archive::list(ctx, &ArchiveRequest { user, filter, most })?;
    let text = || {
        if listed.jobs.is_empty() {
            return "Nothing of the kind is in the archive.".to_owned();
        }
        let rows: Vec<Vec<String>> = listed.jobs.iter().map(|job| row(job, &zone)).collect();
        let head = ["job", "status", "target", "tag", "began", "cleaned away", "by"];
        let more = match listed.more {
            0 => String::new(),
            more => format!("{more} more before these; all: -n {}\n", more + most),
        };
        more + &table::columns(&head, &rows)
    };
    Ok(Output::either(&app.global, text, || ArchiveDocument::from(&listed)))
}

fn row(of: &ArchivedJob, zone: &Zone) -> Vec<String> {
    let job = &of.archived.job;
    let tag = job.job_tags.as_deref().filter(|tag| !tag.is_empty()).unwrap_or("-");
    vec![
        job.id().to_string(),
        job.status.to_string(),
        escape(&of.label).into_owned(),
        escape(tag).into_owned(),
        of.began.map_or_else(|| "-".to_owned(), |at| zone.stamp(at)),
        zone.stamp(of.archived.at),
        escape(&of.archived.actor).into_owned(),
    ]
}

/// The jobs that are called by number or by name, each with how many newer records have its number: `older` of the words,
/// and those that a name passes over.
fn ids(
    app: &App,
    (words, older): (&[String], usize),
    purpose: Purpose,
) -> Result<Vec<(JobId, usize)>, Error> {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let mut sorted = selection::sort(words, &data)?;
    sorted.no_selector()?;
    sorted.no_pair()?;
    let jobs = sorted.take_jobs(&data)?;
    if jobs.is_empty() {
        return Err(Error::usage("no job is named")
            .hint("as in 7 or 7,9-12, or a name; tpu archive list shows the numbers"));
    }
    let about = About { word: sorted.user, purpose, jobs: &jobs };
    let user = app.requester()?.user(&data, &about)?;
    let mut all = Vec::new();
    for job in &jobs {
        match job {
            JobWord::Number(number) => all.push((JobId::new(user.clone(), *number), older)),
            word => {
                let named = archive::called(ctx, &user, word)?;
                all.extend(named.into_iter().map(|(id, passed)| (id, passed + older)));
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// The job that words call in the archive where none of the others is called so, which `unknown` says. It is said again where
/// the archive has none either, or jobs of several users; then with a hint about one of them.
pub(super) fn meant(
    app: &App,
    words: &[String],
    unknown: Error,
    hint: &dyn Fn(&JobId) -> String,
) -> Result<JobId, Error> {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let mut sorted = selection::sort(words, &data)?;
    let named = app.requester()?.user_named(&data, sorted.user.as_ref())?;
    let called = sorted.take_jobs(&data)?;
    let [word] = called.as_slice() else { return Err(unknown) };
    if data.users().iter().any(|user| !word.waiting(&data, &user.name).is_empty()) {
        return Err(unknown);
    }
    let mut found = archive::newest_called(ctx, word).unwrap_or_default();
    found.retain(|id| named.as_ref().is_none_or(|user| id.user == *user));
    match (found.pop(), found.is_empty()) {
        (Some(id), true) => Ok(id),
        (Some(id), false) => Err(unknown.hint(hint(&id))),
        (None, _) => Err(unknown),
    }
}

fn one_id(app: &App, words: &[String], older: usize) -> Result<(JobId, usize), Error> {
    match <[(JobId, usize); 1]>::try_from(ids(app, (words, older), Purpose::Look)?) {
        Ok([one]) => Ok(one),
        Err(ids) => Err(Error::usage(format!("{} are named", counted(ids.len(), "job")))
            .hint("name one of them")),
    }
}

fn show(app: &App, words: &[String], older: usize) -> Outcome {
    let ctx = app.ctx()?;
    let (id, older) = one_id(app, words, older)?;
    let of = archive::find(ctx, &id, older)?;
    let zone = app.zone(&*ctx.data()?, Some(&id.user))?;
    let notes = others(&of.archived.job.id(), &of.others, &zone);
    let document = ArchivedJobDocument::from(&of);
    Ok(Output::new(told(&of, &zone), &document).notes(notes.into_iter().collect()))
}

/// That others had the same number, and how they are named.
fn others(id: &JobId, others: &[Timestamp], zone: &Zone) -> Option<String> {
    let when: Vec<String> = others.iter().map(|at| zone.stamp(*at)).collect();
    let many = counted(others.len(), "other record");
    (!when.is_empty()).then(|| {
        format!(
            "{many} had the number of {id}, cleaned away {}: --older N names one",
            when.join(", ")
        )
    })
}

/// What can be done with a job whose code is gone.
fn without_code(ctx: &Ctx, id: &JobId, dir: &str) -> String {
    let shown = code_dir::shown(ctx, dir);
    if Path::new(dir).is_dir() {
        let rerun = format!("tpu rerun w={} {} runs {shown} as it is now", id.window, id.user);
        format!("The code of {id} is gone. It cannot be resumed; {rerun}.")
    } else {
        format!("The code of {id} is gone, and {shown} too. It can be neither resumed nor rerun.")
    }
}

/// A record for people, one fact on each line.
fn told(of: &ArchivedJob, zone: &Zone) -> String {
    let job = &of.archived.job;
    let launch = job.launch.as_ref();
    let attempt = |number: Option<tpu_core::model::ids::JobNumber>| number.map(|n| n.to_string());
    let facts = [
        ("job", Some(job.id().to_string())),
        ("name", job.name().map(str::to_owned)),
        ("status", Some(job.status.to_string())),
        ("because of", job.verdict.as_ref().map(|verdict| verdict.line.clone())),
        ("target", Some(of.label.clone())),
        ("tag", job.job_tags.clone()),
        ("notes", job.notes.clone()),
        ("began", of.began.map(|at| zone.stamp(at))),
        ("ended", launch.and_then(|launch| launch.ended).map(|at| zone.stamp(at))),
        ("exit code", launch.and_then(|launch| launch.exit).map(|code| code.to_string())),
        ("reached step", job.reached.as_ref().and_then(|r| r.step).map(|step| step.to_string())),
        ("continues", attempt(job.father)),
        ("continued by", attempt(job.child)),
        ("directory", Some(job.job_dir.clone())),
        ("configs", Some(job.extra_configs.clone())),
        ("log directory", job.log_dir.clone()),
        ("stage directory", job.stage_dir.clone()),
        ("cleaned away", Some(format!("{} by {}", zone.stamp(of.archived.at), of.archived.actor))),
    ];
    let rows: Vec<Vec<String>> = facts
        .into_iter()
        .filter_map(|(name, fact)| Some((name, fact.filter(|fact| !fact.trim().is_empty())?)))
        .map(|(name, fact)| vec![name.to_owned(), escape(fact.trim()).into_owned()])
        .collect();
    table::aligned(&rows)
}

fn logs(app: &App, words: &[String], (most, older): (Option<usize>, usize)) -> Outcome {
    let ctx = app.ctx()?;
    let (id, older) = one_id(app, words, older)?;
    let of = archive::find(ctx, &id, older)?;
    let bytes = archive::output(ctx, &of)?;
    let notes = others(&id, &of.others, &app.zone(&*ctx.data()?, Some(&id.user))?);
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let from = most.map_or(0, |most| lines.len().saturating_sub(most));
    let lines = lines.get(from..).unwrap_or_default().to_vec();
    let text = lines.join("\n");
    let document = LogsDocument { job: JobIdPart::from(&id), lines };
    Ok(Output::new(text, &document).notes(notes.into_iter().collect()))
}

fn restore(app: &App, words: &[String], older: usize) -> Outcome {
    let ctx = app.ctx()?;
    let done = archive::restore(ctx, &ids(app, (words, older), Purpose::Change)?)?;
    let of_whom = done.others.first().map(|(id, _)| &id.user);
    let zone = app.zone(&*ctx.data()?, of_whom)?;
    let mut notes: Vec<String> =
        done.others.iter().filter_map(|(id, all)| others(id, all, &zone)).collect();
    notes.extend(done.without_code.iter().map(|(id, dir)| without_code(ctx, id, dir)));
    let named = |ids: &[JobId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let mut text = String::new();
    if !done.restored.is_empty() {
        text += &format!("Brought back: {}. Nothing begins by it.\n", named(&done.restored));
    }
    if !done.already.is_empty() {
        text += &format!("Among the jobs already: {}.\n", named(&done.already));
    }
    Ok(Output::new(text, &RestoredJobsDocument::from(&done)).notes(notes))
}
