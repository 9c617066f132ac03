//! The JSON Schema of every document, derived from the types.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use tpu_wire::VERSION;
use tpu_wire::classified::LinePart;
use tpu_wire::schema::{Book, Document, described};

/// The documents as they are added, and which command prints which.
struct Schemata {
    generator: SchemaGenerator,
    documents: Map<String, Value>,
    commands: Map<String, Value>,
}

impl Book for Schemata {
    fn add<D: Document>(&mut self, commands: &[&str]) {
        let name = D::schema_name().into_owned();
        let mut schema = D::json_schema(&mut self.generator);
        // What is not called for but is printed all the same stands around the members of each.
        let said = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let mut members = Map::new();
        members.insert("schema".to_owned(), json!({ "const": VERSION }));
        members.extend(said);
        if !commands.contains(&"error") && !members.contains_key("dry_run") {
            let meaning = json!({ "const": true, "description": "Nothing was changed" });
            members.insert("dry_run".to_owned(), meaning);
        }
        let mut required = vec![json!("schema")];
        required
            .extend(schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default());
        schema.insert("properties".to_owned(), Value::Object(members));
        schema.insert("required".to_owned(), Value::Array(required));
        let reference = json!({ "$ref": format!("#/$defs/{name}") });
        self.documents.insert(name, schema.to_value());
        for command in commands {
            let all = self.commands.entry(*command).or_insert_with(|| json!([]));
            all.as_array_mut().into_iter().for_each(|all| all.push(reference.clone()));
        }
    }
}

/// The schema of everything that `--json` prints: `#/$defs/COMMAND` is what a command prints.
pub(super) fn schema() -> Value {
    let mut book = Schemata {
        generator: SchemaSettings::draft2020_12().for_serialize().into_generator(),
        documents: Map::new(),
        commands: Map::new(),
    };
    described(&mut book);
    let _line = book.generator.subschema_for::<LinePart<'_>>();
    let one_of = |(name, all): (String, Value)| match all.as_array().map(Vec::as_slice) {
        Some([one]) => (name, one.clone()),
        _ => (name, json!({ "anyOf": all })),
    };
    let mut parts = book.generator.take_definitions(false);
    parts.sort_keys();
    let commands: Map<String, Value> = book.commands.into_iter().map(one_of).collect();
    let any: Vec<Value> =
        commands.keys().map(|name| json!({ "$ref": format!("#/$defs/{name}") })).collect();
    let mut definitions = commands;
    definitions.extend(book.documents);
    definitions.extend(parts);
    let mut whole = Schema::try_from(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tpu --json",
        "description": "What each command prints with --json: one document on stdout, and nothing else. \
            `#/$defs/COMMAND` is the document of a command (`data-set` is `tpu data set`), `#/$defs/error` what \
            stands on stderr when it fails. Within schema 1 members may be added, and none is taken away.",
        "anyOf": any,
        "$defs": definitions,
    }))
    .unwrap_or_default();
    RecursiveTransform(without_widths).transform(&mut whole);
    whole.to_value()
}

/// How wide a number is in our memory is nobody's business.
fn without_widths(schema: &mut Schema) {
    if schema.get("format").and_then(Value::as_str).is_some_and(|format| format != "date-time") {
        schema.remove("format");
    }
}
