//! One record of `job_data`: JSON to [`Job`] and back.
//!
//! Writing begins with the record as it was read. A key is replaced only when reading it again would
//! not give the job's present value, so that spellings and unknown keys stay as they were found.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::arguments::ArgumentStyle;
use super::capacity;
use super::extras;
use super::facts::ErrorKind;
use super::handle;
use super::ids::{JobId, JobNumber, TargetName, UserName};
use super::job::{Job, StartTime, Status};
use super::read::{self, DataError, Fields, Json, Path};
use super::rules::{Action, Rules};
use super::spec;
use super::time::Timestamp;
use super::waited;

impl Job {
    /// Reads a record on its own, such as a line of the archive.
    pub fn from_value(value: &Value, owner: &UserName) -> Result<Self, DataError> {
        let text = value.to_string();
        let record = Json::new(&text);
        let members = record.as_object().ok_or_else(|| Path::Root.error("a job", Some(record)))?;
        let job = read_job(&Fields::of(members, &Path::Root), owner)?;
        Ok(Self { raw: text.into(), ..job })
    }

    /// The record for the file: what was read, with what has changed since.
    pub fn to_value(&self) -> Value {
        let record = Fields::new(Json::new(self.raw.text()), &Path::Root);
        let was = record.and_then(|record| read_job(&record, &self.user)).ok();
        Value::Object(written(self, was.as_ref()))
    }
}

/// Reads a record, all but `raw`.
pub(super) fn read_job(record: &Fields<'_>, owner: &UserName) -> Result<Job, DataError> {
    let window = record.need("windows_id", "a number", read::number)?;
    let id = JobId::new(owner.clone(), JobNumber(window));
    let tpu = TargetName::new(record.with("tpu", read::text)?.unwrap_or_default());
    let mut job = Job::new(&id, tpu, record.with("job_dir", read::text)?.unwrap_or_default());
    job.job_dir_id = record.with("job_dir_id", read::number)?;
    job.job_tags = record.with("job_tags", read::text)?;
    job.log_dir = record.with("log_dir", read::text)?;
    job.stage_dir = record.with(stage_key(|key| record.has(key)), read::text)?;
    job.extra_configs = record.with("extra_configs", read::text)?.unwrap_or_default();
    let kind = record.with("error", extras::read_kind)?;
    job.status = record
        .with("status", |value, path| read_status(value, kind, path))?
        .unwrap_or(Status::Unset);
    job.stage = record.with_or("stage", 0, read::number)?;
    job.monitor = record.with_or("monitor", true, read::flag)?;
    job.rules = record.with("rules", read_rules)?.unwrap_or_default();
    job.start_time = record.with("start_time", read_start)?.unwrap_or(StartTime::Unset);
    if let Some(value) = record.get("extra_msgs") {
        let path = record.below("extra_msgs");
        let extra = Fields::new(value, &path)?;
        job.father = extra.with("father", read_window)?;
        job.child = extra.with("child", read_window)?;
        job.place = extra.with("place", extras::read_place)?;
        job.engine = extra.with("engine", handle::read_engine)?.map(Box::new);
        job.launch = extra.with("launch", extras::read_launch)?;
        job.waited = extra.with("waited", waited::read_waited)?.map(Box::new);
        job.intent = extra.with("intent", extras::read_intent)?;
        job.lease = extra.with("lease", extras::read_lease)?;
        job.recovery = extra.with("recovery", extras::read_recovery)?.map(Box::new);
        job.monitor |= job.recovery.as_ref().is_some_and(|recovery| recovery.unwatched);
        job.verdict = extra.with("verdict", extras::read_verdict)?;
        job.reached = extra.with("reached", extras::read_reached)?.map(Box::new);
        job.spec = extra.with("spec", spec::read_stored)?.map(Box::new);
        job.share = extra.with("share", capacity::read_share)?;
        // The original's own key: whatever else stands there is not ours to understand.
        job.notes = extra.get("spreadsheet_notes").and_then(Json::as_str).map(Cow::into_owned);
    }
    if let Some(value) = record.get("customized_settings") {
        let path = record.below("customized_settings");
        let custom = Fields::new(value, &path)?;
        job.log_stage = custom.with("log_stage", read::flag)?.unwrap_or(false);
        job.arguments = custom.with("arguments", ArgumentStyle::read)?;
        job.command = custom.with("command", extras::read_command)?;
    }
    Ok(job)
}

