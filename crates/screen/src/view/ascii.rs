//! ASCII mode: after a frame is drawn, every other character gives way to one that any terminal has.
//!
//! Done at the end and in one place, so that no panel can forget it.

use ratatui::buffer::Buffer;

use tpu_core::text;

/// Our own drawing characters and what stands for them. No two statuses share a sign, nor does one share it with the
/// pointer or the mark of a row; what parts numbers is no minus.
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
    ("▒", ":"),
    ("▓", "#"),
    ("▁", "_"),
    ("▂", "_"),
    ("▃", "-"),
    ("▄", "-"),
    ("▅", "="),
    ("▆", "="),
    ("▇", "#"),
    ("◆", "x"),
    ("≠", "!"),
    ("×", "x"),
    ("■", "#"),
    ("●", "*"),
    ("◌", "."),
    ("◇", ":"),
    ("✓", "v"),
    ("▲", "!"),
    ("○", "o"),
    ("↻", "@"),
    ("↺", "&"),
    ("▸", ">"),
    ("✚", "x"),
    ("·", "."),
    ("…", "~"),
    ("→", ">"),
    ("←", "<"),
    ("◂", "<"),
    ("↑", "^"),
    ("↓", "v"),
    ("▼", "v"),
    ("–", "-"),
    ("°", "o"),
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
            let known = known.map(|(_, ascii)| *ascii).or_else(|| braille(cell.symbol()));
            debt = if known.is_some() { 0 } else { text::width(cell.symbol()).saturating_sub(1) };
            cell.set_symbol(known.unwrap_or("?"));
        }
    }
}

/// What stands for a cell of braille dots: how high its highest dot is.
fn braille(symbol: &str) -> Option<&'static str> {
    let dots = u32::from(symbol.chars().next()?).checked_sub(0x2800).filter(|dots| *dots < 256)?;
    Some(match dots {
        0 => " ",
        dots if dots & 0x09 != 0 => "'",
        dots if dots & 0x36 != 0 => "-",
        _ => ".",
    })
}
