//! Windows as the contract sees them: of a real tmux server with real launchers, and of one in memory in which
//! the test plays the programs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tpu_core::model::facts::{PaneFact, TmuxFact};
use tpu_core::model::job::Job;
use tpu_engine::runner::{RunError, Runner, Submitted};
use tpu_ops::Ctx;
use tpu_ops::observe::runners;
use tpu_system::sys::clock::SystemClock;
use tpu_system::sys::env::Env;
use tpu_system::tmux::oneshot::OneShot;
use tpu_system::tmux::{Capture, Captured, NewWindow, Occupant, Tmux, TmuxError};

use super::contract::{Cut, EXIT, LAST, World, attempt, claimed, first_output, write_log};
use crate::common::env::TestEnv;
use crate::common::fakes::tmux::FakeTmux;
use crate::common::wait::wait_until;

/// What runs in a real window: it says that it has begun, prints, waits, and prints once more.
const PROGRAM: &str = "echo ran >>\"$TPU_DATA.ran-$TPU_LAUNCH\"; for ((i = 0; i < $1; i++)); do echo \"line $i\"; \
    done; until [ -e \"$TPU_DATA.go-$TPU_LAUNCH\" ]; do read -r -t 0.05 <> <(:); done; echo \"$2\"; exit \"$3\"";

/// The door to tmux, which can be broken.
struct Door {
    tmux: Arc<dyn Tmux>,
    /// What becomes of the next window that is opened.
    cut: Mutex<Option<Cut>>,
    /// Whether nothing answers.
    silent: Mutex<bool>,
    /// Windows that were opened, by their launches.
    opened: Mutex<BTreeMap<String, usize>>,
}

impl Door {
    fn broken(&self) -> Result<(), TmuxError> {
        let failed = || TmuxError::TimedOut { command: "it".to_owned(), seconds: 5 };
        if *self.silent.lock().unwrap() { Err(failed()) } else { Ok(()) }
    }
}

impl Tmux for Door {
    fn look(&self) -> TmuxFact {
        match self.broken() {
            Ok(()) => self.tmux.look(),
            Err(error) => TmuxFact::Unknown { reason: error.to_string() },
        }
    }

    fn ensure_session(&self, session: &str, history: u32) -> Result<(), TmuxError> {
        self.broken()?;
        self.tmux.ensure_session(session, history)
    }

    fn open_window(&self, window: &NewWindow) -> Result<PaneFact, TmuxError> {
        self.broken()?;
        let cut = self.cut.lock().unwrap().take();
        let lost = TmuxError::TimedOut { command: "new-window".to_owned(), seconds: 5 };
        if cut == Some(Cut::Before) {
            return Err(lost);
        }
        let pane = self.tmux.open_window(window)?;
        *self.opened.lock().unwrap().entry(window.launch.as_str().to_owned()).or_default() += 1;
        if cut.is_some() { Err(lost) } else { Ok(pane) }
    }

    fn capture(&self, panes: &[Capture]) -> Result<Captured, TmuxError> {
        self.broken()?;
        self.tmux.capture(panes)
    }

    fn close_pane(&self, pane: &PaneFact, server_pid: u32) -> Result<(), TmuxError> {
        self.broken()?;
        self.tmux.close_pane(pane, server_pid)
    }

