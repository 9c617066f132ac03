//! P8: how fast the screen draws and answers, with a thousand live jobs at 200 × 50.
//!
//! What is measured is all that the screen's own thread does: changing the model, drawing every cell, and
//! writing what changed as escape sequences. The run loop draws at most one frame in 16 ms, so a key waits
//! for so long at the most; looks, actions and the cloud are on other threads.

use std::io;
use std::time::Duration;

use jiff::tz::TimeZone;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::widgets::{Paragraph, Wrap};
use ratatui::{Terminal, TerminalOptions, Viewport};
use tpu_core::model::facts::{ErrorKind, Phase, Progress};
use tpu_core::model::ids::{JobId, JobNumber, TargetName, UserName};
use tpu_core::model::job::Status;
use tpu_core::model::rules::Rules;
use tpu_core::model::time::{Timestamp, Zone};
use tpu_core::model::view::{JobView, MonitorHealth, Shown, Snapshot, TmuxHealth, Whose};
use tpu_ops::observe::journal::Event;
use tpu_screen::keys::{Key, KeyMap};
use tpu_screen::message::{Answer, Ask, Message, Scope};
use tpu_screen::model::{Columns, Model, Setup};
use tpu_screen::pane::PaneText;
use tpu_screen::theme::Theme;
use tpu_screen::typed::Commands;
use tpu_screen::update::update;
use tpu_screen::view::view;
use tpu_system::sys::clock::{Clock as _, SystemClock};

use crate::Plan;
use crate::common::table::{Amount, Row, Sample, Table};
use crate::common::timed;

/// Jobs of the figures that have a target.
const JOBS: u32 = 1_000;
/// So often each thing is measured in one run.
const ROUNDS: usize = 50;
/// So many runs are made, and the quietest counts: what else the machine does is not the screen's.
const RUNS: usize = 8;
const NOW: i64 = 1_795_183_331;
const SIZE: (u16, u16) = (200, 50);
/// What a frame may cost.
const FRAME_BOUND: Duration = Duration::from_millis(2);
/// A key may take 30 ms, of which it may wait 16 ms for its frame: the run loop draws no two within this.
const KEY_BOUND: Duration = Duration::from_millis(14);

/// A frame and the answers to keys; then a frame by the number of jobs, of which it shows some forty.
pub(crate) fn screen(table: &mut Table, _: &Plan) -> io::Result<()> {
    let mut bench = Bench::new(JOBS)?;
    let frame = bench.measure(|bench, _| bench.draw());
    let key = bench.measure(|bench, n| {
        bench.key(if n % 50 < 25 { "j" } else { "k" });
        bench.draw();
    });
    let page = bench.measure(|bench, n| {
        bench.key(if n % 40 < 20 { "pgdn" } else { "pgup" });
        bench.draw();
    });
    let filter = bench.measure(|bench, n| {
        bench.key(match n % 8 {
            0 => "/",
            7 => "esc",
            1..=3 => "s",
            _ => "backspace",
        });
        bench.draw();
    });
    // What another thread sends is made before the time begins.
    let look = bench.measure_with(
        |n| looked(JOBS, n),
        |bench, message| {
            bench.send(message);
            bench.draw();
        },
    );
    bench.key("4");
    bench.send(Message::Answer(Ask::Events, Ok(Box::new(Answer::Events(events())))));
    let events = bench.measure(|bench, _| bench.draw());
    let mut plain = Plain::new()?;
    let floor: Vec<_> = (0..ROUNDS).map(|_| timed(|| plain.draw()).1).collect();
    let floor = Amount::Time(Sample::from(floor).at(95));
    for (name, times, bound) in [
        ("a frame at 200×50, 1 000 jobs, nothing changed", frame, FRAME_BOUND),
        ("a frame of the events", events, FRAME_BOUND),
        ("key: next job", key, KEY_BOUND),
        ("key: next screenful", page, KEY_BOUND),
        ("key: typing a filter", filter, KEY_BOUND),
        ("a look taken in", look, KEY_BOUND),
    ] {
        let row = Row::of(format!("P8 {name}, p95"), Amount::Time(times.at(95)));
        let row = row.floor(floor);
        let wait = if bound == KEY_BOUND { ", then its frame within 16 ms" } else { "" };
        table.push(&row.bound(Amount::Time(bound), format!("≤ {bound:?}{wait}")))?;
    }
    for jobs in [10, 100, JOBS, 5_000] {
        let mut bench = Bench::new(jobs)?;
        let frame = bench.measure(|bench, _| bench.draw());
        table.point("a frame of the screen", "jobs", jobs, frame.median());
        let look = bench.measure_with(
            |n| looked(jobs, n),
            |bench, message| {
                bench.send(message);
                bench.draw();
            },
        );
        table.point("a look taken in by the screen", "jobs", jobs, look.median());
    }
    Ok(())
}

