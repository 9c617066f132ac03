//! The help: exactly the keys that work where it was opened, from the same table as everything else, grouped by
//! what they are for, in two columns where there is room. A search looks through the other places too.

use ratatui::Frame;
use ratatui::text::Line;

use super::spans::{span, wrap};
use super::{needs, scrolled, style};
use crate::keys::{Context, Key, KeyGroup, KeyMap};
use crate::model::{Help, Model};
use crate::theme::Role;
use tpu_core::plan::filter;
use tpu_core::text;

/// The narrowest column in which an entry can be read.
const NARROWEST: usize = 44;
/// The widest column that an entry needs.
const WIDEST: usize = 76;
/// Between two columns.
const GAP: usize = 3;

/// A head with what stands below it: each line with its keys, if it is about keys.
struct Section {
    title: String,
    entries: Vec<(String, String)>,
}

/// What the help says, in sections.
fn sections(model: &Model, help: &Help) -> Vec<Section> {
    let search = help.search.value().trim().to_lowercase();
    let mut all: Vec<Section> = KeyGroup::ALL
        .into_iter()
        .map(|group| Section {
            title: group.title().to_owned(),
            entries: entries(model, help.about, |offered, found| offered && found == group),
        })
        .collect();
    if matches!(help.about, Context::List | Context::Detail | Context::Targets) {
        all.push(said("A filter is made of", filter::HINT));
    }
    if matches!(help.about, Context::List | Context::Detail) {
        let text = "click a job, again to open it; click heads, tabs, keys; drag the border";
        all.push(said("The mouse", text));
    }
    if search.is_empty() {
        all.retain(|section| !section.entries.is_empty());
        return all;
    }
    let here = all.len();
    let elsewhere = KeyMap::contexts().iter().filter(|context| **context != help.about);
    all.extend(elsewhere.map(|context| Section {
        title: format!("Elsewhere: {}", context.place()),
        entries: entries(model, *context, |_, _| true),
    }));
    // What a key does in several places is listed once.
    let mut listed: Vec<(String, String)> = Vec::new();
    for (at, section) in all.iter_mut().enumerate() {
        let title = section.title.to_lowercase();
        section.entries.retain(|entry| {
            let text = format!("{} {} {title}", entry.0, entry.1).to_lowercase();
            let is_new = at < here || !listed.contains(entry);
            is_new && search.split_whitespace().all(|word| text.contains(word))
        });
        listed.extend(section.entries.iter().cloned());
    }
    all.retain(|section| !section.entries.is_empty());
    all
}

/// Words without keys.
fn said(title: &str, text: &str) -> Section {
    Section { title: title.to_owned(), entries: vec![(String::new(), text.to_owned())] }
}

/// The keys of a context, with what they do, of which `wanted` says whether they are listed: it is told whether
/// the key does something at the moment, and what it is for.
fn entries(
    model: &Model,
    context: Context,
    wanted: impl Fn(bool, KeyGroup) -> bool,
) -> Vec<(String, String)> {
    let label = |keys: &[Key]| {
        keys.iter().map(|key| key.label(model.setup.ascii)).collect::<Vec<_>>().join(" ")
    };
    let lines = model.setup.keys.lines(context);
    let listed = lines.filter(|(binding, _)| {
        // How much a page holds is not known while the help lies over it.
        let offered = needs::are_met(model, binding.needs);
        wanted(offered, KeyGroup::of(binding.command))
    });
    listed.map(|(binding, keys)| (label(keys), binding.help.to_owned())).collect()
}

/// The lines of the help.
fn lines(model: &Model, help: &Help) -> Vec<Line<'static>> {
    let sections = sections(model, help);
    if sections.is_empty() {
        let text = "No key does that. What is no key may be a command: type : and a word of it.";
        return vec![Line::from(span(text, style(model, Role::Dim)))];
    }
    let all = || sections.iter().flat_map(|section| &section.entries);
    let keys = all().map(|(keys, _)| text::width(keys)).max().unwrap_or(0);
    let said = all().map(|(_, said)| text::width(said)).max().unwrap_or(0);
    let room = usize::from(model.size.0.saturating_sub(4));
    let half = room.saturating_sub(GAP) / 2;
    let natural = (keys + 2 + said).min(WIDEST);
    if half < NARROWEST {
        return column(model, &sections, keys, natural.min(room));
    }
    let width = natural.min(half);
    let split = fairest(&sections, |section| section.height(width.saturating_sub(keys + 2)));
    let (left, right) = sections.split_at(split);
    let left = column(model, left, keys, width);
    let right = column(model, right, keys, width);
    beside(left, right, width + GAP)
}

impl Section {
    /// Lines that it takes, with the empty one below, where so many columns are left for the words.
    fn height(&self, columns: usize) -> usize {
        let rows = self.entries.iter().map(|(_, said)| wrap(said, columns.max(1)).len());
        rows.sum::<usize>() + 2
    }
}

/// How many sections stand to the left, so that the taller column is as low as can be.
fn fairest(sections: &[Section], height: impl Fn(&Section) -> usize) -> usize {
    let sum = |sections: &[Section]| sections.iter().map(&height).sum::<usize>();
    let taller = |at: &usize| {
        let (left, right) = sections.split_at(*at);
        sum(left).max(sum(right))
    };
    (1..=sections.len()).min_by_key(taller).unwrap_or(0)
}

/// Sections below each other, an empty line between them.
fn column(model: &Model, sections: &[Section], keys: usize, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for section in sections {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(Line::from(span(section.title.clone(), style(model, Role::Title))));
        for (label, said) in &section.entries {
            // Words without keys have the keys' room.
            let indent = if label.is_empty() { 0 } else { keys + 2 };
            let rows = wrap(said, width.saturating_sub(indent).max(1));
            for (n, row) in rows.into_iter().enumerate() {
                let label = if n == 0 { label.as_str() } else { "" };
                lines.push(Line::from(vec![
                    span(text::fit(label, indent), style(model, Role::Key)),
                    span(row, style(model, Role::Base)),
                ]));
            }
        }
    }
    lines
}

/// Two columns as lines; the right one begins at a column of its own.
fn beside(left: Vec<Line<'static>>, right: Vec<Line<'static>>, at: usize) -> Vec<Line<'static>> {
    let rows = left.len().max(right.len());
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    let row = |_| {
        let mut line = left.next().unwrap_or_default();
        if let Some(other) = right.next().filter(|other| other.width() > 0) {
            line.push_span(" ".repeat(at.saturating_sub(line.width())));
            line.spans.extend(other.spans);
        }
        line
    };
    (0..rows).map(row).collect()
}

/// The last line that may stand at the top, and the lines that are seen at once.
pub(crate) fn extent(model: &Model, help: &Help) -> (usize, usize) {
    // Its own frame, and a line above and below.
    let rows = usize::from(model.size.1.saturating_sub(4)).max(1);
    (lines(model, help).len().saturating_sub(rows), rows.saturating_sub(1).max(1))
}

/// Draws the help over everything else.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, help: &Help) {
    let lines = lines(model, help);
    let screen = frame.area();
    let widest = lines.iter().map(Line::width).max().unwrap_or(0);
    let place = help.about.place();
    let search = help.search.value();
    let title = match (help.typing, search.is_empty()) {
        (false, true) => format!("Keys {place}"),
        (_, _) => format!("Keys {place} · /{search}"),
    };
    let width = u16::try_from(widest.max(text::width(&title) + 2) + 4).unwrap_or(u16::MAX);
    let size = (width.min(screen.width), screen.height.saturating_sub(2));
    scrolled(frame, model, size, lines, help.top, &title);
}
