//! The screen in a file, in the format of asciinema (version 2): a header, then one line for each piece of output with the
//! seconds since the beginning. Any player of that format shows it; none is needed to write it.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use serde::Serialize;

use super::backend::Backend;
use super::model::Model;
use super::terminal::Canvas;
use super::view::view;

/// How the screen is written down.
pub struct Recording {
    /// Columns and rows.
    pub size: (u16, u16),
    /// Where it goes.
    pub out: Box<dyn Write + Send>,
    /// Its title, for the player.
    pub title: String,
    /// Set when it is to end.
    pub over: Arc<AtomicBool>,
}

/// The first line of the file.
#[derive(Serialize)]
struct CastHeader<'a> {
    version: u8,
    width: u16,
    height: u16,
    timestamp: i64,
    title: &'a str,
}

/// Makes lines of the file out of what is drawn: one for each flush, since then whole frames have been written.
struct CastWriter {
    out: Box<dyn Write + Send>,
    backend: Arc<dyn Backend>,
    begun: Duration,
    piece: Vec<u8>,
}

impl CastWriter {
    /// Writes the header; the time runs from here.
    fn begin(backend: Arc<dyn Backend>, recording: Recording) -> io::Result<Self> {
        let Recording { size: (width, height), mut out, title, .. } = recording;
        let timestamp = backend.now().as_second();
        let header = CastHeader { version: 2, width, height, timestamp, title: &title };
        line(&mut *out, &header)?;
        let begun = backend.monotonic();
        Ok(Self { out, backend, begun, piece: Vec::new() })
    }
}

impl Write for CastWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let seconds = self.backend.monotonic().saturating_sub(self.begun).as_secs_f64();
        // A player needs no more, and what is read by people is shorter.
        let seconds = (seconds * 1000.0).round() / 1000.0;
        let text = String::from_utf8_lossy(&self.piece);
        line(&mut *self.out, &(seconds, "o", &*text))?;
        self.piece.clear();
        self.out.flush()
    }
}

/// Writes a value as a line of JSON.
fn line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// The screen, drawn into the file.
pub(super) struct Film {
    terminal: Terminal<CrosstermBackend<CastWriter>>,
    size: (u16, u16),
}

impl Film {
    /// Begins the file with an empty screen.
    pub(super) fn begin(backend: Arc<dyn Backend>, recording: Recording) -> io::Result<Self> {
        let size = recording.size;
        let mut writer = CastWriter::begin(backend, recording)?;
        writer.write_all(b"\x1b[?25l\x1b[2J\x1b[H")?;
        writer.flush()?;
        // A fixed size asks no terminal: there may be none.
        let viewport = Viewport::Fixed(Rect::new(0, 0, size.0, size.1));
        let options = TerminalOptions { viewport };
        let terminal = Terminal::with_options(CrosstermBackend::new(writer), options)?;
        Ok(Self { terminal, size })
    }
}

impl Canvas for Film {
    fn size(&self) -> io::Result<(u16, u16)> {
        Ok(self.size)
    }

    fn draw(&mut self, model: &Model) -> io::Result<()> {
        self.terminal.draw(|frame| view(model, frame))?;
        Ok(())
    }

    fn leave(&mut self) {}

    fn take(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn mouse(&mut self, _taken: bool) -> io::Result<()> {
        Ok(())
    }
}
