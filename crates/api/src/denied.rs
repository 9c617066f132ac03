//! What was refused to somebody who tried what they may not, for the journal.

use std::sync::{Arc, PoisonError};

use axum::body::Body;
use axum::http::{Method, Response, Uri};
use serde_json::json;

use tpu_core::text;
use tpu_ops::observe::journal::Event;

use super::failure::Failure;
use super::served::Served;
use super::takes::Room;

/// Whoever has shown nothing that names them.
pub(super) const SOMEBODY: &str = "somebody";
/// Of a path that is no route's the journal has so much.
const LONGEST_PATH: usize = 200;
/// The same of a reason.
const LONGEST_REASON: usize = 200;

/// A request that was refused, which the journal is to tell of; it travels with the answer.
#[derive(Clone, Debug)]
struct Denied {
    who: String,
    /// The route, as the table has it; none where it is no route's.
    at: Option<&'static str>,
    why: String,
    /// Whether somebody tried what they may not, and not merely too much.
    is_grave: bool,
}

/// The answer to a request that was not done. Where somebody tried what they may not, it is marked.
pub(super) fn refused(
    failure: &Failure,
    who: &str,
    (at, path): (Option<&'static str>, &str),
) -> Response<Body> {
    let mut response = failure.answer(path).response();
    if failure.is_denial() || leads_elsewhere(path) {
        let (why, is_grave) = (failure.message().to_owned(), failure.is_grave());
        response.extensions_mut().insert(Denied { who: who.to_owned(), at, why, is_grave });
    }
    response
}

/// Notes what an answer is marked with, before it leaves.
pub(super) async fn note(
    served: &Arc<Served>,
    (method, uri): (Method, Uri),
    response: &mut Response<Body>,
) {
    let Some(Denied { who, at, why, is_grave }) = response.extensions_mut().remove() else {
        return;
    };
    if are_many(served, (who.clone(), is_grave)) {
        return;
    }
    let journal = Arc::clone(served);
    let noted = served.beside(Room::Open, move || {
        let path =
            at.map_or_else(|| text::cut(uri.path(), LONGEST_PATH).to_string(), str::to_owned);
        let ctx = &journal.ctx;
        // A journal that cannot be written lets nobody in who was refused.
        drop(ctx.store.note(&[Event {
            at: ctx.clock.now(),
            actor: format!("api {who}"),
            account: None,
            user: None,
            job: None,
            kind: "denied".to_owned(),
            text: format!("{method} {path}: {}", text::cut(&why, LONGEST_REASON)),
            data: json!({"route": path, "method": method.as_str()}),
        }]));
    });
    // Whoever is refused is refused, whether there is room to note it or not.
    drop(noted.await);
}

/// Whether the journal has enough of somebody: of a flood it has the beginning of each minute. What others try meanwhile
/// stands there all the same, and so does what is graver than too much or too slow.
fn are_many(served: &Served, of: (String, bool)) -> bool {
    let mut all = served.denials.lock().unwrap_or_else(PoisonError::into_inner);
    all.entry(of).or_default().are_many(served.ctx.clock.now())
}

/// Whether a path is none that a program of good will makes: a part of it is to lead out of where it stands.
fn leads_elsewhere(path: &str) -> bool {
    let path = path.to_ascii_lowercase().replace("%2e", ".");
    ["%2f", "%5c", "%00"].iter().any(|sign| path.contains(sign))
        || path.split('/').any(|part| part == "..")
}
