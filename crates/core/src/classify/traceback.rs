//! Python's tracebacks: which of their lines says what went wrong, and which of several that were raised
//! one after the other.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::frames::Frames;
use super::rules::Weight;
use super::sign::Sign;
use crate::model::facts::ErrorKind;

/// Lines after a traceback's head in which its last line is looked for.
const REACH: usize = 400;
/// Lines between two tracebacks in which a sentence may join them.
const BETWEEN: usize = 40;

/// Makes one sign of each traceback, and of those that Python or a library joins to a chain. The head of
/// a traceback says only that something was raised: its last line says what, whether or not a rule
/// knows that exception.
pub(super) fn merge(frames: &Frames<'_>, signs: Vec<Sign>) -> Vec<Sign> {
    let mut merged: Vec<Sign> = Vec::new();
    // The newest chain: where its sign stands in `merged`, and the traceback that it shows.
    let mut chain: Option<(usize, Raised)> = None;
    let mut rest = signs.into_iter().peekable();
    while let Some(sign) = rest.next() {
        if !is_head(frames, &sign) {
            merged.push(sign);
            continue;
        }
        let mut raised = Raised::read(frames, &sign);
        let mut others = Vec::new();
        while let Some(next) = rest.next_if(|next| next.line <= raised.end) {
            if next.worker != sign.worker {
                others.push(next);
            } else if next.line == raised.end {
                raised.sign = next;
            }
        }
        merged.extend(others);
        if is_ignored(frames, raised.head) {
            continue;
        }
        let link = chain.as_ref().and_then(|(_, before)| before.link_to(frames, &raised));
        if let (Some((at, before)), Some(link)) = (chain.take(), link) {
            let shown = before.choose(raised, link);
            if let Some(slot) = merged.get_mut(at) {
                slot.clone_from(&shown.sign);
            }
            chain = Some((at, shown));
        } else {
            // Its announcement says less than the traceback itself.
            while merged.last().is_some_and(|last| raised.is_announced_by(frames, last)) {
                merged.pop();
            }
            merged.push(raised.sign.clone());
            chain = Some((merged.len() - 1, raised));
        }
    }
    merged.sort_by_key(|sign| sign.line);
    merged
}

/// How one traceback came of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// Somebody chose to raise the later one: `raise … from …`, or `raise` in an `except`.
    Chosen,
    /// The code that handled the earlier one failed itself.
    Slip,
    /// A library or a group reports the later one, which another process or task raised, by an exception of
    /// its own.
    Reported,
    /// Both are members of a group: the first one is shown.
    Beside,
}

/// The rule over the first exception of a group, and what the rules over the others hold.
const FIRST_OF_GROUP: &[u8] = b"---------------- 1 ----------------";
const OTHER_OF_GROUP: &[u8] = b"+---------------- ";

/// A traceback, with the exception's line, which stands for it.
struct Raised {
    /// What it stands for: the exception's own line.
    sign: Sign,
    head: usize,
    /// The line with the exception.
    end: usize,
    /// The newest line of the chain that it belongs to.
    last: usize,
    /// Another process raised it, and the caller merely passes it on.
    remote: bool,
}

impl Raised {
    fn read(frames: &Frames<'_>, head: &Sign) -> Self {
        let end = last_line(frames, head);
        let mut sign = head.clone();
        if end != head.line && is_exception(content(frames, end)) {
            sign.line = end;
            sign.at = frames.prefix(end).launcher;
        }
        let remote = announcement(frames, head.line)
            .is_some_and(|line| holds(frames, line, b"RemoteTraceback"));
        Self { sign, head: head.line, end, last: end, remote }
    }

    /// Whether a sign is the line that only announces this traceback, such as `RemoteTraceback:`.
    fn is_announced_by(&self, frames: &Frames<'_>, sign: &Sign) -> bool {
        sign.worker == self.sign.worker && announcement(frames, self.head) == Some(sign.line)
    }

    /// How `next` came of this one, if it did.
    fn link_to(&self, frames: &Frames<'_>, next: &Self) -> Option<Link> {
        if self.sign.worker != next.sign.worker || next.head > self.last + BETWEEN {
            return None;
        }
        let says = |words: &[u8]| (self.last..=next.head).any(|line| holds(frames, line, words));
        if says(b"During handling of the above exception") {
            Some(if next.is_on_purpose(frames) { Link::Chosen } else { Link::Slip })
        } else if says(b"The above exception was the direct cause") {
            Some(Link::Chosen)
        } else if [FIRST_OF_GROUP, b"Original Traceback", b"terminated with the following error"]
            .iter()
            .any(|words| says(words))
        {
            Some(Link::Reported)
        } else if says(OTHER_OF_GROUP) {
            Some(Link::Beside)
        } else {
            None
        }
    }

