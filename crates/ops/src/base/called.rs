//! By what jobs are called: a number, that of a group or of a member of one, the name that somebody gave one, a
//! pattern of these; or as an engine calls it. All but the number of an attempt and its name there mean the newest
//! attempt, among the jobs of one user: whose it is is decided before (`ops::waiting::whose`).
//!
//! A name means the only job of that name that is live or waits, else the newest. `name:X` means all of that name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tpu_core::model::data::{Data, User};
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::{JobId, JobNumber, UserName};
use tpu_core::model::job::Job;
use tpu_core::model::lineage::Links;
use tpu_core::model::member::Member;
use tpu_core::model::pattern;
use tpu_core::text::counted;

use super::error::did_you_mean;
use crate::Error;

/// A word that calls jobs of one user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobWord {
    /// `7`: this very attempt; or, where no attempt has the number, the members of the group 7.
    Number(JobNumber),
    /// `12_3`, `12_[0-3]`: those of these members that there are.
    Members(String, Vec<Member>),
    /// `llama`.
    Name(String),
    /// `job[0-5]`: those of these names that jobs have.
    Names(String, Vec<String>),
    /// `name:llama`: all jobs of that name, or else of the names that hold it.
    Part(String),
}

impl fmt::Display for JobWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(word) | Self::Names(word, _) | Self::Members(word, _) => f.write_str(word),
            Self::Part(part) => write!(f, "name:{part}"),
        }
    }
}

/// What a word calls of a user's jobs.
#[derive(Debug)]
pub struct Called {
    /// The attempts.
    pub attempts: Vec<JobNumber>,
    /// Whether they are the members of a group, or all jobs of a name: a verb takes those to which it applies.
    pub is_group: bool,
}

/// What a word calls of that which waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingCalled {
    /// The entry.
    pub id: JobId,
    /// Those of its members that are meant; all that it has if none are named.
    pub members: Option<Vec<u32>>,
}

impl WaitingCalled {
    /// What it does, in words that agree with it: `waits`, `wait`.
    pub fn waits(&self) -> &'static str {
        if self.members.as_ref().is_some_and(|members| members.len() > 1) {
            "wait"
        } else {
            "waits"
        }
    }
}

impl fmt::Display for WaitingCalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.members.as_deref() {
            None => self.id.fmt(f),
            Some([index]) => write!(f, "{}_{index}", self.id),
            Some(members) => write!(f, "{} of {}", counted(members.len(), "member"), self.id),
        }
    }
}

