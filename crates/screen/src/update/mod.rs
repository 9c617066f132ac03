//! `update`: what each message does to the model, and what is to be done outside because of it.
//!
//! Pure: no I/O and no clock; the instant comes in with the message.

mod actions;
mod board;
mod chart;
mod choice;
mod chooser;
mod confirm;
mod copy;
mod dialog;
mod form;
mod help;
mod line;
mod list;
mod log;
mod mouse;
mod page;
mod queue;
mod rules;
mod usage;

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::keys::{Command, Context, Key};
use super::message::{Act, Answer, Ask, Door, Effect, Message, Problem, Ticket};
use super::model::{Model, Tells, Toast};
use super::pane::PaneText;
use super::rows::Row;
use super::trace;
use super::view::layout::Layout;
use super::view::offered;
use tpu_core::model::groups;
use tpu_core::model::ids::JobId;
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::{JobView, Snapshot};

/// Seconds for which a result is shown.
const GOOD_TOAST_S: i64 = 5;
/// Seconds for which a failure is shown: it has a remedy to read.
const BAD_TOAST_S: i64 = 20;
/// More toasts than this hide what they are about.
const MOST_TOASTS: usize = 3;

/// Changes the model by one message that came at `now`.
pub fn update(model: &mut Model, message: Message, now: Timestamp) -> Vec<Effect> {
    let second_passed = now != model.now;
    model.now = now;
    let mut effects = match message {
        Message::Tick => {
            tick(model, second_passed);
            if second_passed { refresh_text(model) } else { Vec::new() }
        }
        other => {
            model.changed = true;
            dispatch(model, other)
        }
    };
    settle(model);
    effects.extend(want_pane(model));
    effects.extend(board::wants(model));
    effects
}

fn dispatch(model: &mut Model, message: Message) -> Vec<Effect> {
    match message {
        Message::Key(key) => press(model, key),
        Message::Paste(text) => {
            dialog::paste(model, &text);
            Vec::new()
        }
        Message::Mouse(mouse) => mouse::did(model, mouse),
        Message::Answer(Ask::Precedent(job), answer) => form::like(model, &job, answer),
        Message::Answer(Ask::FileOfForm(user, file), answer) => {
            form::from_file(model, &user, &file, answer);
            Vec::new()
        }
        Message::Answer(ask, answer) => {
            answered(model, ask, answer);
            Vec::new()
        }
        Message::Resize(columns, rows) => {
            model.size = (columns, rows);
            Vec::new()
        }
        Message::Tick => Vec::new(),
        // A look that was under way when the scope changed.
        Message::Looked(snapshot) if snapshot.whose != model.scope.whose => Vec::new(),
        Message::Looked(snapshot) => {
            looked(model, *snapshot);
            refresh_text(model)
        }
        Message::LookFailed(problem) => {
            model.problem = Some(problem);
            Vec::new()
        }
        Message::Caption(lines) => {
            model.caption = lines;
            Vec::new()
        }
        Message::Pane(job, answer) => {
            pane(model, &job, answer);
            Vec::new()
        }
        Message::Log(job, answer) => {
            log::answered(model, &job, answer);
            Vec::new()
        }
        Message::Done { ticket, toast, began } => {
            model.warned = false;
            if let (Some(begun), Some(job)) = (&mut model.list.begun, began) {
                begun.job = Some(job);
            }
            let act = model.running.iter().find(|(running, _)| *running == ticket);
            let act = act.map(|(_, act)| act.clone());
            model.running.retain(|(running, _)| *running != ticket);
            // What has failed stays marked: it can be tried again.
            if let Some(Act::Resume(job) | Act::Rerun(job)) = &act {
                model.list.marked.remove(job);
            }
            if act.as_ref().is_some_and(Act::changes_queue) {
                model.boards.queue.wanted = true;
            }
            if let Some(Act::Drain(_) | Act::Undrain(_)) = &act {
                model.boards.targets.wanted = true;
            }
            // An action that needs no words (going to a window and back) has none.
            match act {
                _ if toast.trim().is_empty() => {}
                Some(act) if toast.lines().count() > page::LONGEST_TOAST => {
                    page::show(model, act.progressive(), toast);
                }
                _ => result(model, toast),
            }
            vec![Effect::Look]
        }
        Message::Failed { ticket, problem } => {
            model.warned = false;
            model.running.retain(|(running, _)| *running != ticket);
            complain(model, problem);
            vec![Effect::Look]
        }
    }
}

