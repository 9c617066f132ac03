//! Commands on the list of jobs and on the detail beside it.

use tui_input::Input;

use super::confirm::confirm;
use super::{act_each, chart, leave_to, log, moved, note};
use crate::keys::{Command, Context};
use crate::message::{Act, Door, Effect};
use crate::model::{Model, Overlay};
use crate::rows::{self, Group, Row, Sort};
use crate::view::columns;
use crate::view::layout::Layout;
use tpu_core::model::groups;
use tpu_core::model::ids::JobId;
use tpu_core::model::view::JobView;
use tpu_core::plan::filter::Filter;

pub(super) fn command(model: &mut Model, command: Command) -> Vec<Effect> {
    let page = Layout::of(model).list_rows().max(2) - 1;
    if moved(command, 0, 0, page).is_some() {
        step(model, |row, last| moved(command, row, last, page).unwrap_or(row));
        return Vec::new();
    }
    match command {
        Command::Details => {
            model.wide = model.selected().is_some();
            model.chart.begin_anew();
        }
        Command::NextMetric
        | Command::PreviousMetric
        | Command::ZoomIn
        | Command::ZoomOut
        | Command::Left
        | Command::Right => chart::command(model, command),
        Command::SortLeft => sort_by(model, false),
        Command::SortRight => sort_by(model, true),
        Command::SortReverse => reverse(model),
        Command::ChooseColumns => super::chooser::open(model),
        Command::Group => {
            let groups = Group::ALL;
            let at = groups.iter().position(|group| *group == model.list.arrangement.group);
            let next = at.map_or(0, |at| (at + 1) % groups.len());
            set_group(model, groups.get(next).copied().unwrap_or_default());
        }
        Command::Back => back(model),
        Command::Log => return log::open(model),
        Command::Filter => {
            let before = std::mem::take(&mut model.list.filter);
            let input = Input::new(before.text().to_owned());
            model.list.filter = before.clone();
            model.overlay = Some(Overlay::Filter(input, before));
        }
        Command::Mark => {
            mark(model);
            step(model, |row, last| (row + 1).min(last));
        }
        Command::MarkAll => mark_all(model),
        Command::Unfold => fold(model, true),
        Command::Fold => fold(model, false),
        Command::Tag if model.selected_head().is_some() => {
            let key = model.setup.key(Context::List, Command::Unfold);
            note(model, format!("{key} unfolds the group; a tag is given to a job."));
        }
        Command::Tag => {
            if let (Some(job), Some(id)) = (model.selected(), model.list.selected.clone()) {
                let input = Input::new(job.tags.clone().unwrap_or_default());
                model.overlay = Some(Overlay::Tag(id, input));
            }
        }
        Command::Resume => return on_subjects(model, Act::Resume),
        Command::Rerun => return rerun(model),
        Command::Kill => confirm_kill(model),
        Command::Clean => confirm_clean(model),
        Command::Attach => {
            if let Some(job) = model.selected().map(|job| job.id.clone()) {
                return leave_to(model, Door::Window(job));
            }
        }
        // These belong to other contexts, or were handled before.
        _ => {}
    }
    Vec::new()
}

/// Moves the selection to the row that `to(row, last row)` names.
pub(super) fn step(model: &mut Model, to: impl Fn(usize, usize) -> usize) {
    let last = model.list.rows.len().saturating_sub(1);
    let from = model.selected_row().unwrap_or(0);
    let wanted = to(from, last);
    // The head of an open group is no row to stand on: the next one in the same direction is.
    let rows = &model.list.rows;
    let is_row = |at: &usize| rows.get(*at).is_some_and(Row::can_be_chosen);
    let found = if wanted < from {
        (0..=wanted).rev().find(is_row).or_else(|| (0..=last).find(is_row))
    } else {
        (wanted..=last).find(is_row)
    };
    if let Some(row) = found.and_then(|at| rows.get(at)) {
        model.list.selected = Some(row.id.clone());
    }
}

