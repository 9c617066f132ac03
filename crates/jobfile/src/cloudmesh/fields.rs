//! The fields of one entry: each is taken once, by whoever knows it, and what it becomes is written down.

use crate::BadFile;
use crate::yaml::{Yaml, YamlValue};
use tpu_core::text;

/// A field, what it said, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadField {
    /// Its name.
    pub name: String,
    /// What stood there, without quotes; empty where it was blank.
    pub value: String,
    /// What becomes of it, in words.
    pub becomes: String,
}

impl ReadField {
    /// The same with the path of the entry that it stands in.
    pub(super) fn below(self, path: &str) -> Self {
        Self { name: below(path, &self.name), ..self }
    }
}

/// What is said of a field that nobody knows.
const UNKNOWN: &str = "nothing: it is no field that tpu knows";

/// The path of what stands below another.
pub(super) fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A field that nobody knows, whatever stands there.
pub(super) fn unknown(name: &str, value: &Yaml) -> ReadField {
    let shown = match &value.value {
        YamlValue::Blank => String::new(),
        YamlValue::Text(text) => text.trim().to_owned(),
        YamlValue::List(all) => text::counted(all.len(), "value"),
        YamlValue::Map(all) => text::counted(all.len(), "field"),
    };
    ReadField { name: name.to_owned(), value: shown, becomes: UNKNOWN.to_owned() }
}

/// Refuses what no terminal should see. Lines of a value may be several.
pub(super) fn refuse_unsafe(line: u64, path: &str, text: &str) -> Result<(), BadFile> {
    match text.chars().find(|c| text::is_unsafe(*c) && !['\n', '\t'].contains(c)) {
        None => Ok(()),
        Some(c) => {
            let path = text::escape(path).into_owned();
            let what = format!("{} stands in it, which no name or value has", c.escape_unicode());
            Err(BadFile::new(line, path, what, "take that character out"))
        }
    }
}

/// The fields of an entry that nobody has taken yet.
pub(super) struct Fields<'a> {
    path: String,
    line: u64,
    left: Vec<&'a (String, Yaml)>,
    /// What was taken, in the order of the file.
    read: Vec<(usize, ReadField)>,
    all: &'a [(String, Yaml)],
}

impl<'a> Fields<'a> {
    /// Those of the entry in a place.
    pub(super) fn new(yaml: &'a Yaml, path: String) -> Result<Self, BadFile> {
        let all = yaml.members(&path)?;
        Ok(Self { path, line: yaml.line, left: all.iter().collect(), read: Vec::new(), all })
    }

    /// Where a field stands, or its entry.
    pub(super) fn line(&self, name: &str) -> u64 {
        let field = self.all.iter().find(|(known, _)| known == name);
        field.map_or(self.line, |(_, value)| value.line)
    }

    /// A problem with a field.
    pub(super) fn bad(&self, name: &str, what: impl Into<String>, hint: &str) -> BadFile {
        BadFile::new(self.line(name), below(&self.path, name), what, hint)
    }

    /// Takes a field of text; nothing where it is not there or blank.
    pub(super) fn text(&mut self, name: &str, becomes: &str) -> Result<Option<String>, BadFile> {
        let Some(at) = self.left.iter().position(|(known, _)| known == name) else {
            return Ok(None);
        };
        let (_, value) = self.left.remove(at);
        if matches!(value.value, YamlValue::List(_) | YamlValue::Map(_)) {
            let what = "one value is wanted here";
            return Err(self.bad(name, what, "write it on one line, behind the colon"));
        }
        let text = value.text().unwrap_or_default();
        refuse_unsafe(value.line, &below(&self.path, name), text)?;
        let becomes = if text.is_empty() { "nothing: it is blank" } else { becomes };
        self.note(name, text, becomes);
        Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
    }

    /// Takes a number, which may stand in quotes.
    pub(super) fn number(&mut self, name: &str, becomes: &str) -> Result<Option<u32>, BadFile> {
        let Some(text) = self.text(name, becomes)? else { return Ok(None) };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(self.bad(
                name,
                format!("'{}' is no number from 0 to {}", text::cut(&text, 40), u32::MAX),
                "as in '4', with or without quotes",
            )),
        }
    }

    /// Says better what becomes of a field that was taken.
    pub(super) fn becomes(&mut self, name: &str, becomes: impl Into<String>) {
        if let Some((_, field)) = self.read.iter_mut().find(|(_, field)| field.name == name) {
            field.becomes = becomes.into();
        }
    }

    fn note(&mut self, name: &str, value: &str, becomes: &str) {
        let place = self.all.iter().position(|(known, _)| known == name).unwrap_or(usize::MAX);
        let field = ReadField {
            name: name.to_owned(),
            value: value.to_owned(),
            becomes: becomes.to_owned(),
        };
        self.read.push((place, field));
    }

    /// Every field with what became of it, in the order of the file; those that nobody took, too.
    pub(super) fn rest(mut self) -> Vec<ReadField> {
        for (name, value) in std::mem::take(&mut self.left) {
            let place = self.all.iter().position(|(known, _)| known == name);
            self.read.push((place.unwrap_or(usize::MAX), unknown(name, value)));
        }
        self.read.sort_by_key(|(place, _)| *place);
        self.read.into_iter().map(|(_, field)| field).collect()
    }

    /// Where the entry stands.
    pub(super) fn entry_line(&self) -> u64 {
        self.line
    }
}
