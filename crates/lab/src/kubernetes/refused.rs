//! Answers that refuse: each is a `Status` as the API server words it [1.20.2 seen].

use serde_json::{Map, Value, json};

/// An answer that refuses.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    /// The HTTP status.
    pub(super) code: u16,
    /// The `Status`.
    pub(super) body: Value,
    /// Seconds after which one may ask again.
    pub(super) retry_after_s: Option<u64>,
}

/// One thing that is wrong with an object.
#[derive(Clone, Debug)]
pub(super) struct Cause {
    /// `FieldValueInvalid` and its like; empty where there is none.
    reason: &'static str,
    message: String,
    field: String,
}

impl Cause {
    /// A field that has to be there. `why` may be empty.
    pub(super) fn required(field: impl Into<String>, why: &str) -> Self {
        let colon = if why.is_empty() { "" } else { ": " };
        Self::new("FieldValueRequired", field, format!("Required value{colon}{why}"))
    }

    /// A value that is not allowed there; text is given with its quotes.
    pub(super) fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        Self::invalid_as(field, &value.to_string(), why)
    }

    /// The same for a value as the server prints it.
    pub(super) fn invalid_as(field: impl Into<String>, printed: &str, why: &str) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {printed}: {why}"))
    }

    /// A value that is not one of a few.
    pub(super) fn unsupported(field: impl Into<String>, printed: &str, known: &[&str]) -> Self {
        let known: Vec<String> = known.iter().map(|word| format!("{word:?}")).collect();
        let known = known.join(", ");
        let message = format!("Unsupported value: {printed}: supported values: {known}");
        Self::new("FieldValueNotSupported", field, message)
    }

    /// A value that stands there twice.
    pub(super) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::new("FieldValueDuplicate", field, format!("Duplicate value: {value}"))
    }

    /// Something that may not be said.
    pub(super) fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {why}"))
    }

    /// More bytes than are allowed.
    pub(super) fn too_long(field: impl Into<String>, limit: usize) -> Self {
        let message = format!("Too long: must have at most {limit} bytes");
        Self::new("FieldValueTooLong", field, message)
    }

    /// A reference to what is not there.
    pub(super) fn not_found(field: impl Into<String>, value: &Value) -> Self {
        Self::new("FieldValueNotFound", field, format!("Not found: {value}"))
    }

    fn new(reason: &'static str, field: impl Into<String>, message: String) -> Self {
        Self { reason, message, field: field.into() }
    }
}

/// What an answer is about, as far as it is about something.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Subject<'a> {
    /// Name of the object.
    pub(super) name: &'a str,
    /// Group of the API, empty for the core.
    pub(super) group: &'a str,
    /// Resource or kind, as the answer has it.
    pub(super) kind: &'a str,
}

impl Subject<'_> {
    /// `jobs.batch`, or `pods`.
    pub(super) fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.kind.to_owned()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }

    fn details(&self) -> Map<String, Value> {
        let parts = [("name", self.name), ("group", self.group), ("kind", self.kind)];
        let said = parts.iter().filter(|(_, is)| !is.is_empty());
        said.map(|(key, is)| ((*key).to_owned(), json!(is))).collect()
    }
}

impl Refused {
    /// Any refusal. Without a reason or details these are left out.
    pub(super) fn new(code: u16, reason: &str, message: &str, details: Option<Value>) -> Self {
        let mut body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message,
        });
        if !reason.is_empty() {
            body["reason"] = json!(reason);
        }
        if let Some(details) = details {
            body["details"] = details;
        }
        body["code"] = json!(code);
        Self { code, body, retry_after_s: None }
    }

    /// A request that makes no sense.
    pub(super) fn bad(message: &str) -> Self {
        Self::new(400, "BadRequest", message, None)
    }

    /// Something without an answer of its own: `reason` is left out as the server does.
    pub(super) fn bare(code: u16, message: &str) -> Self {
        Self::new(code, "", message, None)
    }

    /// A path that nothing serves.
    pub(super) fn no_such_resource() -> Self {
        let text = "the server could not find the requested resource";
        Self::new(404, "NotFound", text, Some(json!({})))
    }

    /// A method that its path does not know.
    pub(super) fn no_such_method() -> Self {
        let text = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", text, Some(json!({})))
    }

    /// An object that is not there.
    pub(super) fn not_found(of: &Subject<'_>) -> Self {
        let text = format!("{} {:?} not found", of.qualified(), of.name);
        Self::new(404, "NotFound", &text, Some(Value::Object(of.details())))
    }

    /// A name that is taken.
    pub(super) fn exists(of: &Subject<'_>) -> Self {
        let text = format!("{} {:?} already exists", of.qualified(), of.name);
        Self::new(409, "AlreadyExists", &text, Some(Value::Object(of.details())))
    }

    /// A change that came too late.
    pub(super) fn conflict(of: &Subject<'_>, why: &str) -> Self {
        let of_what =
            format!("Operation cannot be fulfilled on {} {:?}: {why}", of.qualified(), of.name);
        Self::new(409, "Conflict", &of_what, Some(Value::Object(of.details())))
    }

    /// What somebody may not do. `causes` may be empty.
    pub(super) fn forbidden(of: &Subject<'_>, why: &str, causes: &[Value]) -> Self {
        let name = if of.name.is_empty() { String::new() } else { format!(" {:?}", of.name) };
        let text = format!("{}{name} is forbidden: {why}", of.qualified());
        let mut details = of.details();
        if !causes.is_empty() {
            details.insert("causes".to_owned(), json!(causes));
        }
        Self::new(403, "Forbidden", &text, Some(Value::Object(details)))
    }

    /// An object with mistakes; `of.kind` is the kind here, not the resource.
    pub(super) fn invalid(of: &Subject<'_>, causes: &[Cause]) -> Self {
        let said: Vec<String> =
            causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let said = match said.as_slice() {
            [one] => one.clone(),
            _ => format!("[{}]", said.join(", ")),
        };
        let text = format!("{} {:?} is invalid: {said}", of.qualified(), of.name);
        let causes: Vec<Value> = causes
            .iter()
            .map(|c| json!({"reason": c.reason, "message": c.message, "field": c.field}))
            .collect();
        let mut details = of.details();
        details.insert("causes".to_owned(), json!(causes));
        Self::new(422, "Invalid", &text, Some(Value::Object(details)))
    }

    /// A version that is no longer kept.
    pub(super) fn expired(message: &str) -> Self {
        Self::new(410, "Expired", message, None)
    }

    /// What it says in one sentence.
    pub(super) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}
