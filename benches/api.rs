//! P20: what the API takes for a page of a thousand jobs, for one that has not changed, for an event, and for a thousand
//! who only listen. The floor is a server that gives the same bytes away without a look at anything.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;

use crate::Plan;
use crate::common::table::{Amount, Row, Sample, Table};
use crate::common::{Lab, TPU, finished, timed, words};

const JOBS: usize = 1_000;
const REQUESTS: usize = 1_000;
const LISTENERS: usize = 1_000;
const EVENTS: usize = 20;
const PAGE: &str = "/api/v1/jobs?limit=100";

/// A server over a lab; ended with the value.
struct Served {
    lab: Lab,
    server: Child,
    address: String,
    token: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

/// Pages, an event, those who listen.
pub(crate) fn api(table: &mut Table, _: &Plan) -> io::Result<()> {
    let served = Served::new()?;
    let (whole, tag) = Asking::to(&served)?.ask(PAGE, "")?;
    let quiet = format!("If-None-Match: {tag}\r\n");
    for (name, headers) in [("a page of 100 of 1000 jobs", ""), ("the same, unchanged", &*quiet)] {
        let (cost, times) = served.cost(|| pages(&mut Asking::to(&served)?, headers))?;
        let floor = barest(if headers.is_empty() { whole } else { 0 })?;
        let row = Row::time(format!("P20 {name}"), &times).floor(Amount::Time(floor.median()));
        table.push(&row)?;
        let row = Row::of(format!("P20 {name}, p95"), Amount::Time(times.at(95)));
        table.push(&row.bound(Amount::Time(Duration::from_millis(20)), "≤ 20 ms"))?;
        let each = cost / u32::try_from(REQUESTS).unwrap_or(u32::MAX);
        let row = Row::of(format!("P20 {name}, time of a core"), Amount::Time(each));
        table.push(&row.bound(Amount::Time(Duration::from_millis(2)), "≤ 2 ms: 500 a second"))?;
    }
    let late = events(&served)?;
    let row = Row::time("P20 an event, from the journal to a subscriber", &late);
    table.push(&row.bound(Amount::Time(Duration::from_secs(1)), "≤ 1 s"))?;
    let before = served.memory()?;
    let listeners = listeners(&served)?;
    let more = served.memory()?.saturating_sub(before);
    #[expect(clippy::cast_precision_loss, reason = "megabytes")]
    let more = more as f64 / 1e3;
    let row = Row::of(
        format!("P20 memory of {} who listen and hear nothing", listeners.len()),
        Amount::Megabytes(more),
    );
    table.push(&row.bound(Amount::Megabytes(60.0), "≤ 60 MB"))
}

impl Served {
    #[expect(clippy::disallowed_methods, reason = "it is at work until the figures are taken")]
    fn new() -> io::Result<Self> {
        let lab = Lab::new()?;
        lab.write(&finished(&lab, JOBS))?;
        let (_, token) = lab.run(TPU, &words("token create bench --role admin"))?;
        let token = token.text().trim().to_owned();
        // A thousand connections are more than a shell allows without a word.
        let line = format!("ulimit -n 8192; exec {TPU} serve --listen 127.0.0.1:0 --json");
        let spawn = lab.spawn("sh", &["-c", &line]);
        let mut server = Command::new(&spawn.program)
            .args(&spawn.args)
            .env_clear()
            .envs(spawn.env.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))))
            .current_dir(lab.dir())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut said = String::new();
        let out = server.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
        BufReader::new(out).read_line(&mut said)?;
        let said: Value = serde_json::from_str(&said).map_err(io::Error::other)?;
        let address = said["address"].as_str().unwrap_or_default();
        let address = address.trim_start_matches("http://").to_owned();
        Ok(Self { lab, server, address, token })
    }

    /// Time of cores that the server takes meanwhile, and what the work returns.
    fn cost<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<(Duration, T)> {
        let before = self.cpu()?;
        let done = work()?;
        Ok((self.cpu()?.saturating_sub(before), done))
    }

    /// Time of cores that the server has taken (`utime` and `stime` of proc(5), in hundredths of a second).
    fn cpu(&self) -> io::Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.server.id()))?;
        let behind = stat.rsplit_once(") ").map_or("", |(_, behind)| behind);
        let ticks = behind.split(' ').skip(11).take(2).filter_map(|word| word.parse::<u64>().ok());
        Ok(Duration::from_millis(ticks.sum::<u64>() * 10))
    }

    /// Kilobytes that it holds.
    fn memory(&self) -> io::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.ok_or_else(|| io::Error::other("it says nothing of its memory"))
    }
}

