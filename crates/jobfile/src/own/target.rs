//! `target:`, in each of its forms.

use serde_json::Value;

use crate::BadFile;
use crate::yaml::{Yaml, YamlValue};
use tpu_core::model::capacity::Ask;
use tpu_core::text::either;

use super::values::{bad, bad_key, text, texts, unknown};
use super::{KindKey, KindWords, OwnTarget};

const EXAMPLE: &str = "target: local";
const OF_TYPE: &str = "target: {type: v6e-16, zone: us-east5-b, pricing: spot}";

/// What is said of any that is there of a type.
pub(super) const TYPE: [&str; 3] = ["type", "zone", "pricing"];

/// How it may be paid for.
pub(super) const PRICING: [&str; 3] = ["on-demand", "spot", "preemptible"];

/// A target, and what is asked of it beside a place.
pub(super) fn read(
    value: &Yaml,
    kinds: &[KindWords],
) -> Result<(OwnTarget, Vec<(String, String)>), BadFile> {
    let place = (value.line, value.column);
    let members = match &value.value {
        YamlValue::Map(members) => members,
        YamlValue::Blank | YamlValue::Text(_) | YamlValue::List(_) => {
            let words = words(value, "target")?;
            return Ok((OwnTarget { words, ..OwnTarget::at(place) }, Vec::new()));
        }
    };
    if value.get("type").is_some() {
        return Ok((of_type(value, members)?, Vec::new()));
    }
    let kind_of = |key: &str| kinds.iter().find(|kind| kind.word == key);
    let forms = members.iter().filter(|(key, _)| key == "hosts" || kind_of(key).is_some());
    let (form, named) = match forms.collect::<Vec<_>>().as_slice() {
        [(form, named)] => (form.as_str(), named),
        [_, (other, of), ..] => {
            let what = "two targets in one";
            let hint = "a list takes the best of several: target: [a, b]";
            return Err(bad_key(of, &format!("target.{other}"), what, hint));
        }
        [] => {
            let known = kinds.iter().map(|kind| kind.word.as_str()).chain(["hosts", "type"]);
            return Err(match members.first() {
                Some((key, of)) => unknown(of, (&format!("target.{key}"), key), known),
                None => bad(value, "target", "no target", format!("as in {EXAMPLE}")),
            });
        }
    };
    let kind = kind_of(form);
    let options_of = kind.map(|kind| kind.options.as_slice()).unwrap_or_default();
    let mut target = OwnTarget {
        words: words(named, &format!("target.{form}"))?,
        kind: kind.map(|kind| kind.word.clone()),
        ..OwnTarget::at((named.line, named.column))
    };
    let mut asks = Vec::new();
    for (key, of) in members.iter().filter(|(key, _)| key != form) {
        let field = format!("target.{key}");
        let option = options_of.iter().find(|option| option.is_called(key));
        match option {
            Some(option) => {
                let said = of_kind(of, (&field, key), option)?;
                let before = target.options.all(option.option).len();
                let second = said.get(1_usize.saturating_sub(before));
                if let (false, Some((second, _))) = (option.is_many, second) {
                    return Err(bad(second, &field, "it is said twice", "name one value"));
                }
                for (_, value) in said {
                    target.options.say(option.option, value);
                }
            }
            None if Ask::KEYS.contains(&key.as_str()) => asks.push(ask(key, of, &field)?),
            None if key == "nodes" => {
                let hint = "leave it away: one of the machines is taken";
                return Err(bad_key(of, &field, "not supported yet", hint));
            }
            None => {
                let known = options_of.iter().map(KindKey::key).chain(Ask::KEYS);
                return Err(unknown(of, (&field, key), known));
            }
        }
    }
    Ok((target, asks))
}

/// The values of an option of a kind. A map is the JSON of it.
fn of_kind<'y>(
    value: &'y Yaml,
    (field, key): (&str, &str),
    option: &KindKey,
) -> Result<Vec<(&'y Yaml, String)>, BadFile> {
    let all = match &value.value {
        YamlValue::List(all) if !all.is_empty() => all.iter().collect(),
        _ => vec![value],
    };
    let one = |one: &'y Yaml| match &one.value {
        YamlValue::Map(members) if option.takes_map && !members.is_empty() => {
            Ok((one, json(one).to_string()))
        }
        _ => Ok((one, text(one, field, &format!("{key}: VALUE"))?.to_owned())),
    };
    all.into_iter().map(one).collect()
}

/// A value as JSON: what stands there as a whole number or a truth is one, all else is text.
fn json(value: &Yaml) -> Value {
    match &value.value {
        YamlValue::Blank => Value::Null,
        YamlValue::Text(text) => match text.as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            text => match text.parse::<i64>() {
                Ok(number) if number.to_string() == text => Value::from(number),
                Ok(_) | Err(_) => Value::from(text),
            },
        },
        YamlValue::List(all) => all.iter().map(json).collect(),
        YamlValue::Map(members) => {
            members.iter().map(|(key, value)| (key.clone(), json(value))).collect()
        }
    }
}

/// `{type: …}`: any that is there of a type.
fn of_type(value: &Yaml, members: &[(String, Yaml)]) -> Result<OwnTarget, BadFile> {
    let mut target = OwnTarget::at((value.line, value.column));
    for (key, of) in members {
        let field = format!("target.{key}");
        match key.as_str() {
            "type" => {
                target.place = (of.line, of.column);
                target.words = words(of, &field)?;
            }
            "zone" => target.zones = words(of, &field)?,
            "pricing" => {
                target.reclaimable = match text(of, &field, OF_TYPE)? {
                    "on-demand" => Some(false),
                    "spot" | "preemptible" => Some(true),
                    other => {
                        let hint = either(&PRICING);
                        return Err(bad(of, &field, format!("'{other}' is unknown"), hint));
                    }
                };
            }
            _ => return Err(unknown(of, (&field, key), TYPE.into_iter())),
        }
    }
    Ok(target)
}

fn words(value: &Yaml, field: &str) -> Result<Vec<String>, BadFile> {
    let mut all = Vec::new();
    for (at, word) in texts(value, field, EXAMPLE)? {
        // The words of a command line have other meanings where one of these stands in them.
        if word.starts_with('-') || word.contains(['=', ' ', '\n']) {
            let hint = format!("as in {EXAMPLE}");
            return Err(bad(at, field, format!("'{word}' cannot name a target"), hint));
        }
        all.push(word.to_owned());
    }
    Ok(all)
}

/// What is asked of a target: `gpus: 2`.
pub(super) fn ask(key: &str, value: &Yaml, field: &str) -> Result<(String, String), BadFile> {
    let said = match texts(value, field, &format!("{key}: 2"))?.as_slice() {
        several if key == "gpu" => {
            several.iter().map(|(_, one)| *one).collect::<Vec<_>>().join(",")
        }
        [(_, one)] => (*one).to_owned(),
        _ => return Err(bad(value, field, "one value is wanted here", format!("as in {key}: 2"))),
    };
    match Ask::default().say(key, &said) {
        Some(Err((expected, example))) => {
            let hint = format!("as in {}", example.replace('=', ": "));
            Err(bad(value, field, format!("{said} is not {expected}"), hint))
        }
        Some(Ok(())) | None => Ok((key.to_owned(), said)),
    }
}
