//! `target: {accelerator: …}` and `tpu:`: a target that is made for the job.

use crate::BadFile;
use crate::yaml::{Yaml, YamlValue};
use tpu_core::model::options::KindOptions;
use tpu_core::model::order::{Numbered, Preferred, STARTUP_SCRIPT, TargetOrder, TypeInZone};
use tpu_core::model::target::Pricing;
use tpu_core::text::either;

use super::target::PRICING;
use super::values::{bad, map, text, texts, truth, unknown};

const EXAMPLE: &str = "target: {accelerator: v6e-16, zone: us-east5-b, pricing: spot}";
const REQUEST: &str = "tpu: {name: my-tpu, number: auto}";

/// What `target:` says of it.
pub(super) const TARGET: [&str; 6] =
    ["accelerator", "zone", "pricing", "version", "mode", "prefer"];

/// What `tpu:` says of it.
pub(super) const TPU: [&str; 8] =
    ["name", "number", "tags", "metadata", "startup_script", "network", "flags", "delete_after"];

/// Flags of gcloud that mean something to its API as well (Cloud TPU API, `Node`).
const FLAGS: [(&str, &str); 5] = [
    ("--network", "network"),
    ("--subnetwork", "subnetwork"),
    ("--service-account", "service-account"),
    ("--internal-ips", "internal-ips"),
    ("--tags", "tag"),
];

/// Whether a target is asked for, and not named.
pub(super) fn is_order(target: &Yaml) -> bool {
    target.get("accelerator").is_some()
}

/// What is asked for, of `target:`, `tpu:` and the name of the job.
pub(super) fn read(
    target: &Yaml,
    tpu: Option<&Yaml>,
    (name, login): (Option<&str>, Option<String>),
) -> Result<TargetOrder, BadFile> {
    let members = map(target, "target", EXAMPLE)?;
    refuse_others(members, "target", &TARGET)?;
    let list = |key: &str| -> Result<Vec<String>, BadFile> {
        let missing =
            || bad(target, "target", format!("{key}: is missing"), format!("as in {EXAMPLE}"));
        let value = target.get(key).ok_or_else(missing)?;
        let all = texts(value, &format!("target.{key}"), EXAMPLE)?;
        Ok(all.into_iter().map(|(_, text)| text.to_owned()).collect())
    };
    let (accelerators, zones) = (list("accelerator")?, list("zone")?);
    let each = |accelerator: &String| {
        let candidate =
            |zone: &String| TypeInZone { accelerator: accelerator.clone(), zone: zone.clone() };
        zones.iter().map(candidate).collect::<Vec<_>>()
    };
    let candidates: Vec<TypeInZone> = accelerators.iter().flat_map(each).collect();
    let one = |key: &str, known: &[&str]| -> Result<Option<String>, BadFile> {
        let Some(value) = target.get(key).filter(|value| !is_blank(value)) else { return Ok(None) };
        let field = format!("target.{key}");
        let said = text(value, &field, EXAMPLE)?;
        if known.is_empty() || known.contains(&said) {
            return Ok(Some(said.to_owned()));
        }
        Err(bad(value, &field, format!("'{said}' is unknown"), either(known)))
    };
    let pricing = match one("pricing", &PRICING)?.as_deref() {
        Some("spot") => Pricing::Spot,
        Some("preemptible") => Pricing::Preemptible,
        _ => Pricing::OnDemand,
    };
    let prefer = one("prefer", &Preferred::ALL.map(Preferred::as_str))?;
    let is_preferred = |of: &Preferred| Some(of.as_str()) == prefer.as_deref();
    let mode = one("mode", &["tpu-vm", "queued-resources"])?;
    let mut order = TargetOrder {
        name: String::new(),
        numbered: Numbered::Not,
        candidates,
        preferred: Preferred::ALL.into_iter().find(is_preferred),
        pricing,
        runtime_version: one("version", &[])?,
        is_queued: mode.as_deref() == Some("queued-resources"),
        login,
        goes_with_its_job: false,
        options: KindOptions::default(),
    };
    let is_numbered = tpu.is_some_and(|tpu| tpu.get("number").is_some());
    let said = tpu.map(|tpu| request(tpu, &mut order)).transpose()?.flatten();
    if said.is_none() && !is_numbered {
        // The name of the job is taken by the job.
        order.numbered = Numbered::Auto;
    }
    if order.is_queued && order.candidates.len() > 1 {
        let hint = "name one type and one zone, or mode: tpu-vm, which goes from one to the next";
        let at = target.get("mode").unwrap_or(target);
        return Err(bad(
            at,
            "target.mode",
            "of several types or zones it is not supported yet",
            hint,
        ));
    }
    let Some(named) = said.as_deref().or(name) else {
        let hint = format!("name: of the job is one too, or: {REQUEST}");
        return Err(bad(target, "target", "it has no name", hint));
    };
    for candidate in &order.candidates {
        let named = TargetOrder { name: named.to_owned(), ..order.clone() };
        let number = match order.numbered {
            Numbered::With(number) => Some(number),
            Numbered::Not | Numbered::Auto => None,
        };
        if name == Some(named.full_name(candidate, number).as_str())
            && order.numbered != Numbered::Auto
        {
            let at = tpu.and_then(|tpu| tpu.get("name")).unwrap_or(target);
            let hint = "number: auto puts a number behind it, or give one of them another name";
            return Err(bad(at, "tpu.name", "the job and its TPU cannot have one name", hint));
        }
        let full = named.full_name(candidate, Some(99));
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !full.chars().all(plain)
            || !full.starts_with(|c: char| c.is_ascii_lowercase())
            || full.len() > 60
        {
            let at = tpu.and_then(|tpu| tpu.get("name")).unwrap_or(target);
            let what = format!("'{full}' cannot be the name of a TPU");
            return Err(bad(
                at,
                "tpu.name",
                what,
                "a small letter, then small letters, digits and -",
            ));
        }
    }
    named.clone_into(&mut order.name);
    Ok(order)
}

