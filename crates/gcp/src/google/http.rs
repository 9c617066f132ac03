//! One HTTP client for everything that this process asks the cloud: connections are kept, requests are
//! paced, and what went wrong on the way is said with its remedy.
//!
//! The client is `ureq`: synchronous as this whole program is, with `rustls` and nothing that waits beside
//! it. Measured against `reqwest::blocking` in an empty program: 25 crates instead of 114, and no second
//! runtime. The roots of trust are Mozilla's, built in, because the machines of a lab need not have any;
//! `$SSL_CERT_FILE` replaces them where a network looks into TLS.

use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ureq::http::Request;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Proxy, Timeout};

use tpu_engine::provider::{ENDPOINT_SETTING, ProviderError, Trouble};
use tpu_system::sys::clock::Clock;
use tpu_system::sys::env::Env;

/// How long an answer may take.
const TIME_OUT: Duration = Duration::from_secs(60);
/// How long a part of an object may be on its way.
const TRANSFER: Duration = Duration::from_secs(300);
/// How long it may take to reach the other side.
const CONNECT: Duration = Duration::from_secs(10);
/// At most so many requests begin within a second.
const PER_SECOND: usize = 10;
const SECOND: Duration = Duration::from_secs(1);
/// The longest answer that is read; a page of a thousand targets has two or three megabytes.
const LONGEST: u64 = 64 << 20;

/// The way of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Post,
    Put,
    Delete,
}

impl Method {
    fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

/// One request.
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    pub(super) url: &'a str,
    pub(super) headers: &'a [(&'a str, &'a str)],
    /// Sent as it is; the header says what it is.
    pub(super) body: Option<&'a [u8]>,
    /// What is tried, for the error.
    pub(super) doing: &'a str,
}

/// What came back, whatever it says.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// What came back of a part of an object, as far as it came.
#[derive(Debug)]
pub(super) struct Transferred {
    pub(super) status: u16,
    /// Where an upload goes on.
    pub(super) location: Option<String>,
    /// Which bytes of an upload have arrived.
    pub(super) range: Option<String>,
    pub(super) body: Vec<u8>,
    /// Why there is no more of the body.
    pub(super) cut: Option<ProviderError>,
}

/// The client.
pub(super) struct Http {
    /// Through the proxy, if there is one.
    agent: Agent,
    /// For this machine and its metadata server.
    direct: Agent,
    proxy: Option<Proxied>,
    clock: Arc<dyn Clock>,
    /// When the newest requests began.
    begun: Mutex<VecDeque<Duration>>,
}

/// A proxy that the environment names, without what nobody else should read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Proxied {
    variable: &'static str,
    address: String,
}

impl Http {
    /// A client as the environment wants it. Nothing is asked yet.
    pub(super) fn new(env: &Env, clock: Arc<dyn Clock>) -> Result<Self, ProviderError> {
        let (proxy, proxied) = match proxy(env)? {
            Some((proxy, proxied)) => (Some(proxy), Some(proxied)),
            None => (None, None),
        };
        let roots = roots(env)?;
        let agent = |proxy: Option<Proxy>, connect| {
            let tls = TlsConfig::builder().root_certs(roots.clone()).build();
            let config = Agent::config_builder()
                .http_status_as_error(false)
                .max_redirects(0)
                .max_redirects_will_error(false)
                .timeout_global(Some(TIME_OUT))
                .timeout_connect(Some(connect))
                .user_agent(concat!("tpu/", env!("CARGO_PKG_VERSION")))
                .proxy(proxy)
                .tls_config(tls)
                .build();
            Agent::new_with_config(config)
        };
        Ok(Self {
            agent: agent(proxy, CONNECT),
            direct: agent(None, Duration::from_secs(2)),
            proxy: proxied,
            clock,
            begun: Mutex::new(VecDeque::new()),
        })
    }

    /// Makes one request and reads the whole answer.
    pub(super) fn send(&self, ask: &Ask<'_>) -> Result<Reply, ProviderError> {
        self.pace();
        let answer = self.run(ask, None)?;
        let status = answer.status().as_u16();
        let body = answer.into_body().into_with_config().limit(LONGEST).read_to_vec();
        Ok(Reply { status, body: body.map_err(|e| self.failed(&e, ask))? })
    }

