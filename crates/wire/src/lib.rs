//! The documents that leave the program: what `--json` prints, each a plain type that is written once. The
//! JSON Schema of all of them is derived from the types by the table in [`schema`] and kept as `docs/schema.json`.
//!
//! A type named `…Document` is all that a command prints; a `…Part` stands in one. A doc comment is what the
//! schema says of a member. The macro of [`document`] declares them, each with what it is made of. Within version 1
//! members may be added, and none is taken away.

pub mod archive;
pub mod board;
pub mod checkpoints;
pub mod classified;
pub mod cleaned;
pub mod cloudmesh;
pub mod curves;
pub mod daemon;
pub mod data;
pub mod disk;
pub mod doctor;
mod document;
pub mod errors;
pub mod events;
pub mod figures;
pub mod files;
pub mod hosts;
pub mod jobfile;
pub mod jobman;
pub mod jobs;
pub mod launches;
pub mod leaving;
pub mod money;
pub mod notices;
pub mod pages;
pub mod problem;
pub mod queue;
pub mod schema;
pub mod settings;
pub mod stats;
pub mod sweep;
pub mod targets;
pub mod tokens;
pub mod users;
pub mod words;
pub mod workers;

use serde::Serialize;
use serde_json::{Map, Value};

use schema::Document;

/// The version that stands in every document.
pub const VERSION: u32 = 1;

/// A document with its version before its members.
#[derive(Serialize)]
struct Versioned<'a, D> {
    schema: u32,
    #[serde(flatten)]
    document: &'a D,
}

/// A document as text, for what has a thousand parts: written as it is walked through, without a tree of
/// values in between.
pub fn text(document: &impl Document) -> String {
    serde_json::to_string(&Versioned { schema: VERSION, document }).unwrap_or_default()
}

/// The members of a document, its version first.
pub fn members(document: &impl Document) -> Map<String, Value> {
    match serde_json::to_value(Versioned { schema: VERSION, document }) {
        Ok(Value::Object(members)) => members,
        // A document is a struct whose keys are text: it has members, and they can be written.
        Ok(_) | Err(_) => Map::new(),
    }
}
