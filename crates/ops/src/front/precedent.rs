//! What a job was started with, or what a file says of one, for one that is to be like it with some changes.

use tpu_core::model::data::{Data, User};
use tpu_core::model::entry::Priority;
use tpu_core::model::ids::{JobId, QueueName, UserName};
use tpu_core::model::spec::{JobSpec, Staged, TargetRequest};
use tpu_core::model::sweep::Sweep;
use tpu_core::model::unbegun;
use tpu_jobfile::own::{self, Given, OwnWaits};
use tpu_jobfile::yaml::Yaml;

use super::jobfile;
use super::jobfile::ready::{self, BesideFile, JobFile};
use crate::act::successor::stored_args;
use crate::base::ctx::{job_of, user_of};
use crate::base::environment;
use crate::base::names;
use crate::observe::log_files;
use crate::waiting::request::Begins;
use crate::{Ctx, Error};

/// What a job was to do and how it waited, without what is its own alone: its place in a group, the copy of its code, and its
/// name as long as no other job could have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Precedent {
    /// Its target, as people call that.
    pub target: String,
    /// What it was to do.
    pub spec: JobSpec,
    /// Its configs as one would type them: also those that stand among its arguments, under their short names.
    pub configs: Vec<(String, String)>,
    /// Its other arguments, which arrive behind the configs as they stand.
    pub words: Vec<String>,
    /// What differs between its members, if it is a group.
    pub sweep: Option<Sweep>,
    /// The queue in which it waits and how urgent it is there, if it has not begun.
    pub waits: Option<(QueueName, Priority)>,
}

/// What a job was started with, whether it waits, runs or has ended. What cannot be said again in a form is refused.
pub fn of(ctx: &Ctx, id: &JobId) -> Result<Precedent, Error> {
    let data = ctx.data()?;
    let user = user_of(&data, &id.user)?;
    let waiting = data.queues().entry(id).cloned();
    let entry = match waiting {
        Some(entry) => Some(entry),
        None => unbegun::entry(job_of(&data, id)?),
    };
    let (spec, sweep, waits) = if let Some(entry) = entry {
        (entry.spec, entry.sweep, Some((entry.queue, entry.priority)))
    } else {
        let job = job_of(&data, id)?;
        // Those that follow from a lineage are that lineage's own.
        (JobSpec { words: stored_args(job), ..unbegun::spec_of(job) }, None, None)
    };
    let from_a_file = |what: String| {
        Error::refused(what).hint("tpu submit FILE starts its file again, changed there")
    };
    if spec.staged.as_ref().is_some_and(Staged::is_clone) {
        return Err(from_a_file(format!("{id} has its code from a repository")));
    }
    let name = spec.name.clone().filter(|name| names::is_free(&data, user, name));
    let mut spec = JobSpec { name, member: None, chosen: None, staged: None, queue: None, ..spec };
    // What was given by name (`--env`) is for that job and its successors.
    if let Ok(Some(environment)) = environment::stored(ctx, id) {
        spec.execution.secrets.retain(|name| environment.given.get(name).is_none());
    }
    typable((&data, user), &id.to_string(), spec, sweep, waits).map_err(from_a_file)
}

/// What a job was started with, as a job of a file, and what of it no file can say.
pub fn as_file(ctx: &Ctx, id: &JobId) -> Result<(Yaml, Vec<String>), Error> {
    let Precedent { target, spec, configs, words, sweep, waits } = of(ctx, id)?;
    let data = ctx.data()?;
    let kind = data.resolve_target(&target).map(|target| target.kind.as_str().to_owned());
    let named = match spec.target {
        TargetRequest::Named(_) => TargetRequest::Named(target),
        any @ TargetRequest::Any(_) => any,
    };
    // Short names are one user's own: whoever reads the file may be another.
    let user = user_of(&data, &id.user)?;
    let long = |(name, value): (String, String)| {
        let known = user.config_aliases.iter().find(|(alias, _)| *alias == name);
        (known.map_or(name, |(_, full)| full.clone()), value)
    };
    let configs = configs.into_iter().map(long).collect();
    // A name that is in use is told to others as a tag.
    let entry = data.queues().entry(id).and_then(|entry| entry.spec.name.clone());
    let name = entry.or_else(|| data.job(id)?.name().map(str::to_owned));
    let tag = spec.tag.clone().or(name.filter(|_| spec.name.is_none()));
    let spec = JobSpec { target: named, configs, words, tag, ..spec };
    let mut said = own::of_spec(&spec, &kind.unwrap_or_default());
    let (queue, priority) = waits.unzip();
    // A request says where its code is, also where that is where it mostly is.
    said.job.dir = spec.dir;
    said.job.sweep = sweep;
    said.job.waits = OwnWaits {
        queue: queue.filter(|queue| *queue != QueueName::usual()).map(|queue| queue.to_string()),
        priority: priority.filter(|priority| *priority != Priority::default()),
        ..OwnWaits::default()
    };
    log_files::documented(said)
}

