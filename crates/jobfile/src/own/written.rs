//! Jobs as a file again: what the reader makes of it are the same jobs.
//!
//! The order of keys is that of the page; what is as without a word is left out.

use std::ffi::OsString;

use serde_json::Value;

use crate::yaml::{Yaml, YamlValue};
use tpu_core::model::capacity::Ask;
use tpu_core::model::entry::{AfterWhich, Priority};
use tpu_core::model::execution::Execution;
use tpu_core::model::notify::Receiver;
use tpu_core::model::order::{Numbered, STARTUP_SCRIPT, TargetOrder};
use tpu_core::model::repeat::Repeat;
use tpu_core::model::retry::Retry;
use tpu_core::model::setup::{BucketMount, Gcsfuse, Identity, Module, OwnStep, StepFile};
use tpu_core::model::sweep::Sweep;
use tpu_core::model::target::Pricing;

use super::job::FED;
use super::setup::CACHE;
use super::{Before, OwnCode, OwnJob, OwnTarget};

/// The documents of jobs. A word of a command that is no text, in UTF-8, can stand in no file: it is the error.
pub fn documents(jobs: &[OwnJob]) -> Result<Vec<Yaml>, OsString> {
    jobs.iter().map(|job| among(job, jobs)).collect()
}

/// The document of one job; the error is as that of [`documents`].
pub fn document(job: &OwnJob) -> Result<Yaml, OsString> {
    among(job, std::slice::from_ref(job))
}

/// Members of a map, as they are written.
struct Members(Vec<(String, Yaml)>);

impl Members {
    fn new() -> Self {
        Self(Vec::new())
    }

    fn say(&mut self, key: &str, value: Option<Yaml>) {
        self.0.extend(value.map(|value| (key.to_owned(), value)));
    }

    fn map(self) -> Yaml {
        yaml(YamlValue::Map(self.0))
    }
}

/// A map of what is said.
fn map<const N: usize>(members: [(&str, Option<Yaml>); N]) -> Yaml {
    let mut all = Members::new();
    for (key, value) in members {
        all.say(key, value);
    }
    all.map()
}

fn yaml(value: YamlValue) -> Yaml {
    Yaml { line: 0, column: 0, key: None, value }
}

/// Text into which nothing is to be filled in.
fn text(of: impl AsRef<str>) -> Yaml {
    yaml(YamlValue::Text(literal(of.as_ref())))
}

/// Text in which nothing is filled in, as it is written.
pub(crate) fn literal(text: &str) -> String {
    text.replace("{{", "{{\"{{\"}}")
}

fn maybe(of: Option<&String>) -> Option<Yaml> {
    of.map(text)
}

fn number(of: impl Into<u64>) -> Yaml {
    text(of.into().to_string())
}

fn truth(is: bool) -> Option<Yaml> {
    is.then(|| text("true"))
}

fn list(all: impl IntoIterator<Item = impl AsRef<str>>) -> Option<Yaml> {
    let all: Vec<Yaml> = all.into_iter().map(text).collect();
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

fn names<'a>(all: impl IntoIterator<Item = &'a (String, String)>) -> Option<Yaml> {
    let all: Vec<(String, Yaml)> =
        all.into_iter().map(|(name, value)| (name.clone(), text(value))).collect();
    (!all.is_empty()).then(|| yaml(YamlValue::Map(all)))
}

fn seconds(of: u64) -> Yaml {
    text(format!("{of}s"))
}

