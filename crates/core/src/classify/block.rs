//! A block of captured text as frames: its tail, without our own lines, joined where a terminal had cut it.

use memchr::{memrchr, memrchr_iter};

use super::frames::Frames;
use super::{launch, wrap};

/// A block is read from its last so many lines, or from further back where somebody asks for it.
pub(super) const MAX_LINES: usize = 2_000;

impl<'a> Frames<'a> {
    /// Reads the tail of a block without what `tpu` wrote into it, and joins what a terminal's width had cut.
    /// The tail holds `characters` at least.
    pub(super) fn block(text: &'a [u8], characters: u32) -> Self {
        wrap::join(launch::without_ours(Self::lines_of(tail(text, MAX_LINES, characters))))
    }
}

/// The last `lines` lines of `text`, or as many whole ones as it takes to have so many `characters`.
fn tail(text: &[u8], lines: usize, characters: u32) -> &[u8] {
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    let Some(at) = memrchr_iter(b'\n', body).nth(lines.saturating_sub(1)) else { return body };
    let by_lines = at + 1;
    let begins = |byte: &u8| byte & 0xc0 != 0x80;
    let beginnings = body.iter().enumerate().rev().filter(|(_, byte)| begins(byte));
    let last = (characters as usize).checked_sub(1);
    let wanted =
        last.map_or(body.len(), |last| beginnings.map(|(at, _)| at).nth(last).unwrap_or(0));
    let start = if wanted < by_lines { line_start(body, wanted) } else { by_lines };
    body.get(start..).unwrap_or_default()
}

/// Where the line begins in which this byte is.
fn line_start(text: &[u8], at: usize) -> usize {
    text.get(..at).and_then(|before| memrchr(b'\n', before)).map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tail_is_read() {
        let text = "x\n".repeat(5_000) + "last\n";
        let frames = Frames::block(text.as_bytes(), 0);
        assert_eq!(frames.len(), MAX_LINES);
        assert_eq!(frames.line(MAX_LINES - 1), b"last");
        // 5 000 lines of two characters, and four.
        assert_eq!(Frames::block(text.as_bytes(), 4_004).len(), 2_001);
        assert_eq!(Frames::block(text.as_bytes(), u32::MAX).len(), 5_001);
        assert_eq!(tail(b"one\ntwo", 1, 0), b"two");
        assert_eq!(tail(b"one\ntwo", 1, 3), b"two");
        assert_eq!(tail(b"one\ntwo", 1, 4), b"one\ntwo");
        assert_eq!(tail("one\nzwölf\n".as_bytes(), 1, 5), "zwölf".as_bytes());
        assert_eq!(tail(b"", 3, 7), b"");
    }
}
