//! What configs and tasks have in common.

use crate::BadFile;
use crate::own::Place;
use crate::yaml::{Yaml, YamlValue};
use tpu_core::model::variables;

use super::ConversionNote;
use super::block::{Block, made, map_of, word};

/// Scripts that run once on each machine before the first task there, as steps.
pub(super) fn prefixes(
    prefix: &Yaml,
    notes: &mut Vec<ConversionNote>,
) -> Result<Vec<Yaml>, BadFile> {
    let all = match &prefix.value {
        YamlValue::List(all) => all.iter().collect(),
        _ => vec![prefix],
    };
    let mut steps = Vec::new();
    for (number, one) in (1..).zip(all) {
        let once = Some(word(one, "machine"));
        let name = word(one, format!("prefix-{number}"));
        if one.text().is_some() {
            let said = vec![("name", Some(name)), ("run", Some(one.clone())), ("once_per", once)];
            steps.push(map_of(one, said));
            continue;
        }
        let mut of = Block::below(one, "job.queue.prefix".to_owned())?;
        let is_required = of.truth("required")?.is_some_and(|(_, is)| is);
        let name = of.take("name").cloned().unwrap_or(name);
        let run = of.need("run", "pip install -r requirements.txt")?;
        if !is_required {
            let what =
                "where it fails, the job does: JobMan goes on; write `|| true` behind it for that";
            notes.push(of.note(one, "required", what));
        }
        let said = vec![
            ("name", Some(name)),
            ("run", Some(run.clone())),
            ("workers", of.take("workers").cloned()),
            ("once_per", once),
        ];
        of.rest(notes);
        steps.push(map_of(one, said));
    }
    Ok(steps)
}

/// Variables of a job, and the names of those whose values are not to stand in its record.
pub(super) fn parted(
    at: &Yaml,
    all: Vec<(String, Yaml)>,
    notes: &mut Vec<ConversionNote>,
) -> (Option<Yaml>, Option<Yaml>) {
    let (secret, plain): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(name, _)| variables::looks_secret(name));
    for (name, value) in &secret {
        let what = format!("its value is not taken from here: tpu secrets set {name}");
        notes.push(ConversionNote { place: place(value), field: format!("env.{name}"), what });
    }
    let names = secret.iter().map(|(name, value)| word(value, name.as_str())).collect();
    let secrets = (!secret.is_empty()).then(|| made(at, YamlValue::List(names)));
    ((!plain.is_empty()).then(|| made(at, YamlValue::Map(plain))), secrets)
}

/// Where a value stands, or its key.
pub(super) fn place(value: &Yaml) -> Place {
    value.key.unwrap_or((value.line, value.column))
}

/// The same where `{{` is text: JobMan fills nothing in for it.
pub(super) fn literal(value: &Yaml) -> Yaml {
    let is = match &value.value {
        YamlValue::Blank => YamlValue::Blank,
        YamlValue::Text(text) => YamlValue::Text(text.replace("{{", "{{\"{{\"}}")),
        YamlValue::List(all) => YamlValue::List(all.iter().map(literal).collect()),
        YamlValue::Map(all) => {
            let each = all.iter().map(|(key, value)| (key.clone(), literal(value)));
            YamlValue::Map(each.collect())
        }
    };
    made(value, is)
}
