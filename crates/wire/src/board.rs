//! The board: who has which target.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use tpu_core::model::ids::{TargetName, UserName};
use tpu_core::model::target::Pricing;
use tpu_core::plan::board::{Row, Standing};
use tpu_ops::act::board::sheet::{COLUMNS, Imported};

use super::jobs::JobIdPart;
use super::words::{TimePart, Word};

/// Targets on the board.
#[derive(Serialize, JsonSchema)]
pub struct BoardDocument<'a> {
    /// Those that were asked for.
    pub targets: Vec<BoardRowPart<'a>>,
    /// How many of them stand in which way.
    pub counts: BoardCountsPart,
}

impl<'a> From<&'a [Row]> for BoardDocument<'a> {
    fn from(rows: &'a [Row]) -> Self {
        let count = |of: &[Standing]| rows.iter().filter(|row| of.contains(&row.standing)).count();
        Self {
            targets: rows.iter().map(BoardRowPart::from).collect(),
            counts: BoardCountsPart {
                gone: count(&[Standing::Gone]),
                creating: count(&[Standing::Creating]),
                free: count(&[Standing::Free]),
                reserved: count(&[Standing::Reserved, Standing::Error]),
                running: count(&[Standing::Running]),
                unknown: count(&[Standing::Unknown]),
            },
        }
    }
}

/// One target on the board.
#[derive(Serialize, JsonSchema)]
pub struct BoardRowPart<'a> {
    /// Full name.
    pub target: &'a TargetName,
    /// Shortest alias, else the full name.
    pub label: &'a str,
    /// Accelerator type.
    pub r#type: Option<&'a str>,
    /// Zone.
    pub zone: Option<&'a str>,
    /// How it is paid for.
    pub pricing: Word<Pricing>,
    /// How it stands.
    pub standing: Word<Standing>,
    /// Who has it.
    pub user: Option<&'a str>,
    /// Notes of people, else those of the job there.
    pub notes: &'a str,
    /// Tags of the jobs there.
    pub tags: &'a [String],
    /// Live jobs there.
    pub jobs: Vec<JobIdPart<'a>>,
    /// Until when it is kept.
    pub reserved_until: Option<TimePart>,
    /// What people wrote that is not so.
    pub disagreement: Option<&'a str>,
}

impl<'a> From<&'a Row> for BoardRowPart<'a> {
    fn from(row: &'a Row) -> Self {
        Self {
            target: &row.target,
            label: &row.label,
            r#type: row.accelerator.as_deref(),
            zone: row.zone.as_deref(),
            pricing: Word(row.pricing),
            standing: Word(row.standing),
            user: row.user.as_deref(),
            notes: &row.notes,
            tags: &row.tags,
            jobs: row.jobs.iter().map(JobIdPart::from).collect(),
            reserved_until: row.until.map(TimePart),
            disagreement: row.disagreement.as_deref(),
        }
    }
}

/// How many targets stand in which way.
#[derive(Serialize, JsonSchema)]
pub struct BoardCountsPart {
    /// Deleted or taken away.
    pub gone: usize,
    /// On their way.
    pub creating: usize,
    /// Nobody has them.
    pub free: usize,
    /// Somebody keeps them.
    pub reserved: usize,
    /// Jobs are at work there.
    pub running: usize,
    /// Nobody knows.
    pub unknown: usize,
}

/// A target that is given back.
#[derive(Serialize, JsonSchema)]
pub struct ReleasedDocument<'a> {
    /// Full name.
    pub target: &'a TargetName,
    /// Whether anybody had it.
    pub was_taken: bool,
}

/// A target that is kept for somebody.
#[derive(Serialize, JsonSchema)]
pub struct ReservedDocument<'a> {
    /// Full name.
    pub target: &'a TargetName,
    /// For whom.
    pub user: &'a UserName,
    /// Until when.
    pub until: TimePart,
}

/// The notes of a target.
#[derive(Serialize, JsonSchema)]
pub struct NotesDocument<'a> {
    /// Full name.
    pub target: &'a TargetName,
    /// All of them, as they are now.
    pub notes: &'a str,
}

/// The board as a spreadsheet.
#[derive(Serialize, JsonSchema)]
pub struct SheetDocument<'a> {
    /// Row by row.
    pub rows: Vec<SheetRowPart<'a>>,
}

impl<'a> From<&'a [[String; 10]]> for SheetDocument<'a> {
    fn from(table: &'a [[String; 10]]) -> Self {
        Self { rows: table.iter().map(SheetRowPart).collect() }
    }
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

/// What came of an import of a spreadsheet.
#[derive(Serialize, JsonSchema)]
pub struct SheetImportDocument<'a> {
    /// Targets whose rows were taken.
    pub taken: &'a [TargetName],
    /// Rows that were not.
    pub refused: Vec<RefusedRowPart<'a>>,
}

impl<'a> From<&'a Imported> for SheetImportDocument<'a> {
    fn from(imported: &'a Imported) -> Self {
        let refused = imported.refused.iter().map(|(place, why)| RefusedRowPart { place, why });
        Self { taken: &imported.taken, refused: refused.collect() }
    }
}

/// A row that was not taken.
#[derive(Serialize, JsonSchema)]
pub struct RefusedRowPart<'a> {
    /// Where it stands, as in line 7 or row 3.
    pub place: &'a str,
    /// Why it was not taken.
    pub why: &'a str,
}
