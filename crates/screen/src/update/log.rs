//! The log view: scrolling, following, searching, choosing lines.
//!
//! Places in the log (`top`, `hits`, `hit`) count the lines that filter and worker let through.

use tui_input::Input;

use super::copy::copied;
use super::{complain, leave_to, note};
use crate::keys::Command;
use crate::log_filter::{LogFilter, LogSearch, worker_of};
use crate::message::{Door, Effect, Problem};
use crate::model::{Log, Model, Overlay};
use crate::pane::PaneText;
use crate::view::layout::Layout;
use tpu_core::model::ids::JobId;
use tpu_core::text::counted;

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
        search: LogSearch::default(),
        hits: Vec::new(),
        hit: None,
        filter: LogFilter::default(),
        worker: None,
        shown: Vec::new(),
        wrap: false,
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
    let shift = log.text.as_ref().map(|old| (text.shift_from(old).unwrap_or(0), old.len()));
    let (top, hit) = (line_at(log, log.top), log.hit.and_then(|hit| line_at(log, hit)));
    log.text = Some(text);
    choose(log);
    if let (Some((shift, old_len)), false) = (shift, log.follow) {
        let moved = |line: usize| line.saturating_add_signed(shift);
        let old_end = moved(old_len);
        log.unseen += log.shown.iter().filter(|line| **line >= old_end).count();
        log.top = top.map_or(0, |line| place_of(log, moved(line)));
        log.hit = hit.map(|line| place_of(log, moved(line)));
    }
}

/// The line of the output at a place.
fn line_at(log: &Log, place: usize) -> Option<usize> {
    log.shown.get(place).copied()
}

/// The first place at or behind a line of the output.
fn place_of(log: &Log, line: usize) -> usize {
    log.shown.partition_point(|shown| *shown < line)
}

/// Decides anew which lines are shown, and where the hits are.
fn choose(log: &mut Log) {
    let Some(text) = &log.text else { return };
    log.shown = (0..text.len()).collect();
    if !log.filter.is_empty() || log.worker.is_some() {
        log.shown.retain(|line| {
            let line = text.plain(*line);
            let worker = log.worker.as_deref();
            let own = worker.is_none_or(|wanted| worker_of(&line) == Some(wanted));
            own && log.filter.matches(&line)
        });
    }
    find(log);
}

/// Decides anew which lines are shown; whoever does not follow stays near the line at the top.
fn choose_near(log: &mut Log) {
    let top = line_at(log, log.top);
    log.hit = None;
    choose(log);
    log.top = top.map_or(0, |line| place_of(log, line));
}

pub(super) fn command(model: &mut Model, command: Command) -> Vec<Effect> {
    let layout = Layout::of(model);
    let height = layout.log_rows();
    let page = height.max(2) - 1;
    let width = layout.log_columns();
    let Some(log) = model.log.as_mut() else { return Vec::new() };
    let end = last_top(log, height, width);
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
            model.overlay = Some(Overlay::Search(Input::new(log.search.text().to_owned())));
        }
        Command::LogFilter => {
            model.overlay = Some(Overlay::LogFilter(Input::new(log.filter.text().to_owned())));
        }
        Command::NextHit => jump(log, true, height),
        Command::PreviousHit => jump(log, false, height),
        Command::Wrap => {
            log.wrap = !log.wrap;
            log.left = 0;
        }
        Command::Worker => next_worker(model),
        Command::Evidence => evidence(model, height),
        Command::Copy => return copy(model, height),
        Command::Pager => {
            let job = log.job.clone();
            return leave_to(model, Door::Pager(job));
        }
        Command::Back => model.log = None,
        // These belong to other contexts, or were handled before.
        _ => {}
    }
    Vec::new()
}

/// Scrolls to a line and stops following. Where nothing was read yet there is no line to go to: whoever is too quick for
/// it would find themselves at the first one.
fn scroll(log: &mut Log, top: usize) {
    if log.text.is_some() {
        log.follow = false;
        log.top = top;
    }
}

fn scroll_down(log: &mut Log, by: usize, end: usize) {
    if !log.follow {
        log.top = (log.top + by).min(end);
    }
}

/// The place at the top when the last line stands at the bottom.
fn last_top(log: &Log, height: usize, width: usize) -> usize {
    if !log.wrap {
        return log.shown.len().saturating_sub(height);
    }
    let Some(text) = &log.text else { return 0 };
    let mut room = height;
    for (place, line) in log.shown.iter().enumerate().rev() {
        let wide = text.lines.get(*line).map_or(0, ratatui::text::Line::width);
        let rows = wide.div_ceil(width.max(1)).max(1);
        if rows > room {
            // A line that is higher than the screen is shown from its beginning.
            return if room == height { place } else { place + 1 };
        }
        room -= rows;
    }
    0
}

