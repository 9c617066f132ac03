//! Registries that want a token: whoever asks without one is told where it is handed out, and for what (token
//! authentication of the OCI distribution specification).

use serde_json::Value;

use crate::encoded;

/// Where a token is handed out, and what has to be said for it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TokenChallenge {
    /// Its address.
    pub(super) realm: String,
    /// For which service, and for what there, as it has to be said.
    said: Vec<(String, String)>,
}

impl TokenChallenge {
    /// Reads a `WWW-Authenticate` header (RFC 9110): `Bearer realm="…",service="…",scope="…"`. `None` where it wants no token.
    pub(super) fn read(header: &str) -> Option<Self> {
        const SCHEME: &str = "bearer ";
        let begins = header.to_ascii_lowercase().find(SCHEME)?;
        let mut rest = header.get(begins + SCHEME.len()..)?;
        let (mut realm, mut said) = (None, Vec::new());
        while let Some((name, value, after)) = parameter(rest) {
            match name.to_ascii_lowercase().as_str() {
                "realm" => realm = Some(value),
                name @ ("service" | "scope") => said.push((name.to_owned(), value)),
                _ => {}
            }
            rest = after;
        }
        Some(Self { realm: realm?, said })
    }

    /// The address that is asked for the token.
    pub(super) fn uri(&self) -> String {
        let said = self.said.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let mark = if self.realm.contains('?') { '&' } else { '?' };
        format!("{}{mark}{}", self.realm, encoded(said))
    }
}

/// The first `name=value` of a list, and what comes behind it. The value may be quoted.
fn parameter(text: &str) -> Option<(&str, String, &str)> {
    let text = text.trim_start_matches([' ', ',']);
    let (name, rest) = text.split_once('=')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let Some(quoted) = rest.strip_prefix('"').filter(|_| is_name) else {
        let end = rest.find([',', ' ']).unwrap_or(rest.len());
        let (value, rest) = rest.split_at(end);
        return is_name.then(|| (name, value.to_owned(), rest));
    };
    let (mut value, mut is_escaped) = (String::new(), false);
    for (at, c) in quoted.char_indices() {
        match c {
            '"' if !is_escaped => return Some((name, value, quoted.get(at + 1..)?)),
            '\\' if !is_escaped => is_escaped = true,
            c => {
                value.push(c);
                is_escaped = false;
            }
        }
    }
    None
}

/// The token in the answer of whoever hands it out.
pub(super) fn token(answer: &Value) -> Option<&str> {
    let token = answer.get("token").or_else(|| answer.get("access_token"))?.as_str()?;
    Some(token).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_token_is_handed_out_is_read_from_the_header() {
        let uri = |header: &str| TokenChallenge::read(header).map(|it| it.uri());
        for (header, expected) in [
            (
                r#"Bearer realm="https://auth.lab/token",service="registry.lab",scope="repository:team/x:pull,push""#,
                Some(
                    "https://auth.lab/token?service=registry.lab&scope=repository%3Ateam%2Fx%3Apull%2Cpush",
                ),
            ),
            (
                r#"Basic realm="x", bearer Realm="https://a/t?x=1", service=r"#,
                Some("https://a/t?x=1&service=r"),
            ),
            (r#"Bearer realm="https://a/\"t",error="x""#, Some("https://a/\"t?")),
            (r#"Basic realm="Registry""#, None),
            (r#"Bearer service="x""#, None),
            (r#"Bearer realm="https://a"#, None),
            ("", None),
        ] {
            assert_eq!(uri(header).as_deref(), expected, "{header}");
        }
    }

    #[test]
    fn a_token_has_one_of_two_names() {
        for (answer, expected) in [
            (r#"{"token": "a", "expires_in": 300}"#, Some("a")),
            (r#"{"access_token": "b"}"#, Some("b")),
            (r#"{"token": ""}"#, None),
            ("[]", None),
        ] {
            assert_eq!(token(&serde_json::from_str(answer).unwrap()), expected, "{answer}");
        }
    }
}
