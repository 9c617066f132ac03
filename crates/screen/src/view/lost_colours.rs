//! `NO_COLOR`: after a frame is drawn, no cell keeps a colour, those of panes included.

use ratatui::buffer::Buffer;
use ratatui::style::Color;

/// Takes every colour away; weight and inversion stay.
pub(super) fn drop(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        cell.fg = Color::Reset;
        cell.bg = Color::Reset;
        cell.underline_color = Color::Reset;
    }
}
