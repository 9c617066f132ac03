//! One walk through JSON text, from value to value, which copies nothing and goes back nowhere.
//!
//! The text must be JSON that [`super::check`] has accepted; of any other text the walk makes nonsense, but
//! ends.

use std::borrow::Cow;
use std::collections::HashSet;
use std::convert::Infallible;

/// The key of a member, as written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Key<'a> {
    /// With its quotes; empty in an array.
    pub(super) quoted: &'a str,
    /// Whether it is written with escapes.
    is_escaped: bool,
}

impl<'a> Key<'a> {
    /// Without quotes and escapes.
    pub(crate) fn name(self) -> Cow<'a, str> {
        if self.is_escaped {
            serde_json::from_str(self.quoted).map_or(Cow::Borrowed(self.inner()), Cow::Owned)
        } else {
            Cow::Borrowed(self.inner())
        }
    }

    /// Whether it is this name.
    #[inline]
    pub(crate) fn is(self, name: &str) -> bool {
        if self.is_escaped {
            return self.name() == name;
        }
        // Nearly every comparison is settled by the length or the first letter.
        let (quoted, name) = (self.quoted.as_bytes(), name.as_bytes());
        quoted.len() == name.len() + 2
            && quoted.get(1) == name.first()
            && quoted.get(1..=name.len()) == Some(name)
    }

    /// A bit that says which names it may be: of [`mark_of`] its name.
    pub(crate) fn mark(self) -> u64 {
        if self.is_escaped { u64::MAX } else { mark_of(self.inner().as_bytes()) }
    }

    #[inline]
    fn inner(self) -> &'a str {
        self.quoted.get(1..self.quoted.len().saturating_sub(1)).unwrap_or("")
    }
}

/// One bit of 64, by length and first letter: names with other bits are other names.
#[inline]
pub(crate) fn mark_of(name: &[u8]) -> u64 {
    let first = name.first().copied().unwrap_or_default();
    1 << ((usize::from(first) + 5 * name.len()) % 64)
}

/// Key and value of a member, as written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    pub(crate) key: Key<'a>,
    pub(crate) value: &'a str,
}

/// The same members, of those with one name the last.
pub(crate) fn once_each(mut members: Vec<Member<'_>>) -> Vec<Member<'_>> {
    let mut later = HashSet::with_capacity(members.len());
    members.reverse();
    members.retain(|member| later.insert(member.key.name()));
    members.reverse();
    members
}

/// A place in a text, on its way to the end of it.
pub(crate) struct Walk<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    spans: Vec<(usize, usize)>,
}

/// Document, `users`, user, `job_data`, job.
const OUTLINED_LEVELS: usize = 5;
/// Room for the members of a record of `job_data`.
const USUAL_MEMBERS: usize = 24;
/// Number of bytes that are looked at together.
const STEP: usize = size_of::<u64>();
/// Number of bytes up to which a text counts as short.
const SHORT: usize = 4 * STEP;

impl<'a> Walk<'a> {
    /// Through a document that begins `at` a place in `text`.
    pub(crate) fn document(text: &'a str, at: usize) -> Self {
        Self { text, at, depth: 0, spans: Vec::new() }
    }

    /// Through a value by itself.
    fn value_alone(text: &'a str) -> Self {
        Self { text, at: 0, depth: OUTLINED_LEVELS, spans: Vec::new() }
    }

    /// Where it is: the number of bytes before it.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Begin and end of every container of a document from itself down to the records of `job_data`, by begin.
    pub(crate) fn into_spans(self) -> Vec<(usize, usize)> {
        self.spans
    }

    /// The first byte of what comes next.
    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Goes through the object that comes next; `each` takes the value of every member.
    pub(crate) fn object<E>(
        &mut self,
        mut each: impl FnMut(&mut Self, Key<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.container(|walk| {
            let key = walk.key();
            each(walk, key)
        })
    }

    /// Goes through the array that comes next; `each` takes every element.
    pub(crate) fn array<E>(
        &mut self,
        each: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.container(each)
    }

    #[inline]
    fn container<E>(&mut self, mut each: impl FnMut(&mut Self) -> Result<(), E>) -> Result<(), E> {
        let span = self.spans.len();
        if self.depth < OUTLINED_LEVELS {
            self.spans.push((self.at, self.at));
        }
        self.at += 1;
        self.depth += 1;
        loop {
            self.blanks();
            if matches!(self.peek(), None | Some(b'}' | b']')) {
                break;
            }
            let before = self.at;
            each(self)?;
            self.blanks();
            if self.peek() == Some(b',') || self.at == before {
                self.at += 1;
            }
        }
        self.at += 1;
        self.depth -= 1;
        if self.depth < OUTLINED_LEVELS
            && let Some(span) = self.spans.get_mut(span)
        {
            span.1 = self.at;
        }
        Ok(())
    }

    /// The members of the object that comes next.
    pub(crate) fn members(&mut self) -> Vec<Member<'a>> {
        let mut members = Vec::new();
        let Ok(()) = self.object::<Infallible>(|walk, key| {
            if members.is_empty() {
                members.reserve(USUAL_MEMBERS);
            }
            members.push(Member { key, value: walk.value() });
            Ok(())
        });
        members
    }