/// The least that a frame can be: plain text of which every cell changes each time.
pub(crate) struct Plain {
    terminal: Terminal<CrosstermBackend<io::Sink>>,
    /// Two pages, shown in turn.
    pages: [String; 2],
}

impl Plain {
    /// A screen of the size of ours.
    pub(crate) fn new() -> io::Result<Self> {
        let cells = usize::from(SIZE.0) * usize::from(SIZE.1);
        let pages =
            ["all is well ", "nothing more "].map(|words| words.repeat(cells / words.len()));
        Ok(Self { terminal: terminal()?, pages })
    }

    /// Draws the other page.
    pub(crate) fn draw(&mut self) {
        self.pages.swap(0, 1);
        let text = Paragraph::new(self.pages[0].as_str()).wrap(Wrap { trim: false });
        drop(self.terminal.draw(|frame| frame.render_widget(text, frame.area())));
    }
}

/// A terminal that goes nowhere.
fn terminal() -> io::Result<Terminal<CrosstermBackend<io::Sink>>> {
    let area = Rect::new(0, 0, SIZE.0, SIZE.1);
    let options = TerminalOptions { viewport: Viewport::Fixed(area) };
    Terminal::with_options(CrosstermBackend::new(io::sink()), options)
}

/// The screen without a terminal, a clock that stands still, and so many live jobs.
pub(crate) struct Bench {
    model: Model,
    terminal: Terminal<CrosstermBackend<io::Sink>>,
    clock: SystemClock,
}

impl Bench {
    /// A screen that has taken in its first look.
    pub(crate) fn new(jobs: u32) -> io::Result<Self> {
        let keys = KeyMap::new(&[]).map_err(io::Error::other)?;
        let setup = Setup {
            theme: Theme::named("dark").map_err(io::Error::other)?,
            ascii: false,
            columns: Columns { output: true, ..Columns::default() },
            zone: Zone::local(TimeZone::UTC),
            keys,
            refresh_s: 5,
            commands: Commands { known: Vec::new(), nature: tpu::cli::nature },
        };
        let scope = Scope { whose: Whose::of([UserName::from("alice")]) };
        let mut model = Model::new(setup, scope, Timestamp::from_second(NOW), None);
        model.size = SIZE;
        let mut bench = Self { model, terminal: terminal()?, clock: SystemClock::new() };
        bench.send(looked(jobs, 0));
        let lines: Vec<String> = (0..60).map(|n| format!("step {n} loss 0.{n} lr 1e-3")).collect();
        let pane = PaneText::from_plain(lines.iter().map(String::as_str));
        bench.send(Message::Pane(job(0, 0).id, Ok(Some(pane))));
        Ok(bench)
    }

    fn send(&mut self, message: Message) {
        drop(update(&mut self.model, message, Timestamp::from_second(NOW)));
    }

    /// Presses a key.
    pub(crate) fn key(&mut self, name: &str) {
        if let Some(key) = Key::parse(name) {
            self.send(Message::Key(key));
        }
    }

    /// Draws a frame.
    pub(crate) fn draw(&mut self) {
        let model = &self.model;
        drop(self.terminal.draw(|frame| view(model, frame)));
    }

    fn measure(&mut self, round: impl FnMut(&mut Self, usize)) -> Sample {
        self.measure_with(|n| n, round)
    }

