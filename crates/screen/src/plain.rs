//! The monitor without a screen: what has changed, line by line, for those who hear it read out, for pipes and for terminals
//! that cannot draw. No colours, no cursor, no escape sequences.
//!
//! [`PlainTeller`] makes lines of looks and is pure; [`run_plain`] looks, has them printed and ends when it is asked to.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::backend::Backend;
use super::feed::{Event, Looks, Rhythm, SignalFeed};
use super::message::{Message, Problem, Scope};
use super::run::{MonitorError, Options};
use super::view::status;
use tpu_core::model::facts::{Evidence, Source};
use tpu_core::model::job::Status;
use tpu_core::model::rules::Action;
use tpu_core::model::time::{self, Timestamp, Zone};
use tpu_core::model::view::{JobView, MonitorHealth, Snapshot, TmuxHealth, Whose};
use tpu_core::plan::changes::{self, LookChange};
use tpu_core::plan::next;
use tpu_core::text;

/// From one cheap check, whether anything has changed or somebody still reads, to the next.
const TICK: Duration = Duration::from_secs(1);
/// So long a line that is being printed may take when we are to end.
const SOON: Duration = Duration::from_millis(200);
/// Columns of a name that somebody has given, at most.
const NAME: usize = 80;
/// Columns of a line of output or of a reason, at most.
const QUOTE: usize = 240;

/// Prints lines. It may wait for whoever reads them.
pub(crate) type SayLines = fn(&str) -> io::Result<()>;

/// What has come of a look.
type Looked = Result<Box<Snapshot>, Problem>;

