//! The form of a new run.
//!
//! ```text
//! ┌ New run of alice ────────────────────────────┐
//! │ ▸ target     v2-3▏                           │
//! │      v2-32-p2   ready · europe-west4-a       │
//! │   directory  1                               │
//! │   …                                          │
//! │ ── plan ──────────────────────────────────── │
//! │ runs  source staging.sh ka=…                 │
//! └──────────────────────────────────────────────┘
//! ```

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::spans::{cut, outside, skip, span, wrap};
use super::{dialog, one_background, style};
use crate::message::Act;
use crate::model::{FIELDS, FieldId, Form, Model};
use crate::theme::Role;
use tpu_core::text;

/// Columns of the names of the fields, with mark and blank.
const NAMES: usize = 13;
/// Proposals that are seen at once where there is room.
const PROPOSALS: usize = 6;

/// Draws the form over everything else.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, form: &Form) {
    let screen = frame.area();
    let width = screen.width.saturating_sub(4).min(110);
    let inside = usize::from(width.saturating_sub(4));
    let plan = plan(model, form, inside);
    let proposals = form.proposals();
    let room = usize::from(screen.height).saturating_sub(FIELDS.len() + 4);
    // The plan is read when it is there; until then the proposals have the room.
    let wanted = if form.plan.is_some() { PROPOSALS / 2 } else { PROPOSALS };
    let listed = proposals.len().min(wanted).min(room.saturating_sub(plan.len().min(room / 2)));
    let fields = FIELDS.len() + usize::from(!form.words().is_empty());
    let height = u16::try_from(fields + listed + plan.len() + 2).unwrap_or(u16::MAX);
    let height = height.min(screen.height.saturating_sub(1));
    let like = form.like_what().map(|called| format!(", like {}", outside(called)));
    let title = format!(" New run of {}{} ", outside(form.user.as_str()), like.unwrap_or_default());
    let inner = dialog(frame, model, (width, height), Line::from(title));
    let mut y = inner.y;
    let mut put = |frame: &mut Frame<'_>, line: Line<'static>| {
        let area = Rect { x: inner.x + 1, y, width: inner.width.saturating_sub(2), height: 1 };
        if y < inner.bottom() {
            frame.render_widget(cut(line, usize::from(area.width)), area);
            y += 1;
        }
        area
    };
    let mut cursor = None;
    for (at, (id, name, hint)) in FIELDS.iter().enumerate() {
        let current = at == form.at;
        let Some(input) = form.inputs.get(at) else { continue };
        let field = inside.saturating_sub(NAMES + 1);
        let scroll = if current { input.visual_scroll(field) } else { 0 };
        let typed = skip(&Line::from(outside(input.value())), scroll);
        let before = form.before(at);
        let point = if current { "▸" } else { " " };
        let mark = if before.is_some() { "≠" } else { " " };
        let name = span(
            text::fit(&format!("{point}{mark}{name}"), NAMES),
            style(model, if current { Role::Key } else { Role::Dim }),
        );
        let mut line = Line::from(vec![name]);
        if input.value().is_empty() && before.is_none() {
            line.push_span(span((*hint).to_owned(), style(model, Role::Dim)));
        } else {
            line.spans.extend(typed.spans);
        }
        if let Some(before) = before {
            let was = if before.is_empty() { "nothing".to_owned() } else { outside(before) };
            line.push_span(span(format!("  (was {was})"), style(model, Role::Dim)));
        }
        let area = put(frame, line);
        if *id == FieldId::Configs && !form.words().is_empty() {
            let words = outside(&form.words().join(" "));
            let text = format!("{:NAMES$}and behind them: {words}", "");
            put(frame, Line::from(span(text, style(model, Role::Dim))));
        }
        if current {
            let column = NAMES + input.visual_cursor().max(scroll) - scroll;
            cursor = Some(Position { x: area.x + u16::try_from(column).unwrap_or(0), y: area.y });
            let top = form.pick.map_or(0, |pick| (pick + 1).saturating_sub(listed));
            for (place, proposal) in proposals.iter().enumerate().skip(top).take(listed) {
                let marked = form.pick == Some(place);
                let point = if marked { "▸" } else { " " };
                let role = if marked { Role::Selected } else { Role::Dim };
                let value = outside(&proposal.value);
                let text = format!(
                    "    {point} {}  {}",
                    text::fit(&value, 16.max(text::width(&value))),
                    outside(&proposal.note)
                );
                put(frame, Line::from(span(text, style(model, role))));
            }
        }
    }
    for line in plan {
        put(frame, line);
    }
    one_background(frame, model, inner);
    if let Some(cursor) = cursor.filter(|cursor| cursor.x < inner.right()) {
        frame.set_cursor_position(cursor);
    }
}

/// The plan, or what to do to see it.
fn plan(model: &Model, form: &Form, width: usize) -> Vec<Line<'static>> {
    let rule = |word: &str| {
        let rest = "─".repeat(width.saturating_sub(text::width(word) + 4));
        Line::from(vec![
            span("── ", style(model, Role::Border)),
            Span::raw(word.to_owned()),
            span(format!(" {rest}"), style(model, Role::Border)),
        ])
    };
    let current = form.act().ok();
    match &form.plan {
        _ if form.waiting.is_some() => vec![rule("plan: reading …")],
        Some((act, answer)) => {
            let same = current.as_ref() == Some(act);
            let head = match (answer, same) {
                (Ok(_), true) => "plan: Enter starts it",
                (Ok(_), false) => "plan of before: Enter makes it anew",
                (Err(_), _) => "it cannot start",
            };
            let mut lines = vec![rule(head)];
            match answer {
                Ok(text) => {
                    let rows = text.lines().flat_map(|line| wrap(&outside(line), width));
                    lines.extend(rows.map(Line::from));
                }
                Err(problem) => {
                    let said = wrap(&format!("▲ {}", outside(&problem.message)), width);
                    lines.extend(
                        said.into_iter()
                            .map(|row| Line::from(span(row, style(model, Role::Error)))),
                    );
                    let hint = problem
                        .hint
                        .iter()
                        .flat_map(|hint| wrap(&format!("→ {}", outside(hint)), width));
                    lines.extend(hint.map(Line::from));
                    if matches!(act, Act::Run(_)) {
                        let wait = "→ with `default` in the field queue it waits until it can";
                        lines.extend(wrap(wait, width).into_iter().map(Line::from));
                    }
                }
            }
            lines
        }
        None => vec![rule("Enter shows the plan; nothing starts before")],
    }
}