/// What a file says of its job, read as `tpu submit` would read it. What a form could not show and start
/// as it is, is refused.
pub fn of_file(ctx: &Ctx, user: &UserName, file: &str) -> Result<Precedent, Error> {
    let as_it_is = |what: String| {
        Error::refused(what).hint(format!("put it into a queue as it is: tpu submit {file}"))
    };
    let path = ctx.env.cwd.join(file);
    let documents = jobfile::documents(ctx, &path, file)?;
    let kinds = jobfile::kind_words(&ctx.kinds);
    let jobs = ready::jobs(ctx, documents, (file, &Given { set: &[], kinds: &kinds }))?;
    let [job] = jobs.as_slice() else {
        return Err(as_it_is(format!("{file} holds {} jobs, and a form is about one", jobs.len())));
    };
    let data = ctx.data()?;
    let read = JobFile {
        ctx,
        data: &data,
        user,
        beside: &BesideFile { code: Some(ctx.env.cwd.clone()), ..BesideFile::default() },
        shown: file,
        dir: path.parent().unwrap_or(&path),
        is_sent: false,
    };
    let has_no_field = [
        (job.order.is_some(), "makes a target for its job"),
        (read.repository(job).is_some(), "has its code in a repository"),
        (!job.waits.after.is_empty(), "says which jobs its own comes after"),
        (job.waits.is_held, "holds its job"),
    ];
    if let Some((_, what)) = has_no_field.iter().find(|(is_so, _)| *is_so) {
        return Err(as_it_is(format!("{file} {what}, and the form has no field for that")));
    }
    let spec = read.request(job, (true, Begins::InTurn)).map_err(|e| read.at(job.place, e))?.spec;
    // As `tpu submit` reads it, any of several targets may be meant: it waits for one.
    let queue = job.waits.queue.clone().map_or_else(QueueName::usual, QueueName::new);
    let waits = Some((queue, job.waits.priority.unwrap_or_default()));
    let user = user_of(&data, user)?;
    typable((&data, user), file, spec, job.sweep.clone(), waits).map_err(as_it_is)
}

/// What is said of `what`, as somebody would type it; why that cannot be typed, where it cannot.
fn typable(
    (data, user): (&Data, &User),
    what: &str,
    spec: JobSpec,
    sweep: Option<Sweep>,
    waits: Option<(QueueName, Priority)>,
) -> Result<Precedent, String> {
    if sweep.as_ref().is_some_and(|sweep| !sweep.filled().is_empty()) {
        return Err(format!("the values of {what} are filled into its command"));
    }
    if sweep.as_ref().is_some_and(|sweep| !is_typable(sweep, &spec.configs)) {
        return Err(format!("the values of {what} cannot be typed: they hold commas"));
    }
    let (among, words) = as_typed(user, &spec.words);
    let configs = spec.configs.iter().cloned().chain(among).collect();
    Ok(Precedent { target: called(data, &spec), spec, configs, words, sweep, waits })
}

/// The target that is asked for, as people call it.
fn called(data: &Data, spec: &JobSpec) -> String {
    match &spec.target {
        TargetRequest::Named(name) => match data.resolve_target(name) {
            Some(target) => data.target_label(&target.name),
            None => name.clone(),
        },
        TargetRequest::Any(any_of) => any_of.in_words(),
    }
}

/// Whether these values, typed again, are the same sweep.
fn is_typable(sweep: &Sweep, configs: &[(String, String)]) -> bool {
    let axes = sweep.axes().iter().map(|(key, values)| (key.clone(), values.join(",")));
    let mut typed: Vec<(String, String)> = configs.iter().cloned().chain(axes).collect();
    let again = Sweep::take(&mut typed, sweep.is_zipped());
    again.is_ok_and(|again| again == *sweep) && typed == configs
}

/// The arguments that are configs, under the user's short names, and the others.
fn as_typed(user: &User, words: &[String]) -> (Vec<(String, String)>, Vec<String>) {
    let config = |word: &String| {
        let (full, value) = word.strip_prefix("--")?.split_once('=')?;
        if !full.starts_with("config.") && full != "config" {
            return None;
        }
        let known = user.config_aliases.iter().find(|(_, stands_for)| stands_for == full);
        Some((known.map_or(full, |(alias, _)| alias).to_owned(), value.to_owned()))
    };
    let is_other = |word: &&String| config(word).is_none();
    (words.iter().filter_map(config).collect(), words.iter().filter(is_other).cloned().collect())
}
