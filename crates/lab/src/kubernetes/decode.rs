//! Bodies as they come: JSON, YAML or protobuf, checked against the shapes, without what the shapes do not have.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value, json};

use super::quantity::Quantity;
use super::refused::Refused;
use super::resources::ApiResource;
use super::schema::{self, FieldShape, Shape};
use super::wire;

/// The media types of bodies.
const ACCEPTED: &str = "the body of the request was in an unknown format - accepted media types include: \
     application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The object of a body that creates or replaces one.
pub(super) fn object(
    resource: &ApiResource,
    content_type: &str,
    body: &[u8],
) -> Result<Value, Refused> {
    let given = plain(resource.kind, content_type, body)?;
    conforming(resource, &given)
}

/// A value as it would come back after decoding: unknown fields are gone, amounts are in their own form.
pub(super) fn conforming(resource: &ApiResource, given: &Value) -> Result<Value, Refused> {
    let version = resource.api_version();
    let said = |key: &str, or: &str| given[key].as_str().unwrap_or(or).to_owned();
    let (kind, of) = (said("kind", resource.kind), said("apiVersion", &version));
    if kind != resource.kind || of != version {
        let short = of.rsplit('/').next().unwrap_or_default();
        return Err(Refused::bad(&format!(
            "{kind} in version {short:?} cannot be handled as a {}: no kind {kind:?} is registered for version \
             {of:?} in scheme \"pkg/api/legacyscheme/scheme.go:30\"",
            resource.kind
        )));
    }
    let unfit = |why: String| {
        Refused::bad(&format!(
            "{} in version {:?} cannot be handled as a {}: {why}, error found in the body",
            resource.kind, resource.version, resource.kind
        ))
    };
    let fits = typed(resource.kind, given).map_err(unfit)?;
    let mut object = json!({"kind": resource.kind, "apiVersion": version});
    if let (Some(object), Value::Object(fits)) = (object.as_object_mut(), fits) {
        object.extend(fits);
    }
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    Ok(object)
}

/// What may stand in the body of a DELETE.
pub(super) fn delete_options(content_type: &str, body: &[u8]) -> Result<Value, Refused> {
    if body.is_empty() {
        return Ok(json!({}));
    }
    let given = plain("DeleteOptions", content_type, body)?;
    typed("DeleteOptions", &given).map_err(|why| {
        Refused::bad(&format!(
            "DeleteOptions in version \"v1\" cannot be handled as a DeleteOptions: {why}"
        ))
    })
}

/// A body as plain values.
pub(super) fn plain(kind: &str, content_type: &str, body: &[u8]) -> Result<Value, Refused> {
    let unreadable = |why: String| {
        let begin: String = String::from_utf8_lossy(body).chars().take(30).collect();
        let begin = if body.is_empty() { "<empty>".to_owned() } else { format!("{begin} ...") };
        Refused::bad(&format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse \
             error: {why} ({begin})"
        ))
    };
    match content_type.split(';').next().unwrap_or_default().trim() {
        "" | "application/json" => serde_json::from_slice(body).map_err(|e| {
            unreadable(if e.is_eof() {
                "unexpected end of JSON input".to_owned()
            } else {
                e.to_string()
            })
        }),
        "application/yaml" => yaml(body).map_err(unreadable),
        "application/vnd.kubernetes.protobuf" => wire::object(kind, body),
        _ => Err(Refused::new(415, "UnsupportedMediaType", ACCEPTED, None)),
    }
}

/// YAML as plain values.
pub(super) fn yaml(body: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(body).map_err(|e| e.to_string())?;
    serde_saphyr::from_str(text).map_err(|e| e.to_string())
}

/// A value of a type of the table. What is empty is left out, as the server does.
fn typed(of: &str, value: &Value) -> Result<Value, String> {
    let given = match value {
        Value::Object(given) => given,
        Value::Null => return Ok(Value::Null),
        other => return Err(expected("readObjectStart: expect { or n", other)),
    };
    let mut kept = Map::new();
    for field in schema::fields(of) {
        let Some(value) = given.get(field.name) else { continue };
        let fits = fitting(field, value)
            .map_err(|why| format!("v1.{of}.{}: {why}", go_name(field.name)))?;
        let is_empty = match &fits {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => {
                map.is_empty() && !matches!(field.shape, Shape::Of(_) | Shape::Any)
            }
            Value::Bool(_) | Value::Number(_) => false,
        };
        if !is_empty {
            kept.insert(field.name.to_owned(), fits);
        }
    }
    Ok(Value::Object(kept))
}

