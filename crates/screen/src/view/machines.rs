//! Machines of somebody's own on the tab of targets: their places as cells, and how much they have to do as bars; and
//! what a job has of its machine.
//!
//! ```text
//! slots      load         mem         gpu         heat    seen
//! ■■■!··     ██░░ 3.2/8   █░░░ 24 %   ███░ 97 %   61 °C   12s
//! ```

use ratatui::text::{Line, Span};

use super::spans::{cut, dotted, outside, span};
use super::{columns, style};
use crate::model::Model;
use crate::theme::Role;
use tpu_core::model::capacity::Memory;
use tpu_core::model::figures::{HostFigures, SeenFigures, gpu_in_words, used_of};
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::target::Target;
use tpu_core::model::time;
use tpu_core::model::view::JobView;
use tpu_core::plan::board::Row;
use tpu_ops::act::hosts::Host;

/// From this width on, a cell says which job has it.
const ROOMY: u16 = 120;

/// More cells than this are counted, not drawn.
const MOST_CELLS: usize = 16;

/// Columns of a bar.
const BAR: usize = 4;

/// A place on a machine.
enum Place<'a> {
    /// Nobody has it.
    Free,
    /// A job has it.
    Job(&'a JobId),
    /// Somebody's programs are there that are of no job.
    Stranger(&'a str),
    /// Nobody has it, and nobody gets it.
    Drained,
    /// The machine does not answer: nobody knows who is there.
    Unknown,
}

/// The machine that a row is, if it is one of somebody's own.
pub(super) fn host<'a>(model: &'a Model, row: &Row) -> Option<&'a Host> {
    let hosts = &model.boards.targets.seen.as_ref()?.hosts;
    hosts.iter().find(|host| row.is_known && host.name == row.target)
}

fn figures<'a>(model: &'a Model, name: &TargetName) -> Option<&'a HostFigures> {
    model.boards.figures.seen.as_ref()?.get(name)
}

/// Whether the columns about machines are worth their room: not where there is none but this one, beside targets of
/// other kinds.
fn are_shown(model: &Model) -> bool {
    let Some(board) = &model.boards.targets.seen else { return false };
    let is_other = |host: &Host| Target::built_in_of(&host.name).is_none();
    let counts = |host: &Host| is_other(host) || !host.capacity.is_unlimited();
    board.hosts.iter().any(counts) || board.targets.len() == board.hosts.len()
}

/// The places of a machine, GPU by GPU where there are some, else job by job; none where nobody counts them.
fn places<'a>(host: &'a Host, figures: Option<&'a HostFigures>, model: &Model) -> Vec<Place<'a>> {
    let seen = figures.and_then(|figures| figures.known(model.now));
    let is_silent = figures.is_some_and(|figures| figures.silent.is_some());
    let nobody = || match (&host.record.drained, is_silent) {
        (Some(_), _) => Place::Drained,
        (None, true) => Place::Unknown,
        (None, false) => Place::Free,
    };
    let there = seen.map_or(0, |seen| seen.machine.gpus.len());
    let gpus = host.capacity.gpus.map_or(there, |gpus| usize::try_from(gpus).unwrap_or(0));
    if gpus > 0 {
        let one = |gpu: u32| match (host.who_has(gpu), seen.and_then(|seen| seen.who_is_on(gpu))) {
            (Some(job), _) | (None, Some(Ok(job))) => Place::Job(job),
            (None, Some(Err(user))) => Place::Stranger(user),
            (None, None) => nobody(),
        };
        return (0..u32::try_from(gpus).unwrap_or(0)).map(one).collect();
    }
    let most = host.capacity.jobs.map_or(0, |jobs| usize::try_from(jobs).unwrap_or(0));
    let taken = host.jobs.iter().map(|(job, _)| Place::Job(job));
    let free = most.saturating_sub(host.jobs.len());
    if most == 0 { Vec::new() } else { taken.chain((0..free).map(|_| nobody())).collect() }
}

