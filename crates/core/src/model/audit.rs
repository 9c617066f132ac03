//! What can be inconsistent in the document by itself, and the smallest change that sets it right.
//!
//! What is found is what mending would do: [`audit`] mends a copy and tells of it. A record is never
//! dropped: the second one of a number is handed to the caller, who archives it. What says that it is over
//! and goes on nowhere ([`dead_ends`]) may still have a window and processes, so it is not mended here.

use std::collections::{HashMap, HashSet};
use std::fmt;

use super::data::{Data, User};
use super::ids::{JobId, JobNumber, TargetName, UserName};
use super::job::{Event, Job, Succession};

/// One thing that is inconsistent, with what sets it right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataFlaw {
    /// Several records have the number of `job`; this is one too many, and goes to the archive.
    SameNumber {
        /// Their number.
        job: JobId,
    },
    /// A record that is not superseded says that it goes on in a window that has no record, or another's:
    /// the link goes, and no rule acts on it.
    LostChild {
        /// Who says so.
        job: JobId,
        /// Where.
        child: JobNumber,
    },
    /// A father names its child, and the child names no father: it is told.
    UntoldChild {
        /// The child.
        job: JobId,
        /// Its father.
        father: JobNumber,
    },
    /// A child names its father, and the father names no child: it is told, and superseded.
    UntoldFather {
        /// The father.
        job: JobId,
        /// Its child.
        child: JobNumber,
    },
    /// A record says that it continues one that is neither here nor in the archive: the link goes.
    LostFather {
        /// Who says so.
        job: JobId,
        /// Which one.
        father: JobNumber,
    },
    /// A father has another child, or is at work itself: this one becomes a run of its own. No rule acts on
    /// either any more, for nobody knows which of them goes on.
    SecondChild {
        /// The child that is one too many.
        job: JobId,
        /// The father.
        father: JobNumber,
    },
    /// A record is its own ancestor: it becomes the first of its lineage.
    Circle {
        /// The one with the lowest number.
        job: JobId,
    },
    /// The number that the original would give out next belongs to a record: it is raised.
    LowOffset {
        /// Whose.
        user: UserName,
        /// The number after all records.
        next: u32,
    },
    /// An alias stands for a target of which nothing else is known, and that nothing names: it goes.
    AliasToNothing {
        /// The alias.
        alias: String,
        /// What it stands for.
        full: TargetName,
    },
    /// A user is missing in the lists that the original reads: all are entered.
    Unlisted {
        /// Who.
        user: UserName,
    },
}

impl fmt::Display for DataFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameNumber { job } => write!(f, "{job} stands in the file more than once"),
            Self::LostChild { job, child } => {
                write!(f, "{job} says that it continues as job {child}, which is no record of its")
            }
            Self::UntoldChild { job, father } => {
                write!(f, "{job} continues job {father} and does not say so")
            }
            Self::UntoldFather { job, child } => {
                write!(f, "{job} continues as job {child} and does not say so")
            }
            Self::LostFather { job, father } => {
                write!(f, "{job} continues job {father}, which has no record")
            }
            Self::SecondChild { job, father } => {
                write!(f, "{job} continues job {father}, which has another child or is at work")
            }
            Self::Circle { job } => write!(f, "{job} continues itself"),
            Self::LowOffset { user, next } => {
                write!(
                    f,
                    "{user} would get a number that a record has; the next free one is {next}"
                )
            }
            Self::AliasToNothing { alias, full } => {
                write!(f, "the target alias {alias} stands for {full}, of which nothing is known")
            }
            Self::Unlisted { user } => {
                write!(f, "{user} is missing in the lists of users that the original reads")
            }
        }
    }
}

impl DataFlaw {
    /// What mending has made of it.
    pub fn outcome(&self) -> String {
        match self {
            Self::SameNumber { job } => format!("archived the other record of {job}"),
            Self::LostChild { job, .. } => {
                format!("{job} has no child any more; no rule acts on it")
            }
            Self::UntoldChild { job, father } | Self::LostFather { job, father } => {
                let verb = if matches!(self, Self::UntoldChild { .. }) { "is" } else { "is not" };
                format!("{job} {verb} said to continue job {father}")
            }
            Self::UntoldFather { job, child } => {
                format!("{job} is said to continue as job {child}")
            }
            Self::SecondChild { job, father } => format!(
                "{job} is a run of its own, no child of {father}; no rule acts on either (look at both, \
                 then: tpu kill w={})",
                job.window
            ),
            Self::Circle { job } => format!("{job} is the first of its lineage"),
            Self::LowOffset { user, next } => format!("the next job of {user} gets number {next}"),
            Self::AliasToNothing { alias, full } => {
                format!("the alias {alias} is gone (it stood for {full})")
            }
            Self::Unlisted { .. } => {
                "entered every user into the lists that the original reads".to_owned()
            }
        }
    }

