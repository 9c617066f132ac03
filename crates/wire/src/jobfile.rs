//! What is about job files: those of other tools as ours (`convert`), their format
//! (`schema`), and what they name (`secrets`).

use tpu_jobfile::converted::ConversionNote;

use super::document::{documents, part};

documents! {
    /// A job file of another tool as one of ours.
    pub struct ConvertedDocument<'a> from (file, notes): (&'a str, &'a [ConversionNote]) {
        /// The text of the file.
        file: &'a str = file,
        /// What is not as it was.
        notes: Vec<ConvertedNotePart<'a>> = part(notes),
    }

    /// What is not as it was in the file of the other tool.
    pub struct ConvertedNotePart<'a> from note: &'a ConversionNote {
        /// Line of that file, from 1.
        line: u64 = note.place.0,
        /// Column, from 1.
        column: u64 = note.place.1,
        /// Its field, as in `job.loop`.
        field: &'a str,
        /// What becomes of it.
        becomes: &'a str = &note.what,
    }

    /// What a job was started with, as a body that starts it again.
    pub struct StartedWithDocument<'a> {
        /// A job file, as `POST /api/v1/jobs` takes it, without a name: that is the job's own. Where it has no tag, its name is
        /// that.
        job_file: serde_json::Value,
        /// What was said when it was started that no file can say, for people.
        left_out: &'a [String],
    }

    /// Secrets, by their names.
    pub struct SecretsDocument<'a> {
        /// Those that are kept, in order.
        names: &'a [String],
    }

    /// A secret that was kept or forgotten.
    pub struct SecretDocument<'a> {
        /// Its name.
        name: &'a str,
        /// Whether it is kept now.
        is_kept: bool,
    }

    /// A format, for editors.
    pub struct FormatSchemaDocument {
        /// A JSON Schema.
        format: serde_json::Value,
    }
}
