//! Reads the progress that one line shows: epoch, step, total, percent, loss, rate, ETA.
//!
//! The styles are those of tqdm, absl, Flax and clu, `PyTorch` Lightning, Keras, the HF Trainer, `MaxText`,
//! and of everybody's own `key=value`, `key: value` and `key = value`. Words count, not fragments:
//! `sleep=10.5` holds no `ep`, and `step = 3.20` is no step, because steps are whole.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use regex::bytes::{Captures, Regex, RegexBuilder};

use super::numerals::{clock, integer, number, rate, scaled, whole};
use super::words::Words;
use crate::model::facts::Progress;

/// What one line shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shown {
    /// The numbers.
    pub(super) progress: Progress,
    /// The loss is NaN or infinite.
    pub(super) diverged: bool,
}

/// Longest end of a line that is read: a bar without line ends can be megabytes long.
const REACH: usize = 2_000;

fn compile(pattern: &str) -> Regex {
    RegexBuilder::new(pattern)
        .unicode(false)
        .case_insensitive(true)
        .ignore_whitespace(true)
        .build()
        .expect("the pattern is a constant and a test reads it")
}

macro_rules! patterns {
    ($($name:ident = $pattern:expr;)*) => {
        $(static $name: LazyLock<Regex> = LazyLock::new(|| compile($pattern));)*
    };
}

patterns! {
    TQDM = r"(?P<pc>\d{1,3})%\|[^|]*\|\ *(?P<n>\d+(?:\.\d+)?[kMG]?)/(?P<t>\d+(?:\.\d+)?[kMG]?)\ *(?P<unit>[a-z]*)\ *\[(?P<el>[\d:]+)<(?P<eta>[\d:?]+)(?:,\ *(?P<rate>[\d.]+|\?)\ *(?P<per>[a-z]+/s|s/[a-z]+))?";
    BYTES = r"%\|[^|]*\|\ *[\d.]+[kMGT]?i?B?/[\d.]+[kMGT]?i?B?\ *\[[^\]]*[kMG]i?B/s";
    // Keras and rich bars: `46/200 ━━━ 0:00:02 77.60it/s`, `12/100 [==>....] - ETA: 5s - loss`.
    BAR = r"(?:^|[\ \x80-\xff])(?P<n>\d{1,9})/(?P<t>\d{1,9})\ +(?:(?:\xe2[\x80-\xbf]{2})+|\[[=>.\ ]+\])";
    RICH = r"\xe2[\x80-\xbf]{2}\ (?P<n>\d{1,9})/(?P<t>\d{1,9})\ \d+:\d\d";
    STEP = r#"(?:^|[^a-z.\-])(?:(?:global|train(?:ing)?|optimizer|opt|current|completed|total)[_\ ])?(?:steps?|iter(?:ation)?s?|it|itr|updates?|num_updates)["']?\ *(?:[:=\#]|\.\.\.)?\ *["'(\[]?(?P<n>\d[\d,_]*)(?P<k>[kM]\b)?(?P<frac>\.\d)?(?:\ *(?:/|\ of\ |\ out\ of\ )\ *(?P<t>\d[\d,_]*))?"#;
    BATCH = r"(?:^|[^a-z])batch(?:es)?\ *[:=\#]?\ *[\[(]?(?P<n>\d+)\ *(?:/|\ of\ )\ *(?P<t>\d+)";
    CLU = r"^\[(?P<n>\d{1,9})\]\ .*[=:]";
    EPOCH = r#"(?:^|[^a-z.])(?:epoch|ep)["']?(?:\ *(?:[:=\#]|\.\.\.)\ *|\ +|["'(\[]+\ *)["'(\[]?(?P<n>\d+(?:\.\d+)?)(?P<bad>[a-z_])?(?:\ *(?:/|\ of\ )\ *(?P<t>\d+))?"#;
    EPOCH_BRACKET = r"(?:^|[^a-z])epoch\ *\[(?P<n>\d+)(?:/(?P<t>\d+))?\]";
    LOSS = r#"(?P<pre>[a-z_./\-]*(?:val(?:id(?:ation)?)?|eval|test)\ )?(?P<name>[a-z_./\-]*loss)["']?\ *[:=]?\ *["'(]?(?P<v>[+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|\.\d+|nan|inf(?:inity)?))(?:[^a-z\d]|$)"#;
    LR = r#"(?:^|[^a-z])(?:lr|learning[_\ ]rate)["']?\ *[:=]?\ *["']?(?P<v>\d+(?:\.\d+)?(?:e[+-]?\d+)?)"#;
    RATE = r#"(?:^|[^a-z])(?:(?:global_)?steps?(?:/|_per_|\ per\ )s(?:ec(?:onds?)?)?|(?:train_)?steps_per_second|it/s|iters?/s(?:ec)?)["']?\ *[:=]\ *["']?(?P<v>\d+(?:\.\d+)?)"#;
    RATE_AFTER = r"(?P<v>\d+(?:\.\d+)?)\ *(?P<per>it/s|steps?/s(?:ec)?|iters?/s(?:ec)?|s/it|s/step|ms/step|us/step|ms/iter|s/iter)\b";
    ETA = r"(?:^|[^a-z])(?:eta|time\ (?:left|remaining)|remaining)\ *[:=]?\ *(?P<v>\d+(?::\d\d)+|(?:\d+\ *d(?:ays?)?,?\ *)?(?:\d+\ *h(?:ours?)?\ *)?(?:\d+\ *m(?:in(?:utes?)?)?\ *)?(?:\d+(?:\.\d+)?\ *s(?:ec(?:onds?)?)?)?)";
    PERCENT = r"(?:progress|done|completed?)\W{0,4}(?P<a>\d{1,3}(?:\.\d+)?)\ ?%|(?:^|[\ (\[])(?P<b>\d{1,3}(?:\.\d+)?)\ ?%\ (?:done|completed?)\b";
    // A measurement beside a counter.
    METRIC = r#"(?:loss|acc(?:uracy)?|error|err|mse|lr|grad(?:_|\ )?norm|tokens?/s|tflop|steps?/s|steps_per_sec|it/s|s/it|ms/|seconds|sec\b|time|samples?/s|perplexity|ppl|reward|return|score|[a-z_/]+["']?\ *[=:]\ *["']?[+-]?\d+\.\d+)"#;
    STARTS = r#"^(?:\[[^\]]*\]\ *|[{("'\s]|training\ |train:?\ |=+\ |-+\ |\#\ )*(?:global[_\ ]step|train[_\ ]step|completed\ step|steps?|epoch|ep|iter(?:ation)?|it|batch)["']?\ *[:=\#]?\ *[\[(]?\d"#;
    // Lines with these words speak of a step; they do not report one.
    PROSE = r"\b(?:fail\w*|exception|abort\w*|crash\w*|exit\w*|stopp\w*|resum\w*|restor\w*|restart\w*|preempt\w*|load(?:ing|ed)\ (?:checkpoint|from)|sav(?:ed|ing)|retry\w*|killed|terminat\w*|raise)\b|\berrors?:\ +[a-z(]";
}

