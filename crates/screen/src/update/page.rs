//! Pages: what a command says, and comparisons.

use super::{act, complain, copy, form, moved};
use crate::keys::Command;
use crate::message::{Act, Ask, Effect, Problem};
use crate::model::{Body, Model, Overlay, Page};
use crate::view::page;

/// More lines than this are no toast.
pub(super) const LONGEST_TOAST: usize = 2;

/// Opens a page for an answer in words, and asks.
pub(super) fn open_awaiting(model: &mut Model, title: String, ask: Ask) -> Vec<Effect> {
    let body = Body::Awaited(ask.clone());
    model.overlay = Some(Overlay::Page(Page { title, body, top: 0 }));
    vec![Effect::Ask(ask)]
}

/// Shows words, unless something else is being done meanwhile: then they are lost, and a toast says where
/// they can be had.
pub(super) fn show(model: &mut Model, title: String, text: String) {
    if model.overlay.is_none() {
        model.overlay = Some(Overlay::Page(Page { title, body: Body::Text(text), top: 0 }));
    } else {
        super::result(model, format!("{title} is done and has said a lot."));
    }
}

/// The words that were asked for: on the page, in the form, or in the question that waits for them.
pub(super) fn said(model: &mut Model, asked: &Ask, answer: Result<String, Problem>) {
    match &mut model.overlay {
        Some(Overlay::Page(page)) => {
            let awaited = matches!(&page.body, Body::Awaited(waiting) if waiting == asked);
            if !awaited {
                return;
            }
            page.body = Body::Text(match answer {
                Ok(text) => text,
                Err(problem) => {
                    let hint = problem.hint.map(|hint| format!("\n→ {hint}")).unwrap_or_default();
                    format!("▲ {}{hint}", problem.message)
                }
            });
        }
        Some(Overlay::Form(_)) => form::planned(model, asked, answer),
        Some(Overlay::Confirm(confirm)) => {
            if !matches!(&confirm.plan, Some(Body::Awaited(waiting)) if waiting == asked) {
                return;
            }
            match answer {
                Ok(text) => confirm.plan = Some(Body::Text(text.trim_end().to_owned())),
                // It would fail: that is the answer, and there is nothing to confirm.
                Err(problem) => {
                    model.overlay = None;
                    complain(model, problem);
                }
            }
        }
        _ => {}
    }
}

pub(super) fn command(model: &mut Model, command: Command) -> Vec<Effect> {
    // Taken off while it is handled; put back unless it is done.
    match model.overlay.take() {
        Some(Overlay::Page(shown)) if command == Command::Copy => {
            let effects = copy::whole(model, &shown);
            model.overlay = Some(Overlay::Page(shown));
            return effects;
        }
        Some(Overlay::Page(mut shown)) => {
            let (last, screenful) = page::extent(model, &shown);
            let Some(top) = moved(command, shown.top, last, screenful) else { return Vec::new() };
            shown.top = top.min(last);
            model.overlay = Some(Overlay::Page(shown));
        }
        other => model.overlay = other,
    }
    Vec::new()
}

/// Runs a command that was typed.
pub(super) fn run(model: &mut Model, words: Vec<String>) -> Vec<Effect> {
    act(model, Act::Command(words))
}
