//! Ten scenes in colours and in ASCII. The text is the same in all themes, so it stands once; a map beside it
//! says with one letter for each cell which style is where, and a legend what that is on dark, on light, in
//! sixteen colours and without colours.

use std::collections::BTreeMap;

use ratatui::buffer::{Buffer, Cell};
use tpu_core::model::ids::UserName;
use tpu_screen::message::{Answer, Ask, Choices, Message, Proposal};
use tpu_screen::pane::PaneText;
use tpu_screen::theme::{BUILT_IN, Theme};

use crate::common::boards::{answer, screen};
use crate::common::samples;
use crate::common::screen::{SIZES, Screen, text_of};
use crate::common::usage;

/// The themes that differ in kind: full colours on dark and on light, the terminal's own, none.
const THEMES: [&str; 4] = ["dark", "light", "ansi16", "plain"];
/// The smallest screen on which everything has its place.
const SIZE: (u16, u16) = (80, 24);

/// What is shown, and the keys that lead there.
pub(super) const SCENES: [(&str, &str); 10] = [
    ("jobs", "j j"),
    ("targets", "2 j"),
    ("events", "4"),
    ("plan", "5 j"),
    ("usage", "6"),
    ("detail", "j j j enter"),
    ("log", "j j l"),
    ("form", "j j n ctrl-u v down"),
    ("confirm", "j j space space space x"),
    ("help", "j j ?"),
];

pub(super) fn scene(name: &str, keys: &str) -> Screen {
    let mut screen = screen();
    screen.send(Message::Resize(SIZE.0, SIZE.1));
    usage::press(&mut screen, keys);
    let output = "\u{1b}[36m[worker 0]\u{1b}[0m step 11900 loss 0.418\n\
                  \u{1b}[36m[worker 1]\u{1b}[0m \u{1b}[32m検証 ✅\u{1b}[0m saving checkpoint 12000 🚀\n";
    let pane = PaneText::from_capture(output.as_bytes());
    match name {
        "log" => {
            screen.send(Message::Log(samples::id(7), Ok(Some(pane))));
        }
        "jobs" => {
            screen.send(Message::Pane(samples::id(7), Ok(Some(pane))));
        }
        "form" => {
            let dirs = vec![Proposal {
                value: "3".to_owned(),
                note: "/home/alice/画像認識の実験".to_owned(),
            }];
            let choices = Choices { dirs, ..Choices::default() };
            answer(&mut screen, Ask::Choices(UserName::from("alice")), Answer::Choices(choices));
            screen.press("down");
        }
        _ => {}
    }
    screen
}

fn in_theme(screen: &mut Screen, theme: &str) -> Buffer {
    screen.model.setup.theme = Theme::named(theme).unwrap();
    screen.buffer(SIZE)
}

/// The style of a cell in words; of blanks only what is seen of them.
fn style(cell: &Cell) -> String {
    let modifiers: Vec<_> = cell.modifier.iter_names().map(|(name, _)| name).collect();
    let words = format!("{} on {} {}", cell.fg, cell.bg, modifiers.join(" ").to_lowercase());
    words.trim_end().to_owned()
}

/// One letter for each style of the screen, and what the letters mean. The most frequent style is a dot.
fn map(buffers: &[Buffer]) -> String {
    let first = &buffers[0];
    let width = usize::from(first.area.width);
    let styles: Vec<Vec<String>> = (0..first.content.len())
        .map(|at| buffers.iter().map(|buffer| style(&buffer.content[at])).collect())
        .collect();
    let mut often: BTreeMap<&Vec<String>, usize> = BTreeMap::new();
    for style in &styles {
        *often.entry(style).or_default() += 1;
    }
    let base = often.iter().max_by_key(|(_, count)| **count).map(|(style, _)| *style).unwrap();
    let mut letters: Vec<&Vec<String>> = vec![base];
    let mut map = String::new();
    for (y, row) in styles.chunks(width).enumerate() {
        let mut line = String::new();
        for (x, style) in row.iter().enumerate() {
            // The second half of a wide character is never drawn.
            let at = y * width + x;
            if x > 0 && tpu_core::text::width(first.content[at - 1].symbol()) > 1 {
                line.push(line.chars().last().unwrap());
                continue;
            }
            let known = letters.iter().position(|known| *known == style);
            let at = known.unwrap_or_else(|| {
                letters.push(style);
                letters.len() - 1
            });
            line.push(letter(at));
        }
        map.push_str(line.trim_end_matches('.'));
        map.push('\n');
    }
    for (at, style) in letters.iter().enumerate() {
        map.push_str(&format!("{}  {}\n", letter(at), style.join(" | ")));
    }
    map
}

fn letter(at: usize) -> char {
    const LETTERS: &str = ".abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    LETTERS.chars().nth(at).expect("a screen has fewer styles")
}

/// One file for each kind of screen.
#[test]
fn themes() {
    for (name, keys) in SCENES {
        let mut screen = scene(name, keys);
        let buffers = THEMES.map(|theme| in_theme(&mut screen, theme));
        let text = text_of(&buffers[0]);
        for (theme, _) in BUILT_IN {
            let other = text_of(&in_theme(&mut screen, theme));
            assert_eq!(other, text, "{name}: {theme} changes more than colours");
        }
        let head = THEMES.join(" | ");
        let all = format!("{text}\n{head}\n{}", map(&buffers));
        insta::assert_snapshot!(format!("theme_{name}"), all);
    }
}

/// The scenes with nothing but ASCII, at every size; what is drawn there takes as much room as elsewhere.
#[test]
fn ascii() {
    let mut all = String::new();
    for (name, keys) in SCENES {
        let mut screen = scene(name, keys);
        screen.model.setup.ascii = true;
        for size in SIZES {
            let frame = screen.frame(size);
            assert!(frame.is_ascii(), "{name}:\n{frame}");
        }
        let frame = screen.frame(SIZE);
        all.push_str(&format!("-- {name}\n{frame}"));
    }
    insta::assert_snapshot!(all);
}
