//! A job as a block of lines: what `check` prints, in the order that users of the original know.

use std::borrow::Cow;
use std::path::Path;

use clap::builder::styling::AnsiColor;

use tpu_core::model::facts::{Evidence, Source};
use tpu_core::model::groups::{self, Folded, GroupView};
use tpu_core::model::status_line::Tone;
use tpu_core::model::time;
use tpu_core::model::view::{JobView, Snapshot, TmuxHealth};

use super::paint;
use tpu_core::text::{self, escape};

/// Between two blocks, as in the original.
const RULE: &str = "----------------------------------------";

/// Which lines are shown.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Show {
    /// Whether selectors have chosen what is shown.
    pub(in crate::cli) chosen: bool,
    /// The directory.
    pub(in crate::cli) dir: bool,
    /// The target.
    pub(in crate::cli) target: bool,
    /// The status.
    pub(in crate::cli) status: bool,
    /// Output although the status is known.
    pub(in crate::cli) verbose: bool,
    /// Tags.
    pub(in crate::cli) tags: bool,
    /// Zones.
    pub(in crate::cli) zone: bool,
    /// The members of groups one by one.
    pub(in crate::cli) members: bool,
    /// Characters of output to show.
    pub(in crate::cli) length: usize,
}

/// Every job of a snapshot.
pub(in crate::cli) fn all(snapshot: &Snapshot, show: Show) -> String {
    let mut text = String::new();
    match &snapshot.tmux {
        TmuxHealth::Down if snapshot.misses_tmux() => text += "tmux: no server is running\n",
        TmuxHealth::Unknown(reason) if snapshot.misses_tmux() => {
            text += &format!("tmux: {reason}\n");
        }
        TmuxHealth::Up | TmuxHealth::Down | TmuxHealth::Unknown(_) => {}
    }
    let everybody = snapshot.whose.only().is_none();
    for row in rows(snapshot, show) {
        text += &match row {
            Folded::Job(job) => one(job, show, everybody),
            Folded::Group(group) => whole(&group, show, everybody),
        };
        text += RULE;
        text.push('\n');
    }
    for orphan in &snapshot.orphans {
        text += &format!(
            "Window {} ({}, NOT FOUND IN DATA)\n{RULE}\n",
            orphan.window,
            escape(&orphan.session)
        );
    }
    if snapshot.jobs.is_empty() && show.chosen {
        text += "No job is meant by that.\n";
    } else if snapshot.jobs.is_empty() && snapshot.orphans.is_empty() {
        let user = snapshot.whose.only().map(|user| format!(" {user}")).unwrap_or_default();
        text += &format!("No jobs. Start one: tpu run TARGET{user}\n");
    }
    text
}

/// The jobs of a snapshot, groups folded where nobody has chosen among them.
pub(super) fn rows(snapshot: &Snapshot, show: Show) -> Vec<Folded<'_>> {
    if show.chosen || show.members {
        return snapshot.jobs.iter().map(Folded::Job).collect();
    }
    groups::folded(&snapshot.jobs)
}

/// A group.
fn whole(group: &GroupView<'_>, show: Show, with_user: bool) -> String {
    let Some(worst) = group.worst() else { return String::new() };
    let mut parts = Vec::new();
    if with_user {
        parts.push(format!("user: {}", group.user));
    }
    parts.extend(worst.name.as_ref().map(|name| format!("name: {}", escape(name))));
    parts.push(format!("each: tpu check {} {}", group.group, group.user));
    let mut text = format!("Group {} ({})\n", group.group, parts.join("; "));
    text += &place(worst, show);
    text += &runs(script_of(group));
    if show.status {
        text += &format!("Status: {}\n", status_of(group));
    }
    text
}

/// How many members a group has and how they stand, in the colour of the worst.
pub(super) fn status_of(group: &GroupView<'_>) -> String {
    let waits = group.members.iter().find_map(|view| view.shown.queued.as_ref());
    let waits = waits.map(|queued| format!(" · {}", escape(&queued.in_words())));
    let words = group.in_words() + &waits.unwrap_or_default();
    group.worst().map_or(words.clone(), |worst| painted(Tone::of(&worst.shown.status), &words))
}

/// Where a job is: its directory, its target and the zone of that.
fn place(job: &JobView, show: Show) -> String {
    let mut text = String::new();
    if show.dir {
        let name = Path::new(&job.dir.1)
            .file_name()
            .map_or(job.dir.1.clone(), |name| name.to_string_lossy().into_owned());
        text += &format!("DIR: {}\n", escape(&name));
    }
    if show.target {
        text += &format!("TPU: {}\n", escape(&job.target_label));
    }
    if show.zone {
        text += &format!("ZONE: {}\n", escape(job.zone.as_deref().unwrap_or("-")));
    }
    text
}

/// The script that the members of a group run, where the group has no name.
fn script_of<'a>(group: &GroupView<'a>) -> Option<&'a str> {
    let worst = group.worst().filter(|worst| worst.name.is_none())?;
    worst.runs.as_ref().map(|runs| runs.script.as_str())
}