    /// Makes one request of those that carry parts of objects, of which a minute has hundreds. Of an answer that is cut
    /// off all is kept that has come.
    pub(super) fn transfer(&self, ask: &Ask<'_>) -> Result<Transferred, ProviderError> {
        let answer = self.run(ask, Some(TRANSFER))?;
        let status = answer.status().as_u16();
        let header = |name: &str| {
            let value = answer.headers().get(name)?;
            value.to_str().ok().map(str::to_owned)
        };
        let (location, range) = (header("location"), header("range"));
        let mut reader = answer.into_body().into_with_config().limit(LONGEST).reader();
        let mut body = Vec::new();
        let read = reader.read_to_end(&mut body);
        let cut = read.err().map(|e| self.failed(&ureq::Error::Io(e), ask));
        Ok(Transferred { status, location, range, body, cut })
    }

    fn is_direct(ask: &Ask<'_>) -> bool {
        host_of(ask.url).is_some_and(is_near)
    }

    /// Makes a request and reads the head of the answer.
    fn run(
        &self,
        ask: &Ask<'_>,
        limit: Option<Duration>,
    ) -> Result<http::Response<ureq::Body>, ProviderError> {
        let agent = if Self::is_direct(ask) { &self.direct } else { &self.agent };
        let mut request = Request::builder().method(ask.method.as_str()).uri(ask.url);
        for (name, value) in ask.headers {
            request = request.header(*name, *value);
        }
        let malformed = |e: http::Error| self.failed(&ureq::Error::Http(e), ask);
        let answer = match (ask.body, limit) {
            (Some(body), None) => agent.run(request.body(body).map_err(malformed)?),
            (None, None) => agent.run(request.body(()).map_err(malformed)?),
            (Some(body), Some(limit)) => {
                let request = request.body(body).map_err(malformed)?;
                agent.run(agent.configure_request(request).timeout_global(Some(limit)).build())
            }
            (None, Some(limit)) => {
                let request = request.body(()).map_err(malformed)?;
                agent.run(agent.configure_request(request).timeout_global(Some(limit)).build())
            }
        };
        answer.map_err(|e| self.failed(&e, ask))
    }

    fn failed(&self, error: &ureq::Error, ask: &Ask<'_>) -> ProviderError {
        broken(error, ask, self.proxy.as_ref().filter(|_| !Self::is_direct(ask)))
    }

    /// Waits until one more request may begin.
    fn pace(&self) {
        let wait = {
            let now = self.clock.monotonic();
            let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
            let earliest = match begun.len() {
                PER_SECOND.. => begun.pop_front().map_or(now, |first| now.max(first + SECOND)),
                _ => now,
            };
            // A little more than a second apart: the other side counts by its own clock.
            let at = if earliest > now { earliest + SECOND / 50 } else { now };
            begun.push_back(at);
            at.saturating_sub(now)
        };
        if !wait.is_zero() {
            self.clock.sleep(wait);
        }
    }
}

/// The host of a URL.
pub(super) fn host_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split_once(']').map(|(host, _)| host);
    }
    Some(authority.rsplit_once(':').map_or(authority, |(host, _)| host))
}

/// Whether a host is this machine.
pub(super) fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether no proxy stands between us and a host: this machine, and what answers beside it.
fn is_near(host: &str) -> bool {
    let is_link_local = |address: IpAddr| match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(_) => false,
    };
    is_loopback(host) || host.parse::<IpAddr>().is_ok_and(is_link_local)
}

/// The proxy that the environment names for HTTPS.
fn proxy(env: &Env) -> Result<Option<(Proxy, Proxied)>, ProviderError> {
    for variable in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        let Some(url) = env.non_empty(variable) else { continue };
        let refused = |_| {
            ProviderError::new(
                Trouble::User,
                "use the proxy",
                format!("${variable} names no proxy that can be used"),
            )
            .remedy(format!("write it as http://host:port, or: unset {variable}"))
        };
        let plain = Proxy::new(url).map_err(refused)?;
        let mut builder = Proxy::builder(plain.protocol()).host(plain.host()).port(plain.port());
        if let Some(name) = plain.username() {
            builder = builder.username(name);
        }
        if let Some(password) = plain.password() {
            builder = builder.password(password);
        }
        let exceptions =
            ["NO_PROXY", "no_proxy"].iter().find_map(|name| env.non_empty(name)).unwrap_or("");
        for host in exceptions.split(',').map(str::trim).filter(|host| !host.is_empty()) {
            builder = builder.no_proxy(host);
        }
        let address = format!("{}:{}", plain.host(), plain.port());
        let proxy = builder.build().map_err(refused)?;
        return Ok(Some((proxy, Proxied { variable, address })));
    }
    Ok(None)
}