/// What a line must hold for an expression to be worth a try.
mod hint {
    pub(super) const STEP: u32 = 1;
    pub(super) const EPOCH: u32 = 1 << 1;
    pub(super) const BATCH: u32 = 1 << 2;
    pub(super) const LOSS: u32 = 1 << 3;
    pub(super) const LR: u32 = 1 << 4;
    pub(super) const RATE: u32 = 1 << 5;
    pub(super) const ETA: u32 = 1 << 6;
    pub(super) const PERCENT: u32 = 1 << 7;
    pub(super) const BAR: u32 = 1 << 8;

    /// The words and what each makes worth a try.
    pub(super) const WORDS: [(&str, u32); 40] = [
        ("step", STEP),
        ("iter", STEP),
        ("itr", STEP),
        ("it ", STEP),
        ("it:", STEP),
        ("it=", STEP),
        ("it\"", STEP),
        ("it'", STEP),
        ("it[", STEP),
        ("it(", STEP),
        ("update", STEP),
        ("epoch", EPOCH),
        ("ep ", EPOCH),
        ("ep:", EPOCH),
        ("ep=", EPOCH),
        ("ep\"", EPOCH),
        ("ep'", EPOCH),
        ("ep[", EPOCH),
        ("batch", BATCH),
        ("loss", LOSS),
        ("lr", LR),
        ("learning", LR),
        ("steps/s", RATE),
        ("step/s", RATE),
        ("it/s", RATE),
        ("iter", RATE),
        ("s/it", RATE),
        ("/step", RATE),
        ("step_per", RATE),
        ("steps_per", RATE),
        (" per s", RATE),
        ("eta", ETA),
        ("remaining", ETA),
        ("time left", ETA),
        ("%", PERCENT),
        ("\u{2501}", BAR),
        ("\u{2578}", BAR),
        ("[=", BAR),
        ("[>", BAR),
        ("[.", BAR),
    ];
}

