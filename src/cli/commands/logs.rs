//! `tpu logs`.

use std::io;
use std::time::Duration;

use anstream::ColorChoice;
use regex::bytes::Regex;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::Logs;
use crate::cli::print::{Output, to_stdout};
use tpu_core::model::ids::JobId;
use tpu_ops::act::{outlook, results};
use tpu_ops::observe::follow::LogFollower;
use tpu_ops::observe::{archive, logs};
use tpu_ops::waiting::whose::Purpose;
use tpu_ops::{Error, Kind};
use tpu_wire::jobs::{JobIdPart, LogsDocument};

use super::archive as archived;

/// How often a followed file is looked at.
const POLL: Duration = Duration::from_millis(200);

/// The same where an engine has it: its disk may be far away.
const POLL_ENGINE: Duration = Duration::from_secs(1);

/// Prints what a job has printed.
pub(in crate::cli) fn logs(app: &App, args: &Logs) -> Outcome {
    let found = app.requester()?.one_job(&args.words, Purpose::Look);
    let grep = match &args.grep {
        None => None,
        Some(text) => Some(Regex::new(text).map_err(|e| {
            Error::usage(format!("--grep: {e}")).hint("a regular expression as of ripgrep")
        })?),
    };
    let filter = Wanted { grep, worker: args.worker };
    let ctx = app.ctx()?;
    let id = match found {
        Err(error) if error.kind == Kind::NotFound => {
            return of_archive(app, &args.words, (&filter, args.lines), error);
        }
        found => found?,
    };
    let follows = args.follow && !app.global.json;
    let output = match logs::output(ctx, &id) {
        // What an engine has not started yet has printed nothing.
        Err(error) if error.kind == Kind::NotFound && follows && logs::has_engine(ctx, &id)? => {
            logs::Output { bytes: Vec::new(), next: Some(0) }
        }
        // So with one whose window has only just been opened. It may have ended since that was looked at.
        Ok(logs::Output { next: None, .. }) if follows && logs::is_kept(ctx, &id)? => {
            if logs::is_over(ctx, &id)? {
                logs::output(ctx, &id)?
            } else {
                logs::Output { bytes: Vec::new(), next: Some(0) }
            }
        }
        other => other?,
    };
    if let (true, Some(next)) = (follows, output.next) {
        let text = chosen(&output.bytes, &filter, args.lines);
        return follow(app, &id, (next, &filter), &text);
    }
    let mut bytes = output.bytes;
    if output.next.is_some() {
        bytes.extend(logs::open_line(ctx, &id).unwrap_or_default());
    }
    let text = chosen(&bytes, &filter, args.lines);
    let lines: Vec<&str> = text.lines().collect();
    let document = LogsDocument { job: JobIdPart::from(&id), lines };
    Ok(Output::new(&*text, &document))
}

/// Prints what a job has printed that was cleaned away. Fails with `unknown`, which says that there is no such job among
/// the others, where the archive has none either.
fn of_archive(
    app: &App,
    words: &[String],
    (filter, last): (&Wanted, Option<usize>),
    unknown: Error,
) -> Outcome {
    let ctx = app.ctx()?;
    let hint = |id: &JobId| format!("archived: tpu archive logs {} {}", id.window, id.user);
    let id = archived::meant(app, words, unknown, &hint)?;
    let of = archive::find(ctx, &id, 0).map_err(|error| error.hint(hint(&id)))?;
    let text = chosen(&archive::output(ctx, &of)?, filter, last);
    let note = format!("{id} was cleaned away; what it printed is still there");
    let document = LogsDocument { job: JobIdPart::from(&id), lines: text.lines().collect() };
    Ok(Output::new(&*text, &document).notes(vec![note]))
}

/// Which lines are wanted.
struct Wanted {
    grep: Option<Regex>,
    worker: Option<u32>,
}

impl Wanted {
    /// A line as it is shown, if it is wanted.
    fn line<'a>(&self, line: &'a [u8]) -> Option<&'a [u8]> {
        let line = self.worker.map_or(Some(line), |worker| logs::of_worker(line, worker))?;
        self.grep.as_ref().is_none_or(|grep| grep.is_match(line)).then_some(line)
    }
}

/// The lines that are wanted, as they are.
fn chosen(bytes: &[u8], filter: &Wanted, last: Option<usize>) -> String {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    let lines: Vec<&[u8]> = lines.into_iter().filter_map(|line| filter.line(line)).collect();
    let from = last.map_or(0, |n| lines.len().saturating_sub(n));
    let mut text = String::new();
    for line in lines.iter().skip(from) {
        text += &String::from_utf8_lossy(line);
        text.push('\n');
    }
    text
}

/// The last line of a log that is followed, while it has no end.
#[derive(Default)]
struct OpenLine {
    /// As it was at the last look.
    seen: String,
    /// What of it is printed.
    shown: String,
}

impl OpenLine {
    /// What is to be printed of it now: a bar that is drawn anew with each look is not.
    fn more(&mut self, line: &str) -> String {
        let is_still = self.seen == line;
        line.clone_into(&mut self.seen);
        let more = line.strip_prefix(&*self.shown).filter(|_| is_still);
        let more = more.unwrap_or_default().to_owned();
        self.shown += &more;
        more
    }

    /// Whole lines, without what of the first is printed already.
    fn ended_by(&mut self, lines: String) -> String {
        if lines.is_empty() || self.shown.is_empty() {
            return lines;
        }
        let shown = std::mem::take(&mut self.shown);
        lines.strip_prefix(&*shown).map_or_else(|| format!("\n{lines}"), str::to_owned)
    }
}

/// Prints what comes from a byte on, until the job has ended and its last words are out.
fn follow(app: &App, id: &JobId, (next, filter): (u64, &Wanted), first: &str) -> Outcome {
    let ctx = app.ctx()?;
    let print = |text: &str| match to_stdout(text, ColorChoice::Auto) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(Error::failed(format!("cannot print: {e}"))
            .hint("the output was closed or its disk is full")),
        Ok(()) => Ok(true),
    };
    let mut open = OpenLine::default();
    let mut follower = LogFollower::new(id.clone(), next);
    // Before a reader that may take its time: from here the follower knows which file it reads.
    let mut rest = follower.read_on(ctx)?;
    let mut goes_on = print(first)?;
    let poll = if logs::has_engine(ctx, id)? { POLL_ENGINE } else { POLL };
    while goes_on {
        let over = logs::is_over(ctx, id)?;
        let new = follower.read_on(ctx)?;
        rest.extend_from_slice(&new);
        let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines: Vec<u8> = rest.drain(..whole).collect();
        let mut text = open.ended_by(chosen(&lines, filter, None));
        if new.is_empty() {
            let line = logs::open_line(ctx, id).unwrap_or_default();
            let line = filter.line(&line).map(String::from_utf8_lossy).unwrap_or_default();
            text += &open.more(&line);
        }
        goes_on = print(&text)?;
        if over && new.is_empty() {
            break;
        }
        ctx.clock.sleep(poll);
    }
    if goes_on {
        print(&chosen(&rest, filter, None))?;
        // What has been archived meanwhile has said it there.
        let last = outlook::look_at(ctx, id).map(|view| results::last_words(ctx, &view));
        return Ok(Output::default().notes(last.into_iter().collect()));
    }
    Ok(Output::default())
}
