//! Keys on what waits in a queue: how urgent it is, its hold, its place, and taking it out.
//!
//! Each is about what stood on the screen as waiting: what has begun since is told, and left alone.

use super::confirm::confirm;
use super::{act, act_each, note, page};
use crate::keys::Command;
use crate::message::{Act, Ask, Effect};
use crate::model::Model;
use crate::tabs::Tab;
use tpu_core::model::entry::Priority;
use tpu_core::model::ids::JobId;
use tpu_core::model::view::{InQueue, JobView};

/// By so much a key makes something more or less urgent.
const STEP: i16 = 10;

/// What waits, with how it does, as it stood on the screen.
type Waiting = (JobId, InQueue);

/// What waits of that which a key is about: on its tab the chosen row, else the marked jobs, or the selected one.
fn subjects(model: &Model) -> Vec<Waiting> {
    let of = |view: &JobView| Some((view.id.clone(), view.shown.queued.clone()?));
    if model.tab == Tab::Queue {
        let row = model.boards.chosen(model.tab);
        let view = row.and_then(|row| model.jobs().get(row.at));
        return view.and_then(of).into_iter().collect();
    }
    model.subjects().into_iter().filter_map(of).collect()
}

/// Commands on what waits; `None` for any other, and where nothing does.
pub(super) fn command(model: &mut Model, command: Command) -> Option<Vec<Effect>> {
    let all = subjects(model);
    let ids = || all.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
    let is_ours = matches!(
        command,
        Command::Raise | Command::Lower | Command::HoldOrRelease | Command::First
    );
    if all.is_empty() || !is_ours && model.tab != Tab::Queue {
        return None;
    }
    Some(match command {
        Command::Raise => urgency(model, &all, STEP),
        Command::Lower => urgency(model, &all, -STEP),
        Command::HoldOrRelease if all.iter().all(|(_, queued)| queued.held) => {
            act(model, Act::Release(ids()))
        }
        Command::HoldOrRelease => {
            let free = all.iter().filter(|(_, queued)| !queued.held);
            let free = free.map(|(id, _)| id.clone()).collect();
            act(model, Act::Hold(free))
        }
        Command::First => act(model, Act::MoveFirst(ids())),
        Command::Kill => {
            let waiting = ids();
            confirm(
                model,
                Act::TakeOut { waiting: waiting.clone(), kill: Vec::new() },
                waiting,
                None,
                None,
            );
            Vec::new()
        }
        Command::Explain => {
            let id = ids().into_iter().next()?;
            page::open_awaiting(model, format!("Why {id} waits"), Ask::Explain(id))
        }
        _ => return None,
    })
}

/// Makes each more or less urgent than it is, or than a key that is being carried out makes it.
fn urgency(model: &mut Model, all: &[Waiting], by: i16) -> Vec<Effect> {
    let wished = |id: &JobId| {
        model.running.iter().rev().find_map(|(_, act)| match act {
            Act::SetPriority(of, priority) if of == id => Some(*priority),
            _ => None,
        })
    };
    let mut acts = Vec::new();
    let mut at_end = None;
    for (id, queued) in all {
        let before = wished(id).unwrap_or(queued.priority);
        let wanted = i16::from(before.number()) + by;
        let wanted = wanted.clamp(0, i16::from(Priority::MOST));
        match Priority::parse(&wanted.to_string()).filter(|priority| *priority != before) {
            Some(priority) => acts.push(Act::SetPriority(id.clone(), priority)),
            None => at_end = Some(format!("{id} has priority {before}: there is nothing beyond.")),
        }
    }
    if let Some(text) = at_end.filter(|_| acts.is_empty()) {
        note(model, text);
    }
    act_each(model, acts)
}

/// Says of a command that only a job that has begun can obey that this one waits. Whether it is so.
pub(super) fn refuses(model: &mut Model, command: Command) -> bool {
    let is_about_all = matches!(command, Command::Resume | Command::Rerun | Command::Tag);
    let is_about_one = matches!(
        command,
        Command::Log
            | Command::Attach
            | Command::Rule
            | Command::Reapply
            | Command::Solve
            | Command::Diff
    );
    let all = subjects(model);
    // The row of a group may stand for what waits beside what has ended.
    let waits = match (is_about_all, is_about_one) {
        (true, _) if all.len() == model.subjects().len() => all.into_iter().next(),
        (_, true) => {
            model.selected().and_then(|job| Some((job.id.clone(), job.shown.queued.clone()?)))
        }
        (_, _) => None,
    };
    let Some((id, queued)) = waits else { return false };
    note(model, format!("{id} has not begun; {}", queued.in_words()));
    true
}
