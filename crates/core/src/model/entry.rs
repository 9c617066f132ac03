//! One entry of the queue: a job that has no attempt yet, or the members of a group that have none.

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::extras;
use super::ids::{JobId, JobNumber, QueueName, TargetName, UserName};
use super::job::Succession;
use super::member::{Array, Member};
use super::read::{self, DataError, Fields, Json, Path};
use super::spec::{self, JobSpec, TargetRequest};
use super::sweep::Sweep;
use super::time::Timestamp;
use super::walk::Walk;
use super::words::words;

/// `NAME=VALUE`: what a job keeps of the environment in which it was asked for. Entries that were submitted together
/// share it.
pub type Environment = Arc<[OsString]>;

/// A job that waits to be started, or the members of a group that do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueEntry {
    /// Whose it is.
    pub user: UserName,
    /// The number of the job, or of the group.
    pub number: JobNumber,
    /// The queue in which it stands.
    pub queue: QueueName,
    /// What is to be started; of a group, [`JobSpec::array`] names the members that still wait.
    pub spec: JobSpec,
    /// What differs between its members.
    pub sweep: Option<Sweep>,
    /// Go on where a check would refuse.
    pub force: bool,
    /// The environment in which it was asked for.
    pub env: Environment,
    /// When it was submitted.
    pub since: Timestamp,
    /// Higher ones come first.
    pub priority: Priority,
    /// Among those of one priority, lower ones come first; then who was submitted first.
    pub rank: i64,
    /// That it is not to begin, while this stands.
    pub held: Option<QueueHold>,
    /// What has to end before it begins.
    pub after: Vec<After>,
    /// How often others have begun behind it while there was no place for it, and since when.
    pub passed: Passed,
    /// Host, account and tmux server at which it was submitted: it begins there.
    pub place: String,
    /// The process that waits for it, where somebody does: without that one it does not begin.
    pub keeper: Option<Keeper>,
    /// The attempt that it succeeds when it begins.
    pub succeeds: Option<Awaited>,
    /// Whether a target is made for it where none is free (`--apply`).
    pub applies: bool,
    /// Where it could not begin though it was its turn: for a while it does not begin there.
    pub shunned: Vec<Shunned>,
}

/// A target that an entry was given and that could not be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shunned {
    /// The target.
    pub target: TargetName,
    /// Until when the entry does not begin there.
    pub until: Timestamp,
    /// Why it could not.
    pub why: String,
}

/// How urgent an entry is, from 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priority(u8);

impl Priority {
    /// The most urgent.
    pub const MOST: u8 = 100;

    /// Reads a number from 0 to 100.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|number| *number <= Self::MOST).map(Self)
    }

    /// The number.
    pub fn number(self) -> u8 {
        self.0
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self(50)
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// That an entry is not to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueHold {
    /// Who said so.
    pub by: String,
    /// When.
    pub since: Timestamp,
    /// Why, if that was said.
    pub why: Option<String>,
    /// Whether it could not begin for want of a login: `tpu ack` lets it begin again.
    pub needs_login: bool,
}

/// For a list: who holds it, and why.
impl fmt::Display for QueueHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "held by {}", self.by)?;
        self.why.iter().try_for_each(|why| write!(f, ": {why}"))
    }
}

/// How another job has to end before an entry begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterWhich {
    /// Well.
    Ok,
    /// However.
    Any,
    /// Badly.
    Not,
    /// Each member of a group well, for the member of the same index.
    Each,
}

words! {
    /// The spelling in the file.
    AfterWhich {
        Ok: "ok",
        Any: "any",
        Not: "not",
        Each: "each",
    }
}

/// That an entry begins only after another job, the last attempt of which counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct After {
    /// After which end.
    pub which: AfterWhich,
    /// The job, or the group of which all members count.
    pub job: JobId,
    /// The member alone.
    pub member: Option<u32>,
    /// Of [`AfterWhich::Each`], those members that have ended well: nobody knows them any more once their records are
    /// archived.
    pub met: Option<Array>,
}

impl After {
    /// Reads what [`fmt::Display`] writes.
    fn parse(text: &str) -> Option<Self> {
        let (text, met) = match text.split_once('=') {
            None => (text, None),
            Some((text, met)) => (text, Some(Array::parse(met).ok()?)),
        };
        let (word, job) = text.split_once(':')?;
        let which = AfterWhich::ALL.into_iter().find(|which| which.as_str() == word)?;
        let (user, number) = job.rsplit_once('/')?;
        let (number, member) = match Member::parse(number) {
            Some(member) => (member.group, Some(member.index)),
            None => (JobNumber(number.parse().ok()?), None),
        };
        Some(Self { which, job: JobId::new(UserName::from(user), number), member, met })
    }

