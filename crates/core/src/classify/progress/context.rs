//! Whose number it is: a word counts only whole and with what stands before it, and a line only if it
//! speaks of the training. `warmup_steps=100` is no step, nor is `number of nan iterations: 0`, and the
//! batches of an evaluation or the pieces of a download are not the training's.

use regex::bytes::{Captures, Match};

use super::patterns::{ELSEWHERE, OTHER_WORK, TRAINING};

/// Bytes before a word in which the words before it are looked for.
const REACH: usize = 48;

/// Words that make a number another one's, beside those of what was held out: a setting's, a bound's, another
/// activity's.
const OTHERS: [&str; 37] = [
    "accumulation",
    "base",
    "best",
    "decay",
    "each",
    "evaluate",
    "evaluating",
    "every",
    "for",
    "grace",
    "init",
    "initial",
    "last",
    "logging",
    "max",
    "maximum",
    "min",
    "minimum",
    "micro",
    "nan",
    "next",
    "num",
    "number",
    "patience",
    "peak",
    "per",
    "prev",
    "previous",
    "remaining",
    "save",
    "saving",
    "skip",
    "skipped",
    "target",
    "time",
    "total",
    "warmup",
];

/// Words that say that something was held out of the training.
const HELD_OUT: [&str; 9] =
    ["val", "valid", "validation", "eval", "evaluation", "test", "testing", "dev", "holdout"];

/// What the name of a whole loss is made of. Any other word names a part of it: `d_loss`, `policy_loss`.
const WHOLE: [&str; 25] = [
    "", "loss", "losses", "train", "training", "trainer", "total", "sum", "overall", "avg",
    "average", "mean", "running", "smooth", "smoothed", "reduced", "global", "lm", "step", "batch",
    "epoch", "cur", "current", "the", "final",
];

fn is_any(words: &[&str], word: &[u8]) -> bool {
    words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

/// The whole word in which an expression has found its own, and the words before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner<'h> {
    /// The last part of the word: `step` of `train/step`.
    name: &'h [u8],
    /// The parts before it.
    path: &'h [u8],
    /// The words before it, up to the next number or mark.
    before: &'h [u8],
}

impl<'h> Owner<'h> {
    /// The owner of what was found as `word` in `body`.
    pub(super) fn of(body: &'h [u8], word: Match<'_>) -> Self {
        let back = |from: usize, is_part: fn(&u8) -> bool| {
            let head = body.get(from.saturating_sub(REACH)..from).unwrap_or_default();
            from - head.iter().rev().take_while(|b| is_part(b)).count()
        };
        let start = back(word.start(), |b| {
            b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'/' | b'-')
        });
        let whole = body.get(start..word.end()).unwrap_or_default();
        let split = memchr::memrchr(b'/', whole).filter(|at| *at < word.start() - start);
        let (path, name) = match split {
            Some(at) => whole.split_at(at + 1),
            None => whole.split_at(0),
        };
        let from =
            back(start, |b| b.is_ascii_alphabetic() || matches!(b, b' ' | b'_' | b'-' | b'/'));
        let mut before = body.get(from..start).unwrap_or_default();
        // A unit belongs to the number before it.
        if from.checked_sub(1).and_then(|at| body.get(at)).is_some_and(u8::is_ascii_digit) {
            let unit = before.iter().take_while(|b| **b != b' ').count();
            before = before.get(unit..).unwrap_or_default();
        }
        Self { name, path, before }
    }

    /// Whether the word is one of these, and nothing before it makes it another's.
    pub(super) fn is(&self, names: &[&str]) -> bool {
        is_any(names, self.name) && !self.is_anothers()
    }

    /// Whether what stands before the word makes it a bound, a setting, or an evaluation's.
    pub(super) fn is_anothers(&self) -> bool {
        let mut before = parts(self.path).chain(parts(self.before));
        before.any(|word| is_any(&OTHERS, word) || is_any(&HELD_OUT, word))
    }

    /// Whether it is of data that are held out, or before it stands such a word.
    pub(super) fn is_held_out(&self) -> bool {
        let mut all = parts(self.path).chain(parts(self.before)).chain(parts(self.name));
        all.any(|word| is_any(&HELD_OUT, word))
    }
}

fn parts(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| !b.is_ascii_alphanumeric()).filter(|part| !part.is_empty())
}

/// What a loss is the loss of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// The whole of the training.
    Whole,
    /// A part of it, or something that only sounds like it.
    Part,
    /// Data that are held out.
    HeldOut,
}

