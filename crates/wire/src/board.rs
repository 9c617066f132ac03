//! The board: who has which target.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use tpu_core::model::ids::{TargetName, UserName};
use tpu_core::model::target::Pricing;
use tpu_core::plan::board::{Row, Standing};
use tpu_ops::act::board::sheet::{COLUMNS, Imported};

use super::document::{documents, part};
use super::jobs::JobIdPart;
use super::words::{TimePart, Word};

documents! {
    /// Targets on the board.
    pub struct BoardDocument<'a> from rows: &'a [Row] {
        /// Those that were asked for.
        targets: Vec<BoardRowPart<'a>> = part(rows),
        /// How many of them stand in which way.
        counts: BoardCountsPart = part(rows),
    }

    /// One target on the board.
    pub struct BoardRowPart<'a> from row: &'a Row {
        /// Full name.
        target: &'a TargetName,
        /// Shortest alias, else the full name.
        label: &'a str,
        /// Accelerator type.
        r#type: Option<&'a str> = part(&row.accelerator),
        /// Zone.
        zone: Option<&'a str>,
        /// How it is paid for.
        pricing: Word<Pricing>,
        /// How it stands.
        standing: Word<Standing>,
        /// Who has it.
        user: Option<&'a str>,
        /// Notes of people, else those of the job there.
        notes: &'a str,
        /// Tags of the jobs there.
        tags: &'a [String],
        /// Live jobs there.
        jobs: Vec<JobIdPart<'a>>,
        /// Until when it is kept.
        reserved_until: Option<TimePart> = part(&row.until),
        /// What people wrote that is not so.
        disagreement: Option<&'a str>,
    }

    /// How many targets stand in which way.
    pub struct BoardCountsPart from rows: &'a [Row] {
        /// Deleted or taken away.
        gone: usize = count(rows, &[Standing::Gone]),
        /// On their way.
        creating: usize = count(rows, &[Standing::Creating]),
        /// Nobody has them.
        free: usize = count(rows, &[Standing::Free]),
        /// Somebody keeps them.
        reserved: usize = count(rows, &[Standing::Reserved, Standing::Error]),
        /// Jobs are at work there.
        running: usize = count(rows, &[Standing::Running]),
        /// Nobody knows.
        unknown: usize = count(rows, &[Standing::Unknown]),
    }

    /// A target that is given back.
    pub struct ReleasedDocument<'a> {
        /// Full name.
        target: &'a TargetName,
        /// Whether anybody had it.
        was_taken: bool,
    }

    /// A target that is kept for somebody.
    pub struct ReservedDocument<'a> {
        /// Full name.
        target: &'a TargetName,
        /// For whom.
        user: &'a UserName,
        /// Until when.
        until: TimePart,
    }

    /// The notes of a target.
    pub struct NotesDocument<'a> {
        /// Full name.
        target: &'a TargetName,
        /// All of them, as they are now.
        notes: &'a str,
    }

    /// The board as a spreadsheet.
    pub struct SheetDocument<'a> from table: &'a [[String; 10]] {
        /// Row by row.
        rows: Vec<SheetRowPart<'a>> = table.iter().map(SheetRowPart).collect(),
    }

    /// What came of an import of a spreadsheet.
    pub struct SheetImportDocument<'a> from imported: &'a Imported {
        /// Targets whose rows were taken.
        taken: &'a [TargetName],
        /// Rows that were not.
        refused: Vec<RefusedRowPart<'a>>,
    }

    /// A row that was not taken.
    pub struct RefusedRowPart<'a> from (place, why): &'a (String, String) {
        /// Where it stands, as in line 7 or row 3.
        place: &'a str = place,
        /// Why it was not taken.
        why: &'a str = why,
    }
}

/// How many targets stand in one of these ways.
fn count(rows: &[Row], standings: &[Standing]) -> usize {
    rows.iter().filter(|row| standings.contains(&row.standing)).count()
}

/// The cells of a row, by the names of their columns.
pub struct SheetRowPart<'a>(pub &'a [String; 10]);

impl Serialize for SheetRowPart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_map(Some(COLUMNS.len()))?;
        for (column, cell) in COLUMNS.iter().zip(self.0) {
            row.serialize_entry(column, cell)?;
        }
        row.end()
    }
}

impl JsonSchema for SheetRowPart<'_> {
    fn schema_name() -> Cow<'static, str> {
        "SheetRowPart".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let cell = generator.subschema_for::<String>().to_value();
        let cells: serde_json::Map<String, serde_json::Value> =
            COLUMNS.iter().map(|column| ((*column).to_owned(), cell.clone())).collect();
        json_schema!({
            "type": "object", "description": "The cells of a row, by the names of their columns",
            "properties": cells, "required": COLUMNS,
        })
    }
}
