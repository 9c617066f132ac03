//! Editing JSON text without touching what did not change.
//!
//! data.json belongs to several programs and to people. So a changed document is not printed anew:
//! the text that was read is kept, and only the values that differ are replaced. Order, numbers as
//! written (`1e-05`), escapes, indentation and blanks of everything else stay byte for byte, and a
//! write costs little more than a copy.
//!
//! The functions here expect text that [`super::check`] has accepted.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::source::{LaidOut, first_member, members};

/// How a document is laid out, for the parts that are new in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    /// One level of indentation; `None` when all is on one line.
    indent: Option<String>,
    /// Whether a blank follows `:` (and `,` on one line).
    blanks: bool,
    /// Whether characters beyond ASCII are written as `\uXXXX`, as Python does.
    ascii: bool,
}

impl Default for Style {
    /// Four blanks, as the original's `json.dump(…, indent=4)`.
    fn default() -> Self {
        Self { indent: Some("    ".to_owned()), blanks: true, ascii: false }
    }
}

impl Style {
    /// Reads the layout off a document that is an object.
    pub(crate) fn detect(text: &str) -> Self {
        let ascii = text.is_ascii() && has_escaped_characters(text);
        let members = first_member(text);
        let Some(first) = members else {
            return Self { ascii, ..Self::default() };
        };
        let indent = first.lead.rfind('\n').and_then(|at| first.lead.get(at + 1..));
        let blanks = first.colon.ends_with(|c: char| c.is_ascii_whitespace());
        Self { indent: indent.map(str::to_owned), blanks, ascii }
    }

    /// The blanks before a member at `depth`, and before the bracket that closes it at `depth - 1`.
    fn lead(&self, depth: usize) -> String {
        match &self.indent {
            Some(indent) => format!("\n{}", indent.repeat(depth)),
            None => String::new(),
        }
    }

