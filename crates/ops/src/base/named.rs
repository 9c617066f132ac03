//! Which targets are meant: by their names, their aliases, patterns of names, their pools and their tags.

use std::collections::HashSet;

use tpu_core::model::data::Data;
use tpu_core::model::ids::TargetName;
use tpu_core::model::pattern::{self, BadValues};
use tpu_core::model::target::Target;
use tpu_core::text::counted;

use super::error::did_you_mean;
use crate::Error;

/// An alias or a full name, as a target.
pub fn resolve_target(data: &Data, typed: &str) -> Result<Target, Error> {
    data.resolve_target(typed).ok_or_else(|| {
        let names = data.registry().names();
        let aliases = data.registry().aliases().map(|(alias, _)| alias);
        let built_in = Target::built_in();
        let groups = data.registry().registrations().filter_map(|(_, known)| known.host.as_ref());
        let groups = groups.flat_map(|host| host.pools.iter().chain(&host.tags)).map(String::as_str);
        let known = aliases
            .chain(names.iter().map(TargetName::as_str))
            .chain(built_in.iter().map(|target| target.name.as_str()))
            .chain(groups);
        let near = did_you_mean(typed, known);
        let hint = near.unwrap_or_else(|| {
            "`tpu -lta` lists the aliases; `tpu hosts add NAME` makes a machine known that ssh reaches, \
             `tpu register FULL_NAME` any other target; `local` is this machine"
                .to_owned()
        });
        Error::not_found(format!("no target '{typed}'")).hint(hint)
    })
}

/// The names that a pattern stands for.
pub fn expanded(word: &str) -> Result<Vec<String>, Error> {
    pattern::names(word)
        .map_err(|error| Error::usage(format!("'{word}': {error}")).hint("as in gpu[01-04] or a,b"))
}

/// The values of an option for so many names: one is everybody's, as many as names are one for each.
pub(crate) fn values_for(names: usize, option: &str, said: &str) -> Result<Vec<String>, Error> {
    pattern::values(names, said).map_err(|error| match error {
        BadValues::Pattern(error) => {
            Error::usage(format!("--{option} '{said}': {error}")).hint("as in gpu[01-04] or a,b")
        }
        BadValues::Count { values, names } => {
            let (values, names) = (counted(values, "value"), counted(names, "name"));
            Error::usage(format!("--{option} has {values} for {names}"))
                .hint("give one value for all, or one for each name, as in --name=z[0-1] --ip=a,b")
        }
    })
}

/// The targets that words name, each once, in their order.
pub fn named(data: &Data, words: &[String]) -> Result<Vec<Target>, Error> {
    let mut targets: Vec<Target> = Vec::new();
    for word in words {
        for name in expanded(word)? {
            for target in called(data, &name)? {
                if !targets.iter().any(|known| known.name == target.name) {
                    targets.push(target);
                }
            }
        }
    }
    Ok(targets)
}

/// The same without what is not known any more; an error where nothing is left. For what was typed long ago.
pub(crate) fn still_known(data: &Data, words: &[String]) -> Result<Vec<Target>, Error> {
    let (mut targets, mut unknown): (Vec<Target>, _) = (Vec::new(), None);
    for name in words.iter().flat_map(|word| expanded(word).unwrap_or_default()) {
        match called(data, &name) {
            Ok(called) => targets.extend(called),
            Err(error) => unknown = unknown.or(Some(error)),
        }
    }
    let mut seen = HashSet::new();
    targets.retain(|target| seen.insert(target.name.clone()));
    match unknown {
        Some(error) if targets.is_empty() => Err(error),
        Some(_) | None => Ok(targets),
    }
}

/// Whether a word stands for several machines: a pattern, a pool or a tag, and no target of that very name.
pub fn is_of_several(data: &Data, word: &str) -> bool {
    data.resolve_target(word).is_none()
        && (pattern::is_pattern(word) || !members(data, word).is_empty())
}

/// The target of a name, or those in a pool or with a tag of that name.
fn called(data: &Data, name: &str) -> Result<Vec<Target>, Error> {
    if let Some(target) = data.resolve_target(name) {
        return Ok(vec![target]);
    }
    let members = members(data, name);
    if members.is_empty() { resolve_target(data, name).map(|one| vec![one]) } else { Ok(members) }
}

/// The machines in a pool, or with a tag, in the order in which they were added.
pub fn members(data: &Data, word: &str) -> Vec<Target> {
    let all = data.registry().registrations();
    let called =
        all.filter(|(_, known)| known.host.as_ref().is_some_and(|host| host.is_called(word)));
    called.filter_map(|(name, _)| data.target(name)).collect()
}
