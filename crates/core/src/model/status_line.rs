//! The status of a job on one line: status, phase, progress and age.

use super::facts::Phase;
use super::job::Status;
use super::time;
use super::view::JobView;
use crate::text::{counted, escape};

/// How a part of the line is meant. Whoever has colours shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// All is well.
    Good,
    /// It takes heed.
    Warning,
    /// It has failed.
    Bad,
}

impl Tone {
    /// What a status means.
    pub fn of(status: &Status) -> Self {
        match status {
            Status::Unset | Status::Starting | Status::Running | Status::Finished => Self::Good,
            Status::Error(_) => Self::Bad,
            Status::Killed(_) | Status::Resumed(_) | Status::Rerunned(_) => Self::Warning,
        }
    }

    /// Words without a colour.
    pub fn plain(self, words: &str) -> String {
        words.to_owned()
    }
}

impl JobView {
    /// Its status, phase, progress and age; `paint` colours a part of it.
    pub fn status_line(&self, paint: fn(Tone, &str) -> String) -> String {
        let shown = &self.shown;
        let is_held = shown.queued.as_ref().is_some_and(|queued| queued.held);
        let tone = if is_held { Tone::Warning } else { Tone::of(&shown.status) };
        let word = match (&shown.queued, &shown.pending) {
            (None, None) => shown.status_in_words(),
            (_, _) => shown.word().to_owned(),
        };
        let mut parts = vec![paint(tone, &word)];
        parts.extend(self.intent.clone());
        let unknown = shown.unknown.as_ref();
        parts.extend(unknown.map(|why| paint(Tone::Warning, &format!("unknown: {why}"))));
        let phase =
            shown.phase.map(Phase::as_str).filter(|word| Some(*word) != shown.status.word());
        parts.extend(phase.map(str::to_owned));
        let at = self.lineage.iter().position(|window| *window == self.id.window).unwrap_or(0);
        if let (Status::Resumed(_) | Status::Rerunned(_), Some(child)) =
            (&shown.status, self.lineage.get(at + 1))
        {
            parts.push(format!("as job {child}"));
        }
        let members = shown.queued.as_ref().and_then(|queued| queued.members.as_ref());
        parts.extend(members.map(|members| counted(members.len(), "member")));
        parts.extend(shown.queued.as_ref().map(|queued| escape(&queued.in_words()).into_owned()));
        parts.extend(shown.progress.in_words());
        if let Some(why) = &self.target_unknown {
            let text = format!("its target is unknown: {}", escape(why));
            parts.push(paint(Tone::Warning, &text));
        }
        parts.extend(self.age_s.map(time::age));
        parts.join(" · ")
    }
}
