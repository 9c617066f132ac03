//! The screen without a terminal: messages go in, frames come out as text.

use jiff::tz::TimeZone;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use tpu_core::model::ids::UserName;
use tpu_core::model::time::{Timestamp, Zone};
use tpu_core::model::view::{Snapshot, Whose};
use tpu_screen::keys::{Key, KeyMap};
use tpu_screen::message::{Effect, Message, Scope};
use tpu_screen::model::{Columns, Model, Setup};
use tpu_screen::theme::Theme;
use tpu_screen::typed::Commands;
use tpu_screen::update::update;
use tpu_screen::view::view;

use crate::common::samples::NOW;

/// The sizes at which every screen is drawn.
pub(crate) const SIZES: [(u16, u16); 4] = [(60, 16), (80, 24), (120, 40), (200, 50)];

/// A model at a fixed instant, and what it has asked for so far.
pub(crate) struct Screen {
    pub(crate) model: Model,
    pub(crate) effects: Vec<Effect>,
    pub(crate) now: i64,
}

impl Screen {
    /// A screen that has seen nothing yet.
    pub(crate) fn new() -> Self {
        let setup = Setup {
            theme: Theme::named("dark").unwrap(),
            ascii: false,
            columns: Columns::default(),
            zone: Zone::local(TimeZone::UTC),
            keys: KeyMap::new(&[]).unwrap(),
            refresh_s: 5,
            commands: Commands {
                known: [
                    ("kill", "Stop jobs"),
                    ("kill-window", "Close a window"),
                    ("check", "Show every job"),
                ]
                .map(|(name, about)| (name.to_owned(), about.to_owned()))
                .to_vec(),
                nature: tpu::cli::nature,
            },
        };
        let scope = Scope { whose: Whose::of([UserName::from("alice")]) };
        let model = Model::new(setup, scope, Timestamp::from_second(NOW), None);
        Self { model, effects: Vec::new(), now: NOW }
    }

    /// A screen that shows a look.
    pub(crate) fn showing(snapshot: Snapshot) -> Self {
        let mut screen = Self::new();
        screen.send(Message::Looked(Box::new(snapshot)));
        screen
    }

    /// Sends one message and returns what it asks for.
    pub(crate) fn send(&mut self, message: Message) -> Vec<Effect> {
        let effects = update(&mut self.model, message, Timestamp::from_second(self.now));
        self.effects.extend(effects.clone());
        effects
    }

    /// Presses keys by name, parted by blanks: `j j x y`.
    pub(crate) fn press(&mut self, keys: &str) -> Vec<Effect> {
        let mut effects = Vec::new();
        for key in keys.split_whitespace() {
            effects.extend(self.send(Message::Key(Key::parse(key).expect("a key"))));
        }
        effects
    }

    /// Types text.
    pub(crate) fn typed(&mut self, text: &str) {
        for c in text.chars() {
            let name = if c == ' ' { "space".to_owned() } else { c.to_string() };
            self.press(&name);
        }
    }

    /// Lets time go on.
    pub(crate) fn wait(&mut self, seconds: i64) -> Vec<Effect> {
        self.now += seconds;
        self.send(Message::Tick)
    }

    /// The frame at a size, cell by cell.
    pub(crate) fn buffer(&mut self, (width, height): (u16, u16)) -> Buffer {
        self.send(Message::Resize(width, height));
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| view(&self.model, frame)).unwrap();
        terminal.backend().buffer().clone()
    }

    /// The frame at a size, as text.
    pub(crate) fn frame(&mut self, size: (u16, u16)) -> String {
        text_of(&self.buffer(size))
    }

    /// The frames at all sizes, with a head each.
    pub(crate) fn frames(&mut self) -> String {
        let frame = |size: (u16, u16), text: &str| format!("{}×{}\n{text}", size.0, size.1);
        SIZES.map(|size| frame(size, &squeezed(&self.frame(size)))).join("\n")
    }
}

/// The text with runs of equal lines written once: large screens are mostly empty.
fn squeezed(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let run = |run: &[&str]| match run {
        [line, _, _, ..] => format!("{line} × {}\n", run.len()),
        _ => run.join("\n") + "\n",
    };
    lines.chunk_by(|a, b| a == b).map(run).collect()
}

/// The symbols of a buffer; a wide character takes two cells and is written once.
pub(crate) fn text_of(buffer: &Buffer) -> String {
    let mut text = String::new();
    for row in buffer.content.chunks(usize::from(buffer.area.width)) {
        let mut line = String::new();
        let mut hidden = 0;
        for cell in row {
            if hidden > 0 {
                hidden -= 1;
            } else {
                line.push_str(cell.symbol());
                hidden = tpu_core::text::width(cell.symbol()).saturating_sub(1);
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
