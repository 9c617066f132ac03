//! What a job was started with, for one that is to be like it with some changes.

use crate::model::data::User;
use crate::model::entry::Priority;
use crate::model::ids::{JobId, QueueName};
use crate::model::spec::{JobSpec, Staged};
use crate::model::sweep::Sweep;
use crate::model::unbegun;

use super::ctx::{job_of, user_of};
use super::resume::stored_args;
use super::{Ctx, Error};

/// What a job was to do and how it waited, without what is its own alone: its name, its place in a group, the copy of its
/// code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Precedent {
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
    if sweep.as_ref().is_some_and(|sweep| !sweep.filled().is_empty()) {
        return Err(from_a_file(format!("the values of {id} are filled into its command")));
    }
    if sweep.as_ref().is_some_and(|sweep| !is_typable(sweep, &spec.configs)) {
        return Err(from_a_file(format!("the values of {id} cannot be typed: they hold commas")));
    }
    let (among, words) = as_typed(user, &spec.words);
    let configs = spec.configs.iter().cloned().chain(among).collect();
    let spec =
        JobSpec { name: None, member: None, chosen: None, staged: None, queue: None, ..spec };
    Ok(Precedent { spec, configs, words, sweep, waits })
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
