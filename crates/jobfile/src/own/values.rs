//! Values of a file: each a small reader that says what is wanted where something else stands.

use crate::BadFile;
use crate::yaml::{Yaml, YamlValue};
use tpu_core::text::did_you_mean;

/// A problem with a value.
pub(super) fn bad(
    at: &Yaml,
    field: &str,
    what: impl Into<String>,
    hint: impl Into<String>,
) -> BadFile {
    BadFile::new(at.line, field, what, hint).at_column(at.column)
}

/// A problem with the key of a value.
pub(super) fn bad_key(
    value: &Yaml,
    field: &str,
    what: impl Into<String>,
    hint: impl Into<String>,
) -> BadFile {
    let (line, column) = value.key.unwrap_or((value.line, value.column));
    BadFile::new(line, field, what, hint).at_column(column)
}

/// A key that nobody knows, with the nearest.
pub(super) fn unknown<'a>(
    value: &Yaml,
    (field, key): (&str, &str),
    known: impl Iterator<Item = &'a str> + Clone,
) -> BadFile {
    let hint = did_you_mean(key, known.clone())
        .unwrap_or_else(|| format!("one of {}", known.collect::<Vec<_>>().join(", ")));
    bad_key(value, field, "no such key", hint)
}

/// One value that is not blank, as it stands in the file, without blanks around it.
pub(super) fn text<'a>(value: &'a Yaml, field: &str, example: &str) -> Result<&'a str, BadFile> {
    match value.text() {
        Some(text) => whole(text, value, field),
        None => Err(bad(value, field, "one value is wanted here", format!("as in {example}"))),
    }
}

/// One value as it stands in the file, with its blanks; it may be empty.
pub(super) fn word<'a>(value: &'a Yaml, field: &str) -> Result<&'a str, BadFile> {
    match &value.value {
        YamlValue::Text(text) => whole(text, value, field),
        YamlValue::Blank | YamlValue::List(_) | YamlValue::Map(_) => {
            Err(bad(value, field, "a word is wanted here", "quote it if it is empty: ''"))
        }
    }
}

fn whole<'a>(text: &'a str, value: &Yaml, field: &str) -> Result<&'a str, BadFile> {
    if text.contains('\0') {
        return Err(bad(value, field, "a byte 0 stands in it", "no program can be given one"));
    }
    Ok(text)
}

/// A truth.
pub(super) fn truth(value: &Yaml, field: &str) -> Result<bool, BadFile> {
    match value.text() {
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        _ => Err(bad(value, field, "a truth is wanted here", "true or false")),
    }
}

/// One value, or a list of them; at least one.
pub(super) fn texts<'a>(
    value: &'a Yaml,
    field: &str,
    example: &str,
) -> Result<Vec<(&'a Yaml, &'a str)>, BadFile> {
    match &value.value {
        YamlValue::List(all) if !all.is_empty() => {
            all.iter().map(|one| Ok((one, text(one, field, example)?))).collect()
        }
        _ => Ok(vec![(value, text(value, field, example)?)]),
    }
}

/// The members of a map; at least one.
pub(super) fn map<'a>(
    value: &'a Yaml,
    field: &str,
    example: &str,
) -> Result<&'a [(String, Yaml)], BadFile> {
    match &value.value {
        YamlValue::Map(members) if !members.is_empty() => Ok(members),
        _ => {
            let what = "names with values are wanted here";
            Err(bad(value, field, what, format!("as in {example}")))
        }
    }
}
