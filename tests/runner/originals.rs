//! Jobs of the original: without a mark of ours, they are known by the place of their window alone, and their
//! processes by the one in its pane. What changes between a look and an act, and a question that fails, stop nothing.

use std::sync::Arc;

use tpu_core::model::facts::TmuxFact;
use tpu_core::model::ids::{JobId, JobNumber, TargetName, UserName};
use tpu_core::model::job::Job;
use tpu_engine::runner::window::{FarWorkers, WindowRunner};
use tpu_engine::runner::{RunError, RunRef, Runner, StopOrder, StopOutcome, StopPart, Unreached};
use tpu_ops::Ctx;
use tpu_system::sys::clock::SystemClock;
use tpu_system::sys::env::Env;
use tpu_system::sys::procs::Process;
use tpu_system::tmux::Tmux as _;

use crate::common::env::{TestEnv, lives, wait_gone};
use crate::common::fakes::tmux::FakeTmux;
use crate::common::wait::wait_until;

/// Nothing of these jobs is on another machine.
struct NoWorkers;

impl FarWorkers for NoWorkers {
    fn stop(&self, _: &Job, _: Unreached) -> Result<usize, RunError> {
        Ok(0)
    }
}

/// Job 5 of alice, in whose window the original has begun a program.
fn job() -> Job {
    let id = JobId::new(UserName::from("alice"), JobNumber(5));
    Job::new(&id, TargetName::from("local"), "/".to_owned())
}

fn run(job: &Job) -> RunRef<'_> {
    RunRef { job, session: "alice" }
}

fn stop(runner: &dyn Runner, part: StopPart) -> Result<StopOutcome, RunError> {
    runner.stop(run(&job()), StopOrder { part, unreached: Unreached::Refuse })
}

/// Its window on a real server, and beside it another one with a program of its own.
struct Stage {
    env: TestEnv,
    ctx: Ctx,
    program: Process,
    other: Process,
}

impl Stage {
    fn new() -> Self {
        let env = TestEnv::new();
        env.tmux().run(&["new-session", "-d", "-s", "alice", "exec sleep 1000"]);
        let start = |index: u32, name: &str| {
            let line = format!("sleep 1000 & echo $! >{}; wait", env.path(name).display());
            env.tmux().run(&["new-window", "-d", "-t", &format!("=alice:{index}"), &line]);
            env.wait_pid(name)
        };
        let (program, other) = (start(5, "program"), start(6, "other"));
        let own = Env { vars: env.variables().clone(), ..Env::read() };
        let ctx = env.ctx(own);
        Self { env, ctx, program, other }
    }

    fn look(&self) -> TmuxFact {
        self.ctx.tmux.look()
    }

    /// A runner that acts by what was seen before.
    fn seeing<'a>(&'a self, seen: &'a TmuxFact) -> WindowRunner<'a> {
        WindowRunner::new(&self.ctx.effects, Box::new(NoWorkers)).seeing(seen)
    }

    fn run(&self, words: &[&str]) {
        drop(self.env.tmux().run(words));
    }
}

#[test]
fn exactly_what_runs_in_its_pane_is_stopped() {
    let stage = Stage::new();
    // It is shown in a session of a person as well, and twice in its own: one window all the same.
    stage.run(&["new-session", "-d", "-s", "a-person", "exec sleep 1000"]);
    stage.run(&["link-window", "-d", "-s", "=alice:5", "-t", "=a-person:3"]);
    stage.run(&["link-window", "-d", "-s", "=alice:5", "-t", "=alice:2"]);
    let seen = stage.look();
    let runner = stage.seeing(&seen);
    let processes = runner.processes(run(&job())).unwrap();
    assert!(processes.iter().any(|process| process.pid == stage.program.pid), "{processes:?}");
    let told = runner.describe(run(&job())).unwrap();
    assert!(told.starts_with("window alice:5, pane %") && told.contains(", process "), "{told}");
    assert!(stop(&runner, StopPart::Program).unwrap().processes > 0);
    wait_gone(&stage.program);
    let seen = stage.look();
    stop(&stage.seeing(&seen), StopPart::Whole).unwrap();
    assert_eq!(stage.env.windows("alice"), [0, 6]);
    assert!(lives(&stage.other));
}

