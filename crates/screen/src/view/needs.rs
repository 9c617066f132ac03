//! Whether a command makes sense at the moment: its key is then in the bar, in the help, and does something.

use super::layout::Layout;
use super::{help, metrics, page};
use crate::keys::Needs;
use crate::model::{Model, Overlay, UsageSeen};
use crate::rows::Group;
use crate::tabs::Tab;
use tpu_core::model::groups;
use tpu_core::model::view::JobView;

/// Whether what a command needs is there.
pub fn are_met(model: &Model, needs: Needs) -> bool {
    match needs {
        Needs::Nothing => true,
        Needs::Jobs => !model.jobs().is_empty(),
        Needs::Job => model.selected().is_some(),
        Needs::Failure => model.selected().is_some_and(|job| job.failure().is_some()),
        Needs::Attempts => model.selected().is_some_and(|job| {
            let is_in_open_group =
                groups::of(job).is_some_and(|id| model.list.unfolded.contains(&id));
            let is_grouped = model.list.arrangement.group != Group::None;
            job.lineage.len() > 1
                || is_in_open_group
                || is_grouped
                || !model.selected_members().is_empty()
        }),
        Needs::Waiting => match model.tab {
            Tab::Queue => !model.boards.choosing(Tab::Queue).rows.is_empty(),
            _ => model.subjects().into_iter().any(JobView::is_queued),
        },
        Needs::Row => match model.tab {
            Tab::Jobs => model.selected().is_some(),
            tab => !model.boards.choosing(tab).rows.is_empty(),
        },
        Needs::Cost => model.boards.usage.asked.seen.as_ref().is_some_and(UsageSeen::has_cost),
        Needs::Curve => {
            model.wide && model.selected().is_some_and(|job| metrics::are_there(model, job))
        }
        Needs::Plots => Layout::of(model).usage.is_some_and(|plots| plots.ways > 1),
        Needs::More => match (model.help.as_ref(), model.overlay.as_ref()) {
            (Some(help), _) => help::extent(model, help).0 > 0,
            (None, Some(Overlay::Page(page))) => page::extent(model, page).0 > 0,
            (None, _) => false,
        },
        Needs::Others => model.snapshot.as_ref().is_some_and(|snapshot| snapshot.users.len() > 1),
        Needs::Something => {
            let list = &model.list;
            !list.filter.is_empty() || !list.marked.is_empty() || !model.toasts.is_empty()
        }
    }
}
