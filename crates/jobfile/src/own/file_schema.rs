//! The format as a JSON Schema (draft 2020-12), for editors that look at a file as it is typed. What the reader takes, the
//! schema takes; what no schema can say (that a name stands in the file, that no two jobs have one) the reader alone says.

use serde_json::{Map, Value, json};

use tpu_core::model::capacity::Ask;

use super::KindWords;
use super::keys::{KEYS, KeyState};
use super::repeat::NEVER;
use super::schema::{MOST, choice, directory, object, seconds, whole};

/// The schema of a file. Documents that are parted by `---` are each of it.
pub fn schema(kinds: &[KindWords]) -> Value {
    // What a job leaves out of a map, `defaults:` may have said.
    let nameless =
        json!({ "allOf": [{ "$ref": "#/$defs/parts" }, { "not": { "required": ["name"] } }] });
    let several = json!({
        "type": "object",
        "properties": {
            "jobs": {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": { "anyOf": [nameless.clone(), { "type": "null" }] },
            },
            "defaults": nameless,
        },
        "required": ["jobs"],
        "additionalProperties": false,
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A job of tpu, or several",
        "anyOf": [{ "$ref": "#/$defs/job" }, several],
        "$defs": {
            "members": members(kinds),
            "parts": loosened(members(kinds)),
            "job": { "allOf": [{ "$ref": "#/$defs/members" }, together()] },
        },
    })
}

/// The keys of a job, each by itself: what `defaults:` may say as well.
fn members(kinds: &[KindWords]) -> Value {
    let mut properties = Map::new();
    for key in KEYS.iter().filter(|key| key.state == KeyState::Built) {
        let mut of = key.form.schema(kinds);
        if let Value::Object(of) = &mut of {
            of.insert("description".to_owned(), json!(key.meaning));
        }
        properties.insert(key.name.to_owned(), of);
    }
    json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "minProperties": 1,
    })
}

/// The same where nothing has to be there.
fn loosened(schema: Value) -> Value {
    match schema {
        Value::Object(members) => {
            let is_demand = |key: &str, of: &Value| key == "required" && of.is_array();
            let rest = members.into_iter().filter(|(key, of)| !is_demand(key, of));
            Value::Object(rest.map(|(key, of)| (key, loosened(of))).collect())
        }
        Value::Array(all) => Value::Array(all.into_iter().map(loosened).collect()),
        other => other,
    }
}

/// What keys make of one another.
fn together() -> Value {
    let needs = |key: &str, other: &str| json!({ "anyOf": [{ "not": { "required": [key] } }, { "required": [other] }] });
    let of_command = |key: &str| {
        json!({ "anyOf": [
            { "not": { "required": [key] } },
            { "required": ["command"] },
            { "required": ["script"] },
        ]})
    };
    let apart = |key: &str, other: &str| json!({ "not": { "required": [key, other] } });
    let where_is = |key: &str, of: Value, then: Value| {
        let known = json!({ "properties": { key: of }, "required": [key] });
        json!({ "if": known, "then": then })
    };
    let none = choice(&["none"]);
    let never = choice(&[NEVER]);
    let never = json!({ "anyOf": [never, object(&[("when", never.clone()), ("pause", seconds())], &["when"])] });
    let dir_of = |of: &Value| json!({ "required": ["dir"], "properties": { "dir": of } });
    let has_order = json!({ "type": "object", "required": ["accelerator"] });
    let none_of = |keys: &[&str]| {
        let all: Vec<Value> = keys.iter().map(|key| json!({ "required": [key] })).collect();
        json!({ "not": { "anyOf": all } })
    };
    let asked_once = |key: &str| {
        where_is("target", json!({ "type": "object", "required": [key] }), none_of(&[key]))
    };
    json!({ "allOf": [
        { "required": ["target"] },
        apart("command", "script"),
        where_is("code", none.clone(), dir_of(&directory())),
        where_is("dir", directory(), json!({ "properties": { "code": none } })),
        where_is("dir", whole(0, MOST), none_of(&["code"])),
        needs("shell", "command"),
        of_command("stdin"),
        of_command("output"),
        { "anyOf": [
            { "not": { "required": ["repeat"] } },
            { "properties": { "repeat": never }, "required": ["repeat"] },
            { "required": ["command"] },
            { "required": ["script"] },
        ]},
        needs("zip", "array"),
        needs("max_parallel", "array"),
        where_is("command", json!({ "type": "array" }), none_of(&["shell"])),
        where_is("command", json!({ "not": { "type": "array" } }), none_of(&["configs"])),
        where_is("array", json!({ "not": { "type": "object" } }), none_of(&["zip"])),
        where_is(
            "array",
            json!({ "type": "string", "pattern": "%" }),
            none_of(&["max_parallel"]),
        ),
        where_is("target", has_order.clone(), none_of(&["array"])),
        where_is("target", json!({ "not": has_order }), none_of(&["tpu", "user"])),
        { "allOf": Ask::KEYS.map(asked_once) },
    ]})
}
