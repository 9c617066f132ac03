//! From the bytes of a pane to logical lines: escapes out, redraws resolved, our own words out, wraps joined,
//! prefixes found.
//!
//! Start at `Frames::block`. Every rule reads what this file makes, so a launcher's prefix, a colour
//! or the width of a window can hide nothing from a rule.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;

use memchr::memchr_iter;

use super::prefix::{self, Prefix};
use crate::text;

/// One logical line: where it is in the buffer, and which physical line it ended on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Place in the buffer, without the line end.
    pub(super) at: Range<usize>,
    /// Index of the physical line, from 0 at the start of the window that was read.
    pub(super) physical: usize,
}

/// The logical lines of one text.
#[derive(Debug)]
pub(super) struct Frames<'a> {
    buffer: Cow<'a, [u8]>,
    lines: Vec<Span>,
    physical: usize,
    /// Filled line by line as they are asked for: most lines never are.
    prefixes: OnceCell<Vec<OnceCell<Prefix>>>,
}

impl<'a> Frames<'a> {
    /// Reads a text line by line, joining nothing.
    pub(super) fn lines_of(text: &'a [u8]) -> Self {
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        if !has_controls(text) {
            let lines = split(text)
                .enumerate()
                .map(|(physical, at)| Span { at, physical })
                .collect::<Vec<_>>();
            let physical = lines.len();
            return Self::new(Cow::Borrowed(text), lines, physical);
        }
        let mut builder = Builder::default();
        // Escape strings may hold line ends only when cut, so stripping first keeps the line numbers.
        let plain = text::strip(text);
        let mut physical = 0;
        for at in split(&plain) {
            let line = plain.get(at).unwrap_or_default();
            if has_controls(line) {
                for frame in redraws(line) {
                    builder.push(&frame, physical);
                }
            } else {
                builder.push(line, physical);
            }
            physical += 1;
        }
        builder.finish(physical)
    }

    fn new(buffer: Cow<'a, [u8]>, lines: Vec<Span>, physical: usize) -> Self {
        Self { buffer, lines, physical, prefixes: OnceCell::new() }
    }

    /// Number of logical lines.
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// The text of a logical line.
    pub(super) fn line(&self, index: usize) -> &[u8] {
        let at = self.lines.get(index).map_or(0..0, |span| span.at.clone());
        self.buffer.get(at).unwrap_or_default()
    }

    /// The whole text, one logical line after the other.
    pub(super) fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// The places of all logical lines, in order.
    pub(super) fn spans(&self) -> &[Span] {
        &self.lines
    }

    /// Number of physical lines that were read.
    pub(super) fn physical(&self) -> usize {
        self.physical
    }

    /// Distance of a logical line from the end of the text; the last physical line is 1.
    pub(super) fn line_no(&self, index: usize) -> usize {
        let physical = self.lines.get(index).map_or(0, |span| span.physical);
        self.physical.saturating_sub(physical).max(1)
    }

    /// What stands before the content of a line.
    pub(super) fn prefix(&self, index: usize) -> &Prefix {
        static NOTHING: Prefix = Prefix::NOTHING;
        let all = self.prefixes.get_or_init(|| vec![OnceCell::new(); self.lines.len()]);
        all.get(index).map_or(&NOTHING, |one| one.get_or_init(|| prefix::read(self.line(index))))
    }

    /// The worker whose line it is, if a launcher said so.
    pub(super) fn worker(&self, index: usize) -> Option<&[u8]> {
        let at = self.prefix(index).worker.clone()?;
        self.line(index).get(at)
    }
}

/// Collects logical lines into a fresh buffer.
#[derive(Default)]
pub(super) struct Builder {
    buffer: Vec<u8>,
    lines: Vec<Span>,
}

impl Builder {
    /// Adds a line.
    pub(super) fn push(&mut self, line: &[u8], physical: usize) {
        if !self.lines.is_empty() {
            self.buffer.push(b'\n');
        }
        let start = self.buffer.len();
        self.buffer.extend_from_slice(line);
        self.lines.push(Span { at: start..self.buffer.len(), physical });
    }

    /// Puts more text at the end of the last line.
    pub(super) fn extend(&mut self, more: &[u8], physical: usize) {
        self.buffer.extend_from_slice(more);
        if let Some(last) = self.lines.last_mut() {
            last.at.end = self.buffer.len();
            last.physical = physical;
        }
    }

    /// The finished lines.
    pub(super) fn finish<'a>(self, physical: usize) -> Frames<'a> {
        Frames::new(Cow::Owned(self.buffer), self.lines, physical)
    }
}

/// Whether anything but text, tabs and line ends occurs.
fn has_controls(text: &[u8]) -> bool {
    // Folding whole chunks lets the compiler use vector instructions; an early return would not.
    let control = |b: u8| b < 0x20 && b != b'\n' && b != b'\t';
    text.chunks(4096).any(|chunk| chunk.iter().fold(false, |any, b| any | control(*b)))
}

fn split(text: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut start = 0;
    memchr_iter(b'\n', text).chain(std::iter::once(text.len())).map(move |end| {
        let line = start..end;
        start = end + 1;
        line
    })
}

/// The frames of one line that was redrawn with carriage returns, in order.
///
/// The newest frame of a bar has the newest numbers, and reading goes from the end. The older ones stay,
/// because a message may have been printed into any of them.
fn redraws(line: &[u8]) -> Vec<Cow<'_, [u8]>> {
    let blank = |frame: &&[u8]| !frame.iter().all(u8::is_ascii_whitespace);
    let mut frames: Vec<_> = line.split(|b| *b == b'\r').filter(blank).map(plain).collect();
    frames.dedup();
    if frames.is_empty() {
        frames.push(Cow::Borrowed(&[]));
    }
    frames
}

/// A frame with its backspaces carried out and its other control characters dropped.
fn plain(frame: &[u8]) -> Cow<'_, [u8]> {
    if !frame.iter().any(|b| *b < 0x20 && *b != b'\t') {
        return Cow::Borrowed(frame);
    }
    let mut clean: Vec<u8> = Vec::with_capacity(frame.len());
    for byte in frame {
        match byte {
            0x08 => {
                // A character of several bytes goes as a whole.
                while clean.pop().is_some_and(|gone| gone & 0xc0 == 0x80) {}
            }
            b'\t' | 0x20.. => clean.push(*byte),
            _ => {}
        }
    }
    Cow::Owned(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<String> {
        let frames = Frames::lines_of(text);
        (0..frames.len()).map(|i| String::from_utf8_lossy(frames.line(i)).into_owned()).collect()
    }

    #[test]
    fn a_redrawn_line_is_all_its_frames() {
        assert_eq!(
            lines(b" 10%|# | 1/9\r 20%|## | 2/9\r\nnext\r\n"),
            [" 10%|# | 1/9", " 20%|## | 2/9", "next"]
        );
        assert_eq!(lines(b"ValueError: x\r 20%|## | 2/9"), ["ValueError: x", " 20%|## | 2/9"]);
        assert_eq!(lines(b"\r\r\n\r"), ["", ""]);
    }

    #[test]
    fn backspaces_take_back_whole_characters() {
        assert_eq!(lines("ab\u{8}c é\u{8}e".as_bytes()), ["ac e"]);
        assert_eq!(lines(b"\x08\x08x\x07y"), ["xy"]);
    }

    #[test]
    fn line_numbers_count_from_the_end() {
        let frames = Frames::lines_of(b"a\nb\rc\nd\n");
        let numbers: Vec<_> = (0..frames.len()).map(|i| frames.line_no(i)).collect();
        assert_eq!(numbers, [3, 2, 2, 1]);
    }
}
