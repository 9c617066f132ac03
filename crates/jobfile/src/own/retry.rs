//! `retry:`: how often a job goes on by itself, and after which failures.

use crate::BadFile;
use crate::yaml::{Yaml, YamlValue};
use tpu_core::model::facts::ErrorKind;
use tpu_core::model::repeat::Repeat;
use tpu_core::model::retry::Retry;
use tpu_core::model::rules::{Action, Rules};

use super::setup::seconds;
use super::values::{bad, map, text, texts, unknown};

const EXAMPLE: &str = "retry: {max: 3, on: [preempted, lost], backoff: 60s}";

/// The keys.
const KEYS: [&str; 3] = ["max", "on", "backoff"];

/// No job is retried more often.
const MOST: u32 = 10_000;

/// Seconds that a first pause may last.
const LONGEST_S: u32 = 86_400;

/// What else of a job says what is done after failures: its rules, and whether its command begins again by itself.
pub(super) type Beside<'a> = (Option<&'a Yaml>, Option<Repeat>);

/// How often, and after which failures; `None` where it is never. What stands beside it speaks of other failures.
pub(super) fn read(
    value: &Yaml,
    field: &str,
    beside: Beside<'_>,
) -> Result<Option<Retry>, BadFile> {
    let members = match &value.value {
        YamlValue::Map(_) => map(value, field, EXAMPLE)?,
        YamlValue::Blank | YamlValue::Text(_) | YamlValue::List(_) => {
            let max = number(value, field)?;
            return Ok(retry(max, usual(beside), None));
        }
    };
    if let Some((key, of)) = members.iter().find(|(key, _)| !KEYS.contains(&key.as_str())) {
        return Err(unknown(of, (&format!("{field}.{key}"), key), KEYS.into_iter()));
    }
    let get = |key: &str| members.iter().find(|(known, _)| known == key).map(|(_, value)| value);
    let Some(max) = get("max") else {
        return Err(bad(value, field, "max: is missing", format!("as in {EXAMPLE}")));
    };
    let max = number(max, &format!("{field}.max"))?;
    let on = match get("on") {
        Some(on) => kinds(on, &format!("{field}.on"), beside)?,
        None => usual(beside),
    };
    let backoff_s = get("backoff").map(|value| {
        let field = format!("{field}.backoff");
        let pause = seconds(value, &field)?;
        let pause = u32::try_from(pause).ok().filter(|pause| *pause <= LONGEST_S);
        pause.ok_or_else(|| bad(value, &field, "no pause is longer than a day", "as in 60s or 5m"))
    });
    Ok(retry(max, on, backoff_s.transpose()?))
}

fn retry(max: u32, on: Vec<ErrorKind>, backoff_s: Option<u32>) -> Option<Retry> {
    (max > 0 && !on.is_empty()).then_some(Retry { max, on, backoff_s })
}

fn number(value: &Yaml, field: &str) -> Result<u32, BadFile> {
    let said = text(value, field, EXAMPLE)?;
    let number = said.parse().ok().filter(|number| *number <= MOST);
    number.ok_or_else(|| {
        let what = format!("'{said}' is no number of retries");
        bad(value, field, what, format!("from 0 to {MOST}, as in {EXAMPLE}"))
    })
}

/// The failures that are named.
fn kinds(
    value: &Yaml,
    field: &str,
    (rules, repeat): Beside<'_>,
) -> Result<Vec<ErrorKind>, BadFile> {
    let mut kinds = Vec::new();
    for (at, said) in texts(value, field, EXAMPLE)? {
        let Some(kind) = ErrorKind::parse(said) else {
            let known = ErrorKind::ALL.into_iter().map(ErrorKind::as_str);
            let hint = tpu_core::text::did_you_mean(said, known)
                .unwrap_or_else(|| "`tpu check-rules` lists them".to_owned());
            return Err(bad(at, field, format!("'{said}' is no kind of failure"), hint));
        };
        if kind == ErrorKind::Dependency {
            let what = "what waited for a job that failed has not begun";
            return Err(bad(at, field, what, "after_any: lets it begin all the same"));
        }
        if let Some(by) = rules.filter(|rules| speak_of(rules, kind)) {
            let what = format!("rules: in line {} say already what is done after {kind}", by.line);
            return Err(bad(at, field, what, "leave it out in one of them"));
        }
        if repeat.is_some() && Repeat::answers(kind) {
            let what = format!("repeat: says already what is done after {kind}");
            return Err(bad(at, field, what, "leave it out in one of them"));
        }
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    Ok(kinds)
}

/// The failures after which a job is retried where none are named: of the usual ones those of which nothing else is said.
fn usual((rules, repeat): Beside<'_>) -> Vec<ErrorKind> {
    let mut kinds = Retry::usual();
    kinds.retain(|kind| !rules.is_some_and(|rules| speak_of(rules, *kind)));
    kinds.retain(|kind| repeat.is_none() || !Repeat::answers(*kind));
    kinds
}

/// Whether rules say what is done after a failure. Those with a name pass most of them without a word.
fn speak_of(rules: &Yaml, kind: ErrorKind) -> bool {
    match &rules.value {
        YamlValue::Map(members) => {
            members.iter().any(|(name, _)| ErrorKind::parse(name) == Some(kind))
        }
        YamlValue::Blank | YamlValue::Text(_) | YamlValue::List(_) => {
            let parsed = rules.text().and_then(|typed| Rules::parse(typed).ok());
            parsed.is_some_and(|parsed| parsed.action(kind) != Action::Pass)
        }
    }
}
