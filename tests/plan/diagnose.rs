//! `plan::diagnose` against the table of spec/jobs.md §1–2, one case of `tests/cases/diagnose/*.toml` each.

use serde::Deserialize;
use tpu_core::model::facts::{Class, Phase, Progress, Source, Verdict};
use tpu_core::plan::diagnose::{JobFacts, diagnose};

use crate::common::scenario::{self, Api, Engine, Record, Text, Tmux};

#[derive(Debug, Deserialize)]
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
    shows: Shows,
}

/// What is expected. What is not named here must be absent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shows {
    status: String,
    /// A part of the reason.
    unknown: Option<String>,
    source: Option<Source>,
    rule: Option<String>,
    /// A part of the evidence.
    line: Option<String>,
    phase: Option<Phase>,
    /// The engine's word for why it has not begun.
    pending: Option<String>,
    /// In how many seconds it is expected to.
    starts_in: Option<i64>,
}

#[test]
fn every_scenario_shows_what_the_contract_says() {
    scenario::all_hold("diagnose", |case: &Case| {
        check(case).map_err(|difference| format!("{}: {difference}", case.name))
    });
}

/// Diagnoses one case; the error says what differs.
fn check(case: &Case) -> Result<(), String> {
    let job = case.record.job();
    let run = scenario::run(&job, &case.record, &case.tmux, case.engine.as_ref());
    let target = case.api.as_ref().map(Api::fact);
    let verdict = case.text.as_ref().map(Text::verdict);
    let facts = JobFacts {
        run: &run,
        verdict: verdict.as_ref(),
        target: target.as_ref(),
        now: scenario::now(),
    };
    let shown = diagnose(&job, &facts);
    let expected = &case.shows;
    let contains = |found: Option<&str>, part: Option<&str>| match (found, part) {
        (Some(found), Some(part)) => found.contains(part),
        (found, part) => found.is_none() && part.is_none(),
    };
    let evidence = shown.evidence.as_ref();
    let same = shown.status == scenario::status(&expected.status)
        && contains(shown.unknown.as_deref(), expected.unknown.as_deref())
        && evidence.map(|e| e.source) == expected.source
        && evidence.map(|e| e.rule.as_str()) == expected.rule.as_deref()
        && expected
            .line
            .as_ref()
            .is_none_or(|part| contains(evidence.map(|e| e.line.as_str()), Some(part.as_str())))
        && shown.phase == expected.phase
        && contains(
            shown.pending.as_ref().map(|pending| pending.raw.as_str()),
            expected.pending.as_deref(),
        )
        && shown.pending.as_ref().and_then(|pending| pending.expected_start)
            == expected.starts_in.map(|seconds| scenario::ago(-seconds));
    if same { Ok(()) } else { Err(format!("expected {expected:?}, shows {shown:?}")) }
}

/// How far it came is what its record keeps, once it is over; before, it is what its text shows, and nothing where
/// that is not to be seen: what was kept at an error that was none is old.
#[test]
fn the_numbers_of_what_is_over_are_those_of_its_record() {
    let table = [
        ("finished", Some(300), Some(9), Some(300)),
        ("finished", Some(300), None, Some(300)),
        ("finished", None, Some(9), Some(9)),
        ("error: oom", Some(300), Some(9), Some(300)),
        ("killed", Some(300), None, Some(300)),
        ("resumed: grpc", Some(300), None, Some(300)),
        ("running", Some(300), Some(9), Some(9)),
        ("running", Some(300), None, None),
        ("finished", None, None, None),
    ];
    for (status, kept, read, wanted) in table {
        let step = |step| Progress { step, steps_per_s: Some(2.0), ..Progress::default() };
        let record = format!("status = {status:?}\nlaunch = \"script\"");
        let mut job = toml::from_str::<Record>(&record).unwrap().job();
        job.reached = kept.map(|kept| Box::new(step(Some(kept)).reached()));
        let verdict = read.map(|read| Verdict {
            class: Class::None,
            phase: None,
            progress: step(Some(read)),
            evidence: None,
        });
        let record = toml::from_str(&record).unwrap();
        let run = scenario::run(&job, &record, &Tmux::default(), None);
        let verdict = verdict.as_ref();
        let facts = JobFacts { run: &run, verdict, target: None, now: scenario::now() };
        let shown = diagnose(&job, &facts);
        let case = format!("{status}, {kept:?}, {read:?}");
        assert_eq!(shown.progress.step, wanted, "{case}");
        let speed = shown.progress.steps_per_s.is_some();
        assert_eq!(speed, wanted.is_some() && status == "running", "{case}");
    }
}
