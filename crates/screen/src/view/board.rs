//! The tabs beside the jobs: their columns, one entry each.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::grid::{self, Grid, GridColumn};
use super::spans::{dotted, outside, span};
use super::{machines, status, style, usage, words};
use crate::model::{BoardRow, Model, concerns};
use crate::tabs::Tab;
use crate::theme::Role;
use tpu_core::model::facts::TargetState;
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::job;
use tpu_core::model::time;
use tpu_core::model::view::{InQueue, JobView, MonitorHealth};
use tpu_core::plan::board::{Row, Standing};
use tpu_core::plan::expected::ExpectedStart;
use tpu_ops::front::inventory;
use tpu_ops::observe::journal::Event;
use tpu_ops::waiting::preview::Entry;

/// Draws the table of the tab.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, area: Rect, titled: bool) {
    let rows = &model.boards.choosing(model.tab).rows;
    match model.tab {
        Tab::Jobs => {}
        Tab::Targets => {
            let seen = model.boards.targets.seen.as_ref();
            let targets = seen.map(|seen| seen.targets.as_slice()).unwrap_or_default();
            let value = |row: &BoardRow| targets.get(row.at);
            let nothing = grid::nothing(
                model,
                "No target is known. `tpu register NAME --zone ZONE` makes one known.",
            );
            let total = targets.len();
            let grid = Grid { nothing, total, titled, ..Grid::plain(TARGETS, rows, &value) };
            grid::render(frame, model, area, &grid);
        }
        Tab::Queue => {
            let value = |row: &BoardRow| model.jobs().get(row.at);
            let nothing =
                grid::nothing(model, "Nothing waits. As in: tpu submit v4-8 -- python3 train.py");
            let total = model.jobs().iter().filter(|job| job.is_queued()).count();
            let grid = Grid { nothing, total, titled, ..Grid::plain(QUEUE, rows, &value) };
            grid::render(frame, model, area, &grid);
        }
        Tab::Events => {
            let events = model.boards.events.seen.as_deref().unwrap_or_default();
            let value = |row: &BoardRow| events.get(row.at);
            let nothing = grid::nothing(model, "Nothing has happened yet.");
            let total = events.len();
            let grid = Grid { nothing, total, titled, ..Grid::plain(EVENTS, rows, &value) };
            grid::render(frame, model, area, &grid);
        }
        Tab::Plan => {
            let entries = model.boards.plan.seen.as_ref();
            let entries = entries.map(|plan| plan.jobs.as_slice()).unwrap_or_default();
            let value = |row: &BoardRow| entries.get(row.at);
            let nothing = grid::nothing(model, &idle(model));
            let total = entries.iter().filter(|entry| concerns(entry)).count();
            let grid = Grid { nothing, total, titled, ..Grid::plain(PLAN, rows, &value) };
            grid::render(frame, model, area, &grid);
        }
        Tab::Usage => usage::table(frame, model, area),
    }
}

fn idle(model: &Model) -> String {
    let jobs = model
        .jobs()
        .iter()
        .filter(|job| job.leaf && job.shown.status.is_live() && !job.is_queued())
        .count();
    let well = match jobs {
        0 => "Nothing is to be done: no job is live.".to_owned(),
        1 => "Nothing is to be done: one job is live, and it is well.".to_owned(),
        several => {
            let jobs = tpu_core::text::counted(several, "job");
            format!("Nothing is to be done: {jobs} are live, and they are well.")
        }
    };
    match model.snapshot.as_ref().map(|snapshot| &snapshot.monitor) {
        Some(MonitorHealth::NotRunning) => {
            format!(
                "{well} the daemon does not run: if one fails, nothing happens by itself (D starts it)."
            )
        }
        Some(MonitorHealth::Watching { why, .. }) => {
            let why = outside(why);
            format!("{well} the daemon only watches, since {why}: if one fails, it does nothing.")
        }
        Some(MonitorHealth::Running { .. }) | None => well,
    }
}

