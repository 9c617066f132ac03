//! What a job wrote: `files`.

use tpu_core::model::ids::JobId;
use tpu_core::model::time::Timestamp;
use tpu_ops::act::results::{InTree, Results};

use super::document::{documents, part};
use super::jobs::JobIdPart;
use super::words::TimePart;

documents! {
    /// What a job wrote in the copy of its code.
    pub struct FilesDocument<'a> {
        /// Which one.
        job: JobIdPart<'a>,
        /// The directory in which it worked.
        dir: &'a str,
        /// What it made or changed there.
        files: Vec<FilePart>,
        /// What lies beside the code and is reached by links, by their paths.
        linked: Vec<String>,
    }

    /// A file.
    pub struct FilePart from file: &'a InTree {
        /// Its path in the directory.
        path: String = path(file),
        /// Its bytes.
        bytes: u64 = file.bytes,
        /// When it was last written.
        written: TimePart = part(&Timestamp::from_second(file.written.0)),
    }

    /// Files of a job that were copied.
    pub struct CopiedFilesDocument<'a> {
        /// Which one.
        job: JobIdPart<'a>,
        /// Where they are now.
        files: Vec<String>,
    }
}

impl<'a> FilesDocument<'a> {
    /// Of a job.
    pub fn of(id: &'a JobId, results: &'a Results) -> Self {
        Self {
            job: part(id),
            dir: &results.dir,
            files: results.files.iter().map(FilePart::from).collect(),
            linked: results.linked.iter().map(path).collect(),
        }
    }
}

fn path(file: &InTree) -> String {
    file.path.to_string_lossy().into_owned()
}
