//! What every request must have, whatever it asks for, and what becomes of it: the way from a connection to the function
//! of a route and back.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request};
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::Redirect;
use axum::routing::{MethodFilter, on};

use tpu_core::model::ids::UserName;
use tpu_core::model::token::Rights;
use tpu_ops::Error;

use super::answer::Answer;
use super::asked::{self, Asked};
use super::connection::Door;
use super::denied::{self, SOMEBODY, refused};
use super::failure::Failure;
use super::limited;
use super::page;
use super::route::{Either, Route, Run, Versions};
use super::routes;
use super::served::Served;
use super::takes::{Needs, Room};
use super::who::{self, Who};

/// Bytes of a body.
const LARGEST_BODY: usize = 1 << 20;
/// The same where none is read.
const LARGEST_OF_NONE: usize = 1 << 10;
/// A body has to be there within this.
const SLOWEST_BODY: Duration = Duration::from_secs(10);

/// Where a browser looks that knows Cloudmesh's service.
const REDOC: &str = "/redoc";

/// Headers of every answer: nothing of it is kept, shown in a frame, or taken for something else.
const HEADERS: [(&str, &str); 5] = [
    ("cache-control", "no-store"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
];

/// All routes as a service.
pub(super) fn router(served: &Arc<Served>) -> Router {
    let mut router = Router::new();
    for route in routes::all() {
        let filter = MethodFilter::try_from(route.method.clone()).unwrap_or(MethodFilter::GET);
        let (served, path, route) = (Arc::clone(served), route.path, Arc::new(route));
        let handler = move |params: Result<RawPathParams, _>, request: Request| {
            let params = params.map(|params| {
                let each = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
                each.collect::<Vec<(String, String)>>()
            });
            let (served, route) = (Arc::clone(&served), Arc::clone(&route));
            async move {
                match params {
                    Ok(params) => answered(served, route, params, request).await,
                    Err::<_, RawPathParamsRejection>(_) => odd_path(request.uri()),
                }
            }
        };
        router = router.route(path, on(filter, handler.clone()));
        // Cloudmesh's own paths end in one.
        if path.starts_with("/cloudmesh") {
            router = router.route(&format!("{path}/"), on(filter, handler));
        }
    }
    let served = Arc::clone(served);
    page::add_to(router)
        .route(REDOC, on(MethodFilter::GET, || async { Redirect::permanent("/docs") }))
        .fallback(|request: Request| async move { nowhere(request.uri()) })
        .method_not_allowed_fallback(|request: Request| async move {
            other_method(request.method(), request.uri())
        })
        .layer(middleware::from_fn(move |request: Request, next: Next| {
            let served = Arc::clone(&served);
            async move {
                let (method, path) = (request.method().clone(), request.uri().path().to_owned());
                let of_all = Arc::clone(&served);
                // By itself: whoever hangs up is refused and noted all the same.
                let answering = tokio::spawn(async move {
                    let (method, uri) = (request.method().clone(), request.uri().clone());
                    let mut response = match meant_for_us(&of_all, &request) {
                        Ok(()) => next.run(request).await,
                        Err(failure) => refused(&failure, SOMEBODY, (None, uri.path())),
                    };
                    denied::note(&of_all, (method, uri), &mut response).await;
                    response
                });
                let mut response = answering.await.unwrap_or_else(|_| {
                    let error = Error::failed("an error inside tpu").hint("please report it");
                    refused(&error.into(), SOMEBODY, (None, &path))
                });
                let headers = response.headers_mut();
                for (name, value) in HEADERS {
                    headers.entry(name).or_insert(HeaderValue::from_static(value));
                }
                served.counted.add(method.as_str(), response.status().as_u16());
                response
            }
        }))
}

/// Headers that say who asks, what for, and under which condition: where one stands twice, others read another one than we do.
const ONCE: [&str; 8] = [
    "host",
    "authorization",
    "origin",
    "content-type",
    "idempotency-key",
    "if-match",
    "x-tpu-csrf",
    "sec-fetch-site",
];

/// Refuses a request in which a header stands twice of which one counts.
fn says_once(headers: &HeaderMap) -> Result<(), Failure> {
    let is_twice = |name: &&str| headers.get_all(*name).iter().nth(1).is_some();
    match ONCE.into_iter().find(is_twice) {
        None => Ok(()),
        Some(name) => {
            let error = Error::usage(format!("the header {name} stands there twice"));
            Err(error.hint("send it once").into())
        }
    }
}

/// Refuses what a browser was talked into sending: under another name than ours, or from a page of somebody else's.
fn meant_for_us(served: &Served, request: &Request) -> Result<(), Failure> {
    says_once(request.headers())?;
    if door(request) == Door::Socket {
        return Ok(());
    }
    let headers = request.headers();
    let host = headers.get("host").and_then(|host| host.to_str().ok());
    let named = request.uri().authority().map(ToString::to_string);
    let host = named.as_deref().or(host).unwrap_or_default();
    if !served.is_called(host) {
        let error = Error::refused(format!("this server is not called {host:?}"))
            .hint("name it as it is called here: tpu serve --host NAME");
        return Err(Failure::from(error).status(StatusCode::MISDIRECTED_REQUEST));
    }
    let origin = headers.get("origin").map(|origin| origin.to_str().unwrap_or("?"));
    let Some(origin) = origin else { return Ok(()) };
    let from = origin.split_once("://").map_or(origin, |(_, from)| from);
    if from.eq_ignore_ascii_case(host) {
        return Ok(());
    }
    let what = format!("pages of {origin} may not ask");
    Err(Failure::forbidden(what, "ask from a program, or from a page of this server"))
}

fn door(request: &Request) -> Door {
    // What came by none that we know is a stranger.
    request.extensions().get::<Door>().copied().unwrap_or(Door::Port)
}

/// A request to a route, from its first byte to its answer.
async fn answered(
    served: Arc<Served>,
    route: Arc<Route>,
    params: Vec<(String, String)>,
    request: Request,
) -> Response<Body> {
    let door = door(&request);
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    // Who may not ask at all is not listened to any longer.
    let (headers, uri) = (parts.headers, parts.uri);
    let asking =
        (Arc::clone(&served), Arc::clone(&route), headers.clone(), uri.clone(), params.clone());
    let at = (Some(route.path), &*path);
    let room = if route.room == Room::Open { Room::Open } else { Room::Usual };
    let let_in = served.beside(room, move || {
        let (served, route, headers, uri, params) = asking;
        let_in(&served, &route, (door, &headers, &uri), &params)
    });
    let who = match let_in.await {
        Ok(Ok(who)) => who,
        Ok(Err((name, failure))) => return refused(&failure, &name, at),
        Err(failure) => return refused(&failure, SOMEBODY, at),
    };
    let body = match whole(body, &route).await {
        Ok(body) => body,
        Err(failure) => return refused(&failure, &who.name, at),
    };
    let (asked_path, room) = (path.clone(), Arc::clone(&served));
    let work = room.beside(route.room, move || {
        let done = done(&served, &route, (&who, &headers, &body), (params, &uri));
        done.unwrap_or_else(|failure| {
            let is_stranger = !who.rights.sees_everybody();
            let failure = if is_stranger { failure.for_a_stranger() } else { failure };
            refused(&failure, &who.name, (Some(route.path), &asked_path))
        })
    });
    work.await.unwrap_or_else(|failure| refused(&failure, SOMEBODY, at))
}

/// The body of a request, if it is there in time and no larger than it may be.
async fn whole(body: Body, route: &Route) -> Result<Bytes, Failure> {
    let most = if route.body.is_some() { LARGEST_BODY } else { LARGEST_OF_NONE };
    let read = axum::body::to_bytes(body, most);
    match tokio::time::timeout(SLOWEST_BODY, read).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => {
            let error = Error::usage("the body is too large")
                .hint("send 1 MiB at most, and none where none is read");
            Err(Failure::from(error).status(StatusCode::PAYLOAD_TOO_LARGE))
        }
        Err(_) => {
            let error = Error::usage("the body did not come").hint("send it within ten seconds");
            Err(Failure::from(error).status(StatusCode::REQUEST_TIMEOUT))
        }
    }
}

