//! Several jobs in one file: documents, and `jobs:` over `defaults:`.

use std::cell::Cell;

use crate::BadFile;
use crate::yaml::{Yaml, YamlValue};

use super::Place;
use super::filled::{MOST_FILLED, take};
use super::values::{bad, bad_key, map};

/// What a file says of one job, with what holds for all of them.
pub(super) struct Said {
    /// Where it begins.
    pub place: Place,
    /// Its key in `jobs:`, which is its name.
    pub called: Option<String>,
    /// Its members.
    pub members: Vec<(String, Yaml)>,
}

/// The jobs of all documents, in order.
pub(super) fn jobs(documents: &[Yaml], room: &Cell<usize>) -> Result<Vec<Said>, BadFile> {
    let mut all = Vec::new();
    for document in documents {
        let members = map(document, "", "`target: local`, and below it `command: echo hello`")?;
        refuse_others(document)?;
        let defaults = document.get("defaults");
        if let Some(jobs) = document.get("jobs") {
            all.extend(of_document(members, (jobs, room), defaults)?);
            continue;
        }
        if let Some(defaults) = defaults {
            let what = "there are no jobs: that they could hold for";
            return Err(bad_key(defaults, "defaults", what, "as in jobs: {a: {…}}"));
        }
        let place = (document.line, document.column);
        all.push(Said { place, called: None, members: members.to_vec() });
    }
    Ok(all)
}

fn of_document(
    members: &[(String, Yaml)],
    (jobs, room): (&Yaml, &Cell<usize>),
    defaults: Option<&Yaml>,
) -> Result<Vec<Said>, BadFile> {
    if let Some((key, value)) = members.iter().find(|(key, _)| key != "jobs" && key != "defaults") {
        let what = "beside jobs: stands nothing but defaults:";
        return Err(bad_key(value, key, what, "what holds for all jobs stands below defaults:"));
    }
    let defaults = match defaults {
        Some(defaults) => map(defaults, "defaults", "defaults: {target: local}")?,
        None => &[],
    };
    if let Some((_, name)) = defaults.iter().find(|(key, _)| key == "name") {
        let what = "no two jobs have one name";
        return Err(bad_key(name, "defaults.name", what, "their keys below jobs: are their names"));
    }
    let size = defaults.iter().map(|(key, value)| key.len() + weight(value)).sum();
    let mut all = Vec::new();
    for (called, job) in map(jobs, "jobs", "jobs: {train: {target: local, command: echo}}")? {
        let own = match &job.value {
            YamlValue::Blank => &[],
            _ => map(job, &format!("jobs.{called}"), "train: {command: echo hello}")?,
        };
        if let Some((_, name)) = own.iter().find(|(key, _)| key == "name") {
            let what = format!("{called} is its name already");
            return Err(bad_key(name, "name", what, "leave it away"));
        }
        if !take(room, size) {
            let what =
                format!("what holds for all jobs would become more than {MOST_FILLED} characters");
            return Err(bad_key(job, called, what, "split it into several files"));
        }
        let place = job.key.unwrap_or((job.line, job.column));
        let members = merged(defaults, own);
        all.push(Said { place, called: Some(called.clone()), members });
    }
    Ok(all)
}

/// How large a value is, in characters; each value counts for a few more.
fn weight(value: &Yaml) -> usize {
    const EACH: usize = 16;
    let within = match &value.value {
        YamlValue::Blank => 0,
        YamlValue::Text(text) => text.len(),
        YamlValue::List(all) => all.iter().map(weight).sum(),
        YamlValue::Map(all) => all.iter().map(|(key, value)| key.len() + weight(value)).sum(),
    };
    EACH + within
}

/// What is said of one job over what holds for all: it wins, and maps are merged key by key.
fn merged(defaults: &[(String, Yaml)], own: &[(String, Yaml)]) -> Vec<(String, Yaml)> {
    let mut all: Vec<(String, Yaml)> = Vec::new();
    for (key, default) in defaults {
        let said = own.iter().find(|(known, _)| known == key).map(|(_, said)| said);
        let value = match said.map(|said| (said, &default.value, &said.value)) {
            None => default.clone(),
            Some((said, YamlValue::Map(below), YamlValue::Map(above))) => {
                Yaml { value: YamlValue::Map(merged(below, above)), ..said.clone() }
            }
            Some((said, _, _)) => said.clone(),
        };
        all.push((key.clone(), value));
    }
    let is_new = |(key, _): &&(String, Yaml)| !defaults.iter().any(|(known, _)| known == key);
    all.extend(own.iter().filter(is_new).cloned());
    all
}

/// Refuses the files of other tools by their names.
fn refuse_others(document: &Yaml) -> Result<(), BadFile> {
    if document.get("cloudmesh").is_some() {
        let what = "it is a jobset of Cloudmesh";
        return Err(bad(document, "cloudmesh", what, "tpu cms job add FILE reads it"));
    }
    if document.get("accelerators").is_some() {
        let what = "it is a file of JobMan's tasks";
        return Err(bad(document, "accelerators", what, "tpu submit FILE reads it, alone"));
    }
    Ok(())
}
