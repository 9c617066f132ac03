//! Editing JSON text without touching what did not change.
//!
//! data.json belongs to several programs and to people. So a changed document is not printed anew:
//! the text that was read is kept, and only the values that differ are replaced. Order, numbers as
//! written (`1e-05`), escapes, indentation and blanks of everything else stay byte for byte, and a
//! write costs little more than a copy.
//!
//! The functions here expect text that `serde_json` has accepted as JSON.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value};

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
                    parts.push(match members.iter().rfind(|member| member.name() == *key) {
                        Some(was) => was.with(self.patch(was.value, value, depth + 1).into()),
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
                        Some(was) => was.with(self.patch(was.value, value, depth + 1).into()),
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
        members: &[Member<'_>],
        edits: &Edits,
        depth: usize,
    ) -> String {
        let mut parts = Vec::with_capacity(members.len() + edits.0.len());
        for (i, member) in members.iter().enumerate() {
            let name = member.name();
            let later = members.iter().skip(i + 1).any(|other| other.name() == name);
            match edits.0.iter().find(|(key, _)| *key == name) {
                // Of a key that is there twice, readers see the last: that is the one to replace.
                Some((_, Some(text))) if !later => parts.push(member.with(text.as_str().into())),
                Some((_, None)) => {}
                Some(_) | None => parts.push(member.with(member.value.into())),
            }
        }
        for (key, text) in &edits.0 {
            if let Some(text) = text
                && !members.iter().any(|member| member.name() == *key)
            {
                parts.push(Part::new(self, Some(key), text.into()));
            }
        }
        self.rejoin(members, ('{', '}'), parts, depth)
    }

    /// An array at `depth` of old `members` (by the start of their text) and new ones, in this order.
    pub(crate) fn edit_array(
        &self,
        members: &[Member<'_>],
        items: Vec<Item<'_>>,
        depth: usize,
    ) -> String {
        let parts = items
            .into_iter()
            .map(|item| {
                let place = item.at.map(|at| members.binary_search_by_key(&at, |member| member.at));
                match place.and_then(Result::ok).and_then(|i| members.get(i)) {
                    Some(was) => was.with(item.text),
                    None => Part::new(self, None, item.text),
                }
            })
            .collect();
        self.rejoin(members, ('[', ']'), parts, depth)
    }

    /// Puts a container together in the layout of the one it replaces.
    fn rejoin<'a>(
        &self,
        was: &[Member<'a>],
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

    fn len(&self) -> usize {
        self.key.len() + self.colon.len() + self.value.len() + self.trail.len()
    }
}

/// One member of a container as found in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    /// Blanks between the bracket or comma before it and itself.
    lead: &'a str,
    /// The key with its quotes; empty in an array.
    key: &'a str,
    /// From the key to the value.
    colon: &'a str,
    /// The value.
    pub(crate) value: &'a str,
    /// Blanks between the value and the comma or bracket after it.
    trail: &'a str,
    /// Where the value begins in the container's text.
    pub(crate) at: usize,
}

impl<'a> Member<'a> {
    /// The key without quotes and escapes.
    pub(crate) fn name(&self) -> Cow<'a, str> {
        let inner = self.key.trim_matches('"');
        if inner.contains('\\') {
            serde_json::from_str(self.key).map_or(Cow::Borrowed(inner), Cow::Owned)
        } else {
            Cow::Borrowed(inner)
        }
    }

    /// The same member with another value.
    fn with(&self, value: Cow<'a, str>) -> Part<'a> {
        Part {
            lead: Some(self.lead),
            key: Cow::Borrowed(self.key),
            colon: self.colon,
            value,
            trail: self.trail,
            at: Some(self.at),
        }
    }
}

/// The members of the object or array that `text` is.
pub(crate) fn members(text: &str) -> Vec<Member<'_>> {
    scan(text, 0, &[])
}

fn scan<'a>(text: &'a str, base: usize, spans: &'a [(usize, usize)]) -> Vec<Member<'a>> {
    let mut scan = Scan { text, at: 1, object: text.starts_with('{'), base, spans };
    std::iter::from_fn(|| scan.next()).collect()
}

/// A text and where its upper containers begin and end, so that to look at one level of it does not take
/// a walk through all that lies below.
#[derive(Clone)]
pub(crate) struct Source {
    text: Arc<str>,
    /// Begin and end of each container down to one record of `job_data`, by begin.
    spans: Arc<[(usize, usize)]>,
}

/// Document, `users`, user, `job_data`, job.
const OUTLINED_LEVELS: usize = 5;

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        let mut spans: Vec<(usize, usize)> = Vec::new();
        let mut open = Vec::new();
        let mut depth = 0_usize;
        let mut at = 0;
        let bytes = text.as_bytes();
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    at += string_len(bytes.get(at..).unwrap_or(&[]));
                    continue;
                }
                b'{' | b'[' => {
                    if depth < OUTLINED_LEVELS {
                        open.push(spans.len());
                        spans.push((at, at));
                    }
                    depth += 1;
                }
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    if depth < OUTLINED_LEVELS
                        && let Some(span) = open.pop().and_then(|i| spans.get_mut(i))
                    {
                        span.1 = at + 1;
                    }
                }
                _ => {}
            }
            at += 1;
        }
        Self { text: text.into(), spans: spans.into() }
    }

    /// The whole text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// A part of it.
    pub(crate) fn part(&self, range: Range<usize>) -> Option<&str> {
        self.text.get(range)
    }

    /// Where `part`, a slice of this text, begins in it.
    pub(crate) fn place(&self, part: &str) -> usize {
        part.as_ptr().addr().saturating_sub(self.text.as_ptr().addr())
    }

    /// The members of a container of this text.
    pub(crate) fn members<'a>(&'a self, part: &'a str) -> Vec<Member<'a>> {
        scan(part, self.place(part), &self.spans)
    }
}