impl JobWord {
    /// What a word calls that can be nothing else than a job; `None` for any other, also for a bare name.
    pub(crate) fn explicit(word: &str) -> Option<Self> {
        if let Some(part) = word.strip_prefix("name:") {
            return (!part.is_empty()).then(|| Self::Part(part.to_owned()));
        }
        let names = if word.starts_with(|c: char| c.is_ascii_digit()) {
            pattern::names(word).ok()?
        } else {
            return None;
        };
        let members: Option<Vec<Member>> = names.iter().map(|name| Member::parse(name)).collect();
        members.map(|members| Self::Members(word.to_owned(), members))
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

    /// Whether a user has a job that is called so.
    pub fn is_of(&self, user: &User) -> bool {
        match self {
            Self::Number(number) => {
                let is_its = |job: &Job| job.member().is_some_and(|of| of.group == *number);
                user.job(*number).is_some() || user.jobs().iter().any(is_its)
            }
            Self::Members(_, members) => {
                user.jobs().iter().filter_map(Job::member).any(|member| members.contains(&member))
            }
            Self::Name(_) | Self::Names(..) | Self::Part(_) => {
                user.jobs().iter().filter_map(Job::name).any(|name| self.could_be(name))
            }
        }
    }

    /// The attempt that an engine calls so, the newest of several.
    fn of_engine(&self, user: &User) -> Option<JobNumber> {
        let Self::Name(wanted) = self else { return None };
        let is_meant = |job: &&Job| job.engine_name() == Some(wanted.as_str());
        user.jobs().iter().filter(is_meant).map(|job| job.windows_id).max()
    }

    /// What it calls of that which waits of a user.
    pub fn waiting(&self, data: &Data, user: &UserName) -> Vec<WaitingCalled> {
        let entries = data.queues().entries.iter().filter(|entry| entry.user == *user);
        let name = |entry: &&QueueEntry| entry.spec.name.clone().unwrap_or_default();
        let whole = |entry: &QueueEntry| WaitingCalled { id: entry.id(), members: None };
        match self {
            Self::Number(number) => {
                // What waits to continue from an attempt is that job, and a member that was put back is one of its group.
                let is_meant = |entry: &&QueueEntry| {
                    let goes_on = entry.succeeds.is_some_and(|of| of.job == *number);
                    let is_member = entry.spec.member.is_some_and(|of| of.group == *number);
                    entry.number == *number || goes_on || is_member
                };
                entries.filter(is_meant).map(whole).collect()
            }
            Self::Members(_, wanted) => {
                let of = |entry: &QueueEntry| {
                    if entry.spec.member.is_some_and(|member| wanted.contains(&member)) {
                        return Some(whole(entry));
                    }
                    let is_meant = |index: &u32| {
                        wanted.contains(&Member { group: entry.number, index: *index })
                    };
                    let indexes = entry.spec.array.as_ref()?.indexes().iter().copied();
                    let members: Vec<u32> = indexes.filter(is_meant).collect();
                    (!members.is_empty())
                        .then(|| WaitingCalled { id: entry.id(), members: Some(members) })
                };
                entries.filter_map(of).collect()
            }
            Self::Part(part) if entries.clone().any(|entry| name(&entry) == *part) => {
                entries.filter(|entry| name(entry) == *part).map(whole).collect()
            }
            Self::Name(_) | Self::Names(..) | Self::Part(_) => {
                let named = entries.filter(|entry| entry.spec.name.is_some());
                named.filter(|entry| self.could_be(&name(entry))).map(whole).collect()
            }
        }
    }

    /// Whether a user has a job that is called so, by anybody, or something that waits.
    pub(crate) fn is_known_of(&self, data: &Data, user: &User) -> bool {
        self.is_of(user)
            || !self.waiting(data, &user.name).is_empty()
            || self.of_engine(user).is_some()
    }

    /// The attempts of a user that it calls: of a number that very one, of each member and name the newest.
    pub fn attempts(&self, data: &Data, user: &User) -> Result<Called, Error> {
        match self {
            Self::Number(number) => {
                if user.job(*number).is_none() {
                    let is_its = |member: Member| member.group == *number;
                    let members = newest_members(user, &Links::of(user), is_its);
                    if !members.is_empty() {
                        return Ok(Called { attempts: members, is_group: true });
                    }
                }
                let id = JobId::new(user.name.clone(), *number);
                let window = super::ctx::job_of(data, &id)?.windows_id;
                Ok(Called { attempts: vec![window], is_group: false })
            }
            Self::Members(_, wanted) => {
                let links = Links::of(user);
                let attempts = newest_members(user, &links, |member| wanted.contains(&member));
                if attempts.is_empty() {
                    return Err(self.no_member(user, wanted));
                }
                Ok(Called { attempts, is_group: false })
            }
            Self::Name(_) | Self::Names(..) | Self::Part(_) => self.named(data, user),
        }
    }

    fn named(&self, data: &Data, user: &User) -> Result<Called, Error> {
        let names = self.names_of(user);
        if names.is_empty() {
            // What somebody has called a job himself comes first.
            let attempt = self.of_engine(user).ok_or_else(|| self.unknown(data, Some(user)))?;
            return Ok(Called { attempts: vec![attempt], is_group: false });
        }
        let links = Links::of(user);
        let mut called = Called { attempts: Vec::new(), is_group: false };
        for name in names {
            let attempts = match self {
                Self::Part(_) => leaves_called(user, &links, name),
                _ => bearer(data, user, name)?.attempts_or_newest(),
            };
            called.is_group |= attempts.len() > 1;
            called.attempts.extend(attempts);
        }
        Ok(called)
    }

    /// The names of a user's jobs that it means, each once.
    fn names_of<'u>(&self, user: &'u User) -> Vec<&'u str> {
        let mut names: Vec<&str> = user.jobs().iter().filter_map(Job::name).collect();
        names.sort_unstable();
        names.dedup();
        match self {
            Self::Part(part) if names.contains(&part.as_str()) => names.retain(|name| name == part),
            _ => names.retain(|name| self.could_be(name)),
        }
        names
    }

    /// The word where one job alone is wanted: `name:X` is then the only name that it means.
    pub(crate) fn of_one(&self, user: &User) -> Self {
        match (self, self.names_of(user).as_slice()) {
            (Self::Part(_), [only]) => Self::Name((*only).to_owned()),
            _ => self.clone(),
        }
    }

    /// The names of a pattern that jobs of a user have, one by one; any other word, and a pattern of none, unchanged.
    pub(crate) fn one_by_one(self, data: &Data, user: &User) -> Vec<Self> {
        let Self::Names(_, names) = &self else { return vec![self] };
        let words = names.iter().cloned().map(Self::Name);
        let known: Vec<Self> = words.filter(|word| word.is_known_of(data, user)).collect();
        if known.is_empty() { vec![self] } else { known }
    }

    /// Whether what it calls of a user only waits, and no attempt of it is meant. Fails where a name does not say which
    /// job is meant.
    pub fn only_waits(&self, data: &Data, user: &User) -> Result<bool, Error> {
        if self.waiting(data, &user.name).is_empty() {
            return Ok(false);
        }
        match self {
            Self::Name(name) => Ok(bearer(data, user, name)?.attempts.is_empty()),
            _ => Ok(!self.is_of(user)),
        }
    }

    /// Whether a record has the name that it is, or is the member.
    pub(crate) fn is_name_of(&self, job: &Job) -> bool {
        match self {
            Self::Members(_, members) => job.member().is_some_and(|of| members.contains(&of)),
            _ => job.name().is_some_and(|name| self.could_be(name)),
        }
    }

    fn could_be(&self, name: &str) -> bool {
        match self {
            Self::Number(_) | Self::Members(..) => false,
            Self::Name(wanted) => name == wanted,
            Self::Names(_, wanted) => wanted.iter().any(|wanted| wanted == name),
            Self::Part(part) => name.contains(part.as_str()),
        }
    }

    /// The error where no job is called so: of this user, or of anybody.
    pub fn unknown(&self, data: &Data, user: Option<&User>) -> Error {
        let users = data.users().iter().map(|user| user.name.as_str());
        let jobs = user.into_iter().flat_map(User::jobs).filter_map(Job::name);
        let word = self.to_string();
        if let Self::Members(..) = self {
            return Error::not_found(format!("nobody has a member {word} of a group"))
                .hint("`tpu check` lists the jobs");
        }
        let near = did_you_mean(&word, users.chain(jobs));
        let hint = near
            .unwrap_or_else(|| "`tpu list-users` lists the users, `tpu check` the jobs".to_owned());
        Error::not_found(format!("'{word}' is no user, number or name of a job, or selector"))
            .hint(hint)
    }

    fn no_member(&self, user: &User, wanted: &[Member]) -> Error {
        let owner = &user.name;
        let group = wanted.first().map(|member| member.group);
        let mut there: Vec<Member> = user.jobs().iter().filter_map(Job::member).collect();
        there.retain(|member| Some(member.group) == group);
        there.sort_unstable();
        there.dedup();
        let hint = match (group, there.as_slice()) {
            (Some(group), [first, .., last]) => {
                let many = counted(there.len(), "member");
                format!("group {group} has {many}, {first} to {last}")
            }
            _ => format!("`tpu check {owner}` lists the jobs"),
        };
        Error::not_found(format!("{owner} has no member {self}")).hint(hint)
    }
}