/// Searches for an expression and goes to the first hit from here on.
pub(super) fn search(model: &mut Model, text: &str) {
    let height = Layout::of(model).log_rows();
    let Some(log) = model.log.as_mut() else { return };
    log.search = LogSearch::parse(text);
    log.hit = None;
    find(log);
    if !log.hits.is_empty() {
        jump(log, true, height);
    }
}

/// Shows only the lines that match.
pub(super) fn filter(model: &mut Model, text: &str) {
    let Some(log) = model.log.as_mut() else { return };
    let filter = LogFilter::parse(text);
    if let Some(why) = filter.problem() {
        let hint = Some("a regular expression, as in: loss|error".to_owned());
        let problem = Problem { message: format!("no filter: {why}"), hint };
        complain(model, problem);
        return;
    }
    log.filter = filter;
    choose_near(log);
}

/// Finds the lines that hold what is searched for.
fn find(log: &mut Log) {
    log.hits.clear();
    let Some(text) = log.text.as_ref().filter(|_| !log.search.is_empty()) else { return };
    let hits =
        log.shown.iter().enumerate().filter(|(_, line)| log.search.is_in(&text.plain(**line)));
    log.hits = hits.map(|(place, _)| place).collect();
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

/// One worker's lines, the next one's, all.
fn next_worker(model: &mut Model) {
    let Some(log) = model.log.as_mut() else { return };
    let Some(text) = &log.text else { return };
    let mut workers: Vec<String> = (0..text.len())
        .filter_map(|line| worker_of(&text.plain(line)).map(str::to_owned))
        .collect();
    workers.sort_by_key(|name| name.parse::<u32>().unwrap_or(u32::MAX));
    workers.dedup();
    if workers.is_empty() {
        note(
            model,
            "No line names a worker: there is one, or the program does not say.".to_owned(),
        );
        return;
    }
    log.worker = match &log.worker {
        None => workers.first().cloned(),
        Some(now) => workers.iter().skip_while(|name| *name != now).nth(1).cloned(),
    };
    choose_near(log);
}

/// Goes to the line that says what broke.
fn evidence(model: &mut Model, height: usize) {
    let Some(log) = &model.log else { return };
    let said = model.job(&log.job).and_then(|job| job.shown.evidence.clone());
    let Some(said) = said else {
        note(model, "Nothing broke, as far as anybody can tell.".to_owned());
        return;
    };
    let Some(log) = model.log.as_mut() else { return };
    let Some(text) = &log.text else { return };
    let wanted = said.line.trim();
    let matches = |line: &usize| {
        let line = text.plain(*line);
        !wanted.is_empty()
            && (line.contains(wanted) || line.trim().len() > 20 && wanted.contains(line.trim()))
    };
    // The newest one, as the classifier reads; a line that was folded there is looked for by its place.
    let by_text = (0..text.len()).rev().find(matches);
    let by_place = said.line_no.and_then(|from_end| text.len().checked_sub(from_end));
    let Some(line) = by_text.or(by_place) else {
        note(model, format!("It is not in this output: {}", said.line.trim()));
        return;
    };
    if !log.shown.contains(&line) {
        log.filter = LogFilter::default();
        log.worker = None;
        choose(log);
    }
    let place = place_of(log, line);
    log.hit = Some(place);
    scroll(log, place.saturating_sub(height / 2));
}

/// Copies the hit that was jumped to, else the lines on the screen.
fn copy(model: &mut Model, height: usize) -> Vec<Effect> {
    let Some(log) = &model.log else { return Vec::new() };
    let Some(text) = &log.text else { return Vec::new() };
    let places = match log.hit {
        Some(hit) => hit..hit + 1,
        None => log.top..log.top + height,
    };
    let lines: Vec<String> =
        places.filter_map(|at| Some(text.plain(*log.shown.get(at)?))).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    copied(model, &counted(lines.len(), "line"), lines.join("\n"))
}

/// Keeps the log on the screen: at its end while following, never below it.
pub(super) fn settle(model: &mut Model) {
    let layout = Layout::of(model);
    let (height, width) = (layout.log_rows(), layout.log_columns());
    let Some(log) = model.log.as_mut() else { return };
    let end = last_top(log, height, width);
    if log.follow {
        log.top = end;
        log.unseen = 0;
    }
    log.top = log.top.min(end);
}
