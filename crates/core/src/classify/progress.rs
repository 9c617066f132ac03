//! Reads the progress that one line shows: epoch, step, total, percent, loss, rate, ETA.
//!
//! The styles are those of tqdm, absl, Flax and clu, `PyTorch` and its examples, Lightning, Keras, the HF
//! Trainer, `MaxText`, Megatron, `DeepSpeed`, fairseq, the `OpenMMLab` family, timm, YOLO, Stable-Baselines3,
//! and of everybody's own `key=value`, `key: value` and `key = value`. Words count whole and with what stands
//! before them (`context`): a number that may be another's is no number.

mod context;
mod counts;
mod patterns;
mod rates;

use std::sync::LazyLock;

use memchr::memmem::Finder;
use regex::bytes::Captures;

use self::context::{Bar, Loss, Owner};
use self::patterns as p;
use self::patterns::{all, hint, hinted, hints, last};
use super::numerals::{clock, number, rate, scaled, whole};
use crate::model::facts::Progress;

/// What one line shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shown {
    /// The numbers.
    pub(super) progress: Progress,
    /// The loss is NaN or infinite.
    pub(super) diverged: bool,
    /// The counters are those of a bar that does not say what it counts. Where another one goes on around
    /// it, it may be an evaluation's.
    pub(super) is_nameless: bool,
}

impl Shown {
    /// Whether this bar goes on around the one that shows `inner`: the batches of an evaluation are counted
    /// while the steps of the training stand still.
    pub(super) fn is_around(&self, inner: &Progress) -> bool {
        let Progress { step: Some(step), total: Some(total), .. } = self.progress else {
            return false;
        };
        self.is_nameless && inner.total.is_some_and(|inner| inner < total) && step < total
    }
}

/// Longest end of a line that is read: a bar without line ends can be megabytes long.
const REACH: usize = 2_000;

/// Numbers that are still looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted(u32);

impl Wanted {
    /// Every number.
    pub(super) const ALL: Self = Self(u32::MAX);

    /// Those that `known` lacks and that an older line may add: the counters, the loss, the learning rate
    /// and the speed; and the bar around one that does not say what it counts. `None` if it lacks none.
    pub(super) fn beside(known: &Progress, nameless: bool) -> Option<Self> {
        // A step in brackets stands beside no word of its own.
        let lacks = [
            (known.step.is_none(), u32::MAX),
            (known.epoch.is_none(), hint::EPOCH),
            (known.loss.is_none(), hint::LOSS),
            (known.lr.is_none(), hint::LR),
            // Bars hold speeds of any unit.
            (known.steps_per_s.is_none(), hint::RATE | hint::PERCENT),
            (nameless, hint::PERCENT),
        ];
        let all = lacks.iter().filter(|(lacks, _)| *lacks).fold(0, |all, (_, hints)| all | hints);
        (all != 0).then_some(Self(all))
    }

    /// Whether `line` may hold any of them.
    pub(super) fn may_be_in(self, line: &[u8]) -> bool {
        hints(line) & self.0 != 0
    }
}

/// Reads `line` from `start`, where its content begins. What is not wanted may be missing.
///
/// A line that speaks of another work than the training's shows life and no numbers.
pub(super) fn read(line: &[u8], start: usize, wanted: Wanted) -> Option<Shown> {
    let (body, hints) = worth_reading(line, start)?;
    let needed = hints & wanted.0;
    // Whether a loss counts depends on the counters beside it, and whose a bar is on a loss.
    let counters = if needed & hint::LOSS == 0 { needed | hints & hint::LOSS } else { hints };
    let mut shown = Shown::default();
    let bar = read_bars(body, counters, &mut shown.progress);
    if bar == Some(Bar::Other) {
        return Some(Shown::default());
    }
    shown.is_nameless = bar == Some(Bar::Nameless);
    read_counters(body, counters, &mut shown.progress);
    counts::read_bracket(line, body, &mut shown.progress);
    read_numbers(body, needed, &mut shown);
    if !shown.diverged && shown.progress.is_empty() {
        return None;
    }
    Some(if context::is_elsewhere(body) { Shown::default() } else { shown })
}