/// A key: first what the table says, then text for whatever is being typed.
fn press(model: &mut Model, key: Key) -> Vec<Effect> {
    let context = model.context();
    let command = model.setup.keys.command(context, key);
    let sensible = command.filter(|command| {
        let lines = model.setup.keys.lines(context);
        lines
            .into_iter()
            .any(|(line, _)| line.command == *command && offered::is_offered(model, line.needs))
    });
    if let Some(command) = sensible {
        return command_of(model, command);
    }
    if command.is_none()
        && model.help.is_none()
        && let Some(effects) = actions::plan_by_key(model, key)
    {
        return effects;
    }
    if let Some(keys) =
        key.split_alt().filter(|_| command.is_none() && !dialog::edits_with(model, key))
    {
        return keys.into_iter().flat_map(|key| press(model, key)).collect();
    }
    dialog::typed(model, key);
    let nothing_lies_over = model.overlay.is_none() && model.help.is_none();
    if command.is_none() && nothing_lies_over && key.is_character() {
        let help = model.setup.key(context, Command::Help);
        let label = key.label(model.setup.ascii);
        note(model, format!("{label} is no key here; {help} lists those that are."));
    }
    Vec::new()
}

fn command_of(model: &mut Model, command: Command) -> Vec<Effect> {
    match (command, model.context()) {
        (Command::Quit, _) => {
            leave(model);
            Vec::new()
        }
        (Command::Suspend, _) => suspend(model),
        (Command::Redraw, _) => {
            model.boards.look_again();
            vec![Effect::Redraw, Effect::Look]
        }
        (Command::Help, _) => {
            help::open(model);
            Vec::new()
        }
        (Command::Theme, _) => {
            let next = model.setup.theme.next();
            let name = next.name();
            model.setup.theme = next;
            note(model, format!("Theme {name}. To keep it: tpu set-settings theme {name}"));
            Vec::new()
        }
        (Command::Mouse, _) => {
            model.mouse = !model.mouse;
            let text = if model.mouse {
                "The mouse is taken: click, wheel, drag."
            } else {
                "The mouse is released: select text as usual; the same key takes it again."
            };
            note(model, text.to_owned());
            vec![Effect::Mouse(model.mouse)]
        }
        (Command::CommandLine, _) => line::open(model),
        (Command::Copy, Context::List | Context::Detail | Context::Targets) => copy::open(model),
        (command, Context::CommandLine) => line::command(model, command),
        (command, Context::Form) => form::command(model, command),
        (command, Context::Page) => page::command(model, command),
        (command, Context::Choice) => choice::command(model, command),
        (command, Context::Columns) => chooser::command(model, command),
        (command, Context::Log) => log::command(model, command),
        (command, Context::List | Context::Detail) => board::any(model, command)
            .or_else(|| queue::command(model, command))
            .or_else(|| queue::refuses(model, command).then(Vec::new))
            .or_else(|| actions::command(model, command))
            .unwrap_or_else(|| list::command(model, command)),
        (command, Context::Targets | Context::Queue | Context::Events | Context::Plan) => {
            board::any(model, command)
                .or_else(|| queue::command(model, command))
                .unwrap_or_else(|| board::command(model, command))
        }
        (command, Context::Usage) => board::any(model, command)
            .or_else(|| usage::command(model, command).then(Vec::new))
            .unwrap_or_else(|| board::command(model, command)),
        (
            command,
            Context::Confirm
            | Context::Tag
            | Context::Filter
            | Context::Search
            | Context::LogFilter,
        ) => dialog::command(model, command),
        (command, Context::Help | Context::HelpSearch) => {
            help::command(model, command);
            Vec::new()
        }
    }
}

