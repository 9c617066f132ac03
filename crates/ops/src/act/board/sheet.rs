//! The board as a spreadsheet keeps it: out as CSV or JSON, and in again. Rows are known by the name of
//! their target, so that a sheet may be sorted, moved and filled by hand; a bad row is named and the good
//! ones are taken.

use serde_json::{Map, Value};

use crate::base::error::did_you_mean;
use crate::observe::snapshot;
use crate::{Ctx, Error};
use tpu_core::model::board::{Entry, Reservation, Written};
use tpu_core::model::data::Data;
use tpu_core::model::ids::{JobId, TargetName, UserName};
use tpu_core::model::time::Timestamp;
use tpu_core::plan::board::{self, Row, Standing};
use tpu_core::text;

/// The columns, in their order.
pub const COLUMNS: [&str; 10] = [
    "target",
    "alias",
    "type",
    "zone",
    "pricing",
    "standing",
    "status",
    "user",
    "notes",
    "reserved_until",
];

/// Columns that an import reads; the others are ours to know.
const READ: [&str; 6] = ["target", "alias", "status", "user", "notes", "reserved_until"];

/// The cells of one row, in the order of [`COLUMNS`]. Of a target on which a job runs they say that it runs, whose it is
/// and what was noted of it, whatever people wrote.
fn cells(data: &Data, row: &Row) -> [String; 10] {
    let entry = data.board().entry(&row.target);
    let entry = &if row.jobs.is_empty() { entry } else { as_run(data, row, &entry) };
    let kept = entry.reservation.as_ref();
    [
        row.target.as_str().to_owned(),
        row.label.clone(),
        row.accelerator.clone().unwrap_or_default(),
        row.zone.clone().unwrap_or_default(),
        row.pricing.as_str().to_owned(),
        row.standing.as_str().to_owned(),
        entry.status.map(|status| status.as_str().to_owned()).unwrap_or_default(),
        kept.map(|kept| kept.user.as_str().to_owned())
            .or_else(|| entry.user.clone())
            .unwrap_or_default(),
        entry.notes.clone(),
        kept.map(|kept| kept.until.to_rfc3339()).unwrap_or_default(),
    ]
}

/// What people would have written of a target on which a job runs.
fn as_run(data: &Data, row: &Row, entry: &Entry) -> Entry {
    let is_said =
        matches!(entry.status, Some(Written::Running | Written::Reserved | Written::Error));
    Entry {
        status: if is_said { entry.status } else { Some(Written::Running) },
        user: row.user.clone(),
        notes: board::notes_of(data, &row.jobs).unwrap_or_else(|| entry.notes.clone()),
        ..entry.clone()
    }
}

/// The rows of the board as lists of cells.
pub fn table(ctx: &Ctx) -> Result<Vec<[String; 10]>, Error> {
    let board = super::look(ctx)?;
    let data = ctx.data()?;
    Ok(board.to_be_had().map(|row| cells(&data, row)).collect())
}

/// The board as CSV.
pub fn to_csv(table: &[[String; 10]]) -> Result<String, Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failed = |e: &dyn std::fmt::Display| {
        Error::failed(format!("cannot write CSV: {e}")).hint("tpu board export json")
    };
    writer.write_record(COLUMNS).map_err(|e| failed(&e))?;
    for row in table {
        let cells = row.iter().map(|cell| text::sheet::written(cell).into_owned());
        writer.write_record(cells).map_err(|e| failed(&e))?;
    }
    let bytes = writer.into_inner().map_err(|e| failed(&e))?;
    String::from_utf8(bytes).map_err(|e| failed(&e))
}

/// A row as people wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SheetRow {
    /// Where it stands, for people: `line 7`, `row 3`.
    place: String,
    /// Its cells by the names of [`READ`]; `None` where the row has no such cell.
    cells: [Option<String>; 6],
}

impl SheetRow {
    fn cell(&self, column: &str) -> Option<&str> {
        let at = READ.iter().position(|name| *name == column)?;
        self.cells.get(at)?.as_deref().map(str::trim)
    }
}