/// The counters of a line that reports a step and does nothing else: steps are looked for everywhere.
pub(super) fn step(line: &[u8], start: usize) -> Option<Counter> {
    let (body, hints) = worth_reading(line, start)?;
    let counters = hint::STEP | hint::EPOCH | hint::BATCH | hint::PERCENT | hint::BAR;
    let in_brackets = body.first() == Some(&b'[') || hints & hint::LOSS != 0;
    if hints & counters == 0 && !in_brackets {
        return None;
    }
    let mut progress = Progress::default();
    let bar = read_bars(body, hints, &mut progress);
    read_counters(body, hints, &mut progress);
    counts::read_bracket(line, body, &mut progress);
    is_clear(body, bar.is_some(), &progress).then(|| counter(&progress))
}

/// What tells one step from the next.
pub(super) type Counter = (Option<u64>, Option<u64>);

fn counter(progress: &Progress) -> Counter {
    // Epochs may be fractional; a thousandth is finer than anybody prints.
    (progress.step, progress.epoch.map(f64::to_bits))
}

fn worth_reading(line: &[u8], start: usize) -> Option<(&[u8], u32)> {
    let body = line.get(start..).unwrap_or_default();
    let body = body.get(body.len().saturating_sub(REACH)..).unwrap_or(body);
    if body.len() < 4 || !body.iter().any(u8::is_ascii_digit) && !has_nan(body) {
        return None;
    }
    let content = body.trim_ascii_start();
    // A line of code that a traceback quotes reports nothing.
    if content.starts_with(b"raise ") || says_error(content) {
        return None;
    }
    let hints = hints(body);
    let bytes = hints & hint::PERCENT != 0 && p::BYTES.is_match(body);
    (hints != 0 && !bytes).then_some((body, hints))
}

/// Whether a line begins with the word for a failure and a sentence, not with an error's value.
fn says_error(content: &[u8]) -> bool {
    let words: [&[u8]; 6] =
        [b"ERROR: ", b"Error: ", b"error: ", b"FATAL: ", b"fatal: ", b"CRITICAL: "];
    words
        .iter()
        .filter_map(|word| content.strip_prefix(*word))
        .any(|rest| rest.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'('))
}

/// A counter together with a measurement, or a line that begins with the counter: the way programs
/// report that a step was made. Prose that mentions a step is not.
fn is_clear(body: &[u8], bar: bool, progress: &Progress) -> bool {
    (progress.step.is_some() || progress.epoch.is_some())
        && (bar || p::METRIC.is_match(body) || p::STARTS.is_match(body))
        && !p::PROSE.is_match(body)
        && !context::is_elsewhere(body)
}

