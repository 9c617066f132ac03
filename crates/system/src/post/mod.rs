//! Sends what people are told: to a webhook, a server of mails, a command or a desktop.
//!
//! **It never knows what a job is, who is to be told, or whether something was sent before.** One letter goes one way
//! once, within a bounded time; what became of it comes back in words. Where it goes, with the values of secrets, is an
//! [`Address`], which is written nowhere and shows none of them.

mod command;
#[cfg(feature = "mail")]
mod mail;
pub mod reach;
mod webhook;

use std::fmt;
use std::time::Duration;

use crate::sys::env::Env;
use tpu_core::model::notify::Smtp;

/// How long one who is asked may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// What is missing, and what to do, where this program was built without mail.
pub const NO_MAIL: Option<[&str; 2]> = if cfg!(feature = "mail") {
    None
} else {
    Some([
        "this tpu was built without mail",
        "build it with --features mail, or use another receiver",
    ])
};

/// How long a command may run.
const COMMAND: Duration = Duration::from_secs(30);

/// Where a letter goes.
pub enum Address {
    /// A request to this URL, with these headers.
    Webhook {
        /// With its secrets.
        url: String,
        /// Beside those that all have.
        headers: Vec<(&'static str, String)>,
        /// Whether it goes to public addresses only.
        public_only: bool,
    },
    /// A mail.
    Mail {
        /// The server that takes it.
        server: Smtp,
        /// What proves there who we are.
        password: Option<String>,
        /// To whom.
        to: String,
    },
    /// A command, word by word.
    Command {
        /// The words.
        words: Vec<String>,
        /// Its own variables.
        variables: Vec<(String, String)>,
    },
    /// The desktop of this account.
    Desktop,
}

impl fmt::Debug for Address {
    /// No more than its way: the rest may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Webhook { .. } => "Webhook",
            Self::Mail { .. } => "Mail",
            Self::Command { .. } => "Command",
            Self::Desktop => "Desktop",
        })
    }
}

/// What is sent.
#[derive(Clone, Debug)]
pub struct Letter {
    /// The same for each try: by it a receiver knows that it had the letter before.
    pub id: String,
    /// What it is about, on one line.
    pub subject: String,
    /// All of it, for people.
    pub text: String,
    /// All of it, for programs: JSON.
    pub body: Vec<u8>,
}

/// Why a letter did not arrive, as far as anybody knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PostError(pub String);

/// Sends a letter. `Ok` once whoever takes it has said that it has it.
pub fn send(address: &Address, letter: &Letter, env: &Env) -> Result<(), PostError> {
    match address {
        Address::Webhook { url, headers, public_only } => {
            webhook::send((url, *public_only), headers, letter, env)
        }
        #[cfg(feature = "mail")]
        Address::Mail { server, password, to } => {
            mail::send(server, password.as_deref(), to, letter, env)
        }
        #[cfg(not(feature = "mail"))]
        Address::Mail { .. } => Err(PostError(NO_MAIL.unwrap_or_default().join(": "))),
        Address::Command { words, variables } => command::run(words, variables, letter),
        Address::Desktop => command::desktop(letter),
    }
}