    /// The time of `round` with what `prepare` makes for it.
    fn measure_with<T>(
        &mut self,
        prepare: impl Fn(usize) -> T,
        mut round: impl FnMut(&mut Self, T),
    ) -> Sample {
        let mut run = || {
            let mut times = Vec::with_capacity(ROUNDS);
            for n in 0..ROUNDS {
                let prepared = prepare(n);
                let begun = self.clock.monotonic();
                round(self, prepared);
                times.push(self.clock.monotonic().saturating_sub(begun));
            }
            Sample::from(times)
        };
        let runs = (0..RUNS).map(|_| run());
        runs.min_by_key(|times| times.at(95)).unwrap_or(Sample::from(Vec::new()))
    }
}

/// A look in which a tenth of the jobs have made a step.
fn looked(jobs: u32, round: usize) -> Message {
    Message::Looked(Box::new(Snapshot {
        at: Timestamp::from_second(NOW),
        whose: Whose::of([UserName::from("alice")]),
        users: vec![UserName::from("alice")],
        jobs: (0..jobs).map(|window| job(window, round)).collect(),
        orphans: Vec::new(),
        tmux: TmuxHealth::Up,
        monitor: MonitorHealth::Running { turn_age_s: 4 },
    }))
}

/// As many events as the screen reads.
fn events() -> Vec<Event> {
    let event = |n: u32| Event {
        at: Timestamp::from_second(NOW - i64::from(n)),
        actor: "daemon".to_owned(),
        account: None,
        user: Some(UserName::from("alice")),
        job: Some(JobNumber(n)),
        kind: "status".to_owned(),
        text: "error: grpc".to_owned(),
        data: serde_json::Value::Null,
    };
    (0..1_000).map(event).collect()
}

fn job(window: u32, round: usize) -> JobView {
    let step = 12_000 + if window.is_multiple_of(10) { round as u64 } else { 0 };
    let failed = window % 50 == 49;
    JobView {
        id: JobId::new(UserName::from("alice"), JobNumber(window)),
        lineage: vec![JobNumber(window)],
        leaf: true,
        dir: (Some(1), format!("/home/alice/project-{}", window % 7)),
        target: TargetName::from(format!("lab-tpuvm-v2-32-preemptible-{window}").as_str()),
        target_label: format!("v2-32-p{window}"),
        kind: tpu_core::model::target::TargetKind::default(),
        target_unknown: None,
        machines: tpu_core::model::target::Machines::Provided,
        share: None,
        zone: Some("europe-west4-a".to_owned()),
        name: None,
        runs: None,
        title: None,
        member: None,
        tags: (window.is_multiple_of(3)).then(|| format!("sweep-{window}")),
        shown: Shown {
            status: if failed { Status::Error(ErrorKind::Oom) } else { Status::Running },
            unknown: None,
            pending: None,
            queued: None,
            phase: Some(Phase::Running),
            progress: Progress {
                epoch: Some(31.0),
                epochs: Some(100.0),
                step: Some(step),
                total: Some(38_700),
                loss: Some(0.412),
                lr: Some(1e-3),
                steps_per_s: Some(4.2),
                ..Progress::default()
            },
            evidence: None,
        },
        stored: Status::Running,
        stage: 0,
        from_step: None,
        restarts: 0,
        nodes: Vec::new(),
        raw: None,
        gpus: None,
        rules: Rules::named("pre").unwrap_or_default(),
        monitor: true,
        next: None,
        needs_person: false,
        started_at: Some(Timestamp::from_second(NOW - 7_440)),
        ended_at: None,
        age_s: Some(7_440),
        worked: None,
        waited_s: None,
        cost: None,
        log_dir: Some(format!("/data/logs/alice/20261120_115811-{window}")),
        stage_dir: Some(format!("/data/stage/alice/20261120_115811-{window}")),
        exit: None,
        window_alive: Some(true),
        pane_id: Some(format!("%{window}")),
        tail: format!("step {step} loss 0.412 lr 1e-3 4.2 it/s\n").repeat(40).into(),
        configs: "--config.training.learning_rate=0.01".to_owned(),
        intent: None,
    }
}