/// Sorts by the next column to the right or to the left; beyond the ends is the order of the file.
fn sort_by(model: &mut Model, right: bool) {
    let columns: Vec<Sort> = columns::sortable(model).collect();
    let now = model.list.arrangement.sort.map(|(sort, _)| sort.id);
    let at = now.and_then(|id| columns.iter().position(|column| column.id == id));
    let next = match (at, right) {
        (None, true) => Some(0),
        (None, false) => columns.len().checked_sub(1),
        (Some(at), true) => Some(at + 1),
        (Some(at), false) => at.checked_sub(1),
    };
    set_sort(model, next.and_then(|at| columns.get(at).copied()));
}

/// Sorts by a column, or not at all; the order is then the one that the column's name suggests.
pub(super) fn set_sort(model: &mut Model, sort: Option<Sort>) {
    let row = model.selected_row();
    model.list.arrangement.sort = sort.map(|sort| (sort, false));
    rebuild(model, row);
}

/// Sorts by a column; by the same one again, the other way round.
pub(super) fn sort_or_reverse(model: &mut Model, sort: Sort) {
    match model.list.arrangement.sort {
        Some((now, _)) if now.id == sort.id => reverse(model),
        _ => set_sort(model, Some(sort)),
    }
}

fn reverse(model: &mut Model) {
    if let Some((_, reverse)) = &mut model.list.arrangement.sort {
        *reverse = !*reverse;
        rebuild(model, None);
    }
}

/// Groups the rows.
pub(super) fn set_group(model: &mut Model, group: Group) {
    model.list.arrangement.group = group;
    model.list.folded.clear();
    rebuild(model, None);
}

/// Folds the group of this name, or unfolds it.
pub(super) fn turn_head(model: &mut Model, name: String) {
    if !model.list.folded.remove(&name) {
        model.list.folded.insert(name);
    }
    rebuild(model, None);
}

/// The folded group that holds a job.
fn folded_around(model: &Model, id: &JobId) -> Option<String> {
    let is_it = |at: &usize| model.jobs().get(*at).is_some_and(|job| job.id == *id);
    let row = model.list.rows.iter().find(|row| row.is_head() && row.members.iter().any(is_it));
    row?.head.clone()
}

/// Whether a job is hidden in a folded group.
pub(super) fn is_in_folded(model: &Model, id: &JobId) -> bool {
    folded_around(model, id).is_some()
}

/// Unfolds the group that hides a job.
pub(super) fn unfold_around(model: &mut Model, id: &JobId) {
    if let Some(name) = folded_around(model, id) {
        model.list.folded.remove(&name);
    }
}

/// The name of the group in which the selected row is.
fn head_above(model: &Model) -> Option<String> {
    let at = model.selected_row()?;
    let rows = model.list.rows.get(..=at)?;
    rows.iter().rev().find_map(|row| row.head.clone())
}

/// Computes the rows again and keeps the selection on its job. `before` is the row it had: when the job
/// is gone for good, its neighbour is selected; when a filter hides it, the first row is.
pub(super) fn rebuild(model: &mut Model, before: Option<usize>) {
    let Some(snapshot) = &model.snapshot else { return };
    let rows =
        rows::rows(snapshot, &model.list.filter, &model.list.unfolded, &model.list.arrangement);
    let rows = rows::with_folded_heads(rows, snapshot, &model.list.folded);
    let shown = |id: &JobId| rows.iter().any(|row| row.can_be_chosen() && row.id == *id);
    // A member that is folded away: the row of its group stands for it.
    let in_fold = |id: &JobId| {
        let is_it = |at: &usize| {
            let job = snapshot.jobs.get(*at);
            job.is_some_and(|job| job.id.user == id.user && job.lineage.contains(&id.window))
        };
        rows.iter().find(|row| row.members.iter().any(is_it)).map(|row| row.id.clone())
    };
    let first = || rows.first().map(|row| row.id.clone());
    let selected = match &model.list.selected {
        None => first(),
        // With no rows at all the wish is kept for when there are some.
        Some(id) if rows.is_empty() || shown(id) => Some(id.clone()),
        Some(id) => {
            let continued_by = snapshot.jobs.iter().find(|job| {
                let same = job.id.user == id.user && job.lineage.contains(&id.window);
                job.leaf && same && shown(&job.id)
            });
            let gone = snapshot.jobs.iter().all(|job| job.id != *id);
            match (continued_by, before) {
                (Some(job), _) => Some(job.id.clone()),
                (None, _) if in_fold(id).is_some() => in_fold(id),
                (None, Some(row)) if gone => {
                    rows.get(row.min(rows.len().saturating_sub(1))).map(|row| row.id.clone())
                }
                (None, _) => first(),
            }
        }
    };
    model.list.selected = selected;
    model.list.rows = rows;
}

