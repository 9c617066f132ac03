//! How the text of many panes is read in one call: what the server is told, and how its answer is cut. Pure.
//!
//! What one pane shows is told from the next in one of two ways. A line of ours behind each pane is right whatever
//! they show, but it is a second command for each, and a command costs a server what it takes to walk all its panes:
//! at a thousand of them the lines cost half as much again as the panes. So many panes are cut by the number of their
//! rows, which the server says in the same go: it does nothing else in between. The rows of a pane are the lines
//! that were written as long as none of them is wrapped; a pane with a row that may go on in the next one is read
//! once more, with its wrapped lines joined.

use std::collections::HashMap;

use bytes::Bytes;
use tmux_interface::ListPanes;

use super::commands::{capture_joined, capture_rows, line, said};
use super::{Capture, Captured};

/// From so many panes on their rows are counted. For fewer the list of all panes may cost more than it saves.
const MANY: usize = 200;

/// One line of it says how many rows a pane has; [`Size::read`] reads it.
const SIZE: &str = "#{pane_id} #{pane_width} #{pane_height} #{history_size}";

/// What was cut out of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// The panes, as they were asked for.
    pub(super) captured: Captured,
    /// Which of them are to be read once more, by [`marked`]; their texts above mean nothing.
    pub(super) again: Vec<usize>,
}

/// What to tell the server to read these panes.
pub(super) fn lines(panes: &[Capture], mark: &str) -> String {
    if panes.len() < MANY { marked(panes, mark) } else { counted(panes, mark) }
}

/// Cuts the answer to [`lines`]. `None` if it is not whole.
pub(super) fn cut(output: &Bytes, mark: &str, panes: &[Capture]) -> Option<Cut> {
    if panes.len() < MANY {
        let captured = cut_marked(output, mark, panes.len())?;
        Some(Cut { captured, again: Vec::new() })
    } else {
        cut_counted(output, mark, panes)
    }
}

/// What to tell the server to read panes with a line behind each of them, which is `mark`.
pub(super) fn marked(panes: &[Capture], mark: &str) -> String {
    let end = said(mark);
    let mut lines = String::with_capacity(panes.len() * 80);
    for pane in panes {
        lines.push_str(&line(&capture_joined(pane)));
        lines.push('\n');
        lines.push_str(&end);
    }
    lines
}

/// Cuts the answer to [`marked`]. A capture without any output is of a pane that is gone. `None` if an end is
/// missing. No text is copied: at a thousand panes it is what a look needs most memory for.
pub(super) fn cut_marked(output: &Bytes, mark: &str, count: usize) -> Option<Captured> {
    let mut blocks: Captured = Vec::with_capacity(count);
    let (mut begin, mut end) = (0, 0);
    for line in output.split_inclusive(|byte| *byte == b'\n') {
        let before = end;
        end += line.len();
        if line.trim_ascii_end() == mark.as_bytes() {
            let full = output.slice(begin..before);
            blocks.push((!full.is_empty()).then(|| without_blank_end(&full)));
            begin = end;
        }
    }
    (blocks.len() == count && begin == output.len()).then_some(blocks)
}

/// Without the blank lines at the end: the part of the screen that nothing was written to.
pub(super) fn without_blank_end(text: &Bytes) -> Bytes {
    let used = text.trim_ascii_end().len();
    if used == 0 {
        return Bytes::new();
    }
    let end = memchr::memchr(b'\n', text.get(used..).unwrap_or_default());
    text.slice(..end.map_or(used, |at| used + at + 1))
}

/// The sizes of all panes, `mark`, and then the rows of these.
fn counted(panes: &[Capture], mark: &str) -> String {
    let mut lines = line(&ListPanes::new().all().format(SIZE).build()) + "\n" + &said(mark);
    for pane in panes {
        lines.push_str(&line(&capture_rows(pane)));
        lines.push('\n');
    }
    lines
}

/// Cuts the answer to [`counted`]. Where the numbers do not fit the text, every pane is to be read once more.
fn cut_counted(output: &Bytes, mark: &str, panes: &[Capture]) -> Option<Cut> {
    let (sizes, begin) = Sizes::read(output, mark)?;
    let mut cut = Cut { captured: Vec::with_capacity(panes.len()), again: Vec::new() };
    let mut rest = output.slice(begin..);
    for (at, pane) in panes.iter().enumerate() {
        let Some(size) = sizes.of(pane) else {
            cut.captured.push(None);
            continue;
        };
        let Some(end) = end_of_rows(&rest, size.rows(pane.history)) else {
            return Some(all(panes));
        };
        let rows = rest.split_to(end);
        if size.may_wrap(&rows) {
            cut.again.push(at);
        }
        cut.captured.push(Some(without_blank_end(&rows)));
    }
    Some(if rest.is_empty() { cut } else { all(panes) })
}

/// Every pane once more.
fn all(panes: &[Capture]) -> Cut {
    Cut { captured: vec![None; panes.len()], again: (0..panes.len()).collect() }
}

