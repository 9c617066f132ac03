//! The tables of an export: jobs, attempts, arguments, curves and events, each as CSV and as JSON.

use serde_json::{Map, Value, json};

use tpu_core::model::curve::{Measured, Metric};
use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::JobNumber;
use tpu_core::model::job::Job;
use tpu_core::model::time::Timestamp;

use crate::observe::archive;
use crate::observe::journal::Event;
use crate::{Ctx, Error};

/// Rows for other programs.
pub(super) struct Table {
    /// Its name, as that of its files.
    pub(super) name: &'static str,
    columns: &'static [&'static str],
    rows: Vec<Vec<Value>>,
}

impl Table {
    /// An empty one.
    const fn new(name: &'static str, columns: &'static [&'static str]) -> Self {
        Self { name, columns, rows: Vec::new() }
    }

    /// How many rows it has.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Rows of text; the first names the columns.
    pub(super) fn to_csv(&self) -> Result<Vec<u8>, Error> {
        let failed = |e: &dyn std::fmt::Display| {
            Error::failed(format!("the table {} cannot be written: {e}", self.name))
        };
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.columns).map_err(|e| failed(&e))?;
        for row in &self.rows {
            writer.write_record(row.iter().map(cell)).map_err(|e| failed(&e))?;
        }
        writer.into_inner().map_err(|e| failed(&e))
    }

