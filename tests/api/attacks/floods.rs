//! Attacks by many, by those who are slow, and by other accounts of the machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::process::{Resource, getrlimit, getuid, setrlimit};
use tpu_system::sys::clock::{Clock as _, SystemClock};

use super::{Lab, Who, not_as_described};
use crate::api::{Api, heard};
use crate::common::env::TestEnv;
use crate::common::wait::wait_until;

/// So many wrong tokens.
const WRONG: usize = 10_000;
/// So many streams of events are open at once; whoever comes then is told to come later.
const STREAMS: usize = 2_000;
/// Files that this process has beside two for each of them.
const OTHER_FILES: u64 = 500;

/// A connection over which one request is sent after the other.
struct Talk(BufReader<TcpStream>);

impl Talk {
    /// The status of the answer to a token.
    fn shows(&mut self, token: &str) -> u16 {
        let request = format!(
            "GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        self.0.get_mut().write_all(request.as_bytes()).unwrap();
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "it hangs up");
            if let Some(said) = line.strip_prefix("HTTP/1.1 ") {
                status = said[..3].parse().unwrap();
            } else if let Some(said) = line.strip_prefix("content-length: ") {
                length = said.trim().parse().unwrap();
            } else if line == "\r\n" {
                break;
            }
        }
        self.0.read_exact(&mut vec![0; length]).unwrap();
        status
    }
}

#[test]
fn ten_thousand_wrong_tokens_find_none_and_keep_nobody_from_being_answered() {
    let lab = Lab::new();
    let (before, clock) = (lab.api.env.data_bytes(), SystemClock::new());
    let mut talk = Talk(BufReader::new(lab.api.connect()));
    let (mut unknown, mut later) = (0, 0);
    for number in 0..WRONG {
        match talk.shows(&format!("tpu_{number:043}")) {
            401 => unknown += 1,
            429 => later += 1,
            other => panic!("{other} at {number}"),
        }
        if number % 500 == 0 {
            lab.api.get(lab.token(Who::Admin), "/api/v1/jobs").is(200);
        }
    }
    // Thirty a minute, and so it is in the journal.
    let most = 30 * usize::try_from(clock.monotonic().as_secs() / 60 + 1).unwrap();
    assert!((30..=most).contains(&unknown), "{unknown} of {WRONG} in {most} / 30 minutes");
    assert_eq!(unknown + later, WRONG);
    let said = lab.api.get(lab.token(Who::Unknown), "/api/v1/jobs");
    assert_eq!(not_as_described(&said, 429), None, "{said:?}");
    assert!(said.header("retry-after").is_some(), "{said:?}");
    let events = lab.api.env.journal();
    let denied: Vec<_> = events.iter().filter(|event| event.kind == "denied").collect();
    assert!((30..=most).contains(&denied.len()), "{} lines", denied.len());
    assert!(denied.iter().all(|event| event.actor == "api somebody"));
    assert_eq!(lab.api.env.data_bytes(), before);
}

/// Allows this process so many open files; whether that could be done.
fn may_open(files: u64) -> bool {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= files) {
        return true;
    }
    limit.current = Some(files);
    setrlimit(Resource::Nofile, limit).is_ok()
}

#[test]
fn more_streams_than_there_is_room_for_are_told_to_come_later_and_others_are_answered() {
    if !may_open(2 * STREAMS as u64 + OTHER_FILES) {
        eprintln!("skipped: this process may not open as many files as {STREAMS} streams are");
        return;
    }
    let lab = Lab::new();
    let token = lab.token(Who::Viewer);
    let before = lab.api.env.data_bytes();
    let mut streams: Vec<_> = (0..STREAMS).map(|_| lab.api.follow(token, &[])).collect();
    for who in [Who::Viewer, Who::Admin, Who::BobsViewer] {
        let said = lab.api.get(lab.token(who), "/api/v1/events");
        assert_eq!(not_as_described(&said, 503), None, "{said:?}");
        assert!(said.header("retry-after").is_some(), "{said:?}");
    }
    lab.api.get(token, "/api/v1/jobs").is(200);
    let path = "POST /api/v1/jobs/alice/2/hold";
    lab.api.ask(lab.token(Who::Viewer), path, &[], "").is(403);
    assert_eq!(lab.api.env.data_bytes(), before);
    // Who goes makes room.
    drop(streams.pop());
    wait_until("somebody else may follow", || follows(&lab.api, token));
}

