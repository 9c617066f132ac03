//! What stands at a place of the screen, read off the same layout that is drawn.

use ratatui::layout::{Position, Rect};

use super::layout::Layout;
use super::{bar, columns, confirm, tabs};
use crate::keys::Command;
use crate::model::{Model, Overlay};
use crate::rows::Sort;
use crate::tabs::Tab;

/// Something that can be clicked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spot {
    /// A tab.
    Tab(Tab),
    /// A row of the list, counted over all rows.
    Row(usize),
    /// The head of a column.
    Head(Sort),
    /// A row of another tab, counted from the first one on the screen.
    BoardRow(usize),
    /// The border between list and detail.
    Splitter,
    /// A button: to confirm, or not.
    Button(bool),
    /// A key in the bottom line.
    Key(Command),
    /// The selected job beside the list, or in full width.
    Detail,
    /// Nothing of the above, and what lies on top is not to be scrolled from there.
    Outside,
}

/// What stands there, if it can be clicked.
pub fn at(model: &Model, x: u16, y: u16) -> Option<Spot> {
    if model.help.is_some() {
        return None;
    }
    let layout = Layout::of(model);
    let place = Position { x, y };
    match &model.overlay {
        Some(Overlay::Confirm(question)) => {
            return Some(
                confirm::button_at(model, question, place).map_or(Spot::Outside, Spot::Button),
            );
        }
        Some(Overlay::Page(_) | Overlay::Choice(_) | Overlay::Columns(_) | Overlay::Form(_)) => {
            return None;
        }
        _ => {}
    }
    if layout.bar.contains(place) {
        return bar::key_at(model, layout.bar, x).map(Spot::Key);
    }
    if let Some(area) = layout.titled().filter(|area| y == area.y && area.contains(place))
        && let Some(tab) = tabs::at(model, x.saturating_sub(area.x + 1))
    {
        return Some(Spot::Tab(tab));
    }
    if is_border(&layout, place) {
        return Some(Spot::Splitter);
    }
    if let Some(area) = layout.list.filter(|area| inside(*area).contains(place)) {
        let inner = inside(area);
        if y == inner.y {
            return head(model, inner, x).map(Spot::Head);
        }
        let at = model.list.top + usize::from(y - inner.y - 1);
        return (at < model.list.rows.len()).then_some(Spot::Row(at));
    }
    if layout.detail.is_some_and(|area| inside(area).contains(place)) {
        return Some(Spot::Detail);
    }
    if layout.about.is_some_and(|area| inside(area).contains(place)) {
        return Some(Spot::Outside);
    }
    if let Some(area) = layout.board.filter(|area| inside(*area).contains(place)) {
        let inner = inside(area);
        return (y > inner.y).then(|| Spot::BoardRow(usize::from(y - inner.y - 1)));
    }
    None
}

/// An area without its frame.
fn inside(area: Rect) -> Rect {
    Rect {
        x: area.x + 1,
        y: area.y + 1,
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(2),
    }
}

fn is_border(layout: &Layout, place: Position) -> bool {
    let (Some(list), Some(detail)) = (layout.list, layout.detail) else { return false };
    if layout.beside {
        layout.body.contains(place) && (place.x + 1 == detail.x || place.x == detail.x)
    } else {
        layout.body.contains(place) && (place.y + 1 == list.bottom() || place.y == detail.y)
    }
}

/// The list's share in percent when the border stands here; `None` where there is no border to move.
pub fn split(model: &Model, x: u16, y: u16) -> Option<u16> {
    const LEAST: u32 = 20;
    const MOST: u32 = 80;
    let layout = Layout::of(model);
    layout.list.and(layout.detail)?;
    let body = layout.body;
    let (at, of) = if layout.beside {
        (x.saturating_sub(body.x), body.width)
    } else {
        (y.saturating_sub(body.y), body.height)
    };
    let share = (u32::from(at) + 1) * 100 / u32::from(of).max(1);
    u16::try_from(share.clamp(LEAST, MOST)).ok()
}

/// The column whose head stands there.
fn head(model: &Model, inner: Rect, x: u16) -> Option<Sort> {
    // Selection and mark stand before the first column.
    let mut left = usize::from(inner.x) + 2;
    for (column, width) in columns::fit(model, usize::from(inner.width).saturating_sub(2)) {
        if (left..=left + width).contains(&usize::from(x)) {
            return columns::sort_of(column.id);
        }
        left += width + 1;
    }
    None
}
