//! The newest rows of a pane, put to what was read of it before: what the screen reads of a window that
//! only prints on.
//!
//! A thousand windows that print a line a second have all changed at every refresh. To read each as far
//! back as its verdict may reach would be most of what the screen costs, and nearly all of it was read
//! five seconds ago. So a window whose job was seen at work is read from a few rows above where its
//! cursor stood, visible on the screen or not: nothing that is shown or decided is older than the look.
//! Those few rows must be among what was read before, or something is missing in between. The pane is
//! read as far back as ever when they are not; when the new text says anything but that the job goes on
//! and how far it is; and once in [`EVERY`] looks, for what a program may have drawn further up on the
//! screen.

use std::sync::Arc;

use crate::model::facts::{Class, PaneFact, Phase, Progress, Verdict};
use crate::text;
use crate::tmux::Rows;

use super::observe::{Fingerprint, Reading, TAIL};

/// Of so many looks one reads all that a verdict may rest on.
const EVERY: u64 = 12;

/// Rows that must have been read before.
const OVERLAP: usize = 4;

/// More new rows than this are no small reading.
const MOST: i64 = 60;

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
    let margin = i64::try_from(OVERLAP).ok()?;
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
    // A character that takes two columns leaves the last one free.
    let full = (width as usize).saturating_sub(1);
    text.lines().any(|line| line.len() >= full && text::width(line) >= full)
}

/// The newest rows of a pane beside what was read before.
pub(super) struct Joined<'a> {
    /// The rows that are new, and the last one before them, which a bar may have been drawn into.
    pub(super) new: &'a str,
    /// What was read before, with the newest rows in their place.
    pub(super) all: String,
}

/// Puts the newest rows to what was read before; `None` if something may be missing in between.
pub(super) fn joined<'a>(tail: &str, rows: &'a str) -> Option<Joined<'a>> {
    if rows.contains(START) {
        return None;
    }
    let known: Vec<&str> = tail.lines().collect();
    let lines: Vec<&str> = rows.lines().map(str::trim_end).collect();
    let overlap = lines.get(..OVERLAP)?;
    if overlap.iter().all(|line| line.is_empty()) {
        return None;
    }
    let at = known.windows(OVERLAP).rposition(|window| window == overlap)?;
    let mut all = String::with_capacity(tail.len() + rows.len());
    for line in known.iter().take(at).chain(&lines) {
        all.push_str(line);
        all.push('\n');
    }
    let last_known = memchr::memchr_iter(b'\n', rows.as_bytes()).nth(OVERLAP - 2)? + 1;
    Some(Joined { new: rows.get(last_known..)?.trim_end(), all })
}

/// Whether the newest line lacks a number that was known: then a line shortly before it may have it.
pub(super) fn lacks(new: &Progress, known: &Progress) -> bool {
    new.step.is_none() && known.step.is_some()
        || new.epoch.is_none() && known.epoch.is_some()
        || new.loss.is_none() && known.loss.is_some()
        || new.lr.is_none() && known.lr.is_some()
        || new.steps_per_s.is_none() && known.steps_per_s.is_some()
}

/// What is known of a job after its newest rows; `None` if they do not say that it goes on.
///
/// A number that they lack is the one that was known: the last full reading found it, at most [`EVERY`]
/// looks ago.
pub(super) fn gone_on(old: &Verdict, mut new: Verdict) -> Option<Verdict> {
    if new.class != Class::Running || new.progress.is_empty() {
        return None;
    }
    let (known, newest) = (&old.progress, &mut new.progress);
    // A total belongs to its own counter, a percentage and an ETA to their own moment.
    if newest.step.is_none() {
        (newest.step, newest.total) = (known.step, known.total);
    }
    if newest.epoch.is_none() {
        (newest.epoch, newest.epochs) = (known.epoch, known.epochs);
    }
    let diverged = new.phase == Some(Phase::Diverged);
    newest.loss = newest.loss.or(known.loss.filter(|_| !diverged));
    newest.lr = newest.lr.or(known.lr);
    newest.steps_per_s = newest.steps_per_s.or(known.steps_per_s);
    Some(new)
}

/// Last lines of a pane that a view carries.
const SHOWN_LINES: usize = 40;

/// The last lines that are not blank, made harmless.
pub(super) fn last_lines(text: &str) -> Arc<str> {
    let text = text.trim_end();
    let from =
        memchr::memrchr_iter(b'\n', text.as_bytes()).nth(SHOWN_LINES - 1).map_or(0, |at| at + 1);
    let mut shown = String::with_capacity(text.len() - from + 1);
    for line in text.get(from..).unwrap_or_default().lines() {
        shown.push_str(&text::escape(line.trim_end()));
        shown.push('\n');
    }
    shown.into()
}
