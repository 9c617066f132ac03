//! What keys say of a job, as a file has it; what is as without a word is left out.

use serde_json::Value;

use crate::yaml::{Yaml, YamlValue};
use tpu_core::model::entry::AfterWhich;
use tpu_core::model::execution::Copying;
use tpu_core::model::notify::Receiver;
use tpu_core::model::order::{Numbered, STARTUP_SCRIPT, TargetOrder};
use tpu_core::model::repeat::Repeat;
use tpu_core::model::setup::{BucketMount, Gcsfuse, Module, OwnStep, StepFile};
use tpu_core::model::sweep::Sweep;
use tpu_core::model::target::Pricing;

use super::setup::CACHE;
use super::{Before, OwnCode, OwnJob, OwnTarget};

/// A map of what is said.
pub(super) fn map<'a>(members: impl IntoIterator<Item = (&'a str, Option<Yaml>)>) -> Yaml {
    let said = members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    yaml(YamlValue::Map(said.collect()))
}

fn yaml(value: YamlValue) -> Yaml {
    Yaml { line: 0, column: 0, key: None, value }
}

/// Text into which nothing is to be filled in.
pub(super) fn text(of: impl AsRef<str>) -> Yaml {
    yaml(YamlValue::Text(literal(of.as_ref())))
}

/// Text in which nothing is filled in, as it is written.
pub(crate) fn literal(text: &str) -> String {
    text.replace("{{", "{{\"{{\"}}")
}

pub(super) fn maybe(of: Option<&String>) -> Option<Yaml> {
    of.map(text)
}

pub(super) fn number(of: impl Into<u64>) -> Yaml {
    text(of.into().to_string())
}

pub(super) fn truth(is: bool) -> Option<Yaml> {
    is.then(|| text("true"))
}

pub(super) fn list(all: impl IntoIterator<Item = impl AsRef<str>>) -> Option<Yaml> {
    list_of(all.into_iter().map(text))
}

pub(super) fn list_of(all: impl IntoIterator<Item = Yaml>) -> Option<Yaml> {
    let all: Vec<Yaml> = all.into_iter().collect();
    (!all.is_empty()).then(|| yaml(YamlValue::List(all)))
}

/// One value as it is, several as a list.
fn one_or_list(all: impl IntoIterator<Item = impl AsRef<str>>) -> Option<Yaml> {
    let list = list(all)?;
    match list.value {
        YamlValue::List(mut all) if all.len() == 1 => all.pop(),
        value => Some(yaml(value)),
    }
}

pub(super) fn names<'a>(all: impl IntoIterator<Item = &'a (String, String)>) -> Option<Yaml> {
    let all: Vec<(String, Yaml)> =
        all.into_iter().map(|(name, value)| (name.clone(), text(value))).collect();
    (!all.is_empty()).then(|| yaml(YamlValue::Map(all)))
}

pub(super) fn seconds(of: u64) -> Yaml {
    text(format!("{of}s"))
}

pub(super) fn target(job: &OwnJob) -> Yaml {
    job.order.as_ref().map_or_else(|| named(&job.target), wanted)
}

pub(super) fn tpu(job: &OwnJob) -> Option<Yaml> {
    job.order.as_ref().map(request)
}

pub(super) fn user(job: &OwnJob) -> Option<Yaml> {
    maybe(job.order.as_ref()?.login.as_ref())
}

pub(super) fn dir(job: &OwnJob) -> Option<Yaml> {
    let path = match &job.code {
        Some(OwnCode::Dir(path)) => Some(path),
        Some(OwnCode::Here(_) | OwnCode::Repository(_)) | None => job.execution.workplace.as_ref(),
    };
    job.dir.map(number).or_else(|| maybe(path))
}

pub(super) fn code(job: &OwnJob) -> Option<Yaml> {
    match &job.code {
        Some(OwnCode::Here(_)) => Some(text(".")),
        Some(OwnCode::Repository(of)) => {
            Some(map([("repo", Some(text(&of.url))), ("branch", maybe(of.branch.as_ref()))]))
        }
        Some(OwnCode::Dir(_)) | None if job.execution.copying == Copying::KnownWithLinks => {
            Some(map([("ignored", Some(text("link")))]))
        }
        Some(OwnCode::Dir(_)) => None,
        None => job.execution.workplace.as_ref().map(|_| text("none")),
    }
}

/// What is asked of the target by this key.
pub(super) fn asked(job: &OwnJob, key: &str) -> Option<Yaml> {
    job.asks.iter().find(|(known, _)| known == key).map(|(_, value)| text(value))
}

