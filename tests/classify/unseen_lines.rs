//! The classifier on lines that its rules were not written from.
//!
//! `issues.jsonl` holds what people pasted into public bug reports, each with its source, and with values of
//! ours for addresses, names, ids and long numbers; `programs.jsonl`
//! what well-known programs print; `healthy.jsonl` made-up healthy lines full of alarming words. `kinds.jsonl`
//! and `blocks.jsonl` hold what programs of every class print, in their wording with values of ours;
//! `rarer.jsonl` the same for programs that are met less often. All were given their class before they were
//! read. When first read, 280 of the 306 lines of `kinds.jsonl` were right, two healthy ones were called
//! failures, and all 40 blocks were right; rules were widened for what was wrong there, and then 116 of the
//! 135 lines of `rarer.jsonl` were right, no healthy one a failure. Seven labels that disagreed with the
//! definition of the classes were mended after that, and rules widened once more. Then 68 of the 70 lines
//! of `usual.jsonl`, what jobs on TPUs mostly print, were right, and no healthy one a failure.
//! `threads.jsonl` is out of public threads and logs again, in four parts, with rules widened after each: when first
//! read, 240 of 258, 113 of 125, 117 of 127 and 109 of 121 lines were right, silence about healthy noise
//! counted as the contract has it; two healthy lines of those 631 were called failures. Four more parts were
//! read at once: 112 of 119, 129 of 144, 95 of 99 and 131 of 139 were right, the last two from the same
//! places as the given corpus, and none of the healthy ones was called a failure; one line that decides
//! nothing was, the state of a container that was not killed for its memory. Of two more, 101 of 111 and 121
//! of 130 were right, and one healthy line was called a failure. Lines that occurred in two parts are held
//! once. `./x estimate` says how the rules would do without what they know from one source alone.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use tpu_core::classify::{Classifier, Input};
use tpu_core::model::exit::Exit;
use tpu_system::sys::env::Env;

use super::is_part_of;

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(rename = "line")]
    text: String,
    class: String,
    #[serde(default)]
    accept: Vec<String>,
    source: String,
    #[serde(default)]
    needs_context: bool,
    #[serde(default, rename = "note")]
    _note: String,
}

impl Line {
    fn accepts(&self, class: &str) -> bool {
        is_part_of(class, &self.class)
            || self.accept.iter().any(|other| is_part_of(class, other))
            || (self.needs_context && class == "none")
    }
}

fn lines(name: &str) -> Vec<Line> {
    read_set(name)
}

fn read_set<T: for<'de> Deserialize<'de>>(name: &str) -> Vec<T> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).expect("an entry of the set")).collect()
}

/// The class of each line and the rule that decided.
fn read(classifier: &Classifier, lines: &[Line]) -> Vec<(&'static str, Option<String>)> {
    let read = |line: &Line| {
        let verdict = classifier.classify_lines(line.text.as_bytes()).remove(0);
        (verdict.class.as_str(), verdict.rule)
    };
    lines.iter().map(read).collect()
}

/// At most one line in fifty is read wrong, and no healthy one is called a failure.
#[track_caller]
fn check(name: &str) {
    let lines = lines(name);
    let found = read(Classifier::builtin(), &lines);
    let mut wrong = Vec::new();
    for (line, (class, rule)) in lines.iter().zip(&found) {
        let said = format!("{} expected, {class} by {rule:?}: {}", line.class, line.text);
        let healthy = ["running", "finished"].contains(&line.class.as_str());
        let alarm = !["running", "finished", "none"].contains(class);
        assert!(!(healthy && alarm) || line.accepts(class), "a false alarm: {said}");
        if !line.accepts(class) {
            wrong.push(said);
        }
    }
    assert!(wrong.len() * 50 <= lines.len(), "{}", wrong.join("\n"));
}

#[test]
fn lines_from_bug_reports() {
    check("heldout/issues.jsonl");
}

