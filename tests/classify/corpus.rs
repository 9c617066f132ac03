//! The classifier on what real programs printed: lines, captured blocks, and every block mangled.
//!
//! A new program goes to `tests/real`, which keeps what it prints; a text that was read wrong goes to
//! `tests/cases/classify/`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at what it did not expect")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tpu_core::classify::{Classifier, Input};
use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{Class, Phase, Progress, Verdict};
use tpu_wire::classified::{LinePart, VerdictDocument};
use tpu_wire::members;

use super::is_part_of;

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "line")]
    text: String,
    class: String,
    #[serde(default)]
    needs_context: bool,
}

#[derive(Deserialize)]
struct Block {
    file: String,
    class: String,
    accept: Vec<String>,
    exit_code: Option<i32>,
    made_by: String,
}

impl Block {
    fn accepts(&self, verdict: &Verdict) -> bool {
        let class = verdict.class.as_str();
        is_part_of(class, &self.class) || self.accept.iter().any(|other| is_part_of(class, other))
    }
}

fn dir(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn json_lines<T: for<'de> Deserialize<'de>>(path: &Path) -> Vec<T> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    text.lines().map(parse).collect()
}

/// All captured blocks: the given ones and our own.
fn blocks() -> Vec<(Block, Vec<u8>)> {
    let mut all = Vec::new();
    for folder in ["data/corpus", "data/captures"] {
        let folder = dir(folder);
        for block in json_lines::<Block>(&folder.join("blocks.jsonl")) {
            let path = folder.join("blocks").join(&block.file);
            let text = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            all.push((block, text));
        }
    }
    all
}

fn read(text: &[u8], exit_code: Option<i32>) -> Verdict {
    Classifier::builtin().classify(&Input {
        text,
        exit: exit_code.map(Exit::Program),
        ..Input::default()
    })
}

/// Reads every block as `mangle` leaves it and lists the ones that are read wrong.
#[track_caller]
fn check(mangle: impl Fn(&[u8]) -> Vec<u8>) {
    check_beside(false, mangle);
}

