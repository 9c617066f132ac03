//! What is said by the options that a kind of target brings along, of a target or of a job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::read::{self, DataError, Json, Path};

/// The values of such options, by their names; one may have been said several times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KindOptions(BTreeMap<String, Vec<String>>);

impl KindOptions {
    /// The value of an option; of several the last.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).last().map(String::as_str)
    }

    /// Every value of an option, in order.
    pub fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Each name with each of its values.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|(name, values)| {
            values.iter().map(move |value| (name.as_str(), value.as_str()))
        })
    }

    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a value.
    pub fn say(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.entry(name.into()).or_default().push(value.into());
    }

    /// For the file: one value as text, several as a list; `None` where nothing was said.
    pub(super) fn to_value(&self) -> Option<Value> {
        let value = |values: &[String]| match values {
            [only] => Value::from(only.as_str()),
            several => Value::from(several),
        };
        let members = self.0.iter().map(|(name, values)| (name.clone(), value(values)));
        (!self.is_empty()).then(|| Value::Object(members.collect()))
    }

    /// As it was written.
    pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Self, DataError> {
        let values = |value: Json<'_>, path: &Path<'_>| match read::text(value, path) {
            Ok(only) => Ok(vec![only]),
            Err(_) => read::list(value, path, read::text),
        };
        let members = read::pairs(value, path, |name| Some(name.to_owned()), values)?;
        Ok(Self(members.into_iter().collect()))
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for KindOptions {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let mut options = Self::default();
        for (name, value) in pairs {
            options.say(name, value);
        }
        options
    }
}
