//! Logs of containers: kept line by line with their times, read as the API asks for them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::asked::{Asked, Reply};
use super::cluster::text;
use super::refused::{Cause, Refused, Subject};

/// How often a followed log is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// The log of one container.
#[derive(Debug)]
pub(super) struct ContainerLog {
    path: PathBuf,
    is_over: AtomicBool,
}

/// The logs of all containers, by the identity of the pod and the name of the container.
#[derive(Debug, Default)]
pub(super) struct LogShelf(Mutex<BTreeMap<(String, String), Arc<ContainerLog>>>);

impl LogShelf {
    /// A new log that is written from `output` until everybody has closed that.
    pub(super) fn record(
        &self,
        key: (String, String),
        path: &Path,
        output: impl std::io::Read + Send + 'static,
        clock: impl Fn() -> jiff::Timestamp + Send + 'static,
    ) -> std::io::Result<()> {
        let mut file = File::options().create(true).append(true).open(path)?;
        let log = Arc::new(ContainerLog { path: path.to_owned(), is_over: AtomicBool::new(false) });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, Arc::clone(&log));
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let mut line = Vec::new();
                // A line that never ends is kept in pieces.
                let read = (&mut output).take(16 * 1024).read_until(b'\n', &mut line);
                if !matches!(read, Ok(1..)) {
                    break;
                }
                let is_whole = line.last() == Some(&b'\n');
                if is_whole {
                    line.pop();
                }
                let time = clock().strftime("%Y-%m-%dT%H:%M:%S.%9fZ");
                let mut entry =
                    format!("{time} {} ", if is_whole { 'F' } else { 'P' }).into_bytes();
                entry.extend(line);
                entry.push(b'\n');
                if file.write_all(&entry).is_err() {
                    break;
                }
            }
            log.is_over.store(true, Ordering::Release);
        });
        Ok(())
    }

    /// The log of a container.
    pub(super) fn find(&self, uid: &str, container: &str) -> Option<Arc<ContainerLog>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&(uid.to_owned(), container.to_owned())).cloned()
    }

    /// The end of what a container has printed: 80 lines, and of those 2048 bytes.
    pub(super) fn last(&self, uid: &str, container: &str) -> Option<String> {
        let log = self.find(uid, container)?;
        let file = File::open(&log.path).ok();
        let wish = LogWish { tail: Some(80), ..LogWish::default() };
        let mut reading = Reading { log, file, wish, at: 0, sent: 0, in_line: false };
        let printed = reading.first();
        let end = printed.get(printed.len().saturating_sub(2048)..).unwrap_or_default();
        Some(String::from_utf8_lossy(end).into_owned())
    }

    /// Whether all that the containers of a pod wrote is kept.
    pub(super) fn is_over(&self, uid: &str) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter()
            .filter(|((of, _), _)| of == uid)
            .all(|(_, log)| log.is_over.load(Ordering::Acquire))
    }
}

/// How a log is to be read.
#[derive(Clone, Debug, Default)]
pub(super) struct LogWish {
    follow: bool,
    timestamps: bool,
    previous: bool,
    tail: Option<usize>,
    limit: Option<usize>,
    since: Option<jiff::Timestamp>,
}

