//! A request of the API as its handlers read it, the connection that it came by, and an answer as it is sent.

use std::collections::HashMap;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;

use axum::body::{Bytes, HttpBody as _};
use axum::extract::connect_info::Connected;
use axum::extract::{FromRequest, FromRequestParts as _, Query, RawPathParams, Request};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::serve::IncomingStream;
use serde_json::{Value, json};

/// The longest body that is read.
pub(super) const LONGEST_BODY: usize = 4 << 20;

/// A request, as the handlers read it.
pub(super) struct ApiRequest {
    pub(super) method: Method,
    /// As it was sent.
    pub(super) target: String,
    pub(super) body: Bytes,
    /// What stands in the places that the route has names for, decoded.
    places: HashMap<String, String>,
    /// What stands behind the `?`, decoded.
    query: Vec<(String, String)>,
}

impl ApiRequest {
    /// What stands at a place of the path, by its name in the route.
    pub(super) fn place(&self, name: &str) -> &str {
        self.places.get(name).map_or("", String::as_str)
    }

    /// A parameter, whatever the case of its name.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

impl<S: Send + Sync> FromRequest<S> for ApiRequest {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        // A path that no route has, or that is no text, has no places.
        let places = RawPathParams::from_request_parts(&mut parts, state).await;
        let places = places.iter().flatten().map(|(name, is)| (name.to_owned(), is.to_owned()));
        let places = places.collect();
        let query = Query::try_from_uri(&parts.uri).map_or_else(|_| Vec::new(), |Query(all)| all);
        let (method, target) = (parts.method.clone(), parts.uri.to_string());
        // A length that is announced is believed before a byte of it is read.
        if body.size_hint().lower() > LONGEST_BODY as u64 {
            return Err(refused(StatusCode::PAYLOAD_TOO_LARGE, "too long"));
        }
        let body = Bytes::from_request(Request::from_parts(parts, body), state).await;
        let body = body.map_err(|why| refused(why.status(), &why.body_text()))?;
        Ok(Self { method, target, body, places, query })
    }
}

/// The answer to what is no request of the API.
fn refused(status: StatusCode, message: &str) -> Response {
    sent(status, &json!({ "error": { "code": status.as_u16(), "message": message } }))
}

/// An answer.
pub(super) fn sent(status: StatusCode, body: &Value) -> Response {
    let json = [(header::CONTENT_TYPE, "application/json; charset=UTF-8")];
    let mut response = (status, json, body.to_string()).into_response();
    if status == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// The connection that a request came by.
#[derive(Clone)]
pub(super) struct Connection(Option<Arc<TcpStream>>);

impl Connection {
    /// Ends it, so that no answer arrives: a server that has crashed looks the same from outside.
    pub(super) fn cut(&self) {
        if let Some(stream) = &self.0 {
            // Its client may have gone first.
            drop(stream.shutdown(Shutdown::Both));
        }
    }
}

impl Connected<IncomingStream<'_, tokio::net::TcpListener>> for Connection {
    fn connect_info(stream: IncomingStream<'_, tokio::net::TcpListener>) -> Self {
        let same = stream.io().as_fd().try_clone_to_owned();
        Self(same.ok().map(|same| Arc::new(same.into())))
    }
}
