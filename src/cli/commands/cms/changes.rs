//! `tpu cms job add|run|reset|kill|delete`: entries of our queue in the words of Cloudmesh.

use crate::cli::Outcome;
use crate::cli::app::{App, Undone};
use crate::cli::args::{CmsJobFields, CmsNames, Kill, Many};
use crate::cli::commands::kill;
use crate::cli::commands::waiting::{needs_question, of_several};
use crate::cli::print::Output;
use tpu_core::model::ids::QueueName;
use tpu_core::text::escape;
use tpu_ops::Error;
use tpu_ops::act::kill as stops;
use tpu_ops::base::called::WaitingCalled;
use tpu_ops::base::named::expanded;
use tpu_ops::front::cloudmesh::again::{self, Doomed};
use tpu_ops::front::cloudmesh::changes::{self, CmsChanged, which};
use tpu_ops::front::cloudmesh::{self, ready, template};
use tpu_wire::cloudmesh::CmsJobsChangedDocument;

use super::template::described;

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
    // `--user` is the account on the machine here.
    printed(changes::add(&app.requester()?, &jobs, QueueName::usual())?)
}

/// What became of jobs.
pub(super) fn printed(changed: CmsChanged) -> Outcome {
    let output = if let Some(would) = &changed.would {
        Output::would(would)
    } else {
        let (said, started) = (&changed.said, changed.started.iter().map(Into::into).collect());
        Output::new(said.join("\n"), &CmsJobsChangedDocument { said, started })
    };
    of_several(output.notes(changed.notes), false, changed.problem.into_iter().collect())
}

/// `tpu cms job run`.
pub(super) fn run(app: &App, names: &CmsNames) -> Outcome {
    printed(changes::run(&app.requester()?, names.name.as_deref())?)
}

/// `tpu cms job reset`.
pub(super) fn reset(app: &App, names: &CmsNames) -> Outcome {
    printed(changes::reset(&app.requester()?, names.name.as_deref())?)
}

/// `tpu cms job kill`: of the names of a pattern those that there are.
pub(super) fn kill(app: &App, names: &CmsNames) -> Outcome {
    let Some(names) = names.name.as_deref().map(expanded).transpose()? else {
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
    let note = |name: &String| escape(&format!("no job of {user} is called '{name}'")).into_owned();
    Ok(output.notes(unknown.iter().map(note).collect()))
}

/// `tpu cms job delete`.
pub(super) fn delete(app: &App, names: &CmsNames) -> Outcome {
    let names = expanded(names.name.as_deref().ok_or_else(which)?)?;
    let data = app.ctx()?.data()?;
    taken_away(app, &again::doomed(&data, &app.user(&data, None)?, &names)?)
}

/// Takes jobs away, if whoever is asked agrees.
pub(super) fn taken_away(app: &App, doomed: &Doomed) -> Outcome {
    let all: Vec<String> = doomed.all().map(ToString::to_string).collect();
    if app.global.dry_run {
        return Ok(Output::would(&format!("take {} away", all.join(", "))));
    }
    let waiting: Vec<WaitingCalled> =
        doomed.waiting.iter().map(|id| WaitingCalled { id: id.clone(), members: None }).collect();
    // What has ended loses nothing: the archive keeps it.
    let only_ended = doomed.waiting.is_empty() && doomed.live.is_empty();
    let asks = if only_ended {
        app.asks() && !app.is_own(&doomed.user)?
    } else {
        needs_question(app, &[&*doomed.live, &*doomed.over].concat(), &waiting)?
    };
    if asks {
        // What would be refused is refused before anybody is asked.
        let (able, problems) = stops::dry_run(app.ctx()?, &doomed.live, false);
        if let (true, Some(refused)) =
            (able.len() + doomed.over.len() + waiting.len() == 0, Error::worst(problems))
        {
            return Err(refused);
        }
        let undone = Undone {
            what: "nothing was taken away",
            hint: "add -y to take it away without a question",
        };
        app.agree(&format!("Take {} away?", all.join(", ")), undone)?;
    }
    printed(changes::take_away(app.ctx()?, doomed)?)
}
