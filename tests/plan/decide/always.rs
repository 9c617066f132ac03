//! What holds in every situation, however odd: properties over generated ones.

use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;
use tpu_core::model::facts::{ErrorKind, Progress};
use tpu_core::model::job::{Job, Status};
use tpu_core::model::rules::Action;
use tpu_core::plan::backoff;
use tpu_core::plan::budget::{self, Budget, RetryCounts};

use super::{Case, decision};
use crate::common::scenario::{Record, now, status};

const BUDGETS: [Budget; 3] = [Budget::Capacity, Budget::Infrastructure, Budget::Program];

/// Any record that may be found.
fn records() -> impl Strategy<Value = serde_json::Value> {
    let mut statuses = vec![
        "null".to_owned(),
        "starting".to_owned(),
        "running".to_owned(),
        "finished".to_owned(),
        "killed".to_owned(),
        "resumed: grpc".to_owned(),
    ];
    // Errors as often as all others together, since only they can lead to something.
    for kind in ErrorKind::ALL {
        statuses.push(format!("error: {kind}"));
    }
    let history = (0_u32..22, 0_u32..4, option::of(-10_i64..2_000), option::of(0_i64..2_000));
    (
        select(statuses),
        option::weighted(0.9, select(vec!["native", "script"])),
        0_i64..5_000,
        option::of((select(vec![0, 1, 137]), 0_i64..300)),
        (option::weighted(0.1, 8_u32..9), option::of(6_u32..7)),
        (
            select(vec!["pre", "reapply", "rerun", "pass", "oom:resume,unknown:rerun"]),
            any::<bool>(),
        ),
        option::weighted(0.2, select(vec!["killing", "reapply", "resume"])),
        option::weighted(0.1, select(vec!["host", "boot", "socket", "server"])),
        (history, any::<bool>(), option::weighted(0.2, -5_i64..30)),
    )
        .prop_map(|(status, launch, launched, end, kin, rule, intent, place, past)| {
            let ((count, quick, last, judged), proven, lease) = past;
            let place = place.filter(|_| launch.is_some());
            let verdict = proven.then(
                || json!({ "kind": "preempted", "rule": "target-state", "line": "PREEMPTED" }),
            );
            json!({
                "status": status, "launch": launch, "launched": launched,
                "exit": end.map(|end| end.0), "ended": end.map(|end| end.1),
                "child": kin.0, "father": kin.1, "rule": rule.0, "monitor": rule.1,
                "intent": intent, "place": place, "verdict": verdict,
                "lease": lease.map(|for_s| json!(["h:b:5:100", for_s])),
                "recovery": {
                    "infra": count, "capacity": count, "capacity_row": count, "quick": quick,
                    "last_action": last, "judged": judged,
                },
            })
        })
}

/// Any situation, as a scenario without an expectation.
fn situations() -> impl Strategy<Value = Case> {
    let servers = select(vec!["up", "up", "up", "down", "it timed out"]);
    let panes = select(vec!["alive", "alive", "none", "dead", "later-launch"]);
    let classes = select(vec!["running", "grpc", "oom", "preempted", "finished", "none"]);
    let states = select(vec![
        "ready",
        "ready",
        "preempted",
        "preempted",
        "gone",
        "pending",
        "stopped",
        "deleting",
        "not-watched",
        "unknown",
    ]);
    let text = option::of((classes, option::of(0_u64..900)));
    let api = option::weighted(0.9, (states, select(vec![-100_i64, 0, 1, 30, 60, 61, 900])));
    let around = (select(vec![0_i64, 5, 60, 61]), any::<bool>(), option::of(any::<bool>()));
    (records(), servers, panes, text, api, around).prop_map(
        |(record, server, pane, text, api, (looked, rival, alive))| {
            let case = json!({
                "name": "generated",
                "record": record,
                "tmux": { "server": server, "pane": pane },
                "text": text.map(|(class, step)| json!({ "class": class, "step": step })),
                "api": api.map(|(state, age)| json!({ "state": state, "age": age })),
                "around": {
                    "looked": looked,
                    "rivals": if rival { vec!["bob/3"] } else { vec![] },
                    "lease_owner_alive": alive,
                    "intent_owner_alive": alive,
                },
                "does": { "action": "", "why": "" },
            });
            serde_json::from_value(case).unwrap()
        },
    )
}

/// Why acting in this situation would be wrong, if it would.
fn forbids(case: &Case, action: Action) -> Option<&'static str> {
    let record = &case.record;
    let api = case.api.as_ref();
    let state = api.map_or("none".to_owned(), |api| format!("{:?}", api.state));
    let watched = state != "NotWatched";
    let fresh = api.is_some_and(|api| (-60..=60).contains(&api.age));
    let stored = status(&record.status);
    let lease_runs = record.lease.as_ref().is_some_and(|(_, for_s)| *for_s > 0);
    let creates = matches!(action, Action::Reapply | Action::Wait);
    [
        (stored.is_final(), "final"),
        (record.child.is_some(), "no leaf"),
        (!record.monitor, "monitor=false"),
        (case.around.looked > 60, "the look is too old"),
        (matches!(record.place.as_deref(), Some("host" | "socket")), "elsewhere"),
        (
            // A boot that is over is certain without a server.
            case.tmux.server.as_deref() != Some("up") && record.place.as_deref() != Some("boot"),
            "tmux is unknown",
        ),
        (watched && !fresh, "no fresh answer"),
        (state == "Unknown" || state == "none", "the target is unknown"),
        (matches!(state.as_str(), "Pending" | "Deleting"), "the target is on its way"),
        (record.intent.as_deref() == Some("killing"), "it is being killed"),
        (lease_runs && case.around.lease_owner_alive != Some(false), "leased"),
        (!case.around.rivals.is_empty(), "another job uses the target"),
        (record.rule.as_deref() == Some("pass") && record.intent.is_none(), "the rules pass"),
        (
            creates
                && state == "Ready"
                && record.intent.is_none()
                && record.rule.as_deref() != Some("reapply"),
            "a healthy target",
        ),
        (creates && !watched, "a creation without a control plane"),
        (
            record.exit == Some(0)
                && stored.is_live()
                && record.launch.as_deref() == Some("native"),
            "it has finished",
        ),
    ]
    .into_iter()
    .find_map(|(wrong, why)| wrong.then_some(why))
}