/// What came of an import.
#[derive(Debug, Default)]
pub struct Imported {
    /// Targets whose entries were written.
    pub taken: Vec<TargetName>,
    /// Rows that were not taken: where, and why.
    pub refused: Vec<(String, String)>,
}

/// Reads rows of CSV; the first line names the columns, in any order.
pub fn from_csv(bytes: &[u8]) -> Result<Vec<SheetRow>, Error> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes);
    let bad = |e: csv::Error| {
        Error::usage(format!("this is no CSV: {e}"))
            .hint("`tpu board export csv` shows what it looks like")
    };
    let head = reader.headers().map_err(bad)?.clone();
    let columns: Vec<String> =
        head.iter().map(|name| name.trim_start_matches('\u{feff}').trim().to_lowercase()).collect();
    known(columns.iter().map(String::as_str))?;
    let mut rows = Vec::new();
    for record in reader.byte_records() {
        let record = record.map_err(bad)?;
        let line = record.position().map_or(0, csv::Position::line);
        let cells = READ.map(|name| {
            let at = columns.iter().position(|column| column == name)?;
            let cell = String::from_utf8_lossy(record.get(at)?).into_owned();
            Some(text::sheet::read(&cell).to_owned())
        });
        rows.push(SheetRow { place: format!("line {line}"), cells });
    }
    Ok(rows)
}

/// Reads rows of JSON: a list of objects, or a document of `tpu board export json --json`.
pub fn from_json(bytes: &[u8]) -> Result<Vec<SheetRow>, Error> {
    let bad =
        |what: String| Error::usage(what).hint("`tpu board export json` shows what it looks like");
    let document: Value =
        serde_json::from_slice(bytes).map_err(|e| bad(format!("this is no JSON: {e}")))?;
    let rows = document.get("rows").unwrap_or(&document);
    let Some(rows) = rows.as_array() else {
        return Err(bad("this is no list of rows".to_owned()));
    };
    let names = rows.iter().filter_map(Value::as_object).flat_map(Map::keys);
    if !rows.is_empty() {
        known(names.map(String::as_str))?;
    }
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let rows = rows.iter().enumerate().map(|(i, row)| SheetRow {
        place: format!("row {}", i + 1),
        cells: READ.map(|name| row.get(name).map(text)),
    });
    Ok(rows.collect())
}

/// Without a column that names the target nothing can be taken.
fn known<'a>(columns: impl Iterator<Item = &'a str>) -> Result<(), Error> {
    let columns: Vec<&str> = columns.collect();
    if columns.iter().any(|name| ["target", "alias"].contains(name)) {
        return Ok(());
    }
    Err(Error::usage(format!("no column 'target' or 'alias' among: {}", columns.join(", ")))
        .hint("the first line names the columns; `tpu board export csv` shows them"))
}

/// Takes what people wrote. A row that cannot be understood, names a target twice, or speaks against a
/// live job or a reservation is not taken.
pub fn import(ctx: &Ctx, rows: &[SheetRow]) -> Result<Imported, Error> {
    let data = ctx.data()?;
    let users = snapshot::users_of_targets(ctx, &data, |_| true);
    ctx.transact(|tx| {
        let mut imported = Imported::default();
        for row in rows {
            let read = (|| {
                let (name, entry) = read(&tx.data, row)?;
                if imported.taken.contains(&name) {
                    return Err(format!("{name} stands here twice"));
                }
                let live = users.get(&name).map(|users| users.live.as_slice()).unwrap_or_default();
                against(&tx.data, &entry, &name, live.first(), tx.now)?;
                let entry = without_what_runs(&tx.data, entry, &name, live);
                Ok((name, entry))
            })();
            match read {
                Ok((name, entry)) => {
                    tx.data.board_mut().set(&name, entry);
                    imported.taken.push(name);
                }
                Err(why) => imported.refused.push((row.place.clone(), why)),
            }
        }
        Ok(imported)
    })
}

