//! Cloudmesh's queues, which are queues here: its schedulers are what is said of one.

use crate::base::error::did_you_mean;
use crate::base::named::{expanded, members};
use crate::waiting::queue::edit::{self, QueueEdit};
use crate::waiting::whose::Requester;
use crate::{Ctx, Error};
use tpu_core::model::data::{Data, User};
use tpu_core::model::ids::{QueueName, UserName};
use tpu_core::model::job::{Job, Status};
use tpu_core::model::member::Array;
use tpu_core::model::queue::Queue;
use tpu_jobfile::cloudmesh::ImportedState;
use tpu_jobfile::cloudmesh::template::TemplateJob;

use super::again::{self, Doomed};
use super::changes::{self, CmsChanged, make_ready, release, whose};
use super::list::{CmsChoice, is_in};
use super::ready::{self, Adding, WhichReady};
use super::template;
use super::translate::known;

/// A queue that is there, and what is said of it.
#[derive(Clone, Debug)]
pub struct CmsQueueMade {
    /// The queue.
    pub queue: Queue,
    /// How it came to be, for people.
    pub said: String,
}

/// Makes a queue, unless it is there.
pub fn create(ctx: &Ctx, queue: Option<&str>) -> Result<CmsQueueMade, Error> {
    let name = named(queue);
    let (what, queue) = match ctx.data()?.queues().queue(&name) {
        Some(queue) => ("There is a queue", queue),
        None => ("Made the queue", edit::create(ctx, &name, &QueueEdit::default())?),
    };
    Ok(CmsQueueMade { said: format!("{what} {name}: {}.", edit::in_words(&queue)), queue })
}

fn named(queue: Option<&str>) -> QueueName {
    queue.map_or_else(QueueName::usual, QueueName::new)
}

/// Jobs that are added to a queue. Each value is one for all, or one for each name.
#[derive(Clone, Copy, Debug, Default)]
pub struct CmsNewJobs<'a> {
    /// The queue.
    pub queue: Option<&'a str>,
    /// The directory in which each has one.
    pub experiment: Option<&'a str>,
    /// Names, or patterns of names.
    pub name: &'a str,
    /// What they run.
    pub command: &'a str,
    /// The hosts on which they run.
    pub host: Option<&'a str>,
    /// The files in which a copy of their output is kept.
    pub output: Option<&'a str>,
    /// Their state.
    pub status: Option<&'a str>,
    /// The GPUs that they want.
    pub gpu: Option<&'a str>,
    /// The shell that reads their commands.
    pub shell: Option<&'a str>,
    /// The activate of a Python environment.
    pub pyenv: Option<&'a str>,
}

/// Adds jobs to a queue.
pub fn add(by: &Requester<'_>, new: &CmsNewJobs<'_>) -> Result<CmsChanged, Error> {
    let queue = named(new.queue);
    edit::find(&*by.ctx.data()?, &queue)?;
    let names = expanded(new.name)?;
    if names.len() > Array::MOST {
        return Err(Error::usage(format!("{} jobs in one request", names.len()))
            .hint(format!("at most {} at a time", Array::MOST)));
    }
    template::refuse_unsafe(new.name)?;
    template::refuse_unsafe(new.command)?;
    let experiment = new.experiment.unwrap_or("./experiment").trim_end_matches('/');
    let said = [
        ("host", new.host),
        ("output", new.output),
        ("status", new.status),
        ("gpu", new.gpu),
        ("shell", new.shell),
        ("pyenv", new.pyenv),
    ];
    let column = |(field, said): (&'static str, Option<&str>)| match said {
        // Several GPUs of one job, and no list of values.
        Some(gpus) if field == "gpu" && names.len() == 1 => {
            Ok((field, vec![Some(gpus.to_owned())]))
        }
        _ => Ok((field, template::for_each(&names, field, said)?)),
    };
    let columns = said.into_iter().map(column).collect::<Result<Vec<_>, Error>>()?;
    let job = |(place, name): (usize, &String)| {
        let mut fields = vec![
            ("command", new.command.to_owned()),
            ("directory", format!("{experiment}/{name}")),
        ];
        let value = |(field, values): &(&'static str, Vec<Option<String>>)| {
            Some((*field, values.get(place).cloned().flatten()?))
        };
        fields.extend(columns.iter().filter_map(value));
        if new.output.is_none() {
            fields.push(("output", format!("{name}.out")));
        }
        TemplateJob { name: name.clone(), fields }
    };
    let jobs = names.iter().enumerate().map(job).collect();
    changes::add(by, &template::as_read(jobs)?, queue)
}

/// How the jobs of a queue are to begin.
#[derive(Clone, Copy, Debug, Default)]
pub struct CmsSchedule<'a> {
    /// The queue.
    pub queue: Option<&'a str>,
    /// Whether they begin on any of some hosts, and not where each says.
    pub is_multi: bool,
    /// So many at a time.
    pub max_parallel: Option<u32>,
    /// Those hosts.
    pub hosts: Option<&'a str>,
    /// The cluster of those hosts, which outranks them.
    pub cluster: Option<&'a str>,
    /// Whether it is said when a silent host counts as gone.
    pub has_timeout: bool,
}

