//! `tpu cms job add|run|reset|kill|delete`: entries of our queue in the words of Cloudmesh.

use crate::cli::Outcome;
use crate::cli::app::{App, Undone};
use crate::cli::args::{CmsJobFields, CmsNames, Kill, Many};
use crate::cli::commands::kill::{self, of_several};
use crate::cli::commands::waiting::nobody_starts;
use crate::cli::legacy;
use crate::cli::print::Output;
use tpu_core::model::data::Data;
use tpu_core::model::ids::{QueueName, UserName};
use tpu_core::text::escape;
use tpu_jobfile::cloudmesh::{CloudmeshFile, ImportedJob};
use tpu_ops::Error;
use tpu_ops::base::named::expanded;
use tpu_ops::front::cloudmesh::ready::{self, Adding, JobFate, WhichReady};
use tpu_ops::front::cloudmesh::translate::{differences, translate};
use tpu_ops::front::cloudmesh::{self, again, template};
use tpu_ops::waiting::queue::pass;
use tpu_wire::cloudmesh::CmsJobsChangedDocument;

use super::file::{hosts_of, jobset_of};
use super::template::described;
use super::user_at_work;

/// `tpu cms job add`.
pub(super) fn add(app: &App, file: Option<&str>, fields: &CmsJobFields) -> Outcome {
    let ctx = app.ctx()?;
    let jobs = match (file, &fields.name) {
        (Some(_), Some(_)) => {
            return Err(Error::usage("a file and --name are said").hint("say one of them"));
        }
        (None, None) => {
            return Err(Error::usage("which jobs?").hint(
                "as in: tpu cms job add --name=z[0-1] --ip=a,b --executable=ls, or tpu cms job add FILE",
            ));
        }
        (Some(file), None) => cloudmesh::read_jobs(ctx, &cloudmesh::place(ctx, file)?)?,
        (None, Some(_)) => template::as_read(described(fields, app.global.user.as_deref())?)?,
    };
    added(app, &jobs, QueueName::usual())
}

/// Adds jobs for whoever is at work; `--user` is the account on the machine here.
pub(super) fn added(app: &App, jobs: &[ImportedJob], queue: QueueName) -> Outcome {
    let ctx = app.ctx()?;
    let user = user_at_work(app)?.ok_or_else(|| {
        Error::usage("whose jobs are they?").hint("say it: TPU_USER=NAME, or tpu init")
    })?;
    let data = ctx.data()?;
    let among = hosts_of(&data, jobset_of(ctx, Some(&user))?.as_ref());
    let commands = legacy::command_words();
    let to = Adding { user: Some(&user), queue, among: &among, commands: &commands };
    let fates = ready::add(ctx, &data, (jobs, &mut Vec::new()), &to)?;
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
    of_several(told(lines, &[]).notes(safe(notes)), nothing, problems)
}

/// What was done, and what has begun by it.
fn told(lines: Vec<String>, started: &[tpu_core::model::ids::JobId]) -> Output {
    let said: Vec<String> = safe(lines);
    let started = started.iter().map(Into::into).collect();
    Output::new(said.join("\n"), &CmsJobsChangedDocument { said: &said, started })
}

fn safe(lines: Vec<String>) -> Vec<String> {
    lines.into_iter().map(|line| escape(&line).into_owned()).collect()
}

fn names_of(names: Option<&str>) -> Result<Option<Vec<String>>, Error> {
    names.map(expanded).transpose()
}

/// `tpu cms job run`.
pub(super) fn run(app: &App, names: &CmsNames) -> Outcome {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let user = app.user(&data, None)?;
    let file = jobset_of(ctx, Some(&user))?;
    let chosen = WhichReady {
        names: names_of(names.name.as_deref())?,
        queue: names.name.is_none().then(QueueName::usual),
        placeless_too: false,
    };
    let among = hosts_of(&data, file.as_ref());
    let changed = file.map(|file| changed(&data, (&user, &chosen), &file, &among));
    let output = released(app, &user, &chosen, &among)?;
    Ok(output.notes(safe(changed.unwrap_or_default())))
}