fn among(job: &OwnJob, all: &[OwnJob]) -> Result<Yaml, OsString> {
    let mut members = Members::new();
    members.say("name", maybe(job.name.as_ref()));
    match &job.order {
        Some(order) => {
            members.say("target", Some(wanted(order)));
            members.say("tpu", Some(request(order)));
            members.say("user", maybe(order.login.as_ref()));
        }
        None => members.say("target", Some(target(&job.target))),
    }
    let workplace = job.execution.workplace.as_ref();
    members.say("dir", job.dir.map(number).or_else(|| maybe(workplace)));
    members.say("code", job.code.as_ref().map(code).or_else(|| workplace.map(|_| text("none"))));
    command(job, &mut members)?;
    let said = |key: &str| {
        let found = job.pairs.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| text(value))
    };
    members.say("configs", names(job.pairs.iter().filter(|pair| is_config(pair))));
    array(job, &mut members);
    execution(&job.execution, &mut members);
    for (key, typed) in [("tag", "tag"), ("notes", "ssn"), ("rules", "rule")] {
        members.say(key, said(typed));
    }
    members.say("repeat", job.execution.repeat.map(repeat));
    members.say("retry", job.execution.retry.as_ref().map(retry));
    members.say("notify", job.execution.notify.as_deref().map(notify));
    for key in Ask::KEYS {
        members.say(key, said(key));
    }
    members.say("policy", job.policy.map(|policy| text(policy.as_str())));
    members.say("queue", maybe(job.waits.queue.as_ref()));
    members.say("priority", job.waits.priority.map(Priority::number).map(number));
    members.say("hold", truth(job.waits.is_held));
    for (key, which) in [
        ("after", AfterWhich::Ok),
        ("after_any", AfterWhich::Any),
        ("after_not", AfterWhich::Not),
        ("after_each", AfterWhich::Each),
    ] {
        let of_kind = job.waits.after.iter().filter(|(known, _)| *known == which);
        let word = |(_, before): &(AfterWhich, Before)| match before {
            Before::Other(_, word) => Some(word.clone()),
            Before::OfFile(index) => all.get(*index)?.name.clone(),
        };
        members.say(key, one_or_list(of_kind.filter_map(word)));
    }
    Ok(members.map())
}

/// Whether a pair is one for the program, and has no key of its own.
fn is_config((key, _): &(String, String)) -> bool {
    !["tag", "ssn", "rule"].contains(&&**key) && !Ask::KEYS.contains(&&**key)
}

