//! How the command of a job is carried out: with which variables, after which set-up, on which workers, how long, and how
//! often again.

use serde_json::{Map, Value, json};

use super::arguments;
use super::notify::{self, Receiver};
use super::read::{self, DataError, Fields, Json, Path};
use super::repeat::Repeat;
use super::retry::Retry;
use super::setup::{self, Module, SetUpHow};
use super::target_limit::TargetLimit;

/// How a command is carried out. What is not said is as it is without a word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Execution {
    /// Variables of its own, over those that are kept of whoever asked for it.
    pub variables: Vec<(String, String)>,
    /// Names of variables whose values are nobody's business: they are in no record.
    pub secrets: Vec<String>,
    /// What is set up before it, in order.
    pub setup: Vec<Module>,
    /// How that is done.
    pub setup_how: SetUpHow,
    /// The directory of its machines in which it runs as it lies there: nothing is copied. `~/` is the account's home.
    pub workplace: Option<String>,
    /// Which files of its directory are copied.
    pub copying: Copying,
    /// Directories, by their paths below its code, that are not copied: they are made beside the code where they are not
    /// there, and the copy has links to them.
    pub outputs: Vec<String>,
    /// Whether each member of a group has a copy of its own, and not one with the others.
    pub copies_each: bool,
    /// A file of its machines to which is added what it prints. What is relative lies where it runs; `DIR/./FILE` is
    /// `DIR/FILE` where a machine has `DIR`, and else `FILE` where it runs.
    pub output: Option<String>,
    /// What a resume adds to its arguments, where that is not as the settings say.
    pub resume_args: Option<String>,
    /// The directory in which it keeps checkpoints: relative to the directory in which it begins, or a whole path.
    pub checkpoint_dir: Option<String>,
    /// The workers on which it runs, in order; all of them without a word.
    pub workers: Option<Vec<u32>>,
    /// Seconds that it may run.
    pub timeout_s: Option<u64>,
    /// Seconds that it may print nothing.
    pub idle_timeout_s: Option<u64>,
    /// Whether it begins again where it runs, as soon as it has ended.
    pub repeat: Option<Repeat>,
    /// How often it begins again by itself.
    pub retry: Option<Retry>,
    /// Who is told of it, beside those whom the settings name; nobody at all where it is an empty list.
    pub notify: Option<Vec<Receiver>>,
    /// Who submitted it, where that was not the user whose job it is: another user, or the bearer of a token.
    pub submitted_by: Option<String>,
    /// The targets on which it may run, where the token with which it was started is limited to some.
    pub only_on: TargetLimit,
}

/// Which files of a directory are code that is copied, and what the copy has of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copying {
    /// What `.gitignore` leaves. So it is for scripts, and for what was begun under earlier versions.
    #[default]
    Unignored,
    /// What git tracks or does not ignore. The copy has nothing of the rest.
    Known,
    /// The same, and the copy has links to the rest, where that is on the same disk.
    KnownWithLinks,
}

/// Whether a path may name a directory for [`Execution::outputs`]: one below the code.
pub fn is_output(path: &str) -> bool {
    let mut parts = std::path::Path::new(path).components();
    !path.is_empty() && parts.all(|part| matches!(part, std::path::Component::Normal(_)))
}

impl Copying {
    fn read(value: Json<'_>, path: &Path<'_>) -> Result<Self, DataError> {
        Ok(if read::flag(value, path)? { Self::KnownWithLinks } else { Self::Known })
    }

    /// Whether the rest is linked; `None` where nobody asks git.
    fn links(self) -> Option<bool> {
        (self != Self::Unignored).then_some(self == Self::KnownWithLinks)
    }
}

impl Execution {
    /// Whether it says what only a job file says, and not how code is copied or what the settings say as well.
    pub fn is_of_file(&self) -> bool {
        let Self { copying, copies_each, .. } = *self;
        let (outputs, checkpoint_dir) = (self.outputs.clone(), self.checkpoint_dir.clone());
        let (only_on, submitted_by) = (self.only_on.clone(), self.submitted_by.clone());
        let beside = Self { submitted_by, only_on, ..Self::default() };
        *self != Self { copying, outputs, copies_each, checkpoint_dir, ..beside }
    }

