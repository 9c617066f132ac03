//! Just enough of an HTTP server for an emulator on this machine: requests in, JSON out, connections kept;
//! and a connection that is closed without an answer, because that is what a lost answer is.
//!
//! Heads are parsed by `httparse`, which the client uses as well. The small synchronous servers there are
//! answer for a handler that does not, so they cannot lose an answer.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The longest head, and the longest body, that is read.
const LONGEST_HEAD: usize = 64 << 10;
const LONGEST_BODY: usize = 4 << 20;
/// How often a quiet connection looks whether the server ends.
const LOOK: Duration = Duration::from_millis(100);
/// Headers that are read at most.
const HEADERS: usize = 64;

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// The path, decoded, in its parts.
    pub(super) path: Vec<String>,
    /// What stands behind the `?`, decoded.
    pub(super) query: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// As it was sent, for the log.
    pub(super) target: String,
    closes: bool,
    expects_continue: bool,
}

impl Request {
    /// A parameter, whatever the case of its name.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// It is answered.
    Answer(u16, String),
    /// The connection is closed.
    Hang,
}

/// Serves one connection until it or the server ends.
pub(super) fn serve(
    mut stream: TcpStream,
    stop: &AtomicBool,
    react: impl Fn(&Request) -> Reaction,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOOK))?;
    let mut buffer = Vec::new();
    while let Some(request) = read(&mut stream, &mut buffer, stop)? {
        match react(&request) {
            Reaction::Hang => return Ok(()),
            Reaction::Answer(status, body) => {
                write(&mut stream, status, &body, request.closes)?;
            }
        }
        if request.closes {
            return Ok(());
        }
    }
    Ok(())
}

/// The next request; `None` after the last one.
fn read(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    stop: &AtomicBool,
) -> io::Result<Option<Request>> {
    let (mut request, head, length) = loop {
        match parse(buffer) {
            Ok(Some(parsed)) => break parsed,
            Ok(None) if buffer.len() <= LONGEST_HEAD => {}
            Ok(None) | Err(()) => {
                write(stream, 400, "{\"error\":{\"code\":400,\"message\":\"no request\"}}", true)?;
                return Ok(None);
            }
        }
        if !more(stream, buffer, stop)? {
            return Ok(None);
        }
    };
    if length > LONGEST_BODY {
        write(stream, 413, "{\"error\":{\"code\":413,\"message\":\"too long\"}}", true)?;
        return Ok(None);
    }
    if request.expects_continue {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    while buffer.len() < head + length {
        if !more(stream, buffer, stop)? {
            return Ok(None);
        }
    }
    request.body = buffer.get(head..head + length).unwrap_or_default().to_vec();
    buffer.drain(..head + length);
    Ok(Some(request))
}

/// Reads what has come. Whether more may come.
fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>, stop: &AtomicBool) -> io::Result<bool> {
    let mut chunk = [0_u8; 8 << 10];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(false),
            Ok(read) => {
                buffer.extend_from_slice(chunk.get(..read).unwrap_or_default());
                return Ok(true);
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                if stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// The request at the beginning of the bytes, the length of its head and of its body; `None` if its head
/// is not complete yet.
fn parse(bytes: &[u8]) -> Result<Option<(Request, usize, usize)>, ()> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(()),
    };
    let target = head.path.unwrap_or("/").to_owned();
    let header = |name: &str| {
        let found = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok().map(str::trim)
    };
    if header("transfer-encoding").is_some() {
        return Err(());
    }
    let body = match header("content-length") {
        Some(text) => text.parse().map_err(|_| ())?,
        None => 0,
    };
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let pair = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(key), decoded(value))
    };
    let is =
        |name: &str, value: &str| header(name).is_some_and(|is| is.eq_ignore_ascii_case(value));
    let request = Request {
        method: head.method.unwrap_or_default().to_owned(),
        path: path.split('/').filter(|part| !part.is_empty()).map(decoded).collect(),
        query: query.split('&').filter(|text| !text.is_empty()).map(pair).collect(),
        body: Vec::new(),
        closes: is("connection", "close") || head.version == Some(0),
        expects_continue: is("expect", "100-continue"),
        target,
    };
    Ok(Some((request, length, body)))
}

/// Text of a URL without its escapes.
fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let hex = |digit: Option<u8>| char::from(digit?).to_digit(16);
        match byte {
            b'%' => {
                let rest = bytes.clone();
                let (high, low) = (hex(bytes.next()), hex(bytes.next()));
                if let (Some(high), Some(low)) = (high, low) {
                    out.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                } else {
                    out.push(b'%');
                    bytes = rest;
                }
            }
            b'+' => out.push(b' '),
            other => out.push(other),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn write(stream: &mut TcpStream, status: u16, body: &str, closes: bool) -> io::Result<()> {
    let connection = if closes { "close" } else { "keep-alive" };
    let head = format!(
        "HTTP/1.1 {status} {}\r\ncontent-type: application/json; charset=UTF-8\r\n\
         content-length: {}\r\nconnection: {connection}\r\n\r\n",
        reason(status),
        body.len()
    );
    let mut answer = head.into_bytes();
    answer.extend_from_slice(body.as_bytes());
    stream.write_all(&answer)?;
    stream.flush()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        409 => "Conflict",
        429 => "Too Many Requests",
        503 => "Service Unavailable",
        _ => "Other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_piece_by_piece() {
        let text = "POST /v2/projects/lab/locations/z/nodes?nodeId=BAD%21&alt=json HTTP/1.1\r\n\
                    Host: x\r\nContent-Length: 4\r\n\r\nbodyGET / HTTP/1.1\r\n\r\n";
        for end in 0..text.find("\r\n\r\n").unwrap() {
            assert_eq!(parse(&text.as_bytes()[..end]).unwrap(), None, "{end}");
        }
        let (request, head, body) = parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!((request.method.as_str(), body), ("POST", 4));
        assert_eq!(request.path.join("/"), "v2/projects/lab/locations/z/nodes");
        assert_eq!(request.parameter("NODEID"), Some("BAD!"));
        assert_eq!(&text[head..head + 4], "body");
        assert!(!request.closes);
    }

    #[test]
    fn nonsense_is_refused_and_never_panics() {
        for text in [
            "\0\0\0\r\n\r\n",
            "GET / HTTP/9\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        ] {
            assert_eq!(parse(text.as_bytes()), Err(()), "{text:?}");
        }
        for (text, is) in
            [("%", "%"), ("%4", "%4"), ("%zz", "%zz"), ("%ff", "\u{fffd}"), ("a+b", "a b")]
        {
            assert_eq!(decoded(text), is);
        }
    }
}
