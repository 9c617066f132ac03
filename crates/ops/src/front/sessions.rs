//! Sessions of a browser: begun with a token, ended by whoever began them, and worth no more than the token is.
//!
//! ```text
//! cookie = session . since . hash of the token . HMAC-SHA256 of the three and of the token's record, by the account's key
//! ```
//! Nothing is kept of a session that is under way: the next server knows it as well. A token that is revoked, over or
//! changed takes its sessions with it. Of those that were ended before their time there is a list beside the key.

use ring::hmac;

use tpu_core::model::time::Timestamp;
use tpu_core::model::token::{Rights, Token};

use super::tokens::{self, EndedSession, TokenRequest};
use crate::base::account::LINK;
use crate::{Ctx, Error};

/// Random bytes by which a session is called.
const BYTES: usize = 16;
/// A session is over after so many seconds, whatever its token is worth.
pub const LASTS_S: i64 = 30 * 24 * 60 * 60;
/// One that a link began, and the token that it got.
const OF_A_LINK_S: i64 = 24 * 60 * 60;

/// A session.
#[derive(Clone, Debug)]
pub struct Session {
    /// What it is called; no secret.
    pub id: String,
    /// Since when.
    pub since: Timestamp,
    /// The token with which it was begun.
    pub token: Token,
    /// What each change shows beside the cookie, which other pages cannot know.
    pub csrf: String,
}

/// A session that begins, and its cookie: `None` where the token opens nothing.
pub fn begin(ctx: &Ctx, shown: &str) -> Result<Option<(Session, String)>, Error> {
    let Some(token) = tokens::find(ctx, shown)? else { return Ok(None) };
    let Some(key) = tokens::key_of_account(ctx)? else { return Ok(None) };
    let mut bytes = [0; BYTES];
    ctx.random.fill(&mut bytes);
    let (id, since) = (tokens::in_hex(&bytes), ctx.clock.now());
    let signature = tokens::in_hex(hmac::sign(&key, &said(&id, since, &token)).as_ref());
    let cookie = format!("{id}.{}.{}.{signature}", since.as_second(), token.hash);
    let csrf = csrf(&key, &id);
    Ok(Some((Session { id, since, token, csrf }, cookie)))
}

/// The same for whoever came by a link that the account itself has made: all that the account may, for a day. It gets a
/// token of its own, so that it is listed and can be taken back.
pub fn begin_by_link(ctx: &Ctx) -> Result<Option<(Session, String)>, Error> {
    let mut bytes = [0; 4];
    ctx.random.fill(&mut bytes);
    let name = format!("{LINK}{}", tokens::in_hex(&bytes));
    let expires = Some(ctx.clock.now().plus_seconds(OF_A_LINK_S));
    let (_, secret) = tokens::create(ctx, &TokenRequest { name, rights: Rights::all(), expires })?;
    begin(ctx, &secret)
}

/// The session of a cookie, if it is one of ours and still holds.
pub fn of_cookie(ctx: &Ctx, cookie: &str) -> Result<Option<Session>, Error> {
    let mut parts = cookie.splitn(4, '.');
    let mut part = || parts.next().unwrap_or_default();
    let (id, since, hash, signature) = (part(), part(), part(), part());
    let (Ok(since), Some(signature)) = (since.parse::<i64>(), bytes(signature)) else {
        return Ok(None);
    };
    let since = Timestamp::from_second(since);
    let now = ctx.clock.now();
    if now >= since.plus_seconds(LASTS_S) {
        return Ok(None);
    }
    let Some(key) = tokens::key_of_account(ctx)? else { return Ok(None) };
    let file = tokens::read(ctx)?;
    let token = file.tokens.into_iter().find(|token| token.hash == hash && token.holds(now));
    let Some(token) = token else { return Ok(None) };
    // Whoever writes another right into the record has no key to sign it with.
    let is_ours = hmac::verify(&key, &said(id, since, &token), &signature).is_ok();
    if !is_ours || file.ended.iter().any(|ended| ended.session == id) {
        return Ok(None);
    }
    Ok(Some(Session { id: id.to_owned(), since, token, csrf: csrf(&key, id) }))
}

/// Whether a change shows what belongs to its session.
pub fn is_csrf_of(ctx: &Ctx, session: &Session, shown: &str) -> Result<bool, Error> {
    let Some(key) = tokens::key_of_account(ctx)? else { return Ok(false) };
    let shown = bytes(shown).unwrap_or_default();
    Ok(hmac::verify(&key, &csrf_said(&session.id), &shown).is_ok())
}

/// Ends a session: its cookie opens nothing any more, and neither does the token that a link has got.
pub fn end(ctx: &Ctx, session: &Session) -> Result<(), Error> {
    let name = &session.token.name;
    tokens::change(ctx, |file| {
        let until = session.since.plus_seconds(LASTS_S);
        let ended = EndedSession { session: session.id.clone(), until };
        let is_of_link = |token: &Token| name.starts_with(LINK) && token.hash == session.token.hash;
        tokens::take_back(ctx, file, is_of_link, Some(ended))?;
        Ok(((), format!("{name} logged out of the page")))
    })
}

/// What the signature of a cookie is of.
fn said(id: &str, since: Timestamp, token: &Token) -> Vec<u8> {
    let mut said = format!("session\n{id}\n{}\n", since.as_second()).into_bytes();
    said.extend(serde_json::to_vec(token).unwrap_or_default());
    said
}

fn csrf_said(id: &str) -> Vec<u8> {
    format!("csrf\n{id}").into_bytes()
}

fn csrf(key: &hmac::Key, id: &str) -> String {
    tokens::in_hex(hmac::sign(key, &csrf_said(id)).as_ref())
}

/// Bytes that are written in hexadecimal.
fn bytes(hex: &str) -> Option<Vec<u8>> {
    if !hex.len().is_multiple_of(2) || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