/// The same where `mangle` adds `healthy` lines: they are all there is to a block that decides nothing.
#[track_caller]
fn check_beside(healthy: bool, mangle: impl Fn(&[u8]) -> Vec<u8>) {
    let mut wrong = String::new();
    for (block, text) in blocks() {
        let verdict = read(&mangle(&text), block.exit_code);
        let alive = healthy && block.class == "none" && verdict.class == Class::Running;
        if !(block.accepts(&verdict) || alive && block.exit_code.is_none_or(|code| code == 0)) {
            let found = verdict.class.as_str();
            writeln!(
                wrong,
                "{}: {} expected, {found} found\n  by {:?}\n  made by {}",
                block.file, block.class, verdict.evidence, block.made_by
            )
            .unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn lines_on_their_own() {
    let lines: Vec<Line> = json_lines(&dir("data/corpus/lines.jsonl"));
    let mut wrong = Vec::new();
    for line in &lines {
        let verdicts = Classifier::builtin().classify_lines(line.text.as_bytes());
        let [verdict] = verdicts.as_slice() else { panic!("one line: {verdicts:?}") };
        let class = verdict.class.as_str();
        let is_open = line.needs_context && class == "none";
        if !is_open && !is_part_of(class, &line.class) {
            wrong.push(format!("{} expected, {verdict:?}: {}", line.class, line.text));
        }
        let healthy = line.class == "running" || line.class == "finished";
        assert!(!healthy || verdict.class.failure().is_none(), "a false alarm: {}", line.text);
    }
    assert!(wrong.len() * 100 <= lines.len() * 3, "{}", wrong.join("\n"));
}

/// A script's 0 tells nothing of its program: each failure is told by its text, and no other end is called one.
#[test]
fn blocks_of_scripts_that_end_well() {
    // Nothing but their exit codes says how these ended.
    const SILENT: [&str; 2] = ["036-kill-9-silent.txt", "py-sigterm-silent.txt"];
    for (block, text) in blocks() {
        let start = "tpu: launch 0a1b2c \u{b7} job alice/1\n".as_bytes();
        let end = b"tpu: job alice/1 ended with exit code 0 after 12 s\n";
        let glued = [start, text.trim_ascii_end(), end].concat();
        for text in [&text, &glued] {
            let input = Input { text, exit: Some(Exit::Script(0)), ..Input::default() };
            let verdict = Classifier::builtin().classify(&input);
            let is_failure = !matches!(&*block.class, "running" | "finished" | "none");
            let is_right = if is_failure && !SILENT.contains(&&*block.file) {
                block.accepts(&verdict)
            } else {
                verdict.class.failure().is_none() || block.accepts(&verdict)
            };
            assert!(is_right, "{}: {} expected, {verdict:?}", block.file, block.class);
            let line = verdict.evidence.map(|evidence| evidence.line).unwrap_or_default();
            assert!(!line.contains("tpu: job"), "{}: {line}", block.file);
        }
    }
}

#[test]
fn blocks_as_captured() {
    check(<[u8]>::to_vec);
}

#[test]
fn blocks_from_pty_with_carriage_returns() {
    check(|text| String::from_utf8_lossy(text).replace('\n', "\r\n").into_bytes());
}

#[test]
fn an_old_failure_long_before_does_not_decide() {
    let mut filler = String::new();
    for step in 0..130 {
        writeln!(filler, "step {step} loss 0.{:03} lr 1e-4 tokens/s 1023.5", 900 - step).unwrap();
    }
    assert!(filler.len() > 5_000 - 200);
    for old in [
        "GRPC error: UNAVAILABLE: Socket closed",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm",
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nValueError: bad shape",
        "client_loop: send disconnect: Broken pipe",
    ] {
        check_beside(true, |text| [old.as_bytes(), b"\n", filler.as_bytes(), text].concat());
    }
}

#[test]
fn an_old_failure_before_text_of_no_meaning_does_not_decide() {
    let filler = "lorem ipsum dolor sit amet consectetur\n".repeat(130);
    check(|text| [b"GRPC error: UNAVAILABLE: Socket closed\n", filler.as_bytes(), text].concat());
}

#[test]
fn blocks_wrapped_by_a_narrow_window() {
    for (width, trimmed) in [(37, false), (37, true), (53, false), (80, true)] {
        check(|text| {
            let text = String::from_utf8_lossy(&tpu_core::text::strip(text)).replace('\r', "");
            let mut cut = String::new();
            for line in text.lines() {
                let chars: Vec<char> = line.chars().collect();
                for piece in chars.chunks(width) {
                    let piece: String = piece.iter().collect();
                    cut.push_str(if trimmed { piece.trim_end() } else { &piece });
                    cut.push('\n');
                }
                if chars.is_empty() {
                    cut.push('\n');
                }
            }
            cut.into_bytes()
        });
    }
}

#[test]
fn blocks_in_colours_behind_a_progress_bar() {
    let bar = "\u{1b}[2K\r  3%|▎         | 3/100 [00:01<00:31,  3.11it/s]";
    check_beside(true, |text| {
        let text = String::from_utf8_lossy(text);
        let coloured = |(n, line): (usize, &str)| {
            let bar = if n == 0 { bar } else { "" };
            format!("{bar}\r\u{1b}[{}m{line}\u{1b}[0m\n", 31 + n % 6)
        };
        text.lines().enumerate().map(coloured).collect::<String>().into_bytes()
    });
    check_beside(true, |text| [bar.as_bytes(), b"\r", text].concat());
    check_beside(true, |text| [bar.as_bytes(), text].concat());
}

#[test]
fn blocks_among_healthy_workers() {
    for (sick, healthy) in
        [("[worker 3] ", "[worker 0] "), ("[3] ", "[0] "), ("(pid=77) ", "(pid=12) ")]
    {
        check_beside(true, |text| {
            let text = String::from_utf8_lossy(text);
            let mut mixed = String::new();
            for (n, line) in text.lines().enumerate() {
                writeln!(mixed, "{healthy}step {n} loss 0.5 grad_norm 0.1").unwrap();
                writeln!(mixed, "{sick}{line}").unwrap();
            }
            writeln!(mixed, "{healthy}step 99999 loss 0.4 grad_norm 0.1").unwrap();
            mixed.into_bytes()
        });
    }
}

#[test]
fn blocks_with_bytes_that_are_no_text() {
    check(|text| {
        let mut broken = b"\xff\xfe\x00\x80 start \xc3\n".to_vec();
        for (n, line) in text.split(|b| *b == b'\n').enumerate() {
            broken.extend_from_slice(line);
            if n % 3 == 0 {
                broken.extend_from_slice(b" \xf0\x28\x8c\xbc");
            }
            broken.push(b'\n');
        }
        broken
    });
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    text: String,
    classes: Vec<String>,
    #[serde(default)]
    progress: BTreeMap<String, Option<f64>>,
    phase: Option<String>,
    exit_code: Option<i32>,
    api_state: Option<String>,
    rule: Option<String>,
    worker: Option<String>,
}

fn numbers(progress: &Progress) -> BTreeMap<String, Option<f64>> {
    let value = serde_json::to_value(progress).unwrap();
    let fields = value.as_object().unwrap();
    fields.iter().map(|(name, number)| (name.clone(), number.as_f64())).collect()
}

fn check_case(case: &Case, text: &[u8]) {
    let input = Input {
        text,
        exit: case.exit_code.map(Exit::Program),
        api_state: case.api_state.as_deref(),
        ..Input::default()
    };
    let verdict = Classifier::builtin().classify(&input);
    let said = || format!("{verdict:?}\nfor {}", String::from_utf8_lossy(text));
    assert!(
        case.classes.iter().any(|c| is_part_of(verdict.class.as_str(), c)),
        "{:?}: {}",
        case.classes,
        said()
    );
    let found = numbers(&verdict.progress);
    for (name, number) in &case.progress {
        assert_eq!(found.get(name), Some(number), "{name}: {}", said());
    }
    if let Some(phase) = &case.phase {
        assert_eq!(verdict.phase.map(Phase::as_str), Some(phase.as_str()), "{}", said());
    }
    let evidence = verdict.evidence.as_ref();
    if let Some(rule) = &case.rule {
        assert_eq!(evidence.map(|e| e.rule.as_str()), Some(rule.as_str()), "{}", said());
    }
    if let Some(worker) = &case.worker {
        assert_eq!(evidence.and_then(|e| e.worker.as_deref()), Some(worker.as_str()), "{}", said());
    }
}

/// The texts on which the forerunner's own table was tried, as they are and mangled as listed there.
#[test]
fn texts_of_the_forerunner() {
    for case in json_lines::<Case>(&dir("cases/classify/forerunners.jsonl")) {
        check_case(&case, case.text.as_bytes());
        check_case(&case, format!("\u{1b}[31m{}\u{1b}[0m\r\n", case.text).as_bytes());
        check_case(&case, &[case.text.as_bytes(), b" \xff\xfe"].concat());
        let mut steps = String::new();
        for step in 0..120 {
            writeln!(steps, "iter {step} loss 0.5 and some more words").unwrap();
        }
        let old = format!("GRPC error: UNAVAILABLE\n{steps}{}", case.text);
        if case.classes != ["none"] && !case.classes.contains(&"none".to_owned()) {
            let case = Case { progress: BTreeMap::new(), phase: None, ..clone(&case) };
            check_case(&case, old.as_bytes());
        }
    }
}

fn clone(case: &Case) -> Case {
    Case {
        text: case.text.clone(),
        classes: case.classes.clone(),
        progress: case.progress.clone(),
        phase: case.phase.clone(),
        exit_code: case.exit_code,
        api_state: case.api_state.clone(),
        rule: case.rule.clone(),
        worker: case.worker.clone(),
    }
}

#[test]
fn texts_that_were_hard() {
    for case in json_lines::<Case>(&dir("cases/classify/hard.jsonl")) {
        check_case(&case, case.text.as_bytes());
    }
}

/// What a program prints, and the numbers that may be read from it: no other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shown {
    from: String,
    text: String,
    numbers: BTreeMap<String, f64>,
}

/// A wrong number is worse than none, so what a row does not name must be absent.
#[test]
fn numbers_of_real_programs() {
    let mut wrong = String::new();
    for Shown { from, text, numbers: expected } in
        json_lines::<Shown>(&dir("cases/classify/numbers.jsonl"))
    {
        let found = numbers(&read(text.as_bytes(), None).progress);
        assert!(expected.keys().all(|name| found.contains_key(name)), "{from}: {expected:?}");
        for (name, found) in found {
            let expected = expected.get(&name).copied();
            let same = match (found, expected) {
                (Some(found), Some(expected)) => (found - expected).abs() <= 1e-9 * expected.abs(),
                (found, expected) => found == expected,
            };
            if !same {
                writeln!(wrong, "{from}: {name}: {expected:?} expected, {found:?} found").unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The JSON that scripts read, field by field.
#[test]
fn the_json_keeps_its_form() {
    let text =
        b"[worker 3] step 1200/5000 loss 0.41\n[worker 3] UNAVAILABLE: Task 2 heartbeat timeout.\n";
    let verdict = read(text, Some(134));
    let json = serde_json::Value::Object(members(&VerdictDocument::from(&verdict)));
    assert_eq!(
        json,
        serde_json::json!({
            "schema": 1, "class": "grpc", "phase": null,
            "progress": {
                "epoch": null, "epochs": null, "step": 1200, "total": 5000, "percent": null,
                "loss": 0.41, "lr": null, "steps_per_s": null, "eta_s": null,
            },
            "evidence": {
                "source": "text", "rule": "grpc.heartbeat",
                "line": "UNAVAILABLE: Task 2 heartbeat timeout.",
                "line_no": 1, "worker": "3",
            },
        })
    );
    let lines = Classifier::builtin().classify_lines(b"\nKilled\n");
    let json: Vec<_> =
        lines.iter().map(|line| serde_json::to_string(&LinePart::from(line)).unwrap()).collect();
    assert_eq!(
        json,
        [
            r#"{"n":1,"class":"none","rule":null}"#,
            r#"{"n":2,"class":"killed-by-signal","rule":"signal.shell"}"#
        ]
    );
}
