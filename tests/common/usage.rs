//! What ran in the last weeks of two users, counted as the program counts it, for the tests of the screen.

use std::sync::Arc;

use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::{JobId, JobNumber, TargetName, UserName};
use tpu_core::model::target::Pricing;
use tpu_core::model::time::Timestamp;
use tpu_core::plan::stats::run::{CapacityWait, Past, PastRun, Period, RanOn, RunOutcome};
use tpu_core::plan::stats::stats;
use tpu_ops::observe::stats::StatsReport;
use tpu_screen::message::{Answer, Ask, Effect, UsageQuestion};

use super::boards::answer;
use super::samples::NOW;
use super::screen::Screen;

const HOUR_S: i64 = 3_600;

/// Where attempts ran: name, type, zone, and what an hour costs.
const TARGETS: [(&str, &str, &str, f64); 4] = [
    ("lab-v4-8-1", "v4-8", "us-central2-b", 2.0),
    ("lab-v4-8-2", "v4-8", "us-central2-b", 2.0),
    ("lab-v2-32-preemptible-7", "v2-32", "europe-west4-a", 1.5),
    ("日本-v3-8", "v3-8", "asia-northeast1-b", 1.0),
];

/// The attempt of a number: of the lineage of its number less the last digit, so many hours ago.
fn run(window: u32, target: usize, (ago_h, lasted_h): (i64, i64), outcome: RunOutcome) -> PastRun {
    let (name, accelerator, zone, price) = TARGETS[target];
    let began = Timestamp::from_second(NOW - ago_h * HOUR_S);
    let ended = began.plus_seconds(lasted_h * HOUR_S);
    let is_first = window.is_multiple_of(10);
    let line = match outcome {
        RunOutcome::Failed(ErrorKind::Oom) => "out of memory: 21.9G of 7.48G hbm on worker 3",
        RunOutcome::Failed(ErrorKind::Grpc) => "lost peer 17: the connection was reset",
        _ => "the machine was taken away",
    };
    PastRun {
        id: JobId::new(
            UserName::from(if target == 3 { "bob" } else { "alice" }),
            JobNumber(window),
        ),
        father: (!is_first).then(|| JobNumber(window - 1)),
        tag: (target < 2).then(|| "baseline".to_owned()),
        on: Arc::new(RanOn {
            target: TargetName::from(name),
            accelerator: Some(accelerator.to_owned()),
            zone: Some(zone.to_owned()),
            kind: Some("tpu".to_owned()),
            pricing: Some(Pricing::Spot),
        }),
        began,
        ended: (outcome != RunOutcome::AtWork).then_some(ended),
        outcome,
        worked: None,
        line: matches!(outcome, RunOutcome::Failed(_)).then(|| line.to_owned()),
        reached: Some(f64::from(window % 10 + 1) * 1_000.0),
        is_from_nothing: is_first,
        waited_s: is_first.then_some(720),
        per_hour: Some(price),
    }
}

/// Twelve attempts in forty days: preemptions in the small hours, two other failures, one at work.
fn past() -> Past {
    let preempted = RunOutcome::Failed(ErrorKind::Preempted);
    let runs = vec![
        run(10, 0, (960, 30), preempted),
        run(11, 0, (929, 40), RunOutcome::Finished),
        run(20, 0, (600, 26), preempted),
        run(21, 1, (573, 71), preempted),
        run(22, 1, (500, 20), RunOutcome::Failed(ErrorKind::Grpc)),
        run(23, 1, (479, 90), RunOutcome::Finished),
        run(30, 2, (300, 48), preempted),
        run(31, 2, (251, 47), preempted),
        run(32, 2, (203, 60), RunOutcome::Stopped),
        run(40, 2, (100, 2), RunOutcome::Failed(ErrorKind::Oom)),
        run(50, 0, (31, 31), RunOutcome::AtWork),
        run(60, 3, (200, 55), RunOutcome::Finished),
    ];
    let wait = |job: u32, came: bool| CapacityWait {
        at: Timestamp::from_second(NOW - 250 * HOUR_S),
        job: JobId::new(UserName::from("alice"), JobNumber(job)),
        accelerator: "v2-32".to_owned(),
        zone: "europe-west4-a".to_owned(),
        pricing: Some(Pricing::Spot),
        waited_s: 4_200,
        came,
    };
    Past { runs, capacity: vec![wait(31, true), wait(32, true), wait(32, false)] }
}

/// What is answered.
pub(crate) fn report(question: &UsageQuestion) -> StatsReport {
    counted(&past(), question)
}

/// The same of other runs.
fn counted(past: &Past, question: &UsageQuestion) -> StatsReport {
    let until = Timestamp::from_second(NOW);
    let since = question.reach.days().map(|days| until.plus_seconds(-days * 24 * HOUR_S));
    let period = Period { since, until };
    StatsReport {
        by: question.by,
        stats: stats(&past.of(&question.whose), question.by, &period, &question.zone),
        period,
        endless: 2,
        journal_since: None,
    }
}

/// The question that is asked last.
pub(crate) fn asked(effects: &[Effect]) -> Option<UsageQuestion> {
    effects.iter().rev().find_map(|effect| match effect {
        Effect::Ask(Ask::Usage(question)) => Some(question.clone()),
        _ => None,
    })
}

/// Presses keys, and answers whatever is asked about usage after each.
pub(crate) fn press(screen: &mut Screen, keys: &str) {
    press_of(&past(), screen, keys);
}

/// The same where other runs are counted.
pub(crate) fn press_of(past: &Past, screen: &mut Screen, keys: &str) {
    for key in keys.split_whitespace() {
        let mut effects = screen.press(key);
        while let Some(question) = asked(&effects) {
            let report = counted(past, &question);
            let before = screen.effects.len();
            answer(screen, Ask::Usage(question), Answer::Usage(Box::new(report)));
            effects = screen.effects[before..].to_vec();
        }
    }
}
