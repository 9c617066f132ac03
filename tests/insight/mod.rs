//! Looking back: statistics and the archive.

mod archive;
mod choose;
mod made;
mod month;
mod stats;
