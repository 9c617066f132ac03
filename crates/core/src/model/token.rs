//! Tokens of the API: who may what with one. Here is the one place that decides it; what a token is called and when it
//! ends stands beside.

use serde::{Deserialize, Serialize};

use super::ids::UserName;
use super::target_limit::TargetLimit;
use super::time::Timestamp;
use super::words::words;

/// What somebody may do, from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenRole {
    /// Sees.
    Viewer,
    /// Acts on the jobs of its users, and sees everybody's.
    Operator,
    /// Acts on everything.
    Admin,
}

words! {
    /// As in `--role`.
    TokenRole {
        Viewer: "viewer",
        Operator: "operator",
        Admin: "admin",
    }
}

impl TokenRole {
    /// Reads one.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

/// What a token, or whoever needs none, may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights {
    /// Its role.
    pub role: TokenRole,
    /// Whose jobs it is about: those on which an operator acts, and all that a viewer sees; empty for everybody's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<UserName>,
    /// Whether it may apply, reapply, reserve and release targets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub targets: bool,
    /// The targets on which it starts, moves and changes anything; all of them where there is no limit.
    #[serde(default, skip_serializing_if = "TargetLimit::is_none")]
    pub only_on: TargetLimit,
}

impl Rights {
    /// Those of a role about the jobs of some users, or of everybody; targets are as they are.
    pub fn of(role: TokenRole, users: Vec<UserName>) -> Self {
        Self { role, users, targets: false, only_on: TargetLimit::default() }
    }

    /// Those of the account that serves: everything.
    pub fn all() -> Self {
        Self { targets: true, ..Self::of(TokenRole::Admin, Vec::new()) }
    }

    /// Those of whoever has shown nothing.
    pub fn none() -> Self {
        Self::of(TokenRole::Viewer, Vec::new())
    }

    /// Whether a user's jobs may be seen.
    pub fn may_see(&self, user: &UserName) -> bool {
        self.sees_everybody() || self.users.contains(user)
    }

    /// Whether everybody's jobs may be seen.
    pub fn sees_everybody(&self) -> bool {
        self.role > TokenRole::Viewer || self.users.is_empty()
    }

    /// Whether a user's jobs may be acted on.
    pub fn may_act_for(&self, user: &UserName) -> bool {
        match self.role {
            TokenRole::Viewer => false,
            TokenRole::Operator => self.users.contains(user),
            TokenRole::Admin => true,
        }
    }

    /// Whether jobs may be acted on at all; whose is asked next.
    pub fn may_act(&self) -> bool {
        self.role > TokenRole::Viewer
    }

    /// Whether targets may be made anew, reserved and given back.
    pub fn may_use_targets(&self) -> bool {
        match self.role {
            TokenRole::Viewer => false,
            TokenRole::Operator => self.targets,
            TokenRole::Admin => true,
        }
    }

    /// Whether what is everybody's may be changed: queues, hosts, pools.
    pub fn may_administer(&self) -> bool {
        self.role == TokenRole::Admin
    }

    /// The user meant where a request names none: the only one that it is about.
    pub fn only_user(&self) -> Option<&UserName> {
        match self.users.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }
}

/// A token, without the token itself: that is shown once, and kept nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// What it is called; the journal names it.
    pub name: String,
    /// HMAC-SHA256 of it and of all that stands here, under the key of the account, in lower-case hexadecimal.
    pub hash: String,
    /// What it may do.
    #[serde(flatten)]
    pub rights: Rights,
    /// When it was made.
    pub created: Timestamp,
    /// From when on it is worth nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

impl Token {
    /// Whether it is worth something at a moment.
    pub fn holds(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|end| now < end)
    }
}

/// Whether a token may be called so: as in a journal, a column and a word of a command line.
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=64).contains(&name.len()) && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(role: TokenRole, users: &[&str], targets: bool) -> Rights {
        let users = users.iter().map(|name| UserName::from(*name)).collect();
        Rights { targets, ..Rights::of(role, users) }
    }

    #[test]
    fn each_role_may_what_it_says_and_no_more() {
        let (alice, bob) = (UserName::from("alice"), UserName::from("bob"));
        // Sees alice's, sees bob's, acts for alice, acts for bob, targets, administers.
        let table = [
            (rights(TokenRole::Viewer, &[], true), [true, true, false, false, false, false]),
            (
                rights(TokenRole::Viewer, &["alice"], true),
                [true, false, false, false, false, false],
            ),
            (
                rights(TokenRole::Operator, &["alice"], false),
                [true, true, true, false, false, false],
            ),
            (rights(TokenRole::Operator, &["alice"], true), [true, true, true, false, true, false]),
            (rights(TokenRole::Operator, &[], false), [true, true, false, false, false, false]),
            (rights(TokenRole::Admin, &["alice"], false), [true; 6]),
        ];
        for (of, may) in table {
            let is = [
                of.may_see(&alice),
                of.may_see(&bob),
                of.may_act_for(&alice),
                of.may_act_for(&bob),
                of.may_use_targets(),
                of.may_administer(),
            ];
            assert_eq!(is, may, "{of:?}");
        }
    }

    #[test]
    fn a_token_is_worth_nothing_from_its_last_moment_on() {
        let at = Timestamp::from_second;
        let token = Token {
            name: "phone".to_owned(),
            hash: String::new(),
            rights: Rights::all(),
            created: at(0),
            expires: Some(at(100)),
        };
        assert!(token.holds(at(99)) && !token.holds(at(100)));
    }
}
