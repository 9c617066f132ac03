//! What a screen asks of tmux all day: the windows that have changed, one pane by itself, a pulse now and
//! then. It sees what a first look sees.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at what it did not expect")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tpu_core::model::facts::{ErrorKind, PaneFact, TmuxFact};
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::job::Status;
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::{JobView, Whose};
use tpu_ops::Ctx;
use tpu_ops::act::board;
use tpu_ops::act::outlook::look;
use tpu_ops::observe::panes::read_again;
use tpu_ops::observe::snapshot::LookMemory;
use tpu_ops::observe::wake::Wake;
use tpu_system::sys::clock::ManualClock;
use tpu_system::sys::env::Env;
use tpu_system::tmux::{Capture, Captured, NewWindow, Occupant, Tmux, TmuxError};

use crate::common::env::TestEnv;
use crate::common::fakes::tmux::FakeTmux;

/// A server that notes how much of its panes is read.
struct Watched {
    tmux: FakeTmux,
    clock: Arc<ManualClock>,
    /// What was asked beside captures.
    asked: Mutex<Vec<&'static str>>,
    captures: Mutex<Vec<Capture>>,
}

impl Watched {
    /// Captures since the last call.
    fn read(&self) -> Vec<Capture> {
        std::mem::take(&mut *self.captures.lock().unwrap())
    }
}

impl Tmux for Watched {
    fn look(&self) -> TmuxFact {
        self.asked.lock().unwrap().push("look");
        self.tmux.look()
    }

    /// Takes 30 ms.
    fn wake_mark(&self) -> u64 {
        self.asked.lock().unwrap().push("pulse");
        self.clock.advance(Duration::from_millis(30));
        self.tmux.wake_mark()
    }

    fn capture_known(
        &self,
        pane: &PaneFact,
        server_pid: u32,
        capture: &Capture,
    ) -> Result<bytes::Bytes, TmuxError> {
        self.asked.lock().unwrap().push("known");
        self.tmux.capture_known(pane, server_pid, capture)
    }

    fn ensure_session(&self, session: &str, history: u32) -> Result<(), TmuxError> {
        self.tmux.ensure_session(session, history)
    }

    fn open_window(&self, window: &NewWindow) -> Result<PaneFact, TmuxError> {
        self.tmux.open_window(window)
    }

    fn capture(&self, panes: &[Capture]) -> Result<Captured, TmuxError> {
        self.captures.lock().unwrap().extend(panes.iter().cloned());
        self.tmux.capture(panes)
    }

    fn close_pane(&self, pane: &PaneFact, server_pid: u32) -> Result<(), TmuxError> {
        self.tmux.close_pane(pane, server_pid)
    }

    fn process(&self, pane: &PaneFact, server_pid: u32) -> Result<Option<u32>, TmuxError> {
        self.tmux.process(pane, server_pid)
    }

    fn occupants(&self) -> Result<BTreeMap<String, Occupant>, TmuxError> {
        self.tmux.occupants()
    }

    fn close_unwatched(&self, pane: &PaneFact, server_pid: u32) -> Result<(), TmuxError> {
        self.tmux.close_unwatched(pane, server_pid)
    }

    fn attach_argv(&self, pane: &PaneFact, inside: Option<&str>) -> Vec<String> {
        self.tmux.attach_argv(pane, inside)
    }

    fn end_server(&self, server_pid: u32) -> Result<(), TmuxError> {
        self.tmux.end_server(server_pid)
    }
}

/// One job of alice in window 7, a screen that watches it, and all that it has printed.
struct Scene {
    env: TestEnv,
    ctx: Ctx,
    tmux: Arc<Watched>,
    clock: Arc<ManualClock>,
    pane: String,
    screen: LookMemory,
    text: String,
}

impl Scene {
    fn new() -> Self {
        let env = TestEnv::new();
        let mut data = env.two_users();
        data["users"]["alice"]["job_data"] = json!([env.record("alice", 7, "running")]);
        env.write_data(&data);
        let clock = Arc::new(ManualClock::new(Timestamp::from_second(1_795_161_731)));
        let tmux = Arc::new(Watched {
            tmux: FakeTmux::on_testhost(Arc::<ManualClock>::clone(&clock)),
            clock: Arc::clone(&clock),
            asked: Mutex::default(),
            captures: Mutex::default(),
        });
        tmux.tmux.open_by_hand("alice", 7, "run");
        let mut ctx = env.ctx(Env::fixed::<&str, &str>([]));
        ctx.effects.tmux = Arc::<Watched>::clone(&tmux);
        ctx.effects.clock = Arc::<ManualClock>::clone(&clock);
        let TmuxFact::Up { panes, .. } = tmux.look() else { panic!("the server runs") };
        let pane = panes.into_iter().find(|pane| pane.window_index == 7).unwrap().pane_id;
        let (screen, text) = (LookMemory::default(), String::new());
        Self { env, ctx, tmux, clock, pane, screen, text }
    }

    /// The job prints, and some seconds go by.
    fn print(&mut self, text: &str) {
        self.text += text;
        self.clock.advance(Duration::from_secs(5));
        self.tmux.tmux.set_text(&self.pane, self.text.as_str());
    }

    /// The job as the screen sees it, and what was read for that.
    fn screen(&mut self) -> (JobView, Vec<Capture>) {
        self.tmux.read();
        let job = seen(&self.ctx, &mut self.screen);
        (job, self.tmux.read())
    }

