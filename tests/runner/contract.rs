//! The contract of [`Runner`], which every runner passes: one that joins is one line at the end.

use std::io::Write as _;
use std::path::PathBuf;

use tpu_core::model::facts::{RunFact, RunState};
use tpu_core::model::ids::{JobId, JobNumber, LaunchToken, TargetName, UserName};
use tpu_core::model::job::{EngineRun, Handle, Job, Launch, LaunchMode};
use tpu_core::model::variables::Secrets;
use tpu_engine::runner::{
    Attempt, Chunk, Environment, Observed, OutputWanted, RunError, RunRef, Runner, StopOrder,
    StopOutcome, StopPart, Submitted, Unreached, Want,
};
use tpu_ops::Ctx;
use tpu_system::sys::random::{OsRandom, Random as _};

use super::kubernetes::KubernetesWorld;
use super::slurm::SlurmWorld;
use super::windows::Windows;
use crate::common::env::TestEnv;
use crate::common::wait::wait_until;

/// Lines that every program prints at once: `line 0`, …
pub(super) const LINES: usize = 300;
/// What it prints when it is let go on, before it ends.
pub(super) const LAST: &str = "the last line";
/// Its exit code.
pub(super) const EXIT: i32 = 3;

/// Where a submission is cut off, as if its process had been killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// Before what runs it has heard of it.
    Before,
    /// After that, and before its answer has come.
    After,
}

/// A runner, and what happens to it past the contract.
pub(super) trait World {
    fn runner(&self) -> Box<dyn Runner + '_>;
    /// A new attempt, in a record.
    fn claim(&self, number: u32) -> Job;
    /// Submits it, and may be cut off.
    fn submit(&self, job: &Job, cut: Option<Cut>) -> Result<Submitted, RunError>;
    /// How often its program was started.
    fn starts(&self, job: &Job) -> usize;
    /// Waits until its program has begun.
    fn begun(&self, job: &Job);
    /// Lets its program come to its end.
    fn release(&self, job: &Job);
    /// Whether what runs it gives no answers.
    fn set_silent(&self, silent: bool);
    /// Something of somebody else begins beside it.
    fn open_bystander(&self);
    fn has_bystander(&self) -> bool;
    /// Whether its processes can be seen from here.
    fn shows_processes(&self) -> bool;
    /// Whether an engine has it: then it is stopped as one, and known by more once it was submitted.
    fn is_engine(&self) -> bool {
        false
    }
    /// What of an output its program has printed: what starts it on a node may say a word behind that.
    fn of_program(&self, printed: &[u8]) -> Vec<u8> {
        printed.to_vec()
    }
}

/// A new attempt of alice on a target, claimed now. It has no directories yet, and lies in no record.
pub(super) fn claimed(
    world: &impl World,
    (env, ctx): (&TestEnv, &Ctx),
    (target, number): (&str, u32),
) -> Job {
    // Every process of this machine that carries it is the job's.
    let token = LaunchToken::new(OsRandom.hex(16));
    let ground = world.runner().ground("alice", &token).unwrap();
    let id = JobId::new(UserName::from("alice"), JobNumber(number));
    let code = env.path("code-alice").to_str().unwrap().to_owned();
    let mut job = Job::new(&id, TargetName::from(target), code);
    job.launch = Some(Launch::claimed(token, LaunchMode::Native, ctx.clock.now()));
    job.keep_handle(ground.handle);
    job
}

/// An attempt whose program, in a shell, prints [`LINES`] lines, waits until it is let go on, and ends with [`EXIT`].
pub(super) fn attempt<'a>(env: &TestEnv, job: &'a Job, [shell, program]: [&str; 2]) -> Attempt<'a> {
    let (count, code) = (LINES.to_string(), EXIT.to_string());
    let words = [shell, "-c", program, "job", &count, LAST, &code];
    Attempt {
        job,
        session: "alice",
        name: "job".to_owned(),
        cwd: env.path("code-alice"),
        words: words.iter().map(Into::into).collect(),
        env: Vec::new(),
        asked: Environment::default(),
        secrets: Secrets::default(),
        preparation: None,
        workers_by: None,
        avoid: Vec::new(),
        at_once: None,
    }
}

