//! Colours can be read: each role against each background on which it is drawn, by the contrast of WCAG 2.1, and cell by
//! cell what the screens really show.
//!
//! Of a theme of the terminal's own 16 colours nothing can be computed: what they are is the terminal's affair, and a
//! person who has chosen them has chosen their contrast. It is only held that such a theme has no other colours.

use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier};
use tpu_screen::message::Message;
use tpu_screen::theme::{BUILT_IN, Role, Theme};

use crate::common::screen::SIZES;

use super::looks::{SCENES, scene};

/// The themes with colours of their own: the least contrast of text, and of glyphs and lines.
const OWN_COLOURS: [(&str, f64, f64); 4] = [
    ("dark", 4.5, 3.0),
    ("light", 4.5, 3.0),
    ("colour-blind", 4.5, 3.0),
    ("high-contrast", 7.0, 7.0),
];

/// What is no text.
const LESS: [Role; 3] = [Role::Border, Role::BarDone, Role::BarTodo];

/// What stands in the line at the top beside its own text.
const IN_HEADER: [Role; 8] = [
    Role::Title,
    Role::Running,
    Role::Starting,
    Role::Error,
    Role::Unknown,
    Role::Finished,
    Role::Killed,
    Role::Warning,
];

/// Red, green and blue, from 0 to 1, of a colour that is the same on every terminal; `None` of the terminal's own 16.
fn rgb(color: Color) -> Option<[f64; 3]> {
    // The palette of xterm: a cube of six levels, then a ramp of greys.
    let level = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
    let bytes = match color {
        Color::Rgb(red, green, blue) => [red, green, blue],
        Color::Indexed(index @ 232..) => [8 + 10 * (index - 232); 3],
        Color::Indexed(index @ 16..) => {
            let n = index - 16;
            [level(n / 36), level(n / 6 % 6), level(n % 6)]
        }
        _ => return None,
    };
    Some(bytes.map(|byte| f64::from(byte) / 255.0))
}

/// Relative luminance as WCAG 2.1 defines it.
fn luminance(rgb: [f64; 3]) -> f64 {
    let [red, green, blue] =
        rgb.map(|c| if c <= 0.03928 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// Contrast ratio as WCAG 2.1 defines it, from 1 to 21; `None` where a colour is the terminal's own.
fn contrast(a: Color, b: Color) -> Option<f64> {
    let (a, b) = (luminance(rgb(a)?), luminance(rgb(b)?));
    Some((a.max(b) + 0.05) / (a.min(b) + 0.05))
}

#[test]
fn the_formula_is_that_of_wcag() {
    let of = |a: u32, b: u32| {
        let color = |rgb: u32| {
            let [_, red, green, blue] = rgb.to_be_bytes();
            Color::Rgb(red, green, blue)
        };
        format!("{:.2}", contrast(color(a), color(b)).unwrap())
    };
    // As the checkers of others say.
    assert_eq!(of(0x00_0000, 0xff_ffff), "21.00");
    assert_eq!(of(0x77_7777, 0xff_ffff), "4.48");
    assert_eq!(of(0xff_0000, 0xff_ffff), "4.00");
    assert_eq!(of(0x00_00ff, 0x00_0000), "2.44");
    assert_eq!(contrast(Color::Indexed(231), Color::Rgb(255, 255, 255)), Some(1.0));
    assert_eq!(contrast(Color::Cyan, Color::Indexed(16)), None);
    assert_eq!(contrast(Color::Indexed(15), Color::Indexed(16)), None);
}

#[test]
fn each_role_stands_out_from_each_background_it_is_drawn_on() {
    let mut faint = Vec::new();
    for (name, text, less) in OWN_COLOURS {
        let theme = Theme::named(name).unwrap();
        let base = theme.style(Role::Base);
        for role in Role::ALL {
            let style = theme.style(role);
            assert!(
                !style.add_modifier.intersects(Modifier::DIM | Modifier::REVERSED),
                "{name}: how {} looks is up to the terminal",
                role.as_str()
            );
            let fg = style.fg.or(base.fg).unwrap();
            // What has a background of its own is drawn on nothing else.
            let mut grounds = vec![style.bg.or(base.bg).unwrap()];
            if style.bg.is_none() {
                grounds.extend(theme.style(Role::Dialog).bg);
                grounds.extend(
                    IN_HEADER.contains(&role).then(|| theme.style(Role::Header).bg).flatten(),
                );
            }
            let least = if LESS.contains(&role) { less } else { text };
            for bg in grounds {
                let got = contrast(fg, bg).unwrap();
                if got < least {
                    faint.push(format!("{name}: {} on {bg}: {got:.2} of {least}", role.as_str()));
                }
            }
        }
    }
    assert!(faint.is_empty(), "{}", faint.join("\n"));
}

/// Whether a cell shows a letter, a digit or a mark of a sentence, and no glyph or line.
fn is_text(cell: &Cell) -> bool {
    cell.symbol().chars().any(|c| c.is_alphanumeric() || c.is_ascii_punctuation())
}

#[test]
fn every_cell_of_every_screen_stands_out() {
    let more =
        [("columns", "C"), ("rule", "j j j u"), ("filter", "/ i"), ("marked", "space j space")];
    let mut faint = std::collections::BTreeSet::new();
    let mut seen = 0;
    for (scene_name, keys) in SCENES.into_iter().chain(more) {
        let mut screen = scene(scene_name, keys);
        for (name, text, less) in OWN_COLOURS {
            let theme = Theme::named(name).unwrap();
            let lesser = LESS.map(|role| theme.style(role).fg);
            screen.model.setup.theme = theme;
            for size in SIZES {
                screen.send(Message::Resize(size.0, size.1));
                for cell in &screen.buffer(size).content {
                    // Of what a job has coloured itself nothing is known here.
                    let Some(got) = contrast(cell.fg, cell.bg).filter(|_| cell.symbol() != " ")
                    else {
                        continue;
                    };
                    seen += 1;
                    let is_less = !is_text(cell) || lesser.contains(&Some(cell.fg));
                    let least = if is_less { less } else { text };
                    if got < least {
                        let (fg, bg) = (cell.fg, cell.bg);
                        faint.insert(format!(
                            "{name}, {scene_name}: {fg} on {bg}: {got:.2} of {least}"
                        ));
                    }
                }
            }
        }
    }
    assert!(seen > 100_000, "only {seen} cells were looked at");
    assert!(faint.is_empty(), "{}", faint.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_theme_of_the_terminals_own_colours_has_no_others() {
    let own = OWN_COLOURS.map(|(name, ..)| name);
    let others: Vec<&str> =
        BUILT_IN.into_iter().map(|(name, _)| name).filter(|name| !own.contains(name)).collect();
    assert_eq!(others, ["ansi16", "plain"]);
    for name in others {
        let theme = Theme::named(name).unwrap();
        for role in Role::ALL {
            let style = theme.style(role);
            for color in [style.fg, style.bg].into_iter().flatten() {
                assert_eq!(rgb(color), None, "{name}: {}", role.as_str());
            }
        }
    }
}
