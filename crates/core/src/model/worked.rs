//! When an attempt was at work, by its record and by what was just seen of its run.

use super::facts::{RunFact, RunState};
use super::launch::{Launch, Stretch};
use super::time::Timestamp;

impl Launch {
    /// When it was at work by its record and by what was just seen of its run.
    pub fn worked_by(&self, run: &RunFact, now: Timestamp) -> Option<Vec<Stretch>> {
        let waits = run.state == RunState::Pending;
        let Some(known) = &self.worked else {
            return if waits { Some(Vec::new()) } else { None };
        };
        if self.ended.is_some() {
            return self.stretches();
        }
        let mut all = known.clone();
        if waits {
            close(&mut all, now);
        } else if let Some(from) = run.began.or_else(|| {
            // An engine that does not say when it began has it at work now.
            let is_news = all.last().is_none_or(|last| last.until.is_some());
            (run.state == RunState::Running && is_news).then_some(now)
        }) {
            begin(&mut all, from.max(self.at));
        }
        Some(all)
    }
}

/// Ends the stretch that is open.
fn close(all: &mut [Stretch], at: Timestamp) {
    if let Some(last) = all.last_mut() {
        last.until.get_or_insert(at.max(last.from));
    }
}

/// Adds a stretch that has begun then, unless it is known.
fn begin(all: &mut Vec<Stretch>, from: Timestamp) {
    if all.last().is_some_and(|last| last.from >= from) {
        return;
    }
    close(all, from);
    all.push(Stretch { from, until: None });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::launch::LaunchMode;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second)
    }

    fn run(state: RunState, began: Option<i64>) -> RunFact {
        RunFact { began: began.map(at), ..RunFact::of_engine(state, "raw", None) }
    }

    #[test]
    fn only_what_its_engine_runs_is_at_work() {
        let of = |worked| Launch { worked, ..Launch::claimed("t", LaunchMode::Native, at(100)) };
        let open = |from: i64| Stretch { from: at(from), until: None };
        let closed = |from: i64, until: i64| Stretch { until: Some(at(until)), ..open(from) };
        let queued = of(Some(Vec::new()));
        let pending = run(RunState::Pending, None);
        assert_eq!(queued.worked_by(&pending, at(900)), Some(Vec::new()), "it waits");
        assert_eq!(
            of(None).worked_by(&pending, at(900)),
            Some(Vec::new()),
            "also by an old record"
        );
        let runs = run(RunState::Running, Some(400));
        assert_eq!(queued.worked_by(&runs, at(900)), Some(vec![open(400)]));
        let unsaid = run(RunState::Running, None);
        assert_eq!(queued.worked_by(&unsaid, at(900)), Some(vec![open(900)]));
        let at_work = of(Some(vec![open(400)]));
        assert_eq!(at_work.worked_by(&unsaid, at(950)), Some(vec![open(400)]), "the same one");
        assert_eq!(at_work.worked_by(&pending, at(950)), Some(vec![closed(400, 950)]), "again");
        let again = of(Some(vec![closed(400, 950)]));
        let anew = run(RunState::Running, Some(990));
        let both = Some(vec![closed(400, 950), open(990)]);
        assert_eq!(again.worked_by(&anew, at(999)), both);
        assert_eq!(
            of(None).worked_by(&anew, at(999)),
            None,
            "a window is at work from its claim on"
        );
    }

    #[test]
    fn what_ended_without_ever_being_at_work_was_not() {
        let of = |exit, worked| Launch {
            exit,
            ended: Some(at(500)),
            worked,
            ..Launch::claimed("t", LaunchMode::Native, at(100))
        };
        assert_eq!(of(None, Some(Vec::new())).stretches(), Some(Vec::new()), "it was cancelled");
        assert_eq!(of(Some(0), Some(Vec::new())).stretches(), None, "nobody saw it begin");
        let begun = Stretch { from: at(400), until: None };
        assert_eq!(of(Some(0), Some(vec![begun])).stretches(), Some(vec![begun]));
        let ran =
            [None, Some(Vec::new()), Some(vec![begun])].map(|worked| of(None, worked).ran_s());
        assert_eq!(ran, [Some(400), None, Some(100)]);
    }
}