/// A row without what only repeats its live jobs, status, user and notes: written down it would outlast them.
fn without_what_runs(data: &Data, row: Entry, name: &TargetName, live: &[JobId]) -> Entry {
    let Some(job) = live.first() else { return row };
    let written = data.board().entry(name);
    let has_job_notes = board::notes_of(data, live).as_ref() == Some(&row.notes);
    let notes = if has_job_notes { written.notes } else { row.notes };
    let is_the_jobs =
        row.status == Some(Written::Running) && row.user.as_deref() == Some(job.user.as_str());
    if is_the_jobs {
        Entry { status: written.status, user: written.user, notes, ..row }
    } else {
        Entry { notes, ..row }
    }
}

/// What a row says, over what is written already.
fn read(data: &Data, row: &SheetRow) -> Result<(TargetName, Entry), String> {
    let typed = ["target", "alias"]
        .iter()
        .filter_map(|column| row.cell(column))
        .find(|cell| !cell.is_empty())
        .ok_or("it names no target")?;
    let target = data.resolve_target(typed).ok_or_else(|| {
        let names = data.registry().names();
        let aliases = data.registry().aliases().map(|(alias, _)| alias);
        let near = did_you_mean(typed, aliases.chain(names.iter().map(TargetName::as_str)));
        format!("no target '{typed}'{}", near.map(|near| format!("; {near}")).unwrap_or_default())
    })?;
    let mut entry = data.board().entry(&target.name);
    if let Some(word) = row.cell("status") {
        entry.status = match word {
            "" => None,
            word => Some(Written::parse(word).ok_or_else(|| {
                let known = Written::ALL.map(Written::as_str);
                format!("status '{word}' is none of {}", known.join(", "))
            })?),
        };
    }
    let user = row.cell("user").map(|user| Some(user).filter(|u| !u.is_empty() && *u != "闲的"));
    let until = row.cell("reserved_until").filter(|until| !until.is_empty());
    match (until, user) {
        (Some(until), Some(Some(user))) => {
            let until = Timestamp::parse_rfc3339(until).ok_or_else(|| {
                format!("reserved_until '{until}' is no instant such as 2026-11-20T14:02:11Z")
            })?;
            entry.reservation = Some(Reservation { user: UserName::from(user), until });
            entry.user = None;
        }
        (Some(_), _) => return Err("it is reserved, but its user is missing".to_owned()),
        (None, user) => {
            if row.cell("reserved_until").is_some() {
                entry.reservation = None;
            }
            if let Some(user) = user {
                entry.user = user.map(str::to_owned);
            }
        }
    }
    if let Some(notes) = row.cell("notes") {
        notes.clone_into(&mut entry.notes);
    }
    Ok((target.name, entry))
}

/// What stands against a row.
fn against(
    data: &Data,
    entry: &Entry,
    name: &TargetName,
    live: Option<&JobId>,
    now: Timestamp,
) -> Result<(), String> {
    let is_user = |user: &UserName| data.user(user).is_some();
    let kept = entry.reserved(now, is_user).map(|kept| kept.user.as_str().to_owned());
    let says = entry.user.clone().or(kept);
    let free = matches!(entry.status, Some(Written::Free | Written::Gone));
    if let Some(job) = live {
        if free || says.as_ref().is_some_and(|user| user != job.user.as_str()) {
            return Err(format!("{name} is in use by {job}"));
        }
        return Ok(());
    }
    let kept = data.board().entry(name);
    match kept.reserved(now, is_user) {
        Some(kept) if says.as_ref().is_some_and(|user| user != kept.user.as_str()) => {
            Err(format!("{name} is reserved by {}", kept.user))
        }
        _ => Ok(()),
    }
}

/// The standings in the order in which the original groups them, each with its heading.
pub const GROUPS: [(&str, &[Standing]); 6] = [
    ("Deleted/Preempted", &[Standing::Gone]),
    ("Creating", &[Standing::Creating]),
    ("Free", &[Standing::Free]),
    ("Reserved", &[Standing::Reserved, Standing::Error]),
    ("Running", &[Standing::Running]),
    ("Unknown", &[Standing::Unknown]),
];