fn has_nan(body: &[u8]) -> bool {
    static NUMBERS: LazyLock<[Finder<'static>; 2]> =
        LazyLock::new(|| [Finder::new("nan"), Finder::new("inf")]);
    NUMBERS.iter().any(|finder| finder.find(body).is_some())
}

/// Progress bars. Returns whose it is, if there was one; another work's adds nothing.
fn read_bars(body: &[u8], hints: u32, progress: &mut Progress) -> Option<Bar> {
    let shared = || {
        [&p::TQDM, &p::IGNITE].into_iter().find_map(|bar| hinted(hints, hint::PERCENT, bar, body))
    };
    let bar = |regex| hinted(hints, hint::BAR, regex, body);
    let bars = [&p::COUNT, &p::SHARE_BAR, &p::RICH, &p::BAR];
    let caps = shared().or_else(|| bars.into_iter().find_map(bar))?;
    let start = caps.name("pc").or_else(|| caps.name("n")).map_or(0, |m| m.start());
    let label = body.get(..start).unwrap_or_default();
    let whose = Bar::of(label, hints & hint::LOSS != 0);
    if whose == Bar::Other {
        return Some(whose);
    }
    progress.percent = number(&caps, "pc");
    progress.eta_s = caps.name("eta").and_then(|m| clock(m.as_bytes()));
    // A bar of examples or pictures counts no steps.
    let per = caps.name("per").map(|m| m.as_bytes());
    if caps.name("unit").is_none_or(|unit| unit.is_empty()) && per.is_none_or(is_of_steps) {
        progress.step = scaled(&caps, "n");
        progress.total = caps.name("t").and_then(|_| scaled(&caps, "t"));
        progress.steps_per_s = rate(number(&caps, "rate"), per);
    }
    // Behind Keras's bar stands what an epoch took once it is over.
    let spent = caps.name("pc").is_none() && progress.step == progress.total;
    progress.eta_s = progress.eta_s.filter(|_| !spent);
    if hints & hint::PERCENT != 0
        && let Some(caps) = last(&p::YOLO, body)
    {
        progress.epoch = number(&caps, "n");
        progress.epochs = number(&caps, "t");
    }
    Some(whose)
}

/// Whether a bar's rate is one of steps: `it/s`, `s/batch`.
fn is_of_steps(per: &[u8]) -> bool {
    let unit = per.strip_prefix(b"s/").or_else(|| per.strip_suffix(b"/s")).unwrap_or(per);
    let steps = ["it", "iter", "step", "steps", "batch", "batches", "update"];
    steps.iter().any(|known| unit.eq_ignore_ascii_case(known.as_bytes()))
}

fn read_counters(body: &[u8], hints: u32, progress: &mut Progress) {
    if progress.step.is_none() && progress.percent.is_none() {
        let found = read_step(body, hints).or_else(|| read_batch(body, hints, progress));
        progress.step = found.map(|(step, _)| step);
        progress.total =
            found.and_then(|(step, total)| total.or_else(|| counts::total(body, step)));
    }
    if hints & hint::EPOCH == 0 || progress.epoch.is_some() {
        return;
    }
    let ours = |caps: &Captures<'_>| {
        let names = ["epoch", "ep", "train_epoch", "current_epoch", "cur_epoch", "global_epoch"];
        let word = caps.name("w");
        word.is_some_and(|word| Owner::of(body, word).is(&names))
            && caps.name("bad").is_none()
            && context::is_plain(body, context::end(caps))
    };
    let bracket = all(&p::EPOCH_BRACKET, body).filter(ours).last();
    if let Some(caps) = bracket.or_else(|| all(&p::EPOCH, body).filter(ours).last()) {
        progress.epoch = number(&caps, "n");
        progress.epochs = number(&caps, "t");
    }
}

/// A count and, where it is known, of how many.
type Count = (u64, Option<u64>);

/// The newest step that is named as one.
fn read_step(body: &[u8], hints: u32) -> Option<Count> {
    if hints & hint::STEP == 0 {
        return None;
    }
    let has_loss = hints & hint::LOSS != 0;
    let mut newest: Option<Count> = None;
    for caps in all(&p::STEP, body) {
        let Some(word) = caps.name("w").filter(|_| caps.name("frac").is_none()) else { continue };
        let total = whole(&caps, "t");
        let owner = Owner::of(body, word);
        // Several steps are a setting, and `it` and `update` are words of every day, unless more is said.
        let is_said = total.is_some() || has_loss;
        let ours = owner.is(&STEPS)
            || is_said && owner.is(&["steps", "iters", "iterations", "updates"])
            || owner.is(&["it", "update"]) && (is_said || caps.name("sep").is_some());
        if !ours || !context::is_plain(body, context::end(&caps)) {
            continue;
        }
        let unit = match caps.name("k").map(|m| m.as_bytes()) {
            Some(b"k" | b"K") => 1_000,
            Some(_) => 1_000_000,
            None => 1,
        };
        let Some(step) = whole(&caps, "n").and_then(|n| n.checked_mul(unit)) else { continue };
        // The same step under two names is of the same total.
        let known = newest.filter(|(before, _)| *before == step).and_then(|(_, total)| total);
        newest = Some((step, total.or(known)));
    }
    let table = || last(&p::TIMESTEPS, body).and_then(|caps| whole(&caps, "n"));
    newest.or_else(|| table().map(|step| (step, None)))
}

