//! The tabs: going from one to the next, what they need to be read, and moving in those beside the jobs.

use tui_input::Input;

use super::{actions, in_sight, list, moved, note, usage};
use crate::keys::Command;
use crate::message::{Ask, Effect, Scope};
use crate::model::{BoardRow, Model, Overlay, board_jobs, board_rows};
use crate::tabs::{TABLE, Tab};
use crate::view::layout::Layout;
use tpu_core::model::ids::JobId;
use tpu_core::model::view::{JobView, Whose};
use tpu_core::plan::filter::Filter;
use tpu_ops::observe::journal::Event;

/// Seconds from one question to the control plane to the next, at least: it is asked for all targets at once.
const CLOUD_S: u64 = 15;
/// Seconds from one look at the figures of machines to the next; a machine is asked once a minute.
const FIGURES_S: u64 = 15;
/// Seconds from one reading of a lineage's logs to the next.
const LOGS_S: u64 = 20;

/// The closest look at a time has a thousandth of it.
const MOST_ZOOM: u32 = 10;

/// Commands that mean the same on every tab; `None` for any other.
pub(super) fn any(model: &mut Model, command: Command) -> Option<Vec<Effect>> {
    let tab = match command {
        Command::JobsTab => Tab::Jobs,
        Command::TargetsTab => Tab::Targets,
        Command::QueueTab => Tab::Queue,
        Command::EventsTab => Tab::Events,
        Command::PlanTab => Tab::Plan,
        Command::UsageTab => Tab::Usage,
        Command::NextTab => model.tab.moved(1),
        Command::PreviousTab => model.tab.moved(TABLE.len() - 1),
        Command::Broken => return Some(to_newest_broken(model)),
        Command::AllUsers => return Some(all_users(model)),
        Command::Monitor => return Some(actions::monitor(model)),
        Command::NewRun => return Some(super::form::open(model)),
        Command::RunLike => return Some(super::form::ask_like(model)),
        _ => return None,
    };
    go(model, tab);
    Some(Vec::new())
}

/// Goes to a tab.
pub(super) fn go(model: &mut Model, tab: Tab) {
    model.tab = tab;
    model.wide = false;
    model.boards.changed();
}

/// Chooses the newest job that broke. A filter or a fold that hides it is taken back, and that is said.
fn to_newest_broken(model: &mut Model) -> Vec<Effect> {
    let Some(id) = model.newest_broken().map(|job| job.id.clone()) else {
        note(model, "Nothing is broken.".to_owned());
        return Vec::new();
    };
    let wide = model.wide && model.tab == Tab::Jobs;
    go(model, Tab::Jobs);
    model.wide = wide;
    model.list.selected = Some(id.clone());
    let is_shown = |model: &Model| {
        list::is_in_folded(model, &id)
            || model.list.rows.iter().any(|row| row.can_be_chosen() && row.id == id)
    };
    if !is_shown(model) && !model.list.filter.is_empty() {
        list::set_filter(model, Filter::default());
        note(model, "The filter hid it, and is taken back.".to_owned());
    }
    model.list.selected = Some(id.clone());
    list::unfold_around(model, &id);
    list::rebuild(model, None);
    Vec::new()
}

/// Everybody's jobs, or those of the one from before.
fn all_users(model: &mut Model) -> Vec<Effect> {
    let whose = if !model.scope.whose.is_everybody() {
        model.home = model.scope.whose.clone();
        Whose::default()
    } else if model.home.is_everybody() {
        Whose::of(model.selected().map(|job| job.id.user.clone()))
    } else {
        model.home.clone()
    };
    set_scope(model, Scope { whose })
}

/// Looks at other people's jobs.
pub(super) fn set_scope(model: &mut Model, scope: Scope) -> Vec<Effect> {
    if model.scope == scope {
        return Vec::new();
    }
    model.scope = scope.clone();
    model.boards.changed();
    vec![Effect::Scope(scope)]
}

