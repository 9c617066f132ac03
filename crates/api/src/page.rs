//! The page: what a browser shows of all this. It is made of the sources in `web/` by `./x page`, and stands in the program
//! as it leaves: nothing of it comes from elsewhere, and it is told what it may do by a policy that lets nothing else in.
//!
//! The names of its parts say their contents, so that a browser keeps them for ever; the page itself is asked for anew each
//! time, and is the same as long as its `ETag` is.

use std::io::Read as _;
use std::sync::OnceLock;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::{HeaderMap, Response};
use axum::routing::{MethodFilter, on};
use flate2::read::GzDecoder;

use tpu_core::text::fnv1a;
use tpu_ops::Error;

use super::answer::Answer;
use super::failure::Failure;

/// What the page may do: use what this server has, and ask it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What it does not need, so that nothing that comes in through it has it.
const PERMISSIONS: &str = "camera=(), geolocation=(), microphone=(), payment=(), usb=()";

/// A part of the page.
struct Part {
    /// What it is called.
    name: &'static str,
    /// What kind of content it is.
    kind: &'static str,
    /// As `build.rs` has packed it.
    packed: &'static [u8],
    unpacked: OnceLock<Bytes>,
}

/// Declares the parts that `./x page` makes.
macro_rules! parts {
    ($($name:literal: $kind:literal),+ $(,)?) => {
        [$(Part {
            name: $name,
            kind: $kind,
            packed: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".gz")),
            unpacked: OnceLock::new(),
        }),+]
    };
}

static PARTS: [Part; 5] = parts! {
    "index.html": "text/html; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "manifest.json": "application/manifest+json",
};

impl Part {
    /// The version, by the contents.
    fn tag(&self) -> String {
        format!("\"{:x}\"", fnv1a(self.packed.iter().copied()))
    }

    /// For whoever takes nothing packed; made once.
    fn unpacked(&self) -> Bytes {
        let unpack = || {
            let mut bytes = Vec::new();
            // The program has packed it itself.
            drop(GzDecoder::new(self.packed).read_to_end(&mut bytes));
            bytes.into()
        };
        self.unpacked.get_or_init(unpack).clone()
    }

    fn answer(&self, headers: &HeaderMap, keeps: &str) -> Answer {
        let said = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
        let tag = self.tag();
        let mut known =
            said("if-none-match").split(',').map(|known| known.trim().trim_start_matches("W/"));
        let answer = if known.any(|known| known == tag) {
            Answer::unchanged(&tag)
        } else if said("accept-encoding").contains("gzip") {
            let packed = Answer::bytes(Bytes::from_static(self.packed));
            packed.kind(self.kind).header("content-encoding", "gzip")
        } else {
            Answer::bytes(self.unpacked()).kind(self.kind)
        };
        let answer = answer.header("etag", tag).header("cache-control", keeps);
        answer
            .header("vary", "Accept, Accept-Encoding")
            .header("content-security-policy", POLICY)
            .header("permissions-policy", PERMISSIONS)
            .header("cross-origin-opener-policy", "same-origin")
            .header("cross-origin-resource-policy", "same-origin")
    }
}

/// The page itself, for a browser; nothing for whoever does not ask for one.
pub(super) fn page(headers: &HeaderMap) -> Option<Answer> {
    let accepts = headers.get("accept").and_then(|kinds| kinds.to_str().ok()).unwrap_or_default();
    let [page, ..] = &PARTS;
    accepts.contains("text/html").then(|| page.answer(headers, "no-cache"))
}

/// Adds what the page consists of: anybody may have it, and it says nothing of anybody.
pub(super) fn add_to(router: Router) -> Router {
    let answered = |Path((_, name)): Path<(String, String)>, headers: HeaderMap| async move {
        part(&name, &headers)
    };
    router.route("/page/{version}/{name}", on(MethodFilter::GET, answered))
}

fn part(name: &str, headers: &HeaderMap) -> Response<Body> {
    let [_, parts @ ..] = &PARTS;
    if let Some(part) = parts.iter().find(|part| part.name == name) {
        return part.answer(headers, "public, max-age=31536000, immutable").response();
    }
    let error = Error::not_found(format!("the page has no part {name}")).hint("load it anew");
    Failure::from(error).answer(&format!("/page/{name}")).response()
}
