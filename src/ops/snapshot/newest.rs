//! The newest rows of a pane, put to what was read of it before: what the screen reads of a window that
//! only prints on.
//!
//! A thousand windows that print a line a second have all changed at every refresh. To read each as far
//! back as its verdict may reach would be most of what the screen costs, and nearly all of it was read
//! five seconds ago. So a window whose job was seen at work is read from a few rows above where its
//! cursor stood, visible on the screen or not: nothing that is shown or decided is older than the look.
//! Those few rows must be among what was read before, or something is missing in between; a few more above
//! them are read for what a window prints between the look and the reading. The pane is read as far back as
//! ever when they are not; when the new text says anything but that the job goes on and how far it is; and
//! once in [`EVERY`] looks, for what a program may have drawn further up on the screen.

use std::sync::Arc;

use crate::model::facts::{Class, PaneFact, Phase, Progress, Verdict};
use crate::text;
use crate::tmux::Rows;

use super::observe::{Fingerprint, Reading, TAIL};

/// Of so many looks one reads all that a verdict may rest on.
const EVERY: u64 = 12;

/// Rows that must have been read before.
const OVERLAP: usize = 4;

/// A window may have printed so many rows more when its rows are read, which moves all of them up. Where a
/// thousand windows print each second some looks meet that, and each window would have to be read in full.
const DRIFT: usize = 3;

/// More new rows than this are no small reading.
const MOST: i64 = 60;

/// A row that leaves no more columns free may go on in the next one.
const MARGIN: usize = 8;

/// What a launcher prints at a start. What stands before it is another launch's.
const START: &str = "tpu: launch ";

/// The rows that a full reading needs: the screen and what is just above it.
pub(super) fn all_rows(pane: &PaneFact) -> Rows {
    let above = i64::try_from(pane.history_size.min(u64::from(TAIL))).unwrap_or(0);
    Rows { pane_id: pane.pane_id.clone(), from: -above, to: i64::from(pane.height) - 1 }
}

/// The rows that are enough at the `nth` look for a pane of which `old` was read; `None` if they are not.
pub(super) fn new_rows(
    old: &Reading,
    fingerprint: &Fingerprint,
    pane: &PaneFact,
    nth: u64,
) -> Option<Rows> {
    let before = &old.fingerprint;
    let goes_on = old.verdict.class == Class::Running
        && fingerprint.exit.is_none()
        && !pane.dead
        && (before.server, before.size) == (fingerprint.server, fingerprint.size);
    if !goes_on || is_full_due(old, nth) {
        return None;
    }
    // A history that shrinks was cleared or cut.
    let scrolled = pane.history_size.checked_sub(before.history_size)?;
    let above = i64::try_from(pane.history_size).ok()?;
    let cursor = i64::from(before.cursor_y) - i64::try_from(scrolled).ok()?;
    let margin = i64::try_from(DRIFT + OVERLAP).ok()?;
    let from = cursor.min(i64::from(pane.cursor_y)) - margin;
    let to = i64::from(pane.height) - 1;
    // From the first row on there is nothing that it could be put to.
    (from > -above && to - from < MOST).then(|| Rows { pane_id: pane.pane_id.clone(), from, to })
}

/// Whether a pane is to be read in full again at the `nth` look.
pub(super) fn is_full_due(old: &Reading, nth: u64) -> bool {
    nth.wrapping_sub(old.full_at) >= EVERY
}

/// The look as which the first reading of a pane counts: panes that are read first at the same look are not
/// all read in full at the same look again.
pub(super) fn first_full(nth: u64, pane: &PaneFact) -> u64 {
    nth.wrapping_sub(u64::from(pane.pane_pid) % EVERY)
}

/// Whether a row may go on in the next one: then only tmux can join them.
pub(super) fn has_wrapped(text: &str, width: u32) -> bool {
    // A character that takes two columns leaves the last one free, and tmux leaves out blanks at the end.
    let full = (width as usize).saturating_sub(MARGIN);
    text.lines().any(|line| line.len() >= full && text::width(line) >= full)
}

