//! What a run measures, in full width: curves with axes, the attempts above them, a cursor, a closer look.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use tpu_core::model::curve::{Curves, Measured, Metric};
use tpu_core::model::ids::JobNumber;
use tpu_screen::keys::Context;
use tpu_screen::message::{Answer, Ask};

use crate::common::boards::{self, answer};
use crate::common::samples;
use crate::common::screen::Screen;

/// The sample job that has three attempts, in full width.
fn wide() -> Screen {
    let mut screen = boards::screen();
    screen.model.list.selected = Some(samples::id(7));
    screen.press("enter");
    assert_eq!(screen.model.context(), Context::Detail);
    screen
}

/// The line on which something stands.
fn line(frame: &str, word: &str) -> String {
    let found = frame.lines().find(|line| line.contains(word));
    found.unwrap_or_else(|| panic!("no {word} in\n{frame}")).to_owned()
}

/// What the line below the chart says.
fn foot(screen: &mut Screen, size: (u16, u16)) -> String {
    let line = line(&screen.frame(size), " · lowest ");
    // Beside it stands a fact.
    let (value, behind) = line.split_once(" at step ").unwrap();
    let value = value.rsplit(' ').next().unwrap();
    format!("{value} at step {behind}").trim_end_matches(['│', ' ']).to_owned()
}

const BESIDE: (u16, u16) = (150, 36);
const SMALL: (u16, u16) = (80, 24);

#[test]
fn a_wide_screen_shows_facts_chart_and_output_at_once() {
    let mut screen = wide();
    let frame = screen.frame(BESIDE);
    let axis = line(&frame, "step 0");
    assert!(axis.contains("5950") && axis.contains("11900"), "{frame}");
    // The highest loss and the lowest, to the right of the facts.
    assert!(line(&frame, "3.3│").starts_with('│'), "{frame}");
    assert!(frame.contains("0.325│"), "{frame}");
    assert!(line(&frame, "loss · lr · acc").contains("] next"), "{frame}");
    assert!(frame.contains("goodput"), "the facts are still there: {frame}");
    assert!(line(&frame, "output").contains("──"), "so is the output: {frame}");
    assert!(!frame.contains("loss █"), "the loss is drawn once: {frame}");
    let marks = line(&frame, "█████▲");
    assert!(marks.contains("▲█") && marks.contains('●'), "attempts and how each ended: {frame}");
    assert_eq!(
        foot(&mut screen, BESIDE),
        "0.325 at step 11900 · lowest 0.325 at 11900 · highest 3.3 at 0"
    );
}

#[test]
fn a_small_screen_shows_it_when_it_is_asked_for() {
    let mut screen = wide();
    let before = screen.frame(SMALL);
    assert!(before.contains("loss █") && !before.contains("step 0"), "{before}");
    assert!(before.lines().last().unwrap().contains("] chart"), "the bar offers it: {before}");
    screen.press("]");
    let after = screen.frame(SMALL);
    assert!(after.contains("step 0") && after.contains("lr"), "the loss first: {after}");
    screen.press("]");
    assert!(screen.frame(SMALL).contains("step 4500"), "then what comes next");
    assert!(line(&after, "● running · ").contains("epoch"), "what it does stays: {after}");
}

#[test]
fn every_metric_has_its_turn_and_stays_when_another_run_is_looked_at() {
    let mut screen = wide();
    screen.frame(BESIDE);
    let feet = ["]", "]", "]", "["].map(|key| {
        screen.press(key);
        foot(&mut screen, BESIDE)
    });
    assert!(feet[0].starts_with("0.001 at step 11900"), "the learning rate: {feet:?}");
    assert!(feet[1].starts_with("0.9917 at step 11900"), "the accuracy: {feet:?}");
    assert!(feet[2].starts_with("0.325 at step 11900"), "the loss again: {feet:?}");
    assert_eq!(feet[3], feet[1], "and back");
    let mut other = Curves::default();
    let at = |step: f64| Measured { step, loss: 1.0, others: vec![(Metric::from("acc"), 0.25)] };
    other.append(JobNumber(8), &[at(0.0), at(4.0)]);
    answer(&mut screen, Ask::Curves(samples::id(8)), Answer::Curves(other));
    screen.press("left +");
    screen.model.list.selected = Some(samples::id(7));
    screen.press("j");
    let seen = screen.model.list.selected.clone();
    assert_eq!(seen, Some(samples::id(8)), "the next row");
    assert_eq!(foot(&mut screen, BESIDE), "0.25 at step 4 · lowest 0.25 at 0 · highest 0.25 at 0");
    assert!(line(&screen.frame(BESIDE), "step 0").contains('4'), "from its begin to its end");
}

