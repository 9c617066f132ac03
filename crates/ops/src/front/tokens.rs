//! Tokens of the API: made, listed, taken back, recognised.
//!
//! ```text
//! `tpu token create` ── 32 random bytes, shown once ── whoever asks ── Authorization: Bearer ─┐
//!                  └── HMAC-SHA256 of it and its rights under the account's key, beside the data file ── [`find`]
//! ```
//! One file for each account, readable by its owner alone: whoever serves is that account, and acts with its rights.
//! The key lies elsewhere, in the account's own directory of settings, so that a copy of the state (a backup, a shared
//! disk) says nothing of a token. Beside the key lies what was taken back: a copy of the file of tokens that
//! somebody puts back brings none of them back.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use tpu_core::model::time::Timestamp;
use tpu_core::model::token::{Rights, Token, TokenRole, is_name};
use tpu_core::text::counted;
use tpu_system::store::{Event, atomic};

use crate::base::ctx::user_of;
use crate::base::disk::make_dirs;
use crate::{Ctx, Error};

/// What every token begins with: whoever finds one in a log knows what it is.
const PREFIX: &str = "tpu_";
/// Random bytes of a token, and of the key.
const BYTES: usize = 32;
/// Mode of both files.
const MODE: u32 = 0o600;

/// The file of tokens.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct TokenFile {
    /// Those that there are, and some that are over.
    pub(super) tokens: Vec<Token>,
    /// Sessions of a browser that were ended before their time, as earlier versions wrote them; those of today lie with the
    /// key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) ended: Vec<EndedSession>,
}

/// A session that was ended: its cookie opens nothing any more.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct EndedSession {
    /// Which.
    pub(super) session: String,
    /// From when on it would be over anyway, and needs not be known any longer.
    pub(super) until: Timestamp,
}

/// What was taken back, for good: it lies with the key, by which alone tokens are worth anything.
#[derive(Default, Serialize, Deserialize)]
struct Revoked {
    /// The hashes of tokens.
    #[serde(default)]
    tokens: Vec<String>,
    /// Sessions of a browser that were ended before their time.
    #[serde(default)]
    sessions: Vec<EndedSession>,
}

/// A token that is to be made.
#[derive(Clone, Debug)]
pub struct TokenRequest {
    /// What it is to be called.
    pub name: String,
    /// What it may do.
    pub rights: Rights,
    /// From when on it is to be worth nothing.
    pub expires: Option<Timestamp>,
}

fn path(ctx: &Ctx) -> PathBuf {
    ctx.store.paths().tokens(ctx.env.uid)
}

/// What the file has, but for what was taken back.
pub(super) fn read(ctx: &Ctx) -> Result<TokenFile, Error> {
    let mut file: TokenFile = read_from(ctx, &path(ctx))?;
    if file.tokens.is_empty() {
        return Ok(file);
    }
    let Revoked { tokens, sessions } = read_from(ctx, &revoked_path(ctx)?)?;
    file.tokens.retain(|token| !tokens.contains(&token.hash));
    let now = ctx.clock.now();
    file.ended.retain(|ended| sessions.iter().all(|known| known.session != ended.session));
    file.ended.extend(sessions);
    file.ended.retain(|ended| ended.until > now);
    Ok(file)
}

/// What one of our files has; nothing where there is none.
fn read_from<T: Default + DeserializeOwned>(ctx: &Ctx, path: &Path) -> Result<T, Error> {
    match ctx.store.disk().read(path) {
        Ok(contents) => serde_json::from_slice(&contents.bytes).map_err(|e| {
            Error::state(format!("{}: {e}", path.display()))
                .hint("move the file of tokens away: they are then worth nothing, and new ones can be made")
        }),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(T::default()),
        Err(e) => Err(Error::state(format!("cannot read {}: {e}", path.display()))
            .hint("it belongs to the account that serves")),
    }
}

/// Remembers beside the key what is taken back; to be called within [`change`], before the file says so.
fn remember(ctx: &Ctx, tokens: &[Token], session: Option<EndedSession>) -> Result<(), Error> {
    if ctx.store.is_dry_run() {
        return Ok(());
    }
    let path = revoked_path(ctx)?;
    // Several data files of one account have it together.
    ctx.store.locking_own(&path.with_extension("lock"), || {
        let mut revoked: Revoked = read_from(ctx, &path)?;
        let now = ctx.clock.now();
        revoked.sessions.retain(|ended| ended.until > now);
        revoked.sessions.extend(session);
        // What would be over anyway need not be remembered.
        let lasting = tokens.iter().filter(|token| token.holds(now));
        revoked.tokens.extend(lasting.map(|token| token.hash.clone()));
        let bytes = serde_json::to_vec_pretty(&revoked).unwrap_or_default();
        atomic::write_file(&**ctx.store.disk(), &path, &bytes, MODE)?;
        Ok(())
    })?
}