/// The newest rows of a pane beside what was read before.
pub(super) struct Joined<'a> {
    /// The rows that are new, and the last one before them, which a bar may have been drawn into.
    pub(super) new: &'a str,
    /// The last lines of what was read before with the newest rows in their place, as by [`last_lines`].
    pub(super) tail: Arc<str>,
}

/// Puts the newest rows to the last lines of what was read before; `None` if something may be missing in
/// between.
pub(super) fn joined<'a>(tail: &str, rows: &'a str) -> Option<Joined<'a>> {
    if rows.contains(START) {
        return None;
    }
    let lines: Vec<&str> = rows.lines().map(str::trim_end).collect();
    // The first of them were known, however far they have moved; of all places the one with the longest run.
    let (run, place) = (OVERLAP..=OVERLAP + DRIFT).rev().find_map(|run| {
        let known = lines.get(..run)?;
        let is_blank = known.iter().all(|line| line.is_empty());
        (!is_blank).then(|| last_place(tail, known)).flatten().map(|place| (run, place))
    })?;
    let known = tail.get(..place)?;
    // What was known is harmless already.
    let mut all = String::with_capacity(known.len() + rows.len());
    all.push_str(known);
    push_harmless(&mut all, lines.into_iter());
    let last_known = memchr::memchr_iter(b'\n', rows.as_bytes()).nth(run - 2)? + 1;
    let new = rows.get(last_known..)?.trim_end();
    Some(Joined { new, tail: format!("{}\n", shown_part(&all)).into() })
}

/// Where these lines stand last in a text of whole lines.
fn last_place(text: &str, lines: &[&str]) -> Option<usize> {
    let mut wanted = String::new();
    for line in lines {
        wanted.push_str(line);
        wanted.push('\n');
    }
    let is_line = |at: usize| at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n');
    let mut end = text.len();
    loop {
        let at = text.get(..end)?.rfind(&wanted)?;
        if is_line(at) {
            return Some(at);
        }
        end = at + wanted.len() - 1;
    }
}

/// Whether the newest line lacks a number that was known: then a line shortly before it may have it.
pub(super) fn lacks(new: &Progress, known: &Progress) -> bool {
    let mut filled = new.clone();
    filled.fill_from(known);
    filled != *new
}

/// What is known of a job after its newest rows; `None` if they do not say that it goes on.
///
/// A number that they lack is the one that was known: the last full reading found it, at most [`EVERY`]
/// looks ago.
pub(super) fn gone_on(old: &Verdict, mut new: Verdict) -> Option<Verdict> {
    if new.class != Class::Running || new.progress.is_empty() {
        return None;
    }
    let mut known = old.progress.clone();
    if new.phase == Some(Phase::Diverged) {
        known.loss = None;
    }
    new.progress.fill_from(&known);
    Some(new)
}

/// Last lines of a pane that a view carries.
const SHOWN_LINES: usize = 40;

/// The last lines that are not blank, made harmless.
pub(super) fn last_lines(text: &str) -> Arc<str> {
    let part = shown_part(text);
    let mut shown = String::with_capacity(part.len() + 1);
    push_harmless(&mut shown, part.lines().map(str::trim_end));
    shown.into()
}

/// The last lines of a text, without the blank ones at its end.
fn shown_part(text: &str) -> &str {
    let text = text.trim_end();
    let from =
        memchr::memrchr_iter(b'\n', text.as_bytes()).nth(SHOWN_LINES - 1).map_or(0, |at| at + 1);
    text.get(from..).unwrap_or_default()
}

