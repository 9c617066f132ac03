//! What is about job files: those of other tools as ours (`convert`), their format
//! (`schema`), and what they name (`secrets`).

use schemars::JsonSchema;
use serde::Serialize;

use tpu_jobfile::converted::ConversionNote;

/// A job file of another tool as one of ours.
#[derive(Serialize, JsonSchema)]
pub struct ConvertedDocument<'a> {
    /// The text of the file.
    pub file: &'a str,
    /// What is not as it was.
    pub notes: Vec<ConvertedNotePart<'a>>,
}

/// What is not as it was in the file of the other tool.
#[derive(Serialize, JsonSchema)]
pub struct ConvertedNotePart<'a> {
    /// Line of that file, from 1.
    pub line: u64,
    /// Column, from 1.
    pub column: u64,
    /// Its field, as in `job.loop`.
    pub field: &'a str,
    /// What becomes of it.
    pub becomes: &'a str,
}

impl<'a> ConvertedDocument<'a> {
    /// A file, with what is to be said of it.
    pub fn new(file: &'a str, notes: &'a [ConversionNote]) -> Self {
        let part = |note: &'a ConversionNote| ConvertedNotePart {
            line: note.place.0,
            column: note.place.1,
            field: &note.field,
            becomes: &note.what,
        };
        Self { file, notes: notes.iter().map(part).collect() }
    }
}

/// What a job was started with, as a body that starts it again.
#[derive(Serialize, JsonSchema)]
pub struct StartedWithDocument<'a> {
    /// A job file, as `POST /api/v1/jobs` takes it, without a name: that is the job's own. Where it has no tag, its name is
    /// that.
    pub job_file: serde_json::Value,
    /// What was said when it was started that no file can say, for people.
    pub left_out: &'a [String],
}

/// Secrets, by their names.
#[derive(Serialize, JsonSchema)]
pub struct SecretsDocument<'a> {
    /// Those that are kept, in order.
    pub names: &'a [String],
}

/// A secret that was kept or forgotten.
#[derive(Serialize, JsonSchema)]
pub struct SecretDocument<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it is kept now.
    pub is_kept: bool,
}

/// A format, for editors.
#[derive(Serialize, JsonSchema)]
pub struct FormatSchemaDocument {
    /// A JSON Schema.
    pub format: serde_json::Value,
}
