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
        /// Whether others of its group work there: what they wrote is among the files.
        shared: bool,
        /// How many files there are; there may be more than are listed.
        count: usize,
        /// Where its run at Weights & Biases is seen; null where it has printed none, or several.
        run_link: Option<&'a str>,
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
    /// Of a job and its run, with so many files at most.
    pub fn of(
        id: &'a JobId,
        (results, run_link): (&'a Results, Option<&'a str>),
        most: usize,
    ) -> Self {
        Self {
            job: part(id),
            dir: &results.dir,
            files: results.files.iter().take(most).map(FilePart::from).collect(),
            linked: results.linked.iter().map(path).collect(),
            shared: results.is_shared,
            count: results.files.len(),
            run_link,
        }
    }
}

fn path(file: &InTree) -> String {
    file.path.to_string_lossy().into_owned()
}
