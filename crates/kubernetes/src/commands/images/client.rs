//! One registry, asked over HTTPS. Nothing is asked of anybody else, unless the settings name who hands out its tokens: where
//! it sends us to another server, that is said.

use std::cell::RefCell;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use ureq::Agent;
use ureq::http::Request;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use crate::settings::KubernetesSettings;
use tpu_engine::runner::RunError;
use tpu_system::effects::Effects;

use super::challenge::{self, TokenChallenge};

/// How long an answer may take.
const TIME_OUT: Duration = Duration::from_secs(30);
/// How long it may take to reach the other side.
const CONNECT: Duration = Duration::from_secs(10);
/// The longest answer that is read.
const LONGEST: u64 = 16 << 20;
/// Nobody has more pages than this; whoever says so goes in a circle.
const MOST_PAGES: usize = 1_000;

/// Which registry is meant.
pub(super) struct RegistryAt<'s> {
    /// Its address.
    pub(super) url: &'s str,
    /// The account.
    pub(super) user: Option<&'s str>,
    /// The secret that holds its password.
    pub(super) secret: &'static str,
    /// A file with the certificates that are believed.
    pub(super) ca: Option<&'s str>,
    /// Who may be asked for tokens beside it.
    pub(super) tokens_by: Option<&'s str>,
}

/// The way to a registry.
pub(super) struct RegistryClient {
    agent: Agent,
    /// `https://host:port`, without what is behind it.
    origin: String,
    /// Another one that hands out its tokens.
    tokens_by: Option<String>,
    authorization: Option<String>,
    /// The last token that was handed out, as it is sent.
    token: RefCell<Option<String>>,
}

/// An answer as it came.
struct Answered {
    /// The status of HTTP.
    status: u16,
    /// Where the next page is, if there is one.
    next: Option<String>,
    /// Where a token is handed out, if one is wanted.
    challenge: Option<TokenChallenge>,
    body: Vec<u8>,
}

/// What was answered.
pub(super) struct RegistryPage {
    /// The status of HTTP.
    status: u16,
    /// Where the next page is, if there is one.
    next: Option<String>,
    body: Value,
}