impl Loss {
    /// By the name that was found in `body`, and the word before it.
    pub(super) fn of(body: &[u8], name: Match<'_>) -> Self {
        let owner = Owner::of(body, name);
        let whole = || parts(owner.path).chain(parts(owner.name));
        let before = || parts(owner.before);
        if whole().chain(before()).any(|word| is_any(&HELD_OUT, word)) {
            return Self::HeldOut;
        }
        let last = before().last().unwrap_or_default();
        let named = |word: &[u8]| is_any(&WHOLE, word);
        if whole().all(named) && named(last) { Self::Whole } else { Self::Part }
    }
}

/// Classes of losses, as frameworks call them. By itself the value of one is the loss of the training.
const CRITERIA: [&str; 9] = [
    "bceloss",
    "bcewithlogitsloss",
    "crossentropyloss",
    "huberloss",
    "l1loss",
    "mseloss",
    "nllloss",
    "sigmoidfocalloss",
    "smoothl1loss",
];

/// Whether a name ends with the class of a loss: `train/CrossEntropyLoss`, `cross_entropy_loss`.
pub(super) fn is_criterion(name: &[u8]) -> bool {
    let last = name.rsplit(|b| matches!(b, b'/' | b'.')).next().unwrap_or_default();
    let letters: Vec<u8> = last.iter().copied().filter(u8::is_ascii_alphanumeric).collect();
    is_any(&CRITERIA, &letters)
}

/// Whether a number ends where its match does, and no unit of time follows: `step 250 ms` counts no steps.
pub(super) fn is_plain(body: &[u8], end: usize) -> bool {
    let rest = body.get(end..).unwrap_or_default();
    // Thousands may be set apart by commas, so that a comma behind the number is part of the match.
    if body.get(..end).is_some_and(|head| head.ends_with(b",")) {
        return true;
    }
    if rest.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'%') {
        return false;
    }
    let word = rest.trim_ascii_start();
    let length = word.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    let unit = word.get(..length).unwrap_or_default();
    !is_any(&["ms", "us", "s", "sec", "secs", "second", "seconds", "min", "mins", "minutes"], unit)
}

/// Where a match ends, without what follows the group that came last.
pub(super) fn end(caps: &Captures<'_>) -> usize {
    caps.get(0).map_or(0, |whole| whole.end())
}

/// Whether a line speaks of another work than the training's: numbers in it are not the training's.
pub(super) fn is_elsewhere(body: &[u8]) -> bool {
    ELSEWHERE.is_match(body)
}

/// Whose bar it is, by what stands before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bar {
    /// It names the training.
    Training,
    /// Nothing is said.
    Nameless,
    /// Another work's, or who knows whose.
    Other,
}

impl Bar {
    /// By the `label` before the bar; a line that shows a loss is a training's.
    pub(super) fn of(label: &[u8], has_loss: bool) -> Self {
        if OTHER_WORK.is_match(label) {
            Self::Other
        } else if TRAINING.is_match(label) || has_loss {
            Self::Training
        } else if label.iter().any(u8::is_ascii_alphabetic) {
            Self::Other
        } else {
            Self::Nameless
        }
    }
}

#[cfg(test)]
mod tests {
    use regex::bytes::Regex;

    use super::*;

    #[test]
    fn a_word_counts_with_what_stands_before_it() {
        let word = Regex::new("step").unwrap();
        let is_ours = |body: &str| {
            let found = word.find(body.as_bytes()).unwrap();
            Owner::of(body.as_bytes(), found).is(&["step", "global_step"])
        };
        for line in
            ["step", "train/step", "(global_step", "epoch 3 step", "end of step", "total 3 step"]
        {
            assert!(is_ours(line), "{line}");
        }
        for line in [
            "eval/step",
            "warmup_step",
            "time per step",
            "testing step",
            "lr-step",
            "best train step",
        ] {
            assert!(!is_ours(line), "{line}");
        }
    }

    #[test]
    fn a_loss_is_whole_or_a_part_or_held_out() {
        let name = Regex::new("[a-zA-Z0-9_/]*(?:loss|Loss)").unwrap();
        let of = |body: &str| Loss::of(body.as_bytes(), name.find(body.as_bytes()).unwrap());
        for line in
            ["loss", "train/loss", "lm loss", "reduced_train_loss", "Average Loss", "step 3 loss"]
        {
            assert_eq!(of(line), Loss::Whole, "{line}");
        }
        for line in ["d_loss", "[D loss", "packet loss", "train/kl_loss", "stage1_loss", "gloss"] {
            assert_eq!(of(line), Loss::Part, "{line}");
        }
        for line in ["val_loss", "val/loss", "Test Loss", "valid loss", "eval/box_loss"] {
            assert_eq!(of(line), Loss::HeldOut, "{line}");
        }
    }
}
