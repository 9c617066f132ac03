//! The line that accompanies the demo: what has just happened, in figures, and what comes next.
//!
//! Each part is made of a [`DemoTale`], so it says no more than what is written down. It comes in several lengths, the
//! longest first; whoever draws it takes the longest that fits.

use tpu_core::model::facts::ErrorKind;
use tpu_core::model::time::Timestamp;
use tpu_core::text::counted;

use super::tale::{Comeback, DemoTale, Setback, Start};

/// Something that is not back after so many seconds is called so.
const OVERDUE_S: u64 = 30;

/// A part of the line in three lengths, the longest first.
type Lengths = [String; 3];

/// The line, in fewer and fewer words.
pub fn captions(tale: &DemoTale) -> Vec<String> {
    let [long, short, tiny] = newest(tale);
    let [next, next_short, _] = coming(tale);
    let joined = |news: &str, next: &str| match (news.is_empty(), next.is_empty()) {
        (_, true) => news.to_owned(),
        (true, false) => next.to_owned(),
        (false, false) => format!("{news} · {next}"),
    };
    let mut lines = vec![
        joined(&long, &next),
        joined(&long, &next_short),
        joined(&short, &next),
        joined(&short, &next_short),
        joined(&tiny, &next_short),
        tiny,
    ];
    lines.retain(|line| !line.is_empty());
    lines.dedup();
    lines
}

/// What has happened last. What is still under way comes before what is settled.
fn newest(tale: &DemoTale) -> Lengths {
    let open: Vec<&Setback> = tale.setbacks.iter().filter(|setback| setback.is_open()).collect();
    if let Some(setback) = open.iter().max_by_key(|setback| setback.changed()) {
        let [long, short, tiny] = setback_words(setback, tale.now);
        return match open.len() - 1 {
            0 => [long, short, tiny],
            others => {
                let more = format!("{long}, and {} on the way back", counted(others, "other job"));
                [more, format!("{short}, +{others}"), tiny]
            }
        };
    }
    let settled = tale.setbacks.iter().max_by_key(|setback| setback.changed());
    let begun = tale.from_queue.iter().max_by_key(|start| start.at);
    let told = [
        settled.map(|setback| (setback.changed(), setback_words(setback, tale.now))),
        begun.map(|start| (start.at, begun_words(start, tale.waiting))),
    ];
    let newest = told.into_iter().flatten().max_by_key(|(at, _)| *at);
    newest.map_or_else(|| started_words(tale), |(_, words)| words)
}

fn started_words(tale: &DemoTale) -> Lengths {
    if tale.started.is_empty() {
        return Lengths::default();
    }
    let jobs = counted(tale.started.len(), "job");
    let long = match tale.waiting {
        0 => format!("{jobs} started"),
        waiting => format!("{jobs} started, {waiting} in the queue"),
    };
    [long.clone(), long.clone(), long]
}

fn begun_words(start: &Start, waiting: usize) -> Lengths {
    let Start { job, target, after, .. } = start;
    let rest = match waiting {
        0 => "nothing waits any more".to_owned(),
        1 => "1 job still waits".to_owned(),
        more => format!("{more} jobs still wait"),
    };
    let how = match after {
        Some(before) => format!("{before} left {target} → {job} of the queue began there"),
        None => format!("{job} of the queue began on {target}"),
    };
    [
        format!("{how}, {rest}"),
        format!("{job} of the queue began on {target}"),
        format!("{job} began on {target}"),
    ]
}

