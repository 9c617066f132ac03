//! The contract of a store of objects: what of Cloud Storage the program uses, and no more.
//!
//! Each call is one request, and each may be made again as it was. How long something is tried is the caller's to say:
//! a copy goes on where it was, whatever broke off.

use super::ProviderError;
use tpu_core::model::objects::{ObjectAt, ObjectFact};

/// The door to objects.
pub trait ObjectStore: Send + Sync {
    /// The names of all buckets of the project.
    fn buckets(&self) -> Result<Vec<String>, ProviderError>;

    /// One page of a list.
    fn list_objects(&self, query: &ObjectQuery<'_>) -> Result<ObjectPage, ProviderError>;

    /// What is known of an object. That it is not there is [`super::Trouble::NotFound`].
    fn object(&self, at: &ObjectAt) -> Result<ObjectFact, ProviderError>;

    /// Some bytes of one version of an object: what came, and what broke it off if it did.
    fn read_object(
        &self,
        of: &ObjectFact,
        from: u64,
        most: u64,
    ) -> Result<ObjectPart, ProviderError>;

    /// Begins an upload; returns where it goes on, also for another process, for a week.
    fn begin_upload(&self, at: &ObjectAt, crc32c: u32) -> Result<String, ProviderError>;

    /// Sends the next bytes of an upload, which is named by its session and how long it will be. All but the last part are as long as a multiple of [`UPLOAD_UNIT`].
    fn upload(
        &self,
        session: (&str, u64),
        from: u64,
        bytes: &[u8],
    ) -> Result<UploadState, ProviderError>;

    /// How far an upload is. One that nobody remembers is [`super::Trouble::NotFound`].
    fn upload_state(&self, session: &str, total: u64) -> Result<UploadState, ProviderError>;

    /// Copies a version of an object from within the store, as far as one call goes; with the token of the last call.
    fn rewrite(
        &self,
        from: &ObjectFact,
        to: &ObjectAt,
        token: Option<&str>,
    ) -> Result<RewriteState, ProviderError>;

    /// Takes an object away, this version if one is named; one that is not there is done.
    fn delete_object(&self, at: &ObjectAt, generation: Option<u64>) -> Result<(), ProviderError>;
}

/// Parts of uploads are multiples of this (Cloud Storage documentation, resumable uploads).
pub const UPLOAD_UNIT: u64 = 256 << 10;

/// What is to be listed.
#[derive(Clone, Debug, Default)]
pub struct ObjectQuery<'a> {
    /// The bucket.
    pub bucket: &'a str,
    /// With what the names begin.
    pub prefix: &'a str,
    /// Whether names stop at the next slash, so that a directory is one entry.
    pub by_directory: bool,
    /// From where the last page ended.
    pub page: Option<String>,
}

/// A page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectPage {
    /// The objects, in the order of their names.
    pub objects: Vec<ObjectFact>,
    /// Whole names of directories, with their slash at the end.
    pub directories: Vec<String>,
    /// Where the next page begins, if there is one.
    pub next: Option<String>,
}

/// Some bytes of an object.
#[derive(Debug, Default)]
pub struct ObjectPart {
    /// Those that came.
    pub bytes: Vec<u8>,
    /// Why no more did.
    pub cut: Option<ProviderError>,
}

/// How far an upload is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UploadState {
    /// So many bytes have arrived.
    Took(u64),
    /// It is whole.
    Done(ObjectFact),
}

/// How far a copy within the store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RewriteState {
    /// So many bytes are copied; it goes on with this token.
    Going {
        /// Bytes so far.
        written: u64,
        /// What the next call is to say.
        token: String,
    },
    /// It is whole.
    Done(ObjectFact),
}