/// Goes back: from the wide detail to the list, there from the filter, then from the marks.
fn back(model: &mut Model) {
    model.toasts.clear();
    if model.wide {
        model.wide = false;
    } else if !model.list.filter.is_empty() {
        set_filter(model, Filter::default());
    } else {
        model.list.marked.clear();
    }
}

/// Changes the filter; the selection stays on its job where the filter lets it.
pub(super) fn set_filter(model: &mut Model, filter: Filter) {
    let begins_or_ends = filter.is_empty() != model.list.filter.is_empty();
    model.list.filter = filter;
    if begins_or_ends {
        measure(model);
    }
    rebuild(model, None);
}

fn mark(model: &mut Model) {
    let members = model.selected_members().into_iter().map(|job| job.id.clone());
    let mut ids: Vec<JobId> = members.collect();
    if ids.is_empty() {
        ids.extend(model.selected().map(|job| job.id.clone()));
    }
    turn_marks(model, &ids);
}

/// Marks every job that the filter lets through, also those that are folded away. Nothing can be done to an earlier attempt.
fn mark_all(model: &mut Model) {
    let shown = model.list.rows.iter().filter(|row| row.can_be_chosen());
    let jobs = shown.flat_map(|row| {
        let one = model.jobs().get(row.job).filter(|_| row.members.is_empty());
        row.members.iter().filter_map(|at| model.jobs().get(*at)).chain(one)
    });
    let ids: Vec<JobId> = jobs.filter(|job| job.leaf).map(|job| job.id.clone()).collect();
    turn_marks(model, &ids);
}

/// Marks these, or, where each is marked, takes their marks back.
fn turn_marks(model: &mut Model, ids: &[JobId]) {
    let marked = &mut model.list.marked;
    if ids.iter().all(|id| marked.contains(id)) {
        for id in ids {
            marked.remove(id);
        }
    } else {
        marked.extend(ids.iter().cloned());
    }
}

/// Computes anew what each column could use.
pub(super) fn measure(model: &mut Model) {
    if let Some(snapshot) = &model.snapshot {
        // A filter shows attempts that match, whatever is unfolded.
        let are_shown = !model.list.unfolded.is_empty() || !model.list.filter.is_empty();
        model.list.widths = columns::natural_widths(&snapshot.jobs, are_shown);
    }
}

fn fold(model: &mut Model, open: bool) {
    if let Some(name) = model.selected_head().map(str::to_owned) {
        if open {
            turn_head(model, name);
        }
        return;
    }
    let Some(job) = model.selected() else { return };
    let group = groups::of(job);
    if !model.selected_members().is_empty() {
        let changed = group.is_some_and(|id| {
            if open { model.list.unfolded.insert(id) } else { model.list.unfolded.remove(&id) }
        });
        if changed {
            measure(model);
            rebuild(model, None);
        } else if !open && let Some(name) = head_above(model) {
            turn_head(model, name);
        }
        return;
    }
    let leaf = job.lineage.last().map_or(job.id.window, |leaf| *leaf);
    let leaf = JobId::new(job.id.user.clone(), leaf);
    let changed =
        if open { model.list.unfolded.insert(leaf) } else { model.list.unfolded.remove(&leaf) };
    let changed = changed
        || !open
            && group.is_some_and(|id| {
                let was_open = model.list.unfolded.remove(&id);
                if was_open {
                    model.list.selected = Some(id);
                }
                was_open
            });
    if changed {
        measure(model);
        rebuild(model, None);
    } else if !open && let Some(name) = head_above(model) {
        // Nothing below the row is left to fold: what it is in is.
        turn_head(model, name);
    }
}