impl LogWish {
    /// Reads the parameters [log-*].
    pub(super) fn parse(asked: &Asked, pod: &str, now: jiff::Timestamp) -> Result<Self, Refused> {
        let (since_s, tail, limit) = (
            asked.number("sinceSeconds")?,
            asked.number("tailLines")?,
            asked.number("limitBytes")?,
        );
        let mut causes = Vec::new();
        let mut at_least = |field: &str, value: Option<i64>, least: i64, why: &str| {
            if let Some(value) = value.filter(|value| *value < least) {
                causes.push(Cause::invalid(field, &json!(value), why));
            }
        };
        at_least("tailLines", tail, 0, "must be greater than or equal to 0");
        at_least("limitBytes", limit, 1, "must be greater than 0");
        let time = asked.parameter("sinceTime");
        if since_s.is_some() && time.is_some() {
            let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            causes.push(Cause::forbidden("[]", why));
        } else if let Some(seconds) = since_s.filter(|seconds| *seconds < 1) {
            causes.push(Cause::invalid("sinceSeconds", &json!(seconds), "must be greater than 0"));
        }
        if !causes.is_empty() {
            let subject = Subject { name: pod, group: "", kind: "PodLogOptions" };
            return Err(Refused::invalid(&subject, &causes));
        }
        let ago = since_s.and_then(|s| now.checked_sub(jiff::SignedDuration::from_secs(s)).ok());
        let to_size = |number: Option<i64>| number.and_then(|number| usize::try_from(number).ok());
        Ok(Self {
            follow: asked.flag("follow"),
            timestamps: asked.flag("timestamps"),
            previous: asked.flag("previous"),
            tail: to_size(tail),
            limit: to_size(limit),
            since: ago.or_else(|| time.and_then(|time| time.parse().ok())),
        })
    }
}

/// The container whose log is meant.
pub(super) fn container_of<'a>(pod: &'a Value, asked: Option<&'a str>) -> Result<&'a str, Refused> {
    let of = |key: &str| pod["spec"][key].as_array().into_iter().flatten();
    let names: Vec<&str> =
        of("initContainers").chain(of("containers")).map(|of| text(&of["name"])).collect();
    let pod = text(&pod["metadata"]["name"]);
    match asked {
        Some(name) if names.contains(&name) => Ok(name),
        Some(name) => Err(Refused::bad(&format!("container {name} is not valid for pod {pod}"))),
        None => match names.as_slice() {
            [one] => Ok(one),
            all => Err(Refused::bad(&format!(
                "a container name must be specified for pod {pod}, choose one of: [{}]",
                all.join(" ")
            ))),
        },
    }
}

/// Why there is no log of a container yet, from the status of its pod.
fn waits(pod: &Value, container: &str) -> Option<Refused> {
    let of = |key: &str| pod["status"][key].as_array().into_iter().flatten();
    let status = of("initContainerStatuses")
        .chain(of("containerStatuses"))
        .find(|status| text(&status["name"]) == container);
    let name = text(&pod["metadata"]["name"]);
    let state = status.map_or(&Value::Null, |status| &status["state"]);
    let why = match text(&state["waiting"]["reason"]) {
        "ErrImagePull" => "image can't be pulled",
        "ImagePullBackOff" => "trying and failing to pull image",
        "CrashLoopBackOff" => return None,
        "" if state["running"].is_object() || state["terminated"].is_object() => return None,
        "" => "ContainerCreating",
        reason => reason,
    };
    let text = format!("container {container:?} in pod {name:?} is waiting to start: {why}");
    Some(Refused::bad(&text))
}

/// The log of a container of a pod that has a node. `breaks` after so many bytes, if at all.
pub(super) fn read(
    shelf: &LogShelf,
    pod: &Value,
    container: &str,
    wish: &LogWish,
    breaks: Option<usize>,
) -> Result<Reply, Refused> {
    let name = text(&pod["metadata"]["name"]);
    if let Some(refused) = waits(pod, container) {
        return Err(refused);
    }
    if wish.previous {
        return Err(Refused::bad(&format!(
            "previous terminated container {container:?} in pod {name:?} not found"
        )));
    }
    let Some(log) = shelf.find(text(&pod["metadata"]["uid"]), container) else {
        return Err(unknown_to_kubelet(name));
    };
    // Held open: whoever follows a pod that goes reads it to its end.
    let file = File::open(&log.path).ok();
    let mut reading = Reading { log, file, wish: wish.clone(), at: 0, sent: 0, in_line: false };
    let first = reading.first();
    if !wish.follow && breaks.is_none() {
        return Ok(Reply::Text(200, "text/plain", first));
    }
    let (sender, receiver) = mpsc::channel(16);
    tokio::spawn(async move {
        let mut left = breaks;
        let mut piece = first;
        loop {
            if let Some(left) = &mut left {
                piece.truncate(*left);
                *left -= piece.len();
            }
            if !piece.is_empty() && sender.send(Ok(Bytes::from(piece))).await.is_err() {
                return;
            }
            if left == Some(0) || (left.is_some() && !reading.wish.follow) {
                let broken =
                    std::io::Error::other("the connection is broken off, as was asked for");
                // What was sent is on its way before that.
                tokio::time::sleep(LOOK).await;
                drop(sender.send(Err(broken)).await);
                return;
            }
            // Asked before the rest is read: what comes in between is the next piece.
            let is_over = reading.log.is_over.load(Ordering::Acquire);
            piece = reading.more();
            if piece.is_empty() {
                if is_over || reading.is_full() {
                    return;
                }
                tokio::select! {
                    () = tokio::time::sleep(LOOK) => {}
                    () = sender.closed() => return,
                }
            }
        }
    });
    Ok(Reply::Stream("text/plain", receiver))
}

