//! How a job's status looks: a glyph, a word and a role, never a colour alone.

use ratatui::text::Line;

use super::spans::{outside, span};
use super::style;
use crate::model::Model;
use crate::theme::Role;
use tpu_core::model::facts::Phase;
use tpu_core::model::groups;
use tpu_core::model::job::Status;
use tpu_core::model::view::{HELD, JobView, PENDING, QUEUED};

/// Glyph, role and word of one status.
pub(super) struct Shown {
    /// One column wide.
    pub(super) glyph: &'static str,
    /// What it is.
    pub(super) role: Role,
    /// In words.
    pub(super) word: String,
}

/// The words that the header counts, in its order: those of [`groups::standing`].
pub(crate) const COUNTED: [(&str, &str, Role); 14] = [
    ("●", "running", Role::Running),
    ("◌", "starting", Role::Starting),
    ("◌", PENDING, Role::Starting),
    ("◇", QUEUED, Role::Starting),
    ("■", HELD, Role::Warning),
    ("▲", Phase::Diverged.as_str(), Role::Warning),
    ("▲", Phase::Stalled.as_str(), Role::Warning),
    ("▲", Phase::StartedOver.as_str(), Role::Warning),
    ("▲", Phase::IdlePrompt.as_str(), Role::Warning),
    ("▲", groups::NEEDS_YOU, Role::Error),
    ("▲", "error", Role::Error),
    ("?", "unknown", Role::Unknown),
    ("✓", "finished", Role::Finished),
    ("○", "killed", Role::Killed),
];

/// Whether a word of [`COUNTED`] says that somebody should look: a key leads to the newest of these jobs.
pub(crate) fn is_broken(word: &str) -> bool {
    let phases = [Phase::Diverged, Phase::Stalled, Phase::StartedOver, Phase::IdlePrompt];
    ["error", groups::NEEDS_YOU].contains(&word) || phases.iter().any(|of| of.as_str() == word)
}

/// How many jobs count under each of [`COUNTED`].
pub(crate) type Tally = [usize; COUNTED.len()];

/// How many of these jobs count under each of [`COUNTED`], in one pass: a header is drawn with every key. Attempts with
/// which another one goes on count nowhere.
pub(crate) fn tally<'a>(jobs: impl IntoIterator<Item = &'a JobView>) -> Tally {
    let mut tally = Tally::default();
    for job in jobs {
        let standing = groups::standing(job);
        let counts = COUNTED.iter().zip(&mut tally).find(|((_, word, _), _)| *word == standing);
        if let Some((_, count)) = counts {
            *count += job.jobs();
        }
    }
    tally
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
pub(crate) fn in_words(tally: &Tally) -> String {
    let each = COUNTED.iter().zip(tally).filter(|(_, count)| **count > 0);
    each.map(|((_, word, _), count)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// The same with signs instead of words, failures first: `▲ 1 ● 7`.
pub(super) fn in_short(model: &Model, tally: &Tally) -> Line<'static> {
    let is_bad = |word: &str| is_broken(word) || word == "unknown";
    let there = COUNTED.iter().zip(tally).filter(|(_, count)| **count > 0);
    let (bad, well): (Vec<_>, Vec<_>) = there.partition(|((_, word, _), _)| is_bad(word));
    let each = bad.into_iter().chain(well);
    let each = each
        .map(|((glyph, _, role), count)| span(format!("{glyph} {count} "), style(model, *role)));
    each.collect()
}

/// How a job's status looks. Its word is the state of the job; of one that is well it is what it does.
pub(super) fn of(job: &JobView) -> Shown {
    let (glyph, role) = looks(job);
    let shown = &job.shown;
    let is_at_rest = job.intent.is_some() || shown.unknown.is_some() || shown.queued.is_some();
    let does =
        shown.phase.filter(|_| shown.status.is_live() && !is_at_rest && shown.pending.is_none());
    let word = match (does, shown.copying()) {
        (Some(_), Some(how_far)) => outside(how_far),
        (Some(phase), None) => phase.as_str().to_owned(),
        (None, _) => outside(&job.state()),
    };
    Shown { glyph, role, word }
}

/// The glyph and the role of a job's status.
fn looks(job: &JobView) -> (&'static str, Role) {
    let (shown, status) = (&job.shown, &job.shown.status);
    if job.intent.is_some() && status.is_live() {
        return ("◌", Role::Warning);
    }
    if shown.unknown.is_some() && status.is_live() {
        return ("?", Role::Unknown);
    }
    match &shown.queued {
        Some(queued) if queued.held => return ("■", Role::Warning),
        Some(_) => return ("◇", Role::Starting),
        None => {}
    }
    if shown.pending.is_some() {
        return ("◌", Role::Starting);
    }
    match status {
        Status::Running => match shown.phase {
            Some(phase) if phase.is_warning() => ("▲", Role::Warning),
            Some(_) | None => ("●", Role::Running),
        },
        Status::Unset | Status::Starting => ("◌", Role::Starting),
        Status::Finished => ("✓", Role::Finished),
        Status::Error(_) => ("▲", Role::Error),
        Status::Killed(_) => ("○", Role::Killed),
        Status::Resumed(_) => ("↻", Role::Superseded),
        Status::Rerunned(_) => ("↺", Role::Superseded),
    }
}
