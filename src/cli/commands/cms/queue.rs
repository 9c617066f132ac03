//! `tpu cms queue …`: Cloudmesh's queues are queues here, and its schedulers are what is said of one.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{CmsQueue, CmsQueueJobs, CmsQueueRun, CmsQueueStep, CmsQueueWords};
use crate::cli::print::Output;
use tpu_ops::front::cloudmesh::list::{CmsChoice, list};
use tpu_ops::front::cloudmesh::queues::{self, CmsNewJobs, CmsSchedule};
use tpu_wire::queue::{QueueChangedDocument, QueuePart};

use super::changes::{printed, taken_away};
use super::{listed, manual};

/// `tpu cms queue …`.
pub(super) fn run(app: &App, args: &CmsQueue) -> Outcome {
    match &args.step {
        None => Ok(manual::page()),
        Some(CmsQueueStep::Info(words) | CmsQueueStep::Refresh(words)) => {
            Ok(listed(&list(&app.requester()?, chosen(words))?))
        }
        Some(CmsQueueStep::Create(words)) => {
            let made = queues::create(app.ctx()?, words.queue.as_deref())?;
            let queue = Some(QueuePart::from(&made.queue));
            Ok(Output::new(made.said, &QueueChangedDocument { queue }))
        }
        Some(CmsQueueStep::Add(jobs)) => add(app, jobs),
        Some(CmsQueueStep::Run(args)) => scheduled(app, args),
        Some(CmsQueueStep::Reset(words)) => {
            printed(queues::reset(&app.requester()?, &chosen(words))?)
        }
        Some(CmsQueueStep::Delete(words)) => {
            taken_away(app, &queues::doomed(&app.requester()?, &chosen(words))?)
        }
    }
}

fn chosen(words: &CmsQueueWords) -> CmsChoice<'_> {
    let CmsQueueWords { queue, name, status, experiment: _ } = words;
    let [queue, name, status] = [queue, name, status].map(|said| said.as_deref());
    CmsChoice { queue, name, status }
}

fn add(app: &App, words: &CmsQueueJobs) -> Outcome {
    let new = CmsNewJobs {
        queue: words.queue.as_deref(),
        experiment: words.experiment.as_deref(),
        name: &words.name,
        command: &words.command,
        host: words.host.as_deref(),
        output: words.output.as_deref(),
        status: words.status.as_deref(),
        gpu: words.gpu.as_deref(),
        shell: words.shell.as_deref(),
        pyenv: words.pyenv.as_deref(),
    };
    printed(queues::add(&app.requester()?, &new)?)
}

fn scheduled(app: &App, args: &CmsQueueRun) -> Outcome {
    let how = CmsSchedule {
        queue: args.queue.as_deref(),
        is_multi: args.scheduler == "fifo_multi",
        max_parallel: args.max_parallel,
        hosts: args.hosts.as_deref(),
        cluster: args.hostfile.as_deref(),
        has_timeout: args.timeout.is_some(),
    };
    printed(queues::schedule(&app.requester()?, &how)?)
}
