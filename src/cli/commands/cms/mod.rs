//! `cms`: what somebody types who comes from Cloudmesh. Each command calls what the command of ours calls that does the
//! same; what needs a queue of jobs says so, and what to type instead.

mod cluster;
mod job;
mod jobs;
pub(in crate::cli) mod manual;
mod template;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{
    Cms, CmsClusterStep, CmsJobStep, CmsPart, CmsQueue, CmsQueueStep, CmsQueueWords,
};
use crate::model::ids::UserName;
use crate::ops::Error;

/// What a command of it does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum CmsDoes {
    /// It looks.
    Look,
    /// It changes what is kept.
    Change,
    /// It stops jobs.
    Kill,
}

/// What a command does, and whether something is lost by it.
pub(in crate::cli) fn nature(args: &Cms) -> (CmsDoes, bool) {
    match &args.part {
        CmsPart::Job(job) => match &job.step {
            Some(CmsJobStep::Kill(_)) => (CmsDoes::Kill, true),
            Some(CmsJobStep::Template { force, .. }) => (CmsDoes::Change, *force),
            Some(
                CmsJobStep::Set { .. }
                | CmsJobStep::Hosts { .. }
                | CmsJobStep::Scheduler { policy: Some(_), .. },
            ) => (CmsDoes::Change, false),
            _ => (CmsDoes::Look, false),
        },
        CmsPart::Set { variable } if variable.contains('=') => (CmsDoes::Change, false),
        CmsPart::Set { .. } | CmsPart::Queue(_) => (CmsDoes::Look, false),
        CmsPart::Cluster(cluster) => match &cluster.step {
            CmsClusterStep::Create(_) | CmsClusterStep::List(_) => (CmsDoes::Look, false),
            CmsClusterStep::Delete(_) => (CmsDoes::Change, true),
            _ => (CmsDoes::Change, false),
        },
    }
}

/// `cms …`.
pub(in crate::cli) fn run(app: &App, args: &Cms) -> Outcome {
    match &args.part {
        CmsPart::Set { variable } => job::variable(app, variable),
        CmsPart::Job(args) => match &args.step {
            _ if args.service.is_some() => Err(no_service()),
            Some(step) => job::run(app, step),
            None => Ok(manual::page()),
        },
        CmsPart::Queue(args) => queue(app, args),
        CmsPart::Cluster(args) => cluster::run(app, &args.step),
    }
}

fn queue(app: &App, args: &CmsQueue) -> Outcome {
    match &args.step {
        _ if args.service.is_some() => Err(no_service()),
        None => Ok(manual::page()),
        Some(CmsQueueStep::Info(_) | CmsQueueStep::Refresh(_)) => jobs::list(app, None, None),
        Some(CmsQueueStep::Create(_)) => Err(needs_queue("a queue cannot be made", RUN)),
        Some(CmsQueueStep::Add(words)) => Err(needs_queue("no job can be added", &instead(words))),
        Some(CmsQueueStep::Run(_)) => Err(needs_queue("there is nothing to run", RUN)),
        Some(CmsQueueStep::Reset(_)) => Err(needs_queue("no job can be reset", RERUN)),
        Some(CmsQueueStep::Delete(_)) => Err(needs_queue("no job can be deleted", DELETE)),
    }
}

/// The way to start a job without a queue.
const RUN: &str = "start a job now, on a host or a pool with room: tpu run POOL -- COMMAND; --wait waits for room";
/// The way to start one again.
const RERUN: &str = "start a job of yours again: tpu rerun NAME";
/// The way to be rid of one.
const DELETE: &str = "stop a job: tpu kill NAME; take the records of ended ones away: tpu clean";

/// The command of ours that starts a job as this one would have been.
fn instead(words: &CmsQueueWords) -> String {
    let (Some(name), Some(command)) = (&words.name, &words.command) else { return RUN.to_owned() };
    let host = words.host.as_deref().unwrap_or("POOL");
    format!("start it now: tpu run {host} --name {name} -- {command}")
}

/// What a command needs that there is not.
fn needs_queue(what: &str, instead: &str) -> Error {
    Error::usage(format!("{what}: this version of tpu has no queue that keeps jobs"))
        .hint(instead.to_owned())
}

fn no_service() -> Error {
    Error::usage("this version of tpu has no REST service")
        .hint("scripts read the documents of --json: tpu check --json")
}

/// Whose jobset is meant where `--user` is the account on a machine.
fn user_at_work(app: &App) -> Result<Option<UserName>, Error> {
    let data = app.ctx()?.data()?;
    Ok(app.requester()?.user_at_work(&data).ok().flatten())
}
