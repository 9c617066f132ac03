//! What keys do to jobs and targets beyond the list's own: plans, comparisons, and making targets usable.

use super::confirm::{confirm, confirm_with_plan};
use super::{act, note, page, rules};
use crate::keys::{Command, Context, Key};
use crate::message::{Act, Ask, Effect};
use crate::model::{Body, Choice, ChoiceOf, Model, Overlay, Page};
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::job::Status;
use tpu_core::model::target::Machines;
use tpu_core::model::view::{JobView, MonitorHealth};
use tpu_core::plan::board::Row;

/// Commands on the selected job that are commands of `tpu`; `None` for any other.
pub(super) fn command(model: &mut Model, command: Command) -> Option<Vec<Effect>> {
    let selected = model.selected().map(|job| job.id.clone());
    Some(match command {
        Command::Rule => {
            rules::choose(model);
            Vec::new()
        }
        Command::IgnoreError => {
            let text =
                "The error counts as none until the job prints another one; no rule answers it.";
            confirm(model, Act::IgnoreError(selected?), vec![], None, Some(text.to_owned()));
            Vec::new()
        }
        Command::Explain => {
            let id = selected?;
            page::open_awaiting(model, format!("Why {id} is as it is"), Ask::Explain(id))
        }
        Command::DryPlan => dry_plan(model, &selected?),
        Command::Reapply => reapply(model)?,
        Command::Solve => solve(model)?,
        Command::Diff => {
            diff(model);
            Vec::new()
        }
        _ => return None,
    })
}

fn would(act: &Act) -> Ask {
    Ask::Would(Box::new(act.clone()))
}

/// Starts the daemon, or asks whether to stop it.
pub(super) fn monitor(model: &mut Model) -> Vec<Effect> {
    match model.snapshot.as_ref().map(|snapshot| &snapshot.monitor) {
        Some(MonitorHealth::Running { .. }) => {
            let text = "Jobs go on, and nothing happens by itself any more: no job is brought back by its rule.";
            confirm(model, Act::StopDaemon, Vec::new(), None, Some(text.to_owned()));
            Vec::new()
        }
        Some(MonitorHealth::Watching { why, .. }) => {
            let text = format!("It only watches, since {why}.");
            confirm(model, Act::StopDaemon, Vec::new(), None, Some(text));
            Vec::new()
        }
        Some(MonitorHealth::NotRunning) => act(model, Act::StartDaemon),
        None => Vec::new(),
    }
}

/// Lets the person choose the action on a job whose plan is shown. What comes next is marked: what the daemon
/// does by itself, else what a key would.
pub(super) fn dry_plan(model: &mut Model, id: &JobId) -> Vec<Effect> {
    let Some(job) = model.job(id).cloned() else { return Vec::new() };
    if job.is_queued() {
        let out = Act::TakeOut { waiting: vec![id.clone()], kill: Vec::new() };
        let plans = vec![
            (Command::HoldOrRelease, Act::Hold(vec![id.clone()])),
            (Command::First, Act::MoveFirst(vec![id.clone()])),
            (Command::Kill, out),
        ];
        choose_plan(model, format!("What would … do? {id}"), plans, Command::Kill);
        return Vec::new();
    }
    let by_itself = job.next.as_ref().map(|next| next.action.clone()).unwrap_or_default();
    let next = match (&job.shown.status, by_itself.as_str()) {
        (status, _) if status.is_live() => Command::Kill,
        (_, "rerun") => Command::Rerun,
        (_, "reapply") => Command::Reapply,
        (Status::Error(_), _) => Command::Resume,
        _ => Command::Clean,
    };
    let marked = model.subjects().into_iter().filter(|other| other.id.user == id.user);
    let mut jobs: Vec<JobId> = marked.map(|job| job.id.clone()).collect();
    if !model.list.marked.contains(id) && model.list.marked.is_empty() {
        jobs = vec![id.clone()];
    }
    let mut plans = vec![
        (Command::Resume, Act::Resume(id.clone())),
        (Command::Rerun, Act::Rerun(id.clone())),
        (Command::Kill, Act::Kill(jobs)),
        (Command::Clean, Act::Clean(id.user.clone())),
    ];
    if job.failure().is_some() {
        plans.push((Command::IgnoreError, Act::IgnoreError(id.clone())));
    }
    if job.machines != Machines::Here {
        plans.extend(plans_of_target(&job.target));
    }
    choose_plan(model, format!("What would … do? {id}"), plans, next);
    Vec::new()
}