/// Whom we believe that a server is who it says.
fn roots(env: &Env) -> Result<RootCerts, ProviderError> {
    let Some(path) = env.non_empty("SSL_CERT_FILE") else { return Ok(RootCerts::WebPki) };
    let refused = |what: String| {
        ProviderError::new(Trouble::User, format!("read the certificates of {path}"), what)
            .remedy("correct it, or take the built-in ones: unset SSL_CERT_FILE")
    };
    let pem = std::fs::read(path).map_err(|e| refused(e.to_string()))?;
    let mut certificates: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|e| refused(e.to_string()))? {
            certificates.push(certificate);
        }
    }
    if certificates.is_empty() {
        return Err(refused("there is no certificate in it".to_owned()));
    }
    Ok(RootCerts::new_with_certs(&certificates))
}

/// What it means that no answer came.
fn broken(error: &ureq::Error, ask: &Ask<'_>, proxy: Option<&Proxied>) -> ProviderError {
    let host = host_of(ask.url).unwrap_or("the server");
    let at = ask.url.split_once("://").map_or(ask.url, |(_, rest)| rest);
    let at = at.split(['/', '?']).next().unwrap_or(at);
    let through = |text: String| match proxy {
        Some(proxy) => {
            format!("{text} (through the proxy {} of ${})", proxy.address, proxy.variable)
        }
        None => text,
    };
    let silent = |message: String, remedy: String| {
        ProviderError::new(Trouble::Transient, ask.doing, through(message)).remedy(remedy)
    };
    let by_proxy = |message: String| {
        let (variable, address) =
            proxy.map_or(("HTTPS_PROXY", "it"), |proxy| (proxy.variable, proxy.address.as_str()));
        ProviderError::new(Trouble::Transient, ask.doing, format!("the proxy {address} {message}"))
            .remedy(format!(
                "check ${variable}; without a proxy: unset {variable}, or add {host} to $NO_PROXY"
            ))
    };
    let endpoint = format!("check the network, and the address: {ENDPOINT_SETTING}");
    let tls = |what: String| {
        silent(
            format!("TLS with {at} failed: {what}"),
            "check this machine's clock; where the network looks into TLS, name its certificate: \
             export SSL_CERT_FILE=FILE.pem"
                .to_owned(),
        )
    };
    match error {
        error if is_unresolved(error) && proxy.is_some() => {
            by_proxy("cannot be found: its name does not resolve".to_owned())
        }
        error if is_unresolved(error) => silent(
            format!("the name '{host}' does not resolve"),
            format!(
                "check the network and its DNS, or the address: {ENDPOINT_SETTING}; does it resolve elsewhere: getent hosts {host}"
            ),
        ),
        ureq::Error::ConnectProxyFailed(why) => by_proxy(format!("refused the way to {at}: {why}")),
        ureq::Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
            silent(format!("{at} cannot be reached within {} s", CONNECT.as_secs()), endpoint)
        }
        ureq::Error::Timeout(_) => ProviderError::new(
            Trouble::Transient,
            ask.doing,
            through(format!("no answer within {} s", TIME_OUT.as_secs())),
        ),
        ureq::Error::Rustls(error) => tls(error.to_string()),
        ureq::Error::Tls(what) => tls((*what).to_owned()),
        ureq::Error::Io(error) if is_tls(error) => tls(error.to_string()),
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            if proxy.is_some() {
                by_proxy("refuses connections".to_owned())
            } else {
                silent(format!("nothing listens at {at}"), endpoint)
            }
        }
        ureq::Error::Io(_) | ureq::Error::ConnectionFailed | ureq::Error::Protocol(_) => {
            ProviderError::new(
                Trouble::Transient,
                ask.doing,
                through(format!("the connection was closed before an answer came ({error})")),
            )
        }
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => ProviderError::new(
            Trouble::User,
            ask.doing,
            format!("'{}' is no address: {error}", ask.url.split('?').next().unwrap_or(ask.url)),
        )
        .remedy(format!("correct it: {ENDPOINT_SETTING}")),
        other => ProviderError::new(Trouble::Transient, ask.doing, through(other.to_string())),
    }
}

