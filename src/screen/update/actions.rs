//! What keys do to jobs and targets through the commands of `tpu`: the same words as anybody would type.

use super::board::chosen;
use super::{act, form, list, note, page};
use crate::model::ids::{JobId, TargetName};
use crate::model::job::Status;
use crate::model::rules::{NAMED, Rules};
use crate::model::target::Machines;
use crate::model::view::{JobView, MonitorHealth};
use crate::plan::board::Row;
use crate::screen::keys::{Command, Context, Key};
use crate::screen::message::{Act, Ask, Effect};
use crate::screen::model::{Body, Choice, ChoiceOf, Confirm, Model, Overlay, Page};

/// Commands on the selected job that are commands of `tpu`; `None` for any other.
pub(super) fn command(model: &mut Model, command: Command) -> Option<Vec<Effect>> {
    let selected = model.selected().map(|job| job.id.clone());
    Some(match command {
        Command::Rule => {
            choose_rule(model);
            Vec::new()
        }
        Command::IgnoreError => {
            let text =
                "The error counts as none until the job prints another one; no rule answers it.";
            let command = about(&selected?, &["ignore-error"]);
            confirm(model, vec![command], vec![], None, Some(text));
            Vec::new()
        }
        Command::Explain => {
            let id = selected?;
            page::open_awaiting(model, format!("Why {id} is as it is"), about(&id, &["explain"]))
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

/// `WORDS w=7 --user alice`.
pub(super) fn about(job: &JobId, words: &[&str]) -> Vec<String> {
    let mut all: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    all.insert(1, format!("w={}", job.window));
    all.extend(["--user".to_owned(), job.user.as_str().to_owned()]);
    all
}

/// Asks the person whether commands are to be run.
fn confirm(
    model: &mut Model,
    commands: Vec<Vec<String>>,
    jobs: Vec<JobId>,
    plan: Option<Body>,
    note: Option<&str>,
) {
    let act = Act::Confirmed(commands);
    let note = note.map(str::to_owned);
    model.overlay = Some(Overlay::Confirm(Confirm { act, jobs, yes: true, top: 0, plan, note }));
}

/// The same, while the first of them says what it would do.
fn confirm_with_plan(
    model: &mut Model,
    commands: Vec<Vec<String>>,
    jobs: Vec<JobId>,
    note: Option<&str>,
) -> Vec<Effect> {
    let question = dry(commands.first().cloned().unwrap_or_default());
    confirm(model, commands, jobs, Some(Body::Awaited(question.clone())), note);
    vec![Effect::Ask(Ask::Say(question))]
}

/// The same words, only tried.
fn dry(mut words: Vec<String>) -> Vec<String> {
    words.push("--dry-run".to_owned());
    words
}

/// Starts MONITOR, or asks whether to stop it.
pub(super) fn monitor(model: &mut Model) -> Vec<Effect> {
    let words = |step: &str| vec!["daemon".to_owned(), step.to_owned()];
    match model.snapshot.as_ref().map(|snapshot| &snapshot.monitor) {
        Some(MonitorHealth::Running { .. }) => {
            let text = "Jobs go on, and nothing happens by itself any more: no job is brought back by its rule.";
            confirm(model, vec![words("stop")], Vec::new(), None, Some(text));
            Vec::new()
        }
        Some(MonitorHealth::NotRunning) => act(model, Act::Commands(vec![words("start")])),
        None => Vec::new(),
    }
}

/// Lets the person choose the action on a job whose plan is shown. What comes next is marked: what MONITOR
/// does by itself, else what a key would.
pub(super) fn dry_plan(model: &mut Model, id: &JobId) -> Vec<Effect> {
    let Some(job) = model.job(id).cloned() else { return Vec::new() };
    let by_itself = job.next.as_ref().map(|next| next.action.clone()).unwrap_or_default();
    let next = match (&job.shown.status, by_itself.as_str()) {
        (status, _) if status.is_live() => Command::Kill,
        (_, "rerun") => Command::Rerun,
        (_, "reapply") => Command::Reapply,
        (Status::Error(_), _) => Command::Resume,
        _ => Command::Clean,
    };
    let marked = model.subjects().into_iter().filter(|other| other.id.user == id.user);
    let mut windows: Vec<String> = marked.map(|job| job.id.window.to_string()).collect();
    if !model.list.marked.contains(id) && model.list.marked.is_empty() {
        windows = vec![id.window.to_string()];
    }
    let user = ["--user".to_owned(), id.user.as_str().to_owned()];
    let mut kill = vec!["kill".to_owned(), format!("w={}", windows.join(","))];
    kill.extend(user.clone());
    let clean = std::iter::once("clean".to_owned()).chain(user).collect();
    let mut plans = vec![
        (Command::Resume, about(id, &["resume"])),
        (Command::Rerun, about(id, &["rerun"])),
        (Command::Kill, kill),
        (Command::Clean, clean),
    ];
    if job.failure().is_some() {
        plans.push((Command::IgnoreError, about(id, &["ignore-error"])));
    }
    if job.machines != Machines::Here {
        plans.extend(plans_of_target(job.target.as_str()));
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
    let name = item.target.as_str();
    choose_plan(model, format!("What would … do? {name}"), plans_of_target(name), Command::Reapply);
}

fn plans_of_target(target: &str) -> Vec<(Command, Vec<String>)> {
    vec![
        (Command::Reapply, on_target("reapply", target)),
        (Command::Solve, on_target("solve", target)),
    ]
}

fn on_target(verb: &str, target: &str) -> Vec<String> {
    vec![verb.to_owned(), target.to_owned()]
}

fn choose_plan(
    model: &mut Model,
    title: String,
    plans: Vec<(Command, Vec<String>)>,
    next: Command,
) {
    let option = |(command, words): &(Command, Vec<String>)| {
        let key = model.setup.key(Context::List, *command);
        let mut lines = model.setup.keys.lines(Context::List);
        let help =
            lines.find(|(line, _)| line.command == *command).map_or("", |(line, _)| line.help);
        let help = help.strip_suffix(" (asks first)").unwrap_or(help);
        let verb = words.first().map(String::as_str).unwrap_or_default();
        (format!("{key} {verb}"), help.to_owned())
    };
    let options = plans.iter().map(option).collect();
    let at = plans.iter().position(|(command, _)| *command == next).unwrap_or(0);
    let of = ChoiceOf::Plan(plans.into_iter().map(|(key, words)| (key, dry(words))).collect());
    model.overlay = Some(Overlay::Choice(Choice { title, options, at, of }));
}

/// Shows the plan that was chosen.
pub(super) fn show_plan(model: &mut Model, words: Vec<String>) -> Vec<Effect> {
    let verb = words.first().cloned().unwrap_or_default();
    page::open_awaiting(model, format!("What {verb} would do; nothing is done"), words)
}

/// The key of an action, while its plan may be chosen: that plan.
pub(super) fn plan_by_key(model: &mut Model, key: Key) -> Option<Vec<Effect>> {
    let Some(Overlay::Choice(Choice { of: ChoiceOf::Plan(plans), .. })) = &model.overlay else {
        return None;
    };
    let command = model.setup.keys.command(Context::List, key)?;
    let words = plans.iter().find(|(known, _)| *known == command)?.1.clone();
    Some(show_plan(model, words))
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
    let mut commands = vec![on_target("reapply", job.target.as_str())];
    if job.leaf && job.failure().is_some() {
        commands.push(about(&job.id, &["resume"]));
    }
    let users = users_of(model, &job.target);
    Some(confirm_with_plan(model, commands, users, Some(REMAKE)))
}

/// The same for the chosen target.
pub(super) fn reapply_target(model: &mut Model) -> Vec<Effect> {
    let Some(item) = chosen_target(model) else {
        note(model, "`local` is this machine: there is nothing to delete and create.".to_owned());
        return Vec::new();
    };
    let command = on_target("reapply", item.target.as_str());
    confirm_with_plan(model, vec![command], item.jobs, Some(REMAKE))
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
    confirm_with_plan(model, vec![on_target("solve", target.as_str())], users, Some(SOLVE))
}

/// The chosen target, unless it is this machine.
fn chosen_target(model: &Model) -> Option<Row> {
    let at = chosen(model)?.at;
    let item = model.boards.targets.seen.as_ref()?.targets.get(at)?;
    Some(item.clone()).filter(|item| item.fact.machines != Machines::Here)
}

/// The live jobs on the target of a job, as far as this screen sees them.
fn users_of(model: &Model, target: &TargetName) -> Vec<JobId> {
    let on_it = |other: &&JobView| other.target == *target && other.shown.status.is_live();
    model.jobs().iter().filter(on_it).map(|other| other.id.clone()).collect()
}

fn choose_rule(model: &mut Model) {
    let Some(job) = model.selected() else { return };
    let now = job.rules.name();
    let options: Vec<(String, String)> = NAMED
        .iter()
        .map(|name| ((*name).to_owned(), in_words(&Rules::named(name).unwrap_or_default())))
        .collect();
    let at = options.iter().position(|(name, _)| Some(name.as_str()) == now).unwrap_or(0);
    let title = format!("What happens by itself when {} fails?", job.id);
    let of = ChoiceOf::Rule(job.id.clone());
    model.overlay = Some(Overlay::Choice(Choice { title, options, at, of }));
}

/// `preempted: reapply, grpc: resume`; what passes is left out.
pub(super) fn in_words(rules: &Rules) -> String {
    let acts = rules.iter().filter(|(_, action)| *action != crate::model::rules::Action::Pass);
    let words: Vec<String> = acts.map(|(kind, action)| format!("{kind}: {action}")).collect();
    if words.is_empty() { "nothing, whatever happens".to_owned() } else { words.join(", ") }
}

/// The rule that was chosen.
pub(super) fn set_rule(model: &mut Model, job: &JobId, rule: &str) -> Vec<Effect> {
    act(model, Act::Commands(vec![about(job, &["set-rule", rule])]))
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
    if dry {
        return confirm_with_plan(model, vec![words], Vec::new(), None);
    }
    confirm(model, vec![words], Vec::new(), None, None);
    Vec::new()
}

/// Starts the run that the form describes.
pub(super) fn start(model: &mut Model, words: Vec<String>) -> Vec<Effect> {
    form::close(model);
    list::set_filter(model, model.list.filter.clone());
    act(model, Act::Commands(vec![words]))
}