/// A connection that is used again and again.
struct Asking<'a> {
    served: &'a Served,
    stream: BufReader<TcpStream>,
}

impl<'a> Asking<'a> {
    fn to(served: &'a Served) -> io::Result<Self> {
        let stream = TcpStream::connect(&served.address)?;
        stream.set_nodelay(true)?;
        Ok(Self { served, stream: BufReader::new(stream) })
    }

    /// Bytes of the answer, and its version.
    fn ask(&mut self, path: &str, headers: &str) -> io::Result<(usize, String)> {
        let Served { address, token, .. } = self.served;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{headers}\r\n"
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        answer(&mut self.stream)
    }
}

/// Reads an answer: the bytes of its body, and its version.
fn answer(stream: &mut BufReader<TcpStream>) -> io::Result<(usize, String)> {
    let (mut length, mut tag) = (0, String::new());
    let mut line = String::new();
    stream.read_line(&mut line)?;
    if !(line.contains(" 200 ") || line.contains(" 304 ")) {
        return Err(io::Error::other(format!("answered with {line}")));
    }
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name {
            "content-length" => length = value.parse().map_err(io::Error::other)?,
            "etag" => value.clone_into(&mut tag),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok((length, tag))
}

/// How long each of many requests takes.
fn pages(asking: &mut Asking<'_>, headers: &str) -> io::Result<Sample> {
    asking.ask(PAGE, headers)?;
    let times = (0..REQUESTS).map(|_| {
        let (answered, took) = timed(|| asking.ask(PAGE, headers));
        answered.map(|_| took)
    });
    Ok(Sample::from(times.collect::<io::Result<Vec<_>>>()?))
}

/// The same of a server that gives so many bytes away.
fn barest(bytes: usize) -> io::Result<Sample> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let giving = std::thread::spawn(move || -> io::Result<()> {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n");
        let given = [head.into_bytes(), vec![b' '; bytes]].concat();
        let mut line = String::new();
        while stream.read_line(&mut line)? > 0 {
            if line.trim_end().is_empty() {
                stream.get_mut().write_all(&given)?;
            }
            line.clear();
        }
        Ok(())
    });
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let mut times = Vec::new();
    for _ in 0..REQUESTS {
        let (answered, took) = timed(|| {
            stream.get_mut().write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")?;
            answer(&mut stream)
        });
        answered?;
        times.push(took);
    }
    drop(stream);
    giving.join().map_err(|_| io::Error::other("the barest server failed"))??;
    Ok(Sample::from(times))
}

/// Opens a stream of events, and reads the head of its answer.
fn follow(served: &Served) -> io::Result<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect(&served.address)?;
    let Served { address, token, .. } = served;
    let request = format!(
        "GET /api/v1/events HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while stream.read_line(&mut line)? > 0 && !line.trim_end().is_empty() {
        if line.starts_with("HTTP") && !line.contains(" 200 ") {
            return Err(io::Error::other(format!("a stream was answered with {line}")));
        }
        line.clear();
    }
    Ok(stream)
}

/// How long after it was noted each of some events is heard.
#[expect(clippy::disallowed_methods, reason = "a part of a second counts")]
fn events(served: &Served) -> io::Result<Sample> {
    let mut stream = follow(served)?;
    let mut late = Vec::new();
    for number in 0..EVENTS {
        served.lab.tpu(&format!("add-tag 1 bench-{number}"))?;
        let mut line = String::new();
        while !line.starts_with("data: {") {
            line.clear();
            stream.read_line(&mut line)?;
        }
        let event: Value = serde_json::from_str(line.trim_start_matches("data: "))?;
        let noted = event["time"].as_str().and_then(|time| time.parse::<jiff::Timestamp>().ok());
        let noted = noted.ok_or_else(|| io::Error::other("an event without a time"))?;
        let after = jiff::Timestamp::now().duration_since(noted);
        late.push(Duration::try_from(after).unwrap_or_default());
    }
    Ok(Sample::from(late))
}

/// Many who listen, each of them let in.
fn listeners(served: &Served) -> io::Result<Vec<BufReader<TcpStream>>> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    (0..LISTENERS).map(|_| follow(served)).collect()
}
