//! How far a webhook reaches that was set by somebody who may not send to this machine and its networks: to public
//! addresses only. A name is looked up once, and what it stands for then is where the letter goes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Ends of names that stand for something on this machine or in its own network (RFC 6761, 6762, 8375, 9476).
const NEAR: [&str; 6] = ["localhost", "local", "internal", "lan", "home.arpa", "localdomain"];

/// Whether a URL may lead to a public address, as far as its host says. Of a host that is a secret nothing is known yet.
pub fn may_be_public(url: &str) -> bool {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    if authority.split(['/', '?', '#']).next().is_some_and(|host| host.contains("${")) {
        return true;
    }
    let uri = Uri::try_from(url).ok();
    uri.as_ref().and_then(Uri::host).is_some_and(is_public_host)
}

fn is_public_host(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
    if let Ok(address) = host.parse::<IpAddr>() {
        return is_public(address);
    }
    let is_near = |end: &&str| host == **end || host.ends_with(&format!(".{end}"));
    // A name of one part is one of the own network, and a number is an address in another spelling.
    let last = host.rsplit('.').next().unwrap_or_default();
    host.contains('.')
        && !NEAR.iter().any(is_near)
        && !last.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether an address is reached by everybody, and is not this machine, its network, or set apart for something else.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => {
            if let Some(within) = within_v6(address) {
                return is_public_v4(within);
            }
            // What is given out to everybody (RFC 4291), but for what documents and tunnels use.
            let [first, second, ..] = address.segments();
            first & 0xe000 == 0x2000 && !(first == 0x2001 && (second < 0x200 || second == 0xdb8))
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_apart = match first {
        0 | 10 | 127 => true,
        100 => second & 0xc0 == 64,
        192 => second == 0 && third == 0,
        198 => second & 0xfe == 18,
        _ => first >= 224,
    };
    !is_apart && !address.is_private() && !address.is_link_local() && !address.is_documentation()
}

/// The address of the older kind that one of the newer kind stands for.
fn within_v6(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [first, second, third, fourth, fifth, sixth, high, low] = address.segments();
    let of = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match (first, second, third, fourth, fifth, sixth) {
        (0, 0, 0, 0, 0, 0 | 0xffff) | (0x64, 0xff9b, ..) => Some(of(high, low)),
        (0x2002, high, low, ..) => Some(of(high, low)),
        _ => None,
    }
}

/// Looks names up, and takes none of which an address is not public.
#[derive(Debug, Default)]
pub(super) struct PublicOnly(DefaultResolver);

impl Resolver for PublicOnly {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let found = self.0.resolve(uri, config, timeout)?;
        if found.iter().all(|address| is_public(address.ip())) {
            return Ok(found);
        }
        Err(Error::Io(std::io::Error::other("its host is no public address")))
    }
}

#[cfg(test)]
mod tests {
    use ureq::Timeout;
    use ureq::unversioned::transport::time::Duration;

    use super::*;

    #[test]
    fn what_is_near_is_known_in_every_spelling() {
        for near in [
            "http://localhost/x",
            "http://LOCALHOST./x",
            "http://a.localhost:80/",
            "http://127.0.0.1:8080/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.0.0.1/",
            "http://0/",
            "http://10.1.2.3/",
            "http://192.168.0.1/",
            "http://172.16.0.1/",
            "http://100.64.0.1/",
            "http://169.254.169.254/computeMetadata",
            "http://metadata.google.internal/",
            "http://metadata/",
            "http://printer.local/",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[fd00::1]/",
            "https://[fe80::1]/",
            "https://[64:ff9b::a00:1]/",
            "https://[2002:7f00:1::]/",
            "https://[2001:db8::1]/",
            "no url",
        ] {
            assert!(!may_be_public(near), "{near}");
        }
        for far in [
            "https://hooks.example.org/T0/B0",
            "https://8.8.8.8/",
            "https://[2606:4700::1111]/",
            "https://100.128.0.1/",
            "${HOOK}",
            "https://${HOST}/x",
            "https://hooks.example.org/${KEY}",
        ] {
            assert!(may_be_public(far), "{far}");
        }
    }
    #[test]
    fn what_a_name_stands_for_is_looked_at_before_anything_is_sent() {
        let resolve = |url: &str| {
            let timeout = NextTimeout {
                after: Duration::NotHappening,
                reason: Timeout::Global,
                ..NextTimeout::default()
            };
            PublicOnly::default().resolve(&url.parse().unwrap(), &Config::default(), timeout)
        };
        for near in ["http://127.0.0.1:1/", "http://localhost:1/", "http://[::1]:1/"] {
            assert!(resolve(near).is_err(), "{near}");
        }
        assert!(resolve("http://8.8.8.8:1/").is_ok());
    }
}
