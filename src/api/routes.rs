//! All routes, one resource after the other: a new one is a file and a line here.

use super::route::Route;
use super::{acts, board, events, health, jobs, lab, logs, metrics, openapi, queues};

/// All routes.
pub(super) fn all() -> Vec<Route> {
    let resources = [
        health::routes,
        openapi::routes,
        metrics::routes,
        jobs::routes,
        logs::routes,
        acts::routes,
        queues::routes,
        lab::routes,
        board::routes,
        events::routes,
    ];
    resources.into_iter().flat_map(|routes| routes()).collect()
}
