//! Fields of a file that stand in others: `name: llama-{{tag}}`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use crate::BadFile;
use crate::yaml::{LARGEST, Yaml, YamlValue};
use tpu_core::text::did_you_mean;
use tpu_core::text::fields::{TextPiece, pieces};

/// `{{"{{"}}` stands for what begins a field, as it is.
const LITERAL: &str = "\"{{\"";

/// So many characters may be filled in, in all jobs of a file together, and so many copies be made of what holds for all of
/// them: a file that fits in here does not become one that does not.
pub(super) const MOST_FILLED: usize = 4 * LARGEST;

/// What may be filled in.
pub(super) struct Known<'a> {
    /// How much of [`MOST_FILLED`] is left.
    room: &'a Cell<usize>,
    /// The members of the job.
    job: &'a [(String, Yaml)],
    /// What differs between the members of its array.
    axes: Vec<&'a str>,
    /// `--set KEY=VALUE`.
    set: &'a [(String, String)],
    /// Which of those were asked for.
    asked: &'a RefCell<BTreeSet<String>>,
    /// Axes that the command names.
    in_command: RefCell<BTreeSet<String>>,
    /// The fields that are being filled in, each into the one before it.
    within: RefCell<Vec<String>>,
}

impl<'a> Known<'a> {
    pub(super) fn new(
        room: &'a Cell<usize>,
        job: &'a [(String, Yaml)],
        set: &'a [(String, String)],
        asked: &'a RefCell<BTreeSet<String>>,
    ) -> Self {
        let array = job.iter().find(|(key, _)| key == "array").map(|(_, array)| &array.value);
        let axes = match array {
            Some(YamlValue::Map(axes)) => axes.iter().map(|(axis, _)| axis.as_str()).collect(),
            _ => Vec::new(),
        };
        let (in_command, within) = (RefCell::default(), RefCell::default());
        Self { room, job, axes, set, asked, in_command, within }
    }

    /// The axes that the command names, as far as it was filled.
    pub(super) fn in_command(self) -> Vec<String> {
        self.in_command.into_inner().into_iter().collect()
    }

    /// A value with all fields filled in but, in the command, those in which members differ.
    pub(super) fn fill(&self, value: &Yaml, field: &str) -> Result<Yaml, BadFile> {
        let filled = match &value.value {
            YamlValue::Blank => YamlValue::Blank,
            YamlValue::Text(text) => YamlValue::Text(self.text(text, value, field)?),
            YamlValue::List(all) => {
                let all = all.iter().map(|one| self.fill(one, field));
                YamlValue::List(all.collect::<Result<_, _>>()?)
            }
            YamlValue::Map(all) => {
                let member = |(key, value): &(String, Yaml)| {
                    Ok((key.clone(), self.fill(value, &format!("{field}.{key}"))?))
                };
                YamlValue::Map(all.iter().map(member).collect::<Result<_, _>>()?)
            }
        };
        Ok(Yaml { value: filled, ..value.clone() })
    }

    fn text(&self, text: &str, at: &Yaml, field: &str) -> Result<String, BadFile> {
        let mut filled = String::new();
        for piece in pieces(text) {
            let before = filled.len();
            match piece {
                TextPiece::Plain(text) => filled.push_str(text),
                TextPiece::Field(name) => filled.push_str(&self.value(name, at, field)?),
                TextPiece::Open => {
                    return Err(bad(at, field, "a {{ without }} behind it", "as in {{name}}"));
                }
            }
            // What fills in nothing takes time as well.
            if !take(self.room, filled.len() - before + 1) {
                let what = format!("more than {MOST_FILLED} characters would be filled in");
                return Err(bad(at, field, what, "split it into several files"));
            }
        }
        Ok(filled)
    }

    fn value(&self, name: &str, at: &Yaml, field: &str) -> Result<String, BadFile> {
        if name == LITERAL {
            return Ok("{{".to_owned());
        }
        if self.axes.contains(&name) {
            if field != "command" {
                let what = format!("{{{{{name}}}}} differs from member to member of the array");
                return Err(bad(at, field, what, "it may stand in the command alone"));
            }
            self.in_command.borrow_mut().insert(name.to_owned());
            return Ok(format!("{{{{{name}}}}}"));
        }
        if let Some((_, value)) = self.set.iter().find(|(key, _)| key == name) {
            self.asked.borrow_mut().insert(name.to_owned());
            return Ok(value.clone());
        }
        let Some((_, of)) = self.job.iter().find(|(key, _)| key == name) else {
            return Err(self.unknown(name, at, field));
        };
        match &of.value {
            YamlValue::Text(text) if text.contains("{{") => self.filled_in(name, text, (at, field)),
            YamlValue::Text(text) => Ok(text.clone()),
            YamlValue::Blank | YamlValue::List(_) | YamlValue::Map(_) => {
                let what = format!("{{{{{name}}}}} is no text that could stand here");
                Err(bad(at, field, what, "only a field with one value can be filled in"))
            }
        }
    }

    /// The text of a field into which others are filled.
    fn filled_in(
        &self,
        name: &str,
        text: &str,
        (at, field): (&Yaml, &str),
    ) -> Result<String, BadFile> {
        if field == name || self.within.borrow().iter().any(|outer| outer == name) {
            let what = format!("{{{{{name}}}}} stands for itself");
            return Err(bad(at, field, what, "write out what stands there"));
        }
        self.within.borrow_mut().push(name.to_owned());
        let filled = self.text(text, at, field);
        self.within.borrow_mut().pop();
        filled
    }

    fn unknown(&self, name: &str, at: &Yaml, field: &str) -> BadFile {
        let known = self.job.iter().map(|(key, _)| key.as_str());
        let known = known.chain(self.axes.iter().copied());
        let known = known.chain(self.set.iter().map(|(key, _)| key.as_str()));
        let set = format!("--set {name}=VALUE");
        let hint = match did_you_mean(name, known) {
            Some(guess) => format!("{guess} else {set}"),
            None => format!("a field of this job, a name of its array, or {set}"),
        };
        bad(at, field, format!("nothing is called {name}, as {{{{{name}}}}} asks for"), hint)
    }
}

/// Whether so much is left; it is taken.
pub(super) fn take(room: &Cell<usize>, count: usize) -> bool {
    room.get().checked_sub(count).map(|left| room.set(left)).is_some()
}

fn bad(at: &Yaml, field: &str, what: impl Into<String>, hint: impl Into<String>) -> BadFile {
    BadFile::new(at.line, field, what, hint).at_column(at.column)
}
