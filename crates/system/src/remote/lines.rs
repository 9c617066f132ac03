//! The bytes that a command says, cut into lines.

use super::Output;

/// What is handed on although its line has not ended, so that no output fills the memory.
const LONGEST: usize = 2 << 20;

/// The beginning of a line, and where in the output it ends so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    partial: Vec<u8>,
    /// Bytes that were handed on or are in `partial`.
    offset: u64,
}

impl Lines {
    /// Begins where an earlier listener stopped.
    pub(super) fn from(offset: u64) -> Self {
        Self { partial: Vec::new(), offset }
    }

    /// Bytes that were taken so far.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Takes some more, and hands on what has ended. A carriage return and a line feed end one line, not
    /// two.
    pub(super) fn take(&mut self, mut bytes: &[u8], said: &mut Vec<Output>) {
        while let Some(first) = bytes.first() {
            if *first != b'\n' && self.partial.last() == Some(&b'\r') {
                self.hand_on(said);
            }
            let end = memchr::memchr2(b'\n', b'\r', bytes);
            let room = LONGEST.saturating_sub(self.partial.len()).max(1);
            let count = end.map_or(bytes.len(), |end| end + 1).min(room);
            let (now, later) = bytes.split_at(count);
            self.partial.extend_from_slice(now);
            self.offset += now.len() as u64;
            if now.last() == Some(&b'\n') || self.partial.len() >= LONGEST {
                self.hand_on(said);
            }
            bytes = later;
        }
    }

    /// Hands on what is left at the end.
    pub(super) fn end(&mut self, said: &mut Vec<Output>) {
        if !self.partial.is_empty() {
            self.hand_on(said);
        }
    }

    fn hand_on(&mut self, said: &mut Vec<Output>) {
        let bytes = std::mem::take(&mut self.partial);
        said.push(Output::Line { bytes, end: self.offset });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(chunks: &[&[u8]]) -> Vec<(Vec<u8>, u64)> {
        let (mut lines, mut said) = (Lines::from(10), Vec::new());
        for chunk in chunks {
            lines.take(chunk, &mut said);
        }
        lines.end(&mut said);
        let line = |said| match said {
            Output::Line { bytes, end } => (bytes, end),
            Output::End(end) => panic!("an end: {end:?}"),
        };
        said.into_iter().map(line).collect()
    }

    #[test]
    fn lines_end_where_they_end_however_the_bytes_come() {
        let text = b"one\rtwo\r\nthree\n\0\xff";
        let expected = [(&b"one\r"[..], 14), (b"two\r\n", 19), (b"three\n", 25), (b"\0\xff", 27)];
        let expected: Vec<_> = expected.map(|(bytes, end)| (bytes.to_vec(), end)).to_vec();
        assert_eq!(cut(&[text]), expected);
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(cut(&bytes), expected);
    }

    #[test]
    fn a_line_without_an_end_is_handed_on_in_pieces() {
        let long = vec![b'x'; LONGEST * 2 + 1];
        let lengths: Vec<usize> = cut(&[&long]).iter().map(|(bytes, _)| bytes.len()).collect();
        assert_eq!(lengths, [LONGEST, LONGEST, 1]);
    }
}