/// Begins an action for each marked job, or for the selected one. The marks stay until it is done: without
/// them the same key, pressed again meanwhile, would be about the selected job.
fn on_subjects(model: &mut Model, make: fn(JobId) -> Act) -> Vec<Effect> {
    let acts = to_begin_again(model).into_iter().map(|job| make(job.id.clone())).collect();
    act_each(model, acts)
}

/// The jobs that are resumed or started again.
fn to_begin_again(model: &Model) -> Vec<&JobView> {
    let mut jobs = model.subjects();
    jobs.retain(|job| !job.is_queued());
    // Of a group those that failed: the others need nobody.
    let is_group = model.list.marked.is_empty() && !model.selected_members().is_empty();
    if is_group && jobs.iter().any(|job| job.failure().is_some()) {
        jobs.retain(|job| job.failure().is_some());
    }
    jobs
}

/// Starts jobs again from scratch. Where they would begin before a step that they had reached, the person is asked: the key
/// means something harmless in other programs, and resuming is what most people want then.
fn rerun(model: &mut Model) -> Vec<Effect> {
    let jobs = to_begin_again(model);
    // An attempt that broke before its first step had gone on from one.
    let step_of = |job: &&JobView| job.shown.progress.step.max(job.from_step);
    let ended = jobs.iter().copied().filter(|job| !job.shown.status.is_live());
    let reached = ended.filter_map(|job| step_of(&job)).max().filter(|step| *step > 0);
    let Some(step) = reached else { return on_subjects(model, Act::Rerun) };
    let resume = model.setup.key(Context::List, Command::Resume);
    let reached =
        if jobs.len() == 1 { format!("step {step}") } else { format!("steps up to {step}") };
    let text = format!(
        "From the first step again, although {reached} {} reached; {resume} goes on from the newest checkpoint. \
         What was written stays.",
        if jobs.len() == 1 { "was" } else { "were" }
    );
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id.clone()).collect();
    let Some(first) = ids.first().cloned() else { return Vec::new() };
    confirm(model, Act::Rerun(first), ids, None, Some(text));
    Vec::new()
}

/// Whether a kill is possible: on what is live and on failures.
fn killable(job: &JobView) -> bool {
    !job.shown.status.is_final()
}

fn confirm_kill(model: &mut Model) {
    let (waiting, begun): (Vec<_>, Vec<_>) =
        model.subjects().into_iter().partition(|job| job.is_queued());
    let (can, ended): (Vec<_>, Vec<_>) = begun.into_iter().partition(|job| killable(job));
    let waiting: Vec<JobId> = waiting.iter().map(|job| job.id.clone()).collect();
    let jobs: Vec<JobId> = can.iter().map(|job| job.id.clone()).collect();
    let ended: Vec<String> =
        ended.iter().map(|job| format!("{} ({})", job.label(), job.shown.status)).collect();
    if jobs.is_empty() && waiting.is_empty() {
        if !ended.is_empty() {
            note(model, format!("Nothing to stop: {} has already ended.", ended.join(", ")));
        }
        return;
    }
    let note =
        (!ended.is_empty()).then(|| format!("Already ended, left alone: {}", ended.join(", ")));
    let all = jobs.iter().chain(&waiting).cloned().collect();
    let act =
        if waiting.is_empty() { Act::Kill(jobs) } else { Act::TakeOut { waiting, kill: jobs } };
    confirm(model, act, all, None, note);
}

fn confirm_clean(model: &mut Model) {
    let Some(user) = model.selected().map(|job| job.id.user.clone()) else { return };
    let jobs = model.cleanable(&user);
    if jobs.is_empty() {
        note(model, format!("Nothing to clean: no job of {user} has ended."));
        return;
    }
    confirm(model, Act::Clean(user), jobs, None, None);
}
