//! When there is no job to show: what is so, and what to do.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::spans::{outside, span, wrap};
use super::{banner, panel, style, tabs};
use crate::model::Model;
use crate::theme::Role;

/// Draws the message in place of the list.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let inner = panel(frame, model, area, tabs::title(model));
    let (said, role, todo) = words(model);
    let width = usize::from(inner.width.saturating_sub(4)).min(90);
    let mut lines: Vec<Line<'static>> = Vec::new();
    for line in wrap(&outside(&said), width) {
        lines.push(Line::from(span(line, style(model, role))));
    }
    lines.push(Line::default());
    for todo in todo {
        lines.extend(wrap(&outside(&todo), width).into_iter().map(Line::from));
    }
    let above = usize::from(inner.height).saturating_sub(lines.len()) / 3;
    let top = inner.y + u16::try_from(above).unwrap_or(0);
    let left = inner.x + 2;
    for (y, line) in (top..inner.bottom()).zip(lines) {
        frame.render_widget(line, Rect { x: left, y, width: inner.right() - left, height: 1 });
    }
}

/// What is so, how bad that is, and what to do.
fn words(model: &Model) -> (String, Role, Vec<String>) {
    if let Some(problem) = &model.problem {
        let again = "It is tried again every second; this screen goes on by itself.".to_owned();
        let todo = problem.hint.iter().cloned().chain([again]).collect();
        return (problem.message.clone(), Role::Error, todo);
    }
    let Some(snapshot) = &model.snapshot else {
        return ("Looking at the jobs …".to_owned(), Role::Base, Vec::new());
    };
    if snapshot.users.is_empty() {
        let todo = vec![
            "Begin:          tpu init, in the directory of your code".to_owned(),
            "Or look around: tpu demo".to_owned(),
        ];
        return ("There are no users yet.".to_owned(), Role::Base, todo);
    }
    let whose = &model.scope.whose;
    let (whose, user) = match whose.only() {
        Some(user) => (format!("{user} has no jobs."), user.to_string()),
        None if !whose.is_everybody() => (format!("{whose} have no jobs."), "USER".to_owned()),
        None => ("Nobody has any jobs.".to_owned(), "USER".to_owned()),
    };
    let mut todo = vec![
        format!("Start one:      n, or in a shell: tpu run TARGET {user} lr=0.01"),
        format!("Directories:    tpu ls {user}"),
        "Aliases:        tpu -lta".to_owned(),
    ];
    if let Some(problem) = banner::problem(model) {
        todo.push(String::new());
        todo.push(problem.message);
        todo.extend(problem.hint);
    }
    (whose, Role::Base, todo)
}