/// The same for the chosen target.
pub(super) fn dry_plan_of_target(model: &mut Model) {
    let Some(item) = chosen_target(model) else {
        note(model, "`local` is this machine: there is nothing to make anew.".to_owned());
        return;
    };
    let (title, plans) =
        (format!("What would … do? {}", item.target), plans_of_target(&item.target));
    choose_plan(model, title, plans, Command::Reapply);
}

fn plans_of_target(target: &TargetName) -> Vec<(Command, Act)> {
    vec![
        (Command::Reapply, Act::Reapply { target: target.clone(), then_resume: None }),
        (Command::Solve, Act::Solve(target.clone())),
    ]
}

fn choose_plan(model: &mut Model, title: String, plans: Vec<(Command, Act)>, next: Command) {
    let option = |(command, act): &(Command, Act)| {
        let key = model.setup.key(Context::List, *command);
        let mut lines = model.setup.keys.lines(Context::List);
        let help =
            lines.find(|(line, _)| line.command == *command).map_or("", |(line, _)| line.help);
        // Here nothing is done, and nothing asked.
        let help = help.split_once(" (asks").map_or(help, |(does, _)| does);
        (format!("{key} {}", act.verb()), help.to_owned())
    };
    let options = plans.iter().map(option).collect();
    let at = plans.iter().position(|(command, _)| *command == next).unwrap_or(0);
    let of = ChoiceOf::Plan(plans);
    model.overlay = Some(Overlay::Choice(Choice { title, options, at, of }));
}

/// Shows the plan that was chosen.
pub(super) fn show_plan(model: &mut Model, act: Act) -> Vec<Effect> {
    let title = format!("What {} would do; nothing is done", act.verb());
    page::open_awaiting(model, title, Ask::Would(Box::new(act)))
}

/// The key of an action, while its plan may be chosen: that plan.
pub(super) fn plan_by_key(model: &mut Model, key: Key) -> Option<Vec<Effect>> {
    let Some(Overlay::Choice(Choice { of: ChoiceOf::Plan(plans), .. })) = &model.overlay else {
        return None;
    };
    let command = model.setup.keys.command(Context::List, key)?;
    let act = plans.iter().find(|(known, _)| *known == command)?.1.clone();
    Some(show_plan(model, act))
}

const REMAKE: &str = "The target is deleted and created again: what is on its disk is lost.";
const SOLVE: &str =
    "What is well is left alone. What was taken away is created again; its disk is then empty.";

/// Asks whether the target of the selected job is to be made anew.
fn reapply(model: &mut Model) -> Option<Vec<Effect>> {
    let job = model.selected()?.clone();
    if job.machines == Machines::Here {
        note(model, "`local` is this machine: there is nothing to delete and create.".to_owned());
        return Some(Vec::new());
    }
    let then_resume = (job.leaf && job.failure().is_some()).then(|| job.id.clone());
    let act = Act::Reapply { target: job.target.clone(), then_resume };
    let (users, question) = (users_of(model, &job.target), would(&act));
    Some(confirm_with_plan(model, act, users, question, Some(REMAKE)))
}

/// The same for the chosen target.
pub(super) fn reapply_target(model: &mut Model) -> Vec<Effect> {
    let Some(item) = chosen_target(model) else {
        note(model, "`local` is this machine: there is nothing to delete and create.".to_owned());
        return Vec::new();
    };
    let act = Act::Reapply { target: item.target, then_resume: None };
    let question = would(&act);
    confirm_with_plan(model, act, item.jobs, question, Some(REMAKE))
}

/// Asks whether the target of the selected job is to be set right.
fn solve(model: &mut Model) -> Option<Vec<Effect>> {
    let job = model.selected()?;
    let (target, is_here) = (job.target.clone(), job.machines == Machines::Here);
    let users = users_of(model, &target);
    Some(confirm_solve(model, Some(target).filter(|_| !is_here), users))
}

/// The same for the chosen target.
pub(super) fn solve_target(model: &mut Model) -> Vec<Effect> {
    let item = chosen_target(model);
    let users = item.as_ref().map(|item| item.jobs.clone()).unwrap_or_default();
    confirm_solve(model, item.map(|item| item.target), users)
}

