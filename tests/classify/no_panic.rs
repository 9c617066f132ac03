//! No text makes the classifier panic, and its answers keep their form.
//!
//! A short share of this runs with every test run; `./x fuzz SECONDS` goes on for longer.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tpu_core::classify::{Classifier, Input, after_launch};
use tpu_core::model::exit::Exit;
use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::env::Env;

/// Pieces out of which hostile and half-broken texts are made.
const PIECES: [&[u8]; 28] = [
    b"\n",
    b"\r",
    b"\x1b[31m",
    b"\x1b]0;",
    b"\x07",
    b"\x08",
    b"\xff",
    b"\xe2\x94",
    b" ",
    b"Error",
    b"Traceback (most recent call last):\n",
    b"  File \"x\", line 1\n",
    b"ValueError: ",
    b"step 10/20 ",
    b"100%|##| 9/9 [00:01<00:00, 9it/s]",
    b"[worker 3] ",
    b"(pid=7) ",
    b"user@h:~$ ",
    b"$ ls\n",
    b"loss: nan ",
    b"epoch 3 ",
    b"tpu: launch aa1",
    b"UNAVAILABLE: ",
    b"(success).",
    b"Killed\n",
    b"During handling of the above exception, another exception occurred:\n",
    b"99999999999999999999",
    b"[[[(((",
];

fn text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        3 => prop::sample::select(PIECES.to_vec()).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_have_a_verdict(text in text(), code in prop::option::of(any::<i32>())) {
        let exit = code.map(Exit::Program);
        let classifier = Classifier::builtin();
        let verdict = classifier.classify(&Input { text: &text, exit, ..Input::default() });
        let lines = text.split(|b| *b == b'\n').count();
        if let Some(line) = verdict.evidence.and_then(|evidence| evidence.line_no) {
            prop_assert!((1..=lines).contains(&line));
        }
        prop_assert_eq!(verdict.class.as_str() == "finished" || code != Some(0), true);
    }

    #[test]
    fn any_bytes_have_a_verdict_for_each_line(text in text()) {
        let verdicts = Classifier::builtin().classify_lines(&text);
        let body = text.strip_suffix(b"\n").unwrap_or(&text);
        // Escape strings may swallow nothing but themselves: every line keeps its number.
        let lines = body.split(|b| *b == b'\n').count();
        prop_assert_eq!(verdicts.iter().map(|v| v.n).collect::<Vec<_>>(), (1..=lines).collect::<Vec<_>>());
    }

    #[test]
    fn the_part_of_a_launch_lies_within_the_text(text in text(), token in "[a-z]{1,3}[0-9]?") {
        let part = after_launch(&text, &token);
        prop_assert!(text.windows(part.len().max(1)).any(|w| w == part) || part.is_empty());
    }

}

proptest! {
    // Each case prepares the whole set of rules once more, which is dear.
    #![proptest_config(ProptestConfig {
        cases: 24, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn overlays_never_panic(text in "\\PC{0,200}") {
        let _unused = Classifier::with_overlay(&text, "lab.toml").1;
    }
}

/// All captured blocks: what mutations begin with.
fn captures() -> Vec<Vec<u8>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut files: Vec<_> = ["corpus/blocks", "captures/blocks", "real"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(data.join(folder)).expect("captures are checked in"))
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("a readable file")).collect()
}

/// One change to a text: `what` chooses it, `at` and `to` say where, in thousandths.
type Change = (u8, usize, usize, Vec<u8>);

fn change(text: &mut Vec<u8>, (what, at, to, bytes): &Change, others: &[Vec<u8>]) {
    let place = |thousandth: usize| text.len() * thousandth / 1_000;
    let (from, end) = (place(*at.min(to)), place(*at.max(to)));
    match what % 8 {
        // Put bytes in, put them over others, take a part out, say it twice.
        0 => drop(text.splice(from..from, bytes.iter().copied())),
        1 => text.iter_mut().skip(from).zip(bytes).for_each(|(old, new)| *old = *new),
        2 => drop(text.drain(from..end)),
        3 => {
            let part = text[from..end.min(from + 2_000)].to_vec();
            drop(text.splice(from..from, part));
        }
        // Cut off, turn a bit, wrap, put another capture in between.
        4 => text.truncate(end),
        5 => text.iter_mut().skip(from).take(1).for_each(|byte| *byte ^= 1 << (to % 8)),
        6 => {
            let width = to % 120 + 1;
            *text = text.chunks(width).collect::<Vec<_>>().join(&b'\n');
        }
        _ => {
            let other = others.get(to % others.len().max(1)).map_or(&[][..], Vec::as_slice);
            drop(text.splice(from..from, other.iter().copied()));
        }
    }
    text.truncate(200_000);
}

