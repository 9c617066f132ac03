//! The help: opened over whatever is there, read, searched.

use tui_input::Input;

use super::moved;
use crate::keys::Command;
use crate::model::{Help, Model};
use crate::view::help;

/// Opens it about what the person is doing.
pub(super) fn open(model: &mut Model) {
    let about = model.context_without_help();
    model.help = Some(Help { about, top: 0, search: Input::default(), typing: false });
}

pub(super) fn command(model: &mut Model, command: Command) {
    // Taken off while it is handled; put back unless it is left.
    let Some(mut shown) = model.help.take() else { return };
    let searched = !shown.search.value().is_empty();
    match command {
        Command::Search => shown.typing = true,
        Command::Accept => shown.typing = false,
        Command::Back if shown.typing || searched => {
            (shown.search, shown.typing, shown.top) = (Input::default(), false, 0);
        }
        Command::Back => return,
        _ => {
            let (last, screenful) = help::extent(model, &shown);
            shown.top = moved(command, shown.top, last, screenful).unwrap_or(shown.top).min(last);
        }
    }
    model.help = Some(shown);
}
