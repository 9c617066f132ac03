//! The demo's story as text, when it is over: what was started, taken away, brought back, from which step, in how many
//! seconds, and what was left alone and why. Each line is made of what is written down.

use tpu_core::model::facts::ErrorKind;
use tpu_core::text::{self, counted};

use super::tale::{DemoTale, Setback, Start};

/// The commands to begin with for real, in the directory of one's code.
pub const FIRST_COMMANDS: [&str; 3] =
    ["tpu init", "tpu run local -- python3 train.py", "tpu monitor"];

/// Columns of the words at the left.
const LEFT: usize = 14;

/// Columns of a line that is quoted: what it says stands at its beginning.
const QUOTED: usize = 60;

/// The whole story.
pub fn report(tale: &DemoTale) -> String {
    let mut lines: Vec<(&str, String)> = Vec::new();
    for start in &tale.started {
        let tag = start.tag.as_ref().map(|tag| format!(" ({tag})")).unwrap_or_default();
        lines.push(("started", format!("{} on {}{tag}", start.job, start.target)));
    }
    for start in &tale.from_queue {
        let Start { job, target, .. } = start;
        let waited = start.queued.map(|since| start.at.seconds_since(since)).unwrap_or_default();
        let left = start.after.as_ref().map(|before| format!(", when {before} had left it"));
        let left = left.unwrap_or_default();
        lines.push(("from the queue", format!("{job} on {target} after {waited} s{left}")));
    }
    if tale.waiting > 0 {
        lines.push(("still waiting", counted(tale.waiting, "job")));
    }
    for setback in &tale.setbacks {
        let when = format!("{} s in", setback.at.seconds_since(tale.began));
        lines.extend(told(setback, &when));
    }
    let finished: Vec<String> = tale.finished.iter().map(ToString::to_string).collect();
    if !finished.is_empty() {
        lines.push(("finished", finished.join(", ")));
    }
    let seconds = tale.now.seconds_since(tale.began);
    let mut text = format!("The story of {seconds} s, as the journal has it:\n");
    let mut before = "";
    for (left, line) in lines {
        let shown = if left == before { "" } else { left };
        text += &format!("  {shown:LEFT$}  {line}\n");
        before = left;
    }
    text
}

/// What went wrong, and what became of it.
fn told(setback: &Setback, when: &str) -> Vec<(&'static str, String)> {
    let Setback { job, target, .. } = setback;
    let reached = setback.reached.map(|step| format!(", at step {step}")).unwrap_or_default();
    let line = text::cut(setback.line.trim(), QUOTED);
    let mut lines = vec![match setback.kind {
        _ if setback.is_taken => ("taken away", format!("{target} from {job}{reached}, {when}")),
        Some(ErrorKind::Grpc) => {
            ("broken", format!("{job} lost its connection on {target}{reached}, {when}"))
        }
        Some(kind) => ("broken", format!("{job}, {kind}{reached}, {when}: {line}")),
        None => ("broken", format!("{target}, with {job} on it, {when}")),
    }];
    let Some(comeback) = &setback.comeback else {
        lines.push(match (&setback.rests, &setback.refusal) {
            (Some(why), _) => ("left alone", format!("{job}: {why}")),
            (None, Some(why)) => ("not back", format!("{job}: {why}")),
            (None, None) => ("not back", format!("{job}, by the time this ended")),
        });
        return lines;
    };
    let anew = if setback.ready.is_some() {
        format!(" on a new {target}")
    } else {
        format!(" on {target}")
    };
    let how = match (comeback.from, comeback.started) {
        (Some(step), _) => format!(" from step {step}"),
        (None, Some(_)) => String::new(),
        (None, None) => ", not started yet".to_owned(),
    };
    let lost = setback.lost_s().map(|lost| format!(", {lost} s lost")).unwrap_or_default();
    lines.push(("brought back", format!("{job} as {}{anew}{how}{lost}", comeback.job)));
    lines
}

/// What is said behind the story: how to begin for real.
pub fn begin_for_real() -> String {
    let commands = FIRST_COMMANDS.map(|command| format!("  {command}\n")).concat();
    format!("Nothing is left behind. To begin for real, in the directory of your code:\n{commands}")
}
