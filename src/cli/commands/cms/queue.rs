//! `tpu cms queue …`: Cloudmesh's queues are queues here, and its schedulers are what is said of one.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{CmsQueue, CmsQueueJobs, CmsQueueRun, CmsQueueStep, CmsQueueWords};
use crate::cli::print::Output;
use tpu_core::model::data::{Data, User};
use tpu_core::model::ids::{QueueName, UserName};
use tpu_core::model::job::{Job, Status};
use tpu_core::model::member::Array;
use tpu_jobfile::cloudmesh::ImportedState;
use tpu_jobfile::cloudmesh::template::TemplateJob;
use tpu_ops::Error;
use tpu_ops::base::error::did_you_mean;
use tpu_ops::base::named::{expanded, members};
use tpu_ops::front::cloudmesh::ready::{self, WhichReady};
use tpu_ops::front::cloudmesh::template;
use tpu_ops::front::cloudmesh::translate::known;
use tpu_ops::waiting::queue::edit::{self, QueueEdit};
use tpu_wire::queue::{QueueChangedDocument, QueuePart};

use super::changes::{added, made_ready, released, taken_away};
use super::{jobs, manual};

/// `tpu cms queue …`.
pub(super) fn run(app: &App, args: &CmsQueue) -> Outcome {
    match &args.step {
        None => Ok(manual::page()),
        Some(CmsQueueStep::Info(words) | CmsQueueStep::Refresh(words)) => {
            let queue = words.queue.as_deref();
            jobs::list(app, words.name.as_deref(), words.status.as_deref(), queue)
        }
        Some(CmsQueueStep::Create(words)) => create(app, &named(words.queue.as_deref())),
        Some(CmsQueueStep::Add(jobs)) => add(app, jobs),
        Some(CmsQueueStep::Run(args)) => scheduled(app, args),
        Some(CmsQueueStep::Reset(words)) => {
            let (user, names) = called(app, words)?;
            made_ready(app, &user, &names, (None, named(words.queue.as_deref())))
        }
        Some(CmsQueueStep::Delete(words)) => {
            if words.name.is_none() {
                return Err(Error::usage("which jobs?").hint("as in: --name='a[1-3]'"));
            }
            let (user, names) = called(app, words)?;
            taken_away(app, &user, &names)
        }
    }
}

fn named(queue: Option<&str>) -> QueueName {
    queue.map_or_else(QueueName::usual, |name| QueueName::new(name.to_owned()))
}

fn create(app: &App, name: &QueueName) -> Outcome {
    let ctx = app.ctx()?;
    let (what, queue) = if let Some(queue) = ctx.data()?.queues().queue(name) {
        ("There is a queue", queue)
    } else {
        ("Made the queue", edit::create(ctx, name, &QueueEdit::default())?)
    };
    let text = format!("{what} {name}: {}.", edit::in_words(&queue));
    Ok(Output::new(text, &QueueChangedDocument { queue: Some(QueuePart::from(&queue)) }))
}

fn add(app: &App, words: &CmsQueueJobs) -> Outcome {
    let ctx = app.ctx()?;
    let queue = named(words.queue.as_deref());
    edit::find(&*ctx.data()?, &queue)?;
    let names = expanded(&words.name)?;
    if names.len() > Array::MOST {
        return Err(Error::usage(format!("{} jobs in one request", names.len()))
            .hint(format!("at most {} at a time", Array::MOST)));
    }
    for said in [&words.name, &words.command] {
        template::refuse_unsafe(said)?;
    }
    let experiment = words.experiment.as_deref().unwrap_or("./experiment");
    let mut columns = Vec::new();
    for (field, option, said) in [
        ("host", "host", &words.host),
        ("output", "output", &words.output),
        ("status", "status", &words.status),
        ("gpu", "gpu", &words.gpu),
        ("shell", "shell", &words.shell),
        ("pyenv", "pyenv", &words.pyenv),
    ] {
        let values = match said {
            // Several GPUs of one job, and no list of values.
            Some(_) if field == "gpu" && names.len() == 1 => vec![said.clone()],
            _ => template::for_each(&names, option, said.as_deref())?,
        };
        columns.push((field, values));
    }
    let job =
        |(place, name): (usize, &String)| {
            let mut fields = vec![
                ("command", words.command.clone()),
                ("directory", format!("{}/{name}", experiment.trim_end_matches('/'))),
            ];
            fields.extend(columns.iter().filter_map(|(field, values)| {
                Some((*field, values.get(place).cloned().flatten()?))
            }));
            if words.output.is_none() {
                fields.push(("output", format!("{name}.out")));
            }
            TemplateJob { name: name.clone(), fields }
        };
    let jobs = names.iter().enumerate().map(job).collect();
    added(app, &template::as_read(jobs)?, queue)
}

