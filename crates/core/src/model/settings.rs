//! Settings in layers, each value with the layer that it came from.
//!
//! Built in < `users.<name>.settings` in data.json < `settings.json` of this machine's account <
//! `--settings FILE` < environment and flags. Merging is pure: reading files is the caller's.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::arguments::{self, ArgumentStyle};
use super::billing::BillingTable;
use super::checkpoint_copy;
use super::checkpoint_signal::CheckpointSignal;
use super::execution::is_output;
use super::notify::{self, Receiver, Smtp};
use super::policy::Policy;
use super::prices;
use super::read::{self, DataError, Json, Path};
use super::target::ProviderName;
use super::time::{LOCAL, Zone, parse_age};
use super::words::words;

/// How the cloud's API is told who we are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CloudAuth {
    /// With Google's credentials.
    #[default]
    Google,
    /// Not at all, as an emulator wants it.
    None,
}

words! {
    /// The spelling in settings.
    CloudAuth {
        Google: "google",
        None: "none",
    }
}

/// How workers are reached whose addresses a control plane knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkersBy {
    /// By OpenSSH: one connection for each, kept.
    #[default]
    Ssh,
    /// By `gcloud compute tpus tpu-vm ssh`, where nothing else is let through.
    Gcloud,
}

words! {
    /// The spelling in settings.
    WorkersBy {
        Ssh: "ssh",
        Gcloud: "gcloud",
    }
}

/// Where a value came from, in rising order of precedence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingOrigin {
    /// The program itself.
    BuiltIn,
    /// data.json, the settings of this user.
    User(String),
    /// The settings file of this machine's account.
    File(String),
    /// The file given with `--settings` or `$TPU_SETTINGS`.
    Given(String),
    /// An environment variable, by name.
    Environment(String),
    /// A flag of the command line, by name.
    Flag(String),
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::User(user) => write!(f, "data.json: users.{user}.settings"),
            Self::File(path) | Self::Given(path) => f.write_str(path),
            Self::Environment(name) => write!(f, "${name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A setting that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {problem}")]
pub struct SettingsError {
    /// The file, variable or flag.
    pub origin: SettingOrigin,
    /// Which key and what is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// No such key.
    #[error("unknown setting '{key}'")]
    Unknown {
        /// The key as written.
        key: String,
        /// The known key that looks most like it.
        nearest: Option<&'static str>,
    },
    /// The value is of the wrong type.
    #[error(transparent)]
    Value(#[from] DataError),
    /// The file holds no object.
    #[error("{message} (line {line}, column {column})")]
    Syntax {
        /// The parser's words.
        message: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
}

/// Declares the settings once: key, type, built-in value, and how a JSON value is read.
macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $key:ident: $type:ty = $default:expr, $read:expr;)+) => {
        /// All settings with the values that hold.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Settings {
            $($(#[doc = $doc])+ pub $key: $type,)+
            origins: Vec<(&'static str, SettingOrigin)>,
        }

        /// What each key means, for the help: the text above its field.
        pub const MEANINGS: &[(&str, &str)] = &[$((stringify!($key), concat!($($doc),+))),+];

        /// Every key, in the order in which `get-settings` shows them.
        pub const KEYS: &[&str] = &[$(stringify!($key)),+];

        impl Default for Settings {
            fn default() -> Self {
                Self { $($key: $default,)+ origins: Vec::new() }
            }
        }

        impl Settings {
            /// Lays one value over what is there.
            fn put(&mut self, key: &str, value: &Value) -> Result<&'static str, Problem> {
                let path = Path::Key(&Path::Root, key);
                match key {
                    $(stringify!($key) => {
                        self.$key = $read(Json::new(&value.to_string()), &path)?;
                        Ok(stringify!($key))
                    })+
                    _ => Err(Problem::Unknown { key: key.to_owned(), nearest: nearest(key) }),
                }
            }

            /// The value that holds.
            fn value(&self, key: &str) -> Value {
                match key {
                    $(stringify!($key) => json!(self.$key),)+
                    _ => Value::Null,
                }
            }
        }
    };
}