/// The record of a scenario of one line.
fn job(record: serde_json::Value) -> Job {
    serde_json::from_value::<Record>(record).unwrap().job()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_done_that_must_not_be(case in situations()) {
        let decision = decision(&case);
        prop_assert!(!decision.reason.is_empty(), "a decision has a reason: {decision:?}");
        prop_assert_eq!(decision.action == Action::Pass, decision.not_before.is_none());
        if decision.action != Action::Pass {
            prop_assert_eq!(forbids(&case, decision.action), None, "{:?}", decision);
            let begun = case.record.intent.is_some();
            // The rare tries have no number.
            prop_assert!(begun || decision.budget_left != Some(0), "{:?}", decision);
            let latest = now().plus_seconds(if decision.budget_left.is_some() { 660 } else { 14_400 });
            prop_assert!(decision.not_before <= Some(latest), "{:?}", decision);
            prop_assert!(!decision.stopped);
        }
    }

    #[test]
    fn delays_grow_and_keep_their_bounds(row in 0_u32..100_000, jitter in any::<f64>()) {
        for pace in BUDGETS.map(Budget::pace).into_iter().chain([backoff::PATIENT]) {
            let delay = backoff::delay_s(pace, row, jitter);
            prop_assert!(delay <= f64::from(pace.limit_s) * 1.1, "{delay}");
            prop_assert!(row == 0 || delay >= f64::from(pace.base_s), "{delay}");
            prop_assert!(backoff::delay_s(pace, 0, jitter) <= 0.0);
            prop_assert!(backoff::delay_s(pace, row + 1, 0.0) >= backoff::delay_s(pace, row, 0.0));
            let doubled = f64::min(2.0 * backoff::delay_s(pace, row, 0.0), f64::from(pace.limit_s));
            prop_assert!(row == 0 || (backoff::delay_s(pace, row + 1, 0.0) - doubled).abs() < 1e-6);
        }
    }

    /// However failures follow each other: what is left of a budget falls by one with each reaction that
    /// draws on it, and rises only through progress.
    #[test]
    fn budgets_only_shrink_unless_there_is_progress(
        life in prop::collection::vec((select(ErrorKind::ALL.to_vec()), option::of(0_u64..9), any::<bool>()), 1..60)
    ) {
        let mut job = job(json!({ "status": "error: grpc", "launch": "native" }));
        for (kind, step, succeeds) in life {
            let progress = Progress { step, ..Progress::default() };
            let further = budget::has_progressed(&job, &progress);
            let budget = Budget::of(&job, kind);
            let none = Progress::default();
            let left = |job: &Job, budget| RetryCounts::of(job, &none, kind).left(budget);
            let before = BUDGETS.map(|budget| left(&job, budget));
            job.keep_counts(budget::spent(&job, &progress, kind, now()));
            prop_assert!(!budget::has_progressed(&job, &progress), "progress counts once");
            if succeeds {
                job.keep_counts(budget::inherited(&job, kind));
                job.status = Status::Error(kind);
            }
            for (other, before) in BUDGETS.into_iter().zip(before) {
                let after = left(&job, other);
                if !further || other == Budget::Capacity {
                    let drawn = u32::from(other == budget && before > 0);
                    prop_assert_eq!(after, before - drawn, "{:?} after {}", other, kind);
                } else if other == budget {
                    prop_assert_eq!(after, other.limit().saturating_sub(1));
                } else {
                    prop_assert_eq!(after, other.limit());
                }
            }
        }
    }
}

/// The whole life of a program that dies as soon as it is started: three children, then the end.
#[test]
fn a_program_that_dies_at_once_is_restarted_three_times() {
    let died = |father: Option<u32>| {
        job(
            json!({ "status": "error: grpc", "launch": "native", "launched": 30, "exit": 1, "ended": 29, "father": father }),
        )
    };
    let mut attempt = died(None);
    let mut children = 0;
    loop {
        let none = Progress::default();
        if RetryCounts::of(&attempt, &none, ErrorKind::Grpc).is_crash_loop(Budget::Infrastructure) {
            break;
        }
        attempt.keep_counts(budget::spent(&attempt, &none, ErrorKind::Grpc, now()));
        let inherited = budget::inherited(&attempt, ErrorKind::Grpc);
        attempt = Job { recovery: Some(Box::new(inherited)), ..died(Some(6)) };
        children += 1;
        assert!(children < 10, "it never stops");
    }
    assert_eq!(children, 3);
}
