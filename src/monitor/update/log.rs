//! The log view: scrolling, following, searching.

use tui_input::Input;

use crate::model::ids::JobId;
use crate::monitor::keys::Command;
use crate::monitor::message::{Effect, Problem};
use crate::monitor::model::{Log, Model, Overlay};
use crate::monitor::pane::PaneText;
use crate::monitor::view::layout::Layout;

/// Columns by which the arrows scroll sideways.
const SIDE_STEP: usize = 8;

/// Opens the log of the selected job at its end.
pub(super) fn open(model: &mut Model) -> Vec<Effect> {
    let Some(job) = model.selected().map(|job| job.id.clone()) else { return Vec::new() };
    model.log = Some(Log {
        job,
        text: None,
        problem: None,
        waiting: false,
        top: 0,
        left: 0,
        follow: true,
        unseen: 0,
        search: String::new(),
        hits: Vec::new(),
        hit: None,
    });
    ask(model).into_iter().collect()
}

/// Asks for the whole output again, unless an answer is still awaited.
pub(super) fn ask(model: &mut Model) -> Option<Effect> {
    let log = model.log.as_mut().filter(|log| !log.waiting)?;
    log.waiting = true;
    Some(Effect::Log { job: log.job.clone() })
}

/// Takes in the output. Whoever has scrolled up stays on the lines they read.
pub(super) fn answered(model: &mut Model, job: &JobId, answer: Result<Option<PaneText>, Problem>) {
    let Some(log) = model.log.as_mut().filter(|log| log.job == *job) else { return };
    log.waiting = false;
    let text = match answer {
        Ok(text) => {
            log.problem = None;
            // A window that has gone leaves what was read before.
            match text.or_else(|| log.text.take()) {
                Some(text) => text,
                None => return,
            }
        }
        Err(problem) => {
            log.problem = Some(problem);
            return;
        }
    };
    if let (Some(old), false) = (&log.text, log.follow) {
        let shift = text.shift_from(old).unwrap_or(0);
        let old_end = old.len().saturating_add_signed(shift);
        log.unseen += text.len().saturating_sub(old_end);
        log.top = log.top.saturating_add_signed(shift);
        log.hit = log.hit.map(|line| line.saturating_add_signed(shift));
    }
    log.text = Some(text);
    find(log);
}

pub(super) fn command(model: &mut Model, command: Command) -> Vec<Effect> {
    let height = Layout::of(model).log_rows();
    let page = height.max(2) - 1;
    let Some(log) = model.log.as_mut() else { return Vec::new() };
    let end = log.text.as_ref().map_or(0, PaneText::len).saturating_sub(height);
    match command {
        Command::Up => scroll(log, log.top.saturating_sub(1)),
        Command::PageUp => scroll(log, log.top.saturating_sub(page)),
        Command::Top => scroll(log, 0),
        // Going down never starts following by itself; reaching the end shows all there is.
        Command::Down => scroll_down(log, 1, end),
        Command::PageDown => scroll_down(log, page, end),
        Command::Bottom => log.follow = true,
        Command::Follow => log.follow = !log.follow,
        Command::Left => log.left = log.left.saturating_sub(SIDE_STEP),
        Command::Right => {
            let longest =
                log.text.iter().flat_map(|text| &text.lines).map(ratatui::text::Line::width);
            let most = longest.max().unwrap_or(0).saturating_sub(SIDE_STEP);
            log.left = (log.left + SIDE_STEP).min(most);
        }
        Command::Search => {
            model.overlay = Some(Overlay::Search(Input::new(log.search.clone())));
        }
        Command::NextHit => jump(log, true, height),
        Command::PreviousHit => jump(log, false, height),
        Command::Back => model.log = None,
        // These belong to other contexts, or were handled before.
        _ => {}
    }
    Vec::new()
}

/// Scrolls to a line and stops following.
fn scroll(log: &mut Log, top: usize) {
    log.follow = false;
    log.top = top;
}

fn scroll_down(log: &mut Log, by: usize, end: usize) {
    if !log.follow {
        log.top = (log.top + by).min(end);
    }
}

/// Searches for a text and goes to the first hit from here on.
pub(super) fn search(model: &mut Model, text: &str) {
    let height = Layout::of(model).log_rows();
    let Some(log) = model.log.as_mut() else { return };
    text.clone_into(&mut log.search);
    log.hit = None;
    find(log);
    if !log.hits.is_empty() {
        jump(log, true, height);
    }
}

/// Finds the lines that contain what is searched for: capitals count only if it has some.
fn find(log: &mut Log) {
    log.hits.clear();
    let Some(text) = log.text.as_ref().filter(|_| !log.search.is_empty()) else { return };
    let exact = log.search.chars().any(char::is_uppercase);
    log.hits.extend((0..text.len()).filter(|line| {
        let line = text.plain(*line);
        if exact { line.contains(&log.search) } else { line.to_lowercase().contains(&log.search) }
    }));
}

/// Goes to the next or previous hit, round the end if need be, and puts it in the middle.
fn jump(log: &mut Log, forward: bool, height: usize) {
    let from = log.hit;
    let next =
        log.hits.iter().copied().find(|line| from.map_or(*line >= log.top, |from| *line > from));
    let previous = log.hits.iter().copied().rfind(|line| *line < from.unwrap_or(log.top));
    let found = if forward {
        next.or(log.hits.first().copied())
    } else {
        previous.or(log.hits.last().copied())
    };
    if let Some(line) = found {
        log.hit = Some(line);
        scroll(log, line.saturating_sub(height / 2));
    }
}

/// Keeps the log on the screen: at its end while following, never below it.
pub(super) fn settle(model: &mut Model) {
    let height = Layout::of(model).log_rows();
    let Some(log) = model.log.as_mut() else { return };
    let end = log.text.as_ref().map_or(0, PaneText::len).saturating_sub(height);
    if log.follow {
        log.top = end;
        log.unseen = 0;
    }
    log.top = log.top.min(end);
}
