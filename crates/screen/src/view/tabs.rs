//! The tabs, in the upper border of what they show: `[1 Jobs] 2 Targets  3 Queue  4 Events  5 Plan  6 Usage`.

use ratatui::text::Line;

use super::spans::span;
use super::style;
use crate::model::Model;
use crate::tabs::{TABLE, Tab};
use crate::theme::Role;

/// What is written for each tab; the shown one stands in brackets, so that no colour is needed.
fn words(model: &Model) -> impl Iterator<Item = (Tab, String, bool)> + '_ {
    TABLE.iter().enumerate().map(|(at, (tab, name, _))| {
        let shown = *tab == model.tab;
        let words = format!("{} {name}", at + 1);
        (*tab, if shown { format!("[{words}]") } else { format!(" {words} ") }, shown)
    })
}

/// The line for the upper border.
pub(super) fn title(model: &Model) -> Line<'static> {
    let parts = words(model).map(|(_, words, shown)| {
        span(words, style(model, if shown { Role::Title } else { Role::Dim }))
    });
    parts.collect()
}

/// The tab at so many columns from the beginning of the line.
pub(super) fn at(model: &Model, column: u16) -> Option<Tab> {
    let mut end = 0;
    for (tab, words, _) in words(model) {
        end += tpu_core::text::width(&words);
        if usize::from(column) < end {
            return Some(tab);
        }
    }
    None
}
