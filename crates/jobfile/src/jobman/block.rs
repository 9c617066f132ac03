//! A block of JobMan's file, whose keys are taken one by one: what is left over is noted.

use crate::BadFile;
use crate::yaml::{Yaml, YamlValue};
use tpu_core::text::{did_you_mean, either};

use super::ConversionNote;

/// A block.
pub(super) struct Block<'a> {
    /// Its name, as in `tpu`.
    field: String,
    at: Yaml,
    members: &'a [(String, Yaml)],
    taken: Vec<&'static str>,
}

impl<'a> Block<'a> {
    /// The block of a name; an empty one where nothing stands.
    pub(super) fn of(document: &'a Yaml, field: &str) -> Result<Self, BadFile> {
        let found = document.get(field);
        let members = match found {
            None => &[][..],
            Some(at) => at.members(field).map_err(|bad| bad.at_column(at.column))?,
        };
        let at = found.unwrap_or(document).clone();
        Ok(Self { field: field.to_owned(), at, members, taken: Vec::new() })
    }

    /// The map that stands as a value below a block.
    pub(super) fn below(value: &'a Yaml, field: String) -> Result<Self, BadFile> {
        let members = value.members(&field).map_err(|bad| bad.at_column(value.column))?;
        Ok(Self { field, at: value.clone(), members, taken: Vec::new() })
    }

    /// Whether it says anything.
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Takes the value of a key; `null` counts as missing.
    pub(super) fn take(&mut self, key: &'static str) -> Option<&'a Yaml> {
        self.taken.push(key);
        let found = self.members.iter().find(|(known, _)| known == key).map(|(_, value)| value);
        found.filter(|value| value.value != YamlValue::Blank)
    }

    /// The same of a key without which nothing can be done.
    pub(super) fn need(&mut self, key: &'static str, example: &str) -> Result<&'a Yaml, BadFile> {
        self.take(key).ok_or_else(|| {
            let what = "it is missing, and JobMan asks for it";
            self.bad(&self.at, key, what, format!("as in {key}: {example}"))
        })
    }

    /// One of some words.
    pub(super) fn one_of(
        &mut self,
        key: &'static str,
        words: &[&'static str],
    ) -> Result<Option<(&'a Yaml, &'static str)>, BadFile> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let word = words.iter().find(|word| value.text() == Some(word));
        word.map(|word| Some((value, *word)))
            .ok_or_else(|| self.bad(value, key, "no such word", either(words)))
    }

    /// A truth in any of YAML's spellings.
    pub(super) fn truth(&mut self, key: &'static str) -> Result<Option<(&'a Yaml, bool)>, BadFile> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match value.text().map(str::to_ascii_lowercase).as_deref() {
            Some("true" | "yes" | "on") => Ok(Some((value, true))),
            Some("false" | "no" | "off") => Ok(Some((value, false))),
            _ => Err(self.bad(value, key, "a truth is wanted here", "true or false")),
        }
    }

    /// The elements of a list; none where it is missing.
    pub(super) fn list(&mut self, key: &'static str) -> Result<&'a [Yaml], BadFile> {
        match self.take(key).map(|value| (value, &value.value)) {
            None => Ok(&[]),
            Some((_, YamlValue::List(all))) => Ok(all),
            Some((value, _)) => {
                Err(self.bad(value, key, "a list is wanted here", format!("as in {key}: [a, b]")))
            }
        }
    }

    /// A problem with a value of it.
    pub(super) fn bad(
        &self,
        value: &Yaml,
        key: &str,
        what: impl Into<String>,
        hint: impl Into<String>,
    ) -> BadFile {
        BadFile::new(value.line, self.field_of(key), what, hint).at_column(value.column)
    }

    /// A note about a value of it.
    pub(super) fn note(&self, value: &Yaml, key: &str, what: impl Into<String>) -> ConversionNote {
        let place = value.key.unwrap_or((value.line, value.column));
        ConversionNote { place, field: self.field_of(key), what: what.into() }
    }

    fn field_of(&self, key: &str) -> String {
        if self.field.is_empty() { key.to_owned() } else { format!("{}.{key}", self.field) }
    }

    /// Notes what nobody has taken: JobMan leaves unknown keys alone, too.
    pub(super) fn rest(&self, notes: &mut Vec<ConversionNote>) {
        let rest = self.members.iter().filter(|(key, _)| !self.taken.contains(&key.as_str()));
        for (key, value) in rest {
            let near = did_you_mean(key, self.taken.iter().copied());
            let near = near.map(|near| format!(" ({near})")).unwrap_or_default();
            notes.push(self.note(value, key, format!("left out: JobMan has no such key{near}")));
        }
    }
}

/// A value of ours that stands where one of JobMan's stood.
pub(super) fn made(at: &Yaml, value: YamlValue) -> Yaml {
    Yaml { value, ..at.clone() }
}

/// A word of ours.
pub(super) fn word(at: &Yaml, text: impl Into<String>) -> Yaml {
    made(at, YamlValue::Text(text.into()))
}

/// Names of ours with their values, where there are any.
pub(super) fn map_of(at: &Yaml, members: Vec<(&str, Option<Yaml>)>) -> Yaml {
    let said = members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    made(at, YamlValue::Map(said.collect()))
}