/// The jobs that have to end before, in this way.
pub(super) fn after(job: &OwnJob, which: AfterWhich) -> Option<Yaml> {
    let of_kind = job.waits.after.iter().filter(|(known, _)| *known == which);
    one_or_list(of_kind.filter_map(|(_, before)| match before {
        Before::Other(_, word) => Some(word),
        Before::OfFile(_) => None,
    }))
}

fn named(of: &OwnTarget) -> Yaml {
    let words = one_or_list(&of.words);
    if !of.zones.is_empty() || of.reclaimable.is_some() {
        let pricing = of.reclaimable.map(|is| text(if is { "spot" } else { "on-demand" }));
        return map([("type", words), ("zone", one_or_list(&of.zones)), ("pricing", pricing)]);
    }
    let Some(kind) = &of.kind else { return words.unwrap_or_else(|| text("local")) };
    let options = of.options.names().map(|name| (name, one_or_list(of.options.all(name))));
    map(std::iter::once((kind.as_str(), words)).chain(options))
}

/// `target:` of one that is made.
fn wanted(order: &TargetOrder) -> Yaml {
    let each = |of: fn(&tpu_core::model::order::TypeInZone) -> &String| {
        let mut all: Vec<&String> = Vec::new();
        for one in order.candidates.iter().map(of) {
            if !all.contains(&one) {
                all.push(one);
            }
        }
        one_or_list(all)
    };
    let pricing = match order.pricing {
        Pricing::Spot => Some("spot"),
        Pricing::Preemptible => Some("preemptible"),
        Pricing::OnDemand => None,
    };
    map([
        ("accelerator", each(|candidate| &candidate.accelerator)),
        ("zone", each(|candidate| &candidate.zone)),
        ("pricing", pricing.map(text)),
        ("version", maybe(order.runtime_version.as_ref())),
        ("mode", order.is_queued.then(|| text("queued-resources"))),
        ("prefer", order.preferred.map(|preferred| text(preferred.as_str()))),
    ])
}

/// `tpu:`.
fn request(order: &TargetOrder) -> Yaml {
    let number = match order.numbered {
        Numbered::Not => None,
        Numbered::Auto => Some(text("auto")),
        Numbered::With(of) => Some(number(of)),
    };
    let said = |option: &str| list(order.options.all(option));
    let metadata = order.options.all("metadata").iter().filter_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        Some((key.to_owned(), value.to_owned()))
    });
    let metadata: Vec<(String, String)> = metadata.collect();
    let own = ["tag", "metadata", STARTUP_SCRIPT, "network"];
    let others = order.options.pairs().filter(|(name, _)| !own.contains(name));
    let flags = others.map(|(name, value)| format!("--{name}={value}"));
    map([
        ("name", Some(text(&order.name))),
        ("number", number),
        ("tags", said("tag")),
        ("metadata", names(&metadata)),
        ("startup_script", said(STARTUP_SCRIPT)),
        ("network", said("network")),
        ("flags", list(flags)),
        ("delete_after", order.goes_with_its_job.then(|| text("done"))),
    ])
}

/// Gives a command a file to read: the first word that follows.
pub(super) const FED: &str =
    r#"f=$0; case $f in "~/"*) f=$HOME/${f#"~/"} ;; esac; exec "$@" <"$f""#;

/// The words of the command, and before them the file that it reads.
fn words(job: &OwnJob) -> Option<(Option<&str>, Vec<&str>)> {
    let words: Vec<&str> = job.command.as_ref()?.iter().filter_map(|word| word.to_str()).collect();
    Some(match words.as_slice() {
        ["bash", "-c", fed, file, rest @ ..] if *fed == FED && !rest.is_empty() => {
            (Some(*file), rest.to_vec())
        }
        _ => (None, words),
    })
}

pub(super) fn stdin(job: &OwnJob) -> Option<Yaml> {
    words(job)?.0.map(text)
}

pub(super) fn command(job: &OwnJob) -> Option<Yaml> {
    let (_, words) = words(job)?;
    let filled = job.sweep.as_ref().map(Sweep::filled).unwrap_or_default();
    let is_filled = |(axis, _): &(String, Vec<String>)| filled.contains(axis);
    let is_all_filled = job.sweep.iter().all(|sweep| sweep.axes().iter().all(is_filled));
    let word = |word: &str| yaml(YamlValue::Text(open(word, filled)));
    Some(match words.as_slice() {
        ["bash", "-c", shell, "bash"]
            if !shell.trim().is_empty() && is_all_filled && job.configs.is_empty() =>
        {
            word(shell)
        }
        words => yaml(YamlValue::List(words.iter().map(|one| word(one)).collect())),
    })
}

