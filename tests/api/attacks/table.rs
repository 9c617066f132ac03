//! The table of attacks.

/// Who attacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// Somebody who shows nothing.
    Nobody,
    /// Somebody with a token that was never made.
    Unknown,
    /// Somebody with an admin's token that is over.
    Expired,
    /// Somebody with an admin's token that was taken back.
    Revoked,
    /// A viewer of everything.
    Viewer,
    /// A viewer of bob's jobs alone.
    BobsViewer,
    /// An operator of alice's jobs, without targets.
    Alices,
    /// An operator of bob's jobs, without targets.
    Bobs,
    /// An admin, or a page that somebody made an admin open.
    Admin,
}

impl Who {
    /// As the journal calls them.
    fn as_denied(self) -> &'static str {
        match self {
            Self::Nobody | Self::Unknown | Self::Expired | Self::Revoked => "somebody",
            Self::Viewer => "token viewer",
            Self::BobsViewer => "token bobs-viewer",
            Self::Alices => "token alices",
            Self::Bobs => "token bobs",
            Self::Admin => "token admin",
        }
    }
}

/// What comes back.
#[derive(Clone, Copy, Debug)]
pub(super) enum Comes {
    /// A refusal with this status, which the journal tells of: somebody tried what they may not.
    Denied(u16),
    /// A refusal with this status, of what is wrong whoever sends it.
    Refused(u16),
    /// 200, and nothing that would be anybody else's.
    Harmless,
}

/// An attack. `{token}` is an admin's, wherever it stands.
pub(super) struct Attack {
    /// What is tried.
    pub(super) name: &'static str,
    /// Who shows a token with it.
    pub(super) who: Who,
    /// Method and target.
    pub(super) line: &'static str,
    /// Further headers.
    pub(super) headers: &'static [&'static str],
    /// The body.
    pub(super) body: &'static str,
    /// What comes back.
    pub(super) comes: Comes,
    /// Whether it is refused before anybody looks at the token.
    is_unnamed: bool,
}

const fn row(name: &'static str, who: Who, line: &'static str, comes: Comes) -> Attack {
    Attack { name, who, line, headers: &[], body: "", comes, is_unnamed: false }
}

impl Attack {
    /// As the journal calls whoever is denied, if it is to tell of one.
    pub(super) fn denied(&self) -> Option<&'static str> {
        match self.comes {
            Denied(_) if self.is_unnamed => Some("somebody"),
            Denied(_) => Some(self.who.as_denied()),
            Refused(_) | Harmless => None,
        }
    }

    const fn somebody(self) -> Self {
        Self { is_unnamed: true, ..self }
    }

    const fn with(self, headers: &'static [&'static str]) -> Self {
        Self { headers, ..self }
    }

    const fn body(self, headers: &'static [&'static str], body: &'static str) -> Self {
        Self { headers, body, ..self }
    }
}

/// A job of whose number the rows speak as of alice's second one.
pub(super) const JOB: &str =
    "{\"target\": \"local\", \"dir\": 1, \"hold\": true, \"command\": \"true\"}";
const FOR_ALICE: &str =
    "{\"for_user\": \"alice\", \"target\": \"local\", \"dir\": 1, \"command\": \"true\"}";
const KEPT: &str = "{\"for_user\": \"alice\", \"seconds\": 60}";
const JSON: &[&str] = &["Content-Type: application/json"];
const TEXT: &[&str] = &["Content-Type: text/plain"];
const FORM: &[&str] = &["Content-Type: application/x-www-form-urlencoded"];
const EVIL: &[&str] = &["Origin: http://evil.example"];
const AGAIN: &[&str] = &["Content-Type: application/json", "Idempotency-Key: taken"];

use Comes::{Denied, Harmless, Refused};
use Who::{Admin, Alices, Bobs, BobsViewer, Expired, Nobody, Revoked, Unknown, Viewer};

