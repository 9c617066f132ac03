//! Where everything stands. A value computed from the model, used for drawing and by `update` (how many
//! rows is a page?), so that both always mean the same cells.
//!
//! ```text
//!  wide (≥ 110)                    tall (≥ 20 rows)       small
//! ┌ header ───────────────┐       ┌ header ───┐         ┌ header ───┐
//! │ banner, if any        │       │ list      │         │ list, or  │
//! │ list       │ detail   │       │ detail    │         │ detail    │
//! │ evidence (1–2 lines)  │       │ evidence  │         │ evidence  │
//! │ caption, if any       │       │ caption   │         │ caption   │
//! └ keys, or a prompt ────┘       └ keys ─────┘         └ keys ─────┘
//! ```

use ratatui::layout::{Constraint, Rect};

use super::usage::{self, Plots};
use super::{banner, columns, evidence, timeline};
use crate::model::Model;
use crate::tabs::Tab;

/// From this width on, list and detail stand side by side.
const SIDE_BY_SIDE: u16 = 110;
/// So many columns a detail has beside the list, at least.
const BESIDE: usize = 28;
/// From this height on, a narrow screen shows the detail below the list.
const STACKED: u16 = 20;

/// With so many rows to spare below a table, they show what its chosen row is about.
const ABOUT: u16 = 8;

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
    /// The timelines of the lineages, above the events.
    pub timelines: Option<Rect>,
    /// The table of a tab beside the jobs, with its frame.
    pub board: Option<Rect>,
    /// What the chosen row of a table is about, below it, where there is room to spare.
    pub about: Option<Rect>,
    /// The plots of the tab of usage.
    pub usage: Option<Plots>,
    /// Whether list and detail stand side by side.
    pub beside: bool,
    /// The evidence line; no rows when there is nothing to say.
    pub evidence: Rect,
    /// The caption; no rows when there is none.
    pub caption: Rect,
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
            Constraint::Length(u16::from(!model.caption.is_empty())),
            Constraint::Length(1),
        ]);
        let [header, banner, body, evidence, caption, bar] = rows.areas(screen);
        let mut layout = Self {
            header,
            banner,
            body,
            list: None,
            detail: None,
            log: None,
            timelines: None,
            board: None,
            about: None,
            usage: None,
            beside: false,
            evidence,
            caption,
            bar,
        };
        if model.log.is_some() {
            layout.log = Some(body);
        } else if model.tab != Tab::Jobs {
            layout.place_board(model);
        } else if model.jobs().is_empty() {
            layout.list = Some(body);
        } else if model.wide {
            layout.detail = Some(body);
        } else if width >= SIDE_BY_SIDE {
            // The list takes no more than its columns can use: what there is to spare shows output. So that none of them
            // has to give way it takes some more, and leaves what sentences need.
            let width = usize::from(width);
            let needed = (columns::named_width(model) + 4).clamp(width * 58 / 100, width - BESIDE);
            let list = (columns::useful_width(model) + 4).min(needed).max(40);
            let list = u16::try_from(list).unwrap_or(u16::MAX);
            let list = share(model, model.size.0).unwrap_or(list);
            layout.beside = true;
            let split = [Constraint::Length(list), Constraint::Fill(1)];
            let [left, right] = ratatui::layout::Layout::horizontal(split).areas(body);
            (layout.list, layout.detail) = (Some(left), Some(right));
        } else if height >= STACKED {
            // The list takes what it needs, at most half.
            let needed = u16::try_from(model.list.rows.len()).unwrap_or(u16::MAX).saturating_add(3);
            let list = needed.clamp(5, (body.height / 2).max(5));
            let most = body.height.saturating_sub(5).max(5);
            let list = share(model, body.height).map_or(list, |rows| rows.clamp(5, most));
            let split = [Constraint::Length(list), Constraint::Fill(1)];
            let [upper, lower] = ratatui::layout::Layout::vertical(split).areas(body);
            (layout.list, layout.detail) = (Some(upper), Some(lower));
        } else {
            layout.list = Some(body);
        }
        layout
    }

    /// The table; above the events the timelines, below the table of usage the plots, where there is room.
    fn place_board(&mut self, model: &Model) {
        self.board = Some(self.body);
        if model.tab == Tab::Usage {
            let plots = usage::place(model, self.body);
            (self.board, self.usage) = (plots.table, Some(plots));
        }
        let rows = u16::try_from(model.boards.choosing(model.tab).rows.len()).unwrap_or(u16::MAX);
        if matches!(model.tab, Tab::Targets | Tab::Queue | Tab::Plan) {
            // Frame and heads take three rows.
            let needed = rows.saturating_add(3);
            if rows > 0 && self.body.height >= needed.saturating_add(ABOUT) {
                let split = [Constraint::Length(needed), Constraint::Fill(1)];
                let [upper, lower] = ratatui::layout::Layout::vertical(split).areas(self.body);
                (self.board, self.about) = (Some(upper), Some(lower));
            }
        }
        if model.tab != Tab::Events {
            return;
        }
        let rows = u16::try_from(timeline::count(model)).unwrap_or(u16::MAX);
        let most = self.body.height / 3;
        // Frame and scale take three rows; less than one lineage is none.
        let height = rows.saturating_add(3).min(most);
        if rows > 0 && height >= 4 {
            let split = [Constraint::Length(height), Constraint::Fill(1)];
            let [upper, lower] = ratatui::layout::Layout::vertical(split).areas(self.body);
            (self.timelines, self.board) = (Some(upper), Some(lower));
        }
    }

    /// The panel in whose upper border the tabs stand.
    pub(crate) fn titled(&self) -> Option<Rect> {
        let plot = self.usage.and_then(|plots| plots.first());
        self.list.or(self.timelines).or(self.board).or(plot)
    }

    /// Rows that the table of a tab beside the jobs shows at once.
    pub fn board_rows(&self) -> usize {
        usize::from(self.board.map_or(0, |area| area.height.saturating_sub(3)))
    }

    /// Columns of text that the log shows at once.
    pub(crate) fn log_columns(&self) -> usize {
        usize::from(self.log.map_or(0, |area| area.width.saturating_sub(2)))
    }

    /// Jobs that the list shows at once: its height without frame and column heads.
    pub(crate) fn list_rows(&self) -> usize {
        usize::from(self.list.map_or(0, |area| area.height.saturating_sub(3)))
    }

    /// Lines that the log shows at once.
    pub(crate) fn log_rows(&self) -> usize {
        usize::from(self.log.map_or(0, |area| area.height.saturating_sub(2)))
    }
}

/// The list's share of so many columns or rows, once somebody has moved the border.
fn share(model: &Model, of: u16) -> Option<u16> {
    let share = u32::from(of) * u32::from(model.split?) / 100;
    u16::try_from(share).ok()
}