/// Does what a route does, in the name of who asks.
fn done(
    served: &Arc<Served>,
    route: &Route,
    (who, headers, body): (&Who, &HeaderMap, &Bytes),
    (params, uri): (Vec<(String, String)>, &Uri),
) -> Result<Response<Body>, Failure> {
    let query = uri.query().unwrap_or_default();
    let words = asked::words((route.path, route.parameters), params, query)?;
    if route.method != Method::GET
        && route.versions != Versions::Heeded
        && headers.contains_key("if-match")
    {
        let error = Error::usage("If-Match: nothing says which version this is")
            .hint("leave it out; jobs have versions, by their ETag");
        return Err(error.into());
    }
    let is_trial = words.iter().any(|(name, value)| name == "dry_run" && value == "true");
    let ctx = served.ctx_of(who, is_trial);
    let asked = Asked { ctx: &ctx, served, who, words: &words, headers, body };
    limited::within(&asked, route)?;
    let answer = match route.run {
        Run::Whole(run) => run(&asked).map(Answer::response),
        Run::Either(run) => run(&asked).map(|either| match either {
            Either::Whole(answer) => answer.response(),
            Either::Flowing(flow) => flow.response(),
        }),
    };
    if route.method != Method::GET {
        served.looks.after_change(&ctx);
    }
    let changed = StatusCode::PRECONDITION_FAILED;
    answer.map_err(|why| if ctx.insisted.is_broken() { why.status(changed) } else { why })
}

