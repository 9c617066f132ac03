//! How a job's status looks: a glyph, a word and a role, never a colour alone.

use ratatui::text::Line;

use super::spans::span;
use super::style;
use crate::model::facts::Phase;
use crate::model::job::Status;
use crate::model::view::{HELD, JobView, PENDING, QUEUED};
use crate::screen::model::Model;
use crate::screen::theme::Role;

/// Glyph, role and word of one status.
pub(super) struct Shown {
    /// One column wide.
    pub(super) glyph: &'static str,
    /// What it is.
    pub(super) role: Role,
    /// In words.
    pub(super) word: String,
}

/// The statuses that the header counts, in its order.
pub(super) const COUNTED: [(&str, &str, Role); 9] = [
    ("●", "running", Role::Running),
    ("◌", "starting", Role::Starting),
    ("◌", PENDING, Role::Starting),
    ("◇", QUEUED, Role::Starting),
    ("■", HELD, Role::Warning),
    ("▲", "error", Role::Error),
    ("?", "unknown", Role::Unknown),
    ("✓", "finished", Role::Finished),
    ("○", "killed", Role::Killed),
];

/// How many jobs count under each of [`COUNTED`].
pub(super) type Tally = [usize; COUNTED.len()];

/// How many of these jobs count under each of [`COUNTED`], in one pass: a header is drawn with every key.
pub(super) fn tally<'a>(jobs: impl IntoIterator<Item = &'a JobView>) -> Tally {
    let [mut running, mut starting, mut pending, mut queued, mut held] = [0; 5];
    let [mut error, mut unknown, mut finished, mut killed] = [0; 4];
    for job in jobs {
        let shown = &job.shown;
        let count = match shown.status {
            _ if shown.unknown.is_some() && shown.status.is_live() => &mut unknown,
            _ if shown.queued.as_ref().is_some_and(|queued| queued.held) => &mut held,
            _ if shown.queued.is_some() => &mut queued,
            _ if shown.pending.is_some() => &mut pending,
            Status::Unset | Status::Starting => &mut starting,
            Status::Running => &mut running,
            Status::Finished => &mut finished,
            Status::Error(_) => &mut error,
            Status::Killed(_) => &mut killed,
            // Another one goes on with it.
            Status::Resumed(_) | Status::Rerunned(_) => continue,
        };
        *count += job.jobs();
    }
    [running, starting, pending, queued, held, error, unknown, finished, killed]
}

/// A bar of so many cells that shows what share each state has; each that occurs has a cell at least. Told apart by
/// glyphs, and not by colour alone.
pub(super) fn bar(model: &Model, tally: &Tally, width: usize) -> Line<'static> {
    let all: usize = tally.iter().sum();
    let there = tally.iter().filter(|count| **count > 0).count();
    let mut line = Line::default();
    let (mut left, mut rest) = (width.max(there), all);
    let mut to_come = there;
    for ((glyph, _, role), count) in COUNTED.iter().zip(tally).filter(|(_, count)| **count > 0) {
        to_come -= 1;
        let share = (left * count + rest / 2) / rest.max(1);
        let cells = share.clamp(1, left - to_come);
        line.push_span(span(glyph.repeat(cells), style(model, *role)));
        (left, rest) = (left - cells, rest - count);
    }
    line
}

/// The same in words, what stands first first: `7 running, 1 error`.
pub(super) fn in_words(tally: &Tally) -> String {
    let each = COUNTED.iter().zip(tally).filter(|(_, count)| **count > 0);
    each.map(|((_, word, _), count)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// How a job's status looks.
pub(super) fn of(job: &JobView) -> Shown {
    let looks = |glyph, role, word: &str| Shown { glyph, role, word: word.to_owned() };
    if let Some(intent) = job.intent.as_deref().filter(|_| job.shown.status.is_live()) {
        return looks("◌", Role::Warning, &super::spans::outside(intent));
    }
    let status = &job.shown.status;
    if job.shown.unknown.is_some() && status.is_live() {
        return looks("?", Role::Unknown, "unknown");
    }
    match &job.shown.queued {
        Some(queued) if queued.held => return looks("■", Role::Warning, HELD),
        Some(_) => return looks("◇", Role::Starting, QUEUED),
        None => {}
    }
    if job.shown.pending.is_some() {
        return looks("◌", Role::Starting, job.shown.word());
    }
    match status {
        Status::Running => match job.shown.phase {
            Some(phase @ (Phase::Diverged | Phase::Stalled)) => {
                looks("▲", Role::Warning, phase.as_str())
            }
            Some(Phase::Running) | None => looks("●", Role::Running, "running"),
            Some(phase) => looks("●", Role::Running, phase.as_str()),
        },
        Status::Unset | Status::Starting => match job.shown.phase {
            Some(phase) => looks("◌", Role::Starting, phase.as_str()),
            None => looks("◌", Role::Starting, "starting"),
        },
        Status::Finished => looks("✓", Role::Finished, "finished"),
        Status::Error(_) => looks("▲", Role::Error, &status.to_string()),
        Status::Killed(kind) => looks("○", Role::Killed, &because("killed", *kind)),
        Status::Resumed(kind) => looks("↻", Role::Superseded, &because("resumed", *kind)),
        Status::Rerunned(kind) => looks("↺", Role::Superseded, &because("rerun", *kind)),
    }
}

fn because(word: &str, kind: Option<crate::model::facts::ErrorKind>) -> String {
    kind.map_or_else(|| word.to_owned(), |kind| format!("{word} ({kind})"))
}
