//! The table: which evidence decides a block, and which text is no evidence any more.
//!
//! Start at [`verdict`]. What makes an earlier failure old is in [`timeline`].

use super::frames::Frames;
use super::progress::{self, Shown, Wanted};
use super::rules::Weight;
use super::scan::{Hit, RuleSet};
use super::sign::Sign;
use super::timeline;
use super::{Input, LineVerdict};
use crate::model::exit::Exit;
use crate::model::facts::{Class, ErrorKind, Evidence, Phase, Progress, Source, Verdict};

/// Lines at the end that may say what a job is doing.
const LIVING: usize = 200;
/// Lines from which numbers that the newest line lacks are taken.
const NUMBERS: usize = 30;
/// Longest piece of a line that is kept as evidence, in bytes.
const QUOTE: usize = 400;

/// Signals that stop a process and do not end it, with their usual numbers on Linux: STOP, TSTP, TTIN, TTOU.
const STOPPING: [i32; 4] = [19, 20, 21, 22];

/// Reads one block.
pub(super) fn verdict(set: &RuleSet, input: &Input<'_>) -> Verdict {
    let frames = Frames::block(input.text, input.reach);
    let exit = input.exit;
    let block = Block::read(set, &frames, exit.is_some());
    // A script that is over leaves nothing at work, whatever its code: what spoke of another try gave up.
    let stopped = exit.is_some_and(|exit| !exit.is_success()) || block.idle;
    let failed = exit.is_some_and(Exit::is_failure);
    let signal = exit.filter(|exit| by_signal(*exit));

    // The order is the contract: the first line that has an answer gives it.
    let decided = api(input.api_state)
        .or_else(|| exit.filter(|exit| exit.is_success()).map(by_code(Class::Finished)))
        .or_else(|| block.proof(&[ErrorKind::Preempted]))
        .or_else(|| block.finish_after_all(Weight::Proof))
        .or_else(|| block.proof(&[ErrorKind::Oom]))
        .or_else(|| block.proof(&[ErrorKind::Locked]))
        .or_else(|| block.first_failure())
        .or_else(|| block.finish(Weight::Proof))
        .or_else(|| if failed { None } else { block.finish(Weight::Hint) })
        .or_else(|| block.hint(Weight::Hint, signal.is_none_or(|exit| exit.code() == ABORT)))
        .or_else(|| block.hint(Weight::Retry, stopped))
        .or_else(|| signal.map(by_code(Class::Failed(ErrorKind::KilledBySignal))))
        .or_else(|| exit.and_then(of_command))
        .or_else(|| if exit.is_none() && !block.idle { block.alive() } else { None });
    let (class, evidence) = decided.map_or((Class::None, None), |(class, why)| (class, Some(why)));
    let class = narrowed(class, exit);
    let phase = match class {
        Class::Running => block.phase(),
        Class::None if block.idle => Some(Phase::IdlePrompt),
        Class::Finished | Class::Failed(_) | Class::None => None,
    };
    Verdict { class, phase, progress: block.progress, evidence }
}

/// Reads every line on its own.
pub(super) fn lines(set: &RuleSet, frames: &Frames<'_>) -> Vec<LineVerdict> {
    let deciding = set.deciding(frames, true);
    let living = set.living_alone(frames);
    let (mut deciding, mut living) = (deciding.iter().peekable(), living.iter().peekable());
    let mut verdicts: Vec<LineVerdict> = Vec::with_capacity(frames.len());
    for (line, span) in frames.spans().iter().enumerate() {
        let alive = living.next_if(|hit| hit.line == line);
        let hit = deciding.next_if(|hit| hit.line == line).or(alive);
        let (class, rule) = match hit.and_then(|hit| set.rule(hit)) {
            Some(rule) => (rule.class, Some(rule.id.clone())),
            None if read_progress(frames, line, Wanted::ALL).is_some() => {
                (Class::Running, Some(PROGRESS.to_owned()))
            }
            None => (Class::None, None),
        };
        let n = span.physical + 1;
        match verdicts.last_mut() {
            // Another frame of the same line: what ends a job outranks what shows it alive.
            Some(old) if old.n == n => {
                if old.class.failure().is_none() && class != Class::None {
                    *old = LineVerdict { n, class, rule };
                }
            }
            _ => verdicts.push(LineVerdict { n, class, rule }),
        }
    }
    verdicts
}

/// The evidence's name where the numbers themselves are the evidence.
const PROGRESS: &str = "progress";