fn is_blank(value: &Yaml) -> bool {
    matches!(value.value, YamlValue::Blank)
}

fn refuse_others(members: &[(String, Yaml)], of: &str, known: &[&str]) -> Result<(), BadFile> {
    for (key, value) in members {
        let field = format!("{of}.{key}");
        if !known.contains(&key.as_str()) {
            return Err(unknown(value, (&field, key), known.iter().copied()));
        }
    }
    Ok(())
}

/// `tpu:`: its name, if one is said.
fn request(tpu: &Yaml, order: &mut TargetOrder) -> Result<Option<String>, BadFile> {
    let members = map(tpu, "tpu", REQUEST)?;
    refuse_others(members, "tpu", &TPU)?;
    let mut name = None;
    for (key, value) in members.iter().filter(|(_, value)| !is_blank(value)) {
        let field = format!("tpu.{key}");
        match key.as_str() {
            "name" => name = Some(text(value, &field, REQUEST)?.to_owned()),
            "number" => {
                order.numbered = match text(value, &field, REQUEST)? {
                    "auto" => Numbered::Auto,
                    said => Numbered::With(said.parse().map_err(|_| {
                        bad(value, &field, format!("'{said}' is no number"), "a number, or auto")
                    })?),
                };
            }
            "tags" => say_each(order, "tag", value, &field)?,
            "network" => say_each(order, "network", value, &field)?,
            "metadata" => {
                for (key, value) in map(value, &field, "metadata: {owner: me}")? {
                    let said = text(value, &field, "metadata: {owner: me}")?;
                    order.options.say("metadata", format!("{key}={said}"));
                }
            }
            "delete_after" => match text(value, &field, "delete_after: done")? {
                "done" => order.goes_with_its_job = true,
                other => {
                    let hint = "delete_after: done, or leave it away: it stays";
                    return Err(bad(value, &field, format!("'{other}' is unknown"), hint));
                }
            },
            "startup_script" => say_each(order, STARTUP_SCRIPT, value, &field)?,
            _ => flags(order, value, &field)?,
        }
    }
    Ok(name)
}

fn say_each(
    order: &mut TargetOrder,
    option: &str,
    value: &Yaml,
    field: &str,
) -> Result<(), BadFile> {
    if matches!(&value.value, YamlValue::List(all) if all.is_empty()) {
        return Ok(());
    }
    for (_, said) in texts(value, field, "tags: [a, b]")? {
        order.options.say(option, said);
    }
    Ok(())
}

/// Flags for gcloud, as far as its API knows them.
fn flags(order: &mut TargetOrder, value: &Yaml, field: &str) -> Result<(), BadFile> {
    if matches!(&value.value, YamlValue::List(all) if all.is_empty()) {
        return Ok(());
    }
    for (at, said) in texts(value, field, "flags: [--internal-ips]")? {
        let (flag, of) = said.split_once('=').unwrap_or((said, "true"));
        let Some((_, option)) = FLAGS.iter().find(|(known, _)| *known == flag) else {
            let known: Vec<&str> = FLAGS.iter().map(|(known, _)| *known).collect();
            let hint = format!("nothing here calls gcloud; understood are {}", known.join(", "));
            return Err(bad(at, field, format!("{flag} means nothing here"), hint));
        };
        for one in of.split(',') {
            order.options.say(*option, one);
        }
    }
    truth_of(order, value, field)
}

/// `--internal-ips=yes` is no truth.
fn truth_of(order: &TargetOrder, value: &Yaml, field: &str) -> Result<(), BadFile> {
    let said = order.options.get("internal-ips");
    let as_value = |said: &str| Yaml { value: YamlValue::Text(said.to_owned()), ..value.clone() };
    said.map_or(Ok(()), |said| truth(&as_value(said), field).map(drop))
}
