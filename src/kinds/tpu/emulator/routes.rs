//! The routes of the API as one table, and the way of a request through it: parsed by axum, answered on a
//! thread that may block, written down, sent.
//!
//! A new method of the API is a line in [`BELOW_A_ZONE`] and a function in `api`.

use std::collections::HashMap;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::body::{Bytes, HttpBody as _};
use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::extract::{
    DefaultBodyLimit, FromRequest, FromRequestParts as _, Query, RawPathParams, Request, State,
};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{self, MethodFilter};
use axum::serve::IncomingStream;
use serde_json::{Value, json};

use super::{Reaction, Served, api};
use crate::kinds::tpu::sim::SimCloud;

/// The longest body that is read.
const LONGEST_BODY: usize = 4 << 20;

/// What a method of the API does: it asks the simulator, and may wait for it.
pub(super) type Handler = fn(&SimCloud, &ApiRequest) -> api::Answer;

/// The versions that have everything; `v1` has the zones only.
const VERSIONS: &[&str] = &["v2", "v2alpha1"];
const ZONES: &str = "projects/{project}/locations";

/// Every method below `/VERSION/projects/{project}/locations/{zone}/`. One that a colon follows (`nodes/n1:start`)
/// is taken apart by the handler of its resource.
const BELOW_A_ZONE: &[(MethodFilter, &str, Handler)] = &[
    (MethodFilter::GET, "nodes", api::nodes),
    (MethodFilter::POST, "nodes", api::create),
    (MethodFilter::GET, "nodes/{name}", api::describe),
    (MethodFilter::DELETE, "nodes/{name}", api::delete),
    (MethodFilter::PATCH, "nodes/{name}", api::patch),
    (MethodFilter::POST, "nodes/{name}", api::act_on_node),
    (MethodFilter::GET, "queuedResources", api::queued_resources),
    (MethodFilter::POST, "queuedResources", api::enqueue),
    (MethodFilter::GET, "queuedResources/{name}", api::queued_resource),
    (MethodFilter::DELETE, "queuedResources/{name}", api::dequeue),
    (MethodFilter::POST, "queuedResources/{name}", api::act_on_queued_resource),
    (MethodFilter::GET, "operations/{name}", api::operation),
    (MethodFilter::GET, "acceleratorTypes", api::types),
    (MethodFilter::GET, "acceleratorTypes/{name}", api::type_named),
    (MethodFilter::GET, "runtimeVersions", api::versions),
    (MethodFilter::GET, "runtimeVersions/{name}", api::version_named),
];

/// The whole API.
pub(super) fn router(served: Arc<Served>) -> Router {
    let mut router = Router::new()
        .route("/compute/v1/projects/{project}", routing::get(handled(api::project)))
        .route(&format!("/v1/{ZONES}"), routing::get(handled(api::zones)));
    for version in VERSIONS {
        router = router.route(&format!("/{version}/{ZONES}"), routing::get(handled(api::zones)));
        for (method, below, handler) in BELOW_A_ZONE {
            let path = format!("/{version}/{ZONES}/{{zone}}/{below}");
            router = router.route(&path, routing::on(*method, handled(*handler)));
        }
    }
    router
        .fallback(handled(api::no_such_method))
        .method_not_allowed_fallback(handled(api::no_such_method))
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .with_state(served)
}

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

impl FromRequest<Arc<Served>> for ApiRequest {
    type Rejection = Response;

    async fn from_request(request: Request, served: &Arc<Served>) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        // A path that no route has, or that is no text, has no places.
        let places = RawPathParams::from_request_parts(&mut parts, served).await;
        let places = places.iter().flatten().map(|(name, is)| (name.to_owned(), is.to_owned()));
        let places = places.collect();
        let query = Query::try_from_uri(&parts.uri).map_or_else(|_| Vec::new(), |Query(all)| all);
        let (method, target) = (parts.method.clone(), parts.uri.to_string());
        // A length that is announced is believed before a byte of it is read.
        if body.size_hint().lower() > LONGEST_BODY as u64 {
            return Err(refused(StatusCode::PAYLOAD_TOO_LARGE, "too long"));
        }
        let body = Bytes::from_request(Request::from_parts(parts, body), served).await;
        let body = body.map_err(|why| refused(why.status(), &why.body_text()))?;
        Ok(Self { method, target, body, places, query })
    }
}

/// An answer on its way.
type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A handler of the table as one of axum's.
fn handled(
    handler: Handler,
) -> impl Fn(State<Arc<Served>>, ConnectInfo<Connection>, ApiRequest) -> Answering + Clone + Send + Sync
{
    move |State(served), ConnectInfo(connection), request| {
        Box::pin(async move {
            let answering = move || served.react(&request, handler);
            match tokio::task::spawn_blocking(answering).await {
                Ok(Reaction::Answer(status, body)) => sent(status, &body),
                // A handler that has panicked answers nobody either.
                Ok(Reaction::Hang) | Err(_) => {
                    connection.cut();
                    StatusCode::INTERNAL_SERVER_ERROR.into_response()
                }
            }
        })
    }
}

/// The answer to what is no request of the API.
fn refused(status: StatusCode, message: &str) -> Response {
    sent(status, &json!({ "error": { "code": status.as_u16(), "message": message } }))
}

fn sent(status: StatusCode, body: &Value) -> Response {
    let json = [(header::CONTENT_TYPE, "application/json; charset=UTF-8")];
    (status, json, body.to_string()).into_response()
}

/// The connection that a request came by.
#[derive(Clone)]
pub(super) struct Connection(Option<Arc<TcpStream>>);

impl Connection {
    /// Ends it, so that no answer arrives: a server that has crashed looks the same from outside.
    fn cut(&self) {
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
