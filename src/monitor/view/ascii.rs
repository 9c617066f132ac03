//! ASCII mode: after a frame is drawn, every other character gives way to one that any terminal has.
//!
//! Done at the end and in one place, so that no panel can forget it.

use ratatui::buffer::Buffer;

use crate::text;

/// Our own drawing characters and what stands for them.
const TABLE: &[(&str, &str)] = &[
    ("─", "-"),
    ("│", "|"),
    ("┌", "+"),
    ("┐", "+"),
    ("└", "+"),
    ("┘", "+"),
    ("├", "+"),
    ("┤", "+"),
    ("█", "#"),
    ("▉", "#"),
    ("▊", "#"),
    ("▋", "#"),
    ("▌", "="),
    ("▍", "-"),
    ("▎", "-"),
    ("▏", " "),
    ("░", "."),
    ("●", "*"),
    ("◌", "."),
    ("✓", "+"),
    ("▲", "!"),
    ("○", "o"),
    ("↻", ">"),
    ("↺", "<"),
    ("▸", ">"),
    ("✚", "*"),
    ("·", "-"),
    ("…", "~"),
    ("→", ">"),
    ("←", "<"),
    ("↑", "^"),
    ("↓", "v"),
    ("▼", "v"),
    ("–", "-"),
    ("“", "\""),
    ("”", "\""),
];

/// Replaces what is no ASCII. Wide characters become as many `?` as they take columns.
pub(super) fn replace(buffer: &mut Buffer) {
    let mut debt = 0;
    for cell in &mut buffer.content {
        if debt > 0 {
            debt -= 1;
            cell.set_symbol("?");
        } else if !cell.symbol().is_ascii() {
            let known = TABLE.iter().find(|(symbol, _)| *symbol == cell.symbol());
            debt = if known.is_some() { 0 } else { text::width(cell.symbol()).saturating_sub(1) };
            cell.set_symbol(known.map_or("?", |(_, ascii)| ascii));
        }
    }
}
