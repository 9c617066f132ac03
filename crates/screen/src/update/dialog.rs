//! What lies over the tab: questions and prompts.

use crossterm::event::{Event, KeyEvent, KeyModifiers};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler as _;

use super::{act, act_each, board, form, list, log};
use crate::keys::{Command, Context, Key};
use crate::message::{Act, Effect};
use crate::model::{Confirm, Model, Overlay};
use tpu_core::model::groups;
use tpu_core::model::view::JobView;
use tpu_core::plan::filter::Filter;

/// More than this is no filter, search or tag, but a paste that went astray.
const LONGEST_INPUT: usize = 1_000;

pub(super) fn command(model: &mut Model, command: Command) -> Vec<Effect> {
    // Taken off while it is handled; put back unless it is done.
    let Some(overlay) = model.overlay.take() else { return Vec::new() };
    match overlay {
        Overlay::Confirm(confirm) => return answer(model, confirm, command),
        Overlay::Tag(job, input) => {
            if command == Command::Accept {
                let tag = |id| Act::Tag(id, input.value().trim().to_owned());
                let is_in = |other: &&JobView| {
                    let has_begun = other.leaf && !other.is_queued();
                    has_begun && groups::of(other).as_ref() == Some(&job)
                };
                let members =
                    model.jobs().iter().filter(is_in).map(|member| tag(member.id.clone()));
                let members: Vec<Act> = members.collect();
                return if members.is_empty() {
                    act(model, tag(job))
                } else {
                    act_each(model, members)
                };
            }
        }
        Overlay::Filter(input, before) => match command {
            Command::Accept => list::set_filter(model, Filter::parse(input.value())),
            Command::Up | Command::Down => {
                model.overlay = Some(Overlay::Filter(input, before));
                list::command(model, command);
            }
            _ => list::set_filter(model, before),
        },
        Overlay::Search(input) => {
            if command == Command::Accept {
                log::search(model, input.value());
            }
        }
        Overlay::LogFilter(input) => {
            if command == Command::Accept {
                log::filter(model, input.value());
            }
        }
        Overlay::BoardFilter(input, before) => match command {
            Command::Accept => {}
            Command::Up | Command::Down => {
                model.overlay = Some(Overlay::BoardFilter(input, before));
                board::command(model, command);
            }
            _ => board::set_filter(model, before),
        },
        // These have files of their own.
        Overlay::Page(_)
        | Overlay::Choice(_)
        | Overlay::Columns(_)
        | Overlay::CommandLine(_)
        | Overlay::Form(_) => {}
    }
    Vec::new()
}

fn answer(model: &mut Model, mut confirm: Confirm, command: Command) -> Vec<Effect> {
    let yes = match command {
        Command::Yes => true,
        Command::Press => confirm.yes,
        Command::OtherButton => {
            confirm.yes = !confirm.yes;
            model.overlay = Some(Overlay::Confirm(confirm));
            return Vec::new();
        }
        Command::Down | Command::Up => {
            let last = confirm.jobs.len().saturating_sub(1);
            let step = if command == Command::Down { 1 } else { -1 };
            confirm.top = confirm.top.saturating_add_signed(step).min(last);
            model.overlay = Some(Overlay::Confirm(confirm));
            return Vec::new();
        }
        _ => false,
    };
    if !yes {
        return Vec::new();
    }
    if let Act::Kill(_) | Act::TakeOut { .. } = &confirm.act {
        model.list.marked.retain(|id| !confirm.jobs.contains(id));
    }
    match confirm.act {
        // One act for each.
        Act::Rerun(_) => act_each(model, confirm.jobs.into_iter().map(Act::Rerun).collect()),
        one => act(model, one),
    }
}

/// Whether a key with Alt edits what is being typed (by words) or takes it away.
pub(super) fn edits_with(model: &Model, key: Key) -> bool {
    use crossterm::event::KeyCode;
    let typing = matches!(
        model.context(),
        Context::Filter
            | Context::Tag
            | Context::Search
            | Context::LogFilter
            | Context::CommandLine
            | Context::Form
            | Context::HelpSearch
    );
    let by_words = matches!(
        key.code(),
        KeyCode::Char('b' | 'f' | 'd')
            | KeyCode::Backspace
            | KeyCode::Delete
            | KeyCode::Left
            | KeyCode::Right
    );
    typing && by_words
}

/// A key without a meaning of its own: text, where something is being typed.
pub(super) fn typed(model: &mut Model, key: Key) {
    if model.help.is_none()
        && let Some(Overlay::Form(form)) = &mut model.overlay
    {
        form::typed(form, key);
        return;
    }
    let event = Event::Key(KeyEvent::new(key.code(), key.modifiers()));
    edit(model, |input| {
        let plain = key.modifiers() - KeyModifiers::SHIFT == KeyModifiers::NONE;
        if input.value().chars().count() < LONGEST_INPUT || !plain {
            input.handle_event(&event);
        }
    });
}

/// Pasted text: into what is being typed, else nowhere.
pub(super) fn paste(model: &mut Model, text: &str) {
    edit(model, |input| {
        let room = LONGEST_INPUT.saturating_sub(input.value().chars().count());
        // Put in at once: character by character a long text would be copied as often.
        let clean: String =
            text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(room).collect();
        let at = input.cursor();
        let (before, after): (Vec<char>, Vec<char>) = {
            let all: Vec<char> = input.value().chars().collect();
            let (before, after) = all.split_at(at.min(all.len()));
            (before.to_vec(), after.to_vec())
        };
        let cursor = before.len() + clean.chars().count();
        let value: String = before.into_iter().chain(clean.chars()).chain(after).collect();
        *input = Input::new(value).with_cursor(cursor);
    });
}

/// Edits what is being typed; a filter acts while it is typed.
fn edit(model: &mut Model, change: impl FnOnce(&mut Input)) {
    if let Some(help) = &mut model.help {
        if help.typing {
            change(&mut help.search);
            help.top = 0;
        }
        return;
    }
    let filter = match &mut model.overlay {
        Some(Overlay::Filter(input, _)) => {
            change(input);
            Filter::parse(input.value())
        }
        Some(Overlay::Tag(_, input) | Overlay::Search(input) | Overlay::LogFilter(input)) => {
            change(input);
            return;
        }
        Some(Overlay::CommandLine(line)) => {
            change(&mut line.input);
            (line.completing, line.fetched) = (None, None);
            return;
        }
        Some(Overlay::BoardFilter(input, _)) => {
            change(input);
            let filter = input.value().to_owned();
            board::set_filter(model, filter);
            return;
        }
        Some(Overlay::Form(form)) => {
            form.pick = None;
            if let Some(input) = form::input(form) {
                change(input);
            }
            return;
        }
        Some(Overlay::Confirm(_) | Overlay::Choice(_) | Overlay::Columns(_) | Overlay::Page(_))
        | None => return,
    };
    list::set_filter(model, filter);
}
