//! Many jobs that end at once while more wait, on a machine where no daemon runs: one process at a time passes over the
//! queue for all of them, whoever dies meanwhile. What must never happen here, beside what [`super::turns`] forbids:
//!
//! * 16: a place on this machine stays free while something waits and nobody passes.
//! * 18: a job is started by a process that has no right to pass.
//! * 19: a pass goes on in another tmux server after its own was ended.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tpu_core::model::capacity::Capacity;
use tpu_core::model::ids::{QueueName, TargetName, UserName};
use tpu_core::model::spec::{JobSpec, TargetRequest};
use tpu_core::model::target::{LOCAL, Registration};
use tpu_ops::act::launch::RunRequest;
use tpu_ops::act::reconcile;
use tpu_ops::waiting::queue::pass;
use tpu_ops::waiting::queue::submit::{Submission, enter};

use super::DATA;
use super::actors::{self, USERS};
use super::effects::Me;
use super::queues;
use super::run::{Outcome, Stage, Story, new_world, outcome};
use super::tpu::call;
use super::turns::Asked;
use super::world::{Faults, Pid, Purpose, State, World};

/// So many jobs run at once.
const AT_ONCE: u32 = 6;
/// So many are submitted.
const JOBS: usize = 24;
/// A job says something so often, in milliseconds, and ends then.
const WORKS_MS: (u64, u64) = (100_000, 100_300);
/// A place is free for so long at most.
const TAKEN_WITHIN: Duration = Duration::from_secs(45);
/// Where processes are killed, a person types a command so often.
const COMMAND_EVERY: Duration = Duration::from_secs(150);
/// Everything has begun by then.
const PATIENCE: Duration = Duration::from_secs(3 * 3_600);

/// What goes wrong in such a world.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Crowd {
    /// Each process dies between two of its effects, with this chance in millionths.
    pub(crate) crash: u64,
    /// The tmux server is ended while jobs are started in it.
    pub(crate) loses_tmux: bool,
    /// A lie: notes are never written.
    pub(crate) loses_notes: bool,
    /// A lie: two processes have the right to pass.
    pub(crate) shares_right: bool,
}

/// What the doors of such a world know.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watch {
    crowd: Option<Crowd>,
    /// The process that passed when the tmux server was ended.
    bereft: Option<Pid>,
}

fn is_right(path: &Path) -> bool {
    is_called(path, "lock")
}

fn is_called(path: &Path, ending: &str) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("pass-") && name.ends_with(ending)
}

impl State {
    /// The process that passes over the queue.
    fn passing(&self) -> Option<Pid> {
        self.locks.iter().find(|(path, _)| is_right(path)).map(|(_, pid)| *pid)
    }

    /// Whether a lock is given to a second process.
    pub(crate) fn is_shared(&self, path: &Path) -> bool {
        self.watch.crowd.is_some_and(|crowd| crowd.shares_right) && is_right(path)
    }
}

impl Me {
    /// Whether a file is a note that goes nowhere.
    pub(crate) fn loses(&self, path: &Path) -> bool {
        let crowd = self.world.state().watch.crowd;
        crowd.is_some_and(|crowd| crowd.loses_notes) && is_called(path, "note")
    }

    /// A process is about to open the window of a job.
    pub(crate) fn may_open(&self) {
        let mut state = self.world.state();
        if state.watch.crowd.is_none() {
            return;
        }
        if state.passing() != Some(self.pid) {
            state.violation("18: a job is started without the right to pass".to_owned());
        }
        // To a server that has ended nothing can be opened.
        let is_up = state.hosts.first().is_some_and(|host| host.tmux.is_up());
        if state.watch.bereft == Some(self.pid) && is_up {
            state.violation("19: a pass goes on in another tmux server".to_owned());
        }
    }
}

/// Plays a world of a seed.
pub(crate) fn play(seed: u64, crowd: Crowd) -> Outcome {
    let story = Story {
        seed,
        hosts: 1,
        targets: 1,
        chaos: PATIENCE,
        faults: Faults::default(),
        print: false,
        engine: None,
        has_queues: true,
        has_others: false,
    };
    let world = new_world(&story);
    takes(&world, AT_ONCE);
    {
        let mut state = world.state();
        state.watch.crowd = Some(crowd);
        state.habits.says_ms = WORKS_MS;
        state.habits.keeps_s = 1.0;
        state.habits.mistake = 0;
    }
    let mut stage = Stage::new(&world);
    stage.actor(move |world| persons(world, crowd));
    if crowd.loses_tmux {
        stage.actor(lose_tmux);
    }
    stage.actor(move |world| end(world, crowd));
    stage.play();
    outcome(&world)
}

