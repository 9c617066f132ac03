//! Slurm as the contract sees it: a real cluster, whose programs are cut off and silenced on the way, and one in memory
//! in which the test plays the programs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tpu_core::model::facts::{ErrorKind, RunState};
use tpu_core::model::ids::TargetName;
use tpu_core::model::job::Job;
use tpu_core::model::target::{Registration, TargetKind};
use tpu_core::model::time::Timestamp;
use tpu_engine::kinds::KindOfTarget as _;
use tpu_engine::runner::window::{FarWorkers, WindowRunner};
use tpu_engine::runner::{RunError, Runner, StopOrder, StopPart, Submitted, Unreached};
use tpu_ops::Ctx;
use tpu_slurm::Slurm;
use tpu_system::sys::clock::ManualClock;
use tpu_system::sys::env::Env;

use super::contract::{Cut, EXIT, LAST, World, attempt, claimed, first_output, run, write_log};
use crate::common::env::TestEnv;
use crate::common::tmux::{write_file, write_script};
use crate::common::wait::wait_until;
use crate::slurm::cluster::{Cluster, Setup, is_installed};
use crate::slurm::sim::{Liar, Loss, PlayedClients, SimCluster, Weather};

/// What runs on a node: it says that it has begun, prints, waits, and prints once more.
const PROGRAM: &str = "echo ran >>\"@/ran-${TPU_JOB#*/}\"; for ((i = 0; i < $1; i++)); do echo \"line $i\"; done; \
    until [ -e \"@/go-${TPU_JOB#*/}\" ]; do sleep 0.4; done; echo \"$2\"; exit \"$3\"";

/// Stands before `sbatch`: dies before anything is heard, or before anybody hears the answer.
const SBATCH: &str = "if rm \"ROOT/unheard\" 2>/dev/null; then kill -9 $$; fi\n\
    if rm \"ROOT/unanswered\" 2>/dev/null; then /usr/bin/sbatch \"$@\" >/dev/null; kill -9 $$; fi\n\
    exec /usr/bin/sbatch \"$@\"";

/// What the jobs run on.
enum Machine {
    Real(Cluster),
    Simulated(Arc<SimCluster>),
}

/// A home with a partition of a cluster.
pub(super) struct SlurmWorld {
    env: TestEnv,
    ctx: Ctx,
    slurm: Slurm,
    registration: Registration,
    machine: Machine,
}

/// Nobody has workers here.
struct Nobody;

impl FarWorkers for Nobody {
    fn stop(&self, _: &Job, _: Unreached) -> Result<usize, RunError> {
        Ok(0)
    }
}

impl SlurmWorld {
    /// A real cluster; none where there is no Slurm.
    pub(super) fn real() -> Option<Self> {
        if !is_installed() {
            return None;
        }
        let cluster =
            Cluster::with(Setup { message_timeout: 2, processors: 16, ..Setup::default() });
        let conf = cluster.conf();
        Some(Self::on(Machine::Real(cluster), Slurm::default(), &[("cluster", &conf)]))
    }

    /// One in memory.
    pub(super) fn simulated() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_second(1_800_000_000)));
        Self::by_clock(&clock).0
    }

    /// One in memory with a clock that only waits move.
    pub(super) fn by_clock(clock: &Arc<ManualClock>) -> (Self, Arc<SimCluster>) {
        let cluster = SimCluster::new(Arc::<ManualClock>::clone(clock));
        let mut world = Self::played(Arc::clone(&cluster));
        world.ctx.effects.clock = Arc::<ManualClock>::clone(clock);
        (world, cluster)
    }

    fn played(cluster: Arc<SimCluster>) -> Self {
        let slurm = Slurm::with(Arc::new(PlayedClients(Arc::clone(&cluster))));
        Self::on(Machine::Simulated(cluster), slurm, &[])
    }

    fn on(machine: Machine, slurm: Slurm, options: &[(&str, &str)]) -> Self {
        let env = TestEnv::new();
        let bin = env.path("bin");
        std::fs::create_dir(&bin).unwrap();
        write_script(&bin.join("sbatch"), &SBATCH.replace("ROOT", env.root()));
        let mut own = Env { vars: env.variables().clone(), ..Env::read() };
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
        own.vars.insert("PATH".into(), path.into());
        let ctx = env.ctx(Env { cwd: env.path("."), home: env.path("."), ..own });
        let options = [("partition", "low")].iter().chain(options).copied().collect();
        let registration = Registration {
            kind: TargetKind::new("slurm"),
            engine: true,
            options,
            ..Registration::default()
        };
        env.change(|data| {
            data.registry_mut().register(TargetName::from("gpu"), registration.clone());
        });
        Self { env, ctx, slurm, registration, machine }
    }

    /// Submits it, and whatever was ordered for that happens.
    pub(super) fn submit_as_is(&self, job: &Job) -> Result<Submitted, RunError> {
        let program = PROGRAM.replace('@', self.env.root());
        self.runner().submit(&attempt(&self.env, job, ["bash", &program]))
    }

    /// A file of one job.
    fn file(&self, what: &str, job: &Job) -> PathBuf {
        self.env.path(&format!("{what}-{}", job.windows_id))
    }

    /// The name by which the cluster knows it.
    pub(super) fn name(job: &Job) -> String {
        format!("tpu-{}", job.launch.as_ref().unwrap().token)
    }
}