    /// The record that it is about.
    pub fn job(&self) -> Option<&JobId> {
        match self {
            Self::SameNumber { job }
            | Self::LostChild { job, .. }
            | Self::UntoldChild { job, .. }
            | Self::UntoldFather { job, .. }
            | Self::LostFather { job, .. }
            | Self::SecondChild { job, .. }
            | Self::Circle { job } => Some(job),
            Self::LowOffset { .. } | Self::AliasToNothing { .. } | Self::Unlisted { .. } => None,
        }
    }
}

/// What was mended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mended {
    /// In the order in which it was.
    pub flaws: Vec<DataFlaw>,
    /// Records that left the document: the caller archives them.
    pub archived: Vec<Job>,
}

/// What is inconsistent. `is_lost` says whether a record that is not in the document is known not to be in
/// the archive either.
pub fn audit(data: &Data, is_lost: &dyn Fn(&JobId) -> bool) -> Vec<DataFlaw> {
    mend(&mut data.clone(), is_lost).flaws
}

/// The fathers that are named and are not in the document.
pub fn absent_fathers(data: &Data) -> HashSet<JobId> {
    let of_user = |user: &User| {
        let there: HashSet<JobNumber> = user.jobs().iter().map(|job| job.windows_id).collect();
        let fathers = user.jobs().iter().filter_map(|job| job.father);
        let absent = fathers.filter(|father| !there.contains(father));
        absent.map(|father| JobId::new(user.name.clone(), father)).collect::<Vec<_>>()
    };
    data.users().iter().flat_map(of_user).collect()
}

/// The last attempts of lineages that say that another one goes on with them, where none does.
pub fn dead_ends(data: &Data) -> Vec<JobId> {
    let of_user = |user: &User| {
        let records = Records::of(user);
        let goes_on = |job: &Job| {
            job.child.and_then(|child| records.get(child)).is_some_and(|child| {
                child.windows_id != job.windows_id && child.father == Some(job.windows_id)
            })
        };
        let ends = user.jobs().iter().filter(|job| job.status.is_superseded() && !goes_on(job));
        ends.map(Job::id).collect::<Vec<_>>()
    };
    data.users().iter().flat_map(of_user).collect()
}

/// Sets right what is inconsistent; a document in which nothing is stays as it is.
///
/// Each step makes one link mutual or takes one out, or takes a record out, so there is an end.
pub fn mend(data: &mut Data, is_lost: &dyn Fn(&JobId) -> bool) -> Mended {
    let mut mended = Mended::default();
    while let Some(flaw) = first(data, is_lost) {
        mended.archived.extend(set_right(data, &flaw));
        mended.flaws.push(flaw);
    }
    mended
}

/// The first of what is inconsistent. Numbers come before links, and links to nothing before others.
fn first(data: &Data, is_lost: &dyn Fn(&JobId) -> bool) -> Option<DataFlaw> {
    let of_users = data.users().iter().find_map(|user| of_user(user, is_lost));
    of_users.or_else(|| of_lists(data))
}

/// The records of a user, looked up by their numbers.
struct Records<'a> {
    user: &'a User,
    /// The first of each number.
    by_number: HashMap<JobNumber, &'a Job>,
}