/// Where a command that moves goes from `row` in a list that ends with `last`; `None` for any other command.
fn moved(command: Command, row: usize, last: usize, page: usize) -> Option<usize> {
    Some(match command {
        Command::Up => row.saturating_sub(1),
        Command::Down => (row + 1).min(last),
        Command::PageUp => row.saturating_sub(page),
        Command::PageDown => (row + page).min(last),
        Command::Top => 0,
        Command::Bottom => last,
        _ => return None,
    })
}

/// Takes in what was read.
fn answered(model: &mut Model, ask: Ask, answer: Result<Box<Answer>, Problem>) {
    let now = model.now;
    let answer = answer.map(|answer| *answer);
    model.boards.changed();
    match (ask, answer) {
        (Ask::Targets, Ok(Answer::Targets(seen))) => {
            model.boards.targets.answered(Ok(seen), now);
            form::refresh(model);
        }
        (Ask::Targets, Err(problem)) => model.boards.targets.answered(Err(problem), now),
        (Ask::Figures, Ok(Answer::Figures(seen))) => model.boards.figures.answered(Ok(seen), now),
        (Ask::Figures, Err(problem)) => model.boards.figures.answered(Err(problem), now),
        (Ask::Queue, Ok(Answer::Queue(seen))) => model.boards.queue.answered(Ok(seen), now),
        (Ask::Queue, Err(problem)) => model.boards.queue.answered(Err(problem), now),
        (Ask::Events, Ok(Answer::Events(seen))) => model.boards.events.answered(Ok(seen), now),
        (Ask::Events, Err(problem)) => model.boards.events.answered(Err(problem), now),
        (Ask::Plan, Ok(Answer::Plan(seen))) => model.boards.plan.answered(Ok(seen), now),
        (Ask::Plan, Err(problem)) => model.boards.plan.answered(Err(problem), now),
        (Ask::Usage(question), Ok(Answer::Usage(report))) => {
            usage::answered(model, question, Ok(*report));
        }
        (Ask::Usage(question), Err(problem)) => usage::answered(model, question, Err(problem)),
        (Ask::Curves(job), answer) => {
            let curves = match answer {
                Ok(Answer::Curves(curves)) => Some(curves),
                // What was read before is still so.
                Ok(_) | Err(_) => None,
            };
            let Some(job) = model.jobs().iter().find(|known| known.id == job).cloned() else {
                return;
            };
            let trace = model.traces.entry(&job);
            trace.waiting = false;
            trace.read = Some(now);
            if let Some(curves) = curves {
                trace.curves = curves;
            }
        }
        (Ask::Choices(user), Ok(Answer::Choices(choices))) => form::choices(model, &user, choices),
        (Ask::Choices(_), Err(problem)) => complain(model, problem),
        (Ask::Remembered(_), Ok(Answer::Remembered(lines))) => line::remembered(model, lines),
        (asked @ (Ask::Explain(_) | Ask::Would(_) | Ask::Say(_)), Ok(Answer::Text(text))) => {
            page::said(model, &asked, Ok(text));
        }
        (asked @ (Ask::Explain(_) | Ask::Would(_) | Ask::Say(_)), Err(problem)) => {
            page::said(model, &asked, Err(problem));
        }
        // An answer to another question than the one asked says nothing; and without the lines of other
        // sessions those of this one are still there.
        (_, Ok(_)) | (Ask::Remembered(_) | Ask::Precedent(_) | Ask::FileOfForm(..), Err(_)) => {}
    }
}