/// Text in which the axes of an array are filled in, and nothing else.
fn open(of: &str, axes: &[String]) -> String {
    let mut text = literal(of);
    for axis in axes {
        text = text.replace(&literal(&format!("{{{{{axis}}}}}")), &format!("{{{{{axis}}}}}"));
    }
    text
}

pub(super) fn array(job: &OwnJob) -> Option<Yaml> {
    let array = job.array.as_ref()?;
    let Some(sweep) = &job.sweep else { return Some(text(array.to_string())) };
    let axes = sweep.axes().iter().filter_map(|(axis, values)| Some((axis.clone(), list(values)?)));
    Some(yaml(YamlValue::Map(axes.collect())))
}

pub(super) fn zip(job: &OwnJob) -> Option<Yaml> {
    truth(job.sweep.as_ref()?.is_zipped())
}

pub(super) fn max_parallel(job: &OwnJob) -> Option<Yaml> {
    job.sweep.as_ref()?;
    job.array.as_ref()?.at_once().map(number)
}

pub(super) fn workers(all: &[u32]) -> Option<Yaml> {
    one_or_list(all.iter().map(u32::to_string))
}

pub(super) fn repeat(of: Repeat) -> Yaml {
    let when = text(of.when.as_str());
    match of.pause_s {
        Repeat::PAUSE_S => when,
        pause => map([("when", Some(when)), ("pause", Some(seconds(pause.into())))]),
    }
}

/// Receivers as they are kept; an empty list is nobody.
pub(super) fn notify(of: &[Receiver]) -> Yaml {
    let one = |receiver: &Receiver| kept(&receiver.to_value());
    match of {
        [] => text("none"),
        [only] => one(only),
        several => yaml(YamlValue::List(several.iter().map(one).collect())),
    }
}

pub(super) fn retry(job: &OwnJob) -> Option<Yaml> {
    let of = job.execution.retry.as_ref()?;
    Some(map([
        ("max", Some(number(of.max))),
        ("on", one_or_list(of.on.iter().map(|kind| kind.as_str()))),
        ("backoff", of.backoff_s.map(u64::from).map(seconds)),
    ]))
}

pub(super) fn module(of: &Module) -> Yaml {
    match of {
        Module::Step(step) => self::step(step),
        Module::Gcsfuse(of) => map([("gcsfuse", Some(buckets(of)))]),
        Module::SshKeys(_)
        | Module::Nfs(_)
        | Module::Docker(_)
        | Module::Conda(_)
        | Module::Venv(_)
        | Module::Wandb(_)
        | Module::Recipe(_) => kept(&serde_json::to_value(of).unwrap_or_default()),
    }
}

/// What is kept in the words of a file.
fn kept(value: &Value) -> Yaml {
    yaml(match value {
        Value::Null => YamlValue::Blank,
        Value::Array(all) => YamlValue::List(all.iter().map(kept).collect()),
        Value::Object(all) => {
            YamlValue::Map(all.iter().map(|(key, value)| (key.clone(), kept(value))).collect())
        }
        Value::String(said) => return text(said),
        Value::Bool(_) | Value::Number(_) => return text(value.to_string()),
    })
}

fn buckets(of: &Gcsfuse) -> Yaml {
    let one = |of: &BucketMount| {
        let ours = |option: &str| CACHE.iter().find(|(_, theirs)| *theirs == option);
        let cache: Vec<(String, String)> = of
            .options
            .iter()
            .filter_map(|(option, value)| Some((ours(option)?.0.to_owned(), value.clone())))
            .collect();
        [
            ("bucket", Some(text(&of.bucket))),
            ("mount", Some(text(&of.mount))),
            ("cache", names(&cache)),
        ]
    };
    let Some((first, more)) = of.mounts.split_first() else { return map([]) };
    let more: Vec<Yaml> = more.iter().map(|of| map(one(of))).collect();
    let [bucket, mount, cache] = one(first);
    let more = (!more.is_empty()).then(|| yaml(YamlValue::List(more)));
    map([bucket, mount, cache, ("extra_mounts", more)])
}

fn step(of: &OwnStep) -> Yaml {
    let file = |of: &StepFile| {
        map([
            ("from", Some(text(&of.from))),
            ("to", Some(text(&of.to))),
            ("mode", Some(text(format!("{:o}", of.mode)))),
        ])
    };
    let files: Vec<Yaml> = of.files.iter().map(file).collect();
    map([
        ("name", Some(text(&of.name))),
        ("check", maybe(of.check.as_ref())),
        ("run", maybe(of.run.as_ref())),
        ("files", (!files.is_empty()).then(|| yaml(YamlValue::List(files)))),
        ("workers", of.workers.as_deref().and_then(workers)),
        ("timeout", of.timeout_s.map(seconds)),
        ("once_per", of.is_once.then(|| text("machine"))),
    ])
}
