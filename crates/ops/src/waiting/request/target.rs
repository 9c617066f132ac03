//! On what a job is to run, of the words that say it: one target by its name, the best of a type, or one of several machines.

use crate::act::selection::Sorted;
use crate::base::error::did_you_mean;
use crate::base::named;
use crate::waiting::queue::wish;
use crate::{Ctx, Error};
use tpu_core::model::data::Data;
use tpu_core::model::policy::Policy;
use tpu_core::model::spec::TargetRequest;
use tpu_core::plan::types;

use super::{Begins, Beside};

/// The words that name types, if a target is to be chosen. A target of that very name comes first.
pub(super) fn types(
    said: &Beside,
    sorted: &mut Sorted,
    data: &Data,
    begins: Begins,
) -> Option<Vec<String>> {
    // What waits may wait for a target that is yet to come.
    let is_known = |word: &str| match begins {
        Begins::Now => wish::is_type(data, word),
        Begins::InTurn => wish::is_type(data, word) || types::is_type(word),
    };
    let is_type = |word: &String| data.resolve_target(word).is_none() && is_known(word);
    let (types, rest): (Vec<String>, Vec<String>) = sorted.rest.drain(..).partition(is_type);
    sorted.rest = rest;
    let is_wait_alone = said.waits && sorted.rest.is_empty();
    let chosen = !types.is_empty() || said.is_any || is_wait_alone;
    chosen.then_some(types)
}

/// The machines among which one is to be chosen, if several are named, or one that has room for several and is to be
/// waited for. A target of a type comes first.
pub(super) fn among(
    said: &Beside,
    sorted: &mut Sorted,
    data: &Data,
) -> Result<Option<Vec<String>>, Error> {
    let takes_several = |word: &str| {
        data.resolve_target(word).is_some_and(|target| {
            data.registration(&target.name).is_some_and(|known| known.host.is_some())
                || target.is_here()
        })
    };
    let is_meant = |word: &String| {
        named::is_of_several(data, word)
            || (said.waits || said.policy.is_some()) && takes_several(word)
    };
    let (among, rest): (Vec<String>, Vec<String>) = sorted.rest.drain(..).partition(is_meant);
    sorted.rest = rest;
    if among.is_empty() {
        return match &said.policy {
            None => Ok(None),
            Some(_) => Err(Error::usage("--policy says which of several machines is taken")
                .hint("name some, as in: tpu run gpu[1-4] --policy smart -- COMMAND")),
        };
    }
    if let Some(word) = sorted.rest.first() {
        return Err(Error::not_found(format!("'{word}' is neither a user nor a target"))
            .hint("`tpu hosts` lists machines and pools; put -- before a command"));
    }
    named::named(data, &among)?;
    Ok(Some(among))
}

/// Reads `--policy`.
pub(super) fn policy(word: &str) -> Result<Policy, Error> {
    Policy::parse(word).ok_or_else(|| {
        let known = Policy::ALL.map(Policy::as_str);
        let hint = did_you_mean(word, known).unwrap_or_else(|| known.join(", "));
        Error::usage(format!("--policy {word}: no such policy")).hint(hint)
    })
}

/// Whether any target of a type will do.
pub(super) fn is_of_type(target: &TargetRequest) -> bool {
    matches!(target, TargetRequest::Any(any_of) if any_of.among.is_empty())
}

/// Where no target is named, what is said of one kind of target alone may say which is meant.
pub(super) fn name_usual_target(
    ctx: &Ctx,
    said: &Beside,
    sorted: &mut Sorted,
) -> Result<(), Error> {
    let is_named = |(key, _): &(String, String)| matches!(key.as_str(), "tpu" | "ka");
    if !sorted.rest.is_empty() || sorted.pairs.iter().any(is_named) {
        return Ok(());
    }
    let usual = ctx.kinds.all().find_map(|kind| kind.usual_target(&said.options, ctx));
    sorted.rest.extend(usual.transpose()?.map(|name| name.to_string()));
    Ok(())
}

/// The one word that is left is the target; the original also knew `tpu=`.
pub(super) fn target(sorted: &mut Sorted, data: &Data) -> Result<String, Error> {
    let named = sorted.take("tpu").or_else(|| sorted.take("ka"));
    let is_target = |word: &&String| data.resolve_target(word).is_some();
    let has_target = named.is_some() || sorted.rest.iter().any(|word| is_target(&word));
    if let Some(word) = sorted.rest.iter().find(|word| has_target && !is_target(word)) {
        let users = data.users().iter().map(|user| user.name.as_str());
        return Err(Error::not_found(format!("'{word}' is neither a user nor a target")).hint(
            did_you_mean(word, users).unwrap_or_else(|| {
                "`tpu list-users` lists the users; put -- before a command".to_owned()
            }),
        ));
    }
    match (named, sorted.rest.as_slice()) {
        (Some(target), []) => Ok(target),
        (None, [target]) => Ok(target.clone()),
        (None, []) => Err(Error::usage("which target?").hint(
            "e.g. tpu run local -- python train.py (`local` is this machine; `tpu -lta` lists the others)",
        )),
        (named, words) => {
            let all: Vec<&str> =
                named.iter().map(String::as_str).chain(words.iter().map(String::as_str)).collect();
            Err(Error::usage(format!("one of these too many: {}", all.join(", ")))
                .hint("one target and one user; configs are KEY=VALUE; put -- before a command"))
        }
    }
}