/// What is sent as whole requests.
pub(super) const ATTACKS: &[Attack] = &[
    // Without a token that is worth something.
    row("no token: list", Nobody, "GET /api/v1/jobs", Denied(401)),
    row("no token: one", Nobody, "GET /api/v1/jobs/alice/1", Denied(401)),
    row("no token: log", Nobody, "GET /api/v1/jobs/alice/1/logs", Denied(401)),
    row("no token: events", Nobody, "GET /api/v1/events", Denied(401)),
    row("no token: figures", Nobody, "GET /metrics", Denied(401)),
    row("no token: description", Nobody, "GET /openapi.json", Denied(401)),
    row("no token: page", Nobody, "GET /docs", Denied(401)),
    row("no token: Cloudmesh", Nobody, "GET /cloudmesh/queue/", Denied(401)),
    row("no token: submit", Nobody, "POST /api/v1/jobs", Denied(401)).body(JSON, FOR_ALICE),
    row("no token: kill", Nobody, "POST /api/v1/jobs/alice/2/kill", Denied(401)),
    row("no token: change", Nobody, "PATCH /api/v1/jobs/alice/2", Denied(401))
        .body(JSON, "{\"priority\": 1}"),
    row("no token: pause", Nobody, "POST /api/v1/queues/default/pause", Denied(401)),
    row("unknown token", Unknown, "GET /api/v1/jobs", Denied(401)),
    row("unknown token: kill", Unknown, "POST /api/v1/jobs/alice/2/kill", Denied(401)),
    row("token that is over", Expired, "POST /api/v1/jobs/alice/2/kill", Denied(401)),
    row("token that was taken back", Revoked, "GET /api/v1/jobs", Denied(401)),
    row("other scheme", Nobody, "GET /api/v1/jobs", Denied(401)).with(&["Authorization: Basic YTpi"]),
    row("scheme alone", Nobody, "GET /api/v1/jobs", Denied(401)).with(&["Authorization: Bearer"]),
    row("no scheme", Nobody, "GET /api/v1/jobs", Denied(401)).with(&["Authorization: {token}"]),
    row("token in another header", Nobody, "GET /api/v1/jobs", Denied(401))
        .with(&["X-Api-Key: {token}", "Proxy-Authorization: Bearer {token}"]),
    // A token where it would end in logs and histories, or where a browser sends it by itself.
    row("token in the query", Nobody, "GET /api/v1/jobs?token={token}", Denied(401)),
    row("token in the query", Nobody, "GET /api/v1/jobs?access_token={token}", Denied(401)),
    row("token in the query", Nobody, "GET /api/v1/jobs?x={token}", Denied(401)),
    row("token in the query too", Admin, "GET /api/v1/jobs?token={token}", Denied(401)).somebody(),
    row("token in the query: kill", Nobody, "POST /api/v1/jobs/alice/2/kill?token={token}", Denied(401)),
    row("token in a cookie", Nobody, "GET /api/v1/jobs", Denied(401)).with(&["Cookie: token={token}"]),
    row("token in a cookie: kill", Nobody, "POST /api/v1/jobs/alice/2/kill", Denied(401))
        .with(&["Cookie: token={token}; Authorization=Bearer {token}"]),
    // More than a role may.
    row("viewer kills", Viewer, "POST /api/v1/jobs/alice/2/kill", Denied(403)),
    row("viewer kills for a trial", Viewer, "POST /api/v1/jobs/alice/2/kill?dry_run=true", Denied(403)),
    row("viewer resumes", Viewer, "POST /api/v1/jobs/alice/1/resume", Denied(403)),
    row("viewer reruns", Viewer, "POST /api/v1/jobs/alice/1/rerun", Denied(403)),
    row("viewer holds", Viewer, "POST /api/v1/jobs/alice/2/hold", Denied(403)),
    row("viewer lets go", Viewer, "POST /api/v1/jobs/alice/2/unhold", Denied(403)),
    row("viewer requeues", Viewer, "POST /api/v1/jobs/alice/1/requeue", Denied(403)),
    row("viewer changes", Viewer, "PATCH /api/v1/jobs/alice/2", Denied(403))
        .body(JSON, "{\"priority\": 1}"),
    row("viewer submits", Viewer, "POST /api/v1/jobs", Denied(403)).body(JSON, FOR_ALICE),
    row("viewer reserves", Viewer, "POST /api/v1/targets/v2-1/reserve", Denied(403)).body(JSON, KEPT),
    row("viewer pauses", Viewer, "POST /api/v1/queues/default/pause", Denied(403)),
    row("viewer fills a queue", Viewer, "POST /cloudmesh/queue/q?name=a&command=true", Denied(403)),
    row("operator without targets reserves", Alices, "POST /api/v1/targets/v2-1/reserve", Denied(403))
        .body(JSON, KEPT),
    row("operator without targets gives back", Alices, "POST /api/v1/targets/v2-1/release", Denied(403))
        .body(JSON, "{\"for_user\": \"alice\"}"),
    row("operator without targets has one made", Alices, "POST /api/v1/jobs", Denied(403)).body(
        JSON,
        "{\"target\": {\"accelerator\": \"v6e-8\", \"zone\": \"us-east5-b\"}, \"name\": \"mine\", \
         \"dir\": 1, \"command\": \"true\"}",
    ),
    row("operator pauses a queue", Alices, "POST /api/v1/queues/default/pause", Denied(403)),
    row("operator opens a queue", Alices, "POST /api/v1/queues/default/resume", Denied(403)),
    row("operator drains a queue", Alices, "POST /api/v1/queues/default/drain", Denied(403)),
    row("operator makes a queue", Alices, "POST /cloudmesh/queue?name=q", Denied(403)),
    row("operator adds a host", Alices, "POST /cloudmesh/cluster/c?id=h&name=h", Denied(403)),
    // What is somebody else's.
    row("other's job killed", Bobs, "POST /api/v1/jobs/alice/2/kill", Denied(403)),
    row("other's job killed by force", Bobs, "POST /api/v1/jobs/alice/1/kill?force=true", Denied(403)),
    row("other's job resumed", Bobs, "POST /api/v1/jobs/alice/1/resume", Denied(403)),
    row("other's job rerun", Bobs, "POST /api/v1/jobs/alice/1/rerun", Denied(403)),
    row("other's job held", Bobs, "POST /api/v1/jobs/alice/2/hold", Denied(403)),
    row("other's job let go", Bobs, "POST /api/v1/jobs/alice/2/unhold", Denied(403)),
    row("other's job requeued", Bobs, "POST /api/v1/jobs/alice/1/requeue", Denied(403)),
    row("other's job changed", Bobs, "PATCH /api/v1/jobs/alice/1", Denied(403))
        .body(JSON, "{\"tags\": \"x\"}"),
    row("job for another", Bobs, "POST /api/v1/jobs", Denied(403)).body(JSON, FOR_ALICE),
    row("job for nobody", Bobs, "POST /api/v1/jobs", Denied(403)).body(
        JSON,
        "{\"for_user\": \"carol\", \"target\": \"local\", \"dir\": 1, \"command\": \"true\"}",
    ),
    row("other's job read", BobsViewer, "GET /api/v1/jobs/alice/1", Denied(403)),
    row("other's job explained", BobsViewer, "GET /api/v1/jobs/alice/1/explain", Denied(403)),
    row("other's log", BobsViewer, "GET /api/v1/jobs/alice/1/logs", Denied(403)),
    row("other's script", BobsViewer, "GET /api/v1/jobs/alice/1/script", Denied(403)),
    row("other's timeline", BobsViewer, "GET /api/v1/jobs/alice/1/timeline", Denied(403)),
    row("other's events", BobsViewer, "GET /api/v1/events?user=alice", Denied(403)),
    row("other's usage", BobsViewer, "GET /api/v1/usage?user=alice", Denied(403)),
    row("who is where", BobsViewer, "GET /api/v1/targets", Denied(403)),
    row("who is on which machine", BobsViewer, "GET /api/v1/hosts", Denied(403)),
    row("others in the list", BobsViewer, "GET /api/v1/jobs", Harmless),
    row("other's list", BobsViewer, "GET /api/v1/jobs?user=alice", Harmless),
    row("others by a filter", BobsViewer, "GET /api/v1/jobs?filter=tag:loss-of-alice", Harmless),
    row("others in the plan", BobsViewer, "GET /api/v1/plan", Harmless),
    row("others in the usage", BobsViewer, "GET /api/v1/usage", Harmless),
    row("others among the figures", BobsViewer, "GET /metrics", Harmless),
    // What a browser was talked into.
    row("page of another place acts", Admin, "POST /api/v1/jobs/alice/2/kill", Denied(403))
        .with(EVIL)
        .somebody(),
    row("page without a place acts", Admin, "POST /api/v1/jobs/alice/2/kill", Denied(403))
        .with(&["Origin: null"])
        .somebody(),
    row("page of another place reads", Admin, "GET /api/v1/jobs", Denied(403)).with(EVIL).somebody(),
    row("page asks what it may", Nobody, "OPTIONS /api/v1/jobs", Denied(403))
        .with(&["Origin: http://evil.example", "Access-Control-Request-Method: POST"]),
    row("page of another port acts", Admin, "POST /api/v1/jobs/alice/2/kill", Denied(403))
        .with(&["Origin: http://127.0.0.1:1"])
        .somebody(),
    row("simple form", Nobody, "POST /api/v1/jobs/alice/2/kill", Denied(401)).body(FORM, "force=true"),
    row("simple form submits", Nobody, "POST /api/v1/jobs", Denied(401)).body(TEXT, FOR_ALICE),
    row("form with a token", Alices, "POST /api/v1/jobs", Refused(415)).body(FORM, "target=local"),
    row("text with a token", Alices, "POST /api/v1/jobs", Refused(415)).body(TEXT, JOB),
    row("text changes", Alices, "PATCH /api/v1/jobs/alice/2", Refused(415))
        .body(TEXT, "{\"priority\": 1}"),
    row("form changes", Alices, "PATCH /api/v1/jobs/alice/2", Refused(415)).body(FORM, "priority=1"),
    // A name that somebody else gave to our address.
    row("other name", Admin, "GET /api/v1/jobs", Denied(421)).with(&["Host: evil.example:7960"]).somebody(),
    row("name that begins as ours", Admin, "GET /api/v1/jobs", Denied(421))
        .with(&["Host: localhost.evil.example"]).somebody(),
    row("name that begins as an address", Admin, "GET /api/v1/jobs", Denied(421))
        .with(&["Host: 127.0.0.1.evil.example"]).somebody(),
    row("no name", Admin, "GET /api/v1/jobs", Denied(421)).with(&["Host: "]).somebody(),
    row("two names", Admin, "GET /api/v1/jobs", Refused(400))
        .with(&["Host: localhost", "Host: evil.example"]),
    row("two tokens", Alices, "GET /api/v1/jobs", Refused(400))
        .with(&["Authorization: Bearer {token}"]),
    row("a key twice", Alices, "POST /api/v1/jobs", Refused(400)).body(
        JSON,
        "{\"for_user\": \"alice\", \"for_user\": \"bob\", \"target\": \"local\", \"dir\": 1, \"command\": \"true\"}",
    ),
    row("a key twice, within", Alices, "POST /api/v1/jobs", Refused(400)).body(
        JSON,
        "{\"target\": \"local\", \"dir\": 1, \"command\": \"true\", \"env\": {\"A\": \"1\", \"\\u0041\": \"2\"}}",
    ),
    row("other name acts", Admin, "POST /api/v1/jobs/alice/2/kill", Denied(421))
        .with(&["Host: evil.example", "Origin: http://evil.example"]).somebody(),
    row("other name in the target", Admin, "GET http://evil.example/api/v1/jobs", Denied(421)).somebody(),
    row("other name in the target acts", Admin, "POST http://evil.example/api/v1/jobs/alice/2/kill", Denied(421))
        .with(&["Host: localhost"]).somebody(),
    // Paths that lead elsewhere.
    row("user above", Admin, "GET /api/v1/jobs/../1", Denied(404)),
    row("user above, hidden", Admin, "GET /api/v1/jobs/%2e%2e/1", Denied(404)),
    row("user far above", Admin, "GET /api/v1/jobs/..%2f..%2fetc/1", Denied(404)),
    row("user far above, its log", Admin, "GET /api/v1/jobs/%2e%2e%2f%2e%2e%2fetc/1/logs", Denied(404)),
    row("file above", Admin, "GET /api/v1/../../etc/passwd", Denied(404)).somebody(),
    row("file above a log", Admin, "GET /api/v1/jobs/alice/1/logs/../../../../../etc/passwd", Denied(404)).somebody(),
    row("file of a log", Admin, "GET /api/v1/jobs/alice/1/logs?file=..%2fdata.json", Refused(400)),
    row("place in a log", Admin, "GET /api/v1/jobs/alice/1/logs?offset=..%2f1", Refused(400)),
    row("place before a log", Admin, "GET /api/v1/jobs/alice/1/logs?offset=-1", Refused(400)),
    row("place beyond all", Admin, "GET /api/v1/jobs/alice/1/logs?offset=18446744073709551616", Refused(400)),
    row("number with a NUL", Admin, "GET /api/v1/jobs/alice/1%00", Denied(400)),
    row("user with a NUL", Admin, "GET /api/v1/jobs/alice%00/1", Denied(404)),
    row("number below all", Admin, "GET /api/v1/jobs/alice/-1", Refused(400)),
    row("number 0", Admin, "POST /api/v1/jobs/alice/0/kill", Refused(400)),
    row("number beyond 32 bits", Admin, "POST /api/v1/jobs/alice/4294967298/kill", Refused(400)),
    row("number beyond 64 bits", Admin, "GET /api/v1/jobs/alice/99999999999999999999", Refused(400)),
    row("number with a power", Admin, "GET /api/v1/jobs/alice/1e0", Refused(400)),
    row("number of wide digits", Admin, "GET /api/v1/jobs/alice/%EF%BC%91", Refused(400)),
    row("user that is no text", Admin, "GET /api/v1/jobs/%ff%fe/1", Refused(400)),
    row("no user", Admin, "GET /api/v1/jobs//1", Refused(404)),
    row("user with another's name behind it", Bobs, "POST /api/v1/jobs/bob%2f..%2falice/2/kill", Denied(403)),
    row("user in capitals", Bobs, "POST /api/v1/jobs/BOB/1/kill", Denied(403)),
    row("user twice", BobsViewer, "GET /api/v1/jobs?user=bob&user=alice", Refused(400)),
    row("user of the path once more", BobsViewer, "GET /api/v1/jobs/bob/1?user=alice", Refused(400)),
    row("header by a parameter", Admin, "GET /api/v1/jobs?cursor=%0d%0aSet-Cookie:%20a=b", Refused(400)),
    row("name with slashes", Alices, "POST /api/v1/jobs", Refused(400)).body(
        JSON,
        "{\"name\": \"../../etc/cron\", \"target\": \"local\", \"dir\": 1, \"command\": \"true\"}",
    ),
    row("directory that is nobody's", Alices, "POST /api/v1/jobs", Refused(409))
        .body(JSON, "{\"target\": \"local\", \"dir\": \"/etc\", \"command\": \"true\"}"),
    row("code of this machine", Alices, "POST /api/v1/jobs", Refused(400))
        .body(JSON, "{\"target\": \"local\", \"code\": \".\", \"command\": \"true\"}"),
    row("target with slashes", Admin, "POST /api/v1/targets/..%2f..%2fx/reserve", Denied(404))
        .body(JSON, KEPT),
    row("queue with slashes", Admin, "POST /api/v1/queues/..%2f..%2fx/pause", Denied(404)),
    // A request that was answered, by others or with something else.
    row("key with another job", Alices, "POST /api/v1/jobs", Denied(422))
        .body(AGAIN, "{\"target\": \"local\", \"dir\": 1, \"command\": \"false\"}"),
    row("key with another start", Alices, "POST /api/v1/jobs?start=now", Denied(422)).body(AGAIN, JOB),
    row("key of another, for that one", Bobs, "POST /api/v1/jobs", Denied(403)).body(
        AGAIN,
        "{\"for_user\": \"alice\", \"target\": \"local\", \"dir\": 1, \"hold\": true, \"command\": \"true\"}",
    ),
    row("key of another, seeing alone", Viewer, "POST /api/v1/jobs", Denied(403)).body(AGAIN, FOR_ALICE),
    row("key again, without a token", Nobody, "POST /api/v1/jobs", Denied(401)).body(AGAIN, JOB),
    // Another method than the one that is sent.
    row("method in a header", Admin, "GET /api/v1/jobs/alice/2/kill", Refused(405))
        .with(&["X-HTTP-Method-Override: POST", "X-HTTP-Method: POST", "X-Method-Override: POST"]),
    row("method in a header, of a queue", Admin, "GET /api/v1/queues/default/pause", Refused(405))
        .with(&["X-HTTP-Method-Override: POST"]),
    row("method in the query", Admin, "GET /api/v1/jobs/alice/2/kill?_method=POST", Refused(405)),
    row("change in a header", Admin, "GET /api/v1/jobs/alice/2", Harmless)
        .body(&["X-HTTP-Method-Override: PATCH"], "{\"priority\": 1}"),
    row("removal in a header", Admin, "POST /api/v1/jobs/alice/2", Refused(405))
        .with(&["X-HTTP-Method-Override: DELETE"]),
    row("read that acts", Admin, "GET /cloudmesh/queue/default/run_fifo?max_parallel=1", Refused(405)),
    row("trace", Admin, "TRACE /api/v1/jobs", Refused(405)),
    row("method that nobody knows", Admin, "KILL /api/v1/jobs/alice/2", Refused(405)),
];

