//! What a job is to do, whoever said so and wherever it runs.
//!
//! The command line, the form of the screen, a place in the line and a stored record each become a
//! [`JobSpec`] by one function; `ops::act::launch` makes one plan of it. A new member is a field of [`JobSpec`],
//! and a line in [`read()`] and [`write()`]. What the record of an attempt has a field for stands there and
//! nowhere else; the rest is kept as its [`StoredSpec`] (`extra_msgs.spec`), which the original ignores.

use std::ffi::OsString;

use serde_json::{Map, Value, json};

use super::arguments::ArgumentStyle;
use super::capacity::{self, Ask};
use super::execution::{self, Execution};
use super::extras;
use super::ids::QueueName;
use super::member::{self, Array, Member};
use super::options::KindOptions;
use super::policy::Policy;
use super::read::{self, DataError, Fields, Json, Path};

/// What a job is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSpec {
    /// The name by which people call it and its successors.
    pub name: Option<String>,
    /// The members of the group that it is to be, each of them a job of this specification.
    pub array: Option<Array>,
    /// Which member of which group it is.
    pub member: Option<Member>,
    /// What it is to compute on.
    pub target: TargetRequest,
    /// Why its target was chosen among several, in words.
    pub chosen: Option<String>,
    /// Slot of the user's working directory; `None` where the directory stands in no slot.
    pub dir: Option<u32>,
    /// The directory of its code that whoever asked for it stood in, where no slot was named.
    pub code: Option<CodeDir>,
    /// `key=value` in order, keys as typed: an alias of the user, or `config.…`.
    pub configs: Vec<(String, String)>,
    /// Arguments that arrive as they stand, after the configs.
    pub words: Vec<String>,
    /// The command, word by word; without one the setting `command`, else the directory's `staging.sh`.
    pub command: Option<Vec<OsString>>,
    /// Tag.
    pub tag: Option<String>,
    /// Notes.
    pub notes: Option<String>,
    /// Rules as typed; the target's default without.
    pub rules: Option<String>,
    /// Whether the daemon may act on it.
    pub monitor: bool,
    /// Pass the number of resumes to the program.
    pub log_stage: bool,
    /// How its program takes the configs, where that is said.
    pub arguments: Option<ArgumentStyle>,
    /// What it asks of its target beside a place.
    pub ask: Ask,
    /// What else is asked of it, by the names of its target's kind's own options.
    pub options: KindOptions,
    /// The queue in which it waited, whose limit counts its attempts.
    pub queue: Option<QueueName>,
    /// The copy of its code that was made when it was submitted.
    pub staged: Option<Staged>,
    /// How its command is carried out.
    pub execution: Execution,
}

/// A directory of code that stands in no slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeDir {
    /// The directory that is copied: the top of a git work tree, or a directory of its own.
    pub top: String,
    /// The directory below it in which the command begins; the top itself without.
    pub below: Option<String>,
}

impl CodeDir {
    /// The directory in which the command begins, by its whole path.
    pub fn begins_in(&self) -> String {
        match &self.below {
            Some(below) => format!("{}/{below}", self.top),
            None => self.top.clone(),
        }
    }
}

/// Code as it was when a job was submitted: what is edited while that waits changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staged {
    /// The directory of which it is a copy, whatever the slots of the user say by now.
    pub from: String,
    /// Where the copy lies.
    pub copy: String,
}

impl Staged {
    /// Whether it was cloned and lies nowhere else: all of it is code.
    pub fn is_clone(&self) -> bool {
        self.from == self.copy
    }
}

/// What a job is to compute on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TargetRequest {
    /// This one: an alias or a full name.
    Named(String),
    /// The best that is free.
    Any(AnyOf),
}

/// Targets among which one is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AnyOf {
    /// The types, as typed; none means any.
    pub types: Vec<String>,
    /// Machines, pools and patterns of names, as typed; none means that a type decides.
    pub among: Vec<String>,
    /// How one of those is chosen, where that is not as the settings say.
    pub policy: Option<Policy>,
    /// Reclaimable ones only, or on-demand ones only.
    pub reclaimable: Option<bool>,
    /// Of a type: the zones, regions or continents in which it may be; none means anywhere.
    pub zones: Vec<String>,
    /// Why they are tried in the order in which they stand, where somebody prefers some to others.
    pub order: Option<String>,
}