/// Reads mutated captures and made-up texts for as long as `TPU_FUZZ_SECONDS` says, from a seed that is
/// printed; by default for a moment and always the same ones.
#[test]
fn mutated_captures_have_a_verdict() {
    let env = Env::read();
    let number = |name: &str| {
        env.non_empty(name).map(|text| text.parse::<u64>().expect("the variable is a number"))
    };
    let seconds = number("TPU_FUZZ_SECONDS");
    let fresh = || if seconds.is_some() { any_seed() } else { 1 };
    let seed = number("TPU_FUZZ_SEED").unwrap_or_else(fresh);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let changes = prop::collection::vec(
        (any::<u8>(), 0..=1_000_usize, 0..=1_000_usize, prop::collection::vec(any::<u8>(), 0..40)),
        0..8,
    );
    let plan = (any::<usize>(), changes, text(), prop::option::of(any::<i32>()), any::<u8>());
    let captures = captures();
    let clock = SystemClock::new();
    let end = clock.monotonic() + Duration::from_secs(seconds.unwrap_or(0));
    let (mut cases, mut read) = (0_u64, 0_usize);
    while cases < 40 || clock.monotonic() < end {
        let tree = plan.new_tree(&mut runner).expect("nothing is rejected");
        let (which, changes, made_up, exit_code, kind) = tree.current();
        let mut text = match kind % 4 {
            0 => made_up,
            _ => captures[which % captures.len()].clone(),
        };
        for one in &changes {
            change(&mut text, one, &captures);
        }
        let verdict = std::panic::catch_unwind(|| check(&text, exit_code));
        if let Err(panic) = verdict {
            let shown = String::from_utf8_lossy(&text).escape_debug().to_string();
            eprintln!("seed {seed}, case {cases}, exit code {exit_code:?}, text:\n{shown}");
            std::panic::resume_unwind(panic);
        }
        cases += 1;
        read += text.len();
    }
    eprintln!("seed {seed}: {cases} texts, {read} bytes");
}

/// What holds of every text.
fn check(text: &[u8], exit_code: Option<i32>) {
    let classifier = Classifier::builtin();
    let verdict = classifier.classify(&Input {
        text,
        exit: exit_code.map(Exit::Program),
        ..Input::default()
    });
    if let Some(line) = verdict.evidence.as_ref().and_then(|evidence| evidence.line_no) {
        assert!((1..=text.split(|b| *b == b'\n').count()).contains(&line), "{verdict:?}");
    }
    assert!(exit_code != Some(0) || verdict.class.as_str() == "finished", "{verdict:?}");
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    let lines = classifier.classify_lines(text);
    assert_eq!(lines.len(), body.split(|b| *b == b'\n').count());
    let part = after_launch(text, "aa1");
    assert!(part.len() <= text.len());
}

fn any_seed() -> u64 {
    use std::hash::BuildHasher as _;
    std::hash::RandomState::new().hash_one(0)
}

/// A megabyte of anything is read in time that grows with its length: these would take hours otherwise.
#[test]
fn hostile_megabytes_end() {
    for piece in
        ["a", "(", "Error ", "\u{1b}[", "\r", "[1] ", "1/", "100%|", "loss ", "epoch 1 ", "x: "]
    {
        let text = piece.repeat((1 << 20) / piece.len());
        let input = Input { text: text.as_bytes(), exit: None, ..Input::default() };
        let verdict = Classifier::builtin().classify(&input);
        assert!(verdict.evidence.is_none_or(|e| e.line.len() <= 2_000));
        assert!(!Classifier::builtin().classify_lines(text.as_bytes()).is_empty());
    }
}
