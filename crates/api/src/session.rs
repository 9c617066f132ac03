//! `/api/v1/session`: how the page logs in, by a token or by a link, and out; and who asks.

use schemars::JsonSchema;
use serde::Deserialize;

use tpu_core::model::token::Rights;
use tpu_ops::front::sessions::{self, Session};
use tpu_wire::tokens::SessionDocument;
use tpu_wire::words::Word;

use super::answer::Answer;
use super::asked::Asked;
use super::cookie;
use super::failure::Failure;
use super::route::{Gives, Route, shape};
use super::takes::Needs;
use super::who;

/// What a browser logs in with: one of both.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LogIn {
    /// A token.
    token: Option<String>,
    /// The code of a link that `tpu serve --open` has printed.
    code: Option<String>,
}

/// What is done with sessions.
pub(super) fn routes() -> Vec<Route> {
    let session = Gives::Json(shape::<SessionDocument<'_>>);
    vec![
        Route::get("/api/v1/session", "Says who asks, and what they may", session, asks),
        Route::post("/api/v1/session", "Logs a browser in: sets its cookie", session, begin)
            .takes(shape::<LogIn>)
            .needs(Needs::Nothing),
        Route::post("/api/v1/session/end", "Logs a browser out", session, end).needs(Needs::Seeing),
    ]
}

fn document(name: Option<&str>, rights: &Rights, csrf: Option<&str>) -> Answer {
    Answer::document(&SessionDocument {
        name,
        role: Word(rights.role),
        users: &rights.users,
        targets: rights.may_use_targets(),
        only_on: rights.only_on.patterns(),
        csrf,
        version: env!("CARGO_PKG_VERSION"),
    })
}

#[expect(clippy::unnecessary_wraps, reason = "as all routes are")]
fn asks(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let csrf = asked.who.session.as_ref().map(|session| session.csrf.as_str());
    let name = asked.who.name.strip_prefix("token ");
    Ok(document(name, &asked.who.rights, csrf))
}

fn begin(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let LogIn { token, code } = asked.json()?;
    let (ctx, served) = (asked.ctx, asked.served);
    let begun = match (token, code) {
        (Some(token), None) => sessions::begin(ctx, token.trim())?,
        (None, Some(code)) if served.links.take(ctx, &code) => sessions::begin_by_link(ctx)?,
        (None, Some(_)) => {
            let what = "this link has been used, or is too old";
            return Err(who::opens_nothing(ctx, &served.strangers, what));
        }
        (Some(_), Some(_)) | (None, None) => {
            let error = tpu_ops::Error::usage("one of token and code logs in");
            return Err(error.hint("as in {\"token\": \"tpu_…\"}").into());
        }
    };
    let Some((Session { token, csrf, .. }, cookie)) = begun else {
        return Err(who::opens_nothing(ctx, &served.strangers, "this token opens nothing"));
    };
    let answer = document(Some(&token.name), &token.rights, Some(&csrf));
    Ok(with_cookie(asked, answer, Some(&cookie)))
}

fn end(asked: &Asked<'_>) -> Result<Answer, Failure> {
    if let Some(session) = &asked.who.session {
        sessions::end(asked.ctx, session)?;
    }
    Ok(with_cookie(asked, document(None, &Rights::none(), None), None))
}

/// The answer that sets the cookie of a session, or takes it away.
fn with_cookie(asked: &Asked<'_>, answer: Answer, cookie: Option<&str>) -> Answer {
    let all = cookie::settings(asked.headers, cookie, asked.served.is_secure);
    all.into_iter().fold(answer, |answer, set| answer.header("set-cookie", set))
}
