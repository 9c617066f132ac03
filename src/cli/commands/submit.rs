//! `submit`: puts a job, a group or a sweep into a queue.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{JobOptions, Run, Submit};
use crate::cli::print::Output;
use tpu_core::model::data::Data;
use tpu_core::model::entry::AfterWhich;
use tpu_core::model::ids::{QueueName, UserName};
use tpu_core::model::member::Array;
use tpu_core::model::pattern;
use tpu_core::model::spec::JobSpec;
use tpu_core::model::sweep::Sweep;
use tpu_core::text::counted;
use tpu_ops::Error;
use tpu_ops::act::launch::RunRequest;
use tpu_ops::act::launch::check::KEYS_OF_SUBMIT;
use tpu_ops::base::names;
use tpu_ops::waiting::begin::{self, QueueOutcome, QueueRequest};
use tpu_ops::waiting::queue::after;
use tpu_ops::waiting::queue::submit::Submission;
use tpu_ops::waiting::request::Begins;
use tpu_ops::waiting::words::{nobody_starts, wants};
use tpu_wire::queue::SubmittedDocument;

use super::run::{refuse_of_files, refuse_other_files, request, warn_of_aliases};
use super::waiting::priority;

/// `submit`.
pub(in crate::cli) fn submit(app: &App, args: &Submit) -> Outcome {
    refuse_of_files(&args.of_file)?;
    refuse_other_files(app, &args.words)?;
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let (pairs, words) = own_pairs(&args.words);
    let (names, name) = match args.of_job.name.clone() {
        Some(names) if pattern::is_pattern(&names) => (Some(names), None),
        name => (None, name),
    };
    let typed = Run {
        words,
        force: args.force,
        no_tag: args.no_tag,
        wait: true,
        of_type: args.of_type.clone(),
        of_job: JobOptions { name, ..args.of_job.clone() },
        array: args.array.clone(),
        of_command: args.of_command.clone(),
        ..Run::default()
    };
    let mut request = request(app, &typed, &data, Begins::InTurn)?;
    warn_of_aliases(ctx, (&data, &request.user), &args.words, &KEYS_OF_SUBMIT);
    let mut how = submission(&data, &request.user, &pairs)?;
    how.is_held = args.hold;
    how.stages_late = args.stage_late;
    how.applies = args.apply;
    how.sweep = sweep(args, &mut request)?;
    let requests =
        names.map_or_else(|| Ok(vec![request.clone()]), |names| by_names(&names, &request))?;
    // All of them differ in no more than their names and the values of some configs.
    let Some(request) = requests.first() else { return Err(Error::usage("nothing to submit")) };
    let jobs: usize = requests.iter().map(jobs_of).sum();
    let what = format!("queue {} for {}", counted(jobs, "job"), wants(&request.spec.target));
    let all: Vec<(RunRequest, Submission)> =
        requests.into_iter().map(|request| (request, how.clone())).collect();
    queue(app, &QueueRequest::of(&all), || Ok(Output::would(&what)))
}

/// Puts jobs into their queues, and says what has begun and why the rest waits; in a dry run, what `would` says.
pub(super) fn queue(
    app: &App,
    request: &QueueRequest<'_>,
    would: impl FnOnce() -> Outcome,
) -> Outcome {
    let ctx = app.ctx()?;
    let queued = match begin::queue(ctx, request)? {
        QueueOutcome::New(queued) => queued,
        QueueOutcome::Would(_) => return would(),
        QueueOutcome::Answered(_) => {
            return Err(Error::failed("a request without a key was answered before"));
        }
    };
    let started = queued.passage.begun();
    let document = SubmittedDocument::of(&queued, &started);
    let waits = queued.first_waiting(ctx)?.is_some();
    let mut notes: Vec<String> = queued.trouble.iter().cloned().collect();
    notes.extend(waits.then(|| nobody_starts(ctx)).into_iter().flatten());
    Ok(Output::new(queued.in_words(ctx)?.join("\n"), &document).notes(notes))
}

