//! Tokens of the API.

use tpu_core::model::ids::UserName;
use tpu_core::model::token::{Token, TokenRole};

use super::document::{documents, part};
use super::words::{TimePart, Word};

documents! {
    /// The tokens that there are.
    pub struct TokensDocument<'a> {
        /// The oldest first; those that are over, too.
        tokens: Vec<TokenPart<'a>>,
    }

    /// A token, without the token itself.
    pub struct TokenPart<'a> from token: &'a Token {
        /// What it is called.
        name: &'a str,
        /// What its bearer may do.
        role: Word<TokenRole> = part(&token.rights.role),
        /// Whose jobs it is about; empty for everybody's.
        users: &'a [UserName] = &token.rights.users,
        /// Whether its bearer may apply, reapply and reserve targets.
        targets: bool = token.rights.may_use_targets(),
        /// The targets to which it is limited, as patterns of names and types; empty where it is not.
        only_on: &'a [String] = token.rights.only_on.patterns(),
        /// When it was made.
        created_at: TimePart = part(&token.created),
        /// From when on it is worth nothing; null for never.
        expires_at: Option<TimePart> = part(&token.expires),
    }

    /// A token that was made.
    pub struct NewTokenDocument<'a> {
        /// The token: what a request shows. Nobody can say it again.
        token: &'a str,
        /// What it is.
        made: TokenPart<'a>,
    }

    /// A token that was taken back.
    pub struct RevokedTokenDocument<'a> {
        /// What it was called.
        name: &'a str,
    }

    /// Who asks, as a page needs to know.
    pub struct SessionDocument<'a> {
        /// The name of the token that was shown, or with which the session was begun; null where none is needed.
        name: Option<&'a str>,
        /// What its bearer may do.
        role: Word<TokenRole>,
        /// Whose jobs it is about; empty for everybody's.
        users: &'a [UserName],
        /// Whether its bearer may apply, reapply and reserve targets.
        targets: bool,
        /// The targets to which it is limited, as patterns of names and types; empty where it is not.
        only_on: &'a [String],
        /// What each change shows as `X-Tpu-Csrf`; null for whoever has shown a token.
        csrf: Option<&'a str>,
        /// The version of the server: a page that was made for another one is loaded anew.
        version: &'a str,
    }
}
