//! The emulator as a server: what it says to requests that are none, how connections are kept, cut and
//! ended, and what is written down of all of it.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tpu_lab::emulator::Emulator;
use tpu_lab::sim::{Call, Event};
use tpu_system::sys::clock::SystemClock;

use crate::common::rest::Rest;
use crate::common::sim::open;

const NODES: &str = "/v2/projects/lab/locations/us-central1-a/nodes";

/// A connection to it, as somebody types it.
struct Wire(BufReader<TcpStream>);

impl Wire {
    fn to(endpoint: &str) -> Self {
        let address = endpoint.trim_start_matches("http://").trim_end_matches('/');
        let stream = TcpStream::connect(address).unwrap();
        // Nothing here takes that long: a server that does not answer fails the test.
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Self(BufReader::new(stream))
    }

    fn say(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// The status and the body of the next answer.
    fn hear(&mut self) -> (u16, String) {
        let (status, length) = self.head();
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        (status, String::from_utf8(body).unwrap())
    }

    /// The status of the next answer and the length of its body.
    fn head(&mut self) -> (u16, usize) {
        let mut status = 0;
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "the connection is closed");
            let line = line.trim_end().to_lowercase();
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest.get(..3).unwrap().parse().unwrap();
            } else if let Some(rest) = line.strip_prefix("content-length:") {
                length = rest.trim().parse().unwrap();
            } else if line.is_empty() {
                return (status, length);
            }
        }
    }

    /// Whether the other side has closed it and said nothing more.
    fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Ok(_) => rest.is_empty(),
            Err(e) => e.kind() == ErrorKind::ConnectionReset,
        }
    }
}

#[test]
fn a_connection_is_kept_until_its_client_closes_it() {
    let rest = Rest::new(&[]);
    let mut wire = Wire::to(&rest.endpoint());
    let list = format!("GET {NODES} HTTP/1.1\r\nHost: x\r\n\r\n");
    // Two at once, then one that comes in two pieces.
    wire.say(&format!("{list}{list}"));
    assert_eq!((wire.hear(), wire.hear()), ((200, "{}".to_owned()), (200, "{}".to_owned())));
    let (begin, end) = list.split_at(20);
    wire.say(begin);
    wire.say(end);
    assert_eq!(wire.hear().0, 200);
    wire.say(&format!("GET {NODES} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    assert_eq!(wire.hear().0, 200);
    assert!(wire.is_closed());
    assert_eq!(rest.asked().len(), 4);
}

#[test]
fn names_and_parameters_are_decoded_and_the_case_of_a_parameter_is_all_one() {
    let rest = Rest::new(&[]);
    let mut wire = Wire::to(&rest.endpoint());
    let body = r#"{"acceleratorType": "v2-8", "runtimeVersion": "tpu-ubuntu2204-base"}"#;
    let length = body.len();
    wire.say(&format!(
        "POST {NODES}?NODEID=n%31&alt=json HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\
         Content-Length: {length}\r\n\r\n"
    ));
    assert_eq!(wire.head().0, 100);
    wire.say(body);
    let (status, answer) = wire.hear();
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("nodes/n1"), "{answer}");
    rest.clock.advance(Duration::from_secs(600));
    wire.say(&format!("POST {NODES}/n1%3Astop HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"));
    let (status, answer) = wire.hear();
    assert_eq!(status, 200, "{answer}");
    let asked = rest.asked();
    let first = asked.first().unwrap();
    assert_eq!(first["target"], format!("{NODES}?NODEID=n%31&alt=json"));
    assert_eq!(
        (&first["method"], &first["body"]["acceleratorType"]),
        (&"POST".into(), &"v2-8".into())
    );
    assert_eq!(asked.last().unwrap()["target"], format!("{NODES}/n1%3Astop"));
}

#[test]
fn what_is_no_method_of_the_api_is_refused_in_its_words_and_written_down() {
    let rest = Rest::new(&[]);
    let mut wire = Wire::to(&rest.endpoint());
    for (method, target) in [
        ("GET", "/"),
        ("GET", "/v3/projects/lab/locations"),
        ("PUT", NODES),
        ("DELETE", NODES),
        ("POST", "/v2/projects/lab/locations/us-central1-a/nodes/n1:fly"),
        ("GET", "/v2/projects/lab/locations/us-central1-a/nodes/n1/more"),
        ("GET", "/v2/projects/lab/locations/us-central1-a/%ff"),
    ] {
        wire.say(&format!("{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"));
        let (status, answer) = wire.hear();
        assert_eq!(status, 404, "{method} {target}: {answer}");
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["error"]["status"], "NOT_FOUND");
        let message = format!("{method} {target} is no method of this API");
        assert_eq!(answer["error"]["message"], message);
        let asked = rest.asked();
        let last = asked.last().unwrap();
        assert_eq!((&last["method"], &last["target"]), (&method.into(), &target.into()));
        assert_eq!((&last["status"], last["at_ms"].is_u64()), (&404.into(), true));
    }
}