/// Names of the number of the step that is made.
const STEPS: [&str; 23] = [
    "step",
    "iter",
    "itr",
    "iteration",
    "global_step",
    "globalstep",
    "global_iter",
    "train_step",
    "training_step",
    "train_iter",
    "optimizer_step",
    "opt_step",
    "current_step",
    "cur_step",
    "cur_iter",
    "completed_step",
    "completed_steps",
    "num_updates",
    "num_update",
    "iter_num",
    "step_num",
    "gstep",
    "optim_step",
];

/// The batch of an epoch, where no step is named.
fn read_batch(body: &[u8], hints: u32, progress: &mut Progress) -> Option<Count> {
    let count = |caps: &Captures<'_>| Some((whole(caps, "n")?, whole(caps, "t")));
    if hints & hint::BATCH != 0 {
        if let Some(caps) = last(&p::INDEX, body) {
            progress.epoch = ["a", "b", "c"].into_iter().find_map(|name| number(&caps, name));
            progress.epochs = ["bs", "cs"].into_iter().find_map(|name| number(&caps, name));
            return count(&caps);
        }
        let ours = |caps: &Captures<'_>| {
            let names =
                ["batch", "batches", "minibatch", "mini-batch", "mini_batch", "train_batch"];
            caps.name("w").is_some_and(|word| Owner::of(body, word).is(&names))
        };
        let named = all(&p::BATCH, body).filter(ours).last();
        if let Some(caps) = named.or_else(|| last(&p::BATCHES, body)) {
            return count(&caps);
        }
    }
    last(&p::CLU, body).and_then(|caps| count(&caps))
}

fn read_numbers(body: &[u8], hints: u32, shown: &mut Shown) {
    read_loss(body, hints, shown);
    let progress = &mut shown.progress;
    if hints & hint::LR != 0 {
        let names = ["lr", "learning_rate", "learning rate", "train_lr", "cur_lr", "current_lr"];
        let ours = |caps: &Captures<'_>| {
            caps.name("w").is_some_and(|word| Owner::of(body, word).is(&names))
        };
        let found = all(&p::LR, body).filter(ours).last();
        progress.lr = found.and_then(|caps| number(&caps, "v"));
    }
    if progress.steps_per_s.is_none() && hints & hint::RATE != 0 {
        progress.steps_per_s = rates::read(body);
    }
    if progress.eta_s.is_none() {
        let eta = hinted(hints, hint::ETA, &p::ETA, body);
        progress.eta_s = eta.and_then(|caps| clock(caps.name("v")?.as_bytes()));
    }
    if progress.percent.is_none() {
        let percent = hinted(hints, hint::PERCENT, &p::PERCENT, body);
        progress.percent =
            percent.and_then(|caps| number(&caps, "a").or_else(|| number(&caps, "b")));
    }
}