#[test]
fn lines_of_well_known_programs() {
    check("heldout/programs.jsonl");
}

#[test]
fn healthy_lines_with_alarming_words() {
    check("heldout/healthy.jsonl");
}

#[test]
fn lines_of_every_class() {
    check("heldout/kinds.jsonl");
}

#[test]
fn lines_of_rarer_programs() {
    check("heldout/rarer.jsonl");
}

#[test]
fn lines_from_more_threads() {
    check("heldout/threads.jsonl");
}

#[test]
fn lines_that_are_usual() {
    check("heldout/usual.jsonl");
}

/// What a pane shows when a job has ended, or while it runs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Block {
    text: String,
    class: String,
    accept: Vec<String>,
    exit_code: Option<i32>,
    note: String,
}

#[test]
fn blocks_of_every_class() {
    let classifier = Classifier::builtin();
    let mut wrong = Vec::new();
    for Block { text, class, accept, exit_code, note } in read_set::<Block>("heldout/blocks.jsonl")
    {
        let text = text.as_bytes();
        let verdict = classifier.classify(&Input {
            text,
            exit: exit_code.map(Exit::Program),
            ..Input::default()
        });
        let found = verdict.class.as_str();
        let is_right = |expected: &String| is_part_of(found, expected);
        if !is_right(&class) && !accept.iter().any(is_right) {
            wrong.push(format!("{note}: {class} expected, {found} by {:?}", verdict.evidence));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Leaves out one source after the other: the rules that decide no line of any other source are
/// switched off, and the lines of that source are read again. An estimate of what happens to lines
/// from a source that nobody has seen; three sources with every test run, all with `./x estimate`.
#[test]
fn without_what_is_known_from_one_source() {
    let all: Vec<Line> = ["corpus/lines.jsonl", "heldout/issues.jsonl", "heldout/programs.jsonl"]
        .into_iter()
        .flat_map(lines)
        .collect();
    let found = read(Classifier::builtin(), &all);
    let mut sources: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, line) in all.iter().enumerate() {
        sources.entry(&line.source).or_default().push(index);
    }
    let whole = Env::read().non_empty("TPU_ESTIMATE").is_some();
    let (mut right, mut of, mut given, mut of_given) = (0, 0, 0, 0);
    let given_ones = lines("corpus/lines.jsonl").len();
    let mut tried = 0;
    for own in sources.values() {
        let elsewhere = |rule: &String| {
            found
                .iter()
                .enumerate()
                .any(|(i, (_, by))| by.as_ref() == Some(rule) && !own.contains(&i))
        };
        let mut only: Vec<&String> = own.iter().filter_map(|i| found[*i].1.as_ref()).collect();
        only.sort();
        only.dedup();
        only.retain(|rule| *rule != "progress" && !elsewhere(rule));
        let mine: Vec<Line> = own.iter().map(|i| all[*i].clone()).collect();
        let again = if only.is_empty() {
            own.iter().map(|i| found[*i].clone()).collect()
        } else {
            tried += 1;
            if tried > 3 && !whole {
                continue;
            }
            let (without, errors) =
                Classifier::with_overlay(&format!("disable = {only:?}"), "without.toml");
            assert_eq!(errors, []);
            read(&without, &mine)
        };
        for ((index, line), (class, _)) in own.iter().zip(&mine).zip(&again) {
            let fits = usize::from(line.accepts(class));
            (right, of) = (right + fits, of + 1);
            if *index < given_ones {
                (given, of_given) = (given + fits, of_given + 1);
            }
        }
    }
    let share = |right: usize, of: usize| 1_000 * right / of.max(1);
    eprintln!(
        "one source left out: {right} of {of} lines right ({}‰), of the given ones {given} of {of_given} ({}‰)",
        share(right, of),
        share(given, of_given)
    );
    assert!(share(right, of) >= 900, "the rules are lists of what was seen: {right} of {of}");
}
