//! How fast the classifier reads: megabytes of healthy training text, and walls of tracebacks.
//!
//! `cargo bench --bench classify`. The floors of issue 4: 200 MB/s healthy, 40 MB/s tracebacks, one core.
//! Machines differ and are shared: `floor_…` is what a handful of words and expressions alone would cost
//! on the same text at the same moment, so the ratio to them says more than the figure.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use tpu::classify::{Classifier, Input};

fn main() {
    divan::main();
}

/// A run as five loggers show it, each line with numbers of its own.
fn healthy(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 400);
    let mut step = 0_u32;
    while text.len() < bytes {
        step += 1;
        let loss = 9.0 / f64::from(step % 997 + 1);
        let second = step % 60;
        let ok = match step % 8 {
            0 => writeln!(
                text,
                "I1120 06:24:{second:02}.558033 140614421764992 train.py:17] [{step}] train/loss={loss:.4}, \
                 train/error={:.4}, num_errors=0, steps_per_sec=10.10",
                loss / 5.0
            ),
            1 => writeln!(
                text,
                "step {step:6}/90000 mean_squared_error={loss:.4} grad_norm=0.597 error_rate 0.0 steps/s=12.8"
            ),
            2 => writeln!(
                text,
                "completed step: {step}, seconds: 4.029, TFLOP/s/device: 256.417, Tokens/s/device: 124.6, loss: {loss:.3}"
            ),
            3 => writeln!(
                text,
                "{{'loss': '{loss:.3}', 'grad_norm': '0.8336', 'learning_rate': '3.417e-05', 'epoch': '0.{step:04}'}}"
            ),
            4 => writeln!(
                text,
                "2026-11-20 06:33:{second:02},603 INFO [host 23026] step {step} loss {loss:.3} grad_norm 0.88"
            ),
            5 => writeln!(
                text,
                "Epoch 2/3:  {:2}%|█████████████████████▌                     | {}/9000 [00:02<00:02, 48.75batch/s, err=0, loss={loss:.3}]",
                step % 100,
                step % 9000
            ),
            6 => writeln!(
                text,
                "INFO:tensorflow:Enqueue next ({}) batch(es) of data to infeed.",
                step % 300
            ),
            _ => writeln!(
                text,
                "[worker {}] {step} batches read from shard-{:05}-of-01024, queue 93 % full",
                step % 8,
                step % 1024
            ),
        };
        ok.expect("writing to a string");
    }
    text
}

/// Every captured block, in turn, until there is enough.
fn failures(bytes: usize) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/corpus/blocks");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the corpus is checked in")
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    files.sort();
    let blocks: Vec<_> =
        files.iter().map(|file| fs::read(file).expect("a readable file")).collect();
    let wall = |block: &&Vec<u8>| block.windows(9).any(|w| w == b"Traceback");
    let mut text = Vec::with_capacity(bytes + 10_000);
    for block in blocks.iter().filter(wall).cycle() {
        text.extend_from_slice(block);
        if text.len() >= bytes {
            break;
        }
    }
    text
}

const MEGABYTES: usize = 8 << 20;
/// What a look at one pane reads: at most the last 2 000 lines.
const PANE: usize = 150 << 10;

fn classify(text: &[u8]) {
    black_box(Classifier::builtin().classify(&Input { text: black_box(text), ..Input::default() }));
}

#[divan::bench]
fn pane_healthy(bencher: Bencher<'_, '_>) {
    let text = healthy(PANE);
    bencher.counter(BytesCount::of_str(&text)).bench(|| classify(text.as_bytes()));
}

#[divan::bench]
fn pane_tracebacks(bencher: Bencher<'_, '_>) {
    let text = failures(PANE);
    bencher.counter(BytesCount::of_slice(&text)).bench(|| classify(&text));
}

/// A whole log read pane by pane, so that nothing of it is skipped.
#[divan::bench(sample_count = 10)]
fn log_healthy(bencher: Bencher<'_, '_>) {
    let text = healthy(MEGABYTES);
    let bytes = BytesCount::of_str(&text);
    bencher.counter(bytes).bench(|| text.as_bytes().chunks(PANE).for_each(classify));
}

#[divan::bench(sample_count = 10)]
fn lines_healthy(bencher: Bencher<'_, '_>) {
    let text = healthy(MEGABYTES);
    let bytes = BytesCount::of_str(&text);
    bencher
        .counter(bytes)
        .bench(|| Classifier::builtin().classify_lines(black_box(text.as_bytes())));
}

#[divan::bench(sample_count = 10)]
fn lines_tracebacks(bencher: Bencher<'_, '_>) {
    let text = failures(MEGABYTES);
    let bytes = BytesCount::of_slice(&text);
    bencher.counter(bytes).bench(|| Classifier::builtin().classify_lines(black_box(&text)));
}

/// Six expressions in one set, line by line: what reading a log costs at the least.
fn floor(bencher: Bencher<'_, '_>, text: &[u8]) {
    let set = regex::bytes::RegexSet::new([
        r"(?-u)Traceback \(most",
        r"(?-u)[A-Z]\w+Error: ",
        r"(?-u)UNAVAILABLE: ",
        r"(?-u)Killed",
        r"(?-u)step[ =:]+\d+",
        r"(?-u)loss[ =:]+[\d.]+",
    ])
    .expect("the expressions are constants");
    bencher.counter(BytesCount::of_slice(text)).bench(|| {
        let lines = black_box(text).split(|b| *b == b'\n');
        lines.map(|line| set.matches(line).iter().count()).sum::<usize>()
    });
}

#[divan::bench(sample_count = 10)]
fn floor_healthy(bencher: Bencher<'_, '_>) {
    floor(bencher, healthy(MEGABYTES).as_bytes());
}

#[divan::bench(sample_count = 10)]
fn floor_tracebacks(bencher: Bencher<'_, '_>) {
    floor(bencher, &failures(MEGABYTES));
}

/// A wall of tracebacks, pane by pane.
#[divan::bench(sample_count = 10)]
fn log_tracebacks(bencher: Bencher<'_, '_>) {
    let text = failures(MEGABYTES);
    let bytes = BytesCount::of_slice(&text);
    bencher.counter(bytes).bench(|| text.chunks(PANE).for_each(classify));
}

/// What the first use costs a process.
#[divan::bench(sample_count = 20)]
fn load_rules() -> Classifier {
    Classifier::with_overlay("", "none.toml").0
}