/// Moving about in a tab beside the jobs.
pub(super) fn command(model: &mut Model, command: Command) -> Vec<Effect> {
    let page = Layout::of(model).board_rows().max(2) - 1;
    if moved(command, 0, 0, page).is_some() {
        step(model, |row, last| moved(command, row, last, page).unwrap_or(row));
        return Vec::new();
    }
    match command {
        Command::Filter => {
            let before = model.boards.choosing(model.tab).filter.clone();
            model.overlay = Some(Overlay::BoardFilter(Input::new(before.clone()), before));
        }
        Command::Details => return open(model),
        Command::ZoomIn => model.boards.zoom = (model.boards.zoom + 1).min(MOST_ZOOM),
        Command::ZoomOut => model.boards.zoom = model.boards.zoom.saturating_sub(1),
        Command::Left => step_along_job(model, false),
        Command::Right => step_along_job(model, true),
        Command::Reapply => return actions::reapply_target(model),
        Command::Solve => return actions::solve_target(model),
        Command::Drain => return actions::drain(model),
        Command::Undrain => return actions::undrain(model),
        Command::DryPlan if model.tab == Tab::Targets => actions::dry_plan_of_target(model),
        Command::DryPlan => {
            let row = model.boards.chosen(model.tab);
            let job = row.and_then(|row| board_jobs(model, row).into_iter().next());
            return job.map(|job| actions::dry_plan(model, &job)).unwrap_or_default();
        }
        Command::Back => {
            model.toasts.clear();
            if model.boards.choosing(model.tab).filter.is_empty() {
                go(model, Tab::Jobs);
            } else {
                set_filter(model, String::new());
            }
        }
        // These belong to other contexts, or were handled before.
        _ => {}
    }
    Vec::new()
}

/// Moves the choice to the row that `to(row, last row)` names.
fn step(model: &mut Model, to: impl Fn(usize, usize) -> usize) {
    let choosing = model.boards.choosing_mut(model.tab);
    let rows = &choosing.rows;
    let at = choosing.selected.as_ref().and_then(|key| rows.iter().position(|row| row.key == *key));
    let at = to(at.unwrap_or(0), rows.len().saturating_sub(1));
    if let Some(row) = rows.get(at) {
        choosing.selected = Some(row.key.clone());
    }
}

/// Chooses the row that stands so many rows below the first one on the screen.
pub(super) fn choose_shown(model: &mut Model, below: usize) -> bool {
    let choosing = model.boards.choosing_mut(model.tab);
    let Some(row) = choosing.rows.get(choosing.top + below) else { return false };
    let same = choosing.selected.as_ref() == Some(&row.key);
    choosing.selected = Some(row.key.clone());
    same
}

/// Filters the tab.
pub(super) fn set_filter(model: &mut Model, filter: String) {
    let choosing = model.boards.choosing_mut(model.tab);
    choosing.filter = filter;
    choosing.stale = true;
}

/// Goes to the jobs that the chosen row is about.
pub(super) fn open(model: &mut Model) -> Vec<Effect> {
    let row = model.boards.chosen(model.tab).filter(|_| model.tab != Tab::Usage);
    let Some(row) = row else { return Vec::new() };
    let jobs = board_jobs(model, row);
    let Some(first) = jobs.first() else {
        note(model, "No job is on it.".to_owned());
        return Vec::new();
    };
    let known = jobs.iter().find(|id| model.job(id).is_some()).cloned();
    let Some(known) = known else {
        let text = match &model.scope.whose {
            whose if !whose.includes(&first.user) => {
                format!("{first} is not of {whose}: 0 shows everybody's jobs.")
            }
            _ => format!("{first} is no longer there: its record has been archived."),
        };
        note(model, text);
        return Vec::new();
    };
    // An attempt under its leaf is shown by unfolding it.
    let leaf = model.job(&known).and_then(|job| job.lineage.last().copied());
    if let Some(leaf) = leaf.filter(|leaf| *leaf != known.window) {
        model.list.unfolded.insert(JobId::new(known.user.clone(), leaf));
    }
    if let Some(group) = model.job(&known).and_then(tpu_core::model::groups::of) {
        model.list.unfolded.insert(group);
    }
    go(model, Tab::Jobs);
    model.list.selected = Some(known.clone());
    list::set_filter(model, Filter::default());
    list::unfold_around(model, &known);
    model.list.selected = Some(known);
    list::rebuild(model, None);
    Vec::new()
}

/// Chooses the next event of the job that the chosen one is about, or the one before: rows stand newest first.
fn step_along_job(model: &mut Model, later: bool) {
    let (Some(events), Some(chosen)) =
        (&model.boards.events.seen, model.boards.chosen(Tab::Events))
    else {
        return;
    };
    let job = |row: &BoardRow| events.get(row.at).and_then(event_job);
    let rows = &model.boards.choosing(Tab::Events).rows;
    let Some(at) = rows.iter().position(|row| row == chosen) else { return };
    let is_same = |row: &&BoardRow| job(row).is_some() && job(row) == job(chosen);
    let next = if later {
        rows.get(..at).and_then(|rows| rows.iter().rev().find(is_same))
    } else {
        rows.get(at + 1..).and_then(|rows| rows.iter().find(is_same))
    };
    if let Some(key) = next.map(|row| row.key.clone()) {
        model.boards.choosing_mut(Tab::Events).selected = Some(key);
    }
}