fn read_progress(frames: &Frames<'_>, line: usize, wanted: Wanted) -> Option<Shown> {
    let text = frames.line(line);
    // Without a digit there is no number, and finding prefixes is the dearer part.
    let start = text.iter().any(u8::is_ascii_digit).then(|| frames.prefix(line).header)?;
    progress::read(text, start, wanted)
}

/// A block with everything that was found in it.
struct Block<'a> {
    set: &'a RuleSet,
    frames: &'a Frames<'a>,
    /// Failures and signs of a finish that still count, in order of lines.
    signs: Vec<Sign>,
    /// The newest numbers.
    progress: Progress,
    /// The line that showed the newest numbers.
    newest: Option<usize>,
    diverged: bool,
    /// The newest line that says what the job is doing.
    living: Option<Hit>,
    /// The last line is a shell's prompt.
    idle: bool,
}

/// What decided, and why.
type Decided = Option<(Class, Evidence)>;

impl<'a> Block<'a> {
    fn read(set: &'a RuleSet, frames: &'a Frames<'a>, ended: bool) -> Self {
        let idle = timeline::ends_at_prompt(frames);
        let signs = timeline::signs(set, frames, (ended, ended || idle));
        let mut block = Self {
            set,
            frames,
            signs,
            progress: Progress::default(),
            newest: None,
            diverged: false,
            living: None,
            idle,
        };
        block.read_end();
        block
    }

    /// The newest numbers and activity, read backwards from the end.
    fn read_end(&mut self) {
        let end = self.frames.len();
        for line in (0..end).rev() {
            let far = end - line > LIVING;
            if self.newest.is_none()
                && let Some(shown) = read_progress(self.frames, line, Wanted::ALL)
            {
                self.newest = Some(line);
                self.diverged = shown.diverged;
                self.fill_numbers(line, shown);
            }
            if self.living.is_none() && !far {
                self.living = self.set.living(self.frames, line);
            }
            if self.newest.is_some() && (self.living.is_some() || far) {
                return;
            }
        }
    }

    /// Programs print epoch, step and rate on lines of their own: what the newest line lacks comes
    /// from the ones shortly before it.
    fn fill_numbers(&mut self, newest: usize, shown: Shown) {
        let mut inner = shown.is_nameless;
        self.progress = shown.progress;
        for line in (newest.saturating_sub(NUMBERS)..newest).rev() {
            let Some(wanted) = Wanted::beside(&self.progress, inner) else { return };
            if !wanted.may_be_in(self.frames.line(line)) {
                continue;
            }
            let Some(mut older) = read_progress(self.frames, line, wanted) else { continue };
            if inner && older.is_around(&self.progress) {
                inner = false;
                self.progress.leave_counters();
                self.progress.percent = older.progress.percent;
            }
            if self.diverged {
                older.progress.loss = None;
            }
            self.progress.fill_from(&older.progress);
        }
    }

    fn failures(&self, weight: Weight) -> impl Iterator<Item = (&Sign, ErrorKind)> {
        self.signs
            .iter()
            .filter(move |sign| sign.weight == weight)
            .filter_map(|sign| sign.class.failure().map(|kind| (sign, kind)))
    }

    /// A certain failure of one of these kinds, wherever it stands.
    fn proof(&self, kinds: &[ErrorKind]) -> Decided {
        let (sign, _) = self.failures(Weight::Proof).find(|(_, kind)| kinds.contains(kind))?;
        Some(self.because(sign))
    }

    /// The first certain failure of the first worker that failed by itself. The distributed runtime
    /// reports the death of others, so a launcher that knows who died outranks such a report, and so does
    /// another worker's own failure.
    fn first_failure(&self) -> Decided {
        let (first, kind) = self.failures(Weight::Proof).next()?;
        let is_of_others = |kind| matches!(kind, ErrorKind::Grpc | ErrorKind::Network);
        if is_of_others(kind)
            && let Some(summary) = self.summary()
        {
            return Some(self.because(summary));
        }
        let own = self.failures(Weight::Proof).find(|(sign, kind)| {
            !is_of_others(*kind) && sign.worker.is_some() && sign.worker != first.worker
        });
        let report = is_of_others(kind) && first.worker.is_some();
        Some(self.because(own.filter(|_| report).map_or(first, |(sign, _)| sign)))
    }

    /// What a launcher says at its end of the process that failed first. It lists the others before.
    fn summary(&self) -> Option<&Sign> {
        let sums_up = |sign: &&Sign| {
            self.set.rules().get(sign.rule).is_some_and(|rule| rule.weight == Weight::Summary)
        };
        self.signs.iter().rfind(sums_up)
    }