/// Lets the ready jobs of a queue begin.
pub fn schedule(by: &Requester<'_>, how: &CmsSchedule<'_>) -> Result<CmsChanged, Error> {
    let ctx = by.ctx;
    let data = ctx.data()?;
    let name = named(how.queue);
    edit::find(&data, &name)?;
    let user = whose(by, &data)?;
    let mut edit = QueueEdit::default();
    if how.is_multi {
        edit.on = Some(places(&data, how)?);
        edit.max_parallel = how.max_parallel.map(Some);
    } else {
        let Some(most) = how.max_parallel.filter(|most| *most > 0) else {
            return Err(Error::usage("how many jobs at a time?")
                .hint("as in: tpu cms queue run fifo --max_parallel=2"));
        };
        edit.on = Some(Vec::new());
        edit.max_parallel = Some(Some(most));
    }
    let mut notes = Vec::new();
    if how.has_timeout {
        notes.push("--timeout has no effect here: a job whose host is silent is unknown, and lost after proof".to_owned());
    }
    if !ctx.store.is_dry_run() {
        let queue = edit::set(ctx, &name, &edit)?;
        notes.push(format!("queue {name}: {}", edit::in_words(&queue)));
    }
    let queue = Some(name);
    let chosen = WhichReady { names: None, queue, placeless_too: how.is_multi };
    let mut done = release(by, &user, &chosen, &[])?;
    done.notes.extend(notes);
    Ok(done)
}

/// The hosts of `fifo_multi`.
fn places(data: &Data, how: &CmsSchedule<'_>) -> Result<Vec<String>, Error> {
    if let Some(cluster) = how.cluster {
        if members(data, cluster).is_empty() {
            return Err(Error::not_found(format!("no host is in the cluster {cluster}"))
                .hint(format!("tpu cms cluster add --cluster={cluster} --id=NAME")));
        }
        return Ok(vec![cluster.to_owned()]);
    }
    let Some(hosts) = how.hosts else {
        return Err(Error::usage("which hosts?").hint(
            "as in: tpu cms queue run fifo_multi --hosts=me@j1,me@j2, or --hostfile=CLUSTER",
        ));
    };
    let mut all: Vec<String> = Vec::new();
    for word in expanded(hosts)? {
        let host = word.rsplit_once('@').map_or(word.as_str(), |(_, host)| host);
        let Some(target) = known(data, host) else {
            return Err(Error::not_found(format!("{host} is not a registered host")).hint(
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

/// Makes jobs of a queue ready again.
pub fn reset(by: &Requester<'_>, of: &CmsChoice<'_>) -> Result<CmsChanged, Error> {
    let (user, names) = called(by, of)?;
    let to = Adding { user: Some(&user), queue: named(of.queue), among: &[] };
    make_ready(by.ctx, &user, &names, &[], &to)
}

/// The jobs of a queue that are to be taken away.
pub fn doomed(by: &Requester<'_>, of: &CmsChoice<'_>) -> Result<Doomed, Error> {
    if of.name.is_none() {
        return Err(Error::usage("which jobs?").hint("as in: --name='a[1-3]'"));
    }
    let (user, names) = called(by, of)?;
    again::doomed(&*by.ctx.data()?, &user, &names)
}

/// The queue of what a user calls so: of what waits, else of the live job, else of the newest.
fn queue_of<'a>(data: &'a Data, user: &UserName, name: &str) -> Option<&'a QueueName> {
    let mut entries = data.queues().entries.iter().filter(|entry| entry.user == *user);
    let waits = entries.find(|entry| entry.spec.name.as_deref() == Some(name));
    let begun = || ready::newest(data, user, name).ok()??.spec.as_deref()?.queue.as_ref();
    waits.map(|entry| &entry.queue).or_else(begun)
}

/// The jobs of a queue that are meant: by name, and by state.
fn called(by: &Requester<'_>, of: &CmsChoice<'_>) -> Result<(UserName, Vec<String>), Error> {
    let data = by.ctx.data()?;
    let user = whose(by, &data)?;
    let queue = named(of.queue);
    edit::find(&data, &queue)?;
    let mut names = if let Some(names) = of.name {
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
                && (of.status.is_some() || job.status != Status::Finished)
        };
        let names = jobs.iter().filter(is_meant).filter_map(|job| job.name().map(str::to_owned));
        let mut names: Vec<String> = names.collect();
        names.dedup();
        names
    };
    if let Some(word) = of.status {
        let states = ImportedState::OF_CLOUDMESH;
        let Some((_, state)) = states.iter().find(|(known, _)| *known == word) else {
            let hint = did_you_mean(word, states.iter().map(|(known, _)| *known));
            return Err(Error::usage(format!("'{word}' is no status"))
                .hint(hint.unwrap_or_else(|| "as in --status=end".to_owned())));
        };
        names.retain(|name| {
            let job = ready::newest(&data, &user, name).ok().flatten();
            job.is_some_and(|job| is_in(*state, &job.status))
        });
    }
    Ok((user, names))
}
