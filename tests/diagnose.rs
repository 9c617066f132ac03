//! `plan::diagnose` against the table of spec/jobs.md §1–2, one case of `tests/cases/diagnose/*.toml` each.

use serde::Deserialize;
use tpu::model::facts::{Phase, Source};
use tpu::plan::diagnose::{Facts, diagnose};
use tpu::plan::place::{self, Window};

use super::common::scenario::{self, Api, Record, Text, Tmux};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    record: Record,
    #[serde(default)]
    tmux: Tmux,
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
    let tmux = case.tmux.fact(&job);
    let window = place::find(&job, "alice", &tmux);
    let by_pane = if let Window::Here(pane) = &window { pane.exit } else { None };
    let exit = by_pane.or(case.record.exit);
    let target = case.api.as_ref().map(Api::fact);
    let facts = Facts {
        window,
        exit: exit.map(|code| job.exit(code)),
        verdict: case.text.as_ref().map(Text::verdict),
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
        && shown.phase == expected.phase;
    if same { Ok(()) } else { Err(format!("expected {expected:?}, shows {shown:?}")) }
}
