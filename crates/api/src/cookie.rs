//! The cookie of a session: how it is set, and when it is heeded. A browser sends it with whatever asks for this server, so
//! that it alone opens nothing:
//!
//! * the page says that it is the page by a header that no other site can send without being asked about it (and this
//!   server answers no such question);
//! * what changes something shows what belongs to the session, which stands in no cookie;
//! * it is about `/api/v1`, and about the descriptions of the API, which a browser opens as they are: those are the same
//!   for everybody who may see anything, and no other site can read them.

use axum::http::{HeaderMap, Method, StatusCode};

use tpu_ops::front::sessions::{self, Session};
use tpu_ops::{Ctx, Error};

use super::failure::Failure;

/// By this header the page says that it is the page.
const PAGE: &str = "x-tpu-page";
/// By this one it shows what belongs to its session.
const CSRF: &str = "x-tpu-csrf";
/// Where browsers send it for the page.
const PATHS: &str = "/api/v1/";
/// What a browser opens without the page; it is sent there as well.
const DESCRIPTIONS: [&str; 2] = ["/docs", "/openapi.json"];

/// Why a cookie is not heeded.
pub(super) enum Unfit {
    /// It is none of ours, or is worth nothing any more.
    OpensNothing,
    /// Something else is wrong with the request.
    Failed(Failure),
}

/// The session of a request for the route of this method and path, if it shows one.
pub(super) fn session(
    ctx: &Ctx,
    (method, path): (&Method, &str),
    headers: &HeaderMap,
) -> Result<Option<Session>, Unfit> {
    let failed = |failure: Failure| Err(Unfit::Failed(failure));
    let of_page = path.starts_with(PATHS) && headers.contains_key(PAGE);
    let is_opened = *method == Method::GET && DESCRIPTIONS.contains(&path);
    let Some(cookie) = shown(headers).filter(|_| of_page || is_opened) else { return Ok(None) };
    let site = headers.get("sec-fetch-site").map(|site| site.to_str().unwrap_or("?"));
    // An address that a person types comes from no site.
    if site.is_some_and(|site| site != "same-origin" && !(is_opened && site == "none")) {
        let hint = "ask with a token from a program, or from a page of this server";
        return failed(Failure::forbidden("pages of other places may not use a session", hint));
    }
    let session = match sessions::of_cookie(ctx, cookie) {
        Ok(Some(session)) => session,
        Ok(None) => return Err(Unfit::OpensNothing),
        Err(error) => return failed(error.into()),
    };
    if matches!(*method, Method::GET | Method::HEAD) {
        return Ok(Some(session));
    }
    let csrf = headers.get(CSRF).and_then(|csrf| csrf.to_str().ok()).unwrap_or_default();
    match sessions::is_csrf_of(ctx, &session, csrf) {
        Ok(true) => Ok(Some(session)),
        Ok(false) => {
            let error = Error::refused("this change does not show that it comes from the page")
                .hint("X-Tpu-Csrf is what GET /api/v1/session says as `csrf`; or show a token");
            failed(Failure::from(error).status(StatusCode::FORBIDDEN))
        }
        Err(error) => failed(error.into()),
    }
}

/// What a browser has of this server: of several on one machine each has its own, by its port.
fn shown(headers: &HeaderMap) -> Option<&str> {
    let name = name(headers);
    let all = headers.get_all("cookie").into_iter().filter_map(|cookies| cookies.to_str().ok());
    let mut pairs =
        all.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.find(|(known, _)| known.trim() == name).map(|(_, value)| value.trim())
}

fn name(headers: &HeaderMap) -> String {
    let host = headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').map_or("", |(_, port)| port);
    let port: String = port.chars().filter(char::is_ascii_digit).collect();
    format!("tpu_session_{port}")
}

/// What sets the cookie of a session, or takes it away: one for each place where browsers send it.
pub(super) fn settings(headers: &HeaderMap, cookie: Option<&str>, is_secure: bool) -> Vec<String> {
    let (name, value) = (name(headers), cookie.unwrap_or_default());
    let age = if cookie.is_some() { sessions::LASTS_S } else { 0 };
    let secure = if is_secure { "; Secure" } else { "" };
    let paths = std::iter::once("/api/v1").chain(DESCRIPTIONS);
    let set = move |path| {
        format!("{name}={value}; Path={path}; Max-Age={age}; HttpOnly; SameSite=Strict{secure}")
    };
    paths.map(set).collect()
}