/// What the chosen row has to say beyond its columns, on one line.
pub(super) fn footnote(model: &Model) -> Option<Line<'static>> {
    let row = model.boards.chosen(model.tab)?;
    let text = match model.tab {
        Tab::Jobs => return None,
        Tab::Targets => {
            let seen = model.boards.targets.seen.as_ref()?;
            let item = seen.targets.get(row.at)?;
            let silent = seen.silent.iter().find(|(zone, _)| Some(zone) == item.zone.as_ref());
            let said = match item.fact.state {
                TargetState::NotWatched => String::new(),
                _ => format!(
                    "the cloud said {} {} ago",
                    outside(&item.fact.raw_state),
                    time::age(model.now.seconds_since(item.fact.observed_at))
                ),
            };
            let jobs: Vec<String> = item.jobs.iter().map(ToString::to_string).collect();
            dotted([
                outside(item.target.as_str()),
                machines::footnote(model, item),
                outside(item.disagreement.as_deref().unwrap_or_default()),
                outside(&item.notes),
                outside(&jobs.join(" ")),
                said,
                room(item),
                outside(&item.fact.complaint()),
                silent
                    .map(|(zone, why)| format!("{zone} does not answer: {}", outside(why)))
                    .unwrap_or_default(),
                outside(&item.aliases.join(", ")),
            ])
        }
        Tab::Queue => {
            let job = model.jobs().get(row.at)?;
            let why = model.boards.why_waits(job).unwrap_or("it starts when its turn comes");
            let starts = words::starts(model, job);
            dotted([
                outside(&job.id.to_string()),
                outside(why),
                outside(&starts.unwrap_or_default()),
            ])
        }
        Tab::Events => {
            let event = model.boards.events.seen.as_ref()?.get(row.at)?;
            let text = event.text.lines().next().unwrap_or_default();
            dotted([
                model.setup.zone.stamp_alone(event.at),
                outside(text),
                format!("by {}", outside(&event.actor)),
            ])
        }
        Tab::Plan => {
            let entry = model.boards.plan.seen.as_ref()?.jobs.get(row.at)?;
            outside(why_planned(model, entry))
        }
        Tab::Usage => usage::footnote(model)?,
    };
    Some(Line::from(span(format!(" {text}"), style(model, Role::Base))))
}

fn plain(text: &str) -> Line<'static> {
    Line::from(Span::raw(outside(text)))
}

/// Glyph, role and word of how a target stands on the board, and why where nobody can have it.
fn standing(model: &Model, row: &Row) -> (&'static str, Role, &'static str) {
    let is_idle = row.is_shared || row.standing == Standing::Free;
    if is_idle && machines::is_drained(model, row) {
        return ("x", Role::Warning, "drained");
    }
    if is_idle && machines::is_silent(model, row) {
        return ("?", Role::Unknown, "silent");
    }
    if row.is_shared {
        return ("·", Role::Dim, "shared");
    }
    match (row.standing, row.fact.state) {
        (Standing::Free, _) if row.fact.is_flagged() => ("▲", Role::Warning, "unhealthy"),
        (Standing::Free, _) => ("✓", Role::Finished, "free"),
        (Standing::Running, _) => ("●", Role::Running, "running"),
        (Standing::Reserved, _) => ("◆", Role::Warning, "reserved"),
        (Standing::Error, _) => ("▲", Role::Error, "error"),
        (Standing::Creating, _) => ("◌", Role::Starting, "on its way"),
        (Standing::Unknown, _) => ("?", Role::Unknown, "unknown"),
        (Standing::Gone, TargetState::Preempted) => ("▲", Role::Error, "preempted"),
        (Standing::Gone, TargetState::Stopped) => ("○", Role::Killed, "stopped"),
        (Standing::Gone, TargetState::Deleting) => ("◌", Role::Warning, "being deleted"),
        (Standing::Gone, _) => ("○", Role::Killed, "gone"),
    }
}

/// Who has it: the jobs at work there, else whoever keeps it.
fn who(row: &Row) -> String {
    let jobs: Vec<String> = row.jobs.iter().map(ToString::to_string).collect();
    if jobs.is_empty() { row.user.clone().unwrap_or_default() } else { jobs.join(" ") }
}

