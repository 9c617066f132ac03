//! The text that a document was read from: its containers with their layout, for editing, and the record
//! that a job was read from. Reading itself is a [`super::walk`].

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::walk::{Key, Member, blanks_len, key_of, value_len};

/// One member of a container with its layout, as found in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaidOut<'a> {
    /// Blanks between the bracket or comma before it and itself.
    pub(super) lead: &'a str,
    /// The key; none in an array.
    pub(super) key: Key<'a>,
    /// From the key to the value.
    pub(super) colon: &'a str,
    /// The value.
    pub(crate) value: &'a str,
    /// Blanks between the value and the comma or bracket after it.
    pub(super) trail: &'a str,
    /// Where the value begins in the container's text.
    pub(crate) at: usize,
}

impl<'a> LaidOut<'a> {
    /// Key and value alone.
    pub(crate) fn member(&self) -> Member<'a> {
        Member { key: self.key, value: self.value }
    }
}

/// The members of the object or array that `text` is.
pub(crate) fn members(text: &str) -> Vec<LaidOut<'_>> {
    scan(text, 0, &[])
}

fn scan<'a>(text: &'a str, base: usize, spans: &'a [(usize, usize)]) -> Vec<LaidOut<'a>> {
    let mut scan = Scan { text, at: 1, object: text.starts_with('{'), base, spans };
    let mut members = Vec::new();
    while let Some(member) = scan.next() {
        members.push(member);
    }
    members
}

/// A text and where its upper containers begin and end, so that to look at one level of it does not take
/// a walk through all that lies below.
#[derive(Clone)]
pub(crate) struct Source {
    text: Arc<String>,
    /// Begin and end of each container down to one record of `job_data`, by begin.
    spans: Arc<[(usize, usize)]>,
}

impl Source {
    /// A text that has been walked through, and the spans that were met.
    pub(crate) fn new(text: Arc<String>, spans: Vec<(usize, usize)>) -> Self {
        Self { text, spans: spans.into() }
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
    pub(crate) fn members<'a>(&'a self, part: &'a str) -> Vec<LaidOut<'a>> {
        scan(part, self.place(part), &self.spans)
    }
}

/// A record as it was read, with all that the program does not know by name. It shares the text of the
/// document, so that nothing is copied before something has changed.
#[derive(Clone)]
pub struct Raw {
    text: Arc<String>,
    range: Range<usize>,
}

impl Raw {
    /// The record that stands at `range` of a document.
    pub(crate) fn new(document: &Arc<String>, range: Range<usize>) -> Self {
        Self { text: Arc::clone(document), range }
    }

    /// The text of the record; empty if it was never read.
    pub fn text(&self) -> &str {
        self.text.get(self.range.clone()).unwrap_or("")
    }

    /// The record as a map; an empty one if it was never read.
    pub(crate) fn map(&self) -> Map<String, Value> {
        serde_json::from_str(self.text()).unwrap_or_default()
    }
}

impl From<String> for Raw {
    fn from(text: String) -> Self {
        let range = 0..text.len();
        Self { text: Arc::new(text), range }
    }
}

impl Default for Raw {
    fn default() -> Self {
        Self::from(String::new())
    }
}

impl PartialEq for Raw {
    /// Layout is no difference.
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text() || self.map() == other.map()
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// The first member of the object that begins in `text`.
pub(super) fn first_member(text: &str) -> Option<LaidOut<'_>> {
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
    fn next(&mut self) -> Option<LaidOut<'a>> {
        let lead = self.blanks();
        if matches!(self.peek()?, b'}' | b']') {
            return None;
        }
        let (key, colon) = if self.object {
            let key = key_of(self.value());
            let from = self.at;
            let _: &str = self.blanks();
            self.at += 1;
            let _: &str = self.blanks();
            (key, self.text.get(from..self.at)?)
        } else {
            (Key::default(), "")
        };
        let at = self.at;
        let value = self.value();
        let trail = self.blanks();
        if self.peek() == Some(b',') {
            self.at += 1;
        }
        Some(LaidOut { lead, key, colon, value, trail, at })
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Takes blanks.
    fn blanks(&mut self) -> &'a str {
        let from = self.at;
        self.at += blanks_len(self.text.as_bytes().get(from..).unwrap_or(&[]));
        self.text.get(from..self.at).unwrap_or("")
    }

    /// Takes one whole value.
    fn value(&mut self) -> &'a str {
        let from = self.at;
        let begin = self.base + from;
        let known = match self.peek() {
            Some(b'{' | b'[') => self.spans.binary_search_by_key(&begin, |span| span.0).ok(),
            _ => None,
        };
        self.at += match known.and_then(|i| self.spans.get(i)) {
            Some((begin, end)) => end - begin,
            None => value_len(self.text.as_bytes().get(from..).unwrap_or(&[])),
        };
        self.text.get(from..self.at).unwrap_or("")
    }
}
