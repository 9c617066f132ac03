//! A log as the server sends it, the time of each line in front of it: read line by line, so that whoever reads it again
//! from some second on knows which lines he has.

use serde::{Deserialize, Serialize};

/// Which line of a log: by its time, and of several with one time by which of them it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Place {
    /// When it was printed.
    pub(super) at: jiff::Timestamp,
    /// How many before it have the same time.
    pub(super) same: u32,
}

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Which it is.
    pub(super) place: Place,
    /// What was printed, with the end of the line where it has one.
    pub(super) text: Vec<u8>,
}

/// Reads a log in pieces.
#[derive(Debug, Default)]
pub(super) struct Stamped {
    /// What has come of a line that is not whole yet.
    begun: Vec<u8>,
    /// The place of the last line.
    last: Option<Place>,
    /// A line without a time: what serves the log says something of it.
    aside: Option<String>,
}

impl Stamped {
    /// Reads on: the lines that are whole by now.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Line> {
        self.begun.extend_from_slice(bytes);
        let Some(end) = memchr::memrchr(b'\n', &self.begun) else { return Vec::new() };
        let rest = self.begun.split_off(end + 1);
        let whole = std::mem::replace(&mut self.begun, rest);
        whole.split_inclusive(|byte| *byte == b'\n').filter_map(|line| self.line(line)).collect()
    }

    /// What is left, where nothing more will come.
    pub(super) fn rest(&mut self) -> Option<Line> {
        let rest = std::mem::take(&mut self.begun);
        if rest.is_empty() { None } else { self.line(&rest) }
    }

    /// What whoever serves the log has said of it in its place.
    pub(super) fn aside(&self) -> Option<&str> {
        self.aside.as_deref()
    }

    /// A line with its place. Without a time it is a line of whoever serves the log, about it, and none of the log.
    fn line(&mut self, line: &[u8]) -> Option<Line> {
        let Some((at, text)) = taken_apart(line) else {
            self.aside = Some(String::from_utf8_lossy(line).trim().to_owned());
            return None;
        };
        let place = match self.last {
            // A clock that was set back does not put a line before those that were printed earlier.
            Some(last) if at <= last.at => Place { at: last.at, same: last.same + 1 },
            Some(_) | None => Place { at, same: 0 },
        };
        self.last = Some(place);
        Some(Line { place, text: text.to_vec() })
    }
}

/// The time of a line, and what was printed.
fn taken_apart(line: &[u8]) -> Option<(jiff::Timestamp, &[u8])> {
    let space = memchr::memchr(b' ', line)?;
    let (time, text) = line.split_at_checked(space)?;
    Some((std::str::from_utf8(time).ok()?.parse().ok()?, text.get(1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &[u8] =
        b"2026-11-24T10:00:00.5Z one\n2026-11-24T10:00:00.5Z two\n2026-11-24T10:00:01Z \n\
        2026-11-24T09:00:00Z back\n2026-11-24T10:00:02.000000001Z last";

    fn texts(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| String::from_utf8_lossy(&line.text).into_owned()).collect()
    }

    #[test]
    fn however_it_comes_in_pieces_the_lines_are_the_same() {
        let mut whole = Stamped::default();
        let mut expected = whole.feed(LOG);
        expected.extend(whole.rest());
        assert_eq!(texts(&expected), ["one\n", "two\n", "\n", "back\n", "last"]);
        assert!(expected.windows(2).all(|pair| pair[0].place < pair[1].place), "in order");
        for size in 1..LOG.len() {
            let mut pieces = Stamped::default();
            let mut lines: Vec<Line> =
                LOG.chunks(size).flat_map(|piece| pieces.feed(piece)).collect();
            lines.extend(pieces.rest());
            assert_eq!(lines, expected, "{size}");
        }
    }

    #[test]
    fn what_the_kubelet_says_of_a_log_is_none_of_it() {
        let mut log = Stamped::default();
        let said =
            b"unable to retrieve container logs for containerd://12\n2026-11-24T10:00:00Z x\n";
        assert_eq!(texts(&log.feed(said)), ["x\n"]);
        assert!(log.aside().unwrap().starts_with("unable to retrieve"));
    }
}
