//! Kubernetes as the contract sees it: a simulated cluster that runs real processes, whose requests are cut off and
//! silenced on the way.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tpu_core::model::facts::RunState;
use tpu_core::model::ids::TargetName;
use tpu_core::model::job::Job;
use tpu_core::model::target::{Registration, TargetKind};
use tpu_core::model::time::Timestamp;
use tpu_engine::kinds::KindOfTarget as _;
use tpu_engine::runner::window::{FarWorkers, WindowRunner};
use tpu_engine::runner::{RunError, Runner, Submitted, Unreached};
use tpu_kubernetes::Kubernetes;
use tpu_kubernetes::api::{ApiAnswer, ApiCall, ApiServer, ApiServers, ApiVerb, Unanswered};
use tpu_kubernetes::cluster::NamespaceAt;
use tpu_kubernetes::life::Life;
use tpu_ops::Ctx;
use tpu_system::effects::Effects;
use tpu_system::sys::clock::{Clock, SystemClock};
use tpu_system::sys::env::Env;

use super::contract::{Cut, World, attempt, claimed, run};
use crate::common::env::TestEnv;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;
use crate::kubernetes::client::Cluster;

/// What runs in a pod: it says that it has begun, prints, waits, and prints once more.
const PROGRAM: &str = "echo ran >>\"@/ran-${TPU_JOB#*/}\"; i=0; while [ $i -lt $1 ]; do echo \"line $i\"; i=$((i+1)); done; \
    until [ -e \"@/go-${TPU_JOB#*/}\" ]; do sleep 0.4; done; echo \"$2\"; exit \"$3\"";

/// So much faster time goes by for whoever waits.
const HASTE: u32 = 10;

/// The machine's clock, in a hurry: what is waited for on a wire is not, and pauses are.
struct HastyClock {
    real: SystemClock,
    began: Timestamp,
}

impl Clock for HastyClock {
    fn now(&self) -> Timestamp {
        self.began.plus(self.monotonic())
    }

    fn monotonic(&self) -> Duration {
        self.real.monotonic() * HASTE
    }

    fn sleep(&self, duration: Duration) {
        self.real.sleep(duration / HASTE);
    }
}

/// What happens to requests on their way.
#[derive(Default)]
struct Way {
    cut: Option<Cut>,
    is_silent: bool,
}

/// Doors through which requests go that may be lost.
struct LossyServers {
    inner: Arc<dyn ApiServers>,
    way: Arc<Mutex<Way>>,
}

impl ApiServers for LossyServers {
    fn open(&self, at: &NamespaceAt, effects: &Effects) -> Arc<dyn ApiServer> {
        Arc::new(LossyServer { inner: self.inner.open(at, effects), way: Arc::clone(&self.way) })
    }
}

struct LossyServer {
    inner: Arc<dyn ApiServer>,
    way: Arc<Mutex<Way>>,
}

impl LossyServer {
    fn fate(&self, call: &ApiCall) -> Option<Cut> {
        let mut way = self.way.lock().unwrap();
        if way.is_silent {
            return Some(Cut::Before);
        }
        let creates = call.verb == ApiVerb::Post && call.path.ends_with("/jobs");
        if creates { way.cut.take() } else { None }
    }
}

impl ApiServer for LossyServer {
    fn ask(&self, call: &ApiCall) -> Result<ApiAnswer, Unanswered> {
        let lost = Unanswered::Late(call.limit);
        match self.fate(call) {
            None => self.inner.ask(call),
            Some(Cut::Before) => Err(lost),
            Some(Cut::After) => {
                self.inner.ask(call).unwrap();
                Err(lost)
            }
        }
    }

    fn follow(&self, namespace: &str, lives: Vec<Life>) -> BTreeSet<String> {
        self.inner.follow(namespace, lives)
    }
}

/// A home with a namespace of a cluster.
pub(super) struct KubernetesWorld {
    env: TestEnv,
    ctx: Ctx,
    kind: Kubernetes,
    registration: Registration,
    way: Arc<Mutex<Way>>,
    cluster: Cluster,
}

/// Nobody has workers here.
struct Nobody;

impl FarWorkers for Nobody {
    fn stop(&self, _: &Job, _: Unreached) -> Result<usize, RunError> {
        Ok(0)
    }
}