impl AnyOf {
    /// What is wished for, in words.
    pub fn in_words(&self) -> String {
        let what = match (self.among.as_slice(), self.types.as_slice()) {
            ([], []) => "any type".to_owned(),
            ([], types) => types.join(", "),
            (among, _) => among.join(", "),
        };
        match self.zones.as_slice() {
            [] => what,
            zones => format!("{what} in {}", zones.join(", ")),
        }
    }
}

/// The members of a [`JobSpec`] for which the record of an attempt has no field of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredSpec {
    /// [`JobSpec::name`].
    pub name: Option<String>,
    /// [`JobSpec::member`].
    pub member: Option<Member>,
    /// What it was to compute on, where a target was chosen for it.
    pub any_of: Option<AnyOf>,
    /// Why that target was chosen, in words.
    pub chosen: Option<String>,
    /// [`JobSpec::ask`].
    pub ask: Ask,
    /// [`JobSpec::options`].
    pub options: KindOptions,
    /// [`JobSpec::queue`].
    pub queue: Option<QueueName>,
    /// [`JobSpec::staged`].
    pub staged: Option<Staged>,
    /// [`CodeDir::below`] of its code.
    pub below: Option<String>,
    /// [`JobSpec::execution`].
    pub execution: Execution,
}

impl JobSpec {
    /// A job on a target, all else as it is without a word.
    pub fn on(target: TargetRequest) -> Self {
        Self {
            name: None,
            array: None,
            member: None,
            target,
            chosen: None,
            dir: Some(1),
            code: None,
            configs: Vec::new(),
            words: Vec::new(),
            command: None,
            tag: None,
            notes: None,
            rules: None,
            monitor: true,
            log_stage: false,
            arguments: None,
            ask: Ask::default(),
            options: KindOptions::default(),
            queue: None,
            staged: None,
            execution: Execution::default(),
        }
    }
}

fn read_staged(value: Json<'_>, path: &Path<'_>) -> Result<Staged, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(Staged {
        from: fields.need("from", "a directory", read::text)?,
        copy: fields.need("copy", "a directory", read::text)?,
    })
}

fn read_code(value: Json<'_>, path: &Path<'_>) -> Result<CodeDir, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(CodeDir {
        top: fields.need("top", "a directory", read::text)?,
        below: fields.with("below", read::text)?,
    })
}

fn write_code(code: &CodeDir) -> Value {
    json!({ "top": code.top, "below": code.below })
}

fn write_staged(staged: &Staged) -> Value {
    json!({ "from": staged.from, "copy": staged.copy })
}

/// Reads a specification that was [written](write()); target and queue come from around it.
pub(super) fn read(fields: &Fields<'_>, target: TargetRequest) -> Result<JobSpec, DataError> {
    let pair = |value: Json<'_>, path: &Path<'_>| {
        // Two texts, as it was written at first, take four lines.
        let pair = match read::text(value, path) {
            Ok(text) => text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())),
            Err(_) => {
                <[String; 2]>::try_from(read::list(value, path, read::text)?).ok().map(Into::into)
            }
        };
        pair.ok_or_else(|| path.error("KEY=VALUE", Some(value)))
    };
    Ok(JobSpec {
        name: fields.with("name", read::text)?,
        array: fields.with("array", member::read_array)?,
        member: fields.with("member", member::read_member)?,
        target,
        chosen: None,
        dir: fields.with("dir", read::number)?,
        code: fields.with("code", read_code)?,
        configs: fields
            .with("configs", |value, path| read::list(value, path, pair))?
            .unwrap_or_default(),
        words: fields
            .with("words", |value, path| read::list(value, path, read::text))?
            .unwrap_or_default(),
        command: fields.with("command", extras::read_command)?,
        tag: fields.with("tag", read::text)?,
        notes: fields.with("notes", read::text)?,
        rules: fields.with("rule", read::text)?,
        monitor: fields.with_or("monitor", true, read::flag)?,
        log_stage: fields.with_or("log_stage", false, read::flag)?,
        arguments: fields.with("arguments", ArgumentStyle::read)?,
        ask: fields.with("ask", capacity::read_ask)?.unwrap_or_default(),
        options: fields.with("options", KindOptions::read)?.unwrap_or_default(),
        queue: None,
        staged: fields.with("staged", read_staged)?,
        execution: execution::read(fields)?,
    })
}

