//! Whether a command makes sense at the moment: its key is then in the bar, in the help, and does something.

use super::{help, needs, page};
use crate::keys::Needs;
use crate::model::{Model, Overlay};

/// Whether what a command needs is there.
pub fn is_offered(model: &Model, needs: Needs) -> bool {
    match needs {
        Needs::More => has_more(model),
        _ => needs::are_met(model, needs),
    }
}

/// Whether the help or the page on top has more lines than are seen at once.
fn has_more(model: &Model) -> bool {
    match (model.help.as_ref(), model.overlay.as_ref()) {
        (Some(help), _) => help::extent(model, help).0 > 0,
        (None, Some(Overlay::Page(page))) => page::extent(model, page).0 > 0,
        (None, _) => false,
    }
}