fn event_job(event: &Event) -> Option<JobId> {
    Some(JobId::new(event.user.clone()?, event.job?))
}

/// Keeps a row chosen, and the chosen row on the screen.
pub(super) fn settle(model: &mut Model) {
    if model.tab == Tab::Jobs {
        return;
    }
    if model.boards.choosing(model.tab).stale {
        let rows = board_rows(model, model.tab);
        let choosing = model.boards.choosing_mut(model.tab);
        (choosing.rows, choosing.stale) = (rows, false);
    }
    let height = Layout::of(model).board_rows().max(1);
    let choosing = model.boards.choosing_mut(model.tab);
    let rows = &choosing.rows;
    let place =
        choosing.selected.as_ref().and_then(|key| rows.iter().position(|row| row.key == *key));
    let at = place.unwrap_or_else(|| choosing.top.min(rows.len().saturating_sub(1)));
    let selected = rows.get(at).map(|row| row.key.clone());
    choosing.top = in_sight(choosing.top, at, height, rows.len());
    choosing.selected = selected.or(choosing.selected.take());
}

/// What the screen shows and has not been read lately.
pub(super) fn wants(model: &mut Model) -> Vec<Effect> {
    let (now, every) = (model.now, model.setup.refresh_s.max(1));
    let mut effects = Vec::new();
    // Nothing is asked before the first look: a state file that cannot be read fails once, not four times.
    if model.snapshot.is_none() {
        return effects;
    }
    let cloud = if model.tab == Tab::Targets { CLOUD_S } else { 2 * CLOUD_S };
    if model.boards.targets.is_due(now, cloud.max(every)) {
        model.boards.targets.waiting = Some(now);
        effects.push(Effect::Ask(Ask::Targets));
    }
    let shows_figures = matches!(model.tab, Tab::Jobs | Tab::Targets);
    if shows_figures && model.boards.figures.is_due(now, FIGURES_S.max(every)) {
        model.boards.figures.waiting = Some(now);
        effects.push(Effect::Ask(Ask::Figures));
    }
    // What the detail says of something that waits is found out there as well.
    let shows_queue = match model.tab {
        Tab::Queue => true,
        Tab::Jobs => model.selected().is_some_and(JobView::is_queued),
        Tab::Plan => model.jobs().iter().any(JobView::is_queued),
        Tab::Targets | Tab::Events | Tab::Usage => false,
    };
    if shows_queue && model.boards.queue.is_due(now, every) {
        model.boards.queue.waiting = Some(now);
        effects.push(Effect::Ask(Ask::Queue));
    }
    // The timeline in the detail needs no journal; the tab does.
    if model.tab == Tab::Events && model.boards.events.is_due(now, every) {
        model.boards.events.waiting = Some(now);
        effects.push(Effect::Ask(Ask::Events));
    }
    if model.tab == Tab::Plan && model.boards.plan.is_due(now, every) {
        model.boards.plan.waiting = Some(now);
        effects.push(Effect::Ask(Ask::Plan));
    }
    effects.extend(usage::wants(model, now));
    effects.extend(wanted_curves(model));
    effects
}

/// The output of the lineages whose curve, or what follows from it, is on the screen.
fn wanted_curves(model: &mut Model) -> Vec<Effect> {
    let detail = model.tab == Tab::Jobs && Layout::of(model).detail.is_some();
    let begun = |job: &&JobView| detail && !job.is_queued();
    let mut wanted: Vec<_> = model.selected().filter(begun).cloned().into_iter().collect();
    if let Some(Overlay::Page(page)) = &model.overlay
        && let crate::model::Body::Diff(pair) = &page.body
    {
        let pair = [&pair.0, &pair.1].into_iter().filter_map(|id| model.job(id));
        wanted.extend(pair.filter(|job| !job.is_queued()).cloned());
    }
    if model.tab == Tab::Events {
        // What several attempts did again is known from their curve.
        let several = |job: &&JobView| job.leaf && job.lineage.len() > 1;
        wanted.extend(model.jobs().iter().filter(several).cloned());
    }
    let now = model.now;
    let due = |model: &mut Model, job: &JobView| {
        let trace = model.traces.entry(job);
        let due = !trace.waiting && trace.read.is_none_or(|at| now.seconds_since(at) >= LOGS_S);
        trace.waiting |= due;
        due
    };
    let jobs = wanted.into_iter().filter(|job| due(model, job));
    jobs.map(|job| Effect::Ask(Ask::Curves(job.id.clone()))).collect()
}