/// The cells of a row.
pub(super) fn slots(model: &Model, row: &Row) -> Line<'static> {
    let Some(host) = host(model, row) else { return Line::default() };
    let places = places(host, figures(model, &host.name), model);
    let is_roomy = model.size.0 >= ROOMY;
    let mut line = Line::default();
    for place in places.iter().take(MOST_CELLS) {
        let (glyph, role) = match place {
            Place::Free => ("·".to_owned(), Role::Finished),
            Place::Job(job) if is_roomy => (job.window.to_string(), Role::Running),
            Place::Job(_) => ("■".to_owned(), Role::Running),
            Place::Stranger(_) => ("!".to_owned(), Role::Warning),
            Place::Drained => ("x".to_owned(), Role::Dim),
            Place::Unknown => ("?".to_owned(), Role::Unknown),
        };
        if is_roomy && !line.spans.is_empty() {
            line.push_span(Span::raw(" "));
        }
        line.push_span(span(glyph, style(model, role)));
    }
    if places.len() > MOST_CELLS {
        let more = format!(" +{}", places.len() - MOST_CELLS);
        line.push_span(span(more, style(model, Role::Dim)));
    }
    line
}

/// What is known of the machine of a row, and whether that is old; nothing where it has no columns.
fn seen<'a>(model: &'a Model, row: &Row) -> Option<(&'a SeenFigures, bool)> {
    let host = host(model, row).filter(|_| are_shown(model))?;
    let figures = figures(model, &host.name)?;
    Some((figures.known(model.now)?, figures.is_old(model.now)))
}

/// A bar with words behind it; grey where it is old.
fn bar(model: &Model, (fraction, words): (Option<f64>, String), is_old: bool) -> Line<'static> {
    let mut line = match fraction {
        Some(fraction) => columns::bar(model, fraction, BAR),
        None => Line::default(),
    };
    line.push_span(Span::raw(format!("{}{words}", if fraction.is_some() { " " } else { "" })));
    if is_old {
        let dim = style(model, Role::Dim);
        line.spans.iter_mut().for_each(|span| span.style = dim);
    }
    line
}

/// How many programs want a CPU, of how many there are.
pub(super) fn load(model: &Model, row: &Row) -> Line<'static> {
    let Some((seen, is_old)) = seen(model, row) else { return Line::default() };
    let Some(load) = seen.machine.load else { return Line::default() };
    let cpus = seen.machine.cpus.filter(|cpus| *cpus > 0);
    let words = cpus.map_or(format!("{load:.1}"), |cpus| format!("{load:.1}/{cpus}"));
    bar(model, (cpus.map(|cpus| load / f64::from(cpus)), words), is_old)
}

/// How much of the memory is in use.
pub(super) fn memory(model: &Model, row: &Row) -> Line<'static> {
    let Some((seen, is_old)) = seen(model, row) else { return Line::default() };
    let Some(share) = seen.memory().and_then(share) else { return Line::default() };
    bar(model, (Some(share), tpu_core::model::facts::percent(share)), is_old)
}

/// How much the accelerators have to do together.
pub(super) fn gpu(model: &Model, row: &Row) -> Line<'static> {
    let Some((seen, is_old)) = seen(model, row) else { return Line::default() };
    let Some(percent) = seen.gpu_percent() else { return Line::default() };
    let fraction = f64::from(percent.min(100)) / 100.0;
    bar(model, (Some(fraction), format!("{percent} %")), is_old)
}

/// How hot the hottest accelerator is.
pub(super) fn heat(model: &Model, row: &Row) -> Line<'static> {
    let Some((seen, is_old)) = seen(model, row) else { return Line::default() };
    let heat = seen.celsius().map(|celsius| format!("{celsius} °C"));
    bar(model, (None, heat.unwrap_or_default()), is_old)
}

/// How long ago it said so, or that it does not answer.
pub(super) fn age(model: &Model, row: &Row) -> Line<'static> {
    let shown = host(model, row).filter(|_| are_shown(model));
    let Some(figures) = shown.and_then(|host| figures(model, &host.name)) else {
        return Line::default();
    };
    let (words, is_silent) = as_of(figures, model);
    let is_late = is_silent || figures.is_old(model.now);
    let role = if is_late { Role::Warning } else { Role::Dim };
    Line::from(span(words, style(model, role)))
}

