//! How to get to a job's window.

use crate::model::ids::JobId;
use crate::runner::window::place::{self, Window};

use super::ctx::{job_of, user_of};
use super::{Ctx, Error};

/// The command that shows the window of a job; to be run with the terminal.
pub fn argv(ctx: &Ctx, id: &JobId) -> Result<Vec<String>, Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    let session = &user_of(&data, &id.user)?.tmux_name;
    match place::find(job, session, &ctx.tmux.look()) {
        Window::Here(pane) => Ok(ctx.tmux.attach_argv(pane, ctx.env.non_empty("TMUX"))),
        Window::Gone => Err(Error::not_found(format!("the window of {id} is closed"))
            .hint(format!("its output: tpu logs w={} {}", id.window, id.user))),
        Window::Lost(reason) => {
            Err(Error::not_found(format!("the window of {id} is gone: {reason}"))
                .hint(format!("its output: tpu logs w={} {}", id.window, id.user)))
        }
        Window::Elsewhere(reason) => {
            Err(Error::refused(format!("{id} cannot be shown here: {reason}")).hint("attach there"))
        }
        Window::Unknown(reason) => {
            Err(Error::unreachable(format!("{id}: {reason}")).hint("try again when tmux answers"))
        }
    }
}
