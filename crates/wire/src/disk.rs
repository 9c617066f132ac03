//! What lies on the disk of this machine: `disk`.

use std::path::PathBuf;

use tpu_ops::front::disk_use::{DiskRow, DiskUse, FilePurpose};

use super::document::documents;
use super::words::Word;

documents! {
    /// What the files of tpu take on the disk of this machine.
    pub struct DiskDocument<'a> from used: &'a DiskUse {
        /// By what they are.
        rows: Vec<DiskRowPart>,
        /// All bytes, each once: results lie in copies.
        total: u64 = used.total(),
        /// How long code is kept after its job was moved into the archive.
        keep_code: &'a str,
        /// Directories that could not be read, and are not counted.
        unread: Vec<String> = shown(&used.unread),
    }

    /// Files of one kind.
    pub struct DiskRowPart from row: &'a DiskRow {
        /// What they are.
        what: Word<FilePurpose> = Word(row.purpose),
        /// Their bytes.
        bytes: u64,
        /// Where they lie.
        places: Vec<String> = shown(&row.places),
    }
}

fn shown(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
}