    /// What was asked since the last call, beside captures.
    fn asked(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.tmux.asked.lock().unwrap())
    }

    /// The job as a full reading sees it.
    fn full(&self) -> JobView {
        seen(&self.ctx, &mut LookMemory::default())
    }

    /// Prints so many healthy steps, and looks before and after the last.
    fn train(&mut self, steps: u32) {
        for step in 0..steps {
            if step + 1 == steps {
                self.screen();
            }
            self.print(&format!("step {step}/9999 loss 0.4 lr 0.001 1.5 it/s\n"));
        }
        self.screen();
    }
}

fn seen(ctx: &Ctx, memory: &mut LookMemory) -> JobView {
    look(ctx, memory, &Whose::of([UserName::from("alice")])).unwrap().jobs.remove(0)
}

/// What the screen shows of a job that depends on its text.
fn shown(job: &JobView) -> String {
    format!("{:#?}\n{}", job.shown, job.tail)
}

#[test]
fn what_has_not_changed_is_not_read() {
    let mut scene = Scene::new();
    scene.train(100);
    let (job, read) = scene.screen();
    assert_eq!(read, []);
    assert_eq!(shown(&job), shown(&scene.full()));
}

#[test]
fn more_lines_than_were_expected_are_all_read() {
    let mut scene = Scene::new();
    scene.train(100);
    let lines = |from: u32, to: u32| {
        (from..to).fold(String::new(), |mut text, n| {
            writeln!(text, "step {n}/9999 loss 0.4 lr 0.001 1.5 it/s").unwrap();
            text
        })
    };
    for (from, to) in [(100, 140), (140, 220), (220, 2_000), (2_000, 2_001)] {
        scene.print(&lines(from, to));
        let (job, _) = scene.screen();
        assert_eq!(shown(&job), shown(&scene.full()), "{from} to {to}");
    }
}

#[test]
fn a_failure_is_seen_at_once_wherever_it_scrolled_to() {
    for behind in [0, 1, 5, 30, 45, 60, 100] {
        let mut scene = Scene::new();
        scene.train(100);
        scene.print("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 99 bytes.\n");
        scene.print(&"  at 0x00007f\n".repeat(behind));
        let (job, _) = scene.screen();
        assert!(matches!(job.shown.status, Status::Error(_)), "{behind}: {:?}", job.shown);
        assert_eq!(shown(&job), shown(&scene.full()), "{behind}");
    }
}

#[test]
fn a_screen_that_was_cleared_is_read_anew() {
    let mut scene = Scene::new();
    scene.train(100);
    scene.text.clear();
    scene.print("step 3/20 loss 0.1\n");
    let (job, _) = scene.screen();
    assert_eq!(shown(&job), shown(&scene.full()));
    assert_eq!(&*job.tail, "step 3/20 loss 0.1\n");
}

#[test]
fn who_has_a_target_is_told_by_windows_and_exits_alone() {
    let mut scene = Scene::new();
    scene.train(100);
    scene.print(
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes\n",
    );
    assert_eq!(scene.full().shown.status, Status::Error(ErrorKind::Oom));
    let had = |scene: &Scene| {
        let targets = board::look(&scene.ctx).unwrap().targets;
        targets.iter().map(|row| row.jobs.len()).sum::<usize>()
    };
    scene.tmux.read();
    scene.asked();
    assert_eq!(had(&scene), 1, "its program may still hold the device");
    assert_eq!((scene.tmux.read(), scene.asked()), (Vec::new(), vec!["look"]));
    scene.tmux.tmux.end_program(&scene.pane);
    assert_eq!(had(&scene), 0);
}

#[test]
fn the_pulse_takes_a_hundredth_of_the_time_at_most_and_misses_no_change_of_the_file() {
    let scene = Scene::new();
    let mut wake = Wake::default();
    scene.asked();
    let first = wake.all(&scene.ctx);
    assert_eq!(scene.asked(), ["pulse"]);
    scene.clock.advance(Duration::from_millis(2_900));
    scene.tmux.tmux.open_by_hand("alice", 8, "new");
    assert_eq!((wake.all(&scene.ctx), scene.asked()), (first, Vec::new()));
    let mut data = scene.env.data();
    data["users"]["alice"]["job_data"] = json!([]);
    scene.env.write_data(&data);
    let second = wake.all(&scene.ctx);
    assert_ne!(second, first);
    scene.clock.advance(Duration::from_millis(200));
    assert_ne!(wake.all(&scene.ctx), second, "the new window");
    assert_eq!(scene.asked(), ["pulse"]);
}

#[test]
fn the_selected_pane_is_asked_for_by_itself_as_long_as_it_is_the_one() {
    let mut scene = Scene::new();
    scene.print("of the first window\n");
    scene.asked();
    let id = JobId::parse("alice/7").unwrap();
    let mut known = None;
    let mut read = |scene: &Scene| {
        let text = read_again(&scene.ctx, &id, (Some(0), false), &mut known).unwrap();
        (text.map(|text| String::from_utf8(text).unwrap()), scene.asked())
    };
    let first = Some("of the first window\n".to_owned());
    assert_eq!(read(&scene), (first.clone(), vec!["look"]));
    assert_eq!(read(&scene), (first, vec!["known"]));
    scene.tmux.tmux.close_by_hand("alice", 7);
    scene.tmux.tmux.open_by_hand("alice", 1, "other");
    assert_eq!(read(&scene), (None, vec!["known", "look"]));
    scene.tmux.tmux.open_by_hand("alice", 7, "again");
    assert_eq!(read(&scene), (Some(String::new()), vec!["look"]));
}