    /// Takes one whole value.
    pub(crate) fn value(&mut self) -> &'a str {
        let from = self.at;
        self.at += value_len(self.text.as_bytes().get(from..).unwrap_or(&[]));
        let is_container = matches!(self.text.as_bytes().get(from), Some(b'{' | b'['));
        if is_container && self.depth < OUTLINED_LEVELS {
            self.spans.push((from, self.at));
        }
        self.text.get(from..self.at).unwrap_or("")
    }

    /// Takes a key and what stands before its value.
    #[inline]
    fn key(&mut self) -> Key<'a> {
        let from = self.at;
        let (len, is_escaped) = string_len(self.text.as_bytes().get(from..).unwrap_or(&[]));
        self.at += len;
        let quoted = self.text.get(from..self.at).unwrap_or("");
        self.blanks();
        self.at += 1;
        self.blanks();
        Key { quoted, is_escaped }
    }

    /// Passes blanks: none, as in a file that is written for programs, one, as behind a colon, or many.
    #[inline]
    fn blanks(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or(&[]);
        self.at += match rest {
            [b' ', next, ..] if *next > b' ' => 1,
            [first, ..] if *first <= b' ' => blanks_len(rest),
            _ => 0,
        };
    }
}

/// The members of the object that `text` is.
pub(crate) fn members(text: &str) -> Vec<Member<'_>> {
    Walk::value_alone(text).members()
}

/// The elements of the array that `text` is.
pub(crate) fn elements(text: &str) -> Vec<&str> {
    let mut elements = Vec::new();
    let Ok(()) = Walk::value_alone(text).array::<Infallible>(|walk| {
        elements.push(walk.value());
        Ok(())
    });
    elements
}

/// The key, or the text, that `quoted` is.
pub(super) fn key_of(quoted: &str) -> Key<'_> {
    Key { quoted, is_escaped: string_len(quoted.as_bytes()).1 }
}

/// The length of the blanks that `bytes` begin with. A file that is written for people is a third indentation, so that
/// is passed in large steps.
pub(super) fn blanks_len(bytes: &[u8]) -> usize {
    const INDENTATION: u64 = u64::from_le_bytes(*b"        ");
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
    let mut len = usize::from(bytes.first() == Some(&b'\n'));
    while let Some(step) = bytes.get(len..).and_then(<[u8]>::first_chunk) {
        let blanks = first_of(u64::from_le_bytes(*step) ^ INDENTATION);
        len += blanks;
        if blanks < STEP {
            break;
        }
    }
    let rest = bytes.get(len..).unwrap_or(&[]);
    len + rest.iter().position(|byte| !is_blank(byte)).unwrap_or(rest.len())
}

/// The place of the first byte that has a bit set; [`STEP`] where none has.
fn first_of(bytes: u64) -> usize {
    bytes.trailing_zeros() as usize / 8
}

/// The length of the value that `bytes` begin with.
pub(super) fn value_len(bytes: &[u8]) -> usize {
    match bytes.first() {
        Some(b'"') => string_len(bytes).0,
        Some(b'{' | b'[') => {
            let mut depth = 0_usize;
            let mut at = 0;
            while let Some(byte) = bytes.get(at) {
                match byte {
                    b'"' => {
                        at += string_len(bytes.get(at..).unwrap_or(&[])).0;
                        continue;
                    }
                    b'\n' => {
                        at += blanks_len(bytes.get(at..).unwrap_or(&[]));
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

/// The length of the string that `bytes` begin with, quotes included, and whether it holds escapes.
#[inline]
fn string_len(bytes: &[u8]) -> (usize, bool) {
    let mut at = 1;
    let mut is_escaped = false;
    while let Some(found) = quote_or_backslash(bytes.get(at..).unwrap_or(&[])) {
        if bytes.get(at + found) == Some(&b'"') {
            return (at + found + 1, is_escaped);
        }
        is_escaped = true;
        at += found + 2;
    }
    (bytes.len(), is_escaped)
}

/// The place of the first quote or backslash. Most texts are so short that eight bytes at a time are faster than a search
/// that is made for long ones.
#[inline]
fn quote_or_backslash(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    /// A bit is set in the first byte that is the wanted one, and in none before it.
    fn places_of(wanted: u8, bytes: u64) -> u64 {
        let others = bytes ^ (ONES * u64::from(wanted));
        others.wrapping_sub(ONES) & !others & (ONES << 7)
    }
    let mut short = 0;
    while short < SHORT
        && let Some(step) = bytes.get(short..).and_then(<[u8]>::first_chunk)
    {
        let step = u64::from_le_bytes(*step);
        let found = first_of(places_of(b'"', step) | places_of(b'\\', step));
        short += found;
        if found < STEP {
            return Some(short);
        }
    }
    let rest = bytes.get(short..).unwrap_or(&[]);
    memchr::memchr2(b'"', b'\\', rest).map(|found| short + found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_find_what_single_bytes_show() {
        for len in 0..3 * SHORT {
            for before in ["", "x", "é", "\u{1}"] {
                for end in ["\"", "\\\"", "!", "#", "[", "]"] {
                    let text = format!("{before}{}{end}\" ,", "a".repeat(len));
                    let found = text.find(['"', '\\']);
                    assert_eq!(quote_or_backslash(text.as_bytes()), found, "{text}");
                }
            }
            for first in ["", "\n", "\r\n", "\t", "\n\n"] {
                let blanks = format!("{first}{}", " ".repeat(len));
                for rest in ["", "\"a\": 1", "}", "\u{a0}", "\t", " \n  x"] {
                    let text = format!("{blanks}{rest}");
                    let len = text.len() - text.trim_start_matches([' ', '\n', '\r', '\t']).len();
                    assert_eq!(blanks_len(text.as_bytes()), len, "{text:?}");
                }
            }
        }
    }
}