/// The loss of the training: the first that is the whole of it, or the only one there is beside a counter.
fn read_loss(body: &[u8], hints: u32, shown: &mut Shown) {
    if hints & hint::LOSS == 0 {
        return;
    }
    let (mut found, mut parts, mut is_alone) = (None, Vec::new(), false);
    for caps in all(&p::LOSS, body) {
        let (Some(name), Some(value)) = (caps.name("name"), number(&caps, "v")) else { continue };
        match Loss::of(body, name) {
            Loss::Whole => found = found.or(Some(value)),
            Loss::Part => {
                is_alone = parts.is_empty() && context::is_criterion(name.as_bytes());
                parts.push(value);
            }
            Loss::HeldOut => {}
        }
    }
    let counted = shown.progress.step.is_some() || shown.progress.epoch.is_some();
    let only = match parts.as_slice() {
        [one] if counted || is_alone => Some(*one),
        // Whatever it is a part of: a loss that is no number leaves no hope.
        parts => parts.iter().copied().find(|part| counted && !part.is_finite()),
    };
    let Some(loss) = found.or(only) else { return };
    shown.diverged = !loss.is_finite();
    shown.progress.loss = loss.is_finite().then_some(loss);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> Shown {
        read(line.as_bytes(), 0, Wanted::ALL).unwrap_or_default()
    }

    #[test]
    fn every_style_gives_its_numbers() {
        let cases: [(&str, Progress); 16] = [
            (
                "step 100 ep=3.25 loss=0.41",
                Progress {
                    step: Some(100),
                    epoch: Some(3.25),
                    loss: Some(0.41),
                    ..Progress::default()
                },
            ),
            (
                "Epoch 2/3:  50%|#####     | 100/200 [00:02<00:04, 25.0batch/s, err=0, loss=0.020]",
                Progress {
                    epoch: Some(2.0),
                    epochs: Some(3.0),
                    step: Some(100),
                    total: Some(200),
                    percent: Some(50.0),
                    loss: Some(0.02),
                    steps_per_s: Some(25.0),
                    eta_s: Some(4.0),
                    ..Progress::default()
                },
            ),
            (
                "completed step: 10, seconds: 131.474, TFLOP/s/device: 314.530, loss: 4.453",
                Progress { step: Some(10), loss: Some(4.453), ..Progress::default() },
            ),
            (
                "[5] train/loss=1.0000, train/error=0.2000, num_errors=0, steps_per_sec=10.10",
                Progress {
                    step: Some(5),
                    loss: Some(1.0),
                    steps_per_s: Some(10.1),
                    ..Progress::default()
                },
            ),
            (
                "{'loss': '6.128', 'grad_norm': '0.79', 'learning_rate': '1.75e-05', 'epoch': '0.08'}",
                Progress {
                    loss: Some(6.128),
                    lr: Some(1.75e-5),
                    epoch: Some(0.08),
                    ..Progress::default()
                },
            ),
            (
                "loss = 1.109375, step = 488600 (45.410 sec)",
                Progress { loss: Some(1.109_375), step: Some(488_600), ..Progress::default() },
            ),
            (
                "INFO:tensorflow:global_step/sec: 2.20221",
                Progress { steps_per_s: Some(2.20221), ..Progress::default() },
            ),
            (
                "Epoch 8/199 ━━━━━╸━━━━ 46/200 0:00:00 • 0:00:02 77.60it/s train_loss: 0.026",
                Progress {
                    epoch: Some(8.0),
                    epochs: Some(199.0),
                    step: Some(46),
                    total: Some(200),
                    loss: Some(0.026),
                    steps_per_s: Some(77.6),
                    ..Progress::default()
                },
            ),
            (
                "100/200 ━━━━━━━━━━ 1s 10ms/step - accuracy: 0.5 - loss: 0.69 - val_loss: 0.7",
                Progress {
                    step: Some(100),
                    total: Some(200),
                    loss: Some(0.69),
                    steps_per_s: Some(100.0),
                    eta_s: Some(1.0),
                    ..Progress::default()
                },
            ),
            (
                "iter 3 | loss 3.100 | 500ms/iter",
                Progress {
                    step: Some(3),
                    loss: Some(3.1),
                    steps_per_s: Some(2.0),
                    ..Progress::default()
                },
            ),
            (
                "step    10/200 mean_squared_error=0.3511 grad_norm=0.597 steps/s=16.8",
                Progress {
                    step: Some(10),
                    total: Some(200),
                    steps_per_s: Some(16.8),
                    ..Progress::default()
                },
            ),
            (
                "Epoch 100/100 - Train Loss: 0.9328 - Test Loss: 0.9412",
                Progress {
                    epoch: Some(100.0),
                    epochs: Some(100.0),
                    loss: Some(0.9328),
                    ..Progress::default()
                },
            ),
            ("epoch 1234567", Progress { epoch: Some(1_234_567.0), ..Progress::default() }),
            (
                "Step 1,200 of 5,000 eta 1h 2m 3s",
                Progress {
                    step: Some(1_200),
                    total: Some(5_000),
                    eta_s: Some(3_723.0),
                    ..Progress::default()
                },
            ),
            (
                "12/100 [==>...........] - ETA: 1:05 - loss: 0.5",
                Progress {
                    step: Some(12),
                    total: Some(100),
                    eta_s: Some(65.0),
                    loss: Some(0.5),
                    ..Progress::default()
                },
            ),
            ("progress: 35%", Progress { percent: Some(35.0), ..Progress::default() }),
        ];
        for (line, expected) in cases {
            assert_eq!(shown(line).progress, expected, "{line}");
            what_is_wanted_is_read(line, &expected);
        }
    }

    /// Reading for what is lacking adds what reading for everything adds.
    fn what_is_wanted_is_read(line: &str, all: &Progress) {
        for lacking in 0..1 << 5 {
            let known = |bit: u32| lacking & 1 << bit == 0;
            let mut full = Progress {
                step: known(0).then_some(7),
                epoch: known(1).then_some(7.0),
                loss: known(2).then_some(7.0),
                lr: known(3).then_some(7.0),
                steps_per_s: known(4).then_some(7.0),
                ..Progress::default()
            };
            let mut ours = full.clone();
            full.fill_from(all);
            if let Some(wanted) = Wanted::beside(&ours, false) {
                let added = read(line.as_bytes(), 0, wanted).unwrap_or_default();
                ours.fill_from(&added.progress);
            }
            assert_eq!(ours, full, "{line}");
        }
    }

    #[test]
    fn fragments_are_no_progress() {
        for line in ["step = 3.20 lr = 0.1", "sleep=10.5 between polls", "0 errors, 3 warnings"] {
            let progress = shown(line).progress;
            assert_eq!((progress.epoch, progress.step), (None, None), "{line}");
        }
        for line in ["ERROR: no batch at step 3", "fatal: (trainer) epoch 3 is over"] {
            assert_eq!(read(line.as_bytes(), 0, Wanted::ALL), None, "{line}");
        }
        assert_eq!(shown("error: 0.5 step: 3").progress.step, Some(3));
        assert_eq!(
            read(b"model.bin: 50%|##  | 1.2G/2.4G [00:10<00:10, 120MB/s]", 0, Wanted::ALL),
            None
        );
    }

    #[test]
    fn only_a_report_is_clear() {
        for line in ["step 20", "[1] step 10", "Epoch 3/10", "it 5 loss 2", "[20] train/loss=0.5"] {
            assert!(step(line.as_bytes(), 0).is_some(), "{line}");
        }
        for line in [
            "Restored checkpoint at step 500",
            "aborting at step 3: loss=9",
            "3 steps to go",
            "step 3: error: out of range",
        ] {
            assert!(step(line.as_bytes(), 0).is_none(), "{line}");
        }
    }

    #[test]
    fn a_loss_that_is_no_number_is_a_divergence() {
        for line in ["step 3 loss nan", "step 3 loss=NaN", "{'loss': inf, 'step': 3}", "loss: -inf"]
        {
            let shown = shown(line);
            assert!(shown.diverged, "{line}");
            assert_eq!(shown.progress.loss, None);
        }
        for line in ["loss: 0.1", "loss info", "val_loss: nan loss: 0.2"] {
            assert!(!shown(line).diverged, "{line}");
        }
    }
}
