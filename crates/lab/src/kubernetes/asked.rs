//! A request as the handlers read it, and what is answered.

use axum::body::Bytes;
use axum::http::{HeaderMap, Method};
use serde_json::{Value, json};

use super::access::Asking;
use super::refused::Refused;
use super::resources::{ApiResource, NAMESPACES, RESOURCES};
use super::tables::partial;

/// A request.
pub(super) struct Asked {
    pub(super) method: Method,
    /// Decoded, without a slash at its end.
    pub(super) path: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// Who asks.
    pub(super) asking: Asking,
}

/// The object or the list that a path means.
pub(super) struct Meant {
    pub(super) resource: &'static ApiResource,
    /// `None` for all.
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    /// What is below the object: `log`.
    pub(super) below: Option<String>,
    /// The old way to ask for a watch: `/api/v1/watch/…`.
    pub(super) is_watch: bool,
}

/// The form in which objects are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Whole.
    Whole,
    /// As a table.
    Table,
    /// Their metadata alone.
    Partial,
}

/// What is answered.
pub(super) enum Reply {
    /// A document.
    Json(u16, Value),
    /// Text of some type.
    Text(u16, &'static str, Vec<u8>),
    /// What comes piece by piece, until its sender is gone.
    Stream(&'static str, tokio::sync::mpsc::Receiver<Result<Bytes, std::io::Error>>),
    /// Nothing at all.
    Never,
}

impl Asked {
    /// A parameter of the query; empty ones are none.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// A parameter that is a whole number.
    pub(super) fn number(&self, name: &str) -> Result<Option<i64>, Refused> {
        let of = |text: &str| {
            text.parse().map_err(|_| {
                Refused::bad(&format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))
            })
        };
        self.parameter(name).map(of).transpose()
    }

    /// A parameter that is true or false.
    pub(super) fn flag(&self, name: &str) -> bool {
        matches!(self.parameter(name), Some("true" | "1"))
    }

    /// A header, empty for none.
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The form of objects that is accepted.
    pub(super) fn form(&self) -> Result<Form, Refused> {
        let accepted = self.header("accept");
        for one in accepted.split(',').map(str::trim) {
            let plain = one.split(';').next().unwrap_or_default().trim();
            let wants = |what: &str| one.split(';').any(|part| part.trim().starts_with(what));
            match plain {
                "application/json" if wants("as=Table") => return Ok(Form::Table),
                "application/json" if wants("as=PartialObjectMetadata") => {
                    return Ok(Form::Partial);
                }
                // What is meant for newer servers is not known here.
                "application/json" if wants("as=") => {}
                "" | "application/json" | "*/*" | "application/*" | "application/yaml" => {
                    return Ok(Form::Whole);
                }
                _ => {}
            }
        }
        Err(Refused::new(406, "NotAcceptable", "406: Not Acceptable", Some(json!({}))))
    }

    /// What its path means. `None` for what no resource has.
    pub(super) fn meant(&self) -> Option<Meant> {
        let parts: Vec<&str> = self.path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (is_watch, rest) = match rest {
            ["watch", rest @ ..] => (true, rest),
            rest => (false, rest),
        };
        let owned = |text: Option<&&str>| text.map(|text| (*text).to_owned());
        let (namespace, rest) = match rest {
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", of, rest @ ..] => (Some((*of).to_owned()), rest),
            rest => (None, rest),
        };
        let (plural, rest) = rest.split_first()?;
        let of_path = |of: &&&'static ApiResource| {
            of.group == group && of.version == version && of.plural == *plural
        };
        let resource = *RESOURCES.iter().find(of_path)?;
        if rest.len() > 2 || (namespace.is_some() && !resource.namespaced) {
            return None;
        }
        let below = owned(rest.get(1));
        if below.as_deref().is_some_and(|below| !resource.below.contains(&below)) {
            return None;
        }
        Some(Meant { resource, namespace, name: owned(rest.first()), below, is_watch })
    }
}

impl Meant {
    /// The namespace in which one must have the right to it.
    pub(super) fn namespace_of_right(&self) -> &str {
        if self.resource.is(&NAMESPACES) {
            return self.name.as_deref().unwrap_or_default();
        }
        self.namespace.as_deref().unwrap_or_default()
    }

    /// Resource, with what is below it.
    pub(super) fn words(&self) -> String {
        match &self.below {
            Some(below) => format!("{}/{below}", self.resource.plural),
            None => self.resource.plural.to_owned(),
        }
    }
}

/// An object of a list or of a watch in a form that is no table.
pub(super) fn formed(form: Form, object: &Value) -> Value {
    match form {
        Form::Partial => partial(object),
        Form::Whole | Form::Table => object.clone(),
    }
}