const TARGETS: &[GridColumn<Row>] = &[
    GridColumn {
        head: "target",
        least: 10,
        most: 40,
        keep: u8::MAX,
        cell: |_, row| plain(&row.label),
    },
    GridColumn {
        head: "status",
        least: 12,
        most: 15,
        keep: 200,
        cell: |model, row| {
            let (glyph, role, word) = standing(model, row);
            Line::from(span(format!("{glyph} {word}"), style(model, role)))
        },
    },
    GridColumn { head: "user", least: 7, most: 24, keep: 190, cell: |_, row| plain(&who(row)) },
    GridColumn {
        head: "kind",
        least: 5,
        most: 12,
        keep: 115,
        cell: |model, row| Line::from(span(outside(row.kind.as_str()), style(model, Role::Dim))),
    },
    GridColumn { head: "waits", least: 5, most: 7, keep: 165, cell: waits },
    GridColumn { head: "slots", least: 6, most: 48, keep: 195, cell: machines::slots },
    GridColumn { head: "load", least: 10, most: 16, keep: 153, cell: machines::load },
    GridColumn { head: "mem", least: 9, most: 10, keep: 110, cell: machines::memory },
    GridColumn { head: "gpu", least: 9, most: 10, keep: 155, cell: machines::gpu },
    GridColumn { head: "heat", least: 5, most: 6, keep: 105, cell: machines::heat },
    GridColumn { head: "seen", least: 9, most: 14, keep: 158, cell: machines::age },
    GridColumn {
        head: "kept",
        least: 6,
        most: 8,
        keep: 170,
        cell: |model, row| {
            let left = row.until.map(|until| time::age(until.seconds_since(model.now)));
            plain(&left.unwrap_or_default())
        },
    },
    GridColumn {
        head: "since",
        least: 6,
        most: 8,
        keep: 70,
        cell: |model, row| {
            let since = row.fact.since.map(|at| time::age(model.now.seconds_since(at)));
            plain(&since.unwrap_or_default())
        },
    },
    GridColumn {
        head: "type",
        least: 6,
        most: 12,
        keep: 160,
        cell: |_, row| plain(row.accelerator.as_deref().unwrap_or_default()),
    },
    GridColumn {
        head: "zone",
        least: 10,
        most: 20,
        keep: 120,
        cell: |_, row| plain(row.zone.as_deref().unwrap_or_default()),
    },
    GridColumn {
        head: "class",
        least: 9,
        most: 11,
        keep: 60,
        cell: |_, row| plain(if row.is_shared { "" } else { row.pricing.as_str() }),
    },
    GridColumn {
        head: "per hour",
        least: 8,
        most: 8,
        keep: 65,
        cell: |model, row| {
            let prices = model.boards.targets.seen.as_ref().map(|seen| &seen.prices);
            let price = prices.and_then(|prices| inventory::worth(row, prices).1);
            plain(&price.map(|price| format!("{price:.2}")).unwrap_or_default())
        },
    },
    GridColumn {
        head: "notes",
        least: 13,
        most: 56,
        keep: 150,
        cell: |model, row| notes(model, row),
    },
];

/// How many jobs wait for it: in a queue of our own, or because its engine has not begun them.
fn waits(model: &Model, row: &Row) -> Line<'static> {
    let is_for = |job: &&JobView| job.target == row.target && row.is_known;
    let wait = |job: &&JobView| job.is_queued() || job.shown.pending.is_some();
    let count: usize = model.jobs().iter().filter(is_for).filter(wait).map(JobView::jobs).sum();
    plain(&if count > 0 { count.to_string() } else { String::new() })
}

/// What its engine says of its room.
fn room(row: &Row) -> String {
    let said = row.fact.room.as_ref().map(|room| format!("{}: {}", room.state, room.in_words()));
    outside(&said.unwrap_or_default())
}

/// What is amiss, then its room, what people noted and the tags of the jobs.
fn notes(model: &Model, row: &Row) -> Line<'static> {
    let stuck = row.fact.stuck_for_s(model.now);
    let amiss = dotted([
        outside(row.disagreement.as_deref().unwrap_or_default()),
        stuck.map(|s| format!("for {}: too long", time::age(s))).unwrap_or_default(),
        outside(&row.fact.complaint()),
    ]);
    let tags: Vec<&str> =
        row.tags.iter().map(String::as_str).filter(|tags| *tags != row.notes).collect();
    let noted = dotted([room(row), outside(&row.notes), outside(&tags.join(" "))]);
    let gap = if amiss.is_empty() || noted.is_empty() { "" } else { " · " };
    Line::from(vec![span(amiss, style(model, Role::Warning)), Span::raw(format!("{gap}{noted}"))])
}

