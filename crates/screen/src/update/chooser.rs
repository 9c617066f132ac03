//! Choosing the columns of the list. What is chosen is shown at once, and kept as a setting.

use super::{act, note};
use crate::keys::Command;
use crate::message::{Act, Effect};
use crate::model::{ColumnChoice, Model, Overlay};
use crate::view::chooser;
use crate::view::columns::TABLE;

/// The setting that keeps the columns.
const SETTING: &str = "monitor_columns";

/// Opens the choice, at the first column that nobody has to have.
pub(super) fn open(model: &mut Model) {
    let before = model.setup.columns.chosen.clone();
    model.overlay = Some(Overlay::Columns(ColumnChoice { at: 0, before }));
}

pub(super) fn command(model: &mut Model, command: Command) -> Vec<Effect> {
    // Taken off while it is handled; put back unless it is done.
    let Some(Overlay::Columns(mut choice)) = model.overlay.take() else { return Vec::new() };
    let count = TABLE.len().max(1);
    match command {
        Command::Down => choice.at = (choice.at + 1) % count,
        Command::Up => choice.at = (choice.at + count - 1) % count,
        Command::Toggle => toggle(model, choice.at),
        Command::ByWidth => model.setup.columns.chosen = None,
        Command::Accept => return keep(model, &choice),
        _ => {
            model.setup.columns.chosen = choice.before;
            return Vec::new();
        }
    }
    model.overlay = Some(Overlay::Columns(choice));
    Vec::new()
}

/// Shows a column, or does not. Whoever changes one has chosen them all, as they are.
fn toggle(model: &mut Model, at: usize) {
    let Some(column) = TABLE.get(at) else { return };
    let mut chosen = chooser::marked(model);
    // Without a column there would be no list.
    if chosen.remove(column.id) {
        if chosen.is_empty() {
            return;
        }
    } else {
        chosen.insert(column.id);
    }
    model.setup.columns.chosen = Some(chosen);
}

/// Keeps what is chosen for later sessions of this user's screen.
fn keep(model: &mut Model, choice: &ColumnChoice) -> Vec<Effect> {
    let chosen = &model.setup.columns.chosen;
    if *chosen == choice.before {
        return Vec::new();
    }
    let words: Vec<String> = match chosen {
        Some(chosen) => {
            let ids: Vec<&str> = chosen.iter().copied().collect();
            ["set-settings", SETTING, &ids.join(" ")].map(str::to_owned).into()
        }
        None => ["reset-settings", SETTING].map(str::to_owned).into(),
    };
    let Some(user) = model.scope.whose.only().or(model.home.only()).cloned() else {
        let text = "The columns stay until you leave; one user's screen keeps them.";
        note(model, text.to_owned());
        return Vec::new();
    };
    let words = words.into_iter().chain([user.to_string()]).collect();
    act(model, Act::Command(words))
}