    /// Which of two linked tracebacks a person wants to read.
    fn choose(self, next: Self, link: Link) -> Self {
        let last = next.last;
        let narrower = !is_plain(&self.sign) && is_plain(&next.sign);
        // What handles a failure and fails is not what began it.
        let slip = link == Link::Slip && is_plain(&next.sign);
        let wraps = next.sign.weight < self.sign.weight;
        let keep = match link {
            Link::Reported => false,
            Link::Beside => true,
            Link::Chosen | Link::Slip => narrower || self.remote || slip || wraps,
        };
        Self { last, ..if keep { self } else { next } }
    }

    /// Whether the code that raised it says `raise`. Where no code is shown, nobody knows, and the last
    /// exception is what Python itself holds for the one that counts.
    fn is_on_purpose(&self, frames: &Frames<'_>) -> bool {
        let mut code = (self.head..self.end)
            .rev()
            .map(|line| content(frames, line))
            .take_while(|text| !text.starts_with(b"File \""))
            .filter(|text| text.iter().any(u8::is_ascii_alphabetic))
            .peekable();
        code.peek().is_none() || code.any(|text| text.starts_with(b"raise"))
    }
}

fn is_plain(sign: &Sign) -> bool {
    sign.class.failure() == Some(ErrorKind::PythonError) || sign.weight < Weight::Proof
}

/// A line behind what launchers and loggers put before it.
fn content<'a>(frames: &'a Frames<'_>, line: usize) -> &'a [u8] {
    frames.line(line).get(frames.prefix(line).launcher..).unwrap_or_default()
}

fn holds(frames: &Frames<'_>, line: usize, words: &[u8]) -> bool {
    memchr::memmem::find(frames.line(line), words).is_some()
}

fn is_head(frames: &Frames<'_>, sign: &Sign) -> bool {
    let text = frames.line(sign.line).get(sign.at..).unwrap_or_default();
    text.starts_with(b"Traceback (most recent call last)")
}

/// The line of the same worker before another.
fn line_before(frames: &Frames<'_>, line: usize) -> Option<usize> {
    let worker = frames.worker(line);
    (0..line).rev().find(|line| frames.worker(*line) == worker)
}

/// The line before a head that says of which thread it is, or, over an opening quote, of which process.
fn announcement(frames: &Frames<'_>, head: usize) -> Option<usize> {
    let before = line_before(frames, head)?;
    let text = content(frames, before);
    if text.starts_with(b"Exception in ") {
        return Some(before);
    }
    let named = line_before(frames, before).filter(|_| text.starts_with(b"\"\"\""))?;
    content(frames, named).trim_ascii_end().ends_with(b"Traceback:").then_some(named)
}

/// Whether Python says over a traceback that it takes no notice of it, as of one of a `__del__`.
fn is_ignored(frames: &Frames<'_>, head: usize) -> bool {
    line_before(frames, head)
        .is_some_and(|line| content(frames, line).starts_with(b"Exception ignored "))
}

/// The line with the exception: the first that is not indented more than the head, as far as the
/// same worker's lines go.
fn last_line(frames: &Frames<'_>, head: &Sign) -> usize {
    let indent = frames.prefix(head.line).indent;
    let mut last = head.line;
    for line in head.line + 1..frames.len().min(head.line + REACH) {
        let prefix = frames.prefix(line);
        if frames.worker(line) != head.worker.as_deref() {
            continue;
        }
        let text = content(frames, line);
        if text.is_empty() || prefix.indent > indent {
            continue;
        }
        last = line;
        if is_exception(text) {
            break;
        }
        // Unprefixed workers may talk in between; a few lines of that are skipped.
        if line > head.line + 60 {
            break;
        }
    }
    last
}

/// A dotted name, perhaps with what it stands for in parentheses, alone or before a message.
static EXCEPTION: LazyLock<Regex> = LazyLock::new(|| {
    let name = r"^(?-u)[A-Za-z_][\w.]*(?:\([\w.]+\))?(?::\s|:?$)";
    Regex::new(name).expect("the pattern is a constant")
});

fn is_exception(text: &[u8]) -> bool {
    EXCEPTION.is_match(text)
}