/// An attack that is no request as it should be.
pub(super) struct Bytes {
    /// What is tried.
    pub(super) name: &'static str,
    /// What is sent, made with an admin's token.
    pub(super) sends: fn(&str) -> Vec<u8>,
    /// The status of the one answer; 0 where it is hung up on.
    pub(super) comes: &'static [u16],
    /// Whether whoever sends it says that nothing more comes.
    pub(super) ends: bool,
}

const fn bytes(name: &'static str, sends: fn(&str) -> Vec<u8>, comes: &'static [u16]) -> Bytes {
    Bytes { name, sends, comes, ends: false }
}

impl Bytes {
    const fn and_ends(self) -> Self {
        Self { ends: true, ..self }
    }
}

/// A request with these lines behind its first, and whatever comes behind them.
fn request(line: &str, token: &str, headers: &str, behind: &str) -> Vec<u8> {
    let head = format!("{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n");
    format!("{head}{headers}\r\n{behind}").into_bytes()
}

/// A request that would take alice's job out of the queue.
fn acts(token: &str) -> String {
    let acts = request("POST /api/v1/jobs/alice/2/kill", token, "", "");
    String::from_utf8(acts).unwrap()
}

/// A request with two lengths, in this order, and another one that stands in what only the second of them reads.
fn of_two_lengths(token: &str, is_length_first: bool) -> Vec<u8> {
    let hidden = format!("0\r\n\r\n{}", acts(token));
    let (length, chunked) =
        (format!("Content-Length: {}\r\n", hidden.len()), "Transfer-Encoding: chunked\r\n");
    let headers = if is_length_first { length + chunked } else { chunked.to_owned() + &length };
    request("GET /healthz", token, &headers, &hidden)
}