#[test]
fn a_cursor_tells_a_value_and_a_closer_look_is_around_it() {
    let mut screen = wide();
    screen.frame(BESIDE);
    screen.press("left left left left left left left left");
    let there = foot(&mut screen, BESIDE);
    let step: f64 =
        there.split("step ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((10_000.0..11_000.0).contains(&step), "{there}");
    assert!(screen.frame(BESIDE).matches('│').count() > 2 * 33, "the cursor is a line");
    screen.press("+ +");
    let frame = screen.frame(BESIDE);
    let scale = frame.lines().find(|line| line.contains("step ") && !line.contains(" · "));
    let scale = scale.unwrap();
    let ends: Vec<f64> = scale
        .split("step ")
        .nth(1)
        .unwrap()
        .split(|c: char| !c.is_ascii_digit() && c != '.')
        .filter_map(|word| word.parse().ok())
        .collect();
    assert!(ends[0] < step && *ends.last().unwrap() > step, "{scale} around {step}");
    assert!(ends.last().unwrap() - ends[0] < 11_900.0 / 3.0, "{scale}");
    screen.press("- -");
    assert!(line(&screen.frame(BESIDE), "step 0").contains("11900"));
    screen.press("esc enter");
    assert!(foot(&mut screen, BESIDE).starts_with("0.325 at step 11900"), "opened anew");
}

#[test]
fn where_nothing_was_measured_there_is_neither_chart_nor_key() {
    let mut screen = wide();
    answer(&mut screen, Ask::Curves(samples::id(7)), Answer::Curves(Curves::default()));
    let before = screen.frame(BESIDE);
    assert!(!before.contains("] chart") && !before.contains("step 0 "), "{before}");
    screen.press("] [ + - left right");
    assert_eq!(screen.frame(BESIDE), before);
    let mut one = Curves::default();
    one.append(JobNumber(7), &[Measured { step: 3.0, loss: 1.0, others: Vec::new() }]);
    answer(&mut screen, Ask::Curves(samples::id(7)), Answer::Curves(one));
    assert_eq!(screen.frame(BESIDE), before, "one value is no curve");
}

#[test]
fn no_values_and_no_size_break_it() {
    let rows = [
        vec![(0.0, 1.0), (1.0, 1.0)],
        vec![(0.0, f64::MAX), (1e18, f64::MIN), (2e18, 0.0)],
        vec![(0.5, 1e-300), (0.500_000_1, -1e-300)],
        (0..500).map(|n| (f64::from(n), f64::from(n % 7))).collect(),
    ];
    for points in rows {
        let mut curves = Curves::default();
        let at = |(step, loss): &(f64, f64)| Measured {
            step: *step,
            loss: *loss,
            others: vec![(
                Metric::from("a/very/long.name-of_a@metric/that-is-forty-columns"),
                *loss,
            )],
        };
        let all: Vec<_> = points.iter().map(at).collect();
        curves.append(JobNumber(7), &all);
        let mut screen = wide();
        answer(&mut screen, Ask::Curves(samples::id(7)), Answer::Curves(curves));
        for keys in ["]", "left + +", "right right -", "[ + + + + + + + + + + + + + + +"] {
            screen.press(keys);
            for size in [(20, 5), (60, 16), (80, 24), (104, 12), (110, 14), (300, 80)] {
                screen.frame(size);
            }
        }
    }
}

#[test]
fn plain_characters_are_enough() {
    let mut screen = wide();
    screen.model.setup.ascii = true;
    screen.press("] left");
    let frame = screen.frame(BESIDE);
    assert!(frame.is_ascii() || frame.chars().filter(|c| !c.is_ascii()).count() == 0, "{frame}");
    assert!(frame.contains('\''), "dots have become signs: {frame}");
}
