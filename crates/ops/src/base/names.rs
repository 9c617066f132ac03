//! Which words a short name may not be: those that mean something wherever a short name can stand.

use tpu_core::model::data::{Data, User};
use tpu_core::model::ids::{JobNumber, TargetName, UserName};
use tpu_core::model::lineage::Links;
use tpu_core::model::member::Member;
use tpu_core::model::rules::{Action, NAMED};
use tpu_core::model::target::Target;
use tpu_core::plan::types::{TypeExpr, parse_type};

use super::called;
use super::named::members;
use crate::Error;

/// Keys of the grammar, and the letters that stand for some of them.
const KEYS: [&str; 25] = [
    "tag", "dir", "rule", "user", "id", "w", "window", "windows", "tpu", "ka", "zone", "ssn",
    "monitor", "config", "s", "m", "n", "t", "v", "d", "type", "status", "name", "style", "all",
];

/// The meaning of the targets that are there from the beginning.
const THIS_MACHINE: &str = "it is this machine";

/// Refuses a short name that already means something; `commands` are the words of the command line.
pub(crate) fn refuse_taken(data: &Data, name: &str, commands: &[String]) -> Result<(), Error> {
    match meaning(data, name, commands) {
        None => Ok(()),
        Some(meaning) => {
            Err(Error::refused(format!("'{name}' already means something: {meaning}"))
                .hint("take another short name, or add something to it"))
        }
    }
}

/// Refuses a name that already stands for several machines.
pub(crate) fn refuse_group(data: &Data, name: &str) -> Result<(), Error> {
    if members(data, name).is_empty() {
        return Ok(());
    }
    Err(means_already(name, "it is a pool or a tag of machines"))
}

/// Refuses a name for a job that is no word, a number, or a word of the grammar. The name of a command, a target or a user
/// may be that of a job: where a word could be both, `name:X` says which is meant.
pub fn refuse_as_job(name: &str) -> Result<(), Error> {
    let is_plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    if name.is_empty() || name.starts_with('-') || !name.chars().all(is_plain) {
        return Err(Error::usage(format!("'{name}' cannot be the name of a job"))
            .hint("letters, digits, '_', '-' and '.', and no '-' in front"));
    }
    if is_number(name) {
        return Err(Error::usage(format!(
            "'{name}' cannot be the name of a job: numbers are those of jobs"
        ))
        .hint(format!("add a letter, as in run{name}")));
    }
    let is_numbers = name.chars().all(|c| c.is_ascii_digit() || "_-.".contains(c));
    match meaning_in_grammar(name, &[]) {
        Some(THIS_MACHINE) | None if !is_numbers => Ok(()),
        Some(meaning) => Err(means_already(name, meaning)),
        None => Err(means_already(name, "numbers are jobs")),
    }
}

/// Refuses a name for a job of `user` that means something else wherever a job is named.
pub(crate) fn refuse_for_job(data: &Data, user: &User, name: &str) -> Result<(), Error> {
    refuse_as_job(name)?;
    refuse_group(data, name)?;
    match user.alias(name) {
        Some(_) => Err(means_already(name, "it is an alias of a config")),
        None => Ok(()),
    }
}

/// Refuses a name that a live job of `user` has, beside those of the lineage of `but` and of the group of `member`: nobody
/// could tell which is meant.
pub(crate) fn refuse_in_use(
    user: &User,
    name: &str,
    (but, member): (Option<JobNumber>, Option<Member>),
) -> Result<(), Error> {
    let links = Links::of(user);
    let own = but.and_then(|window| links.lineage(window)?.leaf());
    let leaves = called::leaves_called(user, &links, name).into_iter();
    let group = but.and_then(|window| called::group_of(user, window));
    let group = group.or(member.map(|member| member.group));
    let is_own = |leaf: JobNumber| {
        Some(leaf) == own || group.is_some() && called::group_of(user, leaf) == group
    };
    let mut others = leaves.filter(|leaf| !is_own(*leaf)).filter_map(|leaf| user.job(leaf));
    match others.find(|job| job.status.is_live()) {
        Some(job) => {
            Err(Error::refused(format!("{} is called '{name}' and is {}", job.id(), job.status))
                .hint("take another name, or stop that one first"))
        }
        None => Ok(()),
    }
}

/// Whether a new job of `user` may have this name: it means nothing else, and nobody who waits or is at work has it.
pub fn is_free(data: &Data, user: &User, name: &str) -> bool {
    refuse_for_job(data, user, name).is_ok()
        && refuse_in_use(user, name, (None, None)).is_ok()
        && refuse_waiting(data, &user.name, name).is_ok()
}

/// Refuses a name that something in the queue has.
pub(crate) fn refuse_waiting(data: &Data, user: &UserName, name: &str) -> Result<(), Error> {
    let mut entries = data.queues().entries.iter().filter(|entry| entry.user == *user);
    match entries.find(|entry| entry.spec.name.as_deref() == Some(name)) {
        None => Ok(()),
        Some(other) => Err(Error::refused(format!("{} is called '{name}' and waits", other.id()))
            .hint("take another name, or take that one back first: tpu dequeue")),
    }
}

fn means_already(name: &str, meaning: &str) -> Error {
    Error::refused(format!("'{name}' already means something: {meaning}"))
        .hint("take another name, or add something to it")
}

/// What a name means already, if it means anything.
fn meaning(data: &Data, name: &str, commands: &[String]) -> Option<&'static str> {
    meaning_in_grammar(name, commands).or_else(|| {
        if data.users().iter().any(|user| user.name.as_str() == name) {
            Some("it is a user")
        } else if data.registry().is_known_beside_aliases(&TargetName::from(name)) {
            Some("it is a target")
        } else if !members(data, name).is_empty() {
            Some("it is a pool or a tag of machines")
        } else {
            None
        }
    })
}

/// What a name means on the command line, whatever users and targets there are.
pub(crate) fn meaning_in_grammar(name: &str, commands: &[String]) -> Option<&'static str> {
    let is_truth = ["true", "false"].contains(&name.to_ascii_lowercase().as_str());
    if KEYS.contains(&name) || is_truth {
        Some("it is a word of the grammar, as in tag=NAME")
    } else if commands.iter().any(|command| command == name) {
        Some("it is a command")
    } else if Target::built_in().iter().any(|target| target.name.as_str() == name) {
        Some(THIS_MACHINE)
    } else if NAMED.contains(&name) || Action::parse(name).is_some() {
        Some("it is a rule")
    } else if is_type(name) {
        Some("it is a type of accelerator")
    } else if is_number(name) {
        Some("it is a number, which is a job")
    } else {
        None
    }
}

fn is_number(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_digit())
}

fn is_type(name: &str) -> bool {
    match parse_type(name) {
        Some(of) => of.exists(),
        None => TypeExpr::parse(name).is_some(),
    }
}