/// Looks and tells until a signal ends it, or nobody reads any more.
pub fn run_plain(
    backend: &Arc<dyn Backend>,
    options: &Options,
    say: SayLines,
) -> Result<(), MonitorError> {
    let (events, happened) = channel();
    let _signals = SignalFeed::start(events.clone())?;
    let refresh = options.refresh.max(TICK);
    let late = refresh * 2 + 2 * TICK;
    let scope = Scope { whose: options.whose.clone() };
    let rhythm = Rhythm { refresh, wake: TICK };
    let _looks = Looks::start(Arc::clone(backend), scope, rhythm, events)?;
    let (lines, said) = writer(say)?;
    let mut teller = PlainTeller::new(options.whose.clone(), options.zone.clone(), options.ascii);
    let (mut newest, mut is_writing) = (None, false);
    let mut looked_at = backend.monotonic();
    loop {
        match happened.recv_timeout(TICK) {
            Ok(Event::Message(Message::Looked(look))) => newest = Some(Ok(look)),
            Ok(Event::Message(Message::LookFailed(problem))) => newest = Some(Err(problem)),
            Ok(Event::Terminate(signal)) => {
                // A line that is being printed is better whole; whoever does not read it has no say.
                drop(is_writing.then(|| said.recv_timeout(SOON)));
                return Err(MonitorError::Signal(signal));
            }
            Ok(_) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        if let Ok(written) = said.try_recv() {
            is_writing = false;
            written?;
        }
        if !has_reader() {
            return Err(MonitorError::Terminal(io::ErrorKind::BrokenPipe.into()));
        }
        if newest.is_some() {
            looked_at = backend.monotonic();
        }
        // Whoever reads slowly is told of several looks at once.
        if is_writing {
            continue;
        }
        let waited = backend.monotonic().saturating_sub(looked_at);
        let told = match newest.take() {
            Some(look) => teller.looked(look, backend.now()),
            None if waited > late => teller.waited(waited, backend.now()),
            None => String::new(),
        };
        if !told.is_empty() {
            // Its end is told on the other channel, with the reason.
            is_writing = lines.send(told).is_ok();
        }
    }
}

/// Starts the thread that prints, one text after the other: one who does not read on must not keep a signal waiting.
fn writer(say: SayLines) -> io::Result<(SyncSender<String>, Receiver<io::Result<()>>)> {
    let (lines, to_write) = sync_channel::<String>(1);
    let (told, said) = channel();
    let write = move || {
        for text in to_write {
            let written = say(&text);
            let goes_on = written.is_ok();
            if told.send(written).is_err() || !goes_on {
                return;
            }
        }
    };
    std::thread::Builder::new().name("lines".to_owned()).spawn(write)?;
    Ok((lines, said))
}

/// Whether somebody still reads what is printed: without a word to be said, a pipe that was closed shows in no other way.
fn has_reader() -> bool {
    let stdout = io::stdout();
    let mut fds = [PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let gone = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
    // What cannot be asked is found out by the next line.
    poll(&mut fds, Some(&at_once)).is_err() || !fds[0].revents().intersects(gone)
}

/// Makes lines of looks: all there is with the first one, and then what has changed.
#[derive(Debug)]
pub struct PlainTeller {
    whose: Whose,
    zone: Zone,
    ascii: bool,
    /// What was told.
    before: Option<Snapshot>,
    /// Whether the last look failed.
    is_blind: bool,
    /// Whether looks do not come back.
    is_waiting: bool,
}

impl PlainTeller {
    /// One who has told nothing yet. Times are of `zone`; `ascii` leaves nothing but ASCII.
    pub fn new(whose: Whose, zone: Zone, ascii: bool) -> Self {
        Self { whose, zone, ascii, before: None, is_blind: false, is_waiting: false }
    }

    /// The lines about a look that came back at `now`, each with its end; none if nothing has changed.
    pub fn looked(&mut self, look: Looked, now: Timestamp) -> String {
        let mut lines = Vec::new();
        if std::mem::take(&mut self.is_waiting) {
            lines.push("looks come back again".to_owned());
        }
        match look {
            Ok(look) => {
                if std::mem::take(&mut self.is_blind) {
                    lines.push("the jobs can be read again".to_owned());
                }
                match self.before.take() {
                    None => lines.extend(self.all(&look)),
                    Some(before) => {
                        let runs = look.monitor != MonitorHealth::NotRunning;
                        let changes = changes::changes(&before, &look);
                        lines.extend(changes.iter().map(|change| self.change(change, runs)));
                        self.before = Some(changes::remembering(&before, *look));
                        return self.stamped(&lines, now);
                    }
                }
                self.before = Some(*look);
            }
            Err(problem) => {
                if !std::mem::replace(&mut self.is_blind, true) {
                    let hint = problem.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                    let why = quoted(&format!("{}{hint}", problem.message));
                    lines.push(format!("the jobs cannot be read: {why}"));
                }
            }
        }
        self.stamped(&lines, now)
    }

    /// The line about looks that have not come back for so long.
    fn waited(&mut self, long: Duration, now: Timestamp) -> String {
        if std::mem::replace(&mut self.is_waiting, true) {
            return String::new();
        }
        let age = time::age(long.as_secs());
        self.stamped(&[format!("no look has come back for {age}; what was told may be old")], now)
    }

    /// Lines as they are printed: with the time, and nothing in them that a terminal acts on.
    fn stamped(&self, lines: &[String], now: Timestamp) -> String {
        let clock = self.zone.clock(now);
        let stamped = lines.iter().map(|line| {
            let line = text::escape(line).replace('\t', " ");
            let line = if self.ascii { in_ascii(&line) } else { line };
            format!("{clock} {line}\n")
        });
        stamped.collect()
    }

    /// How all is: a line at large, then one for each job.
    fn all(&self, look: &Snapshot) -> Vec<String> {
        let tally = status::tally(&look.jobs);
        let jobs = match tally.iter().sum() {
            0 => "no jobs".to_owned(),
            count => format!("{}, {}", text::counted(count, "job"), status::in_words(&tally)),
        };
        let daemon = match look.monitor {
            MonitorHealth::NotRunning => "the daemon does not run".to_owned(),
            MonitorHealth::Running { turn_age_s } => {
                format!("the daemon runs, its last turn was {} ago", time::age(turn_age_s))
            }
            MonitorHealth::Watching { ref why, .. } => {
                format!("the daemon runs and only watches, since {why}")
            }
        };
        let mut lines = vec![format!("{}: {jobs}; {daemon}", self.whose)];
        let nothing = Snapshot {
            jobs: Vec::new(),
            orphans: Vec::new(),
            users: Vec::new(),
            tmux: TmuxHealth::Up,
            ..look.clone()
        };
        let runs = look.monitor != MonitorHealth::NotRunning;
        for change in changes::changes(&nothing, look) {
            match change {
                // Another one goes on for it, and stands for both.
                LookChange::New { job, .. } if is_superseded(job) => {}
                LookChange::New { job, .. } => {
                    let standing = self.standing(job, runs, true);
                    lines.push(format!("{}: {standing}", who(job, true)));
                }
                at_large => lines.push(self.change(&at_large, runs)),
            }
        }
        lines
    }

    /// A change in words.
    fn change(&self, change: &LookChange<'_>, runs: bool) -> String {
        match change {
            LookChange::Daemon { runs: true } => "the daemon runs now".to_owned(),
            LookChange::Daemon { runs: false } => "the daemon has stopped".to_owned(),
            LookChange::DaemonWatches(Some(why)) => format!("the daemon only watches, since {why}"),
            LookChange::DaemonWatches(None) => "the daemon acts again".to_owned(),
            LookChange::Windows(None) => "tmux answers again".to_owned(),
            LookChange::Windows(Some(TmuxHealth::Unknown(reason))) => {
                format!("tmux does not answer: {}", quoted(reason))
            }
            LookChange::Windows(Some(TmuxHealth::Up | TmuxHealth::Down)) => {
                "no tmux server is running: what became of jobs in it cannot be told".to_owned()
            }
            LookChange::TargetsLost { labels, why } => {
                format!("nobody knows how {} {}: {}", named(labels), are(labels), quoted(why))
            }
            LookChange::TargetsBack(labels) => {
                format!("it is known again how {} {}", named(labels), are(labels))
            }
            LookChange::New { job, of } => {
                let standing = self.standing(job, runs, false);
                match changes::father(job) {
                    Some(father) => {
                        let is_anew =
                            of.is_some_and(|of| matches!(of.shown.status, Status::Rerunned(_)));
                        let how = if is_anew { "begins anew for" } else { "goes on for" };
                        let step = of.and_then(|of| of.shown.progress.step).filter(|_| !is_anew);
                        let step = step.map(|step| format!(", which came to step {step}"));
                        let step = step.unwrap_or_default();
                        format!("{} {how} {father}{step}: {standing}", who(job, false))
                    }
                    None => format!("{} is new: {standing}", who(job, true)),
                }
            }
            LookChange::State { before, job } => {
                let (was, is) = (name(&before.state()), self.standing(job, runs, false));
                format!("{}: {was} → {is}", who(job, false))
            }
            LookChange::Outlook(job) => {
                let nothing = job.next.as_ref().filter(|next| next.action == Action::Pass.as_str());
                let why = nothing.map(|next| format!(": {}", quoted(&next.reason)));
                let (follows, why) = (follows(job, runs), why.unwrap_or_default());
                format!("{}, {}: {follows}{why}", who(job, false), name(&job.state()))
            }
            LookChange::Tenth(job) => {
                let progress = &job.shown.progress;
                let done = progress.percent_done().unwrap_or_default();
                let rest = progress.in_words().into_iter().filter(|part| *part != done);
                let parts: Vec<String> = std::iter::once(done.clone()).chain(rest).collect();
                format!("{}: has done {}", who(job, false), parts.join(", "))
            }
            LookChange::Gone(job) => {
                format!("{} is gone; it was {}", who(job, false), name(&job.state()))
            }
        }
    }

    /// The state of a job, why it has it, how far it is and what follows.
    fn standing(&self, job: &JobView, runs: bool, with_progress: bool) -> String {
        let shown = &job.shown;
        let over = job.ran_s();
        let over = over.map(|age| format!(" after {}", time::age(age))).unwrap_or_default();
        let mut parts = vec![name(&job.state()) + &over];
        let is_live = shown.status.is_live();
        if job.intent.is_some() && is_live {
            // It says itself what is under way.
        } else if let Some(reason) = shown.unknown.as_ref().filter(|_| is_live) {
            parts.push(quoted(reason));
        } else if let Some(queued) = &shown.queued {
            let members = queued.members.as_ref();
            parts.extend(members.map(|members| text::counted(members.len(), "member")));
            parts.push(quoted(&queued.in_words()));
        } else if let Some(pending) = &shown.pending {
            parts.extend(pending.reason.as_deref().map(quoted));
            let at = pending.expected_start.map(|at| self.zone.stamp(at));
            parts.extend(at.map(|at| format!("expected to start at {at}")));
        } else {
            let is_amiss = shown.phase.is_some_and(|phase| phase.as_str() == job.state());
            let speaks = job.failure().is_some() || is_amiss;
            parts.extend(shown.evidence.as_ref().filter(|_| speaks).map(evidence));
            if with_progress || !is_live {
                parts.extend(shown.progress.in_words());
            }
            let successor = changes::child(job).filter(|_| is_superseded(job));
            parts.extend(successor.map(|child| format!("{child} goes on for it")));
        }
        let mut words = parts.join(", ");
        if job.failure().is_some() {
            words = format!("{words}; {}", follows(job, runs));
        }
        words
    }
}

/// Whether another attempt goes on for it.
fn is_superseded(job: &JobView) -> bool {
    matches!(job.shown.status, Status::Resumed(_) | Status::Rerunned(_))
}

/// A job by its name and place: `alice/7 (imagenet, v2-32-p2)`.
fn who(job: &JobView, with_tags: bool) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(job.member.map(|member| format!("member {member}")));
    parts.extend(job.name.as_deref().map(name));
    parts.push(name(job.dir_name()));
    let tags = job.tags.as_deref().filter(|_| with_tags);
    parts.extend(tags.map(|tags| format!("tagged {}", name(tags))));
    parts.push(name(&job.target_label));
    parts.retain(|part| !part.is_empty());
    format!("{} ({})", job.id, parts.join(", "))
}

/// What will happen to it by itself.
fn follows(job: &JobView, runs: bool) -> String {
    quoted(&next::outlook(job, runs))
}

/// The line that a status rests on.
fn evidence(evidence: &Evidence) -> String {
    let line = quoted(evidence.line.trim());
    match evidence.source {
        Source::Text | Source::Record => format!("\"{line}\""),
        Source::Exit | Source::Engine | Source::Api => line,
    }
}

/// A name from outside, of a length that can be listened to.
fn name(outside: &str) -> String {
    shortened(outside, NAME)
}

/// A sentence from outside.
fn quoted(outside: &str) -> String {
    shortened(outside, QUOTE)
}

fn shortened(outside: &str, columns: usize) -> String {
    text::cut(&text::escape(outside), columns).into_owned()
}

fn named(labels: &[&str]) -> String {
    labels.iter().map(|label| name(label)).collect::<Vec<_>>().join(", ")
}

fn are(labels: &[&str]) -> &'static str {
    if labels.len() == 1 { "is" } else { "are" }
}

/// The same for a terminal that has nothing else.
fn in_ascii(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '→' => plain.push_str("->"),
            '…' => plain.push_str("..."),
            '·' => plain.push('-'),
            c if c.is_ascii() => plain.push(c),
            _ => plain.push('?'),
        }
    }
    plain
}
