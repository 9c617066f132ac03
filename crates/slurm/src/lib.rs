//! **Slurm**: a partition of a cluster is a target. Slurm queues, places, limits and stops; this kind submits once,
//! watches and explains. Nothing of ours runs for a job, neither a window nor a process.
//!
//! Start with [`client`], which is all that is known of a cluster, and `engine`, which is the runner.

pub mod client;
pub mod cluster;

mod absent;
mod array;
mod ask;
mod config;
mod controller;
mod describe;
mod ended;
mod engine;
mod facts;
mod far;
mod found;
mod job_id;
mod laid;
mod last_seen;
mod limits;
mod listing;
mod local;
mod log;
mod login;
mod note;
mod options;
mod preempt;
mod reasons;
mod rooms;
mod script;
mod settle;
mod states;
mod stop;
mod submit;
mod told;
mod way;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tpu_core::model::facts::Room;
use tpu_core::model::ids::TargetName;
use tpu_core::model::job::EngineRun;
use tpu_core::model::options::KindOptions;
use tpu_core::model::target::{Registration, TargetKind};
use tpu_engine::runner::window::WindowRunner;
use tpu_engine::runner::{RunError, Runner};
use tpu_system::effects::Effects;
use tpu_system::sys::env::Env;

use client::{Client, Clients};
use cluster::{Cluster, LoginNode};
use controller::Controller;
use engine::Engine;
use last_seen::ClusterMemory;
use tpu_engine::kinds::{Destination, Door, KindOfTarget, KindOption, OwnRoots, Refusal, Within};

/// The word of this kind.
const WORD: &str = "slurm";

/// The kind of targets that are partitions of Slurm clusters.
pub struct Slurm {
    clients: Arc<dyn Clients>,
    /// What clusters have said to this process.
    heard: Arc<ClusterMemory>,
}

impl Default for Slurm {
    fn default() -> Self {
        Self::with(Arc::new(RealClients))
    }
}

impl Slurm {
    /// The kind, with other doors to its clusters.
    pub fn with(clients: Arc<dyn Clients>) -> Self {
        Self { clients, heard: Arc::default() }
    }

    fn open<'a>(
        &self,
        cluster: Cluster,
        registration: Option<&Registration>,
        effects: &'a Effects,
    ) -> Engine<'a> {
        let controller = Controller {
            client: self.clients.open(&cluster, effects),
            cluster,
            effects,
            heard: Arc::clone(&self.heard),
        };
        Engine { controller, target: registration.map(|known| known.options.clone()) }
    }
}

/// The programs of this machine, and those of login nodes.
struct RealClients;

impl Clients for RealClients {
    fn open<'a>(&self, cluster: &Cluster, effects: &'a Effects) -> Box<dyn Client + 'a> {
        match &cluster.login {
            Some(login) => Box::new(login::LoginClient::new(login, cluster.conf.clone(), effects)),
            None => Box::new(local::LocalClient::new(cluster.conf.clone(), effects)),
        }
    }
}

impl KindOfTarget for Slurm {
    fn word(&self) -> TargetKind {
        TargetKind::new(WORD)
    }

