//! What a job was started with, for one that is to be like it with some changes.

use crate::model::data::User;
use crate::model::entry::Priority;
use crate::model::ids::{JobId, QueueName};
use crate::model::spec::{JobSpec, Staged};
use crate::model::sweep::Sweep;
use crate::model::unbegun;

use super::ctx::{job_of, user_of};
use super::{Ctx, Error};

/// What a job was to do and how it waited, without what is its own alone: its name, its place in a group, the copy of its
/// code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Precedent {
    /// What it was to do. Arguments that somebody has given as configs are configs again, under their short names.
    pub spec: JobSpec,
    /// What differs between its members, if it is a group.
    pub sweep: Option<Sweep>,
    /// The queue in which it waits and how urgent it is there, if it has not begun.
    pub waits: Option<(QueueName, Priority)>,
}

/// What a job was started with, whether it waits, runs or has ended.
pub fn of(ctx: &Ctx, id: &JobId) -> Result<Precedent, Error> {
    let data = ctx.data()?;
    let user = user_of(&data, &id.user)?;
    let waiting = data.queues().entry(id).cloned();
    let entry = match waiting {
        Some(entry) => Some(entry),
        None => unbegun::entry(job_of(&data, id)?),
    };
    let (spec, sweep, waits) = match entry {
        Some(entry) => (entry.spec, entry.sweep, Some((entry.queue, entry.priority))),
        None => (unbegun::spec_of(job_of(&data, id)?), None, None),
    };
    if spec.staged.as_ref().is_some_and(Staged::is_clone) {
        return Err(Error::refused(format!("{id} has its code from a repository"))
            .hint("tpu submit FILE starts its file again, changed there"));
    }
    if sweep.as_ref().is_some_and(|sweep| !sweep.filled().is_empty()) {
        return Err(Error::refused(format!("the values of {id} are filled into its command"))
            .hint("tpu submit FILE starts its file again, changed there"));
    }
    let (mut configs, words) = as_typed(user, &spec.words);
    configs.splice(0..0, spec.configs.iter().cloned());
    let array = spec.array.clone().filter(|_| sweep.is_none());
    let own = JobSpec { name: None, member: None, chosen: None, staged: None, queue: None, ..spec };
    Ok(Precedent { spec: JobSpec { array, configs, words, ..own }, sweep, waits })
}

/// Arguments as configs, under the user's short names, up to the first that is none; and the rest, which stays as it is.
fn as_typed(user: &User, words: &[String]) -> (Vec<(String, String)>, Vec<String>) {
    let config = |word: &String| {
        let (full, value) = word.strip_prefix("--")?.split_once('=')?;
        if !full.starts_with("config.") && full != "config" {
            return None;
        }
        let known = user.config_aliases.iter().find(|(_, stands_for)| stands_for == full);
        Some((known.map_or(full, |(alias, _)| alias).to_owned(), value.to_owned()))
    };
    let configs: Vec<_> = words.iter().map_while(config).collect();
    let rest = words.iter().skip(configs.len()).cloned().collect();
    (configs, rest)
}
