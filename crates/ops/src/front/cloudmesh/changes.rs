//! Adds jobs in the words of Cloudmesh, lets them begin, makes them ready again, takes them away.

use crate::base::named::expanded;
use crate::waiting::queue::pass;
use crate::waiting::whose::{About, Purpose, Requester};
use crate::waiting::words::nobody_starts;
use crate::{Ctx, Error};
use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::{JobId, QueueName, UserName};
use tpu_core::text::escape;
use tpu_jobfile::cloudmesh::{CloudmeshFile, ImportedJob};

use super::again::{self, Doomed};
use super::jobset::{hosts_of, readable};
use super::ready::{self, Adding, JobFate, WhichReady};
use super::translate::{differences, translate};

/// What became of jobs that were added, run, made ready again or taken away.
#[derive(Debug, Default)]
pub struct CmsChanged {
    /// What would be done, where it is only tried.
    pub would: Option<String>,
    /// What became of each, for people.
    pub said: Vec<String>,
    /// Those that have begun.
    pub started: Vec<JobId>,
    /// What people should know beside it.
    pub notes: Vec<String>,
    /// What was not done of it, and why.
    pub problem: Option<Error>,
}

impl CmsChanged {
    fn of(said: Vec<String>, started: Vec<JobId>, notes: Vec<String>) -> Self {
        Self { said: safe(said), started, notes: safe(notes), ..Self::default() }
    }

    /// The same with what was not done; an error where nothing was.
    fn but(self, nothing: bool, problems: Vec<Error>) -> Result<Self, Error> {
        match Error::worst(problems) {
            Some(error) if nothing => Err(error),
            problem => Ok(Self { problem, ..self }),
        }
    }
}

fn safe(lines: Vec<String>) -> Vec<String> {
    lines.into_iter().map(|line| escape(&line).into_owned()).collect()
}

/// The user whose jobs are changed.
pub(super) fn whose(by: &Requester<'_>, data: &Data) -> Result<UserName, Error> {
    by.user(data, &About { word: None, purpose: Purpose::Change, jobs: &[] })
}

