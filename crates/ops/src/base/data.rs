//! data.json by path: look up, set, merge. A change is made inside the transaction, on what was just read,
//! and checked as the whole file is when it is read; one that would drop a record is refused.

use serde_json::Value;

use tpu_core::model::data::Data;
use tpu_core::model::job::Job;

use super::error::did_you_mean;
use crate::{Ctx, Error};

/// The key whose value nobody sees.
const SECRET: &str = "wandb_api_key";

/// What is shown instead of it.
const HIDDEN: &str = "(secret)";

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// A member of a map.
    Key(String),
    /// An element of a list.
    Index(usize),
}

/// Takes a path apart: `users.alice.job_data[0].status`; a key with a dot stands in `["…"]`.
fn parse(path: &str) -> Result<Vec<Step>, Error> {
    let bad = || {
        Error::usage(format!("'{path}' is no path"))
            .hint("names with dots between, numbers in brackets: users.alice.job_data[0].status")
    };
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix("[\"") {
            let (key, after) = inside.split_once("\"]").ok_or_else(bad)?;
            steps.push(Step::Key(key.to_owned()));
            rest = after;
        } else if let Some(inside) = rest.strip_prefix('[') {
            let (index, after) = inside.split_once(']').ok_or_else(bad)?;
            steps.push(Step::Index(index.parse().map_err(|_| bad())?));
            rest = after;
        } else {
            let word =
                if steps.is_empty() { rest } else { rest.strip_prefix('.').ok_or_else(bad)? };
            let end = word.find(['.', '[']).unwrap_or(word.len());
            let (key, after) = word.split_at_checked(end).ok_or_else(bad)?;
            if key.is_empty() {
                return Err(bad());
            }
            steps.push(Step::Key(key.to_owned()));
            rest = after;
        }
    }
    Ok(steps)
}

fn missing(steps: &[Step], at: usize, parent: &Value) -> Error {
    let place = shown(steps.get(..at).unwrap_or_default());
    let place = if place.is_empty() { "data.json".to_owned() } else { place };
    match steps.get(at) {
        Some(Step::Key(key)) => {
            let known: Vec<&str> = parent
                .as_object()
                .map(|map| map.keys().map(String::as_str).collect())
                .unwrap_or_default();
            let hint =
                did_you_mean(key, known.iter().copied()).unwrap_or_else(|| match known.len() {
                    0 => "it holds no names".to_owned(),
                    1..=12 => format!("it has {}", known.join(", ")),
                    _ => format!("tpu data get {place} shows what it has"),
                });
            Error::not_found(format!("{place} has no '{key}'")).hint(hint)
        }
        Some(Step::Index(index)) => {
            let length = parent.as_array().map_or(0, Vec::len);
            Error::not_found(format!("{place} has no element {index}"))
                .hint(format!("it has {length}, counted from 0"))
        }
        None => Error::not_found(format!("{place} is not there")).hint("`tpu data get` shows all"),
    }
}

fn shown(steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        match step {
            Step::Key(key) if key.contains(['.', '[']) => text += &format!("[\"{key}\"]"),
            Step::Key(key) if text.is_empty() => text += key,
            Step::Key(key) => text += &format!(".{key}"),
            Step::Index(index) => text += &format!("[{index}]"),
        }
    }
    text
}

fn step_into<'a>(value: &'a mut Value, step: &Step) -> Option<&'a mut Value> {
    match step {
        Step::Key(key) => value.as_object_mut()?.get_mut(key),
        Step::Index(index) => value.as_array_mut()?.get_mut(*index),
    }
}

/// The value at a path, or all of it. A secret is not shown.
pub fn get(ctx: &Ctx, path: Option<&str>) -> Result<Value, Error> {
    let steps = path.map(parse).transpose()?.unwrap_or_default();
    let mut value = ctx.data()?.to_value();
    hide(&mut value);
    let mut at = &mut value;
    for (i, step) in steps.iter().enumerate() {
        if step_into(at, step).is_none() {
            return Err(missing(&steps, i, at));
        }
        at = step_into(at, step).expect("looked a line above");
    }
    Ok(at.take())
}

fn hide(document: &mut Value) {
    if let Some(secret) = document.get_mut(SECRET).filter(|secret| !secret.is_null()) {
        *secret = Value::from(HIDDEN);
    }
}

/// A value that was changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// Where.
    pub path: String,
    /// What was there; `None` if nothing was.
    pub old: Option<Value>,
    /// What is there now.
    pub new: Value,
}

/// Sets the value at a path. Everything above it must be there.
pub fn set(ctx: &Ctx, path: &str, new: &Value) -> Result<Vec<Changed>, Error> {
    let steps = parse(path)?;
    edit(ctx, |document| put(document, &steps, new))
}

fn put(document: &mut Value, steps: &[Step], new: &Value) -> Result<(), Error> {
    let Some((last, above)) = steps.split_last() else {
        return Err(Error::usage("which value?").hint("as in: tpu data set conda_env_name NNX"));
    };
    let mut at = document;
    for (i, step) in above.iter().enumerate() {
        if step_into(at, step).is_none() {
            return Err(missing(steps, i, at));
        }
        at = step_into(at, step).expect("looked a line above");
    }
    match (last, at) {
        (Step::Key(key), Value::Object(map)) => {
            map.insert(key.clone(), new.clone());
            Ok(())
        }
        (Step::Index(index), Value::Array(list)) if *index < list.len() => {
            if let Some(old) = list.get_mut(*index) {
                new.clone_into(old);
            }
            Ok(())
        }
        (Step::Index(index), Value::Array(list)) if *index == list.len() => {
            list.push(new.clone());
            Ok(())
        }
        (_, at) => Err(missing(steps, above.len(), at)),
    }
}