fn fitting(field: &FieldShape, value: &Value) -> Result<Value, String> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    if !field.is_list {
        return one(field.shape, value);
    }
    let Value::Array(list) = value else {
        return Err(expected("decode slice: expect [ or n", value));
    };
    let of = match field.shape {
        Shape::Of(of) => format!("v1.{of}"),
        Shape::Int => "int64".to_owned(),
        _ => "string".to_owned(),
    };
    let fits =
        list.iter().map(|value| one(field.shape, value).map_err(|why| format!("[]{of}: {why}")));
    fits.collect::<Result<Vec<Value>, String>>().map(Value::Array)
}

fn one(shape: Shape, value: &Value) -> Result<Value, String> {
    match shape {
        Shape::Any => Ok(value.clone()),
        Shape::Of(of) => typed(of, value),
        Shape::Text | Shape::Bytes => text(value),
        Shape::Int => match value {
            Value::Number(number) if number.is_i64() || number.is_u64() => Ok(value.clone()),
            Value::Number(number) => whole(number).ok_or_else(|| expected("readInt64", value)),
            _ => Err("readUint32: unexpected character: \u{fffd}".to_owned()),
        },
        Shape::Bool => match value {
            Value::Bool(_) => Ok(value.clone()),
            _ => Err(expected("ReadBool: expect t or f", value)),
        },
        Shape::Time => match value {
            Value::String(text) if text.parse::<jiff::Timestamp>().is_ok() => Ok(value.clone()),
            _ => Err(format!("parsing time {value}: no time as in 2006-01-02T15:04:05Z")),
        },
        Shape::Amount => amount(value),
        Shape::Texts => by_name(value, text),
        Shape::Blobs => by_name(value, |value| {
            let is_base64 = value.as_str().is_some_and(|text| STANDARD.decode(text).is_ok());
            if is_base64 {
                Ok(value.clone())
            } else {
                Err("illegal base64 data at input byte 0".to_owned())
            }
        }),
        Shape::Amounts => by_name(value, amount),
    }
}

fn text(value: &Value) -> Result<Value, String> {
    match value {
        Value::String(_) => Ok(value.clone()),
        _ => Err(expected("ReadString: expects \" or n", value)),
    }
}

/// `3.0` is a whole number too.
fn whole(number: &Number) -> Option<Value> {
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9e15)?;
    format!("{float:.0}").parse::<i64>().ok().map(Value::from)
}

fn amount(value: &Value) -> Result<Value, String> {
    let written = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        other => return Err(expected("unmarshalerDecoder: expect \" or a number", other)),
    };
    let quantity = Quantity::parse(&written).ok_or_else(|| {
        "unmarshalerDecoder: quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            .to_owned()
    })?;
    Ok(Value::from(quantity.canonical()))
}

fn by_name(value: &Value, of: impl Fn(&Value) -> Result<Value, String>) -> Result<Value, String> {
    let Value::Object(given) = value else {
        return Err(expected("ReadMapCB: expect { or n", value));
    };
    // Sorted, as a map of the server's language is written.
    let mut names: Vec<&String> = given.keys().collect();
    names.sort_unstable();
    let each = names.into_iter().map(|name| {
        let value = given.get(name).unwrap_or(&Value::Null);
        let value = if value.is_null() { Value::from("") } else { of(value)? };
        Ok((name.clone(), value))
    });
    each.collect::<Result<Map<String, Value>, String>>().map(Value::Object)
}

/// `backoffLimit` as the server's language has it.
fn go_name(name: &str) -> String {
    if name == "metadata" {
        return "ObjectMeta".to_owned();
    }
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn expected(what: &str, found: &Value) -> String {
    let found = found.to_string().chars().next().unwrap_or('\u{fffd}');
    format!("{what}, but found {found}")
}
