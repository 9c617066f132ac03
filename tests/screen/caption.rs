//! The line above the bottom line: in the most words that fit, and no row where nobody says anything.

use tpu_screen::message::Message;

use crate::common::samples;
use crate::common::screen::{SIZES, Screen};

/// Long, middle and short, of which the last fits everywhere.
fn lengths() -> Vec<String> {
    [150, 70, 20].map(|width| format!("{}!", "a→b".repeat(width / 3))).to_vec()
}

#[test]
fn the_longest_that_fits_stands_above_the_bottom_line() {
    for (columns, rows) in SIZES {
        let mut screen = Screen::showing(samples::snapshot());
        let without = screen.frame((columns, rows));
        screen.send(Message::Caption(lengths()));
        let with = screen.frame((columns, rows));
        let expected = match columns {
            200 => 0,
            80 | 120 => 1,
            _ => 2,
        };
        let above =
            |text: &str| text.lines().nth(usize::from(rows) - 2).unwrap_or("").trim().to_owned();
        assert_eq!(above(&with), lengths()[expected], "{columns} × {rows}\n{with}");
        assert_eq!(with.lines().last(), without.lines().last(), "the bottom line stays");
        screen.send(Message::Caption(Vec::new()));
        assert_eq!(screen.frame((columns, rows)), without);
    }
}

#[test]
fn what_fits_in_no_length_is_cut_and_what_comes_from_outside_does_no_harm() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.send(Message::Caption(vec![format!("\u{1b}[2J{}", "x".repeat(200))]));
    let text = screen.frame((60, 16));
    let line = text.lines().nth(14).unwrap();
    assert!(line.ends_with('…') && !line.contains('\u{1b}'), "{line}");
}