/// Whether somebody may follow; goes at once.
fn follows(api: &Api, token: &str) -> bool {
    let mut stream = BufReader::new(api.connect());
    let request = format!(
        "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    stream.get_mut().write_all(request.as_bytes()).unwrap();
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    line.contains(" 200 ")
}

/// The one that takes as long as the server is patient: all who are slow are slow at the same time.
#[test]
fn who_is_slow_is_given_up_and_others_are_answered_meanwhile() {
    let lab = Lab::new();
    let (api, before) = (&lab.api, lab.api.env.data_bytes());
    let token = lab.token(Who::Admin);
    let change = format!(
        "PATCH /api/v1/jobs/alice/2 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
    );
    let begins = |text: &str| {
        let mut stream = api.connect();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    };
    let head = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
    let (half_a_head, half_a_body, silent) = (begins(head), begins(&change), begins(""));
    // These never rest, and never come to an end.
    let (mut heads, mut bodies) = (begins(head), begins(&change));
    api.get(token, "/api/v1/jobs").is(200);
    wait_until("those who trickle are given up", || {
        let head_is_over = heads.write_all(b"x").is_err();
        let body_is_over = bodies.write_all(b" ").is_err();
        head_is_over && body_is_over
    });
    api.get(token, "/api/v1/jobs").is(200);
    let said = heard(half_a_body);
    assert_eq!(not_as_described(&said, 408), None, "{said:?}");
    for stream in [half_a_head, silent] {
        let said = heard(stream);
        assert!(matches!(said.status, 0 | 408), "{said:?}");
    }
    assert_eq!(api.env.data_bytes(), before);
}

/// The program by which another account asks over a socket, and its words before the path of that.
fn asking_program() -> Option<(&'static str, &'static [&'static str])> {
    const CURL: &[&str] = &["-sS", "--max-time", "20", "http://x/api/v1/jobs", "--unix-socket"];
    const PYTHON: &[&str] = &[
        "-c",
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(sys.argv[1]); \
         s.sendall(b'GET /api/v1/jobs HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n'); \
         a = s.recv(9); print(a); sys.exit(0 if a else 52)",
    ];
    [("/usr/bin/curl", CURL), ("/usr/bin/python3", PYTHON)]
        .into_iter()
        .find(|(program, _)| Path::new(program).exists())
}

#[test]
fn other_accounts_do_not_reach_the_socket() {
    let env = TestEnv::new();
    env.write_data(&env.two_users());
    let path = env.path("s.sock");
    let api = Api::over(env, |serving| serving.socket = Some(path.clone()));
    let mode = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut own = UnixStream::connect(&path).unwrap();
    own.write_all(b"GET /api/v1/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    heard(own).is(200);
    let setpriv =
        ["/usr/bin/setpriv", "/bin/setpriv"].into_iter().find(|path| Path::new(path).exists());
    let (Some(setpriv), true, Some((program, words))) =
        (setpriv, getuid().is_root(), asking_program())
    else {
        eprintln!("skipped: only root with setpriv and curl or python3 can ask as another account");
        return;
    };
    let as_nobody = |program: &str, words: &[&str]| {
        let fixed = ["--reuid=65534", "--regid=65534", "--clear-groups", "--", program];
        let all: Vec<&str> = fixed.into_iter().chain(words.iter().copied()).collect();
        api.env.output(&api.env.spawn_program(setpriv, &all))
    };
    let asks = || {
        let words: Vec<&str> = words.iter().copied().chain([path.to_str().unwrap()]).collect();
        as_nobody(program, &words)
    };
    // It is not the directory that keeps them out.
    mode(Path::new(api.env.root()), 0o755);
    drop(as_nobody("/bin/ls", &[path.to_str().unwrap()]).exits(0));
    let said = asks();
    assert!(said.code != 0 && said.stdout.is_empty(), "{}", said.report());
    // Whoever gets past the mode, as root does, is told apart and not answered.
    mode(&path, 0o666);
    let said = asks();
    assert!(said.code != 0 && !said.stdout.contains("jobs"), "{}", said.report());
}