fn event_role(kind: &str) -> Role {
    match kind {
        "failed" | "error" | "not-resumed" | "needs-login" | "stopped" => Role::Error,
        "launch" | "launched" | "started" | "running" => Role::Running,
        "finished" => Role::Finished,
        _ => Role::Base,
    }
}

/// The cell of something that waits.
fn waiting(job: &JobView, cell: impl FnOnce(&InQueue) -> String) -> Line<'static> {
    plain(&job.shown.queued.as_ref().map(cell).unwrap_or_default())
}

const QUEUE: &[GridColumn<JobView>] = &[
    GridColumn {
        head: "place",
        least: 5,
        most: 7,
        keep: u8::MAX,
        cell: |_, job| waiting(job, |queued| queued.position.to_string()),
    },
    GridColumn {
        head: "queue",
        least: 7,
        most: 16,
        keep: 100,
        cell: |_, job| waiting(job, |queued| queued.queue.to_string()),
    },
    GridColumn {
        head: "job",
        least: 8,
        most: 20,
        keep: 210,
        cell: |model, job| {
            let id = match (model.everybody(), job.member) {
                (true, _) => job.id.to_string(),
                (false, _) => job.label(),
            };
            let members = match job.jobs() {
                1 => String::new(),
                several => format!(" ×{several}"),
            };
            plain(&format!("{id}{members}"))
        },
    },
    GridColumn {
        head: "name",
        least: 6,
        most: 20,
        keep: 120,
        cell: |_, job| {
            let tags = job.tags.as_ref().map(|tags| format!("#{tags}"));
            let known = job.known_as().map(str::to_owned);
            let words: Vec<String> = known.into_iter().chain(tags).collect();
            plain(&words.join(" "))
        },
    },
    GridColumn {
        head: "prio",
        least: 4,
        most: 4,
        keep: 190,
        cell: |_, job| waiting(job, |queued| queued.priority.to_string()),
    },
    GridColumn {
        head: "status",
        least: 8,
        most: 8,
        keep: 200,
        cell: |model, job| {
            let shown = status::of(job);
            Line::from(span(format!("{} {}", shown.glyph, shown.word), style(model, shown.role)))
        },
    },
    GridColumn {
        head: "wants",
        least: 8,
        most: 24,
        keep: 150,
        cell: |_, job| plain(&job.target_label),
    },
    GridColumn {
        head: "waits",
        least: 6,
        most: 8,
        keep: 140,
        cell: |_, job| plain(&job.age_s.map(time::age).unwrap_or_default()),
    },
    GridColumn {
        head: "starts",
        least: 6,
        most: 8,
        keep: 145,
        cell: |model, job| {
            let starts = model.boards.starts(job);
            plain(&starts.map(|starts| starts.in_short(model.now)).unwrap_or_default())
        },
    },
    GridColumn {
        head: "why it waits",
        least: 16,
        most: 200,
        keep: 180,
        cell: |model, job| plain(model.boards.why_waits(job).unwrap_or_default()),
    },
];

const EVENTS: &[GridColumn<Event>] = &[
    GridColumn {
        head: "when",
        least: 8,
        most: 19,
        keep: u8::MAX,
        cell: |model, event| {
            // The hour is enough for today.
            let whole = model.setup.zone.stamp_alone(event.at);
            let today = model.setup.zone.stamp_alone(model.now);
            let same = whole.get(..10) == today.get(..10);
            Line::from(Span::raw(if same { model.setup.zone.clock_alone(event.at) } else { whole }))
        },
    },
    GridColumn {
        head: "job",
        least: 8,
        most: 28,
        keep: 200,
        cell: |model, event| match (&event.user, event.job) {
            (Some(user), Some(job)) => plain(&with_name(model, &JobId::new(user.clone(), job))),
            (user, _) => plain(user.as_ref().map(UserName::as_str).unwrap_or_default()),
        },
    },
    GridColumn {
        head: "event",
        least: 8,
        most: 14,
        keep: 190,
        cell: |model, event| {
            Line::from(span(outside(&event.kind), style(model, event_role(&event.kind))))
        },
    },
    GridColumn {
        head: "what",
        least: 16,
        most: 200,
        keep: 180,
        cell: |_, event| plain(event.text.lines().next().unwrap_or_default()),
    },
    GridColumn { head: "by", least: 7, most: 14, keep: 50, cell: |_, event| plain(&event.actor) },
];