const CHANGE: &str = "PATCH /api/v1/jobs/alice/2";
const KIND: &str = "Content-Type: application/json\r\n";

/// What is sent as it stands.
pub(super) const BYTES: &[Bytes] = &[
    bytes(
        "a body of 2 MiB",
        |token| {
            let length = 2 << 20;
            let headers = format!("{KIND}Content-Length: {length}\r\n");
            request(CHANGE, token, &headers, &" ".repeat(length))
        },
        &[413, 0],
    ),
    bytes(
        "a job file of 2 MiB",
        |token| {
            let length = 2 << 20;
            let headers = format!("{KIND}Content-Length: {length}\r\n");
            request("POST /api/v1/jobs", token, &headers, &" ".repeat(length))
        },
        &[413, 0],
    ),
    bytes(
        "a body where none is read",
        |token| {
            let body = "x".repeat(2_000);
            request("GET /api/v1/jobs", token, "Content-Length: 2000\r\n", &body)
        },
        &[413],
    ),
    bytes(
        "chunks without end",
        |token| {
            let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x1_0000)).repeat(20);
            request(CHANGE, token, &format!("{KIND}Transfer-Encoding: chunked\r\n"), &chunk)
        },
        &[413, 0],
    ),
    bytes(
        "a chunk of a size beyond all",
        |token| {
            let chunk = "ffffffffffffffffff\r\n{}";
            request(CHANGE, token, &format!("{KIND}Transfer-Encoding: chunked\r\n"), chunk)
        },
        &[400, 413, 0],
    ),
    bytes(
        "a body that ends before its end",
        |token| {
            request(CHANGE, token, &format!("{KIND}Content-Length: 100\r\n"), "{\"priority\": 1}")
        },
        &[400, 413, 0],
    )
    .and_ends(),
    bytes(
        "length, then chunks, and a request behind",
        |token| of_two_lengths(token, true),
        &[200, 400],
    ),
    bytes(
        "chunks, then length, and a request behind",
        |token| of_two_lengths(token, false),
        &[200, 400],
    ),
    bytes(
        "two lengths",
        |token| {
            let acts = acts(token);
            let headers = format!("Content-Length: 0\r\nContent-Length: {}\r\n", acts.len());
            request("GET /healthz", token, &headers, &acts)
        },
        &[400],
    ),
    bytes(
        "a length with a sign",
        |token| request("GET /healthz", token, "Content-Length: +0\r\n", ""),
        &[400],
    ),
    bytes(
        "a length of words",
        |token| request("GET /healthz", token, "Content-Length: 0, 5\r\n", ""),
        &[400],
    ),
    bytes(
        "chunks that are not the last word",
        |token| {
            let headers = "Transfer-Encoding: chunked, identity\r\n";
            request("GET /healthz", token, headers, &format!("0\r\n\r\n{}", acts(token)))
        },
        &[400],
    ),
    bytes(
        "chunks by another name",
        |token| {
            let headers = "Transfer-Encoding: xchunked\r\n";
            request("GET /healthz", token, headers, &format!("0\r\n\r\n{}", acts(token)))
        },
        &[400],
    ),
    bytes(
        "a blank before the colon",
        |token| {
            let headers = "Transfer-Encoding : chunked\r\n";
            request("GET /healthz", token, headers, &format!("0\r\n\r\n{}", acts(token)))
        },
        &[400],
    ),
    bytes(
        "chunks of HTTP/1.0",
        |token| {
            let head = format!(
                "POST /api/v1/jobs/alice/2/kill HTTP/1.0\r\nAuthorization: Bearer {token}\r\n"
            );
            format!("{head}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n").into_bytes()
        },
        &[400],
    ),
    bytes(
        "a line that goes on in the next",
        |token| request("GET /healthz", token, "X-A: b\r\n Content-Length: 5\r\n", ""),
        &[400],
    ),
    bytes("a NUL in a header", |token| request("GET /healthz", token, "X-A: b\0c\r\n", ""), &[400]),
    bytes(
        "1,000 headers",
        |token| {
            let headers = "X-A: y\r\n".repeat(1_000);
            request("GET /healthz", token, &headers, "")
        },
        &[431, 0],
    ),
    bytes(
        "a header of 1 MB",
        |token| request("GET /healthz", token, &format!("X-A: {}\r\n", "y".repeat(1_000_000)), ""),
        &[431, 0],
    ),
    bytes(
        "a path of 8 kB",
        |token| {
            request(
                &format!("GET /api/v1/jobs/{}/1", "a".repeat(8_000)),
                token,
                "Connection: close\r\n",
                "",
            )
        },
        &[404],
    ),
    bytes(
        "a path of 70 kB",
        |token| request(&format!("GET /api/v1/jobs/{}/1", "a".repeat(70_000)), token, "", ""),
        &[414, 0],
    ),
    bytes(
        "bytes that are no text in a path",
        |token| {
            let mut all = b"GET /api/v1/jobs/".to_vec();
            all.extend([0xff, 0xfe]);
            all.extend(request("/1", token, "Connection: close\r\n", ""));
            all
        },
        &[400],
    ),
    bytes("another protocol", |_| b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), &[400, 505, 0]),
    bytes("TLS", |_| b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(), &[400, 0])
        .and_ends(),
    bytes("nothing", |_| Vec::new(), &[0]).and_ends(),
];