/// The kubelet does not know the pod [log-kubelet404].
pub(super) fn unknown_to_kubelet(pod: &str) -> Refused {
    let text = format!("the server could not find the requested resource ( pods/log {pod})");
    Refused::new(404, "NotFound", &text, Some(json!({"name": pod, "kind": "pods/log"})))
}

/// A log that is being read.
struct Reading {
    log: Arc<ContainerLog>,
    file: Option<File>,
    wish: LogWish,
    /// How much of the file is read.
    at: u64,
    /// How many bytes are sent.
    sent: usize,
    /// Whether the last piece ended within a line.
    in_line: bool,
}

impl Reading {
    fn entries(&mut self) -> Vec<Vec<u8>> {
        let mut bytes = Vec::new();
        let Some(file) = &mut self.file else { return Vec::new() };
        let read = file.seek(SeekFrom::Start(self.at)).and_then(|_| file.read_to_end(&mut bytes));
        if read.is_err() {
            return Vec::new();
        }
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        bytes.truncate(whole);
        self.at += whole as u64;
        bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    }

    /// What is there at first.
    fn first(&mut self) -> Vec<u8> {
        let mut entries = self.entries();
        if let Some(since) = self.wish.since {
            entries.retain(|entry| taken_apart(entry).is_some_and(|(time, ..)| time >= since));
        }
        if let Some(tail) = self.wish.tail {
            let is_whole =
                |entry: &Vec<u8>| taken_apart(entry).is_some_and(|(_, _, whole, _)| whole);
            let mut lines = 0;
            let mut from = entries.len();
            for (at, entry) in entries.iter().enumerate().rev() {
                lines += usize::from(is_whole(entry) || at + 1 == entries.len());
                if lines > tail {
                    break;
                }
                from = at;
            }
            entries.drain(..from);
        }
        self.sent_of(&entries)
    }

    fn more(&mut self) -> Vec<u8> {
        let entries = self.entries();
        self.sent_of(&entries)
    }

    fn is_full(&self) -> bool {
        self.wish.limit.is_some_and(|limit| self.sent >= limit)
    }

    fn sent_of(&mut self, entries: &[Vec<u8>]) -> Vec<u8> {
        let mut out = Vec::new();
        for entry in entries {
            let Some((_, time, is_whole, line)) = taken_apart(entry) else { continue };
            if self.wish.timestamps && !self.in_line {
                out.extend_from_slice(time);
                out.push(b' ');
            }
            out.extend_from_slice(line);
            if is_whole {
                out.push(b'\n');
            }
            self.in_line = !is_whole;
        }
        if let Some(limit) = self.wish.limit {
            out.truncate(limit.saturating_sub(self.sent));
        }
        self.sent += out.len();
        out
    }
}

/// Time, its text, whether the line ends there, and the line.
fn taken_apart(entry: &[u8]) -> Option<(jiff::Timestamp, &[u8], bool, &[u8])> {
    let entry = entry.strip_suffix(b"\n")?;
    let space = entry.iter().position(|byte| *byte == b' ')?;
    let (time, rest) = entry.split_at_checked(space)?;
    let at = std::str::from_utf8(time).ok()?.parse().ok()?;
    let is_whole = rest.get(1) == Some(&b'F');
    Some((at, time, is_whole, rest.get(3..)?))
}
