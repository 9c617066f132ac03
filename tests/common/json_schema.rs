//! JSON Schema: whether a document is what its schema says.

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

/// Where the schema would be, for references inside it. Nobody asks there.
const HERE: &str = "http://localhost/schema.json";

/// A schema that documents are held against.
pub(crate) struct Validator {
    schemas: Schemas,
    root: SchemaIndex,
}

impl Validator {
    /// Fails the test where the schema is none.
    #[track_caller]
    pub(crate) fn of(schema: &Value) -> Self {
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        compiler.add_resource(HERE, schema.clone()).unwrap();
        let root = compiler.compile(HERE, &mut schemas).unwrap_or_else(|e| panic!("{e:#}"));
        Self { schemas, root }
    }

    /// Whether a document is what the schema says.
    pub(crate) fn is_valid(&self, document: &Value) -> bool {
        self.schemas.validate(document, self.root).is_ok()
    }

    /// What is wrong with a document: one line for each place.
    pub(crate) fn complaints(&self, document: &Value) -> Vec<String> {
        let Err(error) = self.schemas.validate(document, self.root) else { return Vec::new() };
        // The first line says only that something is wrong.
        error.to_string().lines().skip(1).map(|line| line.trim().to_owned()).collect()
    }
}