/// Lays `new` over the document: maps are merged, everything else is replaced.
pub fn merge(ctx: &Ctx, new: &Value) -> Result<Vec<Changed>, Error> {
    if !new.is_object() {
        return Err(Error::usage("what is merged must be a map")
            .hint("as in: {\"conda_env_name\": \"NNX\"}"));
    }
    edit(ctx, |document| {
        lay_over(document, new);
        Ok(())
    })
}

fn lay_over(old: &mut Value, new: &Value) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in new {
                lay_over(old.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (old, new) => new.clone_into(old),
    }
}

/// Changes the document in a transaction; what is different afterwards.
fn edit(
    ctx: &Ctx,
    change: impl FnOnce(&mut Value) -> Result<(), Error>,
) -> Result<Vec<Changed>, Error> {
    ctx.transact(|tx| {
        let old = tx.data.to_value();
        let mut new = old.clone();
        change(&mut new)?;
        let data = tx.data.replaced(&new).map_err(|e| {
            Error::usage(format!("data.json would not be readable any more: {e}"))
                .hint("nothing was changed; `tpu data get` shows what stands there")
        })?;
        keeps_records(&tx.data, &data)?;
        let (mut old, mut new) = (old, data.to_value());
        let secret = old.get(SECRET) != new.get(SECRET);
        hide(&mut old);
        hide(&mut new);
        let mut changed = Vec::new();
        differences(&old, &new, &mut Vec::new(), &mut changed);
        if secret && !changed.iter().any(|one| one.path == SECRET) {
            let new = Value::from(HIDDEN);
            changed.push(Changed { path: SECRET.to_owned(), old: Some(new.clone()), new });
        }
        tx.data = data;
        let paths: Vec<&str> = changed.iter().map(|one| one.path.as_str()).collect();
        tx.edited(None, format!("set by hand: {}", paths.join(", ")));
        Ok(changed)
    })
}

/// Records leave the file through the archive and in no other way.
fn keeps_records(old: &Data, new: &Data) -> Result<(), Error> {
    match old.jobs().map(Job::id).find(|id| new.job(id).is_none()) {
        Some(id) => Err(Error::refused(format!("the record of {id} would be lost"))
            .hint(format!("clear it away with: tpu clean {}", id.user))),
        None => Ok(()),
    }
}

fn differences(old: &Value, new: &Value, at: &mut Vec<Step>, into: &mut Vec<Changed>) {
    if old == new {
        return;
    }
    if let (Value::Object(old), Value::Object(new)) = (old, new) {
        let all: Vec<&String> =
            old.keys().chain(new.keys().filter(|key| !old.contains_key(*key))).collect();
        for key in all {
            at.push(Step::Key(key.clone()));
            match (old.get(key), new.get(key)) {
                (Some(old), Some(new)) => differences(old, new, at, into),
                (old, new) => into.push(Changed {
                    path: shown(at),
                    old: old.cloned(),
                    new: new.cloned().unwrap_or(Value::Null),
                }),
            }
            at.pop();
        }
        return;
    }
    into.push(Changed { path: shown(at), old: Some(old.clone()), new: new.clone() });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_come_apart_and_together() {
        for path in ["users.alice.job_data[0].status", "conda_env_name", "a[\"b.c\"].d", "x[3][4]"]
        {
            assert_eq!(shown(&parse(path).unwrap()), path);
        }
        for bad in [".", "a..b", "a[", "a[x]", "a]b[", "a.[0", "[\"a"] {
            assert!(parse(bad).is_err() || shown(&parse(bad).unwrap()) == bad, "{bad}");
        }
        assert!(parse("a..b").is_err());
        assert!(parse("a[x]").is_err());
    }

    #[test]
    fn values_are_set_where_their_parents_are() {
        let mut value = json!({ "a": { "b": [1, 2] } });
        put(&mut value, &parse("a.b[1]").unwrap(), &json!(3)).unwrap();
        put(&mut value, &parse("a.b[2]").unwrap(), &json!(4)).unwrap();
        put(&mut value, &parse("a.c").unwrap(), &json!("x")).unwrap();
        assert_eq!(value, json!({ "a": { "b": [1, 3, 4], "c": "x" } }));
        for bad in ["x.y", "a.b.c", "a.b[9]", "a[0]"] {
            assert!(put(&mut value, &parse(bad).unwrap(), &json!(0)).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_differs_is_named_by_its_path() {
        let (old, new) =
            (json!({ "a": { "b": 1, "c": 2 } }), json!({ "a": { "b": 1, "c": 3 }, "d": 4 }));
        let mut merged = old.clone();
        lay_over(&mut merged, &json!({ "a": { "c": 3 }, "d": 4 }));
        assert_eq!(merged, new);
        let mut changed = Vec::new();
        differences(&old, &new, &mut Vec::new(), &mut changed);
        let paths: Vec<&str> = changed.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths, ["a.c", "d"]);
        assert_eq!(changed[1].old, None);
    }
}