/// Whether a name has no address. The system's own words come as an error of the connection.
fn is_unresolved(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::HostNotFound => true,
        ureq::Error::Io(error) => error.to_string().contains("failed to lookup address"),
        _ => false,
    }
}

/// Whether an error of the connection is one of its encryption.
fn is_tls(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidData
        || error.get_ref().is_some_and(|inner| inner.to_string().contains("certificate"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::time::Timestamp;
    use tpu_system::sys::clock::ManualClock;

    fn said(error: &ureq::Error, proxy: Option<&Proxied>) -> (Trouble, String, String) {
        let url = "https://tpu.example:8443/v2/x?alt=json";
        let ask = Ask { method: Method::Get, url, headers: &[], body: None, doing: "list" };
        let error = broken(error, &ask, proxy);
        (error.trouble, error.message.clone(), error.hint().unwrap())
    }

    #[test]
    fn what_breaks_on_the_way_has_its_own_words_and_its_own_remedy() {
        let refused = || ureq::Error::Io(io::Error::from(io::ErrorKind::ConnectionRefused));
        let proxy = Proxied { variable: "HTTPS_PROXY", address: "p:3128".to_owned() };
        for (error, proxy, message, remedy) in [
            (ureq::Error::HostNotFound, None, "the name 'tpu.example' does not resolve", "DNS"),
            (refused(), None, "nothing listens at tpu.example:8443", "cloud_endpoint"),
            (refused(), Some(&proxy), "the proxy p:3128 refuses connections", "unset HTTPS_PROXY"),
            (
                ureq::Error::HostNotFound,
                Some(&proxy),
                "the proxy p:3128 cannot be found",
                "NO_PROXY",
            ),
            (
                ureq::Error::ConnectProxyFailed("407 authentication".to_owned()),
                Some(&proxy),
                "the proxy p:3128 refused the way to tpu.example:8443: 407",
                "$HTTPS_PROXY",
            ),
            (
                ureq::Error::Tls("bad certificate"),
                None,
                "TLS with tpu.example:8443 failed",
                "SSL_CERT_FILE",
            ),
            (
                ureq::Error::Timeout(Timeout::Connect),
                None,
                "cannot be reached within 10 s",
                "network",
            ),
            (
                ureq::Error::Timeout(Timeout::Global),
                Some(&proxy),
                "no answer within 60 s (through the proxy p:3128",
                "try again",
            ),
        ] {
            let (trouble, text, hint) = said(&error, proxy);
            assert_eq!(trouble, Trouble::Transient);
            assert!(text.contains(message), "{text}");
            assert!(hint.contains(remedy), "{hint}");
        }
    }

    #[test]
    fn a_proxy_is_named_without_its_password() {
        let env = Env::fixed([("HTTPS_PROXY", "http://me:sesame@proxy.lab:3128")]);
        let (_, proxied) = proxy(&env).unwrap().unwrap();
        assert_eq!(proxied.address, "proxy.lab:3128");
        let error = proxy(&Env::fixed([("ALL_PROXY", "no such:thing:at all")])).unwrap_err();
        assert_eq!(error.trouble, Trouble::User);
        assert!(proxy(&Env::fixed([("HOME", "/")])).unwrap().is_none());
    }

    #[test]
    fn at_most_ten_requests_begin_in_a_second() {
        let clock = Arc::new(ManualClock::new(Timestamp::from_second(0)));
        let http =
            Http::new(&Env::fixed([("HOME", "/")]), Arc::<ManualClock>::clone(&clock)).unwrap();
        let begun: Vec<Duration> = (0..45)
            .map(|_| {
                http.pace();
                clock.monotonic()
            })
            .collect();
        assert_eq!(begun[9], Duration::ZERO, "ten may come at once");
        for window in begun.windows(PER_SECOND + 1) {
            assert!(window[PER_SECOND] >= window[0] + SECOND, "{window:?}");
        }
    }

    #[test]
    fn the_host_of_an_address() {
        for (url, host) in [
            ("https://tpu.googleapis.com/v2/x", "tpu.googleapis.com"),
            ("http://127.0.0.1:80/?a=b", "127.0.0.1"),
            ("http://[::1]:80/", "::1"),
            ("http://me:pass@h:1", "h"),
        ] {
            assert_eq!(host_of(url), Some(host));
        }
        assert!(is_loopback("127.0.0.7") && is_loopback("::1") && is_loopback("LOCALHOST"));
        assert!(!is_loopback("127.example") && !is_loopback("10.0.0.1"));
    }
}