/// Whether a character beyond ASCII is written as `\uXXXX`. Everybody escapes control characters so.
fn has_escaped_characters(text: &str) -> bool {
    let digits = |at: usize| text.get(at + 2..at + 5);
    // `\\u` is an escaped backslash and the letter u.
    let begins_an_escape = |at: usize| {
        text.as_bytes().iter().take(at).rev().take_while(|byte| **byte == b'\\').count() % 2 == 0
    };
    text.match_indices("\\u")
        .any(|(at, _)| begins_an_escape(at) && !matches!(digits(at), None | Some("000" | "001")))
}

fn first_member(text: &str) -> Option<Member<'_>> {
    let start = text.find('{')?;
    let text = text.get(start..)?;
    Scan { text, at: 1, object: true, base: 0, spans: &[] }.next()
}

/// Walks over the members of one container.
struct Scan<'a> {
    text: &'a str,
    at: usize,
    object: bool,
    /// Where `text` begins in the text whose `spans` are known.
    base: usize,
    spans: &'a [(usize, usize)],
}

impl<'a> Scan<'a> {
    fn next(&mut self) -> Option<Member<'a>> {
        let lead = self.blanks();
        if matches!(self.peek()?, b'}' | b']') {
            return None;
        }
        let (key, colon) = if self.object {
            let key = self.value();
            let from = self.at;
            let _: &str = self.blanks();
            self.at += 1;
            let _: &str = self.blanks();
            (key, self.text.get(from..self.at)?)
        } else {
            ("", "")
        };
        let at = self.at;
        let value = self.value();
        let trail = self.blanks();
        if self.peek() == Some(b',') {
            self.at += 1;
        }
        Some(Member { lead, key, colon, value, trail, at })
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Takes blanks.
    fn blanks(&mut self) -> &'a str {
        let from = self.at;
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
        self.text.get(from..self.at).unwrap_or("")
    }

    /// Takes one whole value.
    fn value(&mut self) -> &'a str {
        let from = self.at;
        let begin = self.base + from;
        let known = self.spans.binary_search_by_key(&begin, |span| span.0);
        self.at += match known.ok().and_then(|i| self.spans.get(i)) {
            Some((begin, end)) => end - begin,
            None => value_len(self.text.as_bytes().get(from..).unwrap_or(&[])),
        };
        self.text.get(from..self.at).unwrap_or("")
    }
}

/// The length of the value that `bytes` begins with.
fn value_len(bytes: &[u8]) -> usize {
    match bytes.first() {
        Some(b'"') => string_len(bytes),
        Some(b'{' | b'[') => {
            let mut depth = 0_usize;
            let mut at = 0;
            while let Some(byte) = bytes.get(at) {
                match byte {
                    b'"' => {
                        at += string_len(bytes.get(at..).unwrap_or(&[]));
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            return at + 1;
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
            at
        }
        _ => bytes
            .iter()
            .position(|b| matches!(b, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'))
            .unwrap_or(bytes.len()),
    }
}

/// The length of the string that `bytes` begins with, quotes included.
fn string_len(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
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