settings! {
    /// Whether `run` opens the screen afterwards.
    monitor_after_run: bool = true, read::flag;
    /// Seconds between two refreshes of the screen.
    monitor_upd_time: u32 = 5, positive;
    /// Characters at the end of the output that are read for the status, at least.
    monitor_length: u32 = 800, read::number;
    /// Whether output is shown even if the status is known.
    monitor_verbose: bool = false, read::flag;
    /// Whether the working directory is shown.
    monitor_dir: bool = true, read::flag;
    /// Whether the target is shown.
    monitor_tpu: bool = true, read::flag;
    /// Columns of the screen's list, by name; by default those that fit.
    monitor_columns: Option<Vec<String>> = None, words;
    /// Characters of output that are shown.
    show_length: u32 = 200, read::number;
    /// Time zone for display: `local` (this machine's), `us`, `cn` or a name such as `Europe/Berlin`.
    time_zone: String = LOCAL.to_owned(), zone;
    /// Values of other programs; `tpu` does not read them.
    extra_settings: Map<String, Value> = Map::new(), map;
    /// User for whom commands act.
    user: Option<String> = None, maybe_text;
    /// Path of the data file.
    data: Option<String> = None, maybe_text;
    /// Provider of targets whose registration names none: `none`, `sim` or `google`.
    cloud: ProviderName = ProviderName::NONE, provider;
    /// Project of the cloud.
    project: Option<String> = None, maybe_text;
    /// Address of the cloud's API, for the emulator.
    cloud_endpoint: Option<String> = None, maybe_text;
    /// How `tpu` logs in to the cloud's API; `none` for the emulator.
    cloud_auth: CloudAuth = CloudAuth::Google, cloud_auth;
    /// Fields that every new target gets in addition, in the terms of the cloud's API.
    cloud_node: Map<String, Value> = Map::new(), map;
    /// Prices of an hour: by type or family, for one pricing or all.
    prices: Map<String, Value> = Map::new(), prices::read;
    /// The table of `BigQuery` that Cloud Billing exports to, as `PROJECT.DATASET.TABLE` (`tpu billing`).
    billing_table: Option<BillingTable> = None, BillingTable::read;
    /// Colours of the screen.
    theme: String = "default".to_owned(), read::text;
    /// Keys of the screen: each action with its keys.
    keys: Vec<(String, Vec<String>)> = Vec::new(), key_map;
    /// Command of a job that names none, word by word.
    command: Option<Vec<String>> = None, words;
    /// How commands get `lr=0.05`: `flags` as `--lr=0.05`, `hydra` unchanged, `config` as `--config.…=0.05` by the aliases.
    arguments: ArgumentStyle = ArgumentStyle::Config, ArgumentStyle::read;
    /// Arguments that a resume adds, as in `--resume {checkpoint}`; also `{checkpoint_dir}`, `{step}` and `{attempt}`.
    resume_args: Option<String> = None, arguments::read_template;
    /// Variables of your shell that a command also gets on other machines.
    forward_env: Vec<String> = forwarded(), some_words;
    /// Megabytes of code that are copied for a job without a question.
    copy_limit: u32 = 500, positive;
    /// Number of files that are copied for a job without a question.
    copy_files: u32 = 50_000, positive;
    /// Directories below the code for results: they stay beside the code, and a copy links to them.
    outputs: Vec<String> = Vec::new(), outputs;
    /// How long the copy of the code is kept after its job was archived, as in `7d`; `0` removes it at once. Files that
    /// the job created or changed stay.
    keep_code: String = "7d".to_owned(), span;
    /// Directory for copies of code; by default below the state directory.
    stage_root: Option<String> = None, maybe_text;
    /// Directory for logs; by default below the state directory.
    log_root: Option<String> = None, maybe_text;
    /// How `tpu` chooses among several machines with room: `sequential`, `random`, `smart` or `frugal`.
    policy: Policy = Policy::Sequential, Policy::read;
    /// How long a job is tried again after failures of infrastructure once its quick tries are used up, as in `7d`; `0` stops
    /// then.
    patience: String = "7d".to_owned(), span;
    /// Whether commands start the daemon if something depends on it: a rule that acts, a queued job, a notice.
    daemon_autostart: bool = true, read::flag;
    /// Receivers of notices about jobs.
    notify: Option<Vec<Receiver>> = None, notify::read;
    /// Seconds for which events are collected that go to one receiver together.
    notify_merge: u32 = 60, positive;
    /// Mail server for notices.
    smtp: Option<Smtp> = None, notify::read_smtp;
    /// Directory in which programs save checkpoints, absolute or below their working directory; by default `tpu` looks for it.
    checkpoint_dir: Option<String> = None, maybe_directory;
    /// Regular expression for the names of checkpoints, if the usual ones do not fit.
    checkpoint_pattern: Option<String> = None, maybe_text;
    /// Signal that a program gets before it is requeued, so that it saves a checkpoint.
    checkpoint_signal: Option<CheckpointSignal> = None, CheckpointSignal::read;
    /// Seconds that the program has after that signal.
    checkpoint_grace: u32 = 60, positive;
    /// Where checkpoints are stored in each region: a job that continues in another region copies its newest one there.
    checkpoint_copy: Map<String, Value> = Map::new(), checkpoint_copy::read;
    /// Number of a user's jobs that may run at once; the others wait in the queue.
    max_parallel: Option<u32> = None, maybe_positive;
    /// Number of targets that may exist when one is created for a queued job (`submit --apply`).
    max_targets: Option<u32> = None, maybe_positive;
    /// How workers are reached whose addresses the cloud knows: `ssh` or `gcloud`.
    workers: WorkersBy = WorkersBy::Ssh, workers_by;
    /// Account on workers whose registration names none.
    ssh_user: Option<String> = None, maybe_text;
    /// Key file for that account.
    ssh_key: Option<String> = None, maybe_text;
    /// More options for ssh, as in `-J HOST`; they win over those of `tpu`.
    ssh_options: Option<Vec<String>> = None, words;
    /// Devices by which a program of others is recognized on a worker, as shell patterns.
    worker_devices: Vec<String> = devices(), device_list;
    /// File with the lab's recipes (`tpu help solve`).
    recipes: Option<String> = None, maybe_text;
}

