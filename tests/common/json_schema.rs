//! JSON Schema: whether a document is what its schema says.

use std::collections::BTreeMap;

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
        complaints(&self.schemas, self.root, document)
    }
}

/// The definitions of one schema, each of which documents are held against. They share what they have in common.
pub(crate) struct Definitions {
    compiler: Compiler,
    schemas: Schemas,
    ready: BTreeMap<String, SchemaIndex>,
}

impl Definitions {
    /// Those of a schema.
    pub(crate) fn of(schema: &Value) -> Self {
        let mut compiler = Compiler::new();
        compiler.add_resource(HERE, schema.clone()).unwrap();
        Self { compiler, schemas: Schemas::new(), ready: BTreeMap::new() }
    }

    /// What is wrong with a document: one line for each place.
    #[track_caller]
    pub(crate) fn complaints(&mut self, name: &str, document: &Value) -> Vec<String> {
        let Self { compiler, schemas, ready } = self;
        let root = *ready.entry(name.to_owned()).or_insert_with(|| {
            let place = format!("{HERE}#/$defs/{name}");
            compiler.compile(&place, schemas).unwrap_or_else(|e| panic!("{name}: {e:#}"))
        });
        complaints(schemas, root, document)
    }
}

fn complaints(schemas: &Schemas, root: SchemaIndex, document: &Value) -> Vec<String> {
    let Err(error) = schemas.validate(document, root) else { return Vec::new() };
    // The first line says only that something is wrong.
    error.to_string().lines().skip(1).map(|line| line.trim().to_owned()).collect()
}