static HINTS: LazyLock<Words> = LazyLock::new(|| {
    let words: Vec<String> = hint::WORDS.iter().map(|(word, _)| (*word).to_owned()).collect();
    Words::new(&words)
});

/// Which expressions are worth a try on a line.
fn hints(body: &[u8]) -> u32 {
    let mut all = 0;
    HINTS.each(body, |found| {
        all |= hint::WORDS.get(found.word).map_or(0, |(_, hint)| *hint);
    });
    all
}

/// Numbers that are still looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted(u32);

impl Wanted {
    /// Every number.
    pub(super) const ALL: Self = Self(u32::MAX);

    /// Those that `known` lacks and that an older line may add: the counters, the loss, the learning rate
    /// and the speed. `None` if it lacks none of them.
    pub(super) fn beside(known: &Progress) -> Option<Self> {
        // A step in brackets stands beside no word of its own.
        let lacks = [
            (known.step.is_none(), u32::MAX),
            (known.epoch.is_none(), hint::EPOCH),
            (known.loss.is_none(), hint::LOSS),
            (known.lr.is_none(), hint::LR),
            // Bars hold speeds of any unit.
            (known.steps_per_s.is_none(), hint::RATE | hint::PERCENT),
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
pub(super) fn read(line: &[u8], start: usize, wanted: Wanted) -> Option<Shown> {
    let (body, hints) = worth_reading(line, start)?;
    let hints = hints & wanted.0;
    let mut shown = Shown::default();
    read_bars(body, hints, &mut shown.progress);
    read_counters(body, hints, &mut shown.progress);
    read_numbers(body, hints, &mut shown);
    (shown.diverged || !shown.progress.is_empty()).then_some(shown)
}

/// The counters of a line that reports a step and does nothing else: steps are looked for everywhere.
pub(super) fn step(line: &[u8], start: usize) -> Option<Counter> {
    let (body, hints) = worth_reading(line, start)?;
    let counters = hint::STEP | hint::EPOCH | hint::BATCH | hint::PERCENT | hint::BAR;
    if hints & counters == 0 && body.first() != Some(&b'[') {
        return None;
    }
    let mut progress = Progress::default();
    let bar = read_bars(body, hints, &mut progress);
    read_counters(body, hints, &mut progress);
    is_clear(body, bar, &progress).then(|| counter(&progress))
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
    let bytes = hints & hint::PERCENT != 0 && BYTES.is_match(body);
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
        && (bar || METRIC.is_match(body) || STARTS.is_match(body))
        && !PROSE.is_match(body)
}

fn has_nan(body: &[u8]) -> bool {
    static NUMBERS: LazyLock<[Finder<'static>; 2]> =
        LazyLock::new(|| [Finder::new("nan"), Finder::new("inf")]);
    NUMBERS.iter().any(|finder| finder.find(body).is_some())
}

/// Progress bars. Returns whether there was one.
fn read_bars(body: &[u8], hints: u32, progress: &mut Progress) -> bool {
    if let Some(caps) = hinted(hints, hint::PERCENT, &TQDM, body) {
        progress.percent = number(&caps, "pc");
        let unit = caps.name("unit").map_or(0, |m| m.len());
        // `100%|##| 1.2M/1.2M [..]` counts bytes or examples, still steps of this bar.
        if unit == 0 {
            progress.step = scaled(&caps, "n");
            progress.total = scaled(&caps, "t");
        }
        progress.eta_s = caps.name("eta").and_then(|m| clock(m.as_bytes()));
        progress.steps_per_s = rate(number(&caps, "rate"), caps.name("per").map(|m| m.as_bytes()));
        return true;
    }
    let bar = |regex| hinted(hints, hint::BAR, regex, body);
    if let Some(caps) = bar(&RICH).or_else(|| bar(&BAR)) {
        progress.step = whole(&caps, "n");
        progress.total = whole(&caps, "t");
        return true;
    }
    false
}

fn read_counters(body: &[u8], hints: u32, progress: &mut Progress) {
    if progress.step.is_none() {
        let found = if hints & hint::STEP == 0 { None } else { last_whole(&STEP, "frac", body) };
        if let Some(caps) = found {
            let unit = match caps.name("k").map(|m| m.as_bytes()) {
                Some(b"k" | b"K") => 1_000,
                Some(_) => 1_000_000,
                None => 1,
            };
            progress.step = whole(&caps, "n").and_then(|n| n.checked_mul(unit));
            progress.total = whole(&caps, "t");
        } else if let Some(caps) =
            last(&CLU, body).or_else(|| hinted(hints, hint::BATCH, &BATCH, body))
        {
            progress.step = whole(&caps, "n");
            progress.total = caps.iter().nth(2).flatten().and_then(|m| integer(m.as_bytes()));
        }
    }
    if hints & hint::EPOCH == 0 {
        return;
    }
    let bracket = last(&EPOCH_BRACKET, body);
    if let Some(caps) = bracket.or_else(|| last_whole(&EPOCH, "bad", body)) {
        progress.epoch = number(&caps, "n");
        progress.epochs = number(&caps, "t");
    }
}

fn read_numbers(body: &[u8], hints: u32, shown: &mut Shown) {
    let mut newest: Option<(bool, f64)> = None;
    let losses = (hints & hint::LOSS != 0).then(|| LOSS.captures_iter(body));
    for caps in losses.into_iter().flatten() {
        let name = caps.name("name").map_or(&[][..], |m| m.as_bytes()).to_ascii_lowercase();
        let held_out = caps.name("pre").is_some() || is_held_out(&name);
        let Some(value) = number(&caps, "v") else { continue };
        // The plain or training loss outranks that of a validation set and of a part.
        let plain = !held_out;
        if newest.is_none_or(|(old, _)| plain && !old) {
            newest = Some((plain, value));
        }
    }
    if let Some((_, value)) = newest {
        shown.diverged = !value.is_finite();
        shown.progress.loss = value.is_finite().then_some(value);
    }
    shown.progress.lr = hinted(hints, hint::LR, &LR, body).and_then(|caps| number(&caps, "v"));
    if shown.progress.steps_per_s.is_none() && hints & hint::RATE != 0 {
        shown.progress.steps_per_s =
            last(&RATE, body).and_then(|caps| number(&caps, "v")).or_else(|| {
                let caps = last(&RATE_AFTER, body)?;
                rate(number(&caps, "v"), caps.name("per").map(|m| m.as_bytes()))
            });
    }
    if shown.progress.eta_s.is_none() {
        let eta =
            hinted(hints, hint::ETA, &ETA, body).and_then(|caps| clock(caps.name("v")?.as_bytes()));
        shown.progress.eta_s = eta;
    }
    if shown.progress.percent.is_none() {
        let percent = hinted(hints, hint::PERCENT, &PERCENT, body);
        shown.progress.percent =
            percent.and_then(|caps| number(&caps, "a").or_else(|| number(&caps, "b")));
    }
}

fn is_held_out(name: &[u8]) -> bool {
    [&b"val"[..], b"eval", b"test"].iter().any(|word| memchr::memmem::find(name, word).is_some())
}

/// The last match, where the line holds what the expression needs. Compiling one takes longer than
/// reading a page of text, so one that no line needs is left alone.
fn hinted<'h>(
    hints: u32,
    needed: u32,
    regex: &LazyLock<Regex>,
    text: &'h [u8],
) -> Option<Captures<'h>> {
    if hints & needed == 0 { None } else { last(regex, text) }
}

/// The last match in which the group `spoilt` is empty.
fn last_whole<'h>(regex: &Regex, spoilt: &str, text: &'h [u8]) -> Option<Captures<'h>> {
    // Room for groups is made before anything is looked for: most lines are spared it.
    let mut found = regex.is_match(text).then(|| regex.captures_iter(text)).into_iter().flatten();
    let mut last = None;
    found.by_ref().filter(|caps| caps.name(spoilt).is_none()).for_each(|caps| last = Some(caps));
    last
}

fn last<'h>(regex: &Regex, text: &'h [u8]) -> Option<Captures<'h>> {
    regex.is_match(text).then(|| regex.captures_iter(text).last()).flatten()
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
            if let Some(wanted) = Wanted::beside(&ours) {
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