/// Leaves, or says what is under way; asked again, it leaves all the same. Nothing is left half-way by that.
fn leave(model: &mut Model) {
    let act = under_way(model).or_else(|| model.running.last().map(|(_, act)| act));
    let Some(act) = act.filter(|_| !model.warned) else {
        model.quit = true;
        return;
    };
    let then = if act.is_apart() {
        "leaves; it goes on, and nobody sees what it says"
    } else {
        "leaves as soon as that is done"
    };
    let text = format!("Still {}. The same key again {then}.", act.progressive());
    model.warned = true;
    note(model, text);
}

/// What this very process carries out and must not leave half-way.
fn under_way(model: &Model) -> Option<&Act> {
    model.running.iter().rev().map(|(_, act)| act).find(|act| !act.is_apart())
}

/// Stops the screen, unless what it does meanwhile would stop with it: others wait for what that holds.
fn suspend(model: &mut Model) -> Vec<Effect> {
    let Some(act) = under_way(model) else { return vec![Effect::Suspend] };
    let text = format!("Still {}: the screen can be stopped once that is done.", act.progressive());
    note(model, text);
    Vec::new()
}

/// Takes over a new look. The selection stays with its job, or with the attempt that continues it.
fn looked(model: &mut Model, snapshot: Snapshot) {
    model.problem = None;
    let row = model.selected_row();
    model.traces.looked(&snapshot.jobs, model.now);
    model.snapshot = Some(snapshot);
    model.boards.changed();
    list::measure(model);
    list::rebuild(model, row);
    select_begun(model);
    let known: HashSet<JobId> = model.jobs().iter().map(|job| job.id.clone()).collect();
    model.list.marked.retain(|id| known.contains(id));
}

/// Selects what was begun from the form, once it has a row, unless somebody has gone on to something else.
fn select_begun(model: &mut Model) {
    let Some(begun) = &model.list.begun else { return };
    let Some(job) = &begun.job else { return };
    let is_it = |seen: &&JobView| seen.id == *job || groups::of(seen).as_ref() == Some(job);
    let Some(seen) = model.jobs().iter().find(is_it) else { return };
    let stands_for = |at: &usize| model.jobs().get(*at).is_some_and(|one| one.id == seen.id);
    let row = model.list.rows.iter().find(|row| {
        row.can_be_chosen() && (row.id == seen.id || row.members.iter().any(stands_for))
    });
    let row = row.filter(|_| begun.from == model.list.selected && !model.wide);
    let selected = row.map(|row| row.id.clone());
    model.list.begun = None;
    model.list.selected = selected.or(model.list.selected.take());
}

fn pane(model: &mut Model, job: &JobId, answer: Result<Option<PaneText>, Problem>) {
    if model.live.job.as_ref() == Some(job) {
        model.live.waiting = false;
        // A failed question leaves what was seen before; the header says that the look is old.
        if let Ok(text) = answer {
            model.live.text = text;
        }
    }
}

/// What goes by with time: toasts, the spinner, the clock.
fn tick(model: &mut Model, second_passed: bool) {
    let now = model.now;
    let before = model.toasts.len();
    model.toasts.retain(|toast| toast.until > now);
    if !model.running.is_empty() {
        model.spinner = model.spinner.wrapping_add(1);
    }
    model.changed |= second_passed || before != model.toasts.len() || !model.running.is_empty();
}

/// Asks again for the text that is on the screen.
fn refresh_text(model: &mut Model) -> Vec<Effect> {
    if model.log.is_some() { log::ask(model).into_iter().collect() } else { ask_pane(model) }
}

/// Asks for the selected job's pane, unless an answer is still awaited or nobody would see it.
fn ask_pane(model: &mut Model) -> Vec<Effect> {
    let Some(lines) = Layout::of(model).detail.map(|area| u32::from(area.height)) else {
        return Vec::new();
    };
    let alive = model.selected().is_some_and(|job| job.window_alive != Some(false));
    match (&model.live.job, model.live.waiting) {
        (Some(job), false) if alive => {
            let job = job.clone();
            model.live.waiting = true;
            vec![Effect::Pane { job, lines }]
        }
        _ => Vec::new(),
    }
}