impl KubernetesWorld {
    /// With two nodes.
    pub(super) fn simulated() -> Self {
        let (env, cluster) = (TestEnv::new(), Cluster::with_nodes(2));
        let way: Arc<Mutex<Way>> = Arc::default();
        let servers = LossyServers { inner: Kubernetes::servers(), way: Arc::clone(&way) };
        let own = Env { vars: env.variables().clone(), ..Env::read() };
        let mut ctx = env.ctx(Env { cwd: env.path("."), home: env.path("."), ..own });
        let real = SystemClock::new();
        ctx.effects.clock = Arc::new(HastyClock { began: real.now(), real });
        let kubeconfig = cluster.kubeconfig().display().to_string();
        let options = [
            ("kubeconfig", kubeconfig.as_str()),
            ("context", "lab"),
            ("namespace", "lab"),
            ("image", "train:1"),
            ("resources-flavor", "no-gpu"),
        ];
        let registration = Registration {
            kind: TargetKind::new("kubernetes"),
            engine: true,
            options: options.into_iter().collect(),
            ..Registration::default()
        };
        env.change(|data| {
            data.registry_mut().register(TargetName::from("lab"), registration.clone());
        });
        Self { env, ctx, kind: Kubernetes::with(Arc::new(servers)), registration, way, cluster }
    }

    /// A file of one job.
    fn file(&self, what: &str, job: &Job) -> PathBuf {
        self.env.path(&format!("{what}-{}", job.windows_id))
    }
}

impl World for KubernetesWorld {
    fn runner(&self) -> Box<dyn Runner + '_> {
        let windows = WindowRunner::new(&self.ctx.effects, Box::new(Nobody));
        self.kind.runner(Some(&self.registration), &self.ctx.effects, windows)
    }

    fn claim(&self, number: u32) -> Job {
        let mut job = claimed(self, (&self.env, &self.ctx), ("lab", number));
        job.stage_dir = Some(self.env.path("code-alice").display().to_string());
        self.env.change(|data| data.user_mut(&job.user).unwrap().push_job(job.clone()));
        job
    }

    fn submit(&self, job: &Job, cut: Option<Cut>) -> Result<Submitted, RunError> {
        self.way.lock().unwrap().cut = cut;
        let program = PROGRAM.replace('@', self.env.root());
        self.runner().submit(&attempt(&self.env, job, ["sh", &program]))
    }

    fn starts(&self, job: &Job) -> usize {
        let ran = std::fs::read_to_string(self.file("ran", job)).unwrap_or_default();
        ran.lines().count()
    }

    fn begun(&self, job: &Job) {
        wait_until("its program begins", || self.starts(job) > 0);
        wait_until("its pod runs", || {
            self.runner().observe(&[run(job)]).remove(0).run.state == RunState::Running
        });
    }

    fn release(&self, job: &Job) {
        write_file(&self.file("go", job), "");
    }

    fn set_silent(&self, silent: bool) {
        self.way.lock().unwrap().is_silent = silent;
    }

    fn open_bystander(&self) {
        self.cluster.run("mine", "sleep 1000");
        drop(self.cluster.pod_in("mine", "Running"));
    }

    fn has_bystander(&self) -> bool {
        self.cluster.pods("mine").iter().any(|pod| pod["status"]["phase"] == "Running")
    }

    fn shows_processes(&self) -> bool {
        false
    }

    fn is_engine(&self) -> bool {
        true
    }
}

/// Whoever was about to submit it stood still until it was given up.
#[test]
fn what_was_given_up_before_it_is_submitted_runs_nothing() {
    let world = KubernetesWorld::simulated();
    let [unsent, lost] = [1, 2].map(|number| world.claim(number));
    assert!(matches!(world.runner().give_up(&[run(&unsent)])[..], [Ok(true)]), "nobody has begun");
    // Its request was lost, as far as anybody knows: nothing is said before it cannot come any more.
    assert!(world.submit(&lost, Some(Cut::Before)).is_err());
    assert!(matches!(world.runner().give_up(&[run(&lost)])[..], [Err(_)]), "it may be on its way");
    wait_until("it is given up", || {
        matches!(world.runner().give_up(&[run(&lost)])[..], [Ok(true)])
    });
    // One that has come stands.
    let there = world.claim(3);
    world.submit(&there, Some(Cut::After)).unwrap();
    world.begun(&there);
    assert!(matches!(world.runner().give_up(&[run(&there)])[..], [Ok(false)]));
    assert_eq!(world.runner().observe(&[run(&there)])[0].run.state, RunState::Running);
}