    /// Whether it runs on a worker.
    pub fn is_on(&self, worker: u32) -> bool {
        self.workers.as_ref().is_none_or(|workers| workers.contains(&worker))
    }

    /// Whether a limit is set on its time.
    pub fn is_limited(&self) -> bool {
        self.timeout_s.is_some() || self.idle_timeout_s.is_some()
    }
}

/// Reads the members that [`write()`] has written among others.
pub(super) fn read(fields: &Fields<'_>) -> Result<Execution, DataError> {
    let workers = |value: Json<'_>, path: &Path<'_>| read::list(value, path, read::number);
    Ok(Execution {
        variables: fields.with("variables", read_variables)?.unwrap_or_default(),
        secrets: fields
            .with("secrets", |value, path| read::list(value, path, read::text))?
            .unwrap_or_default(),
        setup: fields.with("setup", setup::read_modules)?.unwrap_or_default(),
        setup_how: fields.with("setup_how", SetUpHow::read)?.unwrap_or_default(),
        workplace: fields.with("workplace", read::text)?,
        copying: fields.with("links_ignored", Copying::read)?.unwrap_or_default(),
        outputs: fields
            .with("outputs", |value, path| read::list(value, path, read::text))?
            .unwrap_or_default(),
        copies_each: fields.with("copies_each", read::flag)?.unwrap_or_default(),
        output: fields.with("output", read::text)?,
        resume_args: fields.with("resume_args", arguments::read_template)?.flatten(),
        checkpoint_dir: fields.with("checkpoint_dir", read::text)?,
        workers: fields.with("workers", workers)?,
        timeout_s: fields.with("timeout_s", read::large)?,
        idle_timeout_s: fields.with("idle_timeout_s", read::large)?,
        repeat: fields.with("repeat", Repeat::read)?,
        retry: fields.with("retry", Retry::read)?,
        notify: fields.with("notify", notify::read)?.flatten(),
        submitted_by: fields.with("submitted_by", read::text)?,
        only_on: fields.with("only_on", read_limit)?.unwrap_or_default(),
    })
}

/// The members that say it; those that say nothing are left out.
pub(super) fn write(execution: &Execution) -> Map<String, Value> {
    let how = Some(execution.setup_how).filter(|how| *how != SetUpHow::Auto);
    let members = [
        ("variables", json!(write_variables(&execution.variables))),
        ("secrets", json!(Some(&execution.secrets).filter(|names| !names.is_empty()))),
        ("setup", json!(setup::write_modules(&execution.setup))),
        ("setup_how", json!(how.map(SetUpHow::as_str))),
        ("workplace", json!(execution.workplace)),
        ("links_ignored", json!(execution.copying.links())),
        ("outputs", json!(Some(&execution.outputs).filter(|all| !all.is_empty()))),
        ("copies_each", json!(Some(true).filter(|_| execution.copies_each))),
        ("output", json!(execution.output)),
        ("resume_args", json!(execution.resume_args)),
        ("checkpoint_dir", json!(execution.checkpoint_dir)),
        ("workers", json!(execution.workers)),
        ("timeout_s", json!(execution.timeout_s)),
        ("idle_timeout_s", json!(execution.idle_timeout_s)),
        ("repeat", json!(execution.repeat.map(Repeat::to_value))),
        ("retry", json!(execution.retry.as_ref().map(Retry::to_value))),
        ("notify", json!(execution.notify)),
        ("submitted_by", json!(execution.submitted_by)),
        ("only_on", json!(Some(&execution.only_on).filter(|limit| !limit.is_none()))),
    ];
    let known = members.into_iter().filter(|(_, value)| !value.is_null());
    known.map(|(key, value)| (key.to_owned(), value)).collect()
}

fn read_limit(value: Json<'_>, path: &Path<'_>) -> Result<TargetLimit, DataError> {
    serde_json::from_value(value.to_value())
        .map_err(|_| path.error("a list of patterns", Some(value)))
}

fn read_variables(value: Json<'_>, path: &Path<'_>) -> Result<Vec<(String, String)>, DataError> {
    read::pairs(value, path, |name| Some(name.to_owned()), read::text)
}

fn write_variables(variables: &[(String, String)]) -> Option<Value> {
    let all = variables.iter().map(|(name, value)| (name.clone(), json!(value)));
    (!variables.is_empty()).then(|| Value::Object(all.collect()))
}