/// The first row on the screen, near `top`, where the row `at` is one of the `height` that are seen.
fn in_sight(top: usize, at: usize, height: usize, rows: usize) -> usize {
    let lowest = (at + 1).saturating_sub(height);
    let last = rows.saturating_sub(height);
    top.clamp(lowest, at.max(lowest)).min(last.max(lowest))
}

/// Puts the model in order after a message: rows on the screen, and whose pane is shown.
fn settle(model: &mut Model) {
    let height = Layout::of(model).list_rows().max(1);
    let selected = model.selected_row().unwrap_or(0);
    let list = &mut model.list;
    list.top = in_sight(list.top, selected, height, list.rows.len());
    // The head of a group is part of its first row.
    if list.top > 0 && list.top == selected && list.rows.get(list.top - 1).is_some_and(Row::is_head)
    {
        list.top -= 1;
    }
    log::settle(model);
    board::settle(model);
    // Another run's curves are looked at from their begin.
    let charted = model.selected().filter(|_| model.wide).map(trace::key_of);
    if model.charted != charted {
        model.chart.begin_anew();
        model.charted = charted;
    }
}

/// A new selection needs its own pane.
fn want_pane(model: &mut Model) -> Vec<Effect> {
    let selected = model.selected().map(|job| job.id.clone());
    if model.log.is_some() || model.live.job == selected {
        return Vec::new();
    }
    model.live = super::model::Live { job: selected, ..Default::default() };
    ask_pane(model)
}

/// Begins an action, unless the very same is under way.
fn act(model: &mut Model, act: Act) -> Vec<Effect> {
    act_each(model, vec![act])
}

/// The same for several actions at once.
fn act_each(model: &mut Model, acts: Vec<Act>) -> Vec<Effect> {
    let mut begun = Vec::new();
    for act in acts {
        if model.running.iter().any(|(_, running)| *running == act) {
            note(model, format!("Already {}.", act.progressive()));
            continue;
        }
        let ticket = ticket(model);
        model.running.push((ticket, act.clone()));
        begun.push((ticket, act));
    }
    if begun.is_empty() { Vec::new() } else { vec![Effect::Act(begun)] }
}

/// Leaves the terminal to something else.
fn leave_to(model: &mut Model, door: Door) -> Vec<Effect> {
    let ticket = ticket(model);
    vec![Effect::Leave { ticket, door }]
}

fn ticket(model: &mut Model) -> Ticket {
    model.next_ticket += 1;
    Ticket(model.next_ticket)
}

fn result(model: &mut Model, text: String) {
    let until = model.now.plus_seconds(GOOD_TOAST_S);
    toast(model, Toast { text, hint: None, tells: Tells::Result, until });
}

fn note(model: &mut Model, text: String) {
    let until = model.now.plus_seconds(GOOD_TOAST_S);
    toast(model, Toast { text, hint: None, tells: Tells::Note, until });
}

pub(super) fn complain(model: &mut Model, problem: Problem) {
    let until = model.now.plus_seconds(BAD_TOAST_S);
    let hint = problem.hint.map(|hint| in_keys(model, &hint));
    toast(model, Toast { text: problem.message, hint, tells: Tells::Failure, until });
}

/// A remedy as it is followed here: the command that stops a job is a key.
fn in_keys(model: &Model, hint: &str) -> String {
    static STOP: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"tpu kill w=(\d+) (\S+?)([;),]|$)").expect("the pattern is a constant")
    });
    let key = model.setup.key(Context::List, Command::Kill);
    if key.is_empty() {
        return hint.to_owned();
    }
    STOP.replace_all(hint, |found: &Captures<'_>| {
        format!("{key} on {}/{}{}", &found[2], &found[1], &found[3])
    })
    .into_owned()
}

fn toast(model: &mut Model, toast: Toast) {
    model.toasts.retain(|other| other.text != toast.text);
    model.toasts.push(toast);
    let surplus = model.toasts.len().saturating_sub(MOST_TOASTS);
    model.toasts.drain(..surplus);
}
