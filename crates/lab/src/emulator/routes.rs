//! The routes of the API as one table, and the way of a request through it: parsed by axum, answered on a
//! thread that may block, written down, sent.
//!
//! A new method of the API is a line in [`BELOW_A_ZONE`] and a function in `api`.

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::connect_info::ConnectInfo;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{self, MethodFilter};

use super::request::{ApiRequest, Connection, LONGEST_BODY, sent};
use super::{Reaction, Served, accounts, api, storage};
use crate::sim::SimCloud;

/// What a method of the API does: it asks the simulator, and may wait for it.
pub(super) type Handler = fn(&SimCloud, &ApiRequest) -> api::Answer;

/// The versions that have everything; `v1` has the zones only.
const VERSIONS: &[&str] = &["v2", "v2alpha1"];
const ZONES: &str = "projects/{project}/locations";
/// Of Cloud Quotas.
const QUOTA_INFOS: &str = "projects/{project}/locations/global/services/{service}/quotaInfos";
/// Of `BigQuery`.
const QUERIES: &str = "bigquery/v2/projects/{project}/queries";

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
        .route("/compute/v1/projects/{project}", routing::get(handled(accounts::project)))
        .route("/compute/v1/projects/{project}/regions", routing::get(handled(accounts::regions)))
        .route(&format!("/v1/{QUOTA_INFOS}"), routing::get(handled(accounts::quota_infos)))
        .route(&format!("/{QUERIES}"), routing::post(handled(accounts::query)))
        .route(&format!("/{QUERIES}/{{job}}"), routing::get(handled(accounts::query_results)))
        .route("/storage/v1/b/{bucket}", routing::get(handled(api::bucket)))
        .route(&format!("/v1/{ZONES}"), routing::get(handled(api::zones)))
        .merge(storage::router());
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