/// How old what a machine said is, and whether it says nothing any more.
fn as_of(figures: &HostFigures, model: &Model) -> (String, bool) {
    let age = figures.age_s(model.now).map(time::age);
    match (&figures.silent, age) {
        (None, age) => (age.unwrap_or_default(), false),
        (Some(_), Some(age)) => (format!("silent {age}"), true),
        (Some(_), None) => ("silent".to_owned(), true),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share of an amount of memory")]
fn share((used, all): (Memory, Memory)) -> Option<f64> {
    (all.0 > 0).then(|| used.0 as f64 / all.0 as f64)
}

/// What the machine of the chosen row has to say beyond its columns; nothing of what is no machine of somebody's own.
pub(super) fn footnote(model: &Model, row: &Row) -> String {
    let Some(host) = host(model, row) else { return String::new() };
    let drained = host.record.drained.as_ref().map(|drained| {
        let why = drained.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        format!("drained by {}{why}", drained.by)
    });
    let figures = figures(model, &host.name);
    let seen = figures.and_then(|figures| figures.known(model.now));
    let load = seen.and_then(|seen| seen.machine.load);
    let memory = seen.and_then(SeenFigures::memory).map(used_of);
    let silent = figures.and_then(|figures| figures.silent.as_deref());
    let silent = silent.map(|why| format!("it does not answer: {why}"));
    let places = places(host, figures, model);
    let who = places.iter().enumerate().filter_map(|(at, place)| {
        let gpu = seen.and_then(|seen| {
            seen.machine.gpus.iter().find(|gpu| usize::try_from(gpu.index) == Ok(at))
        });
        let said = gpu.map(|gpu| format!(" {}", gpu_in_words(gpu, None))).unwrap_or_default();
        match place {
            Place::Job(job) => Some(format!("{at}: {job}{said}")),
            Place::Stranger(user) => Some(format!("{at}: {user}, of no job{said}")),
            Place::Free | Place::Drained | Place::Unknown => None,
        }
    });
    let parts = [drained, silent].into_iter().flatten().chain(who);
    let parts = parts.chain(load.map(|load| format!("load {load:.1}"))).chain(memory);
    let age = figures.filter(|_| seen.is_some()).map(|figures| as_of(figures, model).0);
    let age = age.map(|age| format!("{age} ago"));
    dotted(parts.chain(age).map(|part| outside(&part)))
}

/// Whether the machine of a row takes no new jobs.
pub(super) fn is_drained(model: &Model, row: &Row) -> bool {
    host(model, row).is_some_and(|host| host.record.drained.is_some())
}

/// Whether the machine of a row did not answer when it was last asked.
pub(super) fn is_silent(model: &Model, row: &Row) -> bool {
    let figures = host(model, row).and_then(|host| figures(model, &host.name));
    figures.is_some_and(|figures| figures.silent.is_some())
}

/// What the processes of a live job have of their machine; nothing where that is not known.
pub(super) fn of_job(model: &Model, job: &JobView, width: usize) -> Vec<Line<'static>> {
    let live = job.shown.status.is_live() && !job.is_queued();
    let Some(figures) = figures(model, &job.target).filter(|_| live) else { return Vec::new() };
    let (age, is_silent) = as_of(figures, model);
    let line = |label: &str, words: Vec<String>, role: Role| {
        let words = dotted(words.iter().map(|word| outside(word)));
        let label = span(format!("{label:<8}"), style(model, Role::Dim));
        cut(Line::from(vec![label, span(words, style(model, role))]), width)
    };
    match (figures.job(&job.id, model.now), figures.known(model.now)) {
        (Some(own), Some(seen)) => {
            let role = if figures.is_old(model.now) { Role::Dim } else { Role::Base };
            let mut words = own.in_words();
            words.push(format!("{age} ago"));
            let gpus = own.gpus_in_words(&seen.machine).into_iter();
            let gpus = gpus.map(|gpu| line("", vec![gpu], role));
            std::iter::once(line("uses", words, role)).chain(gpus).collect()
        }
        // It has said nothing of this job, and is asked again soon.
        (_, Some(_)) => Vec::new(),
        (_, None) => {
            let words = match (is_silent, age.as_str()) {
                (true, age) => format!("unknown: its machine is {age}"),
                (false, "") => "unknown: its machine is being asked".to_owned(),
                (false, age) => format!("unknown: its machine was last asked {age} ago"),
            };
            vec![line("uses", vec![words], Role::Unknown)]
        }
    }
}
