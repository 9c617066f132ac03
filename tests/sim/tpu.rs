//! Starts the program under test in the world: the same use cases as everywhere, with simulated effects.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tpu_core::model::ids::TargetName;
use tpu_core::model::settings::{Layer, SettingOrigin};
use tpu_core::model::target::Pricing;
use tpu_core::model::target_limit::TargetLimit;
use tpu_core::model::time::Timestamp;
use tpu_engine::kinds::Kinds;
use tpu_lab::sim::{SimCloud, SimConfig, SimTarget};
use tpu_ops::Ctx;
use tpu_ops::base::providers::Providers;
use tpu_ops::base::setting_layers::Layers;
use tpu_system::effects::{Effects, Onlooker, Warnings};
use tpu_system::store::{Store, Who};
use tpu_system::sys::clock::Clock;
use tpu_system::sys::env::Env;
use tpu_system::sys::random::{Random as _, SeededRandom};

use super::effects::{Door, Me};
use super::launcher::paths;
use super::world::{Died, Pid, Purpose, Role, State, Work, World};
use crate::common::fakes::disk::FakeDisk;

/// How a `tpu` is started.
pub(crate) struct Start {
    pub(crate) host: usize,
    pub(crate) purpose: Purpose,
    pub(crate) parent: Option<Pid>,
    pub(crate) vars: Vec<(String, String)>,
}

/// Starts a process that does `work` and ends.
pub(crate) fn call(
    world: &Arc<World>,
    start: &Start,
    work: impl FnOnce(&Arc<Ctx>) + Send + 'static,
) -> Pid {
    let pid = {
        let mut state = world.state();
        let role = Role::Tpu(start.purpose.clone());
        let pid = state.spawn(start.host, role, None).expect("the machine is there");
        if let Some(proc) = state.proc_mut(pid) {
            proc.parent = start.parent;
        }
        pid
    };
    let me = Me { world: Arc::clone(world), pid };
    let ctx = Arc::new(context(&me, start));
    let ending = Arc::clone(world);
    let main: Work = Box::new(move || {
        work(&ctx);
        ending.state().kill(pid, "is done");
    });
    world.state().begun.push((pid, main));
    pid
}

/// Runs a coroutine's work to its end, whatever that is.
pub(crate) fn to_its_end(world: &World, work: Work) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(work)) else { return };
    if payload.is::<Died>() {
        return;
    }
    let text = payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    world.state().violation(format!("a panic: {}", text.unwrap_or_default()));
}

/// The effects of a process.
fn context(me: &Me, start: &Start) -> Ctx {
    let (env, seed) = {
        let state = me.world.state();
        let machine = state.hosts.get(me.pid.host).expect("a process is on a machine");
        let mut env = Env::fixed(start.vars.iter().cloned());
        env.hostname.clone_from(&machine.name);
        env.boot_id = machine.boot();
        env.uid = 1000;
        env.pid = me.pid.pid;
        env.start = Some(me.pid.start);
        (env, state.rng.below(u64::MAX))
    };
    let who = Who { pid: env.pid, host: env.hostname.clone(), command: "tpu".to_owned() };
    let mut layer = Layer::default();
    let origin = SettingOrigin::Flag("--cloud".to_owned());
    layer.set("cloud", "sim", &origin).expect("'sim' is a cloud");
    let own = me.world.state().logs.clone();
    if let Some(logs) = own.or_else(|| me.world.roots.get().map(|dir| dir.path().to_owned())) {
        for (key, below) in [("log_root", "log"), ("stage_root", "stage")] {
            let root = logs.join(below).to_string_lossy().into_owned();
            layer.set(key, &root, &origin).expect("a root is a text");
        }
    }
    let door =
        Door { me: me.clone(), cloud: fleet(&me.world.cloud_disk, Arc::new(Wire(me.clone()))) };
    let providers = Providers::fixed(Arc::new(door));
    let monitor = start.purpose == Purpose::Monitor;
    let effects = Effects {
        store: Arc::new(Store::open(paths(), Arc::new(me.clone()), Arc::new(me.clone()), who)),
        tmux: Arc::new(me.clone()),
        clock: Arc::new(me.clone()),
        random: Arc::new(SeededRandom::new(seed)),
        procs: Arc::new(me.clone()),
        threads: Arc::new(me.clone()),
        env,
        actor: if monitor { "daemon".to_owned() } else { "tpu".to_owned() },
        tpu: "/usr/bin/tpu".into(),
        tmux_socket: None,
        onlooker: Onlooker::default(),
        warnings: Warnings::default(),
    };
    Ctx {
        effects,
        layers: Arc::new(Layers::fixed(vec![(origin, layer)])),
        patterns: None,
        secrets: None,
        classifier: Arc::default(),
        kinds: kinds(me),
        providers: Arc::new(providers),
        insisted: Arc::default(),
        ancestors: Arc::default(),
        seen_lately: Arc::default(),
        only_on: TargetLimit::default(),
    }
}

/// The kinds of target, with the cluster of the world.
fn kinds(me: &Me) -> Kinds {
    let built_in = tpu::built_in::kinds();
    let Some(site) = me.world.site.get() else { return built_in };
    built_in.and(Arc::clone(site).kind(me))
}

/// The control plane's clock is right; whoever waits for its answer waits in the world.
struct Wire(Me);

impl Clock for Wire {
    fn now(&self) -> Timestamp {
        State::begin().plus(self.0.world.state().now)
    }

    fn monotonic(&self) -> Duration {
        self.0.world.state().now
    }

    fn sleep(&self, duration: Duration) {
        self.0.world.sleep(self.0.pid, duration);
    }
}

/// A target of the world.
pub(crate) fn target(index: usize) -> String {
    format!("lab-v2-8-spot-{index}")
}

/// A door to the fleet.
pub(crate) fn fleet(disk: &Arc<FakeDisk>, clock: Arc<dyn Clock>) -> SimCloud {
    new_fleet(disk, clock, (0, 1, 1))
}

/// A door that begins a fleet of so many targets in so many zones, if there is none.
pub(crate) fn new_fleet(
    disk: &Arc<FakeDisk>,
    clock: Arc<dyn Clock>,
    (targets, zones, seed): (usize, usize, u64),
) -> SimCloud {
    let targets = (0..targets).map(|index| SimTarget {
        name: TargetName::new(target(index)),
        zone: format!("zone-{}", index % zones),
        accelerator: "v2-8".to_owned(),
        pricing: Pricing::Spot,
    });
    SimCloud::open(SimConfig {
        file: "/cloud/sim.json".into(),
        machines: None,
        disk: Arc::clone(disk) as Arc<dyn tpu_system::store::Disk>,
        clock,
        who: Who { pid: 1, host: "cloud".to_owned(), command: "cloud".to_owned() },
        seed,
        targets: targets.collect(),
    })
}
