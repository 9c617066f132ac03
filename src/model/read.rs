//! Tolerant reading of JSON values, with the path of what cannot be understood.

use std::fmt;

use serde_json::{Map, Value, json};

use super::time::Timestamp;

/// A value in data.json that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: expected {expected}, found {found}")]
pub struct DataError {
    /// Where: `users.alice.job_data[3].windows_id`.
    pub path: String,
    /// What should be there.
    pub expected: String,
    /// What is there, shortened.
    pub found: String,
}

/// The way to a value. Costs nothing until an error is made from it.
#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    /// The document.
    Root,
    /// A member of an object.
    Key(&'a Path<'a>, &'a str),
    /// An element of an array.
    Index(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("(document)"),
            Self::Key(Self::Root, key) => f.write_str(key),
            Self::Key(parent, key) => write!(f, "{parent}.{key}"),
            Self::Index(Self::Root, i) => write!(f, "[{i}]"),
            Self::Index(parent, i) => write!(f, "{parent}[{i}]"),
        }
    }
}

impl Path<'_> {
    /// The error that `found` stands here instead of `expected`.
    pub(crate) fn error(&self, expected: &str, found: Option<&Value>) -> DataError {
        // What stands where a secret belongs may be one.
        let secret = self.to_string().contains("api_key");
        let found = match found {
            None => "nothing".to_owned(),
            Some(_) if secret => "something else".to_owned(),
            Some(value) => {
                let text = value.to_string();
                if text.chars().count() > 60 {
                    format!("{}…", text.chars().take(60).collect::<String>())
                } else {
                    text
                }
            }
        };
        DataError { path: self.to_string(), expected: expected.to_owned(), found }
    }
}

/// One object that is being read, with its place.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    map: &'a Map<String, Value>,
    path: &'a Path<'a>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(map: &'a Map<String, Value>, path: &'a Path<'a>) -> Self {
        Self { map, path }
    }

    /// The value of a key; `null` counts as missing.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// Reads a key with `read`; `Ok(None)` when it is missing or `null`.
    pub(crate) fn with<T>(
        &self,
        key: &str,
        read: impl FnOnce(&'a Value, &Path<'_>) -> Result<T, DataError>,
    ) -> Result<Option<T>, DataError> {
        self.get(key).map(|value| read(value, &Path::Key(self.path, key))).transpose()
    }

    /// Reads a key that may be missing but is not `null`, since nothing says what `null` would mean.
    pub(crate) fn with_or<T>(
        &self,
        key: &str,
        default: T,
        read: impl FnOnce(&'a Value, &Path<'_>) -> Result<T, DataError>,
    ) -> Result<T, DataError> {
        match self.map.get(key) {
            Some(value) => read(value, &Path::Key(self.path, key)),
            None => Ok(default),
        }
    }

    /// Reads a key that must be there.
    pub(crate) fn need<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'a Value, &Path<'_>) -> Result<T, DataError>,
    ) -> Result<T, DataError> {
        match self.map.get(key) {
            Some(value) => read(value, &Path::Key(self.path, key)),
            None => Err(Path::Key(self.path, key).error(expected, None)),
        }
    }
}

/// Text.
pub(crate) fn text(value: &Value, path: &Path<'_>) -> Result<String, DataError> {
    value.as_str().map(str::to_owned).ok_or_else(|| path.error("text", Some(value)))
}

/// A number from 0 up, as a number or as text (`"1"`).
pub(crate) fn number(value: &Value, path: &Path<'_>) -> Result<u32, DataError> {
    let number = match value {
        Value::Number(number) => number.as_u64().and_then(|number| u32::try_from(number).ok()),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    number.ok_or_else(|| path.error("a number", Some(value)))
}

/// A large number from 0 up.
pub(crate) fn large(value: &Value, path: &Path<'_>) -> Result<u64, DataError> {
    value.as_u64().ok_or_else(|| path.error("a number", Some(value)))
}

/// A number that may have a fraction.
pub(crate) fn real(value: &Value, path: &Path<'_>) -> Result<f64, DataError> {
    value.as_f64().ok_or_else(|| path.error("a number", Some(value)))
}

/// An exit code.
pub(crate) fn exit_code(value: &Value, path: &Path<'_>) -> Result<i32, DataError> {
    let code = value.as_i64().and_then(|code| i32::try_from(code).ok());
    code.ok_or_else(|| path.error("an exit code", Some(value)))
}

/// Yes or no: true, false, 1, 0, or the words in any spelling of the original.
pub(crate) fn flag(value: &Value, path: &Path<'_>) -> Result<bool, DataError> {
    let flag = match value {
        Value::Bool(flag) => Some(*flag),
        Value::Number(number) => match number.as_u64() {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        },
        Value::String(text) => flag_word(text),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    flag.ok_or_else(|| path.error("true or false", Some(value)))
}

/// The words for yes and no: true/false/True/False/1/0.
pub(crate) fn flag_word(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "1" => Some(true),
        "false" | "False" | "0" => Some(false),
        _ => None,
    }
}

/// An instant in RFC 3339.
pub(crate) fn instant(value: &Value, path: &Path<'_>) -> Result<Timestamp, DataError> {
    value
        .as_str()
        .and_then(Timestamp::parse_rfc3339)
        .ok_or_else(|| path.error("an instant such as 2026-11-20T14:02:11Z", Some(value)))
}

/// An object.
pub(crate) fn object<'a>(
    value: &'a Value,
    path: &Path<'_>,
) -> Result<&'a Map<String, Value>, DataError> {
    value.as_object().ok_or_else(|| path.error("a map", Some(value)))
}

/// An array, each element read with `read`; `null` is an empty one.
pub(crate) fn list<T>(
    value: &Value,
    path: &Path<'_>,
    read: impl Fn(&Value, &Path<'_>) -> Result<T, DataError>,
) -> Result<Vec<T>, DataError> {
    if value.is_null() {
        return Ok(Vec::new());
    }
    let list = value.as_array().ok_or_else(|| path.error("a list", Some(value)))?;
    list.iter().enumerate().map(|(i, value)| read(value, &Path::Index(path, i))).collect()
}

/// An object with members of one kind, in order; `null` is an empty one.
pub(crate) fn pairs<K, T>(
    value: &Value,
    path: &Path<'_>,
    key: impl Fn(&str) -> Option<K>,
    read: impl Fn(&Value, &Path<'_>) -> Result<T, DataError>,
) -> Result<Vec<(K, T)>, DataError> {
    if value.is_null() {
        return Ok(Vec::new());
    }
    let pair = |(name, value): (&String, &Value)| {
        let path = Path::Key(path, name);
        let name = key(name).ok_or_else(|| path.error("a number as key", Some(&json!(name))))?;
        Ok((name, read(value, &path)?))
    };
    object(value, path)?.iter().map(pair).collect()
}
