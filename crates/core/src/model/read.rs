//! Tolerant reading of JSON text, with the path of what cannot be understood.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

use super::time::Timestamp;
use super::walk::{Member, Walk, elements, key_of, mark_of, members, once_each};

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

/// One JSON value, as it stands in a text that is JSON. It is read where it is needed and copied nowhere, so
/// a document costs little more than its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Json<'a>(&'a str);

impl<'a> Json<'a> {
    /// The value that `text` is, without blanks around it.
    pub(crate) fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// The value as it stands there.
    pub(crate) fn text(self) -> &'a str {
        self.0
    }

    pub(crate) fn is_null(self) -> bool {
        self.0 == "null"
    }

    /// The text of a string; `None` for anything else.
    pub(crate) fn as_str(self) -> Option<Cow<'a, str>> {
        self.0.starts_with('"').then(|| key_of(self.0).name())
    }

    /// What `parse` makes of the text of a string.
    pub(crate) fn word<T>(self, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        self.as_str().and_then(|text| parse(&text))
    }

    /// A whole number from 0 up that is written as one (`7`, not `7.0`).
    pub(crate) fn as_u64(self) -> Option<u64> {
        self.0.parse().ok()
    }

    /// A whole number that is written as one.
    pub(crate) fn as_i64(self) -> Option<i64> {
        self.0.parse().ok()
    }

    /// Any number.
    pub(crate) fn as_f64(self) -> Option<f64> {
        let is_number = self.0.starts_with(|c: char| c == '-' || c.is_ascii_digit());
        self.0.parse().ok().filter(|_| is_number)
    }

    pub(crate) fn as_bool(self) -> Option<bool> {
        self.0.parse().ok()
    }

    pub(crate) fn is_object(self) -> bool {
        self.0.starts_with('{')
    }

    /// The members of an object.
    pub(crate) fn as_object(self) -> Option<Vec<Member<'a>>> {
        self.is_object().then(|| members(self.0))
    }

    /// The elements of an array.
    pub(crate) fn as_array(self) -> Option<Vec<Self>> {
        self.0.starts_with('[').then(|| elements(self.0).into_iter().map(Self).collect())
    }

    /// The value on its own, for what is kept or shown as it is.
    pub(crate) fn to_value(self) -> Value {
        serde_json::from_str(self.0).unwrap_or(Value::Null)
    }
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
    pub(crate) fn error(&self, expected: &str, found: Option<Json<'_>>) -> DataError {
        // What stands where a secret belongs may be one.
        let secret = self.to_string().contains("api_key");
        let found = match found {
            None => "nothing".to_owned(),
            Some(_) if secret => "something else".to_owned(),
            Some(value) => {
                let text = value.to_value().to_string();
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
pub(crate) struct Fields<'a> {
    members: Vec<Member<'a>>,
    /// The marks ([`mark_of`]) of all keys: most of those that are asked for are not there, and cost no search.
    marks: u64,
    path: &'a Path<'a>,
}

impl<'a> Fields<'a> {
    /// The members of the object that `value` is.
    pub(crate) fn new(value: Json<'a>, path: &'a Path<'a>) -> Result<Self, DataError> {
        let members = value.as_object().ok_or_else(|| path.error("a map", Some(value)))?;
        Ok(Self::of(members, path))
    }

    /// These members.
    pub(crate) fn of(members: Vec<Member<'a>>, path: &'a Path<'a>) -> Self {
        let marks = members.iter().fold(0, |marks, member| marks | member.key.mark());
        Self { members, marks, path }
    }

    /// The members of the object that comes next on a walk.
    pub(crate) fn take<'t: 'a>(walk: &mut Walk<'t>, path: &'a Path<'a>) -> Self {
        Self::of(walk.members(), path)
    }

    /// The way to the value of a key.
    pub(crate) fn below<'k>(&'k self, key: &'k str) -> Path<'k> {
        Path::Key(self.path, key)
    }

    /// Whether there is such a key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// The value of a key; `null` counts as missing.
    pub(crate) fn get(&self, key: &str) -> Option<Json<'a>> {
        self.find(key).filter(|value| !value.is_null())
    }

    /// Of a key that is there twice, the last one counts, as for every reader of JSON.
    fn find(&self, key: &str) -> Option<Json<'a>> {
        if self.marks & mark_of(key.as_bytes()) == 0 {
            return None;
        }
        self.members.iter().rfind(|member| member.key.is(key)).map(|member| Json::new(member.value))
    }

    /// Reads a key with `read`; `Ok(None)` when it is missing or `null`.
    pub(crate) fn with<T>(
        &self,
        key: &str,
        read: impl FnOnce(Json<'a>, &Path<'_>) -> Result<T, DataError>,
    ) -> Result<Option<T>, DataError> {
        self.get(key).map(|value| read(value, &Path::Key(self.path, key))).transpose()
    }

    /// Reads a key that may be missing but is not `null`, since nothing says what `null` would mean.
    pub(crate) fn with_or<T>(
        &self,
        key: &str,
        default: T,
        read: impl FnOnce(Json<'a>, &Path<'_>) -> Result<T, DataError>,
    ) -> Result<T, DataError> {
        match self.find(key) {
            Some(value) => read(value, &Path::Key(self.path, key)),
            None => Ok(default),
        }
    }

    /// Reads a key that must be there.
    pub(crate) fn need<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl FnOnce(Json<'a>, &Path<'_>) -> Result<T, DataError>,
    ) -> Result<T, DataError> {
        match self.find(key) {
            Some(value) => read(value, &Path::Key(self.path, key)),
            None => Err(Path::Key(self.path, key).error(expected, None)),
        }
    }
}