/// Adds to the log of a job what its program would have printed.
pub(super) fn write_log(job: &Job, text: &str) {
    let dir = PathBuf::from(job.log_dir.as_ref().unwrap());
    std::fs::create_dir_all(&dir).unwrap();
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.append(true).create(true).open(dir.join("output.log")).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// What of a handle says which run it is. An engine gives its own number, and a name, to what it has accepted.
fn identity(handle: Option<Handle>) -> Option<Handle> {
    handle.map(|handle| match handle {
        Handle::Engine { run, token } => {
            Handle::Engine { run: EngineRun { id: None, name: None, ..run }, token }
        }
        window @ Handle::Window { .. } => window,
    })
}

pub(super) fn run(job: &Job) -> RunRef<'_> {
    RunRef { job, session: "alice" }
}

fn observed(world: &impl World, job: &Job) -> Observed {
    let mut all = world.runner().observe(&[run(job)]);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn fact(world: &impl World, job: &Job) -> RunFact {
    observed(world, job).run
}

fn started(world: &impl World, number: u32) -> Job {
    let job = world.claim(number);
    world.submit(&job, None).unwrap();
    world.begun(&job);
    job
}

fn stop(world: &impl World, job: &Job, part: StopPart) -> Result<StopOutcome, RunError> {
    world.runner().stop(run(job), StopOrder { part, unreached: Unreached::Refuse })
}

fn kept(world: &impl World, job: &Job, from: u64) -> Option<Chunk> {
    let wanted =
        OutputWanted { run: run(job), seen: None, want: Want::Kept { from, most: u64::MAX } };
    world.runner().output(&[wanted]).unwrap().remove(0)
}

/// What every program prints at once.
pub(super) fn first_output() -> String {
    let lines: Vec<String> = (0..LINES).map(|i| format!("line {i}\n")).collect();
    lines.concat()
}

/// However often it is submitted, and wherever a submission is cut off, it is started once.
fn is_started_once(world: &impl World) {
    let mut number = 1;
    for first in [None, Some(Cut::Before), Some(Cut::After)] {
        for second in [None, Some(Cut::Before), Some(Cut::After)] {
            let case = format!("{first:?}, then {second:?}");
            let job = world.claim(number);
            number += 1;
            for cut in [first, second] {
                drop(world.submit(&job, cut));
            }
            let submitted = world.submit(&job, None).unwrap();
            let handle = Some(submitted.handle);
            assert_eq!(identity(handle.clone()), identity(job.handle()), "{case}");
            let again = world.submit(&job, None).unwrap();
            assert_eq!(Some(again.handle), handle, "{case}");
            world.begun(&job);
            assert_eq!(world.starts(&job), 1, "{case}");
            assert_eq!(fact(world, &job).state, RunState::Running, "{case}");
        }
    }
    // Nor is it started again when it is over.
    let job = started(world, number);
    world.release(&job);
    wait_until("its end", || fact(world, &job).exit.is_some());
    drop(world.submit(&job, None));
    assert_eq!(world.starts(&job), 1, "after its end");
}

/// What cannot be asked is not started either: the next submission settles it.
fn a_submission_into_silence_is_settled_by_the_next(world: &impl World) {
    let job = world.claim(1);
    world.set_silent(true);
    assert!(world.submit(&job, None).is_err());
    assert!(world.submit(&job, None).is_err());
    world.set_silent(false);
    let state = fact(world, &job);
    assert_eq!((state.state, state.exit), (RunState::Gone, None), "{state:?}");
    world.submit(&job, None).unwrap();
    world.begun(&job);
    assert_eq!(world.starts(&job), 1);
}

/// Whoever follows the output from an offset misses nothing and hears nothing twice, over as many readers as
/// there are.
fn output_is_followed_without_loss(world: &impl World) {
    let job = started(world, 1);
    let (mut heard, mut next) = (Vec::new(), 0);
    let mut follow = |world| {
        let Some(chunk) = kept(world, &job, next) else { return };
        assert_eq!(chunk.next, next + chunk.bytes.len() as u64, "nothing between two pieces");
        heard.extend_from_slice(&chunk.bytes);
        next = chunk.next;
        // Reading again what was read is the same.
        assert_eq!(kept(world, &job, 0).unwrap().bytes.get(..heard.len()), Some(&heard[..]));
    };
    follow(world);
    world.release(&job);
    wait_until("its end", || {
        follow(world);
        fact(world, &job).exit.is_some()
    });
    wait_until("all that it said", || {
        follow(world);
        let all = kept(world, &job, 0);
        all.is_some_and(|all| world.of_program(&all.bytes).ends_with(b"the last line\n"))
    });
    follow(world);
    let printed = String::from_utf8(world.of_program(&heard)).unwrap();
    assert_eq!(printed, first_output() + LAST + "\n");
    assert_eq!(kept(world, &job, next).unwrap().bytes, "", "it is over");
    let fact = fact(world, &job);
    assert_eq!(fact.exit.map(tpu_core::model::exit::Exit::code), Some(EXIT));
    let end = OutputWanted { run: run(&job), seen: None, want: Want::KeptEnd { bytes: 14 } };
    let end = world.runner().output(&[end]).unwrap().remove(0).unwrap();
    assert_eq!(end.bytes, heard[heard.len() - 14..]);
}

/// Exactly this one is stopped, once and again.
fn exactly_one_is_stopped(world: &impl World) {
    let (job, other) = (started(world, 1), started(world, 2));
    world.open_bystander();
    let pids = |job: &Job| -> Vec<u32> {
        let processes = world.runner().processes(run(job)).unwrap();
        processes.iter().map(|process| process.pid).collect()
    };
    let of_other = pids(&other);
    if world.shows_processes() {
        assert!(!pids(&job).is_empty() && !of_other.is_empty());
    }
    world.runner().may_stop(run(&job), Unreached::Refuse).unwrap();
    let stopped = stop(world, &job, StopPart::Program).unwrap();
    assert_eq!(stopped.processes > 0, world.shows_processes() || world.is_engine());
    // Its supervisor still says how it ended; then nothing of it is left that could be stopped.
    if world.shows_processes() {
        wait_until("its end", || fact(world, &job).exit.is_some());
    }
    wait_until("nothing is left", || pids(&job).is_empty());
    wait_until("nothing is stopped again", || {
        stop(world, &job, StopPart::Program).unwrap().processes == 0
    });
    stop(world, &job, StopPart::Whole).unwrap();
    assert!(fact(world, &job).is_over());
    assert_eq!(stop(world, &job, StopPart::Whole).unwrap(), StopOutcome::default(), "again");
    assert_eq!(fact(world, &other).state, RunState::Running);
    // Its program may have started one more meanwhile.
    let left = pids(&other);
    assert!(of_other.iter().all(|pid| left.contains(pid)), "{of_other:?}: {left:?}");
    assert!(world.has_bystander());
}

/// Exactly those are stopped together; what keeps one of them from it keeps none of the others.
fn several_are_stopped_together(world: &impl World) {
    let jobs: Vec<Job> = (1..=4).map(|number| started(world, number)).collect();
    let [one, over, two, other] = &jobs[..] else { panic!() };
    world.open_bystander();
    stop(world, over, StopPart::Whole).unwrap();
    let mut another = two.clone();
    another.launch.as_mut().unwrap().token = "another".into();
    let order = StopOrder { part: StopPart::Whole, unreached: Unreached::Refuse };
    let runs = [run(one), run(over), run(&another), run(two)];
    world.set_silent(true);
    let unheard = world.runner().stop_all(&runs, order);
    assert_eq!(unheard.iter().map(Result::is_err).collect::<Vec<_>>(), [true; 4]);
    world.set_silent(false);
    assert!([one, two].iter().all(|job| fact(world, job).state == RunState::Running));
    let stopped = world.runner().stop_all(&runs, order);
    let stopped: Vec<StopOutcome> = stopped.into_iter().map(Result::unwrap).collect();
    let nothing = StopOutcome::default();
    let was_stopped: Vec<bool> = stopped.iter().map(|one| *one != nothing).collect();
    assert_eq!(was_stopped, [true, false, false, true], "in their order: {stopped:?}");
    assert!([one, over, two].iter().all(|job| fact(world, job).is_over()));
    assert_eq!(fact(world, other).state, RunState::Running);
    assert!(world.has_bystander());
    assert_eq!(world.runner().stop_all(&[], order).len(), 0);
}

/// A question that failed makes those unknown about whom it was asked; nothing is done to them.
fn silence_makes_unknown_and_nothing_else(world: &impl World) {
    let (job, other) = (started(world, 1), started(world, 2));
    world.set_silent(true);
    let seen = world.runner().observe(&[run(&job), run(&other)]);
    assert_eq!(seen.len(), 2);
    for Observed { run, printed, .. } in &seen {
        assert_eq!((run.state, run.exit, printed), (RunState::Unknown, None, &None));
        assert!(run.reason.as_ref().is_some_and(|reason| !reason.is_empty()), "{run:?}");
    }
    assert!(world.runner().observe(&[]).is_empty());
    // That an engine does not answer keeps nobody from the wish to stop it.
    assert_eq!(world.runner().may_stop(run(&job), Unreached::Refuse).is_ok(), world.is_engine());
    assert!(stop(world, &job, StopPart::Whole).is_err());
    assert!(world.runner().attach(run(&job)).is_err());
    world.set_silent(false);
    for job in [&job, &other] {
        assert_eq!(fact(world, job).state, RunState::Running);
        assert_eq!(world.starts(job), 1);
    }
    assert!(!world.runner().attach(run(&job)).unwrap().is_empty());
}

/// Whoever reads the record asks about the same run.
fn a_handle_is_read_back_from_its_record(world: &impl World) {
    let job = started(world, 1);
    let again = Job::from_value(&job.to_value(), &UserName::from("alice")).unwrap();
    assert_eq!(again.handle(), job.handle());
    assert!(job.handle().is_some());
    let (one, other) = (observed(world, &job), observed(world, &again));
    assert_eq!((one.run.state, one.pane), (other.run.state, other.pane));
    assert_eq!(other.run.state, RunState::Running);
    // One of another launch is not found in its place.
    let mut another = again;
    another.launch.as_mut().unwrap().token = "another".into();
    assert_ne!(fact(world, &another).state, RunState::Running);
    assert_eq!(stop(world, &another, StopPart::Whole).unwrap(), StopOutcome::default());
    assert_eq!(fact(world, &job).state, RunState::Running);
}

macro_rules! runners {
    ($($name:ident: $world:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn is_started_once() {
                let Some(world) = $world else { return };
                super::is_started_once(&world);
            }

            #[test]
            fn a_submission_into_silence_is_settled_by_the_next() {
                let Some(world) = $world else { return };
                super::a_submission_into_silence_is_settled_by_the_next(&world);
            }

            #[test]
            fn output_is_followed_without_loss() {
                let Some(world) = $world else { return };
                super::output_is_followed_without_loss(&world);
            }

            #[test]
            fn exactly_one_is_stopped() {
                let Some(world) = $world else { return };
                super::exactly_one_is_stopped(&world);
            }

            #[test]
            fn several_are_stopped_together() {
                let Some(world) = $world else { return };
                super::several_are_stopped_together(&world);
            }

            #[test]
            fn silence_makes_unknown_and_nothing_else() {
                let Some(world) = $world else { return };
                super::silence_makes_unknown_and_nothing_else(&world);
            }

            #[test]
            fn a_handle_is_read_back_from_its_record() {
                let Some(world) = $world else { return };
                super::a_handle_is_read_back_from_its_record(&world);
            }
        }
    )*};
}

runners! {
    real_windows: Some(Windows::real());
    simulated_windows: Some(Windows::simulated());
    real_slurm: SlurmWorld::real();
    simulated_slurm: Some(SlurmWorld::simulated());
    simulated_kubernetes: Some(KubernetesWorld::simulated());
}