fn confirm_solve(model: &mut Model, target: Option<TargetName>, users: Vec<JobId>) -> Vec<Effect> {
    let Some(target) = target else {
        note(model, "`local` is this machine: there is nothing to set right.".to_owned());
        return Vec::new();
    };
    let act = Act::Solve(target);
    let question = would(&act);
    confirm_with_plan(model, act, users, question, Some(SOLVE))
}

const DRAIN: &str = "Nothing new begins there. What runs there is left alone.";

/// Asks whether nothing new is to begin on the chosen machine.
pub(super) fn drain(model: &mut Model) -> Vec<Effect> {
    let Some((target, is_drained)) = chosen_host(model) else { return Vec::new() };
    let back = model.setup.key(Context::Targets, Command::Undrain);
    if is_drained {
        note(model, format!("{target} takes no new jobs already; {back} lets them begin again."));
        return Vec::new();
    }
    let users = users_of(model, &target);
    let text = format!("{DRAIN} {back} lets jobs begin again.");
    confirm(model, Act::Drain(target), users, None, Some(text));
    Vec::new()
}

/// Lets jobs begin on the chosen machine again.
pub(super) fn undrain(model: &mut Model) -> Vec<Effect> {
    match chosen_host(model) {
        Some((target, true)) => act(model, Act::Undrain(target)),
        Some((target, false)) => {
            note(model, format!("{target} is not drained: it takes jobs."));
            Vec::new()
        }
        None => Vec::new(),
    }
}

/// The chosen machine, and whether it is drained; where it is none of somebody's own, that is said.
fn chosen_host(model: &mut Model) -> Option<(TargetName, bool)> {
    let at = model.boards.chosen(model.tab)?.at;
    let seen = model.boards.targets.seen.as_ref()?;
    let row = seen.targets.get(at)?;
    let host = seen.hosts.iter().find(|host| row.is_known && host.name == row.target);
    if let Some(host) = host {
        return Some((host.name.clone(), host.record.drained.is_some()));
    }
    let text = format!("{} is no machine of your own: there is nothing to drain.", row.target);
    note(model, text);
    None
}

/// The chosen target, unless it is this machine.
fn chosen_target(model: &Model) -> Option<Row> {
    let at = model.boards.chosen(model.tab)?.at;
    let item = model.boards.targets.seen.as_ref()?.targets.get(at)?;
    Some(item.clone()).filter(|item| item.fact.machines != Machines::Here)
}

/// The live jobs on the target of a job, as far as this screen sees them.
fn users_of(model: &Model, target: &TargetName) -> Vec<JobId> {
    let on_it = |other: &&JobView| {
        other.target == *target && other.shown.status.is_live() && !other.is_queued()
    };
    model.jobs().iter().filter(on_it).map(|other| other.id.clone()).collect()
}

/// Puts the two marked runs beside each other; the marked one and the selected one if only one is marked.
fn diff(model: &mut Model) {
    let mut jobs: Vec<JobId> = model.list.marked.iter().cloned().collect();
    if let (1, Some(selected)) = (jobs.len(), &model.list.selected)
        && !jobs.contains(selected)
    {
        jobs.push(selected.clone());
    }
    let [first, second] = jobs.as_slice() else {
        let text = format!(
            "Mark the two runs to compare with {}; {} are marked.",
            model.setup.key(Context::List, Command::Mark),
            jobs.len()
        );
        note(model, text);
        return;
    };
    let title = format!("{first} and {second}");
    let body = Body::Diff(Box::new((first.clone(), second.clone())));
    model.overlay = Some(Overlay::Page(Page { title, body, top: 0 }));
}

/// A command that was typed and destroys something: the person is asked first, with what it says that it
/// would do, if it can say so. A yes that was typed with it is not the answer.
pub(super) fn confirm_typed(model: &mut Model, mut words: Vec<String>, dry: bool) -> Vec<Effect> {
    words.retain(|word| word != "--yes" && word != "-y");
    let act = Act::Confirmed(words.clone());
    if dry {
        words.push("--dry-run".to_owned());
        return confirm_with_plan(model, act, Vec::new(), Ask::Say(words), None);
    }
    confirm(model, act, Vec::new(), None, None);
    Vec::new()
}