/// `run fifo` keeps to what each job says, so many at a time; `run fifo_multi` begins them on any of some hosts.
fn scheduled(app: &App, args: &CmsQueueRun) -> Outcome {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let name = named(args.queue.as_deref());
    edit::find(&data, &name)?;
    let user = app.user(&data, None)?;
    let is_multi = args.scheduler == "fifo_multi";
    let mut edit = QueueEdit::default();
    if is_multi {
        edit.on = Some(places(&data, args)?);
        edit.max_parallel = args.max_parallel.map(Some);
    } else {
        let Some(most) = args.max_parallel.filter(|most| *most > 0) else {
            return Err(Error::usage("how many jobs at a time?")
                .hint("as in: tpu cms queue run fifo --max_parallel=2"));
        };
        edit.on = Some(Vec::new());
        edit.max_parallel = Some(Some(most));
    }
    let chosen = WhichReady { names: None, queue: Some(name.clone()), placeless_too: is_multi };
    let mut notes = Vec::new();
    if args.timeout.is_some() {
        notes.push("--timeout says nothing here: a job whose host is silent is unknown, and lost after proof".to_owned());
    }
    if !app.global.dry_run {
        let queue = edit::set(ctx, &name, &edit)?;
        notes.push(format!("queue {name}: {}", edit::in_words(&queue)));
    }
    let output = released(app, &user, &chosen, &[])?;
    Ok(output.notes(notes))
}

/// The hosts of `fifo_multi`.
fn places(data: &Data, args: &CmsQueueRun) -> Result<Vec<String>, Error> {
    if let Some(cluster) = &args.hostfile {
        if members(data, cluster).is_empty() {
            return Err(Error::not_found(format!("no host is in the cluster {cluster}"))
                .hint(format!("tpu cms cluster add --cluster={cluster} --id=NAME")));
        }
        return Ok(vec![cluster.clone()]);
    }
    let Some(hosts) = &args.hosts else {
        return Err(Error::usage("on which hosts?").hint(
            "as in: tpu cms queue run fifo_multi --hosts=me@j1,me@j2, or --hostfile=CLUSTER",
        ));
    };
    let mut all: Vec<String> = Vec::new();
    for word in expanded(hosts)? {
        let host = word.rsplit_once('@').map_or(word.as_str(), |(_, host)| host);
        let Some(target) = known(data, host) else {
            return Err(Error::not_found(format!("{host} is no host that is known here")).hint(
                format!("tpu cms cluster add --id={host}, with --user NAME for the account"),
            ));
        };
        let name = target.name.as_str().to_owned();
        if !all.contains(&name) {
            all.push(name);
        }
    }
    Ok(all)
}

/// The queue of what a user calls so: of what waits, else of the newest job.
fn queue_of<'a>(data: &'a Data, user: &UserName, name: &str) -> Option<&'a QueueName> {
    let mut entries = data.queues().entries.iter().filter(|entry| entry.user == *user);
    let waits = entries.find(|entry| entry.spec.name.as_deref() == Some(name));
    let jobs = data.user(user).map(User::jobs).unwrap_or_default();
    let newest = || jobs.iter().rev().find(|job| job.name() == Some(name))?.spec.as_ref();
    waits.map(|entry| &entry.queue).or_else(|| newest()?.queue.as_ref())
}

/// The jobs of a queue that are meant: by name, and by state.
fn called(app: &App, words: &CmsQueueWords) -> Result<(UserName, Vec<String>), Error> {
    let data = app.ctx()?.data()?;
    let user = app.user(&data, None)?;
    let queue = named(words.queue.as_deref());
    edit::find(&data, &queue)?;
    let mut names = if let Some(names) = &words.name {
        let names = expanded(names)?;
        for name in &names {
            if let Some(other) = queue_of(&data, &user, name).filter(|other| **other != queue) {
                return Err(Error::refused(format!("{name} is a job of queue {other}"))
                    .hint(format!("as in: --queue={other}")));
            }
        }
        names
    } else {
        let jobs = data.user(&user).map(User::jobs).unwrap_or_default();
        let is_meant = |job: &&Job| {
            job.spec.as_ref().and_then(|spec| spec.queue.as_ref()) == Some(&queue)
                && job.child.is_none()
                && !job.status.is_live()
                // What has ended well is reset where that very state is named.
                && (words.status.is_some() || job.status != Status::Finished)
        };
        let names = jobs.iter().filter(is_meant).filter_map(|job| job.name().map(str::to_owned));
        let mut names: Vec<String> = names.collect();
        names.dedup();
        names
    };
    if let Some(word) = &words.status {
        let states = ImportedState::OF_CLOUDMESH;
        let Some((_, state)) = states.iter().find(|(known, _)| known == word) else {
            let hint = did_you_mean(word, states.iter().map(|(known, _)| *known));
            return Err(Error::usage(format!("'{word}' is no status"))
                .hint(hint.unwrap_or_else(|| "as in --status=end".to_owned())));
        };
        names.retain(|name| {
            let job = ready::newest(&data, &user, name).ok().flatten();
            job.is_some_and(|job| jobs::is_in(*state, &job.status))
        });
    }
    Ok((user, names))
}
