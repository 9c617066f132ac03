//! The form of a new run: filling in, proposals, the plan, the start.

use crossterm::event::{Event, KeyEvent};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler as _;

use super::{act, complain, list, note, rules};
use crate::keys::{Command, Key};
use crate::message::{Act, Answer, Ask, Choices, Effect, Problem, Proposal};
use crate::model::{FIELDS, FieldId, Form, Model, NewRun, Overlay, SWEEPS};
use crate::tabs::Tab;
use tpu_core::model::facts::TargetState;
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::rules::{NAMED, Rules};
use tpu_core::model::time;
use tpu_core::plan::board::{Row, Standing};
use tpu_ops::act::board::Board;

/// Opens the form; what the selected job was started with is proposed.
pub(super) fn open(model: &mut Model) -> Vec<Effect> {
    let selected = model.selected();
    let user =
        selected.map(|job| job.id.user.clone()).or_else(|| model.scope.whose.only().cloned());
    let user = user.or_else(|| model.snapshot.as_ref()?.users.first().cloned());
    let Some(user) = user else {
        note(model, "There is no user yet: tpu init".to_owned());
        return Vec::new();
    };
    let dir = selected.and_then(|job| job.dir.0).map(|slot| slot.to_string()).unwrap_or_default();
    let target = match model.tab {
        Tab::Targets => chosen_target(model),
        _ => selected.map(|job| job.target_label.clone()),
    };
    // What stands there is a proposal: the cursor is behind it, and Ctrl-U clears it.
    let form = Form::new(user.clone(), &[&target.unwrap_or_default(), &dir]);
    model.overlay = Some(Overlay::Form(Box::new(form)));
    vec![Effect::Ask(Ask::Choices(user))]
}

/// Asks what the selected job was started with, for a form that is filled in so.
pub(super) fn ask_like(model: &mut Model) -> Vec<Effect> {
    let Some(job) = model.selected().map(|job| job.id.clone()) else { return Vec::new() };
    vec![Effect::Ask(Ask::Precedent(job))]
}

/// Opens the form as a job was started, unless something else has been opened meanwhile.
pub(super) fn like(
    model: &mut Model,
    id: &JobId,
    answer: Result<Box<Answer>, Problem>,
) -> Vec<Effect> {
    let precedent = match answer.map(|answer| *answer) {
        Ok(Answer::Precedent(precedent)) => *precedent,
        // An answer to another question says nothing.
        Ok(_) => return Vec::new(),
        Err(problem) => {
            complain(model, problem);
            return Vec::new();
        }
    };
    let Some(job) = model.job(id).filter(|_| model.overlay.is_none()) else { return Vec::new() };
    let form = Form::like(id.user.clone(), job.id.to_string(), precedent);
    model.overlay = Some(Overlay::Form(Box::new(form)));
    vec![Effect::Ask(Ask::Choices(id.user.clone()))]
}

/// Fills the form in from the file that is named in it, unless somebody has gone on meanwhile.
pub(super) fn from_file(
    model: &mut Model,
    user: &UserName,
    file: &str,
    answer: Result<Box<Answer>, Problem>,
) {
    let precedent = match answer.map(|answer| *answer) {
        Ok(Answer::Precedent(precedent)) => *precedent,
        // An answer to another question says nothing.
        Ok(_) => return,
        Err(problem) => return complain(model, problem),
    };
    if let Some(Overlay::Form(form)) = &mut model.overlay
        && form.user == *user
        && form.file() == Some(file)
    {
        form.fill_in(file, precedent);
    }
}

fn chosen_target(model: &Model) -> Option<String> {
    let row = model.boards.chosen(Tab::Targets)?;
    let item = model.boards.targets.seen.as_ref()?.targets.get(row.at)?;
    Some(item.label.clone())
}

/// Takes in what the fields may be filled with.
pub(super) fn choices(model: &mut Model, user: &UserName, mut choices: Choices) {
    choices.targets = model.boards.targets.seen.as_ref().map(targets).unwrap_or_default();
    choices.rules = NAMED
        .iter()
        .map(|name| Proposal {
            value: (*name).to_owned(),
            note: rules::in_words(&Rules::named(name).unwrap_or_default()),
        })
        .collect();
    choices.sweeps = SWEEPS
        .map(|(word, note)| Proposal { value: word.to_owned(), note: note.to_owned() })
        .to_vec();
    if let Some(Overlay::Form(form)) = &mut model.overlay
        && form.user == *user
    {
        form.choices = Some(choices);
    }
}

/// Targets that became known while the form was open.
pub(super) fn refresh(model: &mut Model) {
    let known = model.boards.targets.seen.as_ref().map(targets);
    if let (Some(Overlay::Form(form)), Some(known)) = (&mut model.overlay, known)
        && let Some(choices) = &mut form.choices
    {
        choices.targets = known;
    }
}

