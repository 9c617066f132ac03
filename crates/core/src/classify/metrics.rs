//! What else a line measures beside its loss: its other names with numbers.
//!
//! Programs write them as `name=0.5`, `name: 0.5`, `'name': 0.5`, and as `name 0.5` where the loss is written so too.
//! Counters, times and places (`step`, `eta`, `rank`) measure nothing.

use std::sync::LazyLock;

use memchr::memmem;
use regex::bytes::Regex;

use crate::model::curve::Metric;
use crate::model::facts::Progress;

/// So many of one line are kept; more than that is a table of settings.
const MOST: usize = 24;

/// Names, or last parts of names (`perf/step_time`), that measure nothing about the training.
const COUNTERS: &[&str] = &[
    "at",
    "batch",
    "batches",
    "device",
    "elapsed",
    "ep",
    "epoch",
    "epochs",
    "eta",
    "examples",
    "global_step",
    "gpu",
    "host",
    "id",
    "in",
    "it",
    "iter",
    "iteration",
    "iterations",
    "iters",
    "line",
    "max_steps",
    "ms",
    "n_updates",
    "node",
    "num_steps",
    "of",
    "pid",
    "port",
    "process",
    "rank",
    "samples",
    "sec",
    "seconds",
    "secs",
    "seed",
    "size",
    "step",
    "steps",
    "time",
    "timesteps",
    "to",
    "tokens",
    "took",
    "total",
    "total_steps",
    "total_timesteps",
    "updates",
    "version",
    "worker",
];

/// A name and its number; what may stand before and behind them is checked beside.
#[expect(clippy::expect_used, reason = "a constant, which every test of this file compiles")]
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r#"(?-u)(?P<name>[A-Za-z_][\w./@-]{0,39})['"]?(?P<sep>[ \t]*[=:][ \t]*|[ \t]+)['"]?"#,
        r"(?P<value>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)",
    ))
    .expect("valid")
});

/// The metrics of a line that shows a loss, the loss itself and what else `progress` has read being left out.
pub fn beside(line: &[u8], progress: &Progress) -> Vec<(Metric, f64)> {
    let mut found: Vec<(Metric, f64)> = Vec::new();
    let is_spoken = is_spoken(line);
    for caps in NAMED.captures_iter(line) {
        let (Some(all), Some(name), Some(sep)) = (caps.get(0), caps.name("name"), caps.name("sep"))
        else {
            continue;
        };
        let before = all.start().checked_sub(1).and_then(|at| line.get(at));
        let behind = line.get(all.end()).copied();
        let begins =
            before.is_none_or(|byte| !byte.is_ascii_alphanumeric() && !b"_./@-".contains(byte));
        let ends =
            behind.is_none_or(|byte| byte.is_ascii_whitespace() || b",;|)}]%'\"".contains(&byte));
        let is_paired = sep.as_bytes().iter().any(|byte| b"=:".contains(byte));
        let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
        let name = text(name.as_bytes());
        let value = caps.name("value").and_then(|value| text(value.as_bytes()).parse::<f64>().ok());
        let Some(value) = value.filter(|value| value.is_finite()) else { continue };
        // `train.py:88]` is a place in a program.
        let is_place = sep.as_bytes() == b":" && (behind == Some(b']') || is_file(&name));
        let is_measure = !is_place && !is_known(&name, value, progress);
        let counts = begins && ends && (is_paired || is_spoken) && is_measure;
        if counts && found.len() < MOST && found.iter().all(|(known, _)| known.as_str() != name) {
            found.push((Metric::from(name), value));
        }
    }
    found
}

/// Whether a name is that of a file with a program.
fn is_file(name: &str) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| ["py", "cc", "cpp", "cu", "h", "rs", "go", "jl"].contains(&ending))
}

/// Whether the line writes its loss as `loss 0.41`.
fn is_spoken(line: &[u8]) -> bool {
    memmem::find_iter(line, "oss ").any(|at| {
        let behind = line.get(at + 4..).unwrap_or_default().trim_ascii_start();
        behind.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-')
    })
}

/// Whether a name counts, or stands for what is known of the progress anyway.
fn is_known(name: &str, value: f64, progress: &Progress) -> bool {
    let lower = name.to_ascii_lowercase();
    let last = lower.rsplit(['/', '.']).next().unwrap_or_default();
    // TFLOP/s/device counts no devices.
    let is_rate = lower.contains("/s/") || lower.ends_with("/s");
    let has = |words: &[&str]| words.iter().any(|word| last.contains(word));
    COUNTERS.contains(&last) && !is_rate
        || has(&["loss"]) && progress.loss == Some(value)
        || (last == "lr" || last == "learning_rate") && progress.lr.is_some()
        || has(&["per_s", "it/s", "steps_s"]) && progress.steps_per_s == Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::progress::{Wanted, read};

    fn named(line: &str) -> Vec<(String, f64)> {
        let shown = read(line.as_bytes(), 0, Wanted::ALL).unwrap_or_default();
        let found = beside(line.as_bytes(), &shown.progress);
        found.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    }

    fn pairs(all: &[(&str, f64)]) -> Vec<(String, f64)> {
        all.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn what_stands_beside_a_loss_is_read_in_each_style() {
        let hugging_face =
            "{'loss': '6.128', 'grad_norm': '0.79', 'learning_rate': '1.75e-05', 'epoch': '0.08'}";
        assert_eq!(named(hugging_face), pairs(&[("grad_norm", 0.79)]));
        let keras = "100/200 ━━━━━━━━━━ 1s 10ms/step - accuracy: 0.5 - loss: 0.69 - val_loss: 0.7";
        assert_eq!(named(keras), pairs(&[("accuracy", 0.5), ("val_loss", 0.7)]));
        let clu = "[5] train/loss=1.0000, train/error=0.2000, steps_per_sec=10.10";
        assert_eq!(named(clu), pairs(&[("train/error", 0.2)]));
        let maxtext = "completed step: 10, seconds: 131.474, TFLOP/s/device: 314.530, loss: 4.453";
        assert_eq!(named(maxtext), pairs(&[("TFLOP/s/device", 314.53)]));
        let own = "step 3000 loss 0.41 acc 0.93 lr 0.001";
        assert_eq!(named(own), pairs(&[("acc", 0.93)]));
    }

    #[test]
    fn what_is_no_measure_is_left_out() {
        for line in [
            "rank: 3 worker 7 step 100/200 loss=0.5 eta: 0:00:02 at 12:04:31",
            "loss=0.5 cache: 12G took: 5s lr=1e-4 http://10.0.0.1:8080 sha: 0badf00d",
            "I1127 00:33:33.447078 21311 train.py:88] step 210/2000 epoch 7.00 loss 0.6770 lr 0.01 (6.7 steps/s)",
            "step=3 loss=0.5 from jax/core.cc:17 x",
            "step 4 loss=0.5 saved: /tmp/run-3 in 2.5s",
        ] {
            assert_eq!(named(line), pairs(&[]), "{line}");
        }
        let many = (0..100).map(|n| format!("m{n}=0.5")).collect::<Vec<_>>().join(" ");
        assert_eq!(named(&format!("step=1 loss=0.1 {many}")).len(), MOST);
        assert_eq!(named("loss=0.1 step=1 acc=0.2 acc=0.3 x=1e999"), pairs(&[("acc", 0.2)]));
    }
}