impl World for SlurmWorld {
    fn runner(&self) -> Box<dyn Runner + '_> {
        let windows = WindowRunner::new(&self.ctx.effects, Box::new(Nobody));
        self.slurm.runner(Some(&self.registration), &self.ctx.effects, windows)
    }

    fn claim(&self, number: u32) -> Job {
        let mut job = claimed(self, (&self.env, &self.ctx), ("gpu", number));
        let log = self.env.path(&format!("log-{number}"));
        std::fs::create_dir_all(&log).unwrap();
        job.log_dir = Some(log.display().to_string());
        job.stage_dir = Some(self.env.path("code-alice").display().to_string());
        self.env.change(|data| data.user_mut(&job.user).unwrap().push_job(job.clone()));
        job
    }

    fn submit(&self, job: &Job, cut: Option<Cut>) -> Result<Submitted, RunError> {
        match &self.machine {
            Machine::Real(_) => {
                for (cut_here, file) in [(Cut::Before, "unheard"), (Cut::After, "unanswered")] {
                    let file = self.env.path(file);
                    drop(std::fs::remove_file(&file));
                    if cut == Some(cut_here) {
                        write_file(&file, "");
                    }
                }
            }
            Machine::Simulated(cluster) => cluster.lose_next(cut.map(|cut| match cut {
                Cut::Before => Loss::Unheard,
                Cut::After => Loss::Unanswered,
            })),
        }
        let Machine::Simulated(cluster) = &self.machine else { return self.submit_as_is(job) };
        let before = cluster.accepted(&Self::name(job));
        let submitted = self.submit_as_is(job);
        if cluster.accepted(&Self::name(job)) > before {
            write_log(job, &first_output());
        }
        submitted
    }

    fn starts(&self, job: &Job) -> usize {
        let ran = std::fs::read_to_string(self.file("ran", job)).unwrap_or_default();
        let has = match &self.machine {
            Machine::Real(cluster) => cluster.jobs_of(&Self::name(job)).len(),
            Machine::Simulated(cluster) => cluster.accepted(&Self::name(job)),
        };
        has.max(ran.lines().count())
    }

    fn begun(&self, job: &Job) {
        match &self.machine {
            Machine::Real(_) => {
                wait_until("its program begins", || self.file("ran", job).exists());
            }
            Machine::Simulated(cluster) => {
                let jobs = cluster.named(&Self::name(job));
                assert!(jobs.iter().all(|job| job.state == "RUNNING"), "{jobs:?}");
            }
        }
    }

    fn release(&self, job: &Job) {
        let Machine::Simulated(cluster) = &self.machine else {
            write_file(&self.file("go", job), "");
            return;
        };
        write_log(job, &format!("{LAST}\n"));
        cluster.end(cluster.named(&Self::name(job))[0].id, EXIT);
    }

    fn set_silent(&self, silent: bool) {
        match &self.machine {
            Machine::Real(cluster) => cluster.hold_controller(silent),
            Machine::Simulated(cluster) => {
                cluster.set_weather(if silent { Weather::Hangs } else { Weather::Fair });
            }
        }
    }

    fn open_bystander(&self) {
        match &self.machine {
            Machine::Real(cluster) => {
                let id = cluster.submit(&["--job-name=mine"], "sleep 1000");
                cluster.wait_state(id, "RUNNING");
            }
            Machine::Simulated(cluster) => drop(cluster.submit_by_hand("mine")),
        }
    }

    fn has_bystander(&self) -> bool {
        match &self.machine {
            Machine::Real(cluster) => {
                cluster.jobs_of("mine").iter().any(|job| job.state == "RUNNING")
            }
            Machine::Simulated(cluster) => {
                cluster.named("mine").iter().any(|job| job.state == "RUNNING")
            }
        }
    }

    fn shows_processes(&self) -> bool {
        false
    }

    fn is_engine(&self) -> bool {
        true
    }

    fn of_program(&self, printed: &[u8]) -> Vec<u8> {
        let lines = printed.split_inclusive(|byte| *byte == b'\n');
        lines.take_while(|line| !line.starts_with(b"srun: error: ")).flatten().copied().collect()
    }
}

