//! The setting `smtp`: the server that takes mails.

use serde::Serialize;
use serde_json::{Value, json};

use super::{address, is_this_machine};
use crate::model::read::{self, DataError, Fields, Json, Path};
use crate::model::variables;
use crate::model::words::words;

/// How mails are protected on their way to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmtpTls {
    /// Not at all.
    None,
    /// Once both have said hello.
    Starttls,
    /// From the first byte on.
    Tls,
}

words! {
    /// The spelling in settings.
    SmtpTls {
        None: "none",
        Starttls: "starttls",
        Tls: "tls",
    }
}

/// The server that takes mails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Smtp {
    /// Its name.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How mails are protected.
    pub tls: SmtpTls,
    /// Who we are there, if it wants to know.
    pub user: Option<String>,
    /// The name of the secret that proves it.
    pub secret: Option<String>,
    /// From whom mails come.
    pub from: String,
}

impl Smtp {
    /// As it is written.
    pub fn to_value(&self) -> Value {
        json!({
            "host": self.host,
            "port": self.port,
            "tls": self.tls.as_str(),
            "user": self.user,
            "secret": self.secret,
            "from": self.from,
        })
    }
}

impl Serialize for Smtp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

/// Reads the setting `smtp`.
pub(in crate::model) fn read_smtp(
    value: Json<'_>,
    path: &Path<'_>,
) -> Result<Option<Smtp>, DataError> {
    const KEYS: [&str; 6] = ["host", "port", "tls", "user", "secret", "from"];
    if value.is_null() {
        return Ok(None);
    }
    for key in read::object(value, path)?.keys() {
        if !KEYS.contains(&key.as_str()) {
            return Err(path.error(&format!("of {} alone", KEYS.join(", ")), Some(value)));
        }
    }
    let fields = Fields::new(value, path)?;
    let tls = fields.with("tls", |value, path| {
        let parse = |word: &str| SmtpTls::ALL.into_iter().find(|tls| tls.as_str() == word);
        read::one_of(value, path, parse, "none, starttls or tls")
    })?;
    let tls = tls.unwrap_or(SmtpTls::Starttls);
    let host = fields.need("host", "the name of a server", read::text)?;
    if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(fields.below("host").error("the name of a server", fields.get("host")));
    }
    let port = fields.with("port", |value, path| {
        let port = u16::try_from(read::number(value, path)?).ok().filter(|port| *port > 0);
        port.ok_or_else(|| path.error("a port, 1 to 65535", Some(value)))
    })?;
    let usual = match tls {
        SmtpTls::None => 25,
        SmtpTls::Starttls => 587,
        SmtpTls::Tls => 465,
    };
    let user = fields.with("user", read::text)?;
    let secret = fields.with("secret", |value, path| {
        let name = read::text(value, path)?;
        match variables::as_secret(&name) {
            Ok(()) => Ok(name),
            Err(_) => Err(path.error("the name of a secret, as in SMTP_PASSWORD", Some(value))),
        }
    })?;
    if secret.is_some() != user.is_some() {
        return Err(path.error("both user and secret, or none of them", Some(value)));
    }
    if secret.is_some() && tls == SmtpTls::None && !is_this_machine(&host) {
        let expected = "tls or starttls: without it the secret goes unprotected";
        return Err(fields.below("tls").error(expected, fields.get("tls")));
    }
    let said = fields.with("from", read::text)?;
    let from = said.or_else(|| user.clone()).and_then(|from| address(&from).ok());
    let Some(from) = from else {
        let expected = "an address, from which mails come";
        return Err(fields.below("from").error(expected, fields.get("from")));
    };
    Ok(Some(Smtp { host, port: port.unwrap_or(usual), tls, user, secret, from }))
}