/// What went wrong with an attempt, and what has become of it so far.
pub fn setback_words(setback: &Setback, now: Timestamp) -> Lengths {
    let Setback { job, target, .. } = setback;
    let since = now.seconds_since(setback.at);
    let ago = if setback.is_open() { format!(" {since} s ago") } else { String::new() };
    let (long, short) = match setback.kind {
        _ if setback.is_taken => {
            (format!("{job}'s {target} was taken{ago}"), format!("{target} taken"))
        }
        Some(ErrorKind::Grpc) => (
            format!("{job} lost its connection on {target}{ago}"),
            format!("{job} lost its connection"),
        ),
        Some(ErrorKind::Oom) => {
            (format!("{job} ran out of memory{ago}"), format!("{job} out of memory"))
        }
        Some(ErrorKind::KilledBySignal) => {
            (format!("{job} was killed by a signal{ago}"), format!("{job} killed"))
        }
        Some(kind) => (format!("{job} failed ({kind}){ago}"), format!("{job} failed")),
        None => (
            format!("{target} lost its connections{ago}, with {job} on it"),
            format!("{target} broke"),
        ),
    };
    let (mut long, mut short, mut tiny) = (vec![long], vec![short.clone()], vec![short]);
    if let Some((machine, machine_short)) = machine(setback) {
        long.push(machine.to_owned());
        short.push(machine_short.to_owned());
    }
    match (&setback.comeback, &setback.rests) {
        (Some(comeback), _) => {
            let lost = setback.lost_s().map(|lost| format!(", {lost} s lost")).unwrap_or_default();
            let (whole, few) = comeback_words(comeback, &lost);
            long.push(whole);
            short.push(few.clone());
            // Who has read the longer line knows what it goes on from.
            tiny = vec![few];
        }
        (None, Some(_)) if setback.kind == Some(ErrorKind::KilledBySignal) => {
            long.push("nobody brings it back unasked".to_owned());
            short.push("left to you".to_owned());
            tiny.push("left to you".to_owned());
        }
        (None, Some(why)) => {
            long.push(format!("left alone: {why}"));
            short.push("left alone".to_owned());
            tiny.push("left alone".to_owned());
        }
        (None, None) if since >= OVERDUE_S => {
            let why = setback.refusal.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
            long.push(format!("not back yet{why}"));
            short.push(format!("not back for {since} s"));
            tiny.push("not back".to_owned());
        }
        (None, None) if setback.noticed.is_none() => {
            long.push("nobody has noticed yet".to_owned());
        }
        (None, None) => {}
    }
    [long.join(" → "), short.join(" → "), tiny.join(" → ")]
}

/// How far its next machine is, if its own was taken.
fn machine(setback: &Setback) -> Option<(&'static str, &'static str)> {
    match (setback.is_taken, setback.asked, setback.ready) {
        (true, _, Some(_)) => Some(("a new one was made", "anew")),
        (true, Some(_), None) => Some(("a new one is being made", "being made")),
        (true, None, _) if setback.noticed.is_some() && setback.comeback.is_none() => {
            Some(("the daemon has seen it", "seen"))
        }
        _ => None,
    }
}

fn comeback_words(comeback: &Comeback, lost: &str) -> (String, String) {
    let job = &comeback.job;
    match (comeback.from, comeback.started) {
        (Some(step), _) => (
            format!("{job} goes on from step {step}{lost}"),
            format!("{job} from step {step}{lost}"),
        ),
        (None, Some(_)) => (format!("{job} has been started for it"), format!("{job} started")),
        (None, None) => (format!("{job} is to go on for it"), format!("{job} begins")),
    }
}

/// What comes next: what is planned for the fleet, else what waits, else what is left to the person.
fn coming(tale: &DemoTale) -> Lengths {
    if let Some(threat) = tale.threats.first() {
        // What is due happens when somebody looks next.
        let (target, left) = (&threat.target, threat.at.seconds_since(tale.now).max(1));
        let (what, short) = if threat.takes {
            ("will be taken away", "is taken")
        } else {
            ("will lose its connections", "breaks")
        };
        let short = format!("in {left} s {target} {short}");
        return [format!("in about {left} s {target} {what}"), short.clone(), short];
    }
    if tale.setbacks.iter().any(Setback::is_open) {
        return Lengths::default();
    }
    if tale.waiting > 0 {
        let wait = counted(tale.waiting, "job");
        let long = format!("next: {wait} of the queue, when a place is free");
        return [long, format!("next: {wait} of the queue"), String::new()];
    }
    let killed = |setback: &&Setback| {
        setback.kind == Some(ErrorKind::KilledBySignal)
            && setback.rests.is_some()
            && setback.comeback.is_none()
    };
    if let Some(setback) = tale.setbacks.iter().find(killed) {
        let short = format!("your turn: r on {}", setback.job);
        return [format!("{short} brings it back; q ends"), short.clone(), short];
    }
    if tale.is_complete() { ["q ends it"; 3].map(str::to_owned) } else { Lengths::default() }
}