/// Adds jobs for whoever is at work.
pub fn add(
    by: &Requester<'_>,
    jobs: &[ImportedJob],
    queue: QueueName,
) -> Result<CmsChanged, Error> {
    let data = by.ctx.data()?;
    let user = by.user_at_work(&data).ok().flatten().ok_or_else(|| {
        Error::usage("whose jobs are they?").hint("say it: TPU_USER=NAME, or tpu init")
    })?;
    let among = hosts_of(&data, readable(by.ctx, Some(&user))?.as_ref());
    let to = Adding { user: Some(&user), queue, among: &among };
    let fates = ready::add(by.ctx, &data, (jobs, &mut Vec::new()), &to)?;
    let (mut lines, mut notes, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for (job, fate) in jobs.iter().zip(&fates) {
        let line = format!("{}: {}", job.name, fate.in_words(&job.name));
        match fate {
            JobFate::Added(known) => {
                lines.push(line);
                notes.extend(known.iter().map(|note| format!("{}: {note}", job.name)));
            }
            JobFate::Known(_) => lines.push(line),
            _ => problems.push(Error::refused(line).hint("`tpu cms job list` lists what is there")),
        }
    }
    let nothing = lines.is_empty();
    CmsChanged::of(lines, Vec::new(), notes).but(nothing, problems)
}

/// Lets the ready jobs of these names begin, or all of the usual queue.
pub fn run(by: &Requester<'_>, names: Option<&str>) -> Result<CmsChanged, Error> {
    let data = by.ctx.data()?;
    let user = whose(by, &data)?;
    let file = readable(by.ctx, Some(&user))?;
    let names = names.map(expanded).transpose()?;
    let queue = names.is_none().then(QueueName::usual);
    let chosen = WhichReady { names, queue, placeless_too: false };
    let among = hosts_of(&data, file.as_ref());
    let changed = file.map(|file| changed(&data, &user, &chosen, &file, &among));
    let mut done = release(by, &user, &chosen, &among)?;
    done.notes.extend(safe(changed.unwrap_or_default()));
    Ok(done)
}

/// Lets ready jobs begin, and says what has.
pub(super) fn release(
    by: &Requester<'_>,
    user: &UserName,
    chosen: &WhichReady,
    others: &[String],
) -> Result<CmsChanged, Error> {
    let ctx = by.ctx;
    if ctx.store.is_dry_run() {
        let would = Some(would_run(&*ctx.data()?, user, chosen)?);
        return Ok(CmsChanged { would, ..CmsChanged::default() });
    }
    let done = ready::run(ctx, user, chosen, others)?;
    let passage = pass::look_after(ctx);
    let mut lines: Vec<String> = done.said;
    lines.extend(passage.in_words());
    let data = ctx.data()?;
    let waiting = done.released.iter().filter(|id| data.queues().entry(id).is_some());
    let waiting: Vec<String> =
        waiting.map(|id| format!("{id} waits for its turn: tpu queue")).collect();
    let notes = if waiting.is_empty() { Vec::new() } else { nobody_starts(ctx) };
    lines.extend(waiting);
    if lines.is_empty() {
        lines.push("Nothing is ready; `tpu cms job list` lists the jobs.".to_owned());
    }
    Ok(CmsChanged { notes, ..CmsChanged::of(lines, passage.begun(), Vec::new()) })
}

fn would_run(data: &Data, user: &UserName, chosen: &WhichReady) -> Result<String, Error> {
    let ids = ready::chosen(data, user, chosen)?.0;
    let names: Vec<String> = ids.iter().map(ToString::to_string).collect();
    Ok(match names.as_slice() {
        [] => "start nothing: nothing is ready".to_owned(),
        names => format!("let {} begin", names.join(", ")),
    })
}

/// How jobs that are to begin differ from what the jobset says by now: they begin as they were added.
fn changed(
    data: &Data,
    user: &UserName,
    chosen: &WhichReady,
    file: &CloudmeshFile,
    among: &[String],
) -> Vec<String> {
    let Ok((ids, _)) = ready::chosen(data, user, chosen) else { return Vec::new() };
    let entries = ids.iter().filter_map(|id| data.queues().entry(id));
    let note = |entry: &QueueEntry| {
        let name = entry.spec.name.as_deref()?;
        let job = file.jobs.iter().find(|job| job.name == name)?;
        let how = differences(&entry.spec, &translate(data, job, among)?.spec);
        let what = format!(
            "{name} begins as it was added; the jobset says otherwise by now: {}; take that: \
             tpu cms job delete --name={name}, tpu cms job add FILE",
            how.join("; ")
        );
        (!how.is_empty()).then_some(what)
    };
    entries.filter_map(note).collect()
}

/// Makes jobs of the jobset ready again: those of these names, or all.
pub fn reset(by: &Requester<'_>, names: Option<&str>) -> Result<CmsChanged, Error> {
    let ctx = by.ctx;
    let user = whose(by, &*ctx.data()?)?;
    let file = readable(ctx, Some(&user))?;
    let of_file = |file: &CloudmeshFile| file.jobs.iter().map(|job| job.name.clone()).collect();
    let names = names.map(expanded).transpose()?;
    let names: Vec<String> = names.or_else(|| file.as_ref().map(of_file)).ok_or_else(which)?;
    let among = hosts_of(&*ctx.data()?, file.as_ref());
    let to = Adding { user: Some(&user), queue: QueueName::usual(), among: &among };
    make_ready(ctx, &user, &names, file.as_ref().map_or(&[], |file| &file.jobs), &to)
}

/// No job is named.
pub fn which() -> Error {
    Error::usage("which jobs?").hint("as in: --name=ls_j, or --name='job[0-4]'")
}

/// Makes jobs ready again, as they were last, or as they stand in a file.
pub(super) fn make_ready(
    ctx: &Ctx,
    user: &UserName,
    names: &[String],
    file: &[ImportedJob],
    to: &Adding<'_>,
) -> Result<CmsChanged, Error> {
    let (mut lines, mut problems) = (Vec::new(), Vec::new());
    for name in names {
        match again::reset(ctx, user, name, file, to) {
            Ok(line) => lines.push(line),
            Err(error) => problems.push(error),
        }
    }
    let nothing = lines.is_empty();
    CmsChanged::of(lines, Vec::new(), Vec::new()).but(nothing, problems)
}

/// Takes jobs away, and says what has begun in their places.
pub fn take_away(ctx: &Ctx, doomed: &Doomed) -> Result<CmsChanged, Error> {
    let problems = again::delete(ctx, doomed)?;
    let passage = pass::look_after(ctx);
    let is_gone = |id: &&JobId| {
        ctx.data().is_ok_and(|data| data.job(id).is_none() && data.queues().entry(id).is_none())
    };
    let gone = doomed.all().filter(is_gone);
    let mut lines: Vec<String> =
        gone.map(|id| format!("{id} is removed; the archive keeps it.")).collect();
    let nothing = lines.is_empty();
    lines.extend(passage.in_words());
    CmsChanged::of(lines, passage.begun(), Vec::new()).but(nothing, problems)
}
