//! Who asks, and whether they may: the one place where a request is let through.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use axum::http::{HeaderMap, Method, StatusCode, Uri};

use tpu_core::model::ids::UserName;
use tpu_core::model::time::Timestamp;
use tpu_core::model::token::Rights;
use tpu_ops::Ctx;
use tpu_ops::front::sessions::Session;
use tpu_ops::front::tokens;

use super::connection::Door;
use super::cookie;
use super::failure::Failure;
use super::takes::Needs;

/// Whoever asks.
#[derive(Clone, Debug)]
pub(super) struct Who {
    /// As the journal names them.
    pub(super) name: String,
    /// What they may.
    pub(super) rights: Rights,
    /// The hash of the token that was shown, if one was.
    pub(super) token: Option<String>,
    /// The session by which it was shown, where a page asks.
    pub(super) session: Option<Session>,
}

impl Who {
    /// Refuses where a user's jobs may not be seen.
    pub(super) fn sees(&self, user: &UserName) -> Result<(), Failure> {
        if self.rights.may_see(user) {
            return Ok(());
        }
        let what = format!("{} may not see {user}'s jobs", self.name);
        Err(Failure::forbidden(what, "it takes a token that is about that user, or an admin's"))
    }

    /// Refuses where a user's jobs may not be acted on.
    pub(super) fn acts_for(&self, user: &UserName) -> Result<(), Failure> {
        may(self, Needs::Acting, Some(user))
    }

    /// Refuses where targets may not be made, kept or given back.
    pub(super) fn uses_targets(&self) -> Result<(), Failure> {
        may(self, Needs::Targets, None)
    }

    /// Refuses where not everybody's jobs may be seen: targets and machines say whose are there.
    pub(super) fn sees_everybody(&self) -> Result<(), Failure> {
        if self.rights.sees_everybody() {
            return Ok(());
        }
        let what = format!("{} may not see who is where", self.name);
        Err(Failure::forbidden(what, "it takes a token that is not about some users alone"))
    }
}

/// A token that is shown wrongly is answered so often a minute, and then told to come later; so many refusals the journal
/// has of a minute.
const A_MINUTE: usize = 30;

/// What happened lately that should not.
#[derive(Debug, Default)]
pub(super) struct Lately(Mutex<VecDeque<Timestamp>>);

impl Lately {
    /// One more. Whether there were too many within a minute.
    pub(super) fn are_many(&self, now: Timestamp) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while seen.front().is_some_and(|at| now.seconds_since(*at) >= 60) {
            seen.pop_front();
        }
        if seen.len() >= A_MINUTE {
            return true;
        }
        seen.push_back(now);
        false
    }
}

/// What a token opens that nobody has made, or that is worth nothing any more: after many of them, later.
pub(super) fn opens_nothing(ctx: &Ctx, strangers: &Lately, what: &str) -> Failure {
    let failure = Failure::unauthorized(what);
    if strangers.are_many(ctx.clock.now()) {
        failure.status(StatusCode::TOO_MANY_REQUESTS).header("retry-after", "60")
    } else {
        failure
    }
}

/// Who asks for the route of this method and path, by the token that is shown, or by the session of a page. Whoever comes by
/// the socket needs neither.
pub(super) fn who(
    (ctx, at): (&Ctx, (&Method, &str)),
    strangers: &Lately,
    (door, headers, uri): (Door, &HeaderMap, &Uri),
) -> Result<Who, Failure> {
    // What stands in an address ends in logs and histories.
    let in_query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes())
        .any(|(name, value)| tokens::is_like(&value) || matches!(&*name, "token" | "access_token"));
    if in_query {
        return Err(Failure::unauthorized("a token in an address is not taken"));
    }
    let shown = headers.get("authorization").and_then(|value| value.to_str().ok());
    let Some(shown) = shown else {
        return match door {
            Door::Socket => {
                let rights = Rights::all();
                Ok(Who { name: "socket".to_owned(), rights, token: None, session: None })
            }
            Door::Port => match cookie::session(ctx, at, headers) {
                Ok(Some(session)) => Ok(Who {
                    name: format!("token {}", session.token.name),
                    rights: session.token.rights.clone(),
                    token: Some(session.token.hash.clone()),
                    session: Some(session),
                }),
                Ok(None) => Err(Failure::unauthorized("no token was shown")),
                Err(cookie::Unfit::OpensNothing) => {
                    Err(opens_nothing(ctx, strangers, "this session is over"))
                }
                Err(cookie::Unfit::Failed(failure)) => Err(failure),
            },
        };
    };
    let token = shown.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let found = match token {
        None => Ok(None),
        Some((_, token)) => tokens::find(ctx, token.trim()),
    };
    match found {
        Ok(Some(token)) => Ok(Who {
            name: format!("token {}", token.name),
            rights: token.rights,
            token: Some(token.hash),
            session: None,
        }),
        Ok(None) => Err(opens_nothing(ctx, strangers, "this token opens nothing")),
        Err(error) => Err(error.into()),
    }
}

/// Whether somebody may use a route, and of the user whom its path names.
pub(super) fn may(who: &Who, needs: Needs, user: Option<&UserName>) -> Result<(), Failure> {
    let Who { name, rights, .. } = who;
    match needs {
        Needs::Nothing => Ok(()),
        Needs::Seeing => user.map_or(Ok(()), |user| who.sees(user)),
        Needs::Acting if user.map_or(rights.may_act(), |user| rights.may_act_for(user)) => Ok(()),
        Needs::Acting => {
            let whose = user.map(|user| format!("{user}'s ")).unwrap_or_default();
            let hint = "it takes an operator's token that is about that user, or an admin's";
            Err(Failure::forbidden(format!("{name} may not act on {whose}jobs"), hint))
        }
        Needs::Targets if rights.may_use_targets() => Ok(()),
        Needs::Targets => Err(Failure::forbidden(
            format!("{name} may not make, reserve or give back targets"),
            "it takes a token made with --targets, or an admin's",
        )),
        Needs::Administering if rights.may_administer() => Ok(()),
        Needs::Administering => Err(Failure::forbidden(
            format!("{name} may not change what is everybody's"),
            "it takes an admin's token",
        )),
    }
}