/// Takes tokens out of the file for good.
pub(super) fn take_back(
    ctx: &Ctx,
    file: &mut TokenFile,
    is_meant: impl Fn(&Token) -> bool,
    session: Option<EndedSession>,
) -> Result<usize, Error> {
    let gone: Vec<Token> = file.tokens.extract_if(.., |token| is_meant(token)).collect();
    if !gone.is_empty() || session.is_some() {
        remember(ctx, &gone, session)?;
    }
    Ok(gone.len())
}

/// Changes the tokens as the only one who does, and notes it in the journal.
pub(super) fn change<T>(
    ctx: &Ctx,
    change: impl FnOnce(&mut TokenFile) -> Result<(T, String), Error>,
) -> Result<T, Error> {
    change_and(ctx, change, write)
}

fn write(ctx: &Ctx, path: &Path, file: &TokenFile) -> Result<(), Error> {
    let bytes = serde_json::to_vec_pretty(file).unwrap_or_default();
    Ok(atomic::write_file(&**ctx.store.disk(), path, &bytes, MODE)?)
}

/// The same; `keep` puts the changed file in its place, while nobody else changes it.
fn change_and<T>(
    ctx: &Ctx,
    change: impl FnOnce(&mut TokenFile) -> Result<(T, String), Error>,
    keep: impl FnOnce(&Ctx, &Path, &TokenFile) -> Result<(), Error>,
) -> Result<T, Error> {
    let path = path(ctx);
    let guard = path.with_extension("lock");
    ctx.store.state_dir()?;
    ctx.store.locking_own(&guard, || {
        let mut file = read(ctx)?;
        let (value, text) = change(&mut file)?;
        if !ctx.store.is_dry_run() {
            keep(ctx, &path, &file)?;
        }
        ctx.store.note(&[Event {
            at: ctx.clock.now(),
            actor: ctx.actor.clone(),
            account: None,
            user: None,
            job: None,
            kind: "token".to_owned(),
            text,
            data: Value::Null,
        }])?;
        Ok(value)
    })?
}

/// Where the key of the account lies.
fn key_path(ctx: &Ctx) -> Result<PathBuf, Error> {
    let dir = ctx.secrets.as_deref().and_then(Path::parent).ok_or_else(|| {
        Error::state("there is no home directory to keep a key in")
            .hint("set HOME, or XDG_CONFIG_HOME")
    })?;
    Ok(dir.join("api-key"))
}

/// Where what the account has taken back lies.
fn revoked_path(ctx: &Ctx) -> Result<PathBuf, Error> {
    Ok(key_path(ctx)?.with_file_name("api-revoked.json"))
}

/// The key of the account, if it has one.
fn key(ctx: &Ctx, path: &Path) -> Result<Option<hmac::Key>, Error> {
    match ctx.store.disk().read(path) {
        Ok(contents) if contents.bytes.len() == BYTES => Ok(Some(as_key(&contents.bytes))),
        Ok(_) => Err(Error::state(format!("{} is no key of ours", path.display()))
            .hint("move it away: tokens are then worth nothing, and new ones can be made")),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::state(format!("cannot read {}: {e}", path.display()))
            .hint("it belongs to the account that serves")),
    }
}

/// The key of the account, where it has one yet.
pub(super) fn key_of_account(ctx: &Ctx) -> Result<Option<hmac::Key>, Error> {
    key(ctx, &key_path(ctx)?)
}

/// The key of the account; one is made where there is none, by one of those who want it.
fn key_for_new(ctx: &Ctx) -> Result<hmac::Key, Error> {
    let path = key_path(ctx)?;
    if let Some(dir) = path.parent().filter(|_| !ctx.store.is_dry_run()) {
        make_dirs(ctx, dir)?;
    }
    let make = || {
        if let Some(key) = key(ctx, &path)? {
            return Ok(key);
        }
        let mut bytes = [0; BYTES];
        ctx.random.fill(&mut bytes);
        if !ctx.store.is_dry_run() {
            atomic::write_file(&**ctx.store.disk(), &path, &bytes, MODE)?;
        }
        Ok(as_key(&bytes))
    };
    if ctx.store.is_dry_run() {
        make()
    } else {
        ctx.store.locking_own(&path.with_extension("lock"), make)?
    }
}

fn as_key(bytes: &[u8]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, bytes)
}

/// What is kept of a token: it signs the secret and all that stands beside it, so that nobody makes more of a token who can
/// write the file and has no key. In lower-case hexadecimal.
fn signed(key: &hmac::Key, secret: &str, token: &Token) -> String {
    let said = Token { hash: String::new(), ..token.clone() };
    let mut signing = hmac::Context::with_key(key);
    signing.update(secret.as_bytes());
    signing.update(&serde_json::to_vec(&said).unwrap_or_default());
    in_hex(signing.sign().as_ref())
}