    /// The job, or the member of a group, as people call it: `alice/12_3`.
    pub fn of(&self) -> String {
        match self.member {
            None => self.job.to_string(),
            Some(index) => {
                format!("{}/{}", self.job.user, Member { group: self.job.window, index })
            }
        }
    }
}

impl fmt::Display for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.which.as_str(), self.of())?;
        self.met.iter().try_for_each(|met| write!(f, "={met}"))
    }
}

/// How often others have begun before an entry that stood in front of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// How often.
    pub times: u32,
    /// When that happened first.
    pub since: Option<Timestamp>,
}

/// An attempt whose successor waits in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// Its number, of the same user.
    pub job: JobNumber,
    /// How it is succeeded.
    pub how: Succession,
    /// Whether its program was told to save a checkpoint: then it may end well and is to go on all the same.
    pub is_told: bool,
}

/// A process that waits for an entry: what becomes of that one depends on how the process ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keeper {
    /// The process, as an owner of leases.
    pub owner: String,
    /// When it last said that it waits.
    pub seen: Timestamp,
}

impl QueueEntry {
    /// Why it does not begin on a target for now, if it was there in vain.
    pub fn shuns(&self, target: &TargetName, now: Timestamp) -> Option<&Shunned> {
        self.shunned.iter().find(|shunned| shunned.target == *target && shunned.until > now)
    }

    /// Its number, as that of a job.
    pub fn id(&self) -> JobId {
        JobId::new(self.user.clone(), self.number)
    }

    /// What one of its members is to do, or the job that it is.
    pub fn spec_of(&self, member: Option<u32>) -> JobSpec {
        let Some(index) = member else { return self.spec.clone() };
        let varied = self.sweep.iter().flat_map(|sweep| sweep.given(index));
        let command = self.spec.command.as_deref();
        let command = command.map(|words| match &self.sweep {
            Some(sweep) => sweep.command(index, words),
            None => words.to_vec(),
        });
        JobSpec {
            array: None,
            command,
            member: Some(Member { group: self.number, index }),
            configs: self.spec.configs.iter().cloned().chain(varied).collect(),
            ..self.spec.clone()
        }
    }

    /// How many jobs wait in it.
    pub fn waiting(&self) -> usize {
        self.spec.array.as_ref().map_or(1, |array| array.indexes().len())
    }

    /// Reads the entry that comes next on a walk, and the place of its environment among those that the file keeps; its
    /// own is left empty.
    pub(super) fn take(
        walk: &mut Walk<'_>,
        path: &Path<'_>,
    ) -> Result<(Self, Option<u32>), DataError> {
        if walk.peek() != Some(b'{') {
            return Err(path.error("a map", Some(Json::new(walk.value()))));
        }
        Self::of(&Fields::take(walk, path))
    }

    /// Reads an entry that stands alone: its environment is empty.
    pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Self, DataError> {
        Self::of(&Fields::new(value, path)?).map(|(entry, _)| entry)
    }

    /// The entry as the record keeps it that it has become: it stands alone, with its environment.
    pub fn to_kept(&self) -> Value {
        let mut kept = self.write(0);
        if let Some(members) = kept.as_object_mut() {
            members.insert("env".to_owned(), write_environment(&self.env));
        }
        kept
    }

    /// Reads what [`QueueEntry::to_kept`] writes.
    pub fn from_kept(kept: &Value) -> Result<Self, DataError> {
        let mut kept = kept.clone();
        let env = kept.as_object_mut().and_then(|members| members.shift_remove("env"));
        let (text, env) = (kept.to_string(), env.unwrap_or_default().to_string());
        let entry = Self::read(Json::new(&text), &Path::Root)?;
        Ok(Self { env: read_environment(Json::new(&env), &Path::Root)?, ..entry })
    }

