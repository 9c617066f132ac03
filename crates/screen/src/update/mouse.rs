//! The mouse: what it hits is read off the same layout that is drawn.

use super::{board, list};
use crate::keys::{Command, Context};
use crate::message::{Effect, Mouse, MouseDid};
use crate::model::Model;
use crate::view::hit::{self, Spot};

/// Rows by which one notch of the wheel moves.
const NOTCH: usize = 3;

pub(super) fn did(model: &mut Model, mouse: Mouse) -> Vec<Effect> {
    match mouse.what {
        MouseDid::Release => {
            model.dragging = false;
            Vec::new()
        }
        MouseDid::Drag => {
            if model.dragging {
                model.split = hit::split(model, mouse.x, mouse.y).or(model.split);
            }
            Vec::new()
        }
        MouseDid::Wheel(notches) => wheel(model, notches, hit::at(model, mouse.x, mouse.y)),
        MouseDid::Press => press(model, hit::at(model, mouse.x, mouse.y)),
    }
}

fn press(model: &mut Model, spot: Option<Spot>) -> Vec<Effect> {
    match spot {
        Some(Spot::Tab(tab)) => board::go(model, tab),
        Some(Spot::Row(at)) => {
            let Some(row) = model.list.rows.get(at) else { return Vec::new() };
            if let Some(name) = row.head.clone() {
                list::turn_head(model, name);
                return Vec::new();
            }
            // A second click on the same job opens it.
            if model.list.selected.as_ref() == Some(&row.id) {
                return super::command_of(model, Command::Details);
            }
            model.list.selected = Some(row.id.clone());
        }
        Some(Spot::Head(sort)) => list::sort_or_reverse(model, sort),
        Some(Spot::BoardRow(below)) => {
            if board::choose_shown(model, below) {
                return board::open(model);
            }
        }
        Some(Spot::Splitter) => model.dragging = true,
        Some(Spot::Button(yes)) => {
            return super::command_of(model, if yes { Command::Yes } else { Command::No });
        }
        Some(Spot::Key(command)) => return super::command_of(model, command),
        Some(Spot::Detail | Spot::Outside) | None => {}
    }
    Vec::new()
}

/// The wheel scrolls what the keys would. Over a job beside the list, or in full width, it scrolls back in what that one has
/// printed, and never chooses another job.
fn wheel(model: &mut Model, notches: i32, spot: Option<Spot>) -> Vec<Effect> {
    let typing = matches!(
        model.context(),
        Context::Tag
            | Context::Search
            | Context::LogFilter
            | Context::Filter
            | Context::CommandLine
    );
    if typing || spot == Some(Spot::Outside) {
        return Vec::new();
    }
    if spot == Some(Spot::Detail) {
        let back = notches < 0;
        return if back { super::command_of(model, Command::Log) } else { Vec::new() };
    }
    let command = if notches > 0 { Command::Down } else { Command::Up };
    let rows = usize::try_from(notches.unsigned_abs()).unwrap_or(0) * NOTCH;
    let mut effects = Vec::new();
    for _ in 0..rows.min(1_000) {
        effects.extend(super::command_of(model, command));
    }
    effects
}