/// The spelling of the stage directory's key in this record.
fn stage_key(has: impl Fn(&str) -> bool) -> &'static str {
    if !has("stage_dir") && has("staage_dir") { "staage_dir" } else { "stage_dir" }
}

fn read_window(value: Json<'_>, path: &Path<'_>) -> Result<JobNumber, DataError> {
    read::number(value, path).map(JobNumber)
}

fn read_status(
    value: Json<'_>,
    kind: Option<ErrorKind>,
    path: &Path<'_>,
) -> Result<Status, DataError> {
    let unknown = || path.error("a status such as running", Some(value));
    let text = value.as_str().ok_or_else(unknown)?;
    let status = match text.split_once(':') {
        // Written so by hand and by some forks: status and kind in one field.
        Some(("error", word)) => {
            let kind = ErrorKind::parse(word).ok_or_else(unknown)?;
            Status::from_fields(Some("error"), Some(kind))
        }
        Some(_) => None,
        None => Status::from_fields(Some(&*text), kind),
    };
    status.ok_or_else(unknown)
}

fn read_rules(value: Json<'_>, path: &Path<'_>) -> Result<Rules, DataError> {
    let mut rules = Rules::default();
    for member in value.as_object().ok_or_else(|| path.error("a map", Some(value)))? {
        let name = member.key.name();
        let path = Path::Key(path, &name);
        let kind = ErrorKind::parse(&name).ok_or_else(|| {
            path.error("a kind of error as key", Some(Json::new(&json!(name).to_string())))
        })?;
        rules.set(kind, read_action(Json::new(member.value), &path)?);
    }
    Ok(rules)
}

fn read_action(value: Json<'_>, path: &Path<'_>) -> Result<Action, DataError> {
    read::one_of(value, path, Action::parse, "an action such as resume")
}

fn read_start(value: Json<'_>, path: &Path<'_>) -> Result<StartTime, DataError> {
    match value.as_str() {
        Some(text) => Ok(Timestamp::parse_rfc3339(&text)
            .map_or_else(|| StartTime::Original(Box::new(Value::from(text))), StartTime::At)),
        None if value.is_object() => Ok(StartTime::Original(Box::new(value.to_value()))),
        None => Err(path.error("a time", Some(value))),
    }
}

/// The record of `job`, given what its raw form reads as.
fn written(job: &Job, was: Option<&Job>) -> Map<String, Value> {
    let raw = job.raw.map();
    let mut map = raw.clone();
    let mut set = |key: &str, differs: bool, value: Value| {
        if differs {
            map.insert(key.to_owned(), value);
        }
    };
    macro_rules! field {
        ($key:expr, $field:ident, $value:expr) => {
            set($key, was.is_none_or(|was| was.$field != job.$field), $value);
        };
    }
    if was.is_none() {
        set("user", true, json!(job.user));
    }
    field!("windows_id", windows_id, json!(job.windows_id));
    field!("job_dir_id", job_dir_id, json!(job.job_dir_id));
    field!("job_dir", job_dir, json!(job.job_dir));
    field!("tpu", tpu, json!(job.tpu));
    field!("job_tags", job_tags, json!(job.job_tags));
    field!("log_dir", log_dir, json!(job.log_dir));
    field!(stage_key(|key| raw.contains_key(key)), stage_dir, json!(job.stage_dir));
    field!("extra_configs", extra_configs, json!(job.extra_configs));
    // The two fields of a status change together, or a reader would see half of each.
    field!("status", status, json!(job.status.word()));
    field!("error", status, json!(job.status.error().map(ErrorKind::as_str)));
    field!("stage", stage, json!(job.stage));
    set(
        "monitor",
        was.is_none_or(|was| is_watched(was) != is_watched(job)),
        json!(is_watched(job)),
    );
    field!("rules", rules, rules_value(&job.rules, raw.get("rules")));
    if was.is_none_or(|was| !same_extras(was, job)) {
        set("extra_msgs", true, extras_value(job, was, raw.get("extra_msgs")));
    }
    field!("start_time", start_time, start_value(&job.start_time));
    let custom = |job: &Job| (job.log_stage, job.arguments);
    if was.is_none_or(|was| custom(was) != custom(job) || was.command != job.command) {
        set("customized_settings", true, custom_value(job, was, raw.get("customized_settings")));
    }
    map
}

/// What its record says of whether it is watched, which the original's monitor reads as well.
fn is_watched(job: &Job) -> bool {
    job.monitor && !job.recovery.as_ref().is_some_and(|recovery| recovery.unwatched)
}