    fn of(fields: &Fields<'_>) -> Result<(Self, Option<u32>), DataError> {
        let target = match fields.with("target", read::text)? {
            Some(name) => TargetRequest::Named(name),
            None => TargetRequest::Any(spec::read_any_of(fields)?),
        };
        let priority = |value: Json<'_>, path: &Path<'_>| {
            let number = value.as_u64().and_then(|number| Priority::parse(&number.to_string()));
            number.ok_or_else(|| path.error("a number from 0 to 100", Some(value)))
        };
        let after = |value: Json<'_>, path: &Path<'_>| {
            read::one_of(value, path, After::parse, "as in 'ok:alice/12'")
        };
        let queue = fields.with("queue", read::text)?.map_or_else(QueueName::usual, QueueName::new);
        let env = fields.with("env", read::number)?;
        let entry = Self {
            user: UserName::new(fields.need("user", "a user", read::text)?),
            number: JobNumber(fields.need("number", "a number", read::number)?),
            spec: JobSpec { queue: Some(queue.clone()), ..spec::read(fields, target)? },
            queue,
            sweep: fields.with("sweep", Sweep::read)?,
            force: fields.with_or("force", false, read::flag)?,
            env: Environment::default(),
            since: fields.need("since", "an instant", read::instant)?,
            priority: fields.with("priority", priority)?.unwrap_or_default(),
            rank: fields
                .with("rank", |value, path| {
                    value.as_i64().ok_or_else(|| path.error("a whole number", Some(value)))
                })?
                .unwrap_or_default(),
            held: fields.with("held", read_hold)?,
            after: fields
                .with("after", |value, path| read::list(value, path, after))?
                .unwrap_or_default(),
            passed: fields.with("passed", read_passed)?.unwrap_or_default(),
            place: fields.with("place", read::text)?.unwrap_or_default(),
            keeper: fields.with("keeper", read_keeper)?,
            succeeds: fields.with("succeeds", read_awaited)?,
            applies: fields.with_or("apply", false, read::flag)?,
            shunned: fields
                .with("shunned", |value, path| read::list(value, path, read_shunned))?
                .unwrap_or_default(),
        };
        Ok((entry, env))
    }

    /// For the file, with the place of its environment among those that stand there. What is as usual is left out:
    /// thousands may wait.
    pub(super) fn write(&self, env: usize) -> Value {
        let mut members = spec::write(&self.spec);
        match &self.spec.target {
            TargetRequest::Named(name) => {
                members.insert("target".to_owned(), json!(name));
            }
            TargetRequest::Any(any_of) => members.extend(spec::write_any_of(any_of)),
        }
        let priority = (self.priority != Priority::default()).then_some(self.priority.number());
        let of_entry = [
            ("user", json!(self.user)),
            ("number", json!(self.number)),
            ("queue", json!((self.queue != QueueName::usual()).then_some(&self.queue))),
            ("sweep", json!(self.sweep.as_ref().map(Sweep::write))),
            ("force", json!(self.force)),
            ("env", json!(env)),
            ("since", json!(self.since.to_rfc3339())),
            ("priority", json!(priority)),
            ("rank", json!((self.rank != 0).then_some(self.rank))),
            ("held", json!(self.held.as_ref().map(write_hold))),
            ("after", self.after.iter().map(|after| json!(after.to_string())).collect()),
            ("passed", write_passed(self.passed)),
            ("place", json!(self.place)),
            ("keeper", json!(self.keeper.as_ref().map(write_keeper))),
            ("succeeds", json!(self.succeeds.map(write_awaited))),
            ("apply", json!(self.applies)),
            ("shunned", self.shunned.iter().map(write_shunned).collect()),
        ];
        members.extend(of_entry.into_iter().map(|(key, value)| (key.to_owned(), value)));
        members.retain(|key, value| !is_usual(key, value));
        Value::Object(members)
    }
}

/// Whether a member says nothing that its absence does not say.
fn is_usual(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(said) => match key {
            "monitor" => *said,
            "force" | "log_stage" | "apply" => !said,
            // Of others both words say something: `reclaimable` may be unsaid.
            _ => false,
        },
        Value::Array(list) => list.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Number(_) | Value::String(_) => false,
    }
}

/// What a record keeps of the environment, for the file.
pub(super) fn write_environment(env: &Environment) -> Value {
    extras::write_command(env)
}

pub(super) fn read_environment(value: Json<'_>, path: &Path<'_>) -> Result<Environment, DataError> {
    Ok(extras::read_command(value, path)?.into())
}

fn read_hold(value: Json<'_>, path: &Path<'_>) -> Result<QueueHold, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(QueueHold {
        by: fields.need("by", "text", read::text)?,
        since: fields.need("since", "an instant", read::instant)?,
        why: fields.with("why", read::text)?,
        needs_login: fields.with_or("needs_login", false, read::flag)?,
    })
}

