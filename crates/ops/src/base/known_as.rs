//! What people know jobs by, in questions and lists: their names, else what they run.

use std::ffi::OsString;

use tpu_core::model::data::Data;
use tpu_core::model::ids::JobId;
use tpu_core::model::job::Job;
use tpu_core::model::title::{self, Runs};
use tpu_core::text::escape;

/// What the command of a job runs, with the configs that it was given; `None` where it is a script form's.
pub(crate) fn runs(job: &Job) -> Option<Runs> {
    let command = job.command.as_deref()?;
    let configs = shlex::split(&job.extra_configs).unwrap_or_default();
    runs_with(command, &configs)
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
    let all: Vec<Option<Runs>> = jobs.iter().map(|id| runs(data.job(id)?)).collect();
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

/// A job with its name, if it has one: `alice/7 (llama)`.
pub fn with_name(data: &Data, id: &JobId) -> String {
    match data.job(id).and_then(Job::name) {
        Some(name) => format!("{id} ({})", escape(name)),
        None => id.to_string(),
    }
}