impl RegistryClient {
    /// A client. Nothing is asked yet.
    pub(super) fn new(effects: &Effects, at: &RegistryAt<'_>) -> Result<Self, RunError> {
        let origin = origin(at.url)?;
        let ca = at
            .ca
            .map(str::to_owned)
            .or_else(|| effects.env.non_empty("SSL_CERT_FILE").map(str::to_owned));
        let roots = ca.map_or(Ok(RootCerts::WebPki), |file| roots(Path::new(&file)))?;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(TIME_OUT))
            .timeout_connect(Some(CONNECT))
            .user_agent(concat!("tpu/", env!("CARGO_PKG_VERSION")))
            .tls_config(TlsConfig::builder().root_certs(roots).build());
        // No proxy stands between us and this machine.
        let config = if is_loopback(&origin) { config.proxy(None) } else { config };
        let authorization =
            at.user.map(|user| authorization(effects, user, at.secret)).transpose()?;
        let agent = Agent::new_with_config(config.build());
        let tokens_by = at.tokens_by.map(self::origin).transpose()?;
        Ok(Self { agent, origin, tokens_by, authorization, token: RefCell::default() })
    }

    /// Asks for one document. `None` where there is none.
    pub(super) fn get(&self, path: &str) -> Result<Option<Value>, RunError> {
        let page = self.ask(path)?;
        Ok((page.status != 404).then_some(page.body))
    }

    /// Asks for all pages, of which `next` knows by their number and what came where the next one is.
    pub(super) fn numbered(
        &self,
        first: &str,
        next: impl Fn(usize, &Value) -> Option<String>,
    ) -> Result<Vec<Value>, RunError> {
        self.pages(first, |number, page| Ok(next(number, &page.body)))
    }

    /// Asks for all pages, each of which says where the next one is.
    pub(super) fn linked(&self, first: &str) -> Result<Vec<Value>, RunError> {
        self.pages(first, |_, page| page.next.as_deref().map(|next| self.own(next)).transpose())
    }

    fn pages(
        &self,
        first: &str,
        next: impl Fn(usize, &RegistryPage) -> Result<Option<String>, RunError>,
    ) -> Result<Vec<Value>, RunError> {
        let mut all = Vec::new();
        let mut path = Some(first.to_owned());
        while let Some(asked) = path {
            if all.len() == MOST_PAGES {
                let what = format!("{} has no end of pages", self.origin);
                return Err(RunError::failed(what, "look at its address in kubernetes.json"));
            }
            let page = self.ask(&asked)?;
            if page.status == 404 {
                let what = format!("{}{asked} is not there", self.origin);
                return Err(RunError::not_found(
                    what,
                    "look at the address and the project in kubernetes.json",
                ));
            }
            path = next(all.len() + 1, &page)?;
            all.push(page.body);
        }
        Ok(all)
    }

    /// Asks once; again by a token, where one is wanted that is handed out.
    fn ask(&self, path: &str) -> Result<RegistryPage, RunError> {
        let url = format!("{}{path}", self.origin);
        let token = self.token.borrow().clone();
        let mut answer = self.exchange(&url, token.as_ref().or(self.authorization.as_ref()))?;
        if let (401, Some(challenge)) = (answer.status, &answer.challenge) {
            let token = self.token(challenge)?;
            answer = self.exchange(&url, Some(&token))?;
            self.token.replace(Some(token));
        }
        Self::read(&self.origin, answer)
    }

    /// A token, as it is sent, from whoever hands it out: the registry itself, or who is named beside it.
    fn token(&self, challenge: &TokenChallenge) -> Result<String, RunError> {
        let by = origin(&challenge.realm).ok();
        let by = by.filter(|by| *by == self.origin || self.tokens_by.as_ref() == Some(by));
        let by = by.ok_or_else(|| {
            let what = format!(
                "{} has its tokens handed out by {}, which is not asked",
                self.origin, challenge.realm
            );
            RunError::refused(
                what,
                "name that server in kubernetes.json, if it is the right one: \"auth\": \"https://HOST\" beside \"url\"",
            )
        })?;
        let answer = self.exchange(&challenge.uri(), self.authorization.as_ref())?;
        let page = Self::read(&by, answer)?;
        let token = challenge::token(&page.body).map(|token| format!("Bearer {token}"));
        token.ok_or_else(|| silent(&by, "it hands out no token"))
    }

    fn exchange(&self, url: &str, authorization: Option<&String>) -> Result<Answered, RunError> {
        let whom = origin(url).unwrap_or_else(|_| self.origin.clone());
        let silent = |why: String| silent(&whom, &why);
        let mut request = Request::builder().method("GET").uri(url);
        request = request.header("Accept", "application/json");
        if let Some(authorization) = authorization {
            request = request.header("Authorization", authorization);
        }
        let request = request.body(()).map_err(|e| silent(e.to_string()))?;
        let answer = self.agent.run(request).map_err(|e| silent(e.to_string()))?;
        let status = answer.status().as_u16();
        let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
        let next = header("link").and_then(next_of);
        let mut all = answer.headers().get_all("www-authenticate").iter();
        let challenge = all.find_map(|value| TokenChallenge::read(value.to_str().ok()?));
        let mut body = Vec::new();
        let read =
            answer.into_body().into_with_config().limit(LONGEST).reader().read_to_end(&mut body);
        read.map_err(|e| silent(e.to_string()))?;
        Ok(Answered { status, next, challenge, body })
    }

    fn read(origin: &str, answer: Answered) -> Result<RegistryPage, RunError> {
        let Answered { status, next, body, .. } = answer;
        match status {
            200..=299 => {
                let body = serde_json::from_slice(&body)
                    .map_err(|_| silent(origin, "what it says is no JSON"))?;
                Ok(RegistryPage { status, next, body })
            }
            404 => Ok(RegistryPage { status, next: None, body: Value::Null }),
            300..=399 => {
                let what = format!("{origin} sends to another address, which is not followed");
                Err(RunError::refused(
                    what,
                    "name that one in kubernetes.json, if it is the right one",
                ))
            }
            401 | 403 => {
                let what = format!("{origin} does not allow it (HTTP {status})");
                Err(RunError::refused(
                    what,
                    "name an account, \"user\" in kubernetes.json, and keep its password: tpu secrets set HARBOR_PASSWORD (or REGISTRY_PASSWORD)",
                ))
            }
            _ => Err(silent(origin, &format!("HTTP {status}"))),
        }
    }

    /// The path of a next page, which must be on the same server.
    fn own(&self, next: &str) -> Result<String, RunError> {
        match next.strip_prefix(&self.origin).unwrap_or(next) {
            path if path.starts_with('/') && !path.starts_with("//") => Ok(path.to_owned()),
            _ => {
                let what = format!(
                    "the next page of {} is on another server, which is not asked",
                    self.origin
                );
                Err(RunError::refused(
                    what,
                    "name that one in kubernetes.json, if it is the right one",
                ))
            }
        }
    }
}

