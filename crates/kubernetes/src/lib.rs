//! **Kubernetes**: a namespace of a cluster is a target. Kubernetes queues, places, limits and stops; this kind submits
//! once, watches, keeps what is printed, and explains. Nothing of ours runs for a job, neither a window nor a process.
//!
//! Start with [`api`], which is all that is known of a cluster, and `engine`, which is the runner. The emulated cluster that
//! tests and the demo work against is in `tpu-lab`.

pub mod api;
pub mod cluster;
pub mod flavors;
pub mod life;
pub mod settings;

mod afterwards;
mod asking;
mod causes;
mod claims;
mod code;
mod commands;
mod connection;
mod describe;
mod disk;
mod engine;
mod facts;
mod found;
mod kept;
mod kubeconfig;
mod live;
mod logs;
mod manifest;
mod names;
mod note;
pub mod options;
mod request;
mod rooms;
mod settle;
mod site;
mod stamped;
mod stop;
mod submit;
mod volumes;

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

use api::ApiServers;
use cluster::NamespaceAt;
use connection::RealServers;
use disk::Looks;
use engine::Engine;
use flavors::Flavor;
use site::Site;
use tpu_engine::kinds::{
    Destination, Door, KindAnswer, KindCommand, KindList, KindOfTarget, KindOption, OwnRoots,
    Refusal, Within,
};
use volumes::Volume;

/// The word of this kind.
pub const WORD: &str = "kubernetes";

/// The kind of targets that are namespaces of Kubernetes clusters.
pub struct Kubernetes {
    servers: Arc<dyn ApiServers>,
    /// What was seen on volumes.
    looks: Arc<Looks>,
}

impl Default for Kubernetes {
    fn default() -> Self {
        Self::with(Self::servers())
    }
}

impl Kubernetes {
    /// The doors to the clusters that kubeconfig files name.
    pub fn servers() -> Arc<dyn ApiServers> {
        Arc::new(RealServers::default())
    }

    /// The kind, with other doors to its clusters.
    pub fn with(servers: Arc<dyn ApiServers>) -> Self {
        Self { servers, looks: Arc::default() }
    }

    fn open<'a>(
        &self,
        cluster: NamespaceAt,
        registration: Option<&Registration>,
        effects: &'a Effects,
    ) -> Engine<'a> {
        let server = self.servers.open(&cluster, effects);
        let site = Site { server, cluster, effects };
        let target = registration.map(|known| known.options.clone());
        Engine { site, target, looks: Arc::clone(&self.looks) }
    }
}

impl KindOfTarget for Kubernetes {
    fn word(&self) -> TargetKind {
        TargetKind::new(WORD)
    }

    fn in_words(&self) -> &'static str {
        "a namespace of a Kubernetes cluster"
    }

    fn own_options(&self) -> &'static [KindOption] {
        options::OF_TARGET
    }

    fn commands(&self) -> &'static [KindCommand] {
        commands::ALL
    }

    fn listed(
        &self,
        list: KindList<'_>,
        effects: &Effects,
    ) -> Option<Result<KindAnswer, RunError>> {
        Some(commands::listed(list, effects))
    }

    fn job_options(&self) -> &'static [KindOption] {
        options::OF_JOB
    }

    fn copies_code(&self, said: &KindOptions) -> bool {
        submit::copies_code(said)
    }

    fn kept(&self, said: KindOptions, dir: Option<&Path>) -> Result<KindOptions, RunError> {
        let Some(dir) = dir else { return Ok(said) };
        taken_in(&said, dir).map_err(|why| RunError::usage(why, LIKE_FLAVOR))
    }

    fn usual_target(
        &self,
        said: &KindOptions,
        effects: &Effects,
    ) -> Option<Result<TargetName, RunError>> {
        said.get(options::IMAGE).map(|_| commands::usual_target(effects))
    }

    fn register(&self, registration: &mut Registration, env: &Env) -> Result<(), Refusal> {
        registration.kind = self.word();
        registration.engine = true;
        complete(registration, env)
    }

    fn doubts(&self, registration: &Registration, effects: &Effects) -> Vec<String> {
        let at = NamespaceAt::of(&registration.options, &effects.env);
        claims::missing(&self.open(at, None, effects).site, &registration.options)
    }

    fn found(
        &self,
        said: &Registration,
        effects: &Effects,
    ) -> Result<Vec<(TargetName, Registration)>, RunError> {
        found::found(&*self.servers, said, effects)
    }

    fn workers(&self, asked: &Destination<'_>, _: Within<'_>) -> Result<Door, Refusal> {
        let what = format!("the nodes of {} are Kubernetes', which runs jobs there", asked.name);
        Err(Refusal::new(what, "to get to a job: tpu attach JOB"))
    }

    fn roots(&self, registration: &Registration) -> OwnRoots {
        let log = registration.options.get(options::LOG_ROOT).map(str::to_owned);
        OwnRoots { stage: None, log }
    }

    fn runner<'a>(
        &self,
        registration: Option<&Registration>,
        effects: &'a Effects,
        _: WindowRunner<'a>,
    ) -> Box<dyn Runner + 'a> {
        let options = registration.map(|known| known.options.clone()).unwrap_or_default();
        Box::new(self.open(NamespaceAt::of(&options, &effects.env), registration, effects))
    }

    fn rooms(
        &self,
        targets: &[Registration],
        effects: &Effects,
        said: &mut dyn FnMut(usize, Result<Room, RunError>),
    ) {
        // Targets are namespaces: those of one cluster have one room, and one question is asked for each cluster.
        let mut known: Vec<(NamespaceAt, Vec<usize>)> = Vec::new();
        for (place, target) in targets.iter().enumerate() {
            let at = NamespaceAt::of(&target.options, &effects.env);
            match known.iter_mut().find(|(other, _)| other.is_beside(&at)) {
                Some((_, places)) => places.push(place),
                None => known.push((at, vec![place])),
            }
        }
        for (at, places) in known {
            let site = self.open(at, None, effects).site;
            let room = rooms::ask(&site);
            for place in places {
                said(place, room.clone().map_err(|trouble| site.error(&trouble)));
            }
        }
    }

    fn engine<'a>(&self, run: &EngineRun, effects: &'a Effects) -> Option<Box<dyn Runner + 'a>> {
        Some(Box::new(self.open(NamespaceAt::parse(&run.cluster), None, effects)))
    }

    fn wakes(&self) -> u64 {
        self.servers.wakes()
    }
}

