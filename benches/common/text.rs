//! Text for the classifier, and the least that reading it can cost.

use std::fmt::Write as _;
use std::hint::black_box;
use std::io;
use std::path::Path;
use std::{fs, sync::LazyLock};

use regex::bytes::RegexSet;

/// A run as five loggers show it, each line with numbers of its own.
pub(crate) fn healthy(bytes: usize) -> String {
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

/// Every captured block with a traceback, in turn, until there is enough.
pub(crate) fn failures(bytes: usize) -> io::Result<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/corpus/blocks");
    let mut files =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    files.sort();
    let blocks = files.iter().map(fs::read).collect::<io::Result<Vec<_>>>()?;
    let wall = |block: &&Vec<u8>| block.windows(9).any(|w| w == b"Traceback");
    let mut text = Vec::with_capacity(bytes + 10_000);
    for block in blocks.iter().filter(wall).cycle() {
        text.extend_from_slice(block);
        if text.len() >= bytes {
            break;
        }
    }
    Ok(text)
}

static SIX: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSet::new([
        r"(?-u)Traceback \(most",
        r"(?-u)[A-Z]\w+Error: ",
        r"(?-u)UNAVAILABLE: ",
        r"(?-u)Killed",
        r"(?-u)step[ =:]+\d+",
        r"(?-u)loss[ =:]+[\d.]+",
    ])
    .expect("the expressions are constants")
});

/// Six expressions in one set, line by line: what reading a log costs at the least.
pub(crate) fn six_expressions(text: &[u8]) {
    let lines = black_box(text).split(|byte| *byte == b'\n');
    black_box(lines.map(|line| SIX.matches(line).iter().count()).sum::<usize>());
}
