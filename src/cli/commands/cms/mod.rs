//! `cms`: what somebody types who comes from Cloudmesh. Each command calls what the command of ours calls that does the
//! same.

mod changes;
mod cluster;
mod job;
pub(in crate::cli) mod manual;
mod queue;
pub(in crate::cli) mod service;
mod template;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{Cms, CmsClusterStep, CmsJobStep, CmsPart, CmsQueueStep};
use crate::cli::print::Output;
use crate::cli::print::block::painted;
use tpu_core::model::ids::UserName;
use tpu_ops::Error;
use tpu_ops::front::cloudmesh::list::CmsList;
use tpu_wire::cloudmesh::CmsJobsDocument;

/// What a command of it does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum CmsDoes {
    /// It looks.
    Look,
    /// It changes what is kept.
    Change,
    /// It starts jobs, or stops them.
    Act,
}

/// What a command does, and whether something is lost by it.
pub(in crate::cli) fn nature(args: &Cms) -> (CmsDoes, bool) {
    match &args.part {
        CmsPart::Job(job) => match &job.step {
            Some(CmsJobStep::Kill(_) | CmsJobStep::Delete(_)) => (CmsDoes::Act, true),
            Some(CmsJobStep::Run(_)) => (CmsDoes::Act, false),
            Some(CmsJobStep::Template { force, .. }) => (CmsDoes::Change, *force),
            Some(
                CmsJobStep::Set { .. }
                | CmsJobStep::Add { .. }
                | CmsJobStep::Reset(_)
                | CmsJobStep::Hosts { .. }
                | CmsJobStep::Scheduler { policy: Some(_), .. },
            ) => (CmsDoes::Change, false),
            _ => (CmsDoes::Look, false),
        },
        CmsPart::Set { variable } if variable.contains('=') => (CmsDoes::Change, false),
        CmsPart::Set { .. } => (CmsDoes::Look, false),
        CmsPart::Queue(queue) => match &queue.step {
            Some(CmsQueueStep::Delete(_)) => (CmsDoes::Act, true),
            Some(CmsQueueStep::Run(_)) => (CmsDoes::Act, false),
            Some(CmsQueueStep::Create(_) | CmsQueueStep::Add(_) | CmsQueueStep::Reset(_)) => {
                (CmsDoes::Change, false)
            }
            None | Some(CmsQueueStep::Info(_) | CmsQueueStep::Refresh(_)) => (CmsDoes::Look, false),
        },
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
            Some(step) => job::run(app, step),
            None => Ok(manual::page()),
        },
        CmsPart::Queue(args) => queue::run(app, args),
        CmsPart::Cluster(args) => cluster::run(app, &args.step),
    }
}

/// Whose jobset is meant where `--user` is the account on a machine.
fn user_at_work(app: &App) -> Result<Option<UserName>, Error> {
    let data = app.ctx()?.data()?;
    Ok(app.requester()?.user_at_work(&data).ok().flatten())
}

/// Jobs as Cloudmesh lists them.
fn listed(list: &CmsList) -> Output {
    Output::new(list.in_words(painted), &CmsJobsDocument::from(list)).notes(list.notes())
}
