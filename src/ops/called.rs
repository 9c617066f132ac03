//! By what jobs are called: a number, the name that somebody gave one, a pattern of names. A name means the newest
//! attempt, among the jobs of one user: whose it is is decided before (`ops::whose`), as it is for a number.

use std::fmt;

use crate::model::data::{Data, User};
use crate::model::ids::JobNumber;
use crate::model::job::Job;
use crate::model::lineage::Links;
use crate::model::pattern;

use super::Error;
use super::error::did_you_mean;

/// A word that calls jobs of one user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobWord {
    /// `7`: this very attempt.
    Number(JobNumber),
    /// `llama`.
    Name(String),
    /// `job[0-5]`: those of these names that jobs have.
    Names(String, Vec<String>),
    /// `name:llama`: the name, or else part of it.
    Part(String),
}

impl fmt::Display for JobWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(word) | Self::Names(word, _) => f.write_str(word),
            Self::Part(part) => write!(f, "name:{part}"),
        }
    }
}

impl JobWord {
    /// What a word calls that can be nothing else than a job; `None` for any other, also for a bare name.
    pub fn explicit(word: &str) -> Option<Self> {
        let part = word.strip_prefix("name:")?;
        (!part.is_empty()).then(|| Self::Part(part.to_owned()))
    }

    /// What a word calls that stands where a job is named, and is nothing else that is known.
    pub fn read(word: &str) -> Result<Self, Error> {
        if let Some(explicit) = Self::explicit(word) {
            return Ok(explicit);
        }
        if !pattern::is_pattern(word) {
            return Ok(Self::Name(word.to_owned()));
        }
        match pattern::names(word) {
            Ok(names) => Ok(Self::Names(word.to_owned(), names)),
            Err(error) => Err(Error::usage(format!("'{word}': {error}"))
                .hint("names are as in job[0-3,7]; `tpu check` lists the jobs")),
        }
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<JobNumber> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Name(_) | Self::Names(..) | Self::Part(_) => None,
        }
    }

    /// Whether a user has a job that is called so.
    pub fn is_of(&self, user: &User) -> bool {
        match self {
            Self::Number(number) => user.job(*number).is_some(),
            Self::Name(_) | Self::Names(..) | Self::Part(_) => {
                user.jobs().iter().filter_map(name_of).any(|name| self.could_be(name))
            }
        }
    }

    /// The attempts of a user that it calls: of a number that very one, of each name the newest.
    pub fn attempts(&self, data: &Data, user: &User) -> Result<Vec<JobNumber>, Error> {
        if let Self::Number(number) = self {
            let id = crate::model::ids::JobId::new(user.name.clone(), *number);
            return super::ctx::job_of(data, &id).map(|job| vec![job.windows_id]);
        }
        let mut names: Vec<&str> = user.jobs().iter().filter_map(name_of).collect();
        names.sort_unstable();
        names.dedup();
        match self {
            Self::Part(part) if names.contains(&part.as_str()) => names.retain(|name| name == part),
            _ => names.retain(|name| self.could_be(name)),
        }
        if names.is_empty() {
            return Err(self.unknown(data, Some(user)));
        }
        let links = Links::of(user);
        names.into_iter().map(|name| newest(user, &links, name)).collect()
    }

    fn could_be(&self, name: &str) -> bool {
        match self {
            Self::Number(_) => false,
            Self::Name(wanted) => name == wanted,
            Self::Names(_, wanted) => wanted.iter().any(|wanted| wanted == name),
            Self::Part(part) => name.contains(part.as_str()),
        }
    }

    /// The error where no job is called so: of this user, or of anybody.
    pub fn unknown(&self, data: &Data, user: Option<&User>) -> Error {
        let users = data.users().iter().map(|user| user.name.as_str());
        let jobs = user.into_iter().flat_map(User::jobs).filter_map(name_of);
        let word = self.to_string();
        let near = did_you_mean(&word, users.chain(jobs));
        let hint = near.unwrap_or_else(|| {
            "`tpu list-users` lists the users, `tpu check` the windows".to_owned()
        });
        Error::not_found(format!("'{word}' is no user, window, name of a job or selector"))
            .hint(hint)
    }
}

/// The name that a job was given.
pub fn name_of(job: &Job) -> Option<&str> {
    job.spec.as_ref()?.name.as_deref()
}

/// The leaves of the lineages that have a name, the newest last.
pub(super) fn leaves_called(user: &User, links: &Links<'_>, name: &str) -> Vec<JobNumber> {
    let called = user.jobs().iter().filter(|job| name_of(job) == Some(name));
    let leaf = |job: &Job| links.lineage(job.windows_id)?.leaf();
    let mut leaves: Vec<JobNumber> = called.filter_map(leaf).collect();
    leaves.sort_unstable();
    leaves.dedup();
    leaves
}

/// The newest attempt of a name. Where an older one of that name is at work too, nobody can tell which is meant.
fn newest(user: &User, links: &Links<'_>, name: &str) -> Result<JobNumber, Error> {
    let leaves = leaves_called(user, links, name);
    let is_live = |number: &JobNumber| user.job(*number).is_some_and(|job| job.status.is_live());
    let Some((newest, older)) = leaves.split_last() else {
        return Err(Error::not_found(format!("{} has no job called '{name}'", user.name)));
    };
    match older.iter().find(|number| is_live(number)) {
        None => Ok(*newest),
        Some(other) => {
            let owner = &user.name;
            Err(Error::usage(format!(
                "{owner}/{other} and {owner}/{newest} are both called '{name}'"
            ))
            .hint("name the one that is meant by its number"))
        }
    }
}
