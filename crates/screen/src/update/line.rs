//! The command line behind `:`.

use tui_input::Input;

use super::{actions, board, complain, help, leave_to, list, note, page};
use crate::keys::Command;
use crate::message::{Ask, Door, Effect, Problem, Scope};
use crate::model::{CommandLine, Model, Overlay};
use crate::theme::Theme;
use crate::typed::{self, Names, Typed};
use crate::view::columns;
use tpu_core::model::ids::UserName;
use tpu_core::model::view::{JobView, Whose};
use tpu_ops::act::remembered;

/// Opens it, and asks for what was typed in other sessions.
pub(super) fn open(model: &mut Model) -> Vec<Effect> {
    model.overlay = Some(Overlay::CommandLine(CommandLine::default()));
    vec![Effect::Ask(Ask::Remembered(model.home.only().cloned()))]
}

/// The lines of other sessions: they stand before those of this one.
pub(super) fn remembered(model: &mut Model, mut lines: Vec<String>) {
    // Whoever goes through the lines stays where they are.
    if matches!(&model.overlay, Some(Overlay::CommandLine(line)) if line.fetched.is_some()) {
        return;
    }
    lines.retain(|line| !model.remembered.contains(line));
    lines.append(&mut model.remembered);
    model.remembered = lines;
    forget_oldest(model);
}

fn forget_oldest(model: &mut Model) {
    let surplus = model.remembered.len().saturating_sub(remembered::MOST);
    model.remembered.drain(..surplus);
}

pub(super) fn command(model: &mut Model, command: Command) -> Vec<Effect> {
    // Taken off while it is handled; put back unless it is done.
    let Some(Overlay::CommandLine(mut line)) = model.overlay.take() else { return Vec::new() };
    match command {
        Command::Complete => complete(model, &mut line),
        Command::Up | Command::Down => fetch(model, &mut line, command == Command::Up),
        Command::Accept => return accept(model, line.input.value()),
        _ => return Vec::new(),
    }
    model.overlay = Some(Overlay::CommandLine(line));
    Vec::new()
}

/// What commands may be about.
pub(crate) fn names(model: &Model) -> Names {
    let unique = |all: Vec<String>| {
        let mut all = all;
        all.sort_unstable();
        all.dedup();
        all
    };
    let jobs = model.jobs();
    let all = model.everybody();
    let job_word = |job: &JobView| {
        if all { job.id.to_string() } else { job.id.window.to_string() }
    };
    let known = model.boards.targets.seen.iter().flat_map(|seen| &seen.targets);
    let targets = known.map(|row| row.label.clone());
    Names {
        // Of several users' jobs a number alone says too little.
        windows: unique(jobs.iter().map(job_word).collect()),
        targets: unique(targets.chain(jobs.iter().map(|job| job.target_label.clone())).collect()),
        users: model
            .snapshot
            .iter()
            .flat_map(|snapshot| &snapshot.users)
            .map(|user| user.as_str().to_owned())
            .collect(),
        tags: unique(
            jobs.iter().filter_map(|job| Some(format!("tag:{}", job.tags.as_deref()?))).collect(),
        ),
        columns: columns::names(),
    }
}

/// Completes the last word: first to what all proposals share, then to one after the other.
fn complete(model: &Model, line: &mut CommandLine) {
    let known = &model.setup.commands.known;
    let (base, at) = match &line.completing {
        Some((base, at)) => (base.clone(), at + 1),
        None => (line.input.value().to_owned(), 0),
    };
    let (before, found) = typed::complete(&base, known, &names(model));
    let Some(first) = found.first() else { return };
    if let [one] = found.as_slice() {
        line.input = Input::new(format!("{before}{one} "));
        line.completing = None;
        return;
    }
    let shared = found.iter().fold(first.clone(), |shared, other| {
        let same = shared.chars().zip(other.chars()).take_while(|(a, b)| a == b);
        same.map(|(c, _)| c).collect()
    });
    let word_len = base.len() - before.len();
    if line.completing.is_none() && shared.len() > word_len {
        line.input = Input::new(format!("{before}{shared}"));
        return;
    }
    let at = at % found.len();
    let word = found.get(at).cloned().unwrap_or_default();
    line.input = Input::new(format!("{before}{word}"));
    line.completing = Some((base, at));
}

/// Fetches an earlier or a later command.
fn fetch(model: &Model, line: &mut CommandLine, earlier: bool) {
    line.completing = None;
    let next = match (line.fetched, earlier) {
        (None, true) => {
            line.input.value().clone_into(&mut line.kept);
            Some(0)
        }
        (Some(at), true) => Some(at + 1),
        (Some(at), false) => at.checked_sub(1),
        (None, false) => return,
    };
    match next {
        None => {
            line.fetched = None;
            line.input = Input::new(line.kept.clone());
        }
        Some(at) => {
            let Some(text) = model.remembered.iter().rev().nth(at) else { return };
            line.fetched = Some(at);
            line.input = Input::new(text.clone());
        }
    }
}

/// Does what was typed.
fn accept(model: &mut Model, text: &str) -> Vec<Effect> {
    let text = text.trim();
    let mut effects = Vec::new();
    if !text.is_empty() && !typed::names_a_secret(text) {
        model.remembered.retain(|other| other != text);
        model.remembered.push(text.to_owned());
        forget_oldest(model);
        effects.push(Effect::Remember(model.home.only().cloned(), text.to_owned()));
    }
    effects.extend(carry_out(model, text));
    effects
}

fn carry_out(model: &mut Model, text: &str) -> Vec<Effect> {
    let read = match typed::parse(text, model.setup.commands.nature, &columns::names()) {
        Ok(read) => read,
        Err(why) => {
            complain(model, Problem { message: why, hint: None });
            return Vec::new();
        }
    };
    match read {
        Typed::Nothing => {}
        Typed::Theme(name) => match Theme::named(&name) {
            Ok(theme) => model.setup.theme = theme,
            Err(error) => complain(model, Problem { message: error.to_string(), hint: None }),
        },
        Typed::Sort(column) => {
            let sort = column.and_then(|id| columns::sort_of(&id));
            list::set_sort(model, sort);
        }
        Typed::Group(group) => list::set_group(model, group),
        Typed::User(users) => {
            let users: Vec<UserName> =
                users.iter().map(|name| UserName::from(name.as_str())).collect();
            let known = |name: &UserName| {
                model.snapshot.as_ref().is_none_or(|snapshot| snapshot.users.contains(name))
            };
            match users.iter().find(|name| !known(name)) {
                Some(name) => note(model, format!("There is no user '{name}'.")),
                None => return board::set_scope(model, Scope { whose: Whose::of(users) }),
            }
        }
        Typed::Help => help::open(model),
        Typed::Quit => super::leave(model),
        Typed::Foreground(words) => return leave_to(model, Door::Command(words)),
        Typed::Destroy(words, dry) => return actions::confirm_typed(model, words, dry),
        Typed::Command(words) => return page::run(model, words),
    }
    Vec::new()
}
