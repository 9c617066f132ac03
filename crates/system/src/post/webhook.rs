//! A webhook: one POST with JSON. It follows no redirection, so that what lets us in goes nowhere else.

use ureq::http::Uri;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, Proxy};

use super::reach::{self, PublicOnly};
use super::{Letter, PATIENCE, PostError};
use crate::sys::env::Env;
use tpu_core::model::notify::{is_open, is_this_machine};

/// So much of an answer is read (bytes): it is looked at by people alone.
const ANSWER: u64 = 4096;

/// Sends it. Whoever answers with 2xx has it.
pub(super) fn send(
    (url, public_only): (&str, bool),
    headers: &[(&'static str, String)],
    letter: &Letter,
    env: &Env,
) -> Result<(), PostError> {
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return Err(PostError("with its secrets filled in it is no URL".to_owned()));
    }
    if !headers.is_empty() && is_open(url) {
        return Err(PostError("its secret would go unprotected over http://".to_owned()));
    }
    if public_only && !reach::may_be_public(url) {
        return Err(PostError("its host is no public address".to_owned()));
    }
    let host = Uri::try_from(url).ok();
    let host = host.as_ref().and_then(|uri| uri.host()).unwrap_or_default();
    let is_near = is_this_machine(host.trim_matches(['[', ']']));
    let proxy = if is_near { None } else { Proxy::try_from_env() };
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_global(Some(PATIENCE))
        .user_agent(concat!("tpu/", env!("CARGO_PKG_VERSION")))
        .proxy(proxy)
        .tls_config(TlsConfig::builder().root_certs(roots(env)?).build())
        .build();
    // A proxy looks names up by itself, and is near.
    let agent = if public_only && config.proxy().is_none() {
        Agent::with_parts(config, DefaultConnector::default(), PublicOnly::default())
    } else {
        Agent::new_with_config(config)
    };
    let mut request = agent
        .post(url)
        .header("Content-Type", "application/json")
        .header("Idempotency-Key", &letter.id);
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    let answer = request.send(letter.body.as_slice()).map_err(|e| PostError(e.to_string()))?;
    let status = answer.status();
    // An answer that breaks off is none: who sent it may not have kept what it got.
    let said = answer.into_body().into_with_config().limit(ANSWER).read_to_vec();
    if !status.is_success() {
        let said = String::from_utf8_lossy(said.as_deref().unwrap_or_default()).into_owned();
        let said = said.trim();
        let more = if said.is_empty() { String::new() } else { format!(": {said}") };
        return Err(PostError(format!("it answers {}{more}", status.as_u16())));
    }
    match said {
        Ok(_) | Err(ureq::Error::BodyExceedsLimit(_)) => Ok(()),
        Err(e) => Err(PostError(format!("its answer broke off: {e}"))),
    }
}

/// Whom we believe that a server is who it says: Mozilla's roots, or those of `$SSL_CERT_FILE`.
fn roots(env: &Env) -> Result<RootCerts, PostError> {
    let Some(pem) = own_roots(env)? else { return Ok(RootCerts::WebPki) };
    let mut certificates: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(&pem) {
        if let Ok(PemItem::Certificate(certificate)) = item {
            certificates.push(certificate);
        }
    }
    Ok(RootCerts::new_with_certs(&certificates))
}

/// The certificates that this machine names.
pub(super) fn own_roots(env: &Env) -> Result<Option<Vec<u8>>, PostError> {
    let Some(path) = env.non_empty("SSL_CERT_FILE") else { return Ok(None) };
    let read = crate::sys::files::read(std::path::Path::new(path));
    read.map(Some).map_err(|e| PostError(format!("cannot read {path} ($SSL_CERT_FILE): {e}")))
}