/// Text.
pub(crate) fn text(value: Json<'_>, path: &Path<'_>) -> Result<String, DataError> {
    value.as_str().map(Cow::into_owned).ok_or_else(|| path.error("text", Some(value)))
}

/// One of some words.
pub(crate) fn one_of<T>(
    value: Json<'_>,
    path: &Path<'_>,
    parse: impl FnOnce(&str) -> Option<T>,
    expected: &str,
) -> Result<T, DataError> {
    value.word(parse).ok_or_else(|| path.error(expected, Some(value)))
}

/// A number from 0 up, as a number or as text (`"1"`).
pub(crate) fn number(value: Json<'_>, path: &Path<'_>) -> Result<u32, DataError> {
    let written = || value.as_u64().and_then(|number| u32::try_from(number).ok());
    let number = written().or_else(|| value.word(|text| text.trim().parse().ok()));
    number.ok_or_else(|| path.error("a number", Some(value)))
}

/// A large number from 0 up.
pub(crate) fn large(value: Json<'_>, path: &Path<'_>) -> Result<u64, DataError> {
    value.as_u64().ok_or_else(|| path.error("a number", Some(value)))
}

/// A number that may have a fraction.
pub(crate) fn real(value: Json<'_>, path: &Path<'_>) -> Result<f64, DataError> {
    value.as_f64().ok_or_else(|| path.error("a number", Some(value)))
}

/// An exit code.
pub(crate) fn exit_code(value: Json<'_>, path: &Path<'_>) -> Result<i32, DataError> {
    let code = value.as_i64().and_then(|code| i32::try_from(code).ok());
    code.ok_or_else(|| path.error("an exit code", Some(value)))
}

/// Yes or no: true, false, 1, 0, or the words in any spelling of the original.
pub(crate) fn flag(value: Json<'_>, path: &Path<'_>) -> Result<bool, DataError> {
    let number = || match value.as_u64() {
        Some(0) => Some(false),
        Some(1) => Some(true),
        _ => None,
    };
    let flag = value.as_bool().or_else(number).or_else(|| value.word(flag_word));
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
pub(crate) fn instant(value: Json<'_>, path: &Path<'_>) -> Result<Timestamp, DataError> {
    one_of(value, path, Timestamp::parse_rfc3339, "an instant such as 2026-11-20T14:02:11Z")
}

/// An object, with all that is in it.
pub(crate) fn object(value: Json<'_>, path: &Path<'_>) -> Result<Map<String, Value>, DataError> {
    match value.is_object().then(|| value.to_value()) {
        Some(Value::Object(map)) => Ok(map),
        _ => Err(path.error("a map", Some(value))),
    }
}

/// An array, each element read with `read`; `null` is an empty one.
pub(crate) fn list<T>(
    value: Json<'_>,
    path: &Path<'_>,
    read: impl Fn(Json<'_>, &Path<'_>) -> Result<T, DataError>,
) -> Result<Vec<T>, DataError> {
    if value.is_null() {
        return Ok(Vec::new());
    }
    let list = value.as_array().ok_or_else(|| path.error("a list", Some(value)))?;
    list.into_iter().enumerate().map(|(i, value)| read(value, &Path::Index(path, i))).collect()
}

/// An object with members of one kind, in order; `null` is an empty one.
pub(crate) fn pairs<K, T>(
    value: Json<'_>,
    path: &Path<'_>,
    key: impl Fn(&str) -> Option<K>,
    read: impl Fn(Json<'_>, &Path<'_>) -> Result<T, DataError>,
) -> Result<Vec<(K, T)>, DataError> {
    if value.is_null() {
        return Ok(Vec::new());
    }
    let members = value.as_object().ok_or_else(|| path.error("a map", Some(value)))?;
    let mut pairs = Vec::with_capacity(members.len());
    for member in once_each(members) {
        let name = member.key.name();
        let path = Path::Key(path, &name);
        let key = key(&name).ok_or_else(|| {
            path.error("a number as key", Some(Json::new(&Value::from(&*name).to_string())))
        })?;
        pairs.push((key, read(Json::new(member.value), &path)?));
    }
    Ok(pairs)
}
