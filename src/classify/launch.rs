//! Cuts a pane to what one launch of a job has printed.

use memchr::memmem;

/// What the launcher prints at a start, before the launch token.
const MARKER: &[u8] = b"tpu: launch ";

/// The part of a pane that belongs to the launch `token`: from its last start line to the next start of
/// another launch, or to the end.
///
/// Without such a start line it has scrolled out of the history, and all that is left came after it:
/// then the text up to the first start line of another launch is returned.
pub fn after_launch<'a>(text: &'a [u8], token: &str) -> &'a [u8] {
    let mut from = None;
    let mut to = text.len();
    for at in memmem::rfind_iter(text, MARKER) {
        let rest = text.get(at + MARKER.len()..).unwrap_or_default();
        let name = rest.iter().take_while(|b| is_token(**b)).count();
        if rest.get(..name) == Some(token.as_bytes()) {
            let line = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
            from = Some(at + MARKER.len() + line);
            break;
        }
        to = memchr::memrchr(b'\n', text.get(..at).unwrap_or_default()).map_or(0, |end| end + 1);
    }
    text.get(from.unwrap_or(0)..to).unwrap_or_default()
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_launch_is_read() {
        let pane = b"old\ntpu: launch aa1 (attempt 1)\nfirst\ntpu: launch bb2\nsecond\n";
        assert_eq!(after_launch(pane, "bb2"), b"second\n");
        assert_eq!(after_launch(pane, "aa1"), b"first\n");
        assert_eq!(after_launch(pane, "bb"), b"old\n", "a start of a token is another token");
        assert_eq!(after_launch(b"only text", "aa1"), b"only text");
        assert_eq!(after_launch(b"tpu: launch aa1", "aa1"), b"");
        assert_eq!(after_launch(b"", "aa1"), b"");
    }

    #[test]
    fn the_last_of_several_starts_counts() {
        let pane = b"tpu: launch aa1\nfailed\n[x] tpu: launch aa1\nagain\n";
        assert_eq!(after_launch(pane, "aa1"), b"again\n");
    }
}