/// Lets ready jobs begin, and says what has.
pub(super) fn released(
    app: &App,
    user: &UserName,
    chosen: &WhichReady,
    others: &[String],
) -> Outcome {
    let ctx = app.ctx()?;
    if app.global.dry_run {
        return Ok(Output::would(&would_run(&*ctx.data()?, user, chosen)?));
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
    Ok(told(lines, &passage.begun()).notes(notes))
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
    (user, chosen): (&UserName, &WhichReady),
    file: &CloudmeshFile,
    among: &[String],
) -> Vec<String> {
    let Ok((ids, _)) = ready::chosen(data, user, chosen) else { return Vec::new() };
    let entries = ids.iter().filter_map(|id| data.queues().entry(id));
    let note = |entry: &tpu_core::model::entry::QueueEntry| {
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

/// `tpu cms job reset`.
pub(super) fn reset(app: &App, names: &CmsNames) -> Outcome {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let user = app.user(&data, None)?;
    let file = jobset_of(ctx, Some(&user))?;
    let named = match (names_of(names.name.as_deref())?, &file) {
        (Some(names), _) => names,
        (None, Some(file)) => file.jobs.iter().map(|job| job.name.clone()).collect(),
        (None, None) => return Err(which()),
    };
    made_ready(app, &user, &named, (file.as_ref(), QueueName::usual()))
}

fn which() -> Error {
    Error::usage("which jobs?").hint("as in: --name=ls_j, or --name='job[0-4]'")
}

/// Makes jobs ready again.
pub(super) fn made_ready(
    app: &App,
    user: &UserName,
    names: &[String],
    (file, queue): (Option<&CloudmeshFile>, QueueName),
) -> Outcome {
    let ctx = app.ctx()?;
    let among = hosts_of(&*ctx.data()?, file);
    let commands = legacy::command_words();
    let to = Adding { user: Some(user), queue, among: &among, commands: &commands };
    let jobs = file.map(|file| file.jobs.as_slice()).unwrap_or_default();
    let (mut lines, mut problems) = (Vec::new(), Vec::new());
    for name in names {
        match again::reset(ctx, name, (user, jobs), &to) {
            Ok(line) => lines.push(line),
            Err(error) => problems.push(error),
        }
    }
    let nothing = lines.is_empty();
    of_several(told(lines, &[]), nothing, problems)
}

/// `tpu cms job kill`: of the names of a pattern those that there are.
pub(super) fn kill(app: &App, names: &CmsNames) -> Outcome {
    let Some(names) = names_of(names.name.as_deref())? else {
        return Err(Error::usage("which jobs?").hint(
            "as in: tpu cms job kill --name=ls_j, or 'job[0-4]'; every job: tpu kill --all",
        ));
    };
    let data = app.ctx()?.data()?;
    let user = app.user(&data, None)?;
    let mut unknown = Vec::new();
    let mut words = Vec::new();
    for name in names {
        let is_here = ready::entry(&data, &user, &name).is_some()
            || ready::newest(&data, &user, &name)?.is_some();
        if is_here { words.push(name) } else { unknown.push(name) }
    }
    if let (true, Some(first)) = (words.is_empty(), unknown.first()) {
        return Err(ready::unknown(&user, first));
    }
    words.push(format!("user={user}"));
    let output = kill::kill(app, &Kill { jobs: Many { words, all: false }, force: false })?;
    let note = |name: &String| format!("no job of {user} is called '{name}'");
    Ok(output.notes(safe(unknown.iter().map(note).collect())))
}

/// `tpu cms job delete`.
pub(super) fn delete(app: &App, names: &CmsNames) -> Outcome {
    let names = names_of(names.name.as_deref())?.ok_or_else(which)?;
    let user = app.user(&*app.ctx()?.data()?, None)?;
    taken_away(app, &user, &names)
}

/// Takes jobs away.
pub(super) fn taken_away(app: &App, user: &UserName, names: &[String]) -> Outcome {
    let ctx = app.ctx()?;
    let doomed = again::doomed(&*ctx.data()?, user, names)?;
    let all: Vec<String> = doomed.all().map(ToString::to_string).collect();
    let what = format!("take {} away", all.join(", "));
    if app.global.dry_run {
        return Ok(Output::would(&what));
    }
    let undone = Undone {
        what: "nothing was taken away",
        hint: "add -y to take it away without a question",
    };
    app.agree(&format!("Take {} away?", all.join(", ")), undone)?;
    let problems = again::delete(ctx, user, &doomed)?;
    let passage = pass::look_after(ctx);
    let is_gone = |id: &&tpu_core::model::ids::JobId| {
        ctx.data().is_ok_and(|data| data.job(id).is_none() && data.queues().entry(id).is_none())
    };
    let gone: Vec<_> = doomed.all().filter(is_gone).collect();
    let mut lines: Vec<String> =
        gone.iter().map(|id| format!("{id} is taken away; the archive keeps it.")).collect();
    let nothing = lines.is_empty();
    lines.extend(passage.in_words());
    of_several(told(lines, &passage.begun()), nothing, problems)
}
