//! `repeat:`: whether a command begins again where it runs.

use crate::BadFile;
use crate::yaml::{Yaml, YamlValue};
use tpu_core::model::repeat::{Repeat, RepeatWhen};
use tpu_core::text::either;

use super::setup::seconds;
use super::values::{bad, map, text, unknown};

const EXAMPLE: &str = "repeat: {when: on-failure, pause: 60s}";

/// The keys.
const KEYS: [&str; 2] = ["when", "pause"];

/// What is said where it does not begin again.
pub(super) const NEVER: &str = "never";

/// Seconds that a pause may last.
const LONGEST_S: u32 = 86_400;

/// After which ends, and after which pause; `None` where it is never.
pub(super) fn read(value: &Yaml, field: &str) -> Result<Option<Repeat>, BadFile> {
    let members = match &value.value {
        YamlValue::Map(_) => map(value, field, EXAMPLE)?,
        YamlValue::Blank | YamlValue::Text(_) | YamlValue::List(_) => {
            let when = when(value, field)?;
            return Ok(when.map(|when| Repeat { when, pause_s: Repeat::PAUSE_S }));
        }
    };
    if let Some((key, of)) = members.iter().find(|(key, _)| !KEYS.contains(&key.as_str())) {
        return Err(unknown(of, (&format!("{field}.{key}"), key), KEYS.into_iter()));
    }
    let get = |key: &str| members.iter().find(|(known, _)| known == key).map(|(_, value)| value);
    let Some(said) = get("when") else {
        return Err(bad(value, field, "when: is missing", format!("as in {EXAMPLE}")));
    };
    let when = when(said, &format!("{field}.when"))?;
    let pause_s = get("pause").map(|value| pause(value, &format!("{field}.pause"))).transpose()?;
    Ok(when.map(|when| Repeat { when, pause_s: pause_s.unwrap_or(Repeat::PAUSE_S) }))
}

fn when(value: &Yaml, field: &str) -> Result<Option<RepeatWhen>, BadFile> {
    let said = text(value, field, EXAMPLE)?;
    if said == NEVER {
        return Ok(None);
    }
    RepeatWhen::parse(said).map(Some).ok_or_else(|| {
        let [always, on_failure] = RepeatWhen::ALL.map(RepeatWhen::as_str);
        bad(value, field, format!("'{said}' is unknown"), either(&[NEVER, always, on_failure]))
    })
}

fn pause(value: &Yaml, field: &str) -> Result<u32, BadFile> {
    let pause = u32::try_from(seconds(value, field)?).ok().filter(|pause| *pause <= LONGEST_S);
    pause.ok_or_else(|| bad(value, field, "no pause is longer than a day", "as in 60s or 5m"))
}
