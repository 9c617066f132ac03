//! What people know jobs by, in questions and lists: their names, else what they run.

use std::ffi::OsString;

use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::JobId;
use tpu_core::model::job::Job;
use tpu_core::model::title::{self, Runs};
use tpu_core::text::{counted, escape};

use super::called::WaitingCalled;

/// What the command of a job runs, with the configs that it was given; `None` where it is a script form's.
pub(crate) fn runs(job: &Job) -> Option<Runs> {
    let command = job.command.as_deref()?;
    let configs = shlex::split(&job.extra_configs).unwrap_or_default();
    runs_with(command, &configs)
}

/// The same of what waits to become a job.
fn would_run(entry: &QueueEntry) -> Option<Runs> {
    let configs = entry.spec.configs.iter().map(|(key, value)| format!("{key}={value}"));
    let configs: Vec<String> = configs.chain(entry.spec.words.iter().cloned()).collect();
    runs_with(entry.spec.command.as_deref()?, &configs)
}

/// What a command runs, with configs behind it.
pub(crate) fn runs_with(command: &[OsString], configs: &[String]) -> Option<Runs> {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    Runs::of(words.iter().map(AsRef::as_ref).chain(configs.iter().map(String::as_str)))
}

/// Jobs for people, with their names: `alice/7 (llama)`; of a job without one what it runs: `alice/8 (train.py lr=0.1)`.
pub fn in_words(data: &Data, jobs: &[JobId]) -> Vec<String> {
    let name = |id: &JobId| match data.job(id) {
        Some(job) => job.name().map(str::to_owned),
        None => data.queues().entry(id)?.spec.name.clone(),
    };
    let runs_of = |id: &JobId| match data.job(id) {
        Some(job) => runs(job),
        None => would_run(data.queues().entry(id)?),
    };
    let all: Vec<Option<Runs>> = jobs.iter().map(runs_of).collect();
    let mut titles = title::titles(all.iter().flatten().map(|runs| (runs, true))).into_iter();
    let each = jobs.iter().zip(&all).map(|(id, runs)| {
        let title = runs.as_ref().and_then(|_| titles.next());
        match name(id).or(title) {
            Some(known) => format!("{id} ({})", escape(&known)),
            None => id.to_string(),
        }
    });
    each.collect()
}

/// The same of what waits in a queue: `3 members of alice/12 (scan)` where that is a part of a group or all of it.
pub fn waiting_in_words(data: &Data, waiting: &[WaitingCalled]) -> Vec<String> {
    let ids: Vec<JobId> = waiting.iter().map(|called| called.id.clone()).collect();
    let count = |called: &WaitingCalled| {
        let array =
            || data.queues().entry(&called.id)?.spec.array.as_ref().map(|all| all.indexes().len());
        called.members.as_ref().map(Vec::len).or_else(array)
    };
    let each = in_words(data, &ids).into_iter().zip(waiting);
    let each = each.map(|(known, called)| match (called.members.as_deref(), count(called)) {
        (Some([index]), _) => {
            known.replacen(&called.id.to_string(), &format!("{}_{index}", called.id), 1)
        }
        (_, Some(many)) => format!("{} of {known}", counted(many, "member")),
        (_, None) => known,
    });
    each.collect()
}

/// A job with its name, if it has one: `alice/7 (llama)`.
pub fn with_name(data: &Data, id: &JobId) -> String {
    match data.job(id).and_then(Job::name) {
        Some(name) => format!("{id} ({})", escape(name)),
        None => id.to_string(),
    }
}