fn write_hold(hold: &QueueHold) -> Value {
    let mut written = json!({ "by": hold.by, "since": hold.since.to_rfc3339(), "why": hold.why });
    if let (true, Some(fields)) = (hold.needs_login, written.as_object_mut()) {
        fields.insert("needs_login".to_owned(), true.into());
    }
    written
}

fn read_shunned(value: Json<'_>, path: &Path<'_>) -> Result<Shunned, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(Shunned {
        target: TargetName::new(fields.need("target", "a target", read::text)?),
        until: fields.need("until", "an instant", read::instant)?,
        why: fields.with("why", read::text)?.unwrap_or_default(),
    })
}

fn write_shunned(shunned: &Shunned) -> Value {
    json!({
        "target": shunned.target, "until": shunned.until.to_rfc3339(), "why": shunned.why,
    })
}

fn read_passed(value: Json<'_>, path: &Path<'_>) -> Result<Passed, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(Passed {
        times: fields.with("times", read::number)?.unwrap_or_default(),
        since: fields.with("since", read::instant)?,
    })
}

fn write_passed(passed: Passed) -> Value {
    if passed == Passed::default() {
        return Value::Null;
    }
    json!({ "times": passed.times, "since": passed.since.map(Timestamp::to_rfc3339) })
}

fn read_awaited(value: Json<'_>, path: &Path<'_>) -> Result<Awaited, DataError> {
    let fields = Fields::new(value, path)?;
    let how = |value: Json<'_>, path: &Path<'_>| {
        let parse = |word: &str| {
            let all = [Succession::Resume, Succession::Rerun];
            all.into_iter().find(|how| how.verb() == word)
        };
        read::one_of(value, path, parse, "resume or rerun")
    };
    Ok(Awaited {
        job: JobNumber(fields.need("job", "a number", read::number)?),
        how: fields.need("how", "a word", how)?,
        is_told: fields.with_or("told", false, read::flag)?,
    })
}

fn write_awaited(awaited: Awaited) -> Value {
    json!({ "job": awaited.job, "how": awaited.how.verb(), "told": awaited.is_told })
}

fn read_keeper(value: Json<'_>, path: &Path<'_>) -> Result<Keeper, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(Keeper {
        owner: fields.need("owner", "text", read::text)?,
        seen: fields.need("seen", "an instant", read::instant)?,
    })
}

fn write_keeper(keeper: &Keeper) -> Value {
    json!({ "owner": keeper.owner, "seen": keeper.seen.to_rfc3339() })
}

/// Reads those who waited in line before there was a queue (`waiting`), without their numbers; who had not written down
/// yet what was to be started is nobody.
pub(super) fn read_tickets(value: Json<'_>, path: &Path<'_>) -> Result<Vec<QueueEntry>, DataError> {
    let ticket = |value: Json<'_>, path: &Path<'_>| {
        let fields = Fields::new(value, path)?;
        let any_of = spec::read_any_of(&fields)?;
        let since = fields.need("since", "an instant", read::instant)?;
        let run = |value: Json<'_>, path: &Path<'_>| {
            let fields = Fields::new(value, path)?;
            let env = fields.with("env", read_environment)?.unwrap_or_default();
            let spec = spec::read(&fields, TargetRequest::Any(any_of.clone()))?;
            let spec = JobSpec { queue: Some(QueueName::usual()), ..spec };
            Ok((spec, fields.with_or("force", false, read::flag)?, env))
        };
        let user = UserName::new(fields.need("user", "a user", read::text)?);
        let Some((spec, force, env)) = fields.with("run", run)? else { return Ok(None) };
        let keeper = Keeper {
            owner: fields.with("owner", read::text)?.unwrap_or_default(),
            seen: fields.with("seen", read::instant)?.unwrap_or(since),
        };
        Ok(Some(QueueEntry {
            user,
            number: JobNumber(0),
            queue: QueueName::usual(),
            spec,
            sweep: None,
            force,
            env,
            since,
            priority: Priority::default(),
            rank: 0,
            held: None,
            after: Vec::new(),
            passed: Passed::default(),
            place: fields.with("place", read::text)?.unwrap_or_default(),
            keeper: Some(keeper),
            succeeds: None,
            applies: false,
            shunned: Vec::new(),
        }))
    };
    Ok(read::list(value, path, ticket)?.into_iter().flatten().collect())
}