fn start_value(start: &StartTime) -> Value {
    match start {
        StartTime::Unset => Value::Null,
        StartTime::At(at) => json!(at.to_rfc3339()),
        StartTime::Original(value) => (**value).clone(),
    }
}

/// The rules under the spellings of the record, in its order.
fn rules_value(rules: &Rules, old: Option<&Value>) -> Value {
    let mut map = Map::new();
    let mut named = Vec::new();
    for key in old.and_then(Value::as_object).into_iter().flat_map(Map::keys) {
        if let Some(kind) = ErrorKind::parse(key)
            && rules.iter().any(|(known, _)| known == kind)
        {
            map.insert(key.clone(), json!(rules.action(kind).as_str()));
            named.push(kind);
        }
    }
    for (kind, action) in rules.iter().filter(|(kind, _)| !named.contains(kind)) {
        map.insert(kind.as_str().to_owned(), json!(action.as_str()));
    }
    Value::Object(map)
}

fn same_extras(a: &Job, b: &Job) -> bool {
    (a.father, a.child) == (b.father, b.child)
        && a.engine == b.engine
        && (&a.place, &a.launch, &a.intent) == (&b.place, &b.launch, &b.intent)
        && (&a.lease, &a.recovery, &a.verdict) == (&b.lease, &b.recovery, &b.verdict)
        && a.waited == b.waited
        && (&a.reached, &a.notes) == (&b.reached, &b.notes)
        && (&a.spec, &a.share) == (&b.spec, &b.share)
}

fn extras_value(job: &Job, was: Option<&Job>, old: Option<&Value>) -> Value {
    let mut map = old.and_then(Value::as_object).cloned().unwrap_or_default();
    macro_rules! extra {
        ($key:literal, $field:ident, $write:expr) => {
            if was.map_or(job.$field.is_some(), |was| was.$field != job.$field) {
                extras::put(&mut map, $key, job.$field.as_ref().map(|kept| $write(kept)));
            }
        };
    }
    extra!("father", father, |window| json!(window));
    extra!("child", child, |window| json!(window));
    extra!("place", place, extras::write_place);
    extra!("engine", engine, handle::write_engine);
    // Fields that are not written stay: what is said only where it holds is taken away by its name, here and below.
    let is_over = |job: &Job| job.launch.as_ref().is_some_and(|launch| launch.over);
    if was.is_some_and(is_over)
        && !is_over(job)
        && let Some(launch) = map.get_mut("launch").and_then(Value::as_object_mut)
    {
        launch.shift_remove("over");
    }
    extra!("launch", launch, extras::write_launch);
    extra!("waited", waited, |waited: &Box<_>| waited::write_waited(waited));
    extra!("intent", intent, extras::write_intent);
    extra!("lease", lease, extras::write_lease);
    if was.is_some_and(|was| was.recovery != job.recovery)
        && let Some(recovery) = map.get_mut("recovery").and_then(Value::as_object_mut)
    {
        for field in extras::RARE_OF_RECOVERY {
            recovery.shift_remove(field);
        }
    }
    extra!("recovery", recovery, extras::write_recovery);
    extra!("verdict", verdict, extras::write_verdict);
    // Replaced whole: a number that the newest text does not show is none of its numbers.
    if was.is_some_and(|was| was.reached != job.reached) {
        map.shift_remove("reached");
    }
    extra!("reached", reached, extras::write_reached);
    extra!("spec", spec, spec::write_stored);
    extra!("share", share, capacity::write_share);
    extra!("spreadsheet_notes", notes, |text| json!(text));
    Value::Object(map)
}

fn custom_value(job: &Job, was: Option<&Job>, old: Option<&Value>) -> Value {
    let mut map = old.and_then(Value::as_object).cloned().unwrap_or_default();
    if was.map_or(job.log_stage, |was| was.log_stage != job.log_stage) {
        extras::put(&mut map, "log_stage", Some(json!(job.log_stage)));
    }
    if was.map_or(job.arguments.is_some(), |was| was.arguments != job.arguments) {
        extras::put(&mut map, "arguments", job.arguments.map(|style| json!(style)));
    }
    if was.map_or(job.command.is_some(), |was| was.command != job.command) {
        // Replaced whole: words are not laid over the words of another command.
        map.shift_remove("command");
        let command = job.command.as_deref().map(extras::write_command);
        extras::put(&mut map, "command", command);
    }
    Value::Object(map)
}