fn target(of: &OwnTarget) -> Yaml {
    let words = one_or_list(&of.words);
    if !of.zones.is_empty() || of.reclaimable.is_some() {
        let pricing = of.reclaimable.map(|is| text(if is { "spot" } else { "on-demand" }));
        return map([("type", words), ("zone", one_or_list(&of.zones)), ("pricing", pricing)]);
    }
    let Some(kind) = &of.kind else { return words.unwrap_or_else(|| text("local")) };
    let mut members = Members::new();
    members.say(kind, words);
    for name in of.options.names() {
        members.say(name, one_or_list(of.options.all(name)));
    }
    members.map()
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

fn code(of: &OwnCode) -> Yaml {
    match of {
        OwnCode::Here(_) => text("."),
        OwnCode::Repository(of) => {
            map([("repo", Some(text(&of.url))), ("branch", maybe(of.branch.as_ref()))])
        }
    }
}

/// The command, with the file that it reads.
fn command(job: &OwnJob, members: &mut Members) -> Result<(), OsString> {
    let Some(words) = &job.command else { return Ok(()) };
    let words: Vec<&str> = words
        .iter()
        .map(|word| word.to_str().ok_or_else(|| word.clone()))
        .collect::<Result<_, _>>()?;
    let (file, words) = match words.as_slice() {
        ["bash", "-c", fed, file, rest @ ..] if *fed == FED && !rest.is_empty() => {
            (Some(*file), rest)
        }
        words => (None, words),
    };
    let filled = job.sweep.as_ref().map(Sweep::filled).unwrap_or_default();
    let is_filled = |(axis, _): &(String, Vec<String>)| filled.contains(axis);
    let is_all_filled = job.sweep.iter().all(|sweep| sweep.axes().iter().all(is_filled));
    let has_configs = job.pairs.iter().any(is_config);
    let word = |word: &str| yaml(YamlValue::Text(open(word, filled)));
    let said = match words {
        ["bash", "-c", shell, "bash"]
            if !shell.trim().is_empty() && is_all_filled && !has_configs =>
        {
            word(shell)
        }
        words => yaml(YamlValue::List(words.iter().map(|one| word(one)).collect())),
    };
    members.say("command", Some(said));
    members.say("stdin", file.map(text));
    Ok(())
}

/// Text in which the axes of an array are filled in, and nothing else.
fn open(of: &str, axes: &[String]) -> String {
    let mut text = literal(of);
    for axis in axes {
        text = text.replace(&literal(&format!("{{{{{axis}}}}}")), &format!("{{{{{axis}}}}}"));
    }
    text
}

fn array(job: &OwnJob, members: &mut Members) {
    let Some(array) = &job.array else { return };
    let Some(sweep) = &job.sweep else {
        members.say("array", Some(text(array.to_string())));
        return;
    };
    let axes = sweep.axes().iter().filter_map(|(axis, values)| Some((axis.clone(), list(values)?)));
    members.say("array", Some(yaml(YamlValue::Map(axes.collect()))));
    members.say("zip", truth(sweep.is_zipped()));
    members.say("max_parallel", array.at_once().map(number));
}

fn execution(of: &Execution, members: &mut Members) {
    members.say("env", names(&of.variables));
    members.say("secrets", list(&of.secrets));
    let setup: Vec<Yaml> = of.setup.iter().map(module).collect();
    members.say("setup", (!setup.is_empty()).then(|| yaml(YamlValue::List(setup))));
    members.say("output", maybe(of.output.as_ref()));
    members.say("workers", of.workers.as_deref().and_then(workers));
    members.say("timeout", of.timeout_s.map(seconds));
    members.say("idle_timeout", of.idle_timeout_s.map(seconds));
}

fn workers(all: &[u32]) -> Option<Yaml> {
    one_or_list(all.iter().map(u32::to_string))
}

fn repeat(of: Repeat) -> Yaml {
    let when = text(of.when.as_str());
    match of.pause_s {
        Repeat::PAUSE_S => when,
        pause => map([("when", Some(when)), ("pause", Some(seconds(pause.into())))]),
    }
}

/// Receivers as they are kept; an empty list is nobody.
fn notify(of: &[Receiver]) -> Yaml {
    let value = |value: &Value| match value {
        Value::Array(all) => list(all.iter().filter_map(Value::as_str)),
        one => one.as_str().map(text),
    };
    let one = |receiver: &Receiver| {
        let mut members = Members::new();
        if let Value::Object(said) = receiver.to_value() {
            for (key, said) in &said {
                members.say(key, value(said));
            }
        }
        members.map()
    };
    match of {
        [] => text("none"),
        [only] => one(only),
        several => yaml(YamlValue::List(several.iter().map(one).collect())),
    }
}

fn retry(of: &Retry) -> Yaml {
    map([
        ("max", Some(number(of.max))),
        ("on", one_or_list(of.on.iter().map(|kind| kind.as_str()))),
        ("backoff", of.backoff_s.map(u64::from).map(seconds)),
    ])
}

fn module(of: &Module) -> Yaml {
    let (name, said) = match of {
        Module::Step(step) => return self::step(step),
        Module::Recipe(name) => ("recipe", text(name)),
        Module::SshKeys(keys) => {
            let identity = |of: &Identity| {
                map([
                    ("private_key", maybe(of.private_key.as_ref())),
                    ("public_key", maybe(of.public_key.as_ref())),
                    ("config_entry", maybe(of.config_entry.as_ref())),
                ])
            };
            let all = keys.identities.iter().map(identity).collect();
            ("ssh_keys", map([("identities", Some(yaml(YamlValue::List(all))))]))
        }
        Module::Gcsfuse(of) => ("gcsfuse", buckets(of)),
        Module::Nfs(of) => (
            "nfs",
            map([
                ("export", Some(text(&of.export))),
                ("mount", Some(text(&of.mount))),
                ("options", maybe(of.options.as_ref())),
            ]),
        ),
        Module::Docker(of) => (
            "docker",
            map([
                ("image", Some(text(&of.image))),
                ("mounts", list(&of.mounts)),
                ("workdir", maybe(of.workdir.as_ref())),
                ("flags", list(&of.flags)),
            ]),
        ),
        Module::Conda(of) => {
            ("conda", map([("name", Some(text(&of.name))), ("file", maybe(of.file.as_ref()))]))
        }
        Module::Wandb(of) => {
            ("wandb", map([("key", Some(text(&of.key))), ("host", maybe(of.host.as_ref()))]))
        }
        Module::Venv(of) => (
            "venv",
            map([
                ("name", Some(text(&of.name))),
                ("python", maybe(of.python.as_ref())),
                ("requirements", maybe(of.requirements.as_ref())),
            ]),
        ),
    };
    map([(name, Some(said))])
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