/// Targets with how they are, free ones first.
fn targets(board: &Board) -> Vec<Proposal> {
    let mut rows: Vec<_> = board.targets.iter().filter(|row| row.is_known).collect();
    rows.sort_by_key(|row| (row.standing != Standing::Free, row.standing != Standing::Reserved));
    let proposal = |row: &Row| {
        let state = match row.fact.state {
            TargetState::NotWatched => String::new(),
            _ => row.fact.raw_state.to_lowercase(),
        };
        let jobs: Vec<String> = row.jobs.iter().map(ToString::to_string).collect();
        let since = row.fact.since.map(|at| time::age(board.at.seconds_since(at)));
        let who = match (&row.user, row.standing) {
            _ if !jobs.is_empty() => format!("in use by {}", jobs.join(", ")),
            (Some(user), Standing::Reserved | Standing::Running | Standing::Error) => {
                format!("{} by {user}", row.standing.as_str())
            }
            _ => String::new(),
        };
        let full = if row.label == row.target.as_str() { "" } else { row.target.as_str() };
        let parts = [
            full.to_owned(),
            state,
            since.unwrap_or_default(),
            row.zone.clone().unwrap_or_default(),
            who,
        ];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        Proposal { value: row.label.clone(), note: parts.join(" · ") }
    };
    rows.into_iter().map(proposal).collect()
}

pub(super) fn command(model: &mut Model, command: Command) -> Vec<Effect> {
    // Taken off while it is handled; put back unless it is done.
    let Some(Overlay::Form(mut form)) = model.overlay.take() else { return Vec::new() };
    let count = FIELDS.len();
    let mut effects = Vec::new();
    match command {
        Command::NextField => {
            take_pick(&mut form);
            form.at = (form.at + 1) % count;
        }
        Command::PreviousField => form.at = (form.at + count - 1) % count,
        Command::Down | Command::Up => {
            let proposals = form.proposals().len();
            form.pick = match (form.pick, command == Command::Down) {
                _ if proposals == 0 => None,
                (None, true) => Some(0),
                (None, false) => Some(proposals - 1),
                (Some(at), true) => (at + 1 < proposals).then_some(at + 1),
                (Some(at), false) => at.checked_sub(1),
            };
        }
        Command::Accept if form.pick.is_some() => {
            let config = form.field() == FieldId::Configs;
            take_pick(&mut form);
            // An alias wants its value now; any other field is complete.
            if !config {
                form.at = (form.at + 1) % count;
            }
        }
        Command::Accept if form.file().is_some() => {
            let file = form.file().map(str::to_owned).unwrap_or_default();
            effects.push(Effect::Ask(Ask::FileOfForm(form.user.clone(), file)));
        }
        Command::Accept => {
            complete_target(&mut form);
            match form.act() {
                Err(problem) => complain(model, problem),
                // The very plan that is on the screen.
                Ok(act) if matches!(&form.plan, Some((of, Ok(_))) if *of == act) => {
                    return start(model, act);
                }
                Ok(act) => {
                    form.plan = None;
                    form.waiting = Some(act.clone());
                    effects.push(Effect::Ask(Ask::Would(Box::new(act))));
                }
            }
        }
        _ => return Vec::new(),
    }
    form.pick = form.pick.filter(|_| matches!(command, Command::Down | Command::Up));
    model.overlay = Some(Overlay::Form(form));
    effects
}

/// Begins what the form describes.
fn start(model: &mut Model, described: Act) -> Vec<Effect> {
    model.overlay = None;
    list::set_filter(model, model.list.filter.clone());
    model.list.begun = Some(NewRun { from: model.list.selected.clone(), job: None });
    act(model, described)
}

fn take_pick(form: &mut Form) {
    let picked = form.pick.and_then(|at| form.proposals().into_iter().nth(at));
    if let Some(proposal) = picked {
        form.take(&proposal);
    }
}

/// A part of a name that means one target is that target; a part of a path, that slot.
fn complete_target(form: &mut Form) {
    let before = form.at;
    for (at, (id, ..)) in FIELDS.iter().enumerate() {
        if !matches!(id, FieldId::Target | FieldId::Dir | FieldId::Queue)
            || form.text(*id).is_empty()
            || form.is_kept(*id)
        {
            continue;
        }
        form.at = at;
        let proposals = form.proposals();
        let exact = proposals.iter().any(|proposal| proposal.value == form.text(*id));
        if let ([only], false) = (proposals.as_slice(), exact) {
            form.take(only);
        }
    }
    form.at = before;
}

/// The plan came.
pub(super) fn planned(model: &mut Model, asked: &Ask, answer: Result<String, Problem>) {
    let (Some(Overlay::Form(form)), Ask::Would(act)) = (&mut model.overlay, asked) else { return };
    let Some(waiting) = form.waiting.take_if(|waiting| waiting == &**act) else { return };
    form.plan = Some((waiting, answer));
}

/// A key that is text for the field.
pub(super) fn typed(form: &mut Form, key: Key) {
    if let Some(input) = form.inputs.get_mut(form.at) {
        input.handle_event(&Event::Key(KeyEvent::new(key.code(), key.modifiers())));
        form.pick = None;
    }
}

/// The text of the field being filled in.
pub(super) fn input(form: &mut Form) -> Option<&mut Input> {
    let at = form.at;
    form.inputs.get_mut(at)
}