    /// A sign of a finish that came before every failure that still counts, or after all of them.
    fn finish_after_all(&self, weight: Weight) -> Decided {
        let finish = self.last_finish(weight)?;
        let mut failures = self.failures(Weight::Proof).peekable();
        let settled = failures.peek().is_some() && failures.all(|(f, _)| f.worker == finish.worker);
        settled.then(|| self.because(finish))
    }

    fn finish(&self, weight: Weight) -> Decided {
        Some(self.because(self.last_finish(weight)?))
    }

    fn last_finish(&self, weight: Weight) -> Option<&Sign> {
        self.signs.iter().rfind(|s| s.class == Class::Finished && s.weight == weight)
    }

    /// A failure that decides only for want of anything better.
    fn hint(&self, weight: Weight, counts: bool) -> Decided {
        let (sign, _) = self.failures(weight).next().filter(|_| counts)?;
        Some(self.because(sign))
    }

    /// Signs of life.
    fn alive(&self) -> Decided {
        match (self.newest, &self.living) {
            (Some(line), living) if living.as_ref().is_none_or(|hit| hit.line <= line) => {
                Some((Class::Running, self.quote(line, PROGRESS, 0)))
            }
            (_, Some(hit)) => {
                let id = self.set.rule(hit).map_or("", |rule| rule.id.as_str());
                Some((Class::Running, self.quote(hit.line, id, hit.at.start)))
            }
            (_, None) => None,
        }
    }

    /// What a running job is doing: the newest line that tells.
    fn phase(&self) -> Option<Phase> {
        if self.diverged {
            return Some(Phase::Diverged);
        }
        let living = self.living.as_ref();
        let told = living.and_then(|hit| Some((hit.line, self.set.rule(hit)?.phase?)));
        match (told, self.newest) {
            (Some((line, phase)), newest) if newest.is_none_or(|newest| newest <= line) => {
                Some(phase)
            }
            (_, Some(_)) => Some(Phase::Running),
            (told, None) => told.map(|(_, phase)| phase),
        }
    }

    fn because(&self, sign: &Sign) -> (Class, Evidence) {
        let id = self.set.rules().get(sign.rule).map_or("", |rule| rule.id.as_str());
        (sign.class, self.quote(sign.line, id, sign.at))
    }

    /// The evidence that `line` gives: what was found at the byte `at`, from the words on that matter.
    fn quote(&self, line: usize, rule: &str, at: usize) -> Evidence {
        let text = self.frames.line(line);
        let words = self.frames.prefix(line).words(text, at);
        let far = at.saturating_sub(words) > QUOTE / 2;
        let from = if far { at.saturating_sub(QUOTE / 4) } else { words };
        let piece = text.get(from..text.len().min(from + QUOTE)).unwrap_or_default();
        let worker = self.frames.worker(line);
        Evidence {
            source: Source::Text,
            rule: rule.to_owned(),
            line: String::from_utf8_lossy(piece).trim().to_owned(),
            line_no: Some(self.frames.line_no(line)),
            worker: worker.map(|worker| String::from_utf8_lossy(worker).into_owned()),
            age_s: None,
        }
    }
}

/// The control plane's word, where it settles the matter.
fn api(state: Option<&str>) -> Decided {
    let state = state?;
    // TERMINATED is the end of a preemptible target's life, and maintenance.
    let gone = ["PREEMPTED", "TERMINATED"].iter().any(|word| state.eq_ignore_ascii_case(word));
    let line = format!("the control plane says {state}");
    let why = Evidence::fact(Source::Api, "api-state", line);
    gone.then_some((Class::Failed(ErrorKind::Preempted), why))
}

/// What an exit code decides.
fn by_code(class: Class) -> impl Fn(Exit) -> (Class, Evidence) {
    move |exit| (class, Evidence::fact(Source::Exit, "exit-code", exit.to_string()))
}

/// What the code of a shell decides that could not run a command.
fn of_command(exit: Exit) -> Decided {
    ErrorKind::of_command(exit).map(|kind| by_code(Class::Failed(kind))(exit))
}

/// A missing file, by the code of a shell that did not find the command: that file is the command.
fn narrowed(class: Class, exit: Option<Exit>) -> Class {
    match (class.failure(), exit.and_then(ErrorKind::of_command)) {
        (Some(kind), Some(narrow)) if narrow.wider() == Some(kind) => Class::Failed(narrow),
        _ => class,
    }
}

/// 128 + SIGABRT: how the distributed runtime ends a process that has lost its peers.
const ABORT: i32 = 134;

/// Whether an exit code says that a signal ended the process.
fn by_signal(exit: Exit) -> bool {
    exit.signal().is_some_and(|signal| !STOPPING.contains(&signal))
}