/// Adds lines as they may be shown on a terminal.
fn push_harmless<'a>(all: &mut String, lines: impl Iterator<Item = &'a str>) {
    for line in lines {
        all.push_str(&text::escape(line));
        all.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::facts::ErrorKind;

    fn lines(numbers: std::ops::Range<u32>) -> String {
        let lines: Vec<String> = numbers.map(|n| format!("step {n}\n")).collect();
        lines.concat()
    }

    #[test]
    fn rows_are_put_where_the_same_rows_stood_last() {
        let tail = last_lines(&lines(0..60));
        assert_eq!(tail, lines(20..60).into(), "as many as are shown");
        let rows = lines(54..63) + "\n\n";
        let joined = joined(&tail, &rows).unwrap();
        assert_eq!(joined.tail, lines(23..63).into());
        assert_eq!(
            joined.new,
            lines(59..63).trim_end(),
            "the last one that was known, and the new"
        );
        let (twice, rows) = (lines(0..5) + &lines(0..5), lines(0..6));
        let joined = super::joined(&twice, &rows).unwrap();
        assert_eq!(*joined.tail, lines(0..5) + &lines(0..6));
        let (tail, rows) = ("x1\n1\n2\n3\n4\n", "1\n2\n3\n4\n\u{1b}[31m\n");
        assert_eq!(&*super::joined(tail, rows).unwrap().tail, "x1\n1\n2\n3\n4\n\\u{1b}[31m\n");
    }

    #[test]
    fn rows_that_have_moved_up_since_the_look_are_put_there_too() {
        let tail = lines(0..20);
        for moved in 0..=3 {
            let rows = lines(13 + moved..25);
            let joined = joined(&tail, &rows).unwrap();
            assert_eq!(joined.new, lines(19..25).trim_end(), "{moved}");
            assert_eq!(joined.tail, lines(0..25).into(), "{moved}");
        }
        assert!(joined(&tail, &lines(17..25)).is_none(), "too far");
        // Where a block is printed again and again, the rows that moved stand in the newest one too.
        let block = |n: u32| format!("step {n}\na\nb\nc\nd\ne\n");
        let (one, two) = (block(1), block(2));
        let tail = format!("{one}step 2\na\nb\n");
        let rows = format!("e\n{two}step 3\n");
        assert_eq!(*joined(&tail, &rows).unwrap().tail, one + &two + "step 3\n");
    }

    #[test]
    fn rows_that_something_may_be_missing_before_are_not_put_there() {
        let tail = lines(0..10);
        let cases = [
            (lines(10..20), "nothing in common"),
            (lines(7..20), "too little in common"),
            ("step 9\nother\nstep 0\nstep 1\n".to_owned(), "not in this order"),
            ("tep 4\nstep 5\nstep 6\nstep 7\n".to_owned(), "half a line"),
            (lines(6..9), "fewer rows than must be the same"),
            (lines(6..10) + START + "ab12\n", "of another launch"),
        ];
        for (rows, why) in cases {
            assert!(joined(&tail, &rows).is_none(), "{why}");
        }
        let blank = "\n\n\n\n";
        assert!(joined(&(tail + blank), &(blank.to_owned() + "step 99\n")).is_none(), "blank");
    }

    #[test]
    fn a_job_goes_on_only_if_its_newest_rows_say_so() {
        let at_work = |step| Verdict {
            class: Class::Running,
            progress: Progress { step: Some(step), ..Progress::default() },
            ..Verdict::none()
        };
        let old = Verdict {
            progress: Progress { step: Some(1), loss: Some(0.5), ..Progress::default() },
            ..at_work(1)
        };
        let after = gone_on(&old, at_work(2)).unwrap().progress;
        assert_eq!((after.step, after.loss), (Some(2), Some(0.5)));
        for class in [Class::None, Class::Finished, Class::Failed(ErrorKind::Oom)] {
            assert_eq!(gone_on(&old, Verdict { class, ..at_work(2) }), None, "{class:?}");
        }
        let silent = Verdict { progress: Progress::default(), ..at_work(2) };
        assert_eq!(gone_on(&old, silent), None, "it says nothing of how far it is");
    }
}