/// Why something is planned, or is not: of what waits as it was found out when machines were last asked.
fn why_planned<'a>(model: &'a Model, entry: &'a Entry) -> &'a str {
    model.boards.why_waits(&entry.view).unwrap_or(&entry.reason)
}

/// A job with its name, as far as the list has one of it.
fn with_name(model: &Model, id: &JobId) -> String {
    match model.job(id).and_then(|job| job.name.as_deref()) {
        Some(name) => format!("{id} {name}"),
        None => id.to_string(),
    }
}

const PLAN: &[GridColumn<Entry>] = &[
    GridColumn {
        head: "job",
        least: 8,
        most: 28,
        keep: u8::MAX,
        cell: |model, entry| plain(&with_name(model, &entry.view.id)),
    },
    GridColumn {
        head: "status",
        least: 12,
        most: 20,
        keep: 190,
        cell: |model, entry| {
            let shown = status::of(&entry.view);
            Line::from(span(format!("{} {}", shown.glyph, shown.word), style(model, shown.role)))
        },
    },
    GridColumn {
        head: "next",
        least: 8,
        most: 10,
        keep: 200,
        cell: |_, entry| match entry.next.as_ref().map(|next| next.action.as_str()) {
            None | Some("pass") => plain("nothing"),
            Some(action) => plain(action),
        },
    },
    GridColumn {
        head: "when",
        least: 7,
        most: 12,
        keep: 180,
        cell: |model, entry| {
            let off =
                model.snapshot.as_ref().is_some_and(|s| s.monitor == MonitorHealth::NotRunning);
            let next = entry.next.as_ref().filter(|next| next.action != "pass");
            let age = model.boards.plan.age_s(model.now).unwrap_or(0);
            if let Some(first) = model.boards.starts(&entry.view).and_then(ExpectedStart::first) {
                return plain(&match first.seconds_since(model.now) {
                    0 => "now".to_owned(),
                    seconds => format!("in {}", time::age(seconds)),
                });
            }
            match next.and_then(|next| next.in_s) {
                None => Line::default(),
                Some(_) if off => Line::from(span("daemon off", style(model, Role::Warning))),
                Some(seconds) if seconds <= age => plain("now"),
                Some(seconds) => plain(&format!("in {}", time::age(seconds - age))),
            }
        },
    },
    GridColumn {
        head: "left",
        least: 5,
        most: 6,
        keep: 150,
        cell: |_, entry| {
            let left = entry.next.as_ref().and_then(|next| next.budget_left);
            plain(&left.map(|left| left.to_string()).unwrap_or_default())
        },
    },
    GridColumn {
        head: "rule",
        least: 6,
        most: 18,
        keep: 90,
        cell: |_, entry| {
            let rule = words::rule(&entry.view);
            plain(rule.strip_prefix("rule ").unwrap_or(&rule))
        },
    },
    GridColumn {
        head: "being acted on by",
        least: 12,
        most: 32,
        keep: 100,
        cell: |model, entry| {
            let lease = entry.lease.as_ref();
            let text = lease.map(|lease| {
                let left = time::age(lease.until.seconds_since(model.now));
                format!("{} for {left}", outside(&job::who(&lease.owner)))
            });
            Line::from(span(text.unwrap_or_default(), style(model, Role::Warning)))
        },
    },
    GridColumn {
        head: "why",
        least: 14,
        most: 200,
        keep: 160,
        cell: |model, entry| plain(why_planned(model, entry)),
    },
];
