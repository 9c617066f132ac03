//! The tab of usage: what is counted, for whom and how far back, and when it is counted again.

use crate::keys::Command;
use crate::message::{Ask, Effect, Problem, UsageQuestion};
use crate::model::{Measure, Model, UsageSeen};
use crate::tabs::Tab;
use tpu_core::model::time::Timestamp;
use tpu_ops::observe::stats::StatsReport;

/// Seconds from one count to the next. Files are read for it only once they have changed.
const COUNT_S: u64 = 10;

/// What the tab is to show.
fn question(model: &Model) -> UsageQuestion {
    let (usage, whose) = (&model.boards.usage, &model.scope.whose);
    UsageQuestion {
        whose: whose.clone(),
        by: usage.by(whose),
        reach: usage.reach,
        zone: model.setup.zone.clone(),
    }
}

/// Commands of this tab alone; `false` for any other.
pub(super) fn command(model: &mut Model, command: Command) -> bool {
    let whose = &model.scope.whose;
    let usage = &mut model.boards.usage;
    let by = usage.by(whose);
    match command {
        Command::NextBy => usage.by = Some(by.moved(1)),
        Command::PreviousBy => usage.by = Some(by.before()),
        Command::LongerPeriod => usage.reach = usage.reach.next(),
        Command::ShorterPeriod => usage.reach = usage.reach.before(),
        Command::NextPlot => usage.turned = usage.turned.wrapping_add(1),
        Command::Measure => {
            usage.measure = Some(match usage.measure() {
                Measure::Hours => Measure::Cost,
                Measure::Cost => Measure::Hours,
            });
        }
        _ => return false,
    }
    true
}

/// Takes in what was counted. The answer to a question that nobody has any more says nothing; the present one is asked
/// at once.
pub(super) fn answered(
    model: &mut Model,
    asked: UsageQuestion,
    answer: Result<StatsReport, Problem>,
) {
    let is_wanted = asked == question(model);
    let now = model.now;
    let usage = &mut model.boards.usage;
    if is_wanted {
        let is_other = usage.asked.seen.as_ref().is_none_or(|seen| seen.question.by != asked.by);
        usage.asked.answered(answer.map(|report| UsageSeen::new(asked, report)), now);
        if is_other && usage.asked.problem.is_none() {
            let choosing = model.boards.choosing_mut(Tab::Usage);
            (choosing.selected, choosing.top) = (None, 0);
        }
    } else {
        usage.asked.waiting = None;
    }
}

/// The question, if it is a new one or its last answer is old. One count at a time is made.
pub(super) fn wants(model: &mut Model, now: Timestamp) -> Option<Effect> {
    if model.tab != Tab::Usage {
        return None;
    }
    let question = question(model);
    let every = COUNT_S.max(model.setup.refresh_s);
    let usage = &mut model.boards.usage;
    let is_new = usage.last.as_ref() != Some(&question) && usage.asked.waiting.is_none();
    if !is_new && !usage.asked.is_due(now, every) {
        return None;
    }
    usage.asked.waiting = Some(now);
    usage.last = Some(question.clone());
    Some(Effect::Ask(Ask::Usage(question)))
}
