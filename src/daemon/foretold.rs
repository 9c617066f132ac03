//! What a daemon that only watches would do, each new decision told once.

use std::collections::BTreeMap;

use tpu_core::model::ids::JobId;
use tpu_core::model::rules::Action;
use tpu_core::model::time::Timestamp;
use tpu_core::plan::decide::Decision;
use tpu_ops::act::outlook::Survey;

/// What is told already, by the job that it is about.
#[derive(Debug, Default)]
pub(super) struct Foretold(BTreeMap<JobId, String>);

impl Foretold {
    /// The lines about what was not told yet. What would not be done any more is told again when it would.
    pub(super) fn news(&mut self, planned: Vec<Planned>) -> Vec<String> {
        self.0.retain(|job, _| planned.iter().any(|of| of.job == *job));
        let mut lines = Vec::new();
        for Planned { job, what, when } in planned {
            if self.0.insert(job.clone(), what.clone()).as_ref() != Some(&what) {
                lines.push(format!("{job}: {what}{when}"));
            }
        }
        lines
    }
}

/// Something that would be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Planned {
    job: JobId,
    what: String,
    /// Not before, where that is later.
    when: String,
}

impl Planned {
    /// All that follows from a look.
    pub(super) fn of(survey: &Survey) -> Vec<Self> {
        let killed = survey.data.jobs().filter(|job| job.is_being_killed());
        let kills = killed.map(|job| Self {
            job: job.id(),
            what: "would complete its kill, if whoever began that is gone".to_owned(),
            when: String::new(),
        });
        let now = survey.snapshot.at;
        let decided = survey.decisions.iter().filter_map(|decision| Self::decided(decision, now));
        decided.chain(kills).collect()
    }

    fn decided(decision: &Decision, now: Timestamp) -> Option<Self> {
        let Decision { job, event, action, reason, not_before, .. } = decision;
        let event = event.filter(|_| *action != Action::Pass)?;
        let later = not_before.filter(|at| *at > now);
        Some(Self {
            job: job.clone(),
            what: format!("would {action} after {event}: {reason}"),
            when: later.map(|at| format!(" (not before {})", at.to_rfc3339())).unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::facts::ErrorKind;

    #[test]
    fn each_new_decision_is_told_once_with_its_time_and_its_reason() {
        let at = Timestamp::from_second;
        let decision = |action, reason: &str, at_s| Decision {
            job: JobId::parse("alice/7").unwrap(),
            event: Some(ErrorKind::Preempted),
            action,
            reason: reason.to_owned(),
            not_before: Some(at(at_s)),
            budget_left: None,
            stopped: false,
            begins_patience: false,
            waits: false,
        };
        let mut foretold = Foretold::default();
        let mut told = |action, reason: &str, at_s| {
            let decision = decision(action, reason, at_s);
            foretold.news(Planned::decided(&decision, at(1_000)).into_iter().collect())
        };
        let reapply = Action::Reapply;
        assert_eq!(
            told(reapply, "the rule says so", 1_000),
            ["alice/7: would reapply after preempted: the rule says so"]
        );
        assert_eq!(told(reapply, "the rule says so", 1_001), [""; 0], "the same");
        assert_eq!(
            told(reapply, "another reason", 1_060),
            [
                "alice/7: would reapply after preempted: another reason (not before 1970-01-01T00:17:40Z)"
            ]
        );
        assert_eq!(told(Action::Pass, "nothing is wrong", 1_000), [""; 0]);
        assert_eq!(told(reapply, "another reason", 1_000).len(), 1, "again");
    }
}