    fn in_words(&self) -> &'static str {
        "a partition of a Slurm cluster"
    }

    fn own_options(&self) -> &'static [KindOption] {
        options::OF_TARGET
    }

    fn job_options(&self) -> &'static [KindOption] {
        options::OF_JOB
    }

    fn register(&self, registration: &mut Registration, env: &Env) -> Result<(), Refusal> {
        registration.kind = self.word();
        registration.engine = true;
        complete(registration, env)
    }

    fn found(
        &self,
        said: &Registration,
        effects: &Effects,
    ) -> Result<Vec<(TargetName, Registration)>, RunError> {
        let cluster = Cluster::of(&said.options, &effects.env);
        let client = self.clients.open(&cluster, effects);
        found::found(&*client, &cluster, said)
    }

    fn rooms(
        &self,
        targets: &[Registration],
        effects: &Effects,
        said: &mut dyn FnMut(usize, Result<Room, RunError>),
    ) {
        let mut by_cluster: BTreeMap<Cluster, Vec<usize>> = BTreeMap::new();
        for (place, target) in targets.iter().enumerate() {
            by_cluster.entry(Cluster::of(&target.options, &effects.env)).or_default().push(place);
        }
        for (cluster, places) in by_cluster {
            let client = self.clients.open(&cluster, effects);
            let rooms = rooms::ask(&*client, &*effects.clock);
            for place in places {
                let name = targets.get(place).and_then(|target| target.options.get("partition"));
                said(place, rooms::of(&rooms, &cluster, name.unwrap_or_default()));
            }
        }
    }

    fn workers(&self, asked: &Destination<'_>, _: Within<'_>) -> Result<Door, Refusal> {
        let what = format!("the nodes of {} are Slurm's, which runs jobs there", asked.name);
        Err(Refusal::new(what, "to get to a job: tpu attach JOB"))
    }

    fn roots(&self, registration: &Registration) -> OwnRoots {
        let said = |name| registration.options.get(name).map(str::to_owned);
        OwnRoots { stage: said(options::STAGE_ROOT), log: said(options::LOG_ROOT) }
    }

    fn runner<'a>(
        &self,
        registration: Option<&Registration>,
        effects: &'a Effects,
        _: WindowRunner<'a>,
    ) -> Box<dyn Runner + 'a> {
        let options = registration.map(|known| known.options.clone()).unwrap_or_default();
        let cluster = Cluster::of(&options, &effects.env);
        Box::new(self.open(cluster, registration, effects))
    }

    fn is_at_login_node(&self, registration: Option<&Registration>, env: &Env) -> bool {
        let options = registration.map(|known| known.options.clone()).unwrap_or_default();
        Cluster::of(&options, env).login.is_none() && env.has_program("sbatch")
    }

    fn engine<'a>(&self, run: &EngineRun, effects: &'a Effects) -> Option<Box<dyn Runner + 'a>> {
        Some(Box::new(self.open(Cluster::parse(&run.cluster), None, effects)))
    }

    fn account(&self, run: &EngineRun) -> Option<u32> {
        Cluster::parse(&run.cluster).uid
    }
}

/// Checks where code and logs go. What lies below our own state on this machine is nothing to a login node.
fn check_roots(said: &KindOptions) -> Result<(), Refusal> {
    const LIKE: &str = "as in: --stage-root /shared/alice/stage --log-root /shared/alice/logs";
    for name in [options::STAGE_ROOT, options::LOG_ROOT] {
        match said.get(name) {
            Some(dir) if !Path::new(dir).is_absolute() || dir.chars().any(char::is_control) => {
                let what = format!("--{name} is no absolute path: {dir:?}");
                return Err(Refusal::new(what, LIKE));
            }
            None if said.get("login").is_some() => {
                let what = format!("behind a login node, a target has a --{name} of its own");
                return Err(Refusal::new(what, LIKE));
            }
            Some(_) | None => {}
        }
    }
    Ok(())
}

/// Checks what was said of a target, and fills in which cluster it is.
fn complete(registration: &mut Registration, env: &Env) -> Result<(), Refusal> {
    let said = &mut registration.options;
    if said.get("partition").is_none_or(|name| !options::is_plain(name)) {
        return Err(Refusal::new(
            "a target of a Slurm cluster is a partition",
            "as in: --partition gpu; `sinfo` lists them, and `tpu targets import --kind slurm` makes them known",
        ));
    }
    if let Some(login) = said.get("login").filter(|login| LoginNode::parse(login).is_none()) {
        let what = format!("'{login}' is no login node");
        return Err(Refusal::new(
            what,
            "as in: --login alice@login1, with :PORT where it is not 22",
        ));
    }
    if let Some(conf) = said.get("cluster").filter(|conf| !Path::new(conf).is_absolute()) {
        let what = format!("'{conf}' is no absolute path of a slurm.conf");
        return Err(Refusal::new(what, "as in: --cluster /etc/slurm/slurm.conf"));
    }
    check_roots(said)?;
    if let Some(key) = said.get("login-key") {
        let problem = match said.get("login") {
            None => Some("--login-key says nothing without --login".to_owned()),
            Some(_) if !Path::new(key).is_absolute() => {
                Some(format!("'{key}' is no absolute path"))
            }
            Some(_) => None,
        };
        if let Some(what) = problem {
            return Err(Refusal::new(what, "as in: --login alice@login1 --login-key ~/.ssh/lab"));
        }
    }
    if let (None, None, Some(conf)) =
        (said.get("cluster"), said.get("login"), env.non_empty("SLURM_CONF"))
    {
        said.say("cluster", conf);
    }
    options::check_target(said).map_err(|problem| Refusal::new(problem.what, problem.hint))
}