/// Where so many rows end; `None` if there are fewer.
fn end_of_rows(text: &[u8], rows: usize) -> Option<usize> {
    match rows.checked_sub(1) {
        None => Some(0),
        Some(last) => memchr::memchr_iter(b'\n', text).nth(last).map(|at| at + 1),
    }
}

/// The panes that a server has, by their ids.
struct Sizes<'t>(HashMap<&'t str, Size>);

impl<'t> Sizes<'t> {
    /// Reads what stands before `mark`, and where what is behind it begins. `None` if there is no mark.
    fn read(output: &'t [u8], mark: &str) -> Option<(Self, usize)> {
        let mut sizes = HashMap::new();
        let mut end = 0;
        for line in output.split_inclusive(|byte| *byte == b'\n') {
            end += line.len();
            let line = str::from_utf8(line.trim_ascii_end()).ok()?;
            if line == mark {
                return Some((Self(sizes), end));
            }
            let (pane_id, size) = Size::read(line)?;
            sizes.insert(pane_id, size);
        }
        None
    }

    fn of(&self, pane: &Capture) -> Option<Size> {
        self.0.get(pane.pane_id.as_str()).copied()
    }
}

/// How many columns and rows a pane has, and how many rows stand above those that it shows.
#[derive(Clone, Copy)]
struct Size {
    columns: usize,
    visible: usize,
    above: usize,
}

impl Size {
    /// Reads a line of [`SIZE`].
    fn read(line: &str) -> Option<(&str, Self)> {
        let mut fields = line.split(' ');
        let pane_id = fields.next()?;
        let mut number = || fields.next()?.parse().ok();
        Some((pane_id, Self { columns: number()?, visible: number()?, above: number()? }))
    }

    /// How many rows a capture with so many above the visible ones has.
    fn rows(self, history: Option<u32>) -> usize {
        let most = history.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
        self.visible + self.above.min(most)
    }

    /// Whether one of the rows may go on in the next one: it fills the pane, or all but the column that a wide
    /// character did not fit into. No character needs more columns than bytes, but a tab, which tmux keeps from 3.5 on.
    fn may_wrap(self, rows: &[u8]) -> bool {
        rows.split(|byte| *byte == b'\n').any(|row| {
            row.len() + 1 >= self.columns || {
                let tabs = memchr::memchr_iter(b'\t', row).count();
                tabs > 0 && row.len() + 7 * tabs + 1 >= self.columns
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_are_cut_at_their_marks() {
        let output = "one\n日本  \n\n   \nEND\nEND\n\n\nEND\n".as_bytes();
        let blocks = cut_marked(&output.into(), "END", 3).unwrap();
        assert_eq!(blocks, [Some("one\n日本  \n".into()), None, Some(Bytes::new())]);
        assert_eq!(
            cut_marked(&output.into(), "END", 4),
            None,
            "an answer that was cut is no answer"
        );
        assert_eq!(cut_marked(&"END\nrest".into(), "END", 1), None);
        assert_eq!(cut_marked(&Bytes::new(), "END", 0), Some(Vec::new()));
    }

    fn panes(ids: &[&str]) -> Vec<Capture> {
        let pane =
            |id: &&str| Capture { pane_id: (*id).to_owned(), history: Some(1), colours: false };
        ids.iter().map(pane).collect()
    }

    #[test]
    fn captures_are_cut_by_their_rows() {
        let wanted = panes(&["%1", "%9", "%2", "%3", "%4"]);
        let sizes = "%1 20 2 7\n%2 20 2 0\n%3 5 1 0\n%4 20 1 0\nEND\n";
        let rows = "above\none\n\n \n\nfive5\n\tsix tabs?\t\n";
        let cut = cut_counted(&format!("{sizes}{rows}").into(), "END", &wanted).unwrap();
        let [one, gone, blank, ..] = cut.captured.as_slice() else { panic!("{cut:?}") };
        assert_eq!((one, gone), (&Some("above\none\n".into()), &None));
        assert_eq!(blank, &Some(Bytes::new()));
        assert_eq!(cut.again, [3, 4], "what fills its pane, and tabs that may");
    }

    #[test]
    fn what_does_not_fit_is_read_once_more_or_no_answer() {
        let wanted = panes(&["%1", "%2"]);
        let sizes = "%1 20 2 0\n%2 20 1 0\nEND\n";
        for rows in ["a\nb\n", "a\nb\nc\nd\n", "a\nb\nc"] {
            let cut = cut_counted(&format!("{sizes}{rows}").into(), "END", &wanted).unwrap();
            assert_eq!(cut.again, [0, 1], "{rows:?}");
        }
        assert_eq!(cut_counted(&"%1 20 2 0\n".into(), "END", &wanted), None, "no end of the list");
        assert_eq!(cut_counted(&"%1 wide\nEND\n".into(), "END", &wanted), None);
    }
}