/// The error for what nobody has answered, or nothing that can be read.
fn silent(whom: &str, why: &str) -> RunError {
    RunError::unreachable(
        format!("{whom} does not answer: {why}"),
        "look at its address in kubernetes.json; of a server with a certificate of its own, say \"ca\": FILE there",
    )
}

/// The address of a server, without what is behind it: `https`, or `http` on this machine.
fn origin(url: &str) -> Result<String, RunError> {
    let like = "as in: \"url\": \"https://harbor.lab\"";
    let bad = |what: &str| RunError::usage(format!("'{url}' in kubernetes.json {what}"), like);
    let (scheme, rest) = url.split_once("://").ok_or_else(|| bad("is no address"))?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() || authority.contains('@') {
        return Err(bad("is no address of a server alone"));
    }
    let origin = format!("{scheme}://{authority}");
    match scheme {
        "https" => Ok(origin),
        "http" if is_loopback(&origin) => Ok(origin),
        "http" => Err(bad("would send a password unencrypted: it must be https")),
        _ => Err(bad("is no https")),
    }
}

fn is_loopback(origin: &str) -> bool {
    let authority = origin.split_once("://").map_or(origin, |(_, rest)| rest);
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn roots(file: &Path) -> Result<RootCerts, RunError> {
    let bad = |why: String| {
        let what = format!("{} has no certificates that can be read: {why}", file.display());
        RunError::usage(what, "name a file in PEM")
    };
    let pem = std::fs::read(file).map_err(|e| bad(e.to_string()))?;
    let items: Result<Vec<PemItem<'static>>, _> = parse_pem(&pem).collect();
    let certificates: Vec<Certificate<'static>> = items
        .map_err(|e| bad(e.to_string()))?
        .into_iter()
        .filter_map(|item| match item {
            PemItem::Certificate(certificate) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(bad("there is none in it".to_owned()));
    }
    Ok(RootCerts::new_with_certs(&certificates))
}

/// The header by which an account is known. Its password is in the environment, else among the secrets.
fn authorization(effects: &Effects, user: &str, secret: &str) -> Result<String, RunError> {
    let kept = || {
        let file = KubernetesSettings::own_file()?.parent()?.join("secrets").join(secret);
        let contents = effects.store.disk().read(&file).ok()?;
        String::from_utf8(contents.bytes).ok()
    };
    let said = effects.env.non_empty(secret).map(str::to_owned);
    let password = said.or_else(kept).ok_or_else(|| {
        let what = format!("the password of {user} is not known");
        RunError::not_found(what, format!("keep it: tpu secrets set {secret}"))
    })?;
    let pair = format!("{user}:{}", password.trim_end_matches(['\r', '\n']));
    Ok(format!("Basic {}", STANDARD.encode(pair)))
}

/// The next page of a `Link` header (RFC 8288).
fn next_of(link: &str) -> Option<String> {
    link.split(',').find_map(|one| {
        let (target, of) = one.trim().strip_prefix('<')?.split_once('>')?;
        let is_next = of.split(';').any(|word| matches!(word.trim(), "rel=\"next\"" | "rel=next"));
        is_next.then(|| target.to_owned())
    })
}

/// A part of a path as it is sent.
pub(super) fn segment(text: &str) -> String {
    let byte = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_is_for_this_machine_alone() {
        for (url, is) in [
            ("https://harbor.lab/api/v2.0", Some("https://harbor.lab")),
            ("http://127.0.0.1:5000", Some("http://127.0.0.1:5000")),
            ("http://[::1]:5000/", Some("http://[::1]:5000")),
            ("http://harbor.lab", None),
            ("http://127.0.0.1.evil.lab", None),
            ("https://user:pw@harbor.lab", None),
            ("ftp://harbor.lab", None),
            ("harbor.lab", None),
        ] {
            assert_eq!(origin(url).ok().as_deref(), is, "{url}");
        }
    }

    #[test]
    fn the_next_page_is_read_from_its_header() {
        assert_eq!(
            next_of("</v2/_catalog?last=b&n=1>; rel=\"next\"").as_deref(),
            Some("/v2/_catalog?last=b&n=1")
        );
        assert_eq!(next_of("</a>; rel=\"prev\" , </b>; rel=\"next\"").as_deref(), Some("/b"));
        assert_eq!(next_of("</a>; rel=\"prev\""), None);
        assert_eq!(segment("a/b c"), "a%2Fb%20c");
    }
}
