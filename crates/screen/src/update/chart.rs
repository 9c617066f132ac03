//! Keys on the chart of a run in full width.

use crate::keys::Command;
use crate::model::Model;
use crate::view::detail::shows_chart;

/// Does what a key means to the chart.
pub(super) fn command(model: &mut Model, command: Command) {
    let Some(job) = model.selected() else { return };
    let Some(curves) = model.traces.of(job).map(|trace| &trace.curves) else { return };
    // Whoever asks for what is not there sees it first.
    if matches!(command, Command::NextMetric | Command::PreviousMetric) && !shows_chart(model) {
        model.chart.asked = true;
        return;
    }
    let chart = &mut model.chart;
    match command {
        Command::NextMetric => chart.turn(curves, true),
        Command::PreviousMetric => chart.turn(curves, false),
        Command::ZoomIn => chart.zoom(curves, true),
        Command::ZoomOut => chart.zoom(curves, false),
        Command::Left => chart.go(curves, false),
        Command::Right => chart.go(curves, true),
        // These belong to other contexts.
        _ => {}
    }
}
