//! Whether what a command needs is there, as far as jobs, tables and plots say it.

use super::layout::Layout;
use super::metrics;
use crate::keys::Needs;
use crate::model::{Model, UsageSeen};
use crate::rows::Group;
use crate::tabs::Tab;
use tpu_core::model::groups;
use tpu_core::model::view::JobView;

/// Whether what a command needs is there. Of what scrolls it is assumed that there is more than is seen: only its lines say
/// so, and the lines of the help are made of what is met.
pub(super) fn are_met(model: &Model, needs: Needs) -> bool {
    match needs {
        Needs::Nothing | Needs::More => true,
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
        Needs::Others => model.snapshot.as_ref().is_some_and(|snapshot| snapshot.users.len() > 1),
        Needs::Something => {
            let list = &model.list;
            !list.filter.is_empty() || !list.marked.is_empty() || !model.toasts.is_empty()
        }
    }
}