#[test]
fn a_window_that_was_moved_since_the_look_is_neither_stopped_nor_called_closed() {
    let moves: [&[&str]; 4] = [
        &["move-window", "-d", "-s", "=alice:5", "-t", "=alice:9"],
        &["swap-window", "-d", "-s", "=alice:5", "-t", "=alice:6"],
        &["swap-pane", "-d", "-s", "=alice:5", "-t", "=alice:6"],
        &["join-pane", "-d", "-s", "=alice:5", "-t", "=alice:6"],
    ];
    for words in moves {
        let stage = Stage::new();
        let seen = stage.look();
        stage.run(words);
        let runner = stage.seeing(&seen);
        runner.processes(run(&job())).unwrap_err();
        runner.describe(run(&job())).unwrap_err();
        for part in [StopPart::Program, StopPart::Whole] {
            let refused = stop(&runner, part);
            assert!(refused.is_err(), "{words:?} {part:?}: {refused:?}");
        }
        assert!(lives(&stage.program) && lives(&stage.other), "{words:?}");
    }
}

#[test]
fn a_window_that_has_gone_since_the_look_has_no_processes() {
    let stage = Stage::new();
    let seen = stage.look();
    stage.run(&["kill-window", "-t", "=alice:5"]);
    wait_gone(&stage.program);
    let runner = stage.seeing(&seen);
    assert_eq!(runner.processes(run(&job())).unwrap(), []);
    assert_eq!(stop(&runner, StopPart::Program).unwrap(), StopOutcome::default());
    stop(&runner, StopPart::Whole).unwrap();
    assert!(lives(&stage.other));
}

/// tmux still tells the number of a program that has ended. It may be another program's by then.
#[test]
fn the_number_of_a_program_that_has_ended_is_nobodys() {
    let stage = Stage::new();
    stage.run(&["set-option", "-w", "-t", "=alice:5", "remain-on-exit", "on"]);
    assert!(stage.ctx.procs.signal(&stage.program, tpu_system::sys::procs::Signal::Kill).unwrap());
    let is_dead = |seen: &TmuxFact| match seen {
        TmuxFact::Up { panes, .. } => panes.iter().any(|pane| pane.window_index == 5 && pane.dead),
        _ => false,
    };
    wait_until("its program has ended", || is_dead(&stage.look()));
    let seen = stage.look();
    let TmuxFact::Up { place, panes } = &seen else { panic!("{seen:?}") };
    let pane = panes.iter().find(|pane| pane.window_index == 5).unwrap();
    assert_eq!(stage.ctx.tmux.process(pane, place.server_pid).unwrap(), None);
    let runner = stage.seeing(&seen);
    assert_eq!(runner.processes(run(&job())).unwrap(), []);
    assert!(runner.describe(run(&job())).unwrap().contains("whose program has ended"));
}

#[test]
fn a_question_that_fails_is_not_taken_for_no_processes() {
    let env = TestEnv::new();
    let fake = Arc::new(FakeTmux::on_testhost(Arc::new(SystemClock::new())));
    let mut ctx = env.ctx(Env::fixed([("PATH", "/usr/bin:/bin")]));
    ctx.effects.tmux = Arc::<FakeTmux>::clone(&fake);
    fake.ensure_session("alice", 0).unwrap();
    assert!(fake.open_by_hand("alice", 5, "of the original"));
    let seen = fake.look();
    let runner = WindowRunner::new(&ctx.effects, Box::new(NoWorkers)).seeing(&seen);
    assert_eq!(runner.processes(run(&job())).unwrap(), [], "no process here has its number");
    fake.fail("the server hangs");
    let told = [
        runner.processes(run(&job())).map(drop),
        stop(&runner, StopPart::Program).map(drop),
        stop(&runner, StopPart::Whole).map(drop),
        runner.describe(run(&job())).map(drop),
    ];
    for answer in told {
        assert!(answer.as_ref().is_err_and(|e| e.to_string().contains("hangs")), "{answer:?}");
    }
    fake.recover();
    fake.stop();
    runner.processes(run(&job())).unwrap_err();
    stop(&runner, StopPart::Program).unwrap_err();
}
