//! What keys do to jobs and targets through the commands of `tpu`: the same words as anybody would type.

use super::board::chosen;
use super::{act, form, list, note, page};
use crate::model::ids::JobId;
use crate::model::job::Status;
use crate::model::rules::{NAMED, Rules};
use crate::model::target::LOCAL;
use crate::model::view::{JobView, MonitorHealth};
use crate::monitor::keys::Command;
use crate::monitor::message::{Act, Effect};
use crate::monitor::model::{Body, Choice, Confirm, Model, Overlay, Page};

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
            ask(model, vec![command], vec![], text);
            Vec::new()
        }
        Command::Explain => {
            let id = selected?;
            page::ask(model, format!("Why {id} is as it is"), about(&id, &["explain"]))
        }
        Command::DryPlan => dry_plan(model, &selected?),
        Command::Reapply => reapply(model)?,
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

/// Asks whether commands are to be run.
fn ask(model: &mut Model, commands: Vec<Vec<String>>, jobs: Vec<JobId>, note: &str) {
    let act = Act::Commands(commands);
    let note = (!note.is_empty()).then(|| note.to_owned());
    model.overlay = Some(Overlay::Confirm(Confirm { act, jobs, yes: true, top: 0, note }));
}

/// Starts MONITOR, or asks whether to stop it.
pub(super) fn monitor(model: &mut Model) -> Vec<Effect> {
    let words = |step: &str| vec!["daemon".to_owned(), step.to_owned()];
    match model.snapshot.as_ref().map(|snapshot| &snapshot.monitor) {
        Some(MonitorHealth::Running { .. }) => {
            let text = "Jobs go on, and nothing happens by itself any more: no job is brought back by its rule.";
            ask(model, vec![words("stop")], Vec::new(), text);
            Vec::new()
        }
        Some(MonitorHealth::NotRunning) => act(model, Act::Commands(vec![words("start")])),
        None => Vec::new(),
    }
}

/// What the next action on a job would do: what MONITOR does next, else what a key would.
pub(super) fn dry_plan(model: &mut Model, id: &JobId) -> Vec<Effect> {
    let Some(job) = model.job(id) else { return Vec::new() };
    let live = job.shown.status.is_live();
    let by_itself = job.next.as_ref().map(|next| next.action.clone()).unwrap_or_default();
    let verb = match (&job.shown.status, by_itself.as_str()) {
        _ if live => "kill",
        (_, "rerun") => "rerun",
        (Status::Error(_), _) => "resume",
        _ => "clean",
    };
    let mut words = match verb {
        "clean" => vec!["clean".to_owned(), "--user".to_owned(), id.user.as_str().to_owned()],
        verb => about(id, &[verb]),
    };
    words.push("--dry-run".to_owned());
    page::ask(model, format!("What {verb} would do; nothing is done"), words)
}

/// Asks whether the target of the selected job is to be made anew.
fn reapply(model: &mut Model) -> Option<Vec<Effect>> {
    let job = model.selected()?.clone();
    if job.target.as_str() == LOCAL {
        note(model, "`local` is this machine: there is nothing to delete and create.".to_owned());
        return Some(Vec::new());
    }
    let mut commands = vec![remake(job.target.as_str())];
    if job.leaf && job.failure().is_some() {
        commands.push(about(&job.id, &["resume"]));
    }
    let users = users_of(model, &job);
    ask(
        model,
        commands,
        users,
        "The target is deleted and created again: what is on its disk is lost.",
    );
    Some(Vec::new())
}

/// The same for the chosen target.
pub(super) fn reapply_target(model: &mut Model) -> Vec<Effect> {
    let Some(row) = chosen(model) else { return Vec::new() };
    let item =
        model.boards.targets.seen.as_ref().and_then(|seen| seen.targets.get(row.at)).cloned();
    let Some(item) = item.filter(|item| item.target.as_str() != LOCAL) else {
        note(model, "`local` is this machine: there is nothing to delete and create.".to_owned());
        return Vec::new();
    };
    let text = "The target is deleted and created again: what is on its disk is lost.";
    ask(model, vec![remake(item.target.as_str())], item.jobs, text);
    Vec::new()
}

fn remake(target: &str) -> Vec<String> {
    ["reapply", target, "--yes"].map(str::to_owned).to_vec()
}

/// The live jobs on the target of a job, as far as this screen sees them.
fn users_of(model: &Model, job: &JobView) -> Vec<JobId> {
    let on_it = |other: &&JobView| other.target == job.target && other.shown.status.is_live();
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
    let job = job.id.clone();
    model.overlay = Some(Overlay::Choice(Choice { title, job, options, at }));
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
            mark_key(model),
            jobs.len()
        );
        note(model, text);
        return;
    };
    let title = format!("{first} and {second}");
    let body = Body::Diff(Box::new((first.clone(), second.clone())));
    model.overlay = Some(Overlay::Page(Page { title, body, top: 0 }));
}

fn mark_key(model: &Model) -> String {
    let context = crate::monitor::keys::Context::List;
    let line = model.look.keys.lines(context).find(|(line, _)| line.command == Command::Mark);
    line.and_then(|(_, keys)| keys.first())
        .map(|key| key.label(model.look.ascii))
        .unwrap_or_default()
}

/// A command that was typed and destroys something: it is asked about first, with what it says that it
/// would do, if it can say so.
pub(super) fn ask_typed(model: &mut Model, mut words: Vec<String>, dry: bool) -> Vec<Effect> {
    let mut question = words.clone();
    if !words.iter().any(|word| word == "--yes" || word == "-y") {
        words.push("--yes".to_owned());
    }
    let note = if dry { "asking what it would do …" } else { "" };
    ask(model, vec![words], Vec::new(), note);
    if !dry {
        return Vec::new();
    }
    question.push("--dry-run".to_owned());
    vec![Effect::Ask(crate::monitor::message::Ask::Say(question))]
}

/// Starts the run that the form describes.
pub(super) fn start(model: &mut Model, words: Vec<String>) -> Vec<Effect> {
    form::close(model);
    list::set_filter(model, model.list.filter.clone());
    act(model, Act::Commands(vec![words]))
}
