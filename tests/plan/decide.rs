//! `plan::decide` against spec/jobs.md §6–8: one case of `tests/cases/decide/*.toml` each, and what holds for
//! every situation.

mod always;

use serde::Deserialize;
use tpu_core::model::ids::{JobId, JobNumber};
use tpu_core::model::job::Lease;
use tpu_core::plan::decide::{Decision, Owners, Situation, decide};
use tpu_core::plan::diagnose::{JobFacts, diagnose};

use crate::common::scenario::{self, Api, Engine, Record, Text, Tmux, ago, now};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    record: Record,
    #[serde(default)]
    tmux: Tmux,
    /// Where an engine runs it, and no window.
    engine: Option<Engine>,
    text: Option<Text>,
    api: Option<Api>,
    #[serde(default)]
    around: Around,
    does: Does,
}

/// The setting `patience` where a case says nothing of it.
const PATIENCE_S: u64 = 7 * 86_400;

/// What goes on around the job.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Around {
    /// Seconds since windows were looked at.
    looked: i64,
    /// Live jobs of other lineages on the target, `bob/3`.
    rivals: Vec<String>,
    me: Option<String>,
    /// Later attempts of the lineage, known by their own links.
    later: Vec<u32>,
    /// The setting `patience`, in seconds.
    patience: Option<u64>,
    lease_owner_alive: Option<bool>,
    intent_owner_alive: Option<bool>,
    /// Owner of the target's lease, and whether it is there.
    target_lease: Option<(String, bool)>,
    /// The account that an engine has it of, where it is another one.
    account: Option<String>,
}

/// What is expected. What is not named here must be absent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Does {
    action: String,
    /// A part of the reason.
    why: String,
    /// Seconds from now, negative if it was due earlier.
    at: Option<i64>,
    left: Option<u32>,
    #[serde(default)]
    stopped: bool,
    /// Whether its quick tries have just been used up.
    #[serde(default)]
    begins_patience: bool,
    /// The failure that it answers.
    event: Option<String>,
}

#[test]
fn every_scenario_is_decided_as_the_contract_says() {
    scenario::all_hold("decide", |case: &Case| {
        check(case).map_err(|difference| format!("{}: {difference}", case.name))
    });
}

/// Decides one case; the error says what differs.
fn check(case: &Case) -> Result<(), String> {
    let decision = decision(case);
    let expected = &case.does;
    let event = decision.event.map(|kind| kind.as_str().to_owned());
    let same = decision.action.as_str() == expected.action
        && decision.reason.contains(&expected.why)
        && decision.not_before == expected.at.map(|seconds| ago(-seconds))
        && decision.budget_left == expected.left
        && decision.stopped == expected.stopped
        && decision.begins_patience == expected.begins_patience
        && (expected.event.is_none() || event == expected.event);
    if same { Ok(()) } else { Err(format!("expected {expected:?}, decided {decision:?}")) }
}

/// Diagnoses and decides, as the daemon does.
fn decision(case: &Case) -> Decision {
    let job = case.record.job();
    let run = scenario::run(&job, &case.record, &case.tmux, case.engine.as_ref());
    let target = case.api.as_ref().map(Api::fact);
    let verdict = case.text.as_ref().map(Text::verdict);
    let facts =
        JobFacts { run: &run, verdict: verdict.as_ref(), target: target.as_ref(), now: now() };
    let shown = diagnose(&job, &facts);
    let around = &case.around;
    let rivals: Vec<JobId> = around.rivals.iter().map(|id| JobId::parse(id).unwrap()).collect();
    let target_lease: Option<(Lease, bool)> =
        around.target_lease.as_ref().map(|(owner, alive)| (scenario::lease(owner, 20), *alive));
    let lineage: Vec<JobNumber> = [7].iter().chain(&around.later).copied().map(JobNumber).collect();
    decide(&Situation {
        job: &job,
        lineage: &lineage,
        shown: &shown,
        facts: &facts,
        looked_at: ago(around.looked),
        rivals: &rivals,
        me: around.me.as_deref(),
        owners: Owners {
            lease: around.lease_owner_alive,
            intent: around.intent_owner_alive,
            target: target_lease.as_ref().map(|(lease, alive)| (lease, Some(*alive))),
            account: around.account.as_deref(),
        },
        jitter: 0.0,
        patience_s: around.patience.unwrap_or(PATIENCE_S),
    })
}