/// The newest attempts of the members that are wanted, in the order of the members.
fn newest_members(
    user: &User,
    links: &Links<'_>,
    is_wanted: impl Fn(Member) -> bool,
) -> Vec<JobNumber> {
    let mut newest: BTreeMap<Member, JobNumber> = BTreeMap::new();
    for job in user.jobs() {
        let Some(member) = job.member().filter(|member| is_wanted(*member)) else { continue };
        let number = newest.entry(member).or_insert(job.windows_id);
        *number = job.windows_id.max(*number);
    }
    let leaf = |number: JobNumber| links.lineage(number)?.leaf();
    newest.into_values().filter_map(leaf).collect()
}

/// The leaves of the lineages that have a name, the newest last.
pub(crate) fn leaves_called(user: &User, links: &Links<'_>, name: &str) -> Vec<JobNumber> {
    let called = user.jobs().iter().filter(|job| job.name() == Some(name));
    let leaf = |job: &Job| links.lineage(job.windows_id)?.leaf();
    let mut leaves: Vec<JobNumber> = called.filter_map(leaf).collect();
    leaves.sort_unstable();
    leaves.dedup();
    leaves
}

/// How hints call jobs that are named together: of several members of one array the array, else the member or the number.
pub(crate) struct Handles(BTreeSet<(UserName, JobNumber)>);