/// A specification for the file, all but its target and its queue.
pub(super) fn write(spec: &JobSpec) -> Map<String, Value> {
    let command = spec.command.as_deref().map(extras::write_command);
    let configs: Vec<String> =
        spec.configs.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let members = [
        ("name", json!(spec.name)),
        ("array", json!(spec.array.as_ref().map(Array::to_string))),
        ("member", json!(spec.member.map(member::write_member))),
        ("dir", json!(spec.dir)),
        ("configs", json!(configs)),
        ("words", json!(spec.words)),
        ("tag", json!(spec.tag)),
        ("rule", json!(spec.rules)),
        ("monitor", json!(spec.monitor)),
        ("notes", json!(spec.notes)),
        ("log_stage", json!(spec.log_stage)),
        ("command", json!(command)),
        ("ask", capacity::write_ask(&spec.ask)),
        ("options", json!(spec.options.to_value())),
        ("staged", json!(spec.staged.as_ref().map(write_staged))),
    ];
    let code = spec.code.iter().map(|code| ("code", write_code(code)));
    let arguments = spec.arguments.iter().map(|style| ("arguments", json!(style)));
    let members = members
        .into_iter()
        .chain(code)
        .chain(arguments)
        .map(|(key, value)| (key.to_owned(), value));
    members.chain(execution::write(&spec.execution)).collect()
}

/// Reads the types among which a target is chosen.
pub(super) fn read_any_of(fields: &Fields<'_>) -> Result<AnyOf, DataError> {
    Ok(AnyOf {
        types: fields
            .with("types", |value, path| read::list(value, path, read::text))?
            .unwrap_or_default(),
        among: fields
            .with("among", |value, path| read::list(value, path, read::text))?
            .unwrap_or_default(),
        policy: fields.with("policy", Policy::read)?,
        reclaimable: fields.with("reclaimable", read::flag)?,
        zones: fields
            .with("zones", |value, path| read::list(value, path, read::text))?
            .unwrap_or_default(),
        order: fields.with("order", read::text)?,
    })
}

/// What [`read_any_of`] reads: the members that there are.
pub(super) fn write_any_of(any: &AnyOf) -> Map<String, Value> {
    let among = Some(&any.among).filter(|among| !among.is_empty());
    let zones = Some(&any.zones).filter(|zones| !zones.is_empty());
    let members = [
        ("types", json!(any.types)),
        ("reclaimable", json!(any.reclaimable)),
        ("among", json!(among)),
        ("zones", json!(zones)),
        ("policy", json!(any.policy.map(Policy::as_str))),
        ("order", json!(any.order)),
    ];
    let needed = |key: &str, value: &Value| !value.is_null() || key == "reclaimable";
    let members = members.into_iter().filter(|(key, value)| needed(key, value));
    members.map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Reads what a record keeps of its specification.
pub(super) fn read_stored(value: Json<'_>, path: &Path<'_>) -> Result<StoredSpec, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(StoredSpec {
        name: fields.with("name", read::text)?,
        member: fields.with("member", member::read_member)?,
        any_of: fields.with("any_of", |value, path| read_any_of(&Fields::new(value, path)?))?,
        chosen: fields.with("chosen", read::text)?,
        ask: fields.with("ask", capacity::read_ask)?.unwrap_or_default(),
        options: fields.with("options", KindOptions::read)?.unwrap_or_default(),
        queue: fields.with("queue", read::text)?.map(QueueName::new),
        staged: fields.with("staged", read_staged)?,
        below: fields.with("below", read::text)?,
        execution: execution::read(&fields)?,
    })
}

/// What a record keeps of its specification, for the file: the members that there are.
pub(super) fn write_stored(stored: &StoredSpec) -> Value {
    let any_of = stored.any_of.as_ref().map(write_any_of);
    let options = stored.options.to_value();
    let members = [
        ("name", json!(stored.name)),
        ("member", json!(stored.member.map(member::write_member))),
        ("any_of", json!(any_of)),
        ("chosen", json!(stored.chosen)),
        ("ask", capacity::write_ask(&stored.ask)),
        ("options", json!(options)),
        ("queue", json!(stored.queue)),
        ("staged", json!(stored.staged.as_ref().map(write_staged))),
        ("below", json!(stored.below)),
    ];
    let known = members.into_iter().filter(|(_, value)| !value.is_null());
    let known = known.map(|(key, value)| (key.to_owned(), value));
    Value::Object(known.chain(execution::write(&stored.execution)).collect())
}
