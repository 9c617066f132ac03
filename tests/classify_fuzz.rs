//! No text makes the classifier panic, and its answers keep their form.

use proptest::prelude::*;
use tpu::classify::{Classifier, Input, after_launch};

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
    fn any_bytes_have_a_verdict(text in text(), exit in prop::option::of(any::<i32>())) {
        let classifier = Classifier::builtin();
        let verdict = classifier.classify(&Input { text: &text, exit_code: exit, api_state: None });
        let lines = text.split(|b| *b == b'\n').count();
        if let Some(line) = verdict.evidence.and_then(|evidence| evidence.line_no) {
            prop_assert!((1..=lines).contains(&line));
        }
        prop_assert_eq!(verdict.class.as_str() == "finished" || exit != Some(0), true);
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

/// A megabyte of anything is read in time that grows with its length: these would take hours otherwise.
#[test]
fn hostile_megabytes_end() {
    for piece in
        ["a", "(", "Error ", "\u{1b}[", "\r", "[1] ", "1/", "100%|", "loss ", "epoch 1 ", "x: "]
    {
        let text = piece.repeat((1 << 20) / piece.len());
        let input = Input { text: text.as_bytes(), exit_code: None, api_state: None };
        let verdict = Classifier::builtin().classify(&input);
        assert!(verdict.evidence.is_none_or(|e| e.line.len() <= 2_000));
        assert!(!Classifier::builtin().classify_lines(text.as_bytes()).is_empty());
    }
}