/// The settings that a new user has written into data.json, as the original does; but for the time zone,
/// which is the machine's until somebody sets another.
const USER_KEYS: [&str; 7] = [
    "monitor_after_run",
    "monitor_upd_time",
    "monitor_length",
    "monitor_verbose",
    "monitor_dir",
    "monitor_tpu",
    "show_length",
];

impl Settings {
    /// Merges layers, given from the weakest to the strongest, over the built-in values.
    pub fn merge(layers: &[(SettingOrigin, &Layer)]) -> Result<Self, SettingsError> {
        let mut merged = Self::default();
        for (origin, layer) in layers {
            for (key, value) in &layer.values {
                // In data.json a key may belong to another program or version.
                if !KEYS.contains(&key.as_str()) && matches!(origin, SettingOrigin::User(_)) {
                    continue;
                }
                let key = merged
                    .put(key, value)
                    .map_err(|problem| SettingsError { origin: origin.clone(), problem })?;
                merged.origins.retain(|(known, _)| *known != key);
                merged.origins.push((key, origin.clone()));
            }
        }
        Ok(merged)
    }

    /// Refuses a provider that is none of those that there are.
    pub fn with_provider_of(self, known: &[ProviderName]) -> Result<Self, SettingsError> {
        if known.contains(&self.cloud) {
            return Ok(self);
        }
        let names: Vec<&str> = known.iter().map(ProviderName::as_str).collect();
        let value = json!(self.cloud.as_str()).to_string();
        let path = Path::Key(&Path::Root, "cloud");
        let error = path.error(&crate::text::either(&names), Some(Json::new(&value)));
        Err(SettingsError { origin: self.origin("cloud").clone(), problem: Problem::Value(error) })
    }

    /// The layer from which the value of a key came.
    pub fn origin(&self, key: &str) -> &SettingOrigin {
        self.origins
            .iter()
            .find(|(known, _)| *known == key)
            .map_or(&SettingOrigin::BuiltIn, |(_, origin)| origin)
    }

    /// The setting `patience` in seconds.
    pub fn patience_s(&self) -> u64 {
        parse_age(&self.patience).unwrap_or_default()
    }

    /// The setting `keep_code` in seconds.
    pub fn keep_code_s(&self) -> u64 {
        parse_age(&self.keep_code).unwrap_or(u64::MAX)
    }

    /// Key and value of every setting, as JSON.
    pub fn values(&self) -> Vec<(&'static str, Value)> {
        let keys =
            || self.keys.iter().map(|(action, keys)| (action.clone(), json!(keys))).collect();
        let value = |key| if key == "keys" { Value::Object(keys()) } else { self.value(key) };
        KEYS.iter().map(|key| (*key, value(key))).collect()
    }
}

/// The values of one layer, as written, each of a known key checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layer {
    values: Map<String, Value>,
}

impl Layer {
    /// Reads a settings file. Unknown keys and wrong types are errors that name `origin` and the key.
    pub fn parse(text: &str, origin: &SettingOrigin) -> Result<Self, SettingsError> {
        let error = |problem| SettingsError { origin: origin.clone(), problem };
        let values = serde_json::from_str(text).map_err(|e| {
            error(Problem::Syntax { message: syntax(&e), line: e.line(), column: e.column() })
        })?;
        let layer = Self { values };
        Settings::merge(&[(origin.clone(), &layer)])?;
        Ok(layer)
    }