/// Lets so many jobs run on this machine at once.
fn takes(world: &World, jobs: u32) {
    let mut data = actors::data(world).expect("the data file is there");
    let capacity = Some(Capacity { jobs: Some(jobs), ..Capacity::default() });
    let registration = Registration { capacity, ..Registration::default() };
    data.registry_mut().register(TargetName::from(LOCAL), registration);
    let bytes = data.to_bytes();
    world.disk.put(DATA.as_ref(), &bytes, 0o660, (1000, 1000));
    world.state().data_changed(None, Some(&bytes), None);
}

/// Somebody submits all jobs with one command; where processes are killed, more commands follow.
fn persons(world: &Arc<World>, crowd: Crowd) {
    let lineages = queues::lineages(world, JOBS, (20_000, 20_001));
    if let Some(turns) = &mut world.state().observer.turns {
        for lineage in &lineages {
            let lineages = vec![*lineage];
            turns.asks(Asked {
                queue: QueueName::usual(),
                lineages,
                at_once: None,
                after: Vec::new(),
            });
        }
    }
    let submits = call(world, &actors::start(0, Purpose::Run), move |ctx| {
        for (at, lineage) in lineages.iter().enumerate() {
            let local = TargetRequest::Named(LOCAL.to_owned());
            let (spec, _) = queues::spec_of(&[*lineage], (local, "pass", None));
            let user = UserName::from(USERS[at % USERS.len()]);
            let spec = JobSpec { array: None, ..spec };
            let request = RunRequest::new(user, spec);
            let how = Submission { stages_late: true, ..Submission::default() };
            drop(enter(ctx, &request, &how));
        }
        drop(pass::unless_watched(ctx, usize::MAX));
    });
    while world.state().is_alive(submits) && !is_all_submitted(world) {
        actors::wait(world, Duration::from_millis(50));
    }
    world.state().faults.crash = crowd.crash;
    if crowd.crash == 0 && !crowd.loses_tmux {
        return;
    }
    loop {
        actors::wait(world, COMMAND_EVERY);
        let _pid = call(world, &actors::start(0, Purpose::Other), |ctx| {
            drop(reconcile::reconcile(ctx));
            drop(pass::unless_watched(ctx, usize::MAX));
        });
    }
}

fn is_all_submitted(world: &World) -> bool {
    world.state().observer.turns.as_ref().is_some_and(|turns| turns.submitted().len() == JOBS)
}

/// Ends the tmux server while a command starts jobs in it; later a person starts another one.
fn lose_tmux(world: &Arc<World>) {
    let tmux = Arc::clone(&world.state().hosts[0].tmux);
    let holder = loop {
        actors::wait(world, Duration::from_millis(5));
        let state = world.state();
        let has_begun = state.observer.live().next().is_some();
        if let Some(holder) = state.passing().filter(|_| has_begun) {
            break holder;
        }
    };
    let later = world.state().between(0, 1_500);
    actors::wait(world, later);
    if world.state().passing() != Some(holder) {
        return;
    }
    world.state().watch.bereft = Some(holder);
    actors::restart_tmux(world, 0);
    actors::wait(world, Duration::from_secs(60));
    let _opened: bool = tmux.open_by_hand(USERS[0], 400, "mine");
}

/// Waits until nothing waits any more.
fn end(world: &Arc<World>, crowd: Crowd) {
    let mut free_since = None;
    loop {
        actors::wait(world, Duration::from_secs(5));
        let Some(data) = actors::data(world) else { continue };
        let waiting = data.queues().entries.len();
        let mut state = world.state();
        let at_work = data.jobs().filter(|job| job.status.is_live()).count();
        if waiting == 0 && at_work == 0 && state.now > COMMAND_EVERY {
            state.over = true;
            return;
        }
        if waiting == 0 && crowd.loses_tmux {
            // Nobody notes here what was lost with its server.
            state.over = true;
            return;
        }
        let is_free = at_work < AT_ONCE as usize && waiting > 0 && state.passing().is_none();
        let is_steady = crowd.crash == 0 && !crowd.loses_tmux;
        free_since = if is_free && is_steady { free_since.or(Some(state.now)) } else { None };
        let is_late =
            free_since.is_some_and(|since| state.now.saturating_sub(since) > TAKEN_WITHIN);
        if is_late || state.now > PATIENCE {
            let what = format!("16: {waiting} wait, and {at_work} of {AT_ONCE} are at work");
            state.violation(what);
            return;
        }
    }
}
