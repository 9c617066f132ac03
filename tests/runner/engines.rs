//! A kind of target that is not in the program brings an engine of its own: its word is what is shown, and one
//! question is asked about all of its runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tpu_core::model::facts::{ErrorKind, RunFact, RunState, Source};
use tpu_core::model::ids::{JobId, JobNumber, LaunchToken, TargetName, UserName};
use tpu_core::model::job::{EngineRun, Handle, Job, Launch, LaunchMode, Status};
use tpu_core::model::target::{Registration, TargetKind};
use tpu_core::model::view::{JobView, Whose};
use tpu_engine::kinds::{Destination, Door, KindOfTarget, Refusal, Within};
use tpu_engine::runner::files::{Files, ThisDisk};
use tpu_engine::runner::{
    Attempt, Chunk, Ground, Observed, OutputWanted, RunError, RunRef, Runner, StopOrder,
    StopOutcome, Submitted, Unreached,
};
use tpu_ops::Ctx;
use tpu_ops::act::outlook::look;
use tpu_ops::observe::snapshot::LookMemory;
use tpu_system::effects::Effects;
use tpu_system::sys::env::Env;

use crate::common::env::TestEnv;

/// The kind, and how often its engine was asked.
#[derive(Clone, Default)]
struct Echo(Arc<AtomicUsize>);

impl KindOfTarget for Echo {
    fn word(&self) -> TargetKind {
        TargetKind::new("echo")
    }

    fn in_words(&self) -> &'static str {
        "an engine of this test"
    }

    fn workers(&self, _: &Destination<'_>, _: Within<'_>) -> Result<Door, Refusal> {
        Err(Refusal::new("it has no workers", "ask its engine"))
    }

    fn engine<'a>(&self, _: &EngineRun, _: &'a Effects) -> Option<Box<dyn Runner + 'a>> {
        Some(Box::new(self.clone()))
    }
}

fn refused<T>() -> Result<T, RunError> {
    Err(RunError::refused("this engine only tells", "nothing else is asked of it"))
}

/// Says of each run what its number stands for.
impl Runner for Echo {
    fn ground(&self, _: &str, _: &LaunchToken) -> Result<Ground, RunError> {
        refused()
    }

    fn submit(&self, _: &Attempt<'_>) -> Result<Submitted, RunError> {
        refused()
    }

    fn observe(&self, runs: &[RunRef<'_>]) -> Vec<Observed> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let of = |run: &RunRef<'_>| {
            let fact = |state, raw, reason: &'static str| RunFact {
                reason: Some(reason.into()),
                source: Source::Engine,
                ..RunFact::new(state, raw)
            };
            let id = run.job.engine.as_ref().and_then(|run| run.id.as_deref());
            let fact = match id {
                Some("4") => fact(RunState::Pending, "PENDING", "waits for resources"),
                Some("5") => RunFact {
                    cause: Some(ErrorKind::Oom),
                    ..fact(RunState::Ended, "OUT_OF_MEMORY", "it needed more memory")
                },
                _ => fact(RunState::Unknown, "unknown", "it does not answer"),
            };
            Observed { run: fact, pane: None, printed: None }
        };
        runs.iter().map(of).collect()
    }

    fn output(&self, wanted: &[OutputWanted<'_>]) -> Result<Vec<Option<Chunk>>, RunError> {
        Ok(wanted.iter().map(|_| None).collect())
    }

    fn may_stop(&self, _: RunRef<'_>, _: Unreached) -> Result<bool, RunError> {
        refused()
    }

    fn stop(&self, _: RunRef<'_>, _: StopOrder) -> Result<StopOutcome, RunError> {
        refused()
    }

    fn files(&self) -> Box<dyn Files + '_> {
        Box::new(ThisDisk)
    }

    fn preview(&self, _: &Attempt<'_>) -> Result<String, RunError> {
        refused()
    }

    fn script(&self, _: RunRef<'_>) -> Result<Option<String>, RunError> {
        refused()
    }

    fn describe(&self, _: RunRef<'_>) -> Result<String, RunError> {
        refused()
    }

    fn attach(&self, _: RunRef<'_>) -> Result<Vec<String>, RunError> {
        refused()
    }
}

/// Three attempts that an engine has, and one that has no window.
fn lab(env: &TestEnv) -> Ctx {
    let ctx = env.ctx(Env { vars: env.variables().clone(), ..Env::fixed::<&str, &str>([]) });
    let at = ctx.clock.now();
    env.change(|data| {
        let kind = TargetKind::new("echo");
        let registration = Registration { kind, ..Registration::default() };
        data.registry_mut().register(TargetName::from("gpu"), registration);
        for (number, target) in [(1, "local"), (4, "gpu"), (5, "gpu"), (6, "gpu")] {
            let id = JobId::new(UserName::from("alice"), JobNumber(number));
            let mut job = Job::new(&id, TargetName::from(target), "/d".to_owned());
            job.status = Status::Starting;
            let token = LaunchToken::new(format!("t{number}"));
            job.launch = Some(Launch {
                confirmed: true,
                ..Launch::claimed(token.clone(), LaunchMode::Native, at)
            });
            if target == "gpu" {
                let (kind, id) = (TargetKind::new("echo"), Some(number.to_string()));
                let run = EngineRun { kind, cluster: "c".to_owned(), id, name: None };
                job.keep_handle(Handle::Engine { run, token });
            }
            data.user_mut(&id.user).unwrap().push_job(job);
        }
    });
    ctx
}

fn jobs(ctx: &Ctx) -> Vec<JobView> {
    look(ctx, &mut LookMemory::default(), &Whose::of([UserName::from("alice")])).unwrap().jobs
}

#[test]
fn the_word_of_an_engine_is_what_is_shown_and_it_is_asked_once() {
    let env = TestEnv::new();
    let mut ctx = lab(&env);
    let echo = Echo::default();
    ctx.kinds = ctx.kinds.clone().and(Arc::new(echo.clone()));
    let jobs = jobs(&ctx);
    assert_eq!(echo.0.load(Ordering::SeqCst), 1);
    let [window, pending, ended, silent] = jobs.as_slice() else { panic!("{jobs:?}") };
    assert!(window.shown.unknown.as_ref().is_some_and(|why| why.contains("tmux")), "{window:?}");
    assert_eq!(pending.shown.word(), "pending");
    assert_eq!(pending.shown.pending.as_ref().unwrap().raw, "PENDING");
    assert_eq!(ended.shown.status, Status::Error(ErrorKind::Oom));
    assert_eq!(ended.shown.evidence.as_ref().unwrap().source, Source::Engine);
    assert_eq!(silent.shown.unknown.as_deref(), Some("it does not answer"));
}

/// Without the kind nobody takes such a run for a window that has gone.
#[test]
fn what_an_engine_has_is_not_lost_where_nobody_knows_the_engine() {
    let env = TestEnv::new();
    let ctx = lab(&env);
    for job in jobs(&ctx) {
        assert!(job.shown.unknown.is_some(), "{job:?}");
        assert_eq!(job.shown.status, Status::Starting);
    }
}
