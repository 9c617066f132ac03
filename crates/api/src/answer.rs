//! What is answered, before it is bytes on a connection.

use axum::body::{Body, Bytes};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};

use serde_json::Value;

use tpu_wire::schema::Document;

/// An answer that is whole.
#[derive(Debug)]
pub(super) struct Answer {
    status: StatusCode,
    kind: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
}

impl Answer {
    /// Plain text.
    pub(super) fn text(body: impl Into<String>) -> Self {
        Self::bytes(body.into().into())
    }

    /// The same of bytes.
    pub(super) fn bytes(body: Bytes) -> Self {
        let kind = "text/plain; charset=utf-8";
        Self { status: StatusCode::OK, kind, headers: Vec::new(), body }
    }

    /// A document, as `--json` prints it.
    pub(super) fn document(document: &impl Document) -> Self {
        Self::text(tpu_wire::text(document)).kind("application/json")
    }

    /// The same, and of each of its `jobs` only these members, if some are named.
    pub(super) fn document_with(document: &impl Document, fields: Option<&[&str]>) -> Self {
        let Some(fields) = fields else { return Self::document(document) };
        let mut members = tpu_wire::members(document);
        let jobs = members.get_mut("jobs").and_then(Value::as_array_mut);
        for job in jobs.into_iter().flatten().filter_map(Value::as_object_mut) {
            job.retain(|name, _| fields.contains(&name.as_str()));
        }
        Self::text(Value::Object(members).to_string()).kind("application/json")
    }

    /// Nothing, and that is all right.
    pub(super) fn unchanged(tag: &str) -> Self {
        Self::text("").status(StatusCode::NOT_MODIFIED).header("etag", tag)
    }

    /// The same of another kind of content.
    pub(super) fn kind(self, kind: &'static str) -> Self {
        Self { kind, ..self }
    }

    /// The same with another status.
    pub(super) fn status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// The same with one more header.
    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The text; nothing where it is none.
    pub(super) fn body(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or_default()
    }

    /// As it leaves.
    pub(super) fn response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if self.status != StatusCode::NOT_MODIFIED {
            headers.insert("content-type", HeaderValue::from_static(self.kind));
        }
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::try_from(value) {
                let name = HeaderName::from_static(name);
                // A cookie is set for each of its places.
                if name == SET_COOKIE {
                    headers.append(name, value);
                } else {
                    headers.insert(name, value);
                }
            }
        }
        response
    }
}