    /// What stands between a key and its value.
    fn colon(&self) -> &'static str {
        if self.blanks { ": " } else { ":" }
    }

    /// The blanks before a member that is not the first.
    fn next_lead(&self, depth: usize) -> String {
        if self.indent.is_none() && self.blanks { " ".to_owned() } else { self.lead(depth) }
    }

    /// `text` as a JSON string.
    fn quote(&self, text: &str) -> String {
        let quoted = Value::from(text).to_string();
        if !self.ascii || quoted.is_ascii() {
            return quoted;
        }
        let mut escaped = String::with_capacity(quoted.len() * 2);
        for c in quoted.chars() {
            if c.is_ascii() {
                escaped.push(c);
            } else {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a String cannot fail.
                    let _ = write!(escaped, "\\u{unit:04x}");
                }
            }
        }
        escaped
    }

    /// Prints a value whose own brackets stand at `depth`.
    pub(crate) fn render(&self, value: &Value, depth: usize) -> String {
        match value {
            Value::Object(map) => {
                let parts: Vec<_> = map
                    .iter()
                    .map(|(key, value)| {
                        Part::new(self, Some(key), self.render(value, depth + 1).into())
                    })
                    .collect();
                self.join(('{', '}'), &parts, None, depth)
            }
            Value::Array(list) => {
                let parts: Vec<_> = list
                    .iter()
                    .map(|value| Part::new(self, None, self.render(value, depth + 1).into()))
                    .collect();
                self.join(('[', ']'), &parts, None, depth)
            }
            Value::String(text) => self.quote(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        }
    }

    /// Puts a container together. `close` is the text found before its closing bracket.
    fn join(
        &self,
        brackets: (char, char),
        parts: &[Part<'_>],
        close: Option<&str>,
        depth: usize,
    ) -> String {
        let (first, next) = (self.lead(depth + 1), self.next_lead(depth + 1));
        let leads = |part: &Part<'_>| part.lead.map_or(first.len(), str::len);
        let size: usize = parts.iter().map(|part| part.len() + leads(part) + 1).sum();
        let mut out = String::with_capacity(size + 2 + first.len());
        out.push(brackets.0);
        let mut trail = "";
        for (i, part) in parts.iter().enumerate() {
            if i > 0 {
                out.push_str(trail);
                out.push(',');
            }
            let lead = part.lead.unwrap_or(if i == 0 { &first } else { &next });
            for piece in [lead, &part.key, part.colon, &part.value] {
                out.push_str(piece);
            }
            trail = part.trail;
        }
        if !parts.is_empty() {
            match close {
                Some(close) => out.push_str(close),
                None => out.push_str(&self.lead(depth)),
            }
        }
        out.push(brackets.1);
        out
    }

    /// `value` in the text of `old`, whose own brackets stand at `depth`: what is equal stays.
    pub(crate) fn patch(&self, old: &str, value: &Value, depth: usize) -> String {
        if serde_json::from_str::<Value>(old).is_ok_and(|was| was == *value) {
            return old.to_owned();
        }
        match value {
            Value::Object(map) if old.starts_with('{') => {
                let members = members(old);
                let mut parts = Vec::with_capacity(map.len());
                for (key, value) in map {
                    parts.push(match members.iter().rfind(|member| member.key.name() == *key) {
                        Some(was) => Part::of(was, self.patch(was.value, value, depth + 1).into()),
                        None => Part::new(self, Some(key), self.render(value, depth + 1).into()),
                    });
                }
                self.rejoin(&members, ('{', '}'), parts, depth)
            }
            Value::Array(list) if old.starts_with('[') => {
                let members = members(old);
                let mut parts = Vec::with_capacity(list.len());
                for (i, value) in list.iter().enumerate() {
                    parts.push(match members.get(i) {
                        Some(was) => Part::of(was, self.patch(was.value, value, depth + 1).into()),
                        None => Part::new(self, None, self.render(value, depth + 1).into()),
                    });
                }
                self.rejoin(&members, ('[', ']'), parts, depth)
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => self.render(value, depth),
        }
    }

    /// An object at `depth` of which these are the members, with the named members replaced, added at the end, or removed.
    pub(crate) fn edit_object(
        &self,
        members: &[LaidOut<'_>],
        edits: &Edits,
        depth: usize,
    ) -> String {
        let mut parts = Vec::with_capacity(members.len() + edits.0.len());
        for (i, member) in members.iter().enumerate() {
            let name = member.key.name();
            let later = members.iter().skip(i + 1).any(|other| other.key.name() == name);
            match edits.0.iter().find(|(key, _)| *key == name) {
                // Of a key that is there twice, readers see the last: that is the one to replace.
                Some((_, Some(text))) if !later => {
                    parts.push(Part::of(member, text.as_str().into()));
                }
                Some((_, None)) => {}
                Some(_) | None => parts.push(Part::of(member, member.value.into())),
            }
        }
        for (key, text) in &edits.0 {
            if let Some(text) = text
                && !members.iter().any(|member| member.key.name() == *key)
            {
                parts.push(Part::new(self, Some(key), text.into()));
            }
        }
        self.rejoin(members, ('{', '}'), parts, depth)
    }

    /// An array at `depth` of old `members` (by the start of their text) and new ones, in this order.
    pub(crate) fn edit_array(
        &self,
        members: &[LaidOut<'_>],
        items: Vec<Item<'_>>,
        depth: usize,
    ) -> String {
        let parts = items
            .into_iter()
            .map(|item| {
                let place = item.at.map(|at| members.binary_search_by_key(&at, |member| member.at));
                match place.and_then(Result::ok).and_then(|i| members.get(i)) {
                    Some(was) => Part::of(was, item.text),
                    None => Part::new(self, None, item.text),
                }
            })
            .collect();
        self.rejoin(members, ('[', ']'), parts, depth)
    }

    /// Puts a container together in the layout of the one it replaces.
    fn rejoin<'a>(
        &self,
        was: &[LaidOut<'a>],
        brackets: (char, char),
        mut parts: Vec<Part<'a>>,
        depth: usize,
    ) -> String {
        // A container on one line grows on that line; one that was empty has no layout yet.
        if let Some(first) = was.first() {
            let next = was.get(1).map_or(first.lead, |second| second.lead);
            let next =
                if was.len() == 1 && first.lead.is_empty() && self.blanks { " " } else { next };
            let last = was.last().map(|last| last.at);
            for (i, part) in parts.iter_mut().enumerate() {
                // The blanks after the last one belong to the closing bracket.
                if part.at == last {
                    part.trail = "";
                }
                match part.lead {
                    None if i > 0 => part.lead = Some(next),
                    // Whatever comes first now stands where the first one stood.
                    _ if i == 0 => part.lead = Some(first.lead),
                    _ => {}
                }
            }
        }
        self.join(brackets, &parts, was.last().map(|last| last.trail), depth)
    }
}

/// Replacements (`Some`) and removals (`None`) of the members of one object, as JSON text.
#[derive(Default)]
pub(crate) struct Edits(Vec<(String, Option<String>)>);

impl Edits {
    /// Replaces or adds a member.
    pub(crate) fn set(&mut self, key: &str, text: String) {
        self.0.push((key.to_owned(), Some(text)));
    }

    /// Whether nothing changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes a member.
    pub(crate) fn remove(&mut self, key: &str) {
        self.0.push((key.to_owned(), None));
    }
}

/// One element of an edited array.
pub(crate) struct Item<'a> {
    /// Where its text began in the old array, if it was there.
    pub(crate) at: Option<usize>,
    /// Its text now.
    pub(crate) text: Cow<'a, str>,
}

/// One member of a container about to be put together. What was there before is borrowed.
struct Part<'a> {
    /// Blanks before it, where they are known.
    lead: Option<&'a str>,
    /// The key with its quotes; empty in an array.
    key: Cow<'a, str>,
    /// From the key to the value.
    colon: &'a str,
    /// The value.
    value: Cow<'a, str>,
    /// Blanks before the comma after it.
    trail: &'a str,
    /// Where its value stood, if it was there before.
    at: Option<usize>,
}

impl<'a> Part<'a> {
    /// A member that was not there before.
    fn new(style: &Style, key: Option<&str>, value: Cow<'a, str>) -> Self {
        let colon = if key.is_some() { style.colon() } else { "" };
        let key = Cow::Owned(key.map_or_else(String::new, |key| style.quote(key)));
        Self { lead: None, key, colon, value, trail: "", at: None }
    }

    /// A member that was there before, with this value.
    fn of(was: &LaidOut<'a>, value: Cow<'a, str>) -> Self {
        Self {
            lead: Some(was.lead),
            key: Cow::Borrowed(was.key.quoted),
            colon: was.colon,
            value,
            trail: was.trail,
            at: Some(was.at),
        }
    }

    fn len(&self) -> usize {
        self.key.len() + self.colon.len() + self.value.len() + self.trail.len()
    }
}

/// Whether a character beyond ASCII is written as `\uXXXX`. Everybody escapes control characters so.
fn has_escaped_characters(text: &str) -> bool {
    let digits = |at: usize| text.get(at + 2..at + 5);
    // `\\u` is an escaped backslash and the letter u.
    let begins_an_escape = |at: usize| {
        text.as_bytes().iter().take(at).rev().take_while(|byte| **byte == b'\\').count() % 2 == 0
    };
    memchr::memmem::find_iter(text.as_bytes(), "\\u")
        .any(|at| begins_an_escape(at) && !matches!(digits(at), None | Some("000" | "001")))
}

/// `new` laid over `old`: members that `new` does not name stay, as do order and place of the others.
pub(crate) fn overlay(old: Option<&Value>, new: Value) -> Value {
    match (old, new) {
        (Some(Value::Object(old)), Value::Object(new)) => {
            let mut merged: Map<String, Value> = old.clone();
            for (key, value) in new {
                let value = overlay(old.get(&key), value);
                merged.insert(key, value);
            }
            Value::Object(merged)
        }
        (_, new) => new,
    }
}