fn of_user(user: &User, is_lost: &dyn Fn(&JobId) -> bool) -> Option<DataFlaw> {
    let mut numbers = HashSet::new();
    if let Some(job) = user.jobs().iter().find(|job| !numbers.insert(job.windows_id)) {
        return Some(DataFlaw::SameNumber { job: job.id() });
    }
    let records = Records::of(user);
    let first = |check: &dyn Fn(&Job) -> Option<DataFlaw>| user.jobs().iter().find_map(check);
    let of_links = first(&|job| records.child_is_its(job))
        .or_else(|| first(&|job| records.father_is_there(job, is_lost)))
        // Before anybody is told of a child that is its own ancestor, too.
        .or_else(|| records.circle())
        .or_else(|| first(&|job| records.is_the_one_child(job)))
        .or_else(|| first(&|job| records.is_at_work_itself(job)))
        // It supersedes the father, which nothing takes back: only once no other link moves any more.
        .or_else(|| first(&|job| records.father_is_told(job)));
    if of_links.is_some() {
        return of_links;
    }
    let next = user.highest_number().map_or(0, |highest| highest.saturating_add(1));
    (user.windows_offset < next).then(|| DataFlaw::LowOffset { user: user.name.clone(), next })
}

impl<'a> Records<'a> {
    fn of(user: &'a User) -> Self {
        let mut by_number = HashMap::new();
        for job in user.jobs() {
            by_number.entry(job.windows_id).or_insert(job);
        }
        Self { user, by_number }
    }

    fn get(&self, number: JobNumber) -> Option<&'a Job> {
        self.by_number.get(&number).copied()
    }

    fn child_is_its(&self, job: &Job) -> Option<DataFlaw> {
        let child = job.child?;
        // One that is superseded is a dead end with its link: its successor may be in the archive.
        let lost =
            || (!job.status.is_superseded()).then(|| DataFlaw::LostChild { job: job.id(), child });
        let Some(record) = self.get(child).filter(|_| child != job.windows_id) else {
            return lost();
        };
        match record.father {
            Some(father) if father == job.windows_id => None,
            // What names a father that is there belongs to that one.
            Some(father) if self.get(father).is_some() => lost(),
            Some(_) | None => {
                Some(DataFlaw::UntoldChild { job: record.id(), father: job.windows_id })
            }
        }
    }

    fn father_is_there(&self, job: &Job, is_lost: &dyn Fn(&JobId) -> bool) -> Option<DataFlaw> {
        let father = job.father?;
        let is_absent = || {
            let id = JobId::new(self.user.name.clone(), father);
            self.get(father).is_none() && is_lost(&id)
        };
        let is_nothing = father == job.windows_id || is_absent();
        is_nothing.then(|| DataFlaw::LostFather { job: job.id(), father })
    }

    /// The child that a record names, if that one names it as its father.
    fn known_child(&self, father: &Job) -> Option<JobNumber> {
        let child = self.get(father.child?)?;
        (child.father == Some(father.windows_id)).then_some(child.windows_id)
    }

    fn is_the_one_child(&self, job: &Job) -> Option<DataFlaw> {
        let father = self.get(job.father?)?;
        let is_one = match self.known_child(father) {
            Some(child) => child == job.windows_id,
            None => !father.status.is_live() && self.is_newest_child(job),
        };
        (!is_one).then(|| DataFlaw::SecondChild { job: job.id(), father: father.windows_id })
    }

    fn father_is_told(&self, job: &Job) -> Option<DataFlaw> {
        let father = self.get(job.father?)?;
        let is_known = self.known_child(father) == Some(job.windows_id);
        (!is_known).then(|| DataFlaw::UntoldFather { job: father.id(), child: job.windows_id })
    }

    /// Whether no later attempt says that it continues the same one.
    fn is_newest_child(&self, job: &Job) -> bool {
        let siblings = self.user.jobs().iter().filter(|other| other.father == job.father);
        siblings.map(|other| other.windows_id).max() == Some(job.windows_id)
    }

    fn is_at_work_itself(&self, job: &Job) -> Option<DataFlaw> {
        let child = self.get(job.child.filter(|_| job.status.is_live())?)?;
        Some(DataFlaw::SecondChild { job: child.id(), father: job.windows_id })
    }

    /// A record that is its own ancestor. Each is walked over once.
    fn circle(&self) -> Option<DataFlaw> {
        let mut seen = HashSet::new();
        for job in self.user.jobs() {
            let mut path = Vec::new();
            let mut at = Some(job);
            while let Some(record) = at.filter(|record| seen.insert(record.windows_id)) {
                path.push(record.windows_id);
                at = record.father.and_then(|father| self.get(father));
            }
            // It ends at one of an earlier path, or closes at one of its own.
            let closes = at.and_then(|last| path.iter().position(|n| *n == last.windows_id));
            if let Some(lowest) = closes.and_then(|from| path.get(from..)?.iter().min()) {
                return Some(DataFlaw::Circle { job: JobId::new(self.user.name.clone(), *lowest) });
            }
        }
        None
    }
}