#[test]
fn what_is_no_request_is_refused_and_its_connection_closed() {
    let rest = Rest::new(&[]);
    for text in [
        "\0\0\0\r\n\r\n".to_owned(),
        "GET / HTTP/9\r\n\r\n".to_owned(),
        format!("POST {NODES} HTTP/1.1\r\nContent-Length: x\r\n\r\n"),
    ] {
        let mut wire = Wire::to(&rest.endpoint());
        wire.say(&text);
        assert_eq!(wire.hear().0, 400, "{text:?}");
        assert!(wire.is_closed(), "{text:?}");
    }
    assert_eq!(rest.asked(), Vec::<serde_json::Value>::new());
}

#[test]
fn a_body_that_is_too_long_is_refused_before_it_is_read() {
    let rest = Rest::new(&[]);
    let mut wire = Wire::to(&rest.endpoint());
    wire.say(&format!("POST {NODES} HTTP/1.1\r\nHost: x\r\nContent-Length: 4194305\r\n\r\n"));
    let (status, answer) = wire.hear();
    assert_eq!(status, 413, "{answer}");
    assert!(answer.contains("\"code\":413"), "{answer}");
    assert!(wire.is_closed());
    assert_eq!(rest.asked(), Vec::<serde_json::Value>::new());
}

#[test]
fn a_lost_answer_closes_the_connection_without_a_word() {
    let rest = Rest::new(&[]);
    let lost = Event::LoseAnswer { call: Some(Call::Describe), target: None, times: Some(1) };
    rest.sim().pull(&lost).unwrap();
    let describe = format!("GET {NODES}/n1 HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut wire = Wire::to(&rest.endpoint());
    wire.say(&describe);
    assert!(wire.is_closed());
    assert_eq!(rest.asked().last().unwrap()["status"], serde_json::Value::Null);
    // Only that one.
    let mut wire = Wire::to(&rest.endpoint());
    wire.say(&describe);
    assert_eq!(wire.hear().0, 404);
}

#[test]
fn it_ends_although_somebody_is_connected_and_an_answer_takes_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let sim = open(dir.path(), Arc::new(SystemClock::new()), &[], false);
    let slow = Event::Slow {
        seconds: 3_600.0,
        call: Some(Call::Describe),
        zone: None,
        times: None,
        for_s: None,
    };
    sim.pull(&slow).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let emulator = Arc::new(Emulator::bind(sim, 0, Arc::clone(&stop), None).unwrap());
    let endpoint = format!("http://{}/", emulator.address().unwrap());
    let serving = std::thread::spawn(move || emulator.serve());
    let mut quiet = Wire::to(&endpoint);
    let mut waiting = Wire::to(&endpoint);
    waiting.say(&format!("GET {NODES}/n1 HTTP/1.1\r\nHost: x\r\n\r\n"));
    // A slow answer holds nobody else.
    let mut other = Wire::to(&endpoint);
    other.say(&format!("GET {NODES} HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert_eq!(other.hear().0, 200);
    stop.store(true, Ordering::Relaxed);
    serving.join().unwrap().unwrap();
    assert!(quiet.is_closed() && other.is_closed());
    assert!(
        TcpStream::connect(endpoint.trim_start_matches("http://").trim_end_matches('/')).is_err()
    );
}
