//! Where everything stands. A value computed from the model, used for drawing and by `update` (how many
//! rows is a page?), so that both always mean the same cells.
//!
//! ```text
//!  wide (≥ 110)                    tall (≥ 20 rows)       small
//! ┌ header ───────────────┐       ┌ header ───┐         ┌ header ───┐
//! │ banner, if any        │       │ list      │         │ list, or  │
//! │ list       │ detail   │       │ detail    │         │ detail    │
//! │ evidence (1–2 lines)  │       │ evidence  │         │ evidence  │
//! └ keys, or a prompt ────┘       └ keys ─────┘         └ keys ─────┘
//! ```

use ratatui::layout::{Constraint, Rect};

use super::{banner, columns, evidence};
use crate::monitor::model::Model;

/// From this width on, list and detail stand side by side.
const SIDE_BY_SIDE: u16 = 110;
/// From this height on, a narrow screen shows the detail below the list.
const STACKED: u16 = 20;

/// The areas of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The line at the top.
    pub header: Rect,
    /// What is wrong at large; no rows when nothing is.
    pub banner: Rect,
    /// Everything between the lines at the top and those at the bottom.
    pub body: Rect,
    /// The list with its frame.
    pub list: Option<Rect>,
    /// The detail with its frame.
    pub detail: Option<Rect>,
    /// The log with its frame, when it is open.
    pub log: Option<Rect>,
    /// The evidence line; no rows when there is nothing to say.
    pub evidence: Rect,
    /// Keys, or what is being typed.
    pub bar: Rect,
}

impl Layout {
    /// The areas for a model.
    pub fn of(model: &Model) -> Self {
        let (width, height) = model.size;
        let screen = Rect::new(0, 0, width, height);
        let evidence_rows = evidence::height(model, width, height >= STACKED);
        let banner_rows = banner::height(model, width);
        let rows = ratatui::layout::Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(banner_rows),
            Constraint::Fill(1),
            Constraint::Length(evidence_rows),
            Constraint::Length(1),
        ]);
        let [header, banner, body, evidence, bar] = rows.areas(screen);
        let mut layout =
            Self { header, banner, body, list: None, detail: None, log: None, evidence, bar };
        if model.log.is_some() {
            layout.log = Some(body);
        } else if model.jobs().is_empty() {
            layout.list = Some(body);
        } else if model.wide {
            layout.detail = Some(body);
        } else if width >= SIDE_BY_SIDE {
            // The list takes no more than its columns can use: what there is to spare shows output.
            let useful = columns::useful_width(model) + 4;
            let list = useful.min(usize::from(width) * 58 / 100).max(40);
            let list = u16::try_from(list).unwrap_or(width);
            let split = [Constraint::Length(list), Constraint::Fill(1)];
            let [left, right] = ratatui::layout::Layout::horizontal(split).areas(body);
            (layout.list, layout.detail) = (Some(left), Some(right));
        } else if height >= STACKED {
            // The list takes what it needs, at most half.
            let needed = u16::try_from(model.list.rows.len()).unwrap_or(u16::MAX).saturating_add(3);
            let list = needed.clamp(5, (body.height / 2).max(5));
            let split = [Constraint::Length(list), Constraint::Fill(1)];
            let [upper, lower] = ratatui::layout::Layout::vertical(split).areas(body);
            (layout.list, layout.detail) = (Some(upper), Some(lower));
        } else {
            layout.list = Some(body);
        }
        layout
    }

    /// Jobs that the list shows at once: its height without frame and column heads.
    pub fn list_rows(&self) -> usize {
        usize::from(self.list.map_or(0, |area| area.height.saturating_sub(3)))
    }

    /// Lines that the log shows at once.
    pub fn log_rows(&self) -> usize {
        usize::from(self.log.map_or(0, |area| area.height.saturating_sub(2)))
    }
}
