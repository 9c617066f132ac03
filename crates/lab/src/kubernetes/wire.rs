//! Protobuf, as far as `kubectl` needs it: since 1.32 its `create job` and `auth can-i` send nothing else, and every
//! one asks for the `OpenAPI` document so. Read and written by the numbers of the shapes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::refused::Refused;
use super::schema::{self, FieldShape, Shape};

/// What stands before every object.
const MAGIC: &[u8] = b"k8s\0";

/// One field as it stands in a message.
enum Piece<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// An object of a kind: magic bytes, then a wrapper that says the kind and holds the object.
pub(super) fn object(kind: &str, body: &[u8]) -> Result<Value, Refused> {
    let unreadable = |why: &str| {
        let text = format!(
            "the object provided is unrecognized (must be of type {kind}): {why} in protobuf; \
             application/json has every field"
        );
        Refused::bad(&text)
    };
    let wrapped = body.strip_prefix(MAGIC).ok_or_else(|| unreadable("no k8s header"))?;
    let mut found = Map::new();
    let mut raw: &[u8] = &[];
    for (number, piece) in pieces(wrapped).ok_or_else(|| unreadable("a broken wrapper"))? {
        let Piece::Bytes(bytes) = piece else { continue };
        match number {
            1 => {
                for (number, piece) in pieces(bytes).ok_or_else(|| unreadable("a broken type"))? {
                    let (Piece::Bytes(text), Ok(name)) =
                        (piece, usize::try_from(number).map(|n| ["", "apiVersion", "kind"].get(n)))
                    else {
                        continue;
                    };
                    if let Some(name) = name {
                        let text = String::from_utf8_lossy(text);
                        found.insert((*name).to_owned(), json!(text));
                    }
                }
            }
            2 => raw = bytes,
            _ => {}
        }
    }
    let message = message(kind, raw).map_err(|why| unreadable(&why))?;
    if let Value::Object(message) = message {
        found.extend(message);
    }
    Ok(Value::Object(found))
}

fn message(of: &str, bytes: &[u8]) -> Result<Value, String> {
    let mut found = Map::new();
    for (number, piece) in pieces(bytes).ok_or_else(|| format!("{of} is broken"))? {
        let field = schema::fields(of).iter().find(|field| field.number == number && number > 0);
        let field = field.ok_or_else(|| format!("field {number} of {of} is not read"))?;
        // What an object says of its own status is never taken from a client.
        if field.name == "status" {
            continue;
        }
        let value =
            value(field, piece).ok_or_else(|| format!("{of}.{} is broken", field.name))??;
        let place = found.entry(field.name).or_insert(Value::Null);
        match (field.is_list, field.shape, place) {
            (true, _, Value::Array(list)) => list.push(value),
            (true, _, place) => *place = json!([value]),
            (false, Shape::Texts | Shape::Amounts | Shape::Blobs, Value::Object(map)) => {
                if let Value::Object(more) = value {
                    map.extend(more);
                }
            }
            (false, _, place) => *place = value,
        }
    }
    Ok(Value::Object(found))
}

/// `None` for what is not of its shape; a sentence for a message within that cannot be read.
fn value(field: &FieldShape, piece: Piece<'_>) -> Option<Result<Value, String>> {
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(Value::from);
    Some(Ok(match (field.shape, piece) {
        (Shape::Bool, Piece::Number(number)) => json!(number != 0),
        (Shape::Int, Piece::Number(number)) => json!(number.cast_signed()),
        (Shape::Text, Piece::Bytes(bytes)) => text(bytes)?,
        (Shape::Bytes, Piece::Bytes(bytes)) => json!(STANDARD.encode(bytes)),
        (Shape::Amount, Piece::Bytes(bytes)) => inner(bytes, 1).map_or(Some(json!("0")), text)?,
        (Shape::Time, Piece::Bytes(bytes)) => {
            let seconds = pieces(bytes)?.into_iter().find_map(|(number, piece)| match piece {
                Piece::Number(seconds) if number == 1 => Some(seconds.cast_signed()),
                _ => None,
            });
            // No seconds at all are the moment that is none.
            match seconds {
                None => Value::Null,
                Some(seconds) => json!(jiff::Timestamp::from_second(seconds).ok()?.to_string()),
            }
        }
        (Shape::Texts | Shape::Amounts | Shape::Blobs, Piece::Bytes(bytes)) => {
            let name = inner(bytes, 1).unwrap_or_default();
            let name = std::str::from_utf8(name).ok()?.to_owned();
            let value = inner(bytes, 2).unwrap_or_default();
            let value = match field.shape {
                Shape::Blobs => json!(STANDARD.encode(value)),
                Shape::Amounts => text(inner(value, 1).unwrap_or_default())?,
                _ => text(value)?,
            };
            json!({ name: value })
        }
        (Shape::Of(of), Piece::Bytes(bytes)) => return Some(message(of, bytes)),
        _ => return None,
    }))
}

/// The bytes of one field of a message.
fn inner(bytes: &[u8], wanted: u64) -> Option<&[u8]> {
    pieces(bytes)?.into_iter().find_map(|(number, piece)| match piece {
        Piece::Bytes(bytes) if number == wanted => Some(bytes),
        _ => None,
    })
}

/// A message taken apart. `None` for bytes that are none.
fn pieces(mut bytes: &[u8]) -> Option<Vec<(u64, Piece<'_>)>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (key, rest) = varint(bytes)?;
        bytes = rest;
        let piece = match key & 7 {
            0 => {
                let (number, rest) = varint(bytes)?;
                bytes = rest;
                Piece::Number(number)
            }
            2 => {
                let (length, rest) = varint(bytes)?;
                let (piece, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
                bytes = rest;
                Piece::Bytes(piece)
            }
            _ => return None,
        };
        all.push((key >> 3, piece));
    }
    Some(all)
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number: u64 = 0;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        number |= u64::from(byte & 127).checked_shl(u32::try_from(at * 7).ok()?)?;
        if byte & 128 == 0 {
            return Some((number, bytes.get(at + 1..)?));
        }
    }
    None
}

/// The `OpenAPI` document, as short as `kubectl` lets it be: that there is a way to change each kind. Without
/// definitions it checks nothing itself and leaves that to the server.
pub(super) fn openapi(kinds: &[(&str, &str, &str)]) -> Vec<u8> {
    let mut document = field_of(1, b"2.0");
    let info = [field_of(1, b"Kubernetes"), field_of(2, b"v1.20.2")].concat();
    document.extend(field_of(2, &info));
    let paths: Vec<u8> = kinds
        .iter()
        .flat_map(|(group, version, kind)| {
            let yaml = format!("group: {group:?}\nkind: {kind}\nversion: {version}\n");
            let named = [
                field_of(1, b"x-kubernetes-group-version-kind"),
                field_of(2, &field_of(2, yaml.as_bytes())),
            ];
            let change = field_of(13, &named.concat());
            let path = [
                field_of(1, format!("/apis/{group}/{version}/{kind}").as_bytes()),
                field_of(2, &field_of(8, &change)),
            ];
            field_of(2, &path.concat())
        })
        .collect();
    document.extend(field_of(8, &paths));
    document
}

/// Bytes as a field of a message.
fn field_of(number: u64, bytes: &[u8]) -> Vec<u8> {
    let mut field = Vec::new();
    for mut value in [number << 3 | 2, bytes.len() as u64] {
        while value >= 128 {
            field.push((value & 127) as u8 | 128);
            value >>= 7;
        }
        field.push((value & 127) as u8);
    }
    field.extend_from_slice(bytes);
    field
}
