//! Cloud Storage's JSON API over the simulated buckets: lists, objects with ranges, resumable uploads, copies from
//! bucket to bucket, deletions; and what can go wrong with them.
//!
//! The requests, statuses and bodies are those of the pages that `google/storage.rs` of our own client names; a refusal
//! has the form of `https://cloud.google.com/storage/docs/json_api/v1/status-codes`.

mod served;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::FromRequestParts as _;
use axum::extract::connect_info::ConnectInfo;
use axum::extract::{DefaultBodyLimit, Query, RawPathParams, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing;
use http_body::Frame;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::Served;
use super::request::Connection;
use crate::sim::{Call, SimCloud};

/// The longest part of an object that is taken at once.
const LONGEST: u64 = 256 << 20;
/// Bytes of an object that are sent at once.
const PIECE: usize = 256 << 10;
/// How long what was sent before a cut is on its way.
const FLUSH: Duration = Duration::from_millis(50);

/// A request to the storage, without what its body holds.
struct StorageRequest {
    places: HashMap<String, String>,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    bytes: Bytes,
    /// The body broke off before its end.
    is_cut: bool,
    /// How the server is reached, for addresses that it gives away.
    host: String,
}

impl StorageRequest {
    fn place(&self, name: &str) -> &str {
        self.places.get(name).map_or("", String::as_str)
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// What is answered.
struct StorageAnswer {
    status: StatusCode,
    headers: Vec<(HeaderName, String)>,
    body: AnswerBody,
}

enum AnswerBody {
    Nothing,
    Json(Value),
    /// So many bytes of a file, from where it stands.
    File(File, u64),
}

impl StorageAnswer {
    fn json(value: Value) -> Self {
        Self { status: StatusCode::OK, headers: Vec::new(), body: AnswerBody::Json(value) }
    }

    fn empty(status: StatusCode) -> Self {
        Self { status, headers: Vec::new(), body: AnswerBody::Nothing }
    }

    fn with(mut self, name: HeaderName, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    /// A refusal, as the API words one.
    fn refused(status: StatusCode, reason: &str, message: &str) -> Self {
        let one = json!({ "message": message, "domain": "global", "reason": reason });
        let error = json!({ "code": status.as_u16(), "message": message, "errors": [one] });
        Self { status, ..Self::json(json!({ "error": error })) }
    }
}

/// What a method does. An error is one of the simulator's own disk.
type Method = fn(&SimCloud, &StorageRequest, &served::Rules) -> io::Result<StorageAnswer>;

/// The routes.
pub(super) fn router() -> Router<Arc<Served>> {
    let on = |call: Call, needs: &'static str, method: Method| handled(call, needs, method);
    Router::new()
        .route(
            "/storage/v1/b",
            routing::get(on(Call::Bucket, "storage.buckets.list", served::buckets)),
        )
        .route(
            "/storage/v1/b/{bucket}/o",
            routing::get(on(Call::Objects, "storage.objects.list", served::list)),
        )
        .route(
            "/storage/v1/b/{bucket}/o/{object}",
            routing::get(on(Call::Read, "storage.objects.get", served::object)).delete(on(
                Call::Write,
                "storage.objects.delete",
                served::delete,
            )),
        )
        .route(
            "/storage/v1/b/{bucket}/o/{object}/rewriteTo/b/{to}/o/{name}",
            routing::post(on(Call::Rewrite, "storage.objects.create", served::rewrite)),
        )
        .route(
            "/upload/storage/v1/b/{bucket}/o",
            routing::post(on(Call::Write, "storage.objects.create", served::begin)).put(on(
                Call::Upload,
                "storage.objects.create",
                served::upload,
            )),
        )
        .layer(DefaultBodyLimit::disable())
}

type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

fn handled(
    call: Call,
    needs: &'static str,
    method: Method,
) -> impl Fn(State<Arc<Served>>, ConnectInfo<Connection>, axum::extract::Request) -> Answering
+ Clone
+ Send
+ Sync {
    move |State(served), ConnectInfo(connection), request| {
        Box::pin(answered(served, connection, request, (call, needs, method)))
    }
}

async fn answered(
    served: Arc<Served>,
    connection: Connection,
    request: axum::extract::Request,
    (call, needs, method): (Call, &'static str, Method),
) -> Response {
    let (mut parts, body) = request.into_parts();
    let places = RawPathParams::from_request_parts(&mut parts, &()).await;
    let places: HashMap<String, String> =
        places.iter().flatten().map(|(name, is)| (name.to_owned(), is.to_owned())).collect();
    let query: Vec<(String, String)> =
        Query::try_from_uri(&parts.uri).map_or_else(|_| Vec::new(), |Query(all)| all);
    let (verb, target) = (parts.method.clone(), parts.uri.to_string());
    let bucket = places.get("to").or_else(|| places.get("bucket")).cloned().unwrap_or_default();
    // Only calls that carry bytes of objects count as such.
    let is_bytes = query.iter().any(|(key, value)| key == "alt" && value == "media");
    let call = match call {
        Call::Read if !is_bytes => Call::Objects,
        Call::Upload if body.is_end_stream() => Call::Write,
        call => call,
    };
    let is_upload = call == Call::Upload;
    let ruled = {
        let served = Arc::clone(&served);
        let bucket = bucket.clone();
        tokio::task::spawn_blocking(move || served::Rules::of(&served.sim, call, &bucket)).await
    };
    let Ok(Ok(rules)) = ruled else {
        connection.cut();
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let limit = if is_upload { rules.cut.unwrap_or(LONGEST) } else { LONGEST };
    let (bytes, is_cut) = taken(body, limit).await;
    let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.unwrap_or("127.0.0.1").to_owned();
    let request = StorageRequest { places, query, headers: parts.headers, bytes, is_cut, host };
    let sent = request.bytes.len();
    let (worker, cut, is_lost) = (Arc::clone(&served), rules.cut, rules.is_lost);
    let answering = move || {
        let is_heard = worker.sim.linger(rules.slow_s);
        let answer = match rules.refusal(needs, &bucket) {
            Some(refusal) => refusal,
            None => method(&worker.sim, &request, &rules).unwrap_or_else(|e| {
                StorageAnswer::refused(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "backendError",
                    &format!("the simulator's disk failed: {e}"),
                )
            }),
        };
        (answer, is_heard)
    };
    let done = tokio::task::spawn_blocking(answering).await;
    let (answer, is_heard) = match done {
        Ok(done) => done,
        Err(_) => (StorageAnswer::empty(StatusCode::INTERNAL_SERVER_ERROR), false),
    };
    let is_silent = !is_heard || is_lost || is_upload && is_cut;
    let given = match &answer.body {
        AnswerBody::File(_, length) => cut.map_or(*length, |cut| cut.min(*length)),
        AnswerBody::Nothing | AnswerBody::Json(_) => 0,
    };
    let status = (!is_silent).then(|| answer.status.as_u16());
    let about = json!({ "sent": sent, "given": given });
    served.write_line(verb.as_str(), &target, &about, status);
    if is_silent {
        connection.cut();
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    response(answer, cut)
}

/// What of a body arrives before it is cut off, and whether it was.
async fn taken(mut body: Body, most: u64) -> (Bytes, bool) {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return (bytes.into(), true) };
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data);
        }
        if bytes.len() > most || bytes.len() == most && !body.is_end_stream() {
            bytes.truncate(most);
            return (bytes.into(), true);
        }
    }
    (bytes.into(), false)
}

fn response(answer: StorageAnswer, cut: Option<u64>) -> Response {
    let mut response = match answer.body {
        AnswerBody::Nothing => answer.status.into_response(),
        AnswerBody::Json(value) => super::request::sent(answer.status, &value),
        AnswerBody::File(file, left) => {
            let mut response = Response::new(Body::new(Sending { file, left, cut, end: None }));
            *response.status_mut() = answer.status;
            response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(left));
            response
        }
    };
    for (name, value) in answer.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Bytes of an object on their way. Where it is to be cut, the connection breaks there.
struct Sending {
    file: File,
    left: u64,
    cut: Option<u64>,
    /// Until when what was sent is on its way.
    end: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl http_body::Body for Sending {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        if self.cut == Some(0) {
            // What was sent before arrives.
            let end = self.end.get_or_insert_with(|| Box::pin(tokio::time::sleep(FLUSH)));
            if end.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            return Poll::Ready(Some(Err(io::Error::from(io::ErrorKind::ConnectionReset))));
        }
        let most = self.left.min(self.cut.unwrap_or(u64::MAX));
        let mut piece = vec![0; usize::try_from(most).unwrap_or(PIECE).min(PIECE)];
        let read = match self.file.read(&mut piece) {
            Ok(0) => return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into()))),
            Ok(read) => read,
            Err(e) => return Poll::Ready(Some(Err(e))),
        };
        piece.truncate(read);
        self.left -= read as u64;
        self.cut = self.cut.map(|cut| cut - read as u64);
        Poll::Ready(Some(Ok(Frame::data(piece.into()))))
    }
}
