//! All routes, one resource after the other: a new one is a file and a line here.

use super::route::Route;
use super::{
    acts, cloudmesh, curve, events, health, hosts, jobs, kind_lists, logs, metrics, openapi, plan,
    queues, session, submit, targets, usage, users,
};

/// All routes.
pub(super) fn all() -> Vec<Route> {
    let resources = [
        health::routes,
        openapi::routes,
        metrics::routes,
        session::routes,
        jobs::routes,
        submit::routes,
        logs::routes,
        curve::routes,
        acts::routes,
        queues::routes,
        targets::routes,
        hosts::routes,
        users::routes,
        plan::routes,
        usage::routes,
        events::routes,
        kind_lists::routes,
        cloudmesh::routes,
    ];
    resources.into_iter().flat_map(|routes| routes()).collect()
}