    /// Reads `users.<name>.settings`; keys of others are kept and not looked at.
    pub(super) fn read_user(value: Json<'_>, path: &Path<'_>) -> Result<Self, DataError> {
        let values = read::object(value, path)?;
        let mut probe = Settings::default();
        for (key, value) in &values {
            if let Err(Problem::Value(error)) = probe.put(key, value) {
                let path = Path::Key(path, key);
                return Err(DataError { path: path.to_string(), ..error });
            }
        }
        Ok(Self { values })
    }

    /// What the original writes for a new user.
    pub(crate) fn for_new_user() -> Self {
        let mut values: Map<String, Value> = Settings::default()
            .values()
            .into_iter()
            .filter(|(key, _)| USER_KEYS.contains(key))
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        values.insert("extra_settings".to_owned(), json!({}));
        values.insert("arguments".to_owned(), json!(ArgumentStyle::Flags));
        Self { values }
    }

    /// Sets a key from text, as `set-settings`, the environment and flags give it.
    pub fn set(
        &mut self,
        key: &str,
        text: &str,
        origin: &SettingOrigin,
    ) -> Result<(), SettingsError> {
        let error = |problem| SettingsError { origin: origin.clone(), problem };
        let mut probe = Settings::default();
        // A list of words that is written as JSON is that list, where the key takes one.
        let list = serde_json::from_str::<Value>(text).ok().filter(Value::is_array);
        if let Some(list) = list.filter(|list| probe.put(key, list).is_ok()) {
            self.values.insert(key.to_owned(), list);
            return Ok(());
        }
        // The type is the key's: as text first, else as JSON (`5`, `{"a": "b"}`, `null`).
        let as_text = Value::from(text);
        let Err(refused) = probe.put(key, &as_text) else {
            let value = canonical(key, &probe, as_text);
            self.values.insert(key.to_owned(), value);
            return Ok(());
        };
        let Ok(value) = serde_json::from_str::<Value>(text) else { return Err(error(refused)) };
        match probe.put(key, &value) {
            Ok(_) => {
                self.values.insert(key.to_owned(), value);
                Ok(())
            }
            // What was meant as such says better what is wrong with it.
            Err(problem) if value.is_object() || value.is_array() => Err(error(problem)),
            Err(_) => Err(error(refused)),
        }
    }

    /// Takes out every known key and keeps those of others (`reset-settings`), and what new users have. Returns what was taken
    /// out and said something else than the defaults do.
    pub fn reset(&mut self) -> Vec<(String, Value)> {
        let is_of_new_users = self.values.get("arguments") == Some(&json!(ArgumentStyle::Flags));
        let keys: Vec<&str> =
            KEYS.iter().copied().filter(|key| !is_of_new_users || *key != "arguments").collect();
        self.take_out(&keys)
    }

    /// The same of some keys alone.
    pub fn take_out(&mut self, keys: &[&str]) -> Vec<(String, Value)> {
        let defaults = Settings::default().values();
        let (ours, others): (Map<_, _>, Map<_, _>) = std::mem::take(&mut self.values)
            .into_iter()
            .partition(|(k, _)| keys.contains(&k.as_str()));
        self.values = others;
        let is_default = |key: &str, value: &Value| {
            defaults.iter().any(|(known, default)| *known == key && default == value)
        };
        ours.into_iter().filter(|(key, value)| !is_default(key, value)).collect()
    }

    /// The layer as written.
    pub fn to_value(&self) -> Value {
        Value::Object(self.values.clone())
    }
}

/// Numbers and booleans given as text are stored as what they are, as the original expects.
fn canonical(key: &str, probe: &Settings, text: Value) -> Value {
    let value = probe.values().into_iter().find(|(known, _)| *known == key);
    match value {
        Some((_, value @ (Value::Bool(_) | Value::Number(_)))) => value,
        _ => text,
    }
}

/// The parser's message without its own "at line … column …".
pub(super) fn syntax(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = text.rfind(" at line ").unwrap_or(text.len());
    text.get(..end).unwrap_or(&text).to_owned()
}

/// The known key that is most like `key`, if one is near.
fn nearest(key: &str) -> Option<&'static str> {
    KEYS.iter()
        .map(|known| (strsim::damerau_levenshtein(key, known), *known))
        .filter(|(distance, _)| *distance <= 3)
        .min()
        .map(|(_, known)| known)
}

fn maybe_text(value: Json<'_>, path: &Path<'_>) -> Result<Option<String>, DataError> {
    if value.is_null() { Ok(None) } else { read::text(value, path).map(Some) }
}

fn maybe_directory(value: Json<'_>, path: &Path<'_>) -> Result<Option<String>, DataError> {
    match maybe_text(value, path)? {
        Some(dir) if dir.is_empty() || dir.starts_with('~') => {
            Err(path.error("a directory, as in out/weights or /data/runs", Some(value)))
        }
        dir => Ok(dir),
    }
}