/// Who asks, if they may; else as the journal calls them, and why not.
fn let_in(
    served: &Served,
    route: &Route,
    (door, headers, uri): (Door, &HeaderMap, &Uri),
    params: &[(String, String)],
) -> Result<Who, (String, Failure)> {
    if route.needs == Needs::Nothing {
        let rights = Rights::none();
        return Ok(Who { name: "nobody".to_owned(), rights, token: None, session: None });
    }
    let who = who::who(
        (&served.ctx, (&route.method, route.path)),
        &served.strangers,
        (door, headers, uri),
    )
    .map_err(|failure| (SOMEBODY.to_owned(), failure))?;
    let user = params.iter().find(|(name, _)| name == "user");
    let user = user.map(|(_, user)| UserName::from(user.as_str()));
    match who::may(&who, route.needs, user.as_ref()) {
        Ok(()) => Ok(who),
        Err(failure) => Err((who.name, failure)),
    }
}

fn odd_path(uri: &Uri) -> Response<Body> {
    let error =
        Error::usage("a part of the path is no text in UTF-8").hint("/docs says what there is");
    refused(&Failure::from(error), SOMEBODY, (None, uri.path()))
}

fn nowhere(uri: &Uri) -> Response<Body> {
    let error = Error::not_found(format!("there is nothing at {}", uri.path()))
        .hint("/docs says what there is");
    refused(&Failure::from(error), SOMEBODY, (None, uri.path()))
}

fn other_method(method: &Method, uri: &Uri) -> Response<Body> {
    let known = routes::all();
    let known = known.iter().filter(|route| is_path_of(route, uri.path()));
    let mut methods: Vec<&str> = known.map(|route| route.method.as_str()).collect();
    if uri.path().trim_end_matches('/') == REDOC {
        methods.push("GET");
    }
    let allowed = methods.join(", ");
    let error = Error::usage(format!("{method} is nothing that {} does", uri.path()))
        .hint(format!("as in: {allowed} {}; /docs says what it does", uri.path()));
    let failure = Failure::from(error).status(StatusCode::METHOD_NOT_ALLOWED);
    refused(&failure.header("allow", allowed), SOMEBODY, (None, uri.path()))
}

/// Whether a path is one of this route, whatever is filled in.
fn is_path_of(route: &Route, path: &str) -> bool {
    let mut parts = path.trim_end_matches('/').split('/');
    let mut own = route.path.trim_end_matches('/').split('/');
    let fits = own
        .by_ref()
        .all(|own| parts.next().is_some_and(|part| own.starts_with('{') || own == part));
    fits && parts.next().is_none()
}