fn of_lists(data: &Data) -> Option<DataFlaw> {
    let registry = data.registry();
    let mut aliases = registry.aliases();
    if let Some((alias, full)) = aliases.find(|(_, full)| {
        !registry.is_known_beside_aliases(full)
            && data.board().names().all(|name| name != *full)
            && data.jobs().all(|job| job.tpu != **full)
    }) {
        return Some(DataFlaw::AliasToNothing { alias: alias.to_owned(), full: full.clone() });
    }
    let user = data.users().iter().find(|user| !data.is_listed(user))?;
    Some(DataFlaw::Unlisted { user: user.name.clone() })
}

/// Sets one thing right; the records that must leave the document for it.
fn set_right(data: &mut Data, flaw: &DataFlaw) -> Vec<Job> {
    match flaw {
        DataFlaw::SameNumber { job } => data
            .user_mut(&job.user)
            .and_then(|user| one_too_many(user, job.window))
            .into_iter()
            .collect(),
        DataFlaw::LostChild { job, .. } => {
            change(data, job, |job| {
                job.child = None;
                job.monitor = false;
            });
            Vec::new()
        }
        DataFlaw::UntoldChild { job, father } => {
            change(data, job, |job| job.father = Some(*father));
            Vec::new()
        }
        DataFlaw::UntoldFather { job, child } => {
            tell(data, job, *child);
            Vec::new()
        }
        DataFlaw::LostFather { job, .. } => {
            change(data, job, |job| job.father = None);
            Vec::new()
        }
        DataFlaw::SecondChild { job, father } => {
            let father = JobId::new(job.user.clone(), *father);
            part(data, &father, job);
            change(data, job, |job| job.monitor = false);
            change(data, &father, |job| job.monitor &= !job.status.is_live());
            Vec::new()
        }
        DataFlaw::Circle { job } => {
            if let Some(father) = data.job(job).and_then(|job| job.father) {
                part(data, &JobId::new(job.user.clone(), father), job);
            }
            Vec::new()
        }
        DataFlaw::LowOffset { user, next } => {
            if let Some(user) = data.user_mut(user) {
                user.windows_offset = *next;
            }
            Vec::new()
        }
        DataFlaw::AliasToNothing { alias, .. } => {
            data.registry_mut().forget_alias(alias);
            Vec::new()
        }
        DataFlaw::Unlisted { .. } => {
            data.list_users();
            Vec::new()
        }
    }
}

fn change(data: &mut Data, id: &JobId, change: impl FnOnce(&mut Job)) {
    if let Some(job) = data.job_mut(id) {
        change(job);
    }
}

/// A father and a child know nothing of each other any more.
fn part(data: &mut Data, father: &JobId, child: &JobId) {
    change(data, child, |job| job.father = None);
    change(data, father, |job| {
        if job.child == Some(child.window) {
            job.child = None;
        }
    });
}

/// Tells a father of its child: from its checkpoint, if the child has one more resume behind it.
fn tell(data: &mut Data, father: &JobId, child: JobNumber) {
    let stage = data.job(&JobId::new(father.user.clone(), child)).map(|child| child.stage);
    change(data, father, |job| {
        let how = if stage > Some(job.stage) { Succession::Resume } else { Succession::Rerun };
        // One that is superseded already keeps the word it has.
        let is_superseded = job.status.is_superseded();
        if is_superseded || job.apply(&Event::SupersededByForce(how)).is_ok() {
            job.child = Some(child);
        }
    });
}

/// Of the records with one number, the one that says least about what may be at work.
fn one_too_many(user: &mut User, number: JobNumber) -> Option<Job> {
    let worth = |job: &Job| {
        let launch = job.launch.as_ref();
        (job.status.is_live(), launch.is_some_and(|launch| launch.confirmed), launch.map(|l| l.at))
    };
    let of_number = user.jobs().iter().enumerate().filter(|(_, job)| job.windows_id == number);
    // Of equals the first, which is the oldest, goes.
    let (at, _) = of_number.min_by_key(|(_, job)| worth(job))?;
    user.remove_job_at(at)
}