/// Bytes in lower-case hexadecimal.
pub(super) fn in_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Makes a token. What is returned with it is the token itself, which nobody can say again.
pub fn create(ctx: &Ctx, request: &TokenRequest) -> Result<(Token, String), Error> {
    let TokenRequest { name, rights, expires } = request;
    if !is_name(name) {
        return Err(Error::usage(format!("{name:?}: no name of a token"))
            .hint("letters, digits, - _ and ., 64 at most, as in: phone"));
    }
    let data = ctx.data()?;
    for user in &rights.users {
        user_of(&data, user)?;
    }
    if rights.role == TokenRole::Operator && rights.users.is_empty() {
        return Err(Error::usage("an operator acts for somebody, and no user is named")
            .hint("as in --role operator --user alice; --role admin acts for everybody"));
    }
    if rights.role != TokenRole::Operator && !rights.only_on.is_none() {
        let what = format!("{} is limited to no targets", rights.role.as_str());
        return Err(Error::usage(what)
            .hint("a viewer starts nothing, and an admin acts on everything: --role operator"));
    }
    if expires.is_some_and(|end| end <= ctx.clock.now()) {
        return Err(Error::usage("it would never be valid").hint("as in --expires 30d"));
    }
    change(ctx, |file| {
        let now = ctx.clock.now();
        file.tokens.retain(|old| old.name != *name || old.holds(now));
        if file.tokens.iter().any(|old| old.name == *name) {
            return Err(Error::refused(format!("there is a token {name}"))
                .hint(format!("`tpu token revoke {name}` takes it back")));
        }
        let mut bytes = [0; BYTES];
        ctx.random.fill(&mut bytes);
        let secret = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
        let mut token = Token {
            name: name.clone(),
            hash: String::new(),
            rights: rights.clone(),
            created: now,
            expires: *expires,
        };
        token.hash = signed(&key_for_new(ctx)?, &secret, &token);
        file.tokens.push(token.clone());
        let text = format!("made token {name}: {}", rights.role.as_str());
        Ok(((token, secret), text))
    })
}

/// All that there are, the oldest first; those that are over, too.
pub fn list(ctx: &Ctx) -> Result<Vec<Token>, Error> {
    Ok(read(ctx)?.tokens)
}

/// Says of the hash of a token, which was shown before, whether it is still worth something. Where that cannot be read
/// now, it is.
pub fn worth(ctx: &Ctx) -> impl Fn(&str) -> bool {
    let all = list(ctx).ok();
    let now = ctx.clock.now();
    move |hash| all.as_ref().is_none_or(|all| all.iter().any(|of| of.hash == hash && of.holds(now)))
}

/// Takes a token back: what a request shows of it is worth nothing from then on.
pub fn revoke(ctx: &Ctx, name: &str) -> Result<(), Error> {
    change(ctx, |file| {
        if take_back(ctx, file, |token| token.name == name, None)? == 0 {
            return Err(Error::not_found(format!("no token {name}"))
                .hint("`tpu token list` shows those that there are"));
        }
        Ok(((), format!("took token {name} back")))
    })
}

/// Takes these tokens back, known by their hashes, and the file away if no other is left in it. The key of the account
/// stays: tokens beside other data files are signed by it.
pub(super) fn remove(ctx: &Ctx, hashes: &[String]) -> Result<(), Error> {
    let take = |file: &mut TokenFile| {
        let gone = take_back(ctx, file, |token| hashes.contains(&token.hash), None)?;
        Ok(((), format!("took {} back", counted(gone, "token"))))
    };
    change_and(ctx, take, |ctx, path, file| {
        if !file.tokens.is_empty() {
            return write(ctx, path, file);
        }
        match ctx.store.disk().remove(path) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                Err(Error::state(format!("cannot remove {}: {e}", path.display()))
                    .hint("what it holds is worth nothing any more; check the rights there"))
            }
            _ => Ok(()),
        }
    })
}

/// Whether a text looks like a token, whatever it opens: what it begins with, and 32 bytes in base64.
pub fn is_like(text: &str) -> bool {
    text.strip_prefix(PREFIX)
        .is_some_and(|rest| URL_SAFE_NO_PAD.decode(rest).is_ok_and(|bytes| bytes.len() == BYTES))
}

/// The token that somebody shows, if it is one and holds. It is compared by its keyed hash: how long that takes says
/// nothing of a token.
pub fn find(ctx: &Ctx, shown: &str) -> Result<Option<Token>, Error> {
    if !is_like(shown) {
        return Ok(None);
    }
    let Some(key) = key_of_account(ctx)? else { return Ok(None) };
    let now = ctx.clock.now();
    let is_shown = |token: &Token| token.hash == signed(&key, shown, token) && token.holds(now);
    Ok(read(ctx)?.tokens.into_iter().find(is_shown))
}