fn positive(value: Json<'_>, path: &Path<'_>) -> Result<u32, DataError> {
    match read::number(value, path)? {
        0 => Err(path.error("a number from 1 up", Some(value))),
        number => Ok(number),
    }
}

fn maybe_positive(value: Json<'_>, path: &Path<'_>) -> Result<Option<u32>, DataError> {
    if value.is_null() { Ok(None) } else { positive(value, path).map(Some) }
}

fn zone(value: Json<'_>, path: &Path<'_>) -> Result<String, DataError> {
    let name = read::text(value, path)?;
    if Zone::is_known(&name) {
        Ok(name)
    } else {
        Err(path.error("local, us, cn, or a time zone such as Europe/Berlin", Some(value)))
    }
}

/// A length of time as people write it.
fn span(value: Json<'_>, path: &Path<'_>) -> Result<String, DataError> {
    let number = value.as_u64().map(|seconds| seconds.to_string());
    let text = value.as_str().map(std::borrow::Cow::into_owned).or(number);
    let is_span = |text: &String| parse_age(text).is_some();
    text.filter(is_span).ok_or_else(|| path.error("a time such as 7d, 12h or 0", Some(value)))
}

/// Which providers there are is not known here: see [`Settings::with_provider_of`].
fn provider(value: Json<'_>, path: &Path<'_>) -> Result<ProviderName, DataError> {
    read::one_of(value, path, |word| Some(ProviderName::new(word)), "the name of a provider")
}

fn cloud_auth(value: Json<'_>, path: &Path<'_>) -> Result<CloudAuth, DataError> {
    let parse = |word: &str| CloudAuth::ALL.into_iter().find(|auth| auth.as_str() == word);
    read::one_of(value, path, parse, "google or none")
}

fn workers_by(value: Json<'_>, path: &Path<'_>) -> Result<WorkersBy, DataError> {
    let parse = |word: &str| WorkersBy::ALL.into_iter().find(|by| by.as_str() == word);
    read::one_of(value, path, parse, "ssh or gcloud")
}

/// The accelerators of every generation of TPUs.
fn devices() -> Vec<String> {
    ["/dev/accel*", "/dev/vfio/*"].map(str::to_owned).to_vec()
}

fn device_list(value: Json<'_>, path: &Path<'_>) -> Result<Vec<String>, DataError> {
    Ok(words(value, path)?.unwrap_or_else(devices))
}

fn map(value: Json<'_>, path: &Path<'_>) -> Result<Map<String, Value>, DataError> {
    if value.is_null() { Ok(Map::new()) } else { read::object(value, path) }
}

/// A command as a list of words, or as one text quoted as for a shell.
fn words(value: Json<'_>, path: &Path<'_>) -> Result<Option<Vec<String>>, DataError> {
    if value.is_null() {
        return Ok(None);
    }
    let Some(text) = value.as_str() else {
        return read::list(value, path, read::text).map(Some);
    };
    let split = shlex::split(&text);
    split.map(Some).ok_or_else(|| path.error("a command with its quotes closed", Some(value)))
}

/// The same, where no word at all is said by an empty list.
fn some_words(value: Json<'_>, path: &Path<'_>) -> Result<Vec<String>, DataError> {
    Ok(words(value, path)?.unwrap_or_default())
}

/// Directories below the code of a job.
fn outputs(value: Json<'_>, path: &Path<'_>) -> Result<Vec<String>, DataError> {
    let all = some_words(value, path)?;
    let all: Vec<String> = all.iter().map(|path| path.trim_end_matches('/').to_owned()).collect();
    let is_odd = all.iter().any(|path| !is_output(path));
    if is_odd { Err(path.error("directories below the code", Some(value))) } else { Ok(all) }
}

/// What says how a program prints and where it logs, and nothing about this machine.
fn forwarded() -> Vec<String> {
    ["PYTHONUNBUFFERED", "WANDB_PROJECT", "WANDB_ENTITY", "WANDB_MODE", "HF_HUB_OFFLINE"]
        .map(str::to_owned)
        .into()
}

fn key_map(value: Json<'_>, path: &Path<'_>) -> Result<Vec<(String, Vec<String>)>, DataError> {
    let name = |key: &str| Some(key.to_owned());
    read::pairs(value, path, name, |value, path| match value.as_str() {
        Some(key) => Ok(vec![key.into_owned()]),
        None => read::list(value, path, read::text),
    })
}

#[cfg(test)]
mod tests;
