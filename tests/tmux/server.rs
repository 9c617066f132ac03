//! The tmux door: what both servers promise, and what the real one does under hostile settings.

mod contract;
mod hostile;
mod real;

use std::path::PathBuf;

use tpu_core::model::facts::{PaneFact, Place, TmuxFact};
use tpu_core::model::ids::{JobId, LaunchToken};
use tpu_system::tmux::{Capture, NewWindow, Tmux};

/// A window of a job of `user` in session `session`, whose program does nothing.
fn job_window(session: &str, index: u32, user: &str, token: &str) -> NewWindow {
    NewWindow {
        session: session.to_owned(),
        index,
        name: format!("job{index}"),
        cwd: PathBuf::from("/"),
        argv: vec!["sleep".to_owned(), "100000".to_owned()],
        job: JobId::parse(&format!("{user}/{index}")).unwrap(),
        launch: LaunchToken::from(token),
    }
}

/// All panes, and where the server runs. Fails the test if none does.
#[track_caller]
fn up(tmux: &dyn Tmux) -> (Place, Vec<PaneFact>) {
    match tmux.look() {
        TmuxFact::Up { place, panes } => (place, panes),
        other => panic!("expected a running server: {other:?}"),
    }
}

/// Every window as `session:index`, in order.
#[track_caller]
fn windows(tmux: &dyn Tmux) -> Vec<String> {
    let (_, panes) = up(tmux);
    let mut names: Vec<String> =
        panes.iter().map(|pane| format!("{}:{}", pane.session, pane.window_index)).collect();
    names.sort();
    names
}

/// What a pane shows, all of it.
fn all_of(pane: &PaneFact) -> Capture {
    Capture { pane_id: pane.pane_id.clone(), history: None, colours: false }
}