/// Checks what was said of a target, and fills in which namespace of which cluster it is: whoever uses it later has
/// another environment.
fn complete(registration: &mut Registration, env: &Env) -> Result<(), Refusal> {
    let said = &registration.options;
    if let Some(file) = said.get("kubeconfig").filter(|file| !Path::new(file).is_absolute()) {
        let what = format!("'{file}' is no absolute path of a kubeconfig");
        return Err(Refusal::new(what, "as in: --kubeconfig ~/.kube/lab"));
    }
    for text in said.all(options::VOLUME).iter().chain(said.all(options::LOG_VOLUME)) {
        if Volume::parse(text).is_none() {
            return Err(Refusal::new(format!("'{text}' is no volume"), volumes::LIKE));
        }
    }
    registration.options =
        taken_in(said, &env.cwd).map_err(|why| Refusal::new(why, LIKE_FLAVOR))?;
    let said = &mut registration.options;
    check_log_volume(said)?;
    let cluster = NamespaceAt::of(said, env);
    let current = found::current(&cluster)
        .map_err(|why| Refusal::new(why, "`kubectl config get-contexts` lists them"))?;
    if let (None, Some(files)) = (said.get("kubeconfig"), &cluster.kubeconfig) {
        let files = files.clone();
        said.say("kubeconfig", files);
    }
    if let Some((context, namespace)) = current {
        if said.get("context").is_none() {
            said.say("context", context);
        }
        if said.get("namespace").is_none() {
            said.say("namespace", namespace);
        }
    }
    if said.get("namespace").is_none() && cluster.kubeconfig.is_none() {
        // Within a cluster it is that of the pod's account.
        said.say("namespace", cluster.namespace);
    }
    if let (Some(volume), None) = (said.get(options::LOG_VOLUME), said.get(options::LOG_ROOT)) {
        let mount = Volume::parse(volume).map(|volume| volume.mount).unwrap_or_default();
        said.say(options::LOG_ROOT, format!("{mount}/tpu-logs"));
    }
    Ok(())
}

/// How a flavor is said.
const LIKE_FLAVOR: &str =
    r#"as in: {"name": "small", "resources": {"requests": {"cpu": 1, "memory": "1G"}}}"#;

/// What was said, with what a file says of a flavor in the place of its path: that may mean nothing where a job begins, and the
/// file may be gone by then.
fn taken_in(said: &KindOptions, dir: &Path) -> Result<KindOptions, String> {
    let taken = |(name, value): (&str, &str)| {
        let path = dir.join(value);
        if name != options::FLAVOR || value.trim_start().starts_with('{') || !path.is_file() {
            return Ok((name.to_owned(), value.to_owned()));
        }
        Ok((name.to_owned(), serde_json::json!(Flavor::of_file(&path)?).to_string()))
    };
    said.pairs().map(taken).collect()
}

/// Logs go where the volume is mounted that keeps them.
fn check_log_volume(said: &KindOptions) -> Result<(), Refusal> {
    let volume = said.get(options::LOG_VOLUME).and_then(Volume::parse);
    match (volume, said.get(options::LOG_ROOT)) {
        (None, Some(_)) => Err(Refusal::new(
            "--log-root says nothing without --log-volume",
            "as in: --log-volume data:/data --log-root /data/alice/logs",
        )),
        (Some(volume), _) if !volume.keeps() => Err(Refusal::new(
            "nothing can be written to the volume of --log-volume",
            "leave :ro out, and take a claim, nfs/… or host/…",
        )),
        (Some(volume), Some(root)) if !Path::new(root).starts_with(&volume.mount) => {
            let what = format!(
                "--log-root {root} does not lie on the volume, which is at {}",
                volume.mount
            );
            Err(Refusal::new(what, format!("as in: --log-root {}/logs", volume.mount)))
        }
        _ => Ok(()),
    }
}

/// Names and values as a query has them.
fn encoded<'p>(parameters: impl Iterator<Item = (&'p str, &'p str)>) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish()
}