/// Takes out what only `submit` understands.
fn own_pairs(words: &[String]) -> (Vec<(String, String)>, Vec<String>) {
    let mut pairs = Vec::new();
    let mut rest = Vec::new();
    for word in words {
        match word.split_once('=') {
            Some((key, value)) if KEYS_OF_SUBMIT.contains(&key) => {
                pairs.push((key.to_owned(), value.to_owned()));
            }
            _ => rest.push(word.clone()),
        }
    }
    (pairs, rest)
}

/// How a job waits, by the keys of its own.
fn submission(
    data: &Data,
    user: &UserName,
    pairs: &[(String, String)],
) -> Result<Submission, Error> {
    let mut how = Submission::default();
    for (key, value) in pairs {
        let which = match key.as_str() {
            "queue" => {
                how.queue = QueueName::new(value.clone());
                continue;
            }
            "priority" => {
                how.priority = priority(value)?;
                continue;
            }
            "after" => AfterWhich::Ok,
            "after_any" => AfterWhich::Any,
            "after_each" => AfterWhich::Each,
            _ => AfterWhich::Not,
        };
        for word in value.split(',') {
            how.after.extend(after::called(data, user, which, word)?);
        }
    }
    Ok(how)
}

/// Makes a group of the values that differ.
fn sweep(args: &Submit, request: &mut RunRequest) -> Result<Option<Sweep>, Error> {
    if args.sweep || args.zip {
        let sweep = Sweep::take(&mut request.spec.configs, args.zip).map_err(|error| {
            Error::usage(error.to_string())
                .hint("as in: tpu submit v4-8 lr=1e-3,1e-4 config.seed=0-4 --sweep")
        })?;
        let last = sweep.members().saturating_sub(1);
        request.spec.array = group(&format!("0-{last}"), args.at_once)?;
        return Ok(Some(sweep));
    }
    if let Some(at_once) = args.at_once {
        let Some(array) = &request.spec.array else {
            return Err(Error::usage("--at-once is about a group")
                .hint("as in: tpu submit v4-8 --array 0-9 --at-once 2"));
        };
        request.spec.array = group(&array.to_string(), Some(at_once))?;
    }
    Ok(None)
}

fn group(members: &str, at_once: Option<u32>) -> Result<Option<Array>, Error> {
    let plain = members.split('%').next().unwrap_or_default();
    let text = at_once.map_or_else(|| members.to_owned(), |most| format!("{plain}%{most}"));
    let bad = |error: pattern::BadPattern| {
        Error::usage(format!("{text}: {error}")).hint("as in --array 0-9 --at-once 2")
    };
    Array::parse(&text).map(Some).map_err(bad)
}

pub(super) fn jobs_of(request: &RunRequest) -> usize {
    request.spec.array.as_ref().map_or(1, |array| array.indexes().len())
}

/// One request for each name of a pattern; configs with as many values are given out one by one.
fn by_names(typed: &str, request: &RunRequest) -> Result<Vec<RunRequest>, Error> {
    let bad = |what: &str, error: &dyn std::fmt::Display| {
        Error::usage(format!("{what}: {error}"))
            .hint("as in: tpu submit v4-8 --name 'z[0-1]' lr=0.1,0.01")
    };
    let names = pattern::names(typed).map_err(|error| bad(&format!("--name {typed}"), &error))?;
    for name in &names {
        names::refuse_as_job(name)?;
    }
    let mut requests: Vec<RunRequest> = names
        .iter()
        .map(|name| {
            let spec =
                JobSpec { name: Some(name.clone()), configs: Vec::new(), ..request.spec.clone() };
            RunRequest { spec, ..request.clone() }
        })
        .collect();
    for (key, value) in &request.spec.configs {
        let values = pattern::values(names.len(), value)
            .map_err(|error| bad(&format!("{key}={value}"), &error))?;
        for (request, value) in requests.iter_mut().zip(values) {
            request.spec.configs.push((key.clone(), value));
        }
    }
    Ok(requests)
}
