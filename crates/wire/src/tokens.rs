//! Tokens of the API.

use schemars::JsonSchema;
use serde::Serialize;

use tpu_core::model::ids::UserName;
use tpu_core::model::token::{Token, TokenRole};

use super::words::{TimePart, Word};

/// The tokens that there are.
#[derive(Serialize, JsonSchema)]
pub struct TokensDocument<'a> {
    /// The oldest first; those that are over, too.
    pub tokens: Vec<TokenPart<'a>>,
}

/// A token, without the token itself.
#[derive(Serialize, JsonSchema)]
pub struct TokenPart<'a> {
    /// What it is called.
    pub name: &'a str,
    /// What its bearer may do.
    pub role: Word<TokenRole>,
    /// Whose jobs it is about; empty for everybody's.
    pub users: &'a [UserName],
    /// Whether its bearer may apply, reapply and reserve targets.
    pub targets: bool,
    /// When it was made.
    pub created_at: TimePart,
    /// From when on it is worth nothing; null for never.
    pub expires_at: Option<TimePart>,
}

impl<'a> From<&'a Token> for TokenPart<'a> {
    fn from(token: &'a Token) -> Self {
        Self {
            name: &token.name,
            role: Word(token.rights.role),
            users: &token.rights.users,
            targets: token.rights.may_use_targets(),
            created_at: TimePart(token.created),
            expires_at: token.expires.map(TimePart),
        }
    }
}

/// A token that was made.
#[derive(Serialize, JsonSchema)]
pub struct NewTokenDocument<'a> {
    /// The token: what a request shows. Nobody can say it again.
    pub token: &'a str,
    /// What it is.
    pub made: TokenPart<'a>,
}

/// A token that was taken back.
#[derive(Serialize, JsonSchema)]
pub struct RevokedTokenDocument<'a> {
    /// What it was called.
    pub name: &'a str,
}

/// Who asks, as a page needs to know.
#[derive(Serialize, JsonSchema)]
pub struct SessionDocument<'a> {
    /// The name of the token that was shown, or with which the session was begun; null where none is needed.
    pub name: Option<&'a str>,
    /// What its bearer may do.
    pub role: Word<TokenRole>,
    /// Whose jobs it is about; empty for everybody's.
    pub users: &'a [UserName],
    /// Whether its bearer may apply, reapply and reserve targets.
    pub targets: bool,
    /// What each change shows as `X-Tpu-Csrf`; null for whoever has shown a token.
    pub csrf: Option<&'a str>,
    /// The version of the server: a page that was made for another one is loaded anew.
    pub version: &'a str,
}
