//! Closes windows that no record claims: those that [`crate::observe::orphans`] finds.

use tpu_core::model::data::User;
use tpu_core::model::facts::{PaneFact, TmuxFact};
use tpu_core::model::ids::{JobId, UserName};
use tpu_engine::runner::window::HISTORY;
use tpu_system::tmux::TmuxError;

use super::reconcile;
use crate::base::ctx::user_of;
use crate::observe::orphans::{
    Claims, Closed, Closing, Lone, Unmarked, Which, kept, left, lone, one, unreachable,
};
use crate::{Ctx, Error};

/// Closes such panes of the windows of a user's session that no record claims; of those without our mark the
/// ones that somebody has agreed to, whatever has been opened since. Never the home window 0.
pub fn close(ctx: &Ctx, user: &UserName, which: Which, agreed: &Unmarked) -> Result<Closed, Error> {
    reconcile::reconcile(ctx)?;
    let tmux = ctx.tmux.look();
    let TmuxFact::Up { place, panes } = &tmux else { return Err(unreachable(&tmux)) };
    let data = ctx.data()?;
    let owner = user_of(&data, user)?;
    let occupants = ctx.tmux.occupants()?;
    let windows = lone(ctx, &Claims::of(&data), owner, panes);
    if which == Which::All {
        keep_session(ctx, owner, panes, &windows)?;
    }
    let mut done = Closed::default();
    for window in &windows {
        // Read again: a launch may have claimed it between.
        let data = ctx.data()?;
        let claims = Claims::of(&data);
        let mut closed = Vec::new();
        let is_meant = |pane: &&PaneFact| {
            !claims.has(pane) && (pane.launch.is_some() || agreed.has(pane, place.server_pid))
        };
        for pane in window.chosen(which).into_iter().filter(is_meant) {
            let result = if pane.launch.is_some() {
                ctx.tmux.close_pane(pane, place.server_pid)
            } else {
                ctx.tmux.close_unwatched(pane, place.server_pid)
            };
            match result {
                Ok(()) => closed.push(pane),
                // Somebody looks at it now, or it has changed or gone since: then it is not meant.
                Err(TmuxError::Changed { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        done.closed.extend(window.closing(&closed));
        done.left.extend(left(&kept(window, &closed), &occupants));
    }
    Ok(done)
}

/// With its last window a session would go, and with its last session the server: the home window comes
/// first, where there is none and everything else is about to be closed.
fn keep_session(ctx: &Ctx, user: &User, panes: &[PaneFact], closing: &[Lone]) -> Result<(), Error> {
    let goes = |pane: &PaneFact| {
        closing.iter().flat_map(|window| &window.panes).any(|other| other.pane_id == pane.pane_id)
    };
    let mut of_session = panes.iter().filter(|pane| pane.session == user.tmux_name).peekable();
    if of_session.peek().is_some() && of_session.all(goes) {
        ctx.tmux.ensure_session(&user.tmux_name, HISTORY)?;
    }
    Ok(())
}

/// Closes our panes of one window that no record claims, by its number. `None` if there is no such window.
pub(crate) fn close_one(ctx: &Ctx, id: &JobId) -> Result<Option<Closing>, Error> {
    let tmux = ctx.tmux.look();
    let TmuxFact::Up { place, panes } = &tmux else { return Err(unreachable(&tmux)) };
    let Some((window, closing)) = one(ctx, id, panes)? else { return Ok(None) };
    for pane in window.marked() {
        ctx.tmux.close_pane(pane, place.server_pid)?;
    }
    Ok(Some(closing))
}