    /// A list of objects, one on each line.
    pub(super) fn to_json(&self) -> Vec<u8> {
        let object = |row: &Vec<Value>| {
            let names = self.columns.iter().map(|name| (*name).to_owned());
            Value::Object(names.zip(row.iter().cloned()).collect::<Map<_, _>>()).to_string()
        };
        let rows: Vec<String> = self.rows.iter().map(object).collect();
        format!("[\n{}\n]\n", rows.join(",\n")).into_bytes()
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// A record, and where its files lie in the export.
pub(super) struct Exported {
    /// The record.
    pub(super) job: Job,
    /// When it was moved into the archive, if it was.
    pub(super) archived: Option<Timestamp>,
    /// The directory of its files, relative to that of the export.
    pub(super) files: String,
    /// The copy of its code, relative to the same; `None` where there is none.
    pub(super) code: Option<String>,
    /// What it measured.
    pub(super) measured: Vec<Measured>,
}

const JOBS: &[&str] = &[
    "user",
    "job",
    "name",
    "status",
    "error",
    "target",
    "tags",
    "attempts",
    "began",
    "ended",
    "exit",
    "step",
    "loss",
    "directory",
    "command",
    "configs",
    "notes",
];

const ATTEMPTS: &[&str] = &[
    "user",
    "job",
    "name",
    "continues",
    "continued_by",
    "status",
    "error",
    "because",
    "target",
    "tags",
    "began",
    "ended",
    "exit",
    "step",
    "directory",
    "command",
    "configs",
    "log_dir",
    "stage_dir",
    "archived",
    "files",
    "code",
    "record",
];

const ARGUMENTS: &[&str] = &["user", "job", "position", "word", "key", "value"];

const CURVES: &[&str] = &["user", "job", "step", "metric", "value"];

const EVENTS: &[&str] = &["time", "actor", "user", "job", "kind", "text", "data"];

/// All tables, of these records and of what happened.
pub(super) fn of(ctx: &Ctx, all: &[Exported], events: &[Event]) -> [Table; 5] {
    let (mut jobs, mut attempts) = (Table::new("jobs", JOBS), Table::new("attempts", ATTEMPTS));
    let mut arguments = Table::new("arguments", ARGUMENTS);
    let mut curves = Table::new("curves", CURVES);
    for one in all {
        attempts.rows.push(attempt(ctx, one));
        if one.job.child.is_none() {
            jobs.rows.push(job(ctx, one));
        }
        arguments.rows.extend(words(&one.job));
        curves.rows.extend(curve(one));
    }
    let mut table = Table::new("events", EVENTS);
    table.rows = events.iter().map(event).collect();
    [jobs, attempts, arguments, curves, table]
}

fn number(number: Option<JobNumber>) -> Value {
    number.map_or(Value::Null, |number| json!(number.0))
}

fn time(at: Option<Timestamp>) -> Value {
    at.map_or(Value::Null, |at| json!(at.to_rfc3339()))
}

fn command(job: &Job) -> Value {
    let words = job.command.as_ref().map(|words| {
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        shlex::try_join(words.iter().map(AsRef::as_ref)).unwrap_or_else(|_| words.join(" "))
    });
    json!(words)
}

fn began(ctx: &Ctx, job: &Job) -> Value {
    time(archive::began(ctx, job))
}

fn step(job: &Job) -> Value {
    json!(job.reached.as_ref().and_then(|reached| reached.step))
}

fn job(ctx: &Ctx, one: &Exported) -> Vec<Value> {
    let (job, launch) = (&one.job, one.job.launch.as_ref());
    let attempts = launch.map_or(1, |launch| launch.attempt.saturating_add(1));
    vec![
        json!(job.user.as_str()),
        json!(job.windows_id.0),
        json!(job.name()),
        json!(job.status.word()),
        json!(job.status.error().map(ErrorKind::as_str)),
        json!(job.tpu.as_str()),
        json!(job.job_tags),
        json!(attempts),
        began(ctx, job),
        time(launch.and_then(|launch| launch.ended)),
        json!(launch.and_then(|launch| launch.exit)),
        step(job),
        json!(one.measured.last().map(|last| last.loss)),
        json!(job.job_dir),
        command(job),
        json!(job.extra_configs),
        json!(job.notes),
    ]
}

fn attempt(ctx: &Ctx, one: &Exported) -> Vec<Value> {
    let (job, launch) = (&one.job, one.job.launch.as_ref());
    vec![
        json!(job.user.as_str()),
        json!(job.windows_id.0),
        json!(job.name()),
        number(job.father),
        number(job.child),
        json!(job.status.word()),
        json!(job.status.error().map(ErrorKind::as_str)),
        json!(job.verdict.as_ref().map(|verdict| verdict.line.as_str())),
        json!(job.tpu.as_str()),
        json!(job.job_tags),
        began(ctx, job),
        time(launch.and_then(|launch| launch.ended)),
        json!(launch.and_then(|launch| launch.exit)),
        step(job),
        json!(job.job_dir),
        command(job),
        json!(job.extra_configs),
        json!(job.log_dir),
        json!(job.stage_dir),
        time(one.archived),
        json!(one.files),
        json!(one.code),
        job.to_value(),
    ]
}

/// The arguments of an attempt word by word, with key and value where a word has both.
fn words(job: &Job) -> Vec<Vec<Value>> {
    let words = shlex::split(&job.extra_configs).unwrap_or_default();
    let row = |(position, word): (usize, String)| {
        let pair = word.split_once('=');
        let key = pair.map(|(key, _)| key.trim_start_matches('-'));
        vec![
            json!(job.user.as_str()),
            json!(job.windows_id.0),
            json!(position),
            json!(word),
            json!(key),
            json!(pair.map(|(_, value)| value)),
        ]
    };
    words.into_iter().enumerate().map(row).collect()
}

fn curve(one: &Exported) -> Vec<Vec<Value>> {
    let row = |step: f64, metric: &str, value: f64| {
        let job = &one.job;
        vec![
            json!(job.user.as_str()),
            json!(job.windows_id.0),
            json!(step),
            json!(metric),
            json!(value),
        ]
    };
    let rows = |at: &Measured| {
        let others = at.others.iter().map(|(metric, value)| row(at.step, metric.as_str(), *value));
        std::iter::once(row(at.step, Metric::LOSS, at.loss)).chain(others).collect::<Vec<_>>()
    };
    one.measured.iter().flat_map(rows).collect()
}

fn event(event: &Event) -> Vec<Value> {
    vec![
        json!(event.at.to_rfc3339()),
        json!(event.actor),
        json!(event.user.as_ref().map(tpu_core::model::ids::UserName::as_str)),
        number(event.job),
        json!(event.kind),
        json!(event.text),
        event.data.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_the_same_as_csv_and_as_json() {
        let mut table = Table::new("jobs", &["user", "notes", "exit"]);
        table.rows.push(vec![json!("alice"), json!("a \"quoted\", text\nin two lines"), json!(3)]);
        table.rows.push(vec![json!("bob"), Value::Null, Value::Null]);
        let csv = table.to_csv().unwrap();
        let mut reader = csv::Reader::from_reader(csv.as_slice());
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows[0].get(1), Some("a \"quoted\", text\nin two lines"));
        assert_eq!(rows[1].iter().collect::<Vec<_>>(), ["bob", "", ""]);
        let json: Value = serde_json::from_slice(&table.to_json()).unwrap();
        assert_eq!(json[0]["exit"], 3);
        assert_eq!(json[1]["notes"], Value::Null);
    }
}
