//! What still counts: which failures of a text were overcome, are another command's, or are long past.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::frames::Frames;
use super::progress::{self, Counter};
use super::rules::Weight;
use super::scan::{Hit, RuleSet};
use super::sign::Sign;
use super::traceback;
use crate::model::facts::Class;

/// A bar that is redrawn over several lines may show so many counts after its program said it is done.
const LAST_DRAWS: usize = 3;

/// A line that shows a step.
struct Step<'a> {
    line: usize,
    worker: Option<&'a [u8]>,
    counter: Counter,
}

/// Everything that still counts, in order of lines. `has_exit` is whether the job is known to have ended, `ended` also
/// whether its text stops at a prompt.
pub(super) fn signs(
    set: &RuleSet,
    frames: &Frames<'_>,
    (has_exit, ended): (bool, bool),
) -> Vec<Sign> {
    let hits = set.deciding(frames, false);
    if hits.is_empty() {
        return Vec::new();
    }
    let mut signs: Vec<Sign> = hits.iter().filter_map(|hit| sign(set, frames, hit)).collect();
    if signs.is_empty() {
        // Noise that looks like a failure is what healthy runs print: nothing more to weigh.
        return signs;
    }
    let prompts = Prompts::read(frames);
    // What a person looks at at a prompt is no text of the job. That of a job that has ended says why it did.
    signs.retain(|sign| has_exit || !prompts.is_aside(sign.line));
    let clears: Vec<(usize, &[Class])> = hits
        .iter()
        .filter_map(|hit| set.rule(hit).map(|rule| (hit.line, rule.clears.as_slice())))
        .filter(|(_, classes)| !classes.is_empty())
        .collect();
    let cleared = |sign: &Sign| {
        clears.iter().any(|(line, classes)| *line > sign.line && classes.contains(&sign.class))
    };
    let steps = steps(frames);
    let quiet = Quiet::read(frames, &signs);
    let is_old = |sign: &Sign| {
        set.rules().get(sign.rule).is_some_and(|rule| quiet.after(sign.line) > rule.fade)
    };
    let counting: Vec<Sign> = traceback::merge(frames, signs)
        .into_iter()
        .filter(|sign| !cleared(sign) && !overcome(sign, &steps, ended) && !is_old(sign))
        .collect();
    prompts.newest(counting, &steps)
}

fn sign(set: &RuleSet, frames: &Frames<'_>, hit: &Hit) -> Option<Sign> {
    let rule = set.rule(hit)?;
    if !matches!(rule.class, Class::Finished | Class::Failed(_)) {
        return None;
    }
    // On its line an overruling rule has won already; beside other lines it is a proof like others.
    let weight = rule.weight.min(Weight::Proof);
    let worker = frames.worker(hit.line).map(<[u8]>::to_vec);
    Some(Sign {
        line: hit.line,
        rule: hit.rule,
        class: rule.class,
        weight,
        at: hit.at.start,
        worker,
    })
}

fn steps<'a>(frames: &'a Frames<'_>) -> Vec<Step<'a>> {
    (0..frames.len())
        .filter_map(|line| {
            let text = frames.line(line);
            // A frame of a traceback has a line number and shows no step.
            let frame = text.trim_ascii_start().starts_with(b"File \"");
            if frame || !text.iter().any(u8::is_ascii_digit) {
                return None;
            }
            let prefix = frames.prefix(line);
            let counter = progress::step(text, prefix.header)?;
            Some(Step { line, worker: frames.worker(line), counter })
        })
        .collect()
}

/// Whether new steps came after a sign. A redraw of the step before it is none; another worker's steps
/// say nothing about this one.
///
/// Bars are drawn a last time when their program ends, so after a finish, and in a job that has `ended`,
/// one step is not enough.
fn overcome(sign: &Sign, steps: &[Step<'_>], ended: bool) -> bool {
    let before =
        steps.iter().rfind(|step| step.line < sign.line && step.worker == sign.worker.as_deref());
    let before = before.map(|step| step.counter);
    let known = |worker: Option<&[u8]>| {
        steps.iter().any(|step| step.line < sign.line && step.worker == worker)
    };
    let speaks = |step: &&Step<'_>| {
        step.worker == sign.worker.as_deref()
            || step.worker.is_none()
            // A launcher's failure is overcome once a worker reports that had not reported before.
            || (sign.worker.is_none() && !known(step.worker))
    };
    let mut new: Vec<_> = steps
        .iter()
        .filter(|step| step.line > sign.line)
        .filter(speaks)
        .map(|step| step.counter)
        .filter(|counter| Some(*counter) != before)
        .collect();
    new.dedup();
    let enough = match (sign.class, ended) {
        (Class::Finished, _) => LAST_DRAWS + 1,
        (_, true) => 2,
        (_, false) => 1,
    };
    new.len() >= enough
}