impl Handles {
    /// For hints about these jobs.
    pub(crate) fn of(data: &Data, jobs: &[JobId]) -> Self {
        let mut counts: BTreeMap<(UserName, JobNumber), usize> = BTreeMap::new();
        let group = |id: &JobId| Some((id.user.clone(), data.job(id)?.member()?.group));
        for array in jobs.iter().filter_map(group) {
            *counts.entry(array).or_default() += 1;
        }
        Self(counts.into_iter().filter(|(_, count)| *count > 1).map(|(array, _)| array).collect())
    }

    /// The word for a job.
    pub(crate) fn word(&self, job: &Job) -> String {
        match job.member() {
            None => job.windows_id.to_string(),
            Some(of) if self.0.contains(&(job.user.clone(), of.group)) => of.group.to_string(),
            Some(member) => member.to_string(),
        }
    }
}

/// The group of an attempt, if it has any.
pub(super) fn group_of(user: &User, number: JobNumber) -> Option<JobNumber> {
    Some(user.job(number)?.member()?.group)
}

/// Whether a job of anybody has this name, or what waits to become one.
pub fn is_name(data: &Data, word: &str) -> bool {
    let mut waiting = data.queues().entries.iter();
    data.jobs().any(|job| job.name() == Some(word))
        || waiting.any(|entry| entry.spec.name.as_deref() == Some(word))
}

/// The one job that a name means.
#[derive(Default)]
struct Bearer {
    /// Its newest attempts: one, or those of all members of a group. None where it only waits.
    attempts: Vec<JobNumber>,
    /// Those of the newest job of the name that has any.
    newest: Vec<JobNumber>,
}

impl Bearer {
    fn attempts_or_newest(self) -> Vec<JobNumber> {
        if self.attempts.is_empty() { self.newest } else { self.attempts }
    }
}

/// The only job of a name that is live or waits, else the newest. Where there are several such, nobody can tell which is
/// meant.
fn bearer(data: &Data, user: &User, name: &str) -> Result<Bearer, Error> {
    let links = Links::of(user);
    let number_of = |leaf: JobNumber| group_of(user, leaf).unwrap_or(leaf);
    let mut jobs: BTreeMap<JobNumber, Vec<JobNumber>> = BTreeMap::new();
    for leaf in leaves_called(user, &links, name) {
        jobs.entry(number_of(leaf)).or_default().push(leaf);
    }
    let newest = jobs.values().max_by_key(|leaves| leaves.last().copied());
    let newest = newest.cloned().unwrap_or_default();
    let mut active: BTreeMap<JobNumber, String> = BTreeMap::new();
    for (number, leaves) in &jobs {
        let mut attempts = leaves.iter().filter_map(|leaf| user.job(*leaf));
        let live = attempts.find(|job| job.status.is_live());
        active.extend(live.map(|job| (*number, job.status.to_string())));
    }
    let waiting = data.queues().entries.iter().filter(|entry| entry.user == user.name);
    for entry in waiting.filter(|entry| entry.spec.name.as_deref() == Some(name)) {
        let before = entry.succeeds.and_then(|of| links.lineage(of.job)?.leaf()).map(number_of);
        let group = entry.spec.member.map(|member| member.group);
        let number = before.or(group).unwrap_or(entry.number);
        active.entry(number).or_insert_with(|| "waits".to_owned());
    }
    let mut numbers = active.keys();
    match (numbers.next(), numbers.next()) {
        (None, _) => Ok(Bearer { attempts: newest.clone(), newest }),
        (Some(only), None) => {
            Ok(Bearer { attempts: jobs.remove(only).unwrap_or_default(), newest })
        }
        (Some(_), Some(_)) => {
            let owner = &user.name;
            let all: Vec<String> =
                active.iter().map(|(number, is)| format!("{owner}/{number} ({is})")).collect();
            let what = format!("{} jobs are named '{name}': {}", all.len(), all.join(", "));
            Err(Error::refused(what)
                .hint(format!("give a number; all of them, where several may be: name:{name}")))
        }
    }
}