/// What a job without a name runs.
fn runs(title: Option<&str>) -> String {
    title.map(|title| format!("RUNS: {}\n", escape(title))).unwrap_or_default()
}

/// What people know a row by: its name, else what runs; of a group the script of its members.
pub(super) fn known_as(row: &Folded<'_>) -> String {
    let known = match row {
        Folded::Job(job) => job.known_as(),
        Folded::Group(group) => {
            group.worst().and_then(|worst| worst.name.as_deref()).or_else(|| script_of(group))
        }
    };
    escape(known.unwrap_or_default()).into_owned()
}

/// One job.
pub(in crate::cli) fn one(job: &JobView, show: Show, with_user: bool) -> String {
    let mut text = format!("{}\n", title(job, show, with_user));
    text += &place(job, show);
    text += &runs(job.title.as_deref().filter(|_| job.name.is_none()));
    if show.status {
        text += &format!("Status: {}\n", status(job));
        for (name, line) in reasons(job) {
            text += &format!("{name}: {}\n", escape(&line));
        }
    }
    let wanted = show.verbose || (show.status && is_obscure(job));
    if wanted && job.tail.is_empty() && show.verbose {
        text += "msg: none\n";
    } else if wanted && !job.tail.is_empty() {
        text += "msg:\n";
        for line in newest(&job.tail, show.length) {
            text += &format!("  {line}\n");
        }
    }
    text
}

/// The newest lines that a setting of so many characters asks for. A line that is longer than all of it is
/// cut.
fn newest(output: &str, length: usize) -> Vec<Cow<'_, str>> {
    // A line of output is about eighty characters wide.
    let lines = (length / 80).max(2);
    let mut newest: Vec<_> =
        output.lines().rev().take(lines).map(|line| text::last(line, length)).collect();
    newest.reverse();
    newest
}

fn title(job: &JobView, show: Show, with_user: bool) -> String {
    let mut parts = Vec::new();
    if with_user {
        parts.push(format!("user: {}", job.id.user));
    }
    parts.extend(job.member.map(|member| format!("member: {member}")));
    parts.extend(job.name.as_ref().map(|name| format!("name: {}", escape(name))));
    if show.tags {
        parts.extend(job.tags.as_ref().map(|tags| format!("tag: {}", escape(tags))));
    }
    let at = job.lineage.iter().position(|window| *window == job.id.window).unwrap_or(0);
    if let Some(father) = at.checked_sub(1).and_then(|at| job.lineage.get(at)) {
        let how = if job.stage > 0 { "resume" } else { "rerun" };
        parts.push(format!("{how}: {father}"));
    }
    if job.stage > 0 {
        parts.push(format!("stage: {}", job.stage));
    }
    if job.restarts > 0 {
        parts.push(format!("restarts: {}", job.restarts));
    }
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) };
    let what = match &job.shown.queued {
        None => "Window",
        Some(queued) if queued.members.is_some() => "Group",
        Some(_) => "Job",
    };
    format!("{what} {}{parts}", job.id.window)
}

/// Its status line, in colours.
pub(in crate::cli) fn status(job: &JobView) -> String {
    job.status_line(painted)
}

/// Why it has its status, and what follows.
fn reasons(job: &JobView) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if job.failure().is_some() || job.shown.status.error().is_some() || job.shown.pending.is_some()
    {
        lines.extend(job.shown.evidence.as_ref().map(|e| ("why", evidence(e))));
    }
    let what = if job.shown.copying().is_some() { "now" } else { "set-up" };
    lines.extend(job.shown.made_ready().map(|line| (what, escape(line.trim()).into_owned())));
    lines.extend(job.shown.without_window().map(|line| ("window", line.to_owned())));
    let expected = job.shown.pending.as_ref().and_then(|pending| pending.expected_start);
    lines.extend(expected.map(|at| ("start", format!("expected at {}", at.to_rfc3339()))));
    lines.extend(job.next.as_ref().map(|next| ("next", next.reason.clone())));
    lines
}

/// Evidence on one line.
pub(in crate::cli) fn evidence(evidence: &Evidence) -> String {
    let line = escape(evidence.line.trim()).into_owned();
    let mut place = vec![evidence.rule.clone()];
    place.extend(evidence.line_in_words());
    place.extend(evidence.worker.as_ref().map(|worker| format!("worker {worker}")));
    place.extend(evidence.age_s.map(|age| format!("{} ago", time::age(age))));
    match evidence.source {
        Source::Text | Source::Record => format!("\"{line}\" ({})", place.join(", ")),
        Source::Exit | Source::Engine | Source::Api => format!("{line} ({})", place.join(", ")),
    }
}

/// Words in the colour of their tone.
pub(in crate::cli) fn painted(tone: Tone, words: &str) -> String {
    let color = match tone {
        Tone::Good => AnsiColor::Green,
        Tone::Warning => AnsiColor::Yellow,
        Tone::Bad => AnsiColor::Red,
    };
    paint(color, words)
}

/// Whether only the output itself can tell what goes on.
fn is_obscure(job: &JobView) -> bool {
    let is_at_work = job.shown.status.is_live() && !job.is_queued();
    is_at_work && job.shown.phase.is_none() && job.shown.progress.is_empty()
}