/// Bytes of text, from each line to the end, that belong to no failure.
struct Quiet {
    /// For each line, the sum over the lines after it.
    sums: Vec<usize>,
}

impl Quiet {
    fn read(frames: &Frames<'_>, signs: &[Sign]) -> Self {
        let mut sums = vec![0; frames.len()];
        let mut sum = 0;
        let mut known = signs.iter().rev().peekable();
        for (line, slot) in sums.iter_mut().enumerate().rev() {
            *slot = sum;
            let is_sign = known.next_if(|sign| sign.line == line).is_some();
            let text = frames.line(line);
            let indented = matches!(text.first(), Some(b' ' | b'\t'));
            if !is_sign && !indented && frames.worker(line).is_none() {
                sum += text.len() + 1;
            }
        }
        Self { sums }
    }

    fn after(&self, line: usize) -> usize {
        self.sums.get(line).copied().unwrap_or(0)
    }
}

/// `user@host:dir$ command`, `bash-5.1$ command`, `$ command`, with a virtual environment in front.
static PROMPT: LazyLock<Regex> = LazyLock::new(|| {
    let prompt = r"^(?-u)(?:\([\w.-]+\) )*(?:\[?[\w.-]+@[\w.-]+[: ][^\s$#\]]*\]?|bash-[\d.]+|sh-[\d.]+)?[$#](?: (.*))?$";
    Regex::new(prompt).expect("the pattern is a constant")
});

/// The command typed at the prompt that a line shows; empty at a prompt that waits.
fn prompt(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii_end();
    // A comment such as `# completed step` looks like root's bare prompt, so `#` needs a name before it.
    if line.starts_with(b"#") || memchr::memchr2(b'$', b'#', line).is_none() {
        return None;
    }
    let caps = PROMPT.captures(line)?;
    Some(caps.get(1).map_or(&[][..], |command| command.as_bytes()))
}

/// Whether the last line of a block is a prompt at which nothing was typed.
pub(super) fn ends_at_prompt(frames: &Frames<'_>) -> bool {
    let last = (0..frames.len()).rev().find(|line| !frames.line(*line).trim_ascii().is_empty());
    last.and_then(|line| prompt(frames.line(line))).is_some_and(<[u8]>::is_empty)
}

/// Programs with which people look around and tidy up: what they print is no job's text, nor is what the shell says of a
/// job in the background that one of them has ended.
const ASIDES: &str = "awk cat cd chmod clear cp df diff du echo exit export find git grep head history htop jobs kill \
                      killall less ll ls man mkdir more mv nano nvidia-smi nvtop pkill ps pwd rm rmdir scancel sort \
                      squeue tail top vi vim wc which";

/// Whether a command that was typed starts none but such programs.
fn is_aside(command: &[u8]) -> bool {
    let command = String::from_utf8_lossy(command).replace(">&", ">");
    let mut parts = command.split(['|', ';', '&']).map(str::trim).filter(|part| !part.is_empty());
    parts.all(|part| {
        let program = part.split_whitespace().find(|word| *word != "sudo").unwrap_or_default();
        let name = program.rsplit('/').next().unwrap_or_default();
        ASIDES.split_whitespace().any(|aside| aside == name)
    })
}

/// A line at which a command was typed: it starts a new story.
struct Typed {
    line: usize,
    is_aside: bool,
}

/// The commands that were typed, in order of lines.
struct Prompts {
    commands: Vec<Typed>,
}

impl Prompts {
    fn read(frames: &Frames<'_>) -> Self {
        let typed = |line: usize| {
            let command = prompt(frames.line(line)).filter(|command| !command.is_empty())?;
            Some(Typed { line, is_aside: is_aside(command) })
        };
        Self { commands: (0..frames.len()).filter_map(typed).collect() }
    }

    /// How many commands were typed up to a line.
    fn story(&self, line: usize) -> usize {
        self.commands.partition_point(|command| command.line <= line)
    }

    /// Whether a line was printed when a person was looking around.
    fn is_aside(&self, line: usize) -> bool {
        let newest = self.story(line).checked_sub(1).and_then(|at| self.commands.get(at));
        newest.is_some_and(|command| command.is_aside)
    }

    /// The signs of the newest command that gave any, unless a newer command made steps.
    fn newest(&self, mut signs: Vec<Sign>, steps: &[Step<'_>]) -> Vec<Sign> {
        let Some(newest) = signs.iter().map(|sign| self.story(sign.line)).max() else {
            return signs;
        };
        if steps.last().is_some_and(|step| self.story(step.line) > newest) {
            return Vec::new();
        }
        signs.retain(|sign| self.story(sign.line) == newest);
        signs
    }
}