    fn process(&self, pane: &PaneFact, server_pid: u32) -> Result<Option<u32>, TmuxError> {
        self.broken()?;
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

/// A home with a tmux server behind a door.
pub(super) struct Windows {
    env: TestEnv,
    ctx: Ctx,
    door: Arc<Door>,
    fake: Option<Arc<FakeTmux>>,
}

impl Windows {
    /// A real server, on which real launchers run.
    pub(super) fn real() -> Self {
        let env = TestEnv::new();
        let vars = env.variables().clone();
        let own = Env { vars, cwd: env.path("."), home: env.path("."), ..Env::read() };
        let tmux = OneShot::new(Some(env.tmux().socket()), &own);
        Self::behind(env, own, Arc::new(tmux), None)
    }

    /// One in memory.
    pub(super) fn simulated() -> Self {
        let env = TestEnv::new();
        let fake = Arc::new(FakeTmux::on_testhost(Arc::new(SystemClock::new())));
        let tmux = Arc::<FakeTmux>::clone(&fake);
        Self::behind(env, Env::fixed([("PATH", "/usr/bin:/bin")]), tmux, Some(fake))
    }

    fn behind(env: TestEnv, own: Env, tmux: Arc<dyn Tmux>, fake: Option<Arc<FakeTmux>>) -> Self {
        let mut ctx = env.ctx(own);
        let door = Arc::new(Door {
            tmux,
            cut: Mutex::default(),
            silent: Mutex::default(),
            opened: Mutex::default(),
        });
        ctx.effects.tmux = Arc::<Door>::clone(&door);
        Self { env, ctx, door, fake }
    }

    /// A file of one launch.
    fn file(&self, what: &str, job: &Job) -> PathBuf {
        let token = job.launch.as_ref().unwrap().token.as_str();
        self.env.path(&format!("data.json.{what}-{token}"))
    }

    fn pane_of(&self, job: &Job) -> Option<(PaneFact, u32)> {
        let TmuxFact::Up { place, panes } = self.door.tmux.look() else { return None };
        let token = job.launch.as_ref().map(|launch| launch.token.clone());
        let pane = panes.into_iter().find(|pane| pane.launch == token)?;
        Some((pane, place.server_pid))
    }
}

impl World for Windows {
    fn runner(&self) -> Box<dyn Runner + '_> {
        let data = self.ctx.data().unwrap();
        runners::of_target(&self.ctx, &data, &data.resolve_target("local").unwrap()).unwrap()
    }

    fn claim(&self, number: u32) -> Job {
        let mut job = claimed(self, (&self.env, &self.ctx), ("local", number));
        job.log_dir = Some(format!("{}/log-{number}", self.env.root()));
        job.stage_dir = Some(format!("{}/stage-{number}", self.env.root()));
        self.env.change(|data| data.user_mut(&job.user).unwrap().push_job(job.clone()));
        job
    }

    fn submit(&self, job: &Job, cut: Option<Cut>) -> Result<Submitted, RunError> {
        *self.door.cut.lock().unwrap() = cut;
        let before = self.starts(job);
        let submitted = self.runner().submit(&attempt(&self.env, job, ["bash", PROGRAM]));
        if self.fake.is_some() && self.starts(job) > before {
            write_log(job, &first_output());
        }
        submitted
    }

    fn starts(&self, job: &Job) -> usize {
        let token = job.launch.as_ref().unwrap().token.as_str().to_owned();
        let opened = self.door.opened.lock().unwrap().get(&token).copied().unwrap_or_default();
        let ran = std::fs::read_to_string(self.file("ran", job)).unwrap_or_default();
        opened.max(ran.lines().count())
    }

    fn begun(&self, job: &Job) {
        if self.fake.is_none() {
            wait_until("its program begins", || self.file("ran", job).exists());
        }
    }

    fn release(&self, job: &Job) {
        let Some(fake) = &self.fake else {
            crate::common::tmux::write_file(&self.file("go", job), "");
            return;
        };
        write_log(job, &format!("{LAST}\n"));
        let (pane, _) = self.pane_of(job).unwrap();
        fake.set_pane_option(&pane.pane_id, "@tpu_exit", &EXIT.to_string());
    }

    fn set_silent(&self, silent: bool) {
        *self.door.silent.lock().unwrap() = silent;
    }

    fn open_bystander(&self) {
        let Some(fake) = &self.fake else {
            let words = ["new-window", "-d", "-t", "=alice:90", "sleep", "100000"];
            self.env.tmux().run(&words);
            return;
        };
        assert!(fake.open_by_hand("alice", 90, "mine"));
    }

    fn has_bystander(&self) -> bool {
        let TmuxFact::Up { panes, .. } = self.door.tmux.look() else { return false };
        panes.iter().any(|pane| pane.window_index == 90 && !pane.dead)
    }

    fn shows_processes(&self) -> bool {
        self.fake.is_none()
    }
}

/// Ends what is still at work, whatever became of the test.
impl Drop for Windows {
    fn drop(&mut self) {
        for path in std::fs::read_dir(self.env.root()).into_iter().flatten().flatten() {
            let name = path.file_name().to_string_lossy().into_owned();
            if let Some(token) = name.strip_prefix("data.json.ran-") {
                drop(std::fs::File::create(self.env.path(&format!("data.json.go-{token}"))));
            }
        }
    }
}