/// Whoever was about to submit it stood still until it was given up.
#[test]
fn what_was_given_up_before_it_is_submitted_runs_nothing() {
    let Some(world) = SlurmWorld::real() else { return };
    let fact = |job: &Job| world.runner().observe(&[run(job)]).remove(0).run;
    let [late, there, unmarked] = [1, 2, 3].map(|number| world.claim(number));
    assert!(matches!(world.runner().give_up(&[run(&late)])[..], [Ok(true)]));
    world.submit(&late, None).unwrap();
    wait_until("its end", || fact(&late).is_over());
    let fate = fact(&late);
    assert_eq!((fate.state, fate.cause), (RunState::Ended, Some(ErrorKind::Launch)), "{fate:?}");
    assert!(fate.why().contains("given up"), "{fate:?}");
    assert!(!world.file("ran", &late).exists(), "its program has begun");
    // One that has come before stands, whoever is given up with it.
    world.submit(&there, None).unwrap();
    world.begun(&there);
    let [given_up, stands] = &world.runner().give_up(&[run(&unmarked), run(&there)])[..] else {
        panic!()
    };
    assert!(matches!((given_up, stands), (Ok(true), Ok(false))), "{given_up:?} {stands:?}");
    assert_eq!(fact(&there).state, RunState::Running);
    // Where it cannot be marked, or nobody answers, nothing is given up.
    let fourth = world.claim(4);
    let log = fourth.log_dir.as_deref().unwrap();
    std::fs::remove_dir(log).unwrap();
    write_file(log.as_ref(), "");
    assert!(matches!(world.runner().give_up(&[run(&fourth)])[..], [Err(_)]));
    world.set_silent(true);
    assert!(matches!(world.runner().give_up(&[run(&unmarked)])[..], [Err(_)]));
    world.set_silent(false);
}

/// A job that a list has not got is there while the controller knows it, and not gone before a minute without a sign of
/// life has passed.
#[test]
fn absence_counts_after_a_minute_without_a_sign_of_life() {
    let clock = Arc::new(ManualClock::new(Timestamp::from_second(1_800_000_000)));
    let (world, cluster) = SlurmWorld::by_clock(&clock);
    cluster.submit_by_hand("theirs");
    let mut job = world.claim(1);
    job.keep_handle(world.submit(&job, None).unwrap().handle);
    job.launch.as_mut().unwrap().confirmed = true;
    let fact = || world.runner().observe(&[run(&job)]).remove(0).run;
    let later = |seconds| clock.advance(Duration::from_secs(seconds));
    assert_eq!(fact().state, RunState::Running);
    for lie in [Liar::Empty, Liar::Stale] {
        cluster.set_lie(Some(lie));
        later(600);
        assert_eq!(fact().state, RunState::Running, "{lie:?}");
    }
    cluster.set_lie(None);
    cluster.restore(1, Duration::from_secs(3_600));
    assert_eq!(fact().state, RunState::Unknown);
    later(59);
    assert_eq!(fact().state, RunState::Unknown);
    write_log(&job, "step 2\n");
    later(59);
    assert!(fact().why().contains("works on"), "{:?}", fact());
    later(59);
    assert_eq!(fact().state, RunState::Unknown, "a minute from its last sign of life on");
    // Another process knows since when.
    let again = Slurm::with(Arc::new(PlayedClients(Arc::clone(&cluster))));
    let windows = WindowRunner::new(&world.ctx.effects, Box::new(Nobody));
    let other = again.runner(Some(&world.registration), &world.ctx.effects, windows);
    later(1);
    let gone = other.observe(&[run(&job)]).remove(0).run;
    assert_eq!((gone.state, gone.cause), (RunState::Gone, Some(ErrorKind::Lost)), "{gone:?}");
}

/// What is killed is asked for by its number: a list without it stops nobody from stopping it.
#[test]
fn what_a_list_has_not_got_is_stopped_all_the_same() {
    let clock = Arc::new(ManualClock::new(Timestamp::from_second(1_800_000_000)));
    let (world, cluster) = SlurmWorld::by_clock(&clock);
    let mut job = world.claim(1);
    job.keep_handle(world.submit(&job, None).unwrap().handle);
    job.launch.as_mut().unwrap().confirmed = true;
    let order = StopOrder { part: StopPart::Whole, unreached: Unreached::Refuse };
    cluster.set_lie(Some(Liar::Empty));
    let stopped = world.runner().stop(run(&job), order).unwrap();
    assert_eq!(stopped.processes, 1);
    assert_eq!(cluster.fate(&SlurmWorld::name(&job)), Some("CANCELLED"));
    // One that nobody knows any more may be at work: that is no stop.
    let mut forgotten = world.claim(2);
    cluster.set_lie(None);
    forgotten.keep_handle(world.submit(&forgotten, None).unwrap().handle);
    forgotten.launch.as_mut().unwrap().confirmed = true;
    cluster.submit_by_hand("theirs");
    cluster.restore(2, Duration::from_secs(3_600));
    cluster.submit_by_hand("theirs");
    let refused = world.runner().stop(run(&forgotten), order);
    assert!(matches!(refused, Err(RunError::Unreachable(_))), "{refused:?}");
}
