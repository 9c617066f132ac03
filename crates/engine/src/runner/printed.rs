//! Output that is kept in one file, as it is asked for: all of it, its end, or as a terminal would show it.

use bytes::Bytes;

use tpu_core::model::time::Timestamp;
use tpu_core::text;

use super::{Chunk, OutputMark, Want};

/// Lines that are shown where so many above them are asked for.
const SCREEN: u32 = 50;

/// A line has about so many bytes: what is read of a log for some of its lines.
const LINE: u64 = 200;

/// No fewer bytes are read at the end of a log.
const LEAST: u64 = 64 * 1024;

/// A number that changes when a file of this length, last written then, does; and about how many lines are above those
/// that are shown.
pub fn mark(length: u64, written: Timestamp) -> OutputMark {
    let written = written.as_second().unsigned_abs();
    OutputMark {
        mark: length.rotate_left(32) ^ written,
        above: (length / LINE).saturating_sub(u64::from(SCREEN)),
    }
}

/// So many bytes at the end are wanted; `None` where it is not the end.
pub fn end(want: Want) -> Option<u64> {
    match want {
        Want::Kept { .. } => None,
        Want::KeptEnd { bytes } => Some(bytes),
        Want::Shown { above, .. } => {
            let lines = above.map(|above| u64::from(above) + u64::from(SCREEN));
            Some(lines.map_or(u64::MAX, |lines| (lines * LINE).max(LEAST)))
        }
    }
}

/// The piece that is wanted, of bytes that begin at `from`.
pub fn piece(bytes: Vec<u8>, from: u64, want: Want) -> Chunk {
    let next = from + bytes.len() as u64;
    let bytes = match want {
        Want::Shown { above, colours } => shown(&bytes, above, colours),
        Want::Kept { .. } | Want::KeptEnd { .. } => bytes,
    };
    Chunk { bytes: Bytes::from(bytes), next }
}

/// The last lines, as a terminal would show them: of what was written over only the last.
fn shown(bytes: &[u8], above: Option<u32>, colours: bool) -> Vec<u8> {
    let lines = above.map_or(usize::MAX, |above| (above + SCREEN) as usize);
    let ended = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let from =
        memchr::memrchr_iter(b'\n', ended).nth(lines.saturating_sub(1)).map_or(0, |at| at + 1);
    let mut shown = Vec::new();
    for line in ended.get(from..).unwrap_or_default().split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let last = memchr::memrchr(b'\r', line).and_then(|at| line.get(at + 1..)).unwrap_or(line);
        shown.extend_from_slice(last);
        shown.push(b'\n');
    }
    if colours { shown } else { text::strip(&shown).into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_over_is_not_shown() {
        let text = b"one\n 1%\r 50%\r100%\r\n\x1b[31mred\x1b[0m\nlast";
        assert_eq!(shown(text, Some(0), false), b"one\n100%\nred\nlast\n");
        assert_eq!(shown(b"", None, true), b"\n");
        let many: Vec<String> = (0..200).map(|i| format!("{i}\n")).collect();
        let lines = shown(many.concat().as_bytes(), Some(10), true);
        assert_eq!(memchr::memchr_iter(b'\n', &lines).count(), 60);
        assert!(lines.starts_with(b"140\n") && lines.ends_with(b"199\n"));
    }
}
