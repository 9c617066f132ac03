//! `tpu sim serve`: the simulated fleet behind the cloud's REST API, for Google's own command line, for our
//! own provider, and for whoever wants to see what they ask; with `--kubernetes` a simulated cluster, for `kubectl`.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use serde_json::{Map, Value};

use tpu_core::model::target::{Registration, TargetKind};
use tpu_kubernetes::options::{FLAVOR, IMAGE};
use tpu_lab::emulator::{Emulator, Log};
use tpu_lab::kubernetes::{KubernetesEmulator, LAB};
use tpu_lab::sim::{self, Event, Scenario};

use tpu_ops::{Ctx, Error};

use crate::simulator;

/// So many nodes has a simulated Kubernetes cluster.
const NODES: usize = 4;

/// How it is served.
#[derive(Clone, Debug)]
pub struct Serving {
    /// The port; any free one for 0.
    pub port: u16,
    /// A story that begins with it, and the name of its file.
    pub story: Option<(String, String)>,
    /// Where every request is written down, as a line of JSON.
    pub log: Option<PathBuf>,
}

/// Serves until `stop` is set. Says first how to reach it.
pub fn serve(
    ctx: &Ctx,
    serving: &Serving,
    stop: &Arc<AtomicBool>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let data = ctx.store.paths().data();
    if let Some(dir) = data.parent().filter(|dir| !dir.is_dir()) {
        let what =
            format!("there is no directory {}, where the simulated cloud is kept", dir.display());
        return Err(Error::state(what).hint(format!(
            "create it: mkdir -p {}; or name another data file: --data FILE",
            dir.display()
        )));
    }
    let sim = sim::beside(ctx);
    if let Some((text, file)) = &serving.story {
        let story = Scenario::parse(text).map_err(|e| Error::usage(format!("{file}: {e}")))?;
        sim.play(&story)?;
    }
    let log = serving.log.as_ref().map(|path| {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.map(|file| Box::new(file) as Log).map_err(|e| {
            Error::state(format!("cannot write {}: {e}", path.display()))
                .hint("name a file in a directory that is there")
        })
    });
    let unusable = |e| no_port(serving.port, &e);
    let emulator =
        Emulator::bind(sim, serving.port, Arc::clone(stop), log.transpose()?).map_err(unusable)?;
    let at = format!("http://{}/", emulator.address().map_err(unusable)?);
    let text = format!(
        "The simulated cloud is at {at} until Ctrl-C. To use it:\n\
         \x20 tpu:     export TPU_CLOUD=google TPU_CLOUD_AUTH=none TPU_PROJECT=lab TPU_CLOUD_ENDPOINT={at}\n\
         \x20 gcloud:  export CLOUDSDK_AUTH_DISABLE_CREDENTIALS=true CLOUDSDK_CORE_PROJECT=lab \
         CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU={at}\n"
    );
    // Nobody has to read it.
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
    emulator.serve().map_err(unusable)
}

/// Serves a simulated Kubernetes cluster until `stop` is set. Says first how to reach it.
pub fn serve_kubernetes(
    port: u16,
    stop: &Arc<AtomicBool>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let unusable = |e| no_port(port, &e);
    let emulator = KubernetesEmulator::bind(port, NODES, Arc::clone(stop)).map_err(unusable)?;
    let text = format!(
        "The simulated Kubernetes cluster is at https://{}/ until Ctrl-C. To use it:\n\
         \x20 kubectl:  export KUBECONFIG={}\n\
         \x20 as a user of the namespace lab alone: kubectl --context lab …\n",
        emulator.address().map_err(unusable)?,
        emulator.kubeconfig().display()
    );
    // Nobody has to read it.
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
    emulator.serve().map_err(unusable)
}

/// A simulated Kubernetes cluster behind this process, until it is dropped, and with it all that it runs.
pub struct ClusterBehind {
    registration: Registration,
    stop: Arc<AtomicBool>,
    served: Option<JoinHandle<()>>,
}

impl ClusterBehind {
    /// Starts one on any free port of this machine, with so many nodes.
    pub fn start(nodes: usize) -> Result<Self, Error> {
        let failed = |e: std::io::Error| {
            Error::failed(format!("the simulated cluster does not start: {e}"))
                .hint("it listens on 127.0.0.1, and keeps its state in a temporary directory")
        };
        let stop = Arc::new(AtomicBool::new(false));
        let emulator = KubernetesEmulator::bind(0, nodes, Arc::clone(&stop)).map_err(failed)?;
        let registration = registration(&emulator);
        let serve = move || {
            // Who asks it sees that it does not answer.
            drop(emulator.serve());
        };
        let served = thread::Builder::new().name("cluster".to_owned()).spawn(serve);
        Ok(Self { registration, stop, served: Some(served.map_err(failed)?) })
    }

    /// It as a target.
    pub fn registration(&self) -> &Registration {
        &self.registration
    }
}

/// A simulated cluster as a target: the namespace of the user `lab`, with one CPU for each job.
fn registration(emulator: &KubernetesEmulator) -> Registration {
    let kubeconfig = emulator.kubeconfig().display().to_string();
    let options = [
        ("kubeconfig", kubeconfig.as_str()),
        ("context", LAB),
        (IMAGE, "train:1"),
        (FLAVOR, "no-gpu"),
    ];
    Registration {
        kind: TargetKind::new(tpu_kubernetes::WORD),
        options: options.into_iter().collect(),
        ..Registration::default()
    }
}

impl Drop for ClusterBehind {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(served) = self.served.take() {
            drop(served.join());
        }
    }
}

fn no_port(port: u16, why: &std::io::Error) -> Error {
    Error::failed(format!("cannot listen on port {port} of this machine: {why}"))
        .hint("take another one, or 0 for any that is free")
}

/// Lets any event of a story happen now, by its name and its keys.
pub fn happen(ctx: &Ctx, name: &str, words: &[String]) -> Result<(), Error> {
    let mut event = Map::new();
    event.insert("event".to_owned(), Value::from(name));
    for word in words {
        let (key, text) = word.split_once('=').ok_or_else(|| {
            Error::usage(format!("'{word}' is no KEY=VALUE"))
                .hint("as in: tpu sim event error class=auth call=list times=5")
        })?;
        let plain = Value::from(text);
        let value = serde_json::from_str(text).ok().filter(|v: &Value| !v.is_string());
        event.insert(key.to_owned(), value.unwrap_or(plain));
    }
    let event: Event = serde_json::from_value(Value::Object(event)).map_err(|e| {
        Error::usage(format!("'{name}' cannot happen so: {e}"))
            .hint("as in: tpu sim event error class=auth call=list times=5")
    })?;
    simulator::Simulator::open(ctx).happen(&event)
}
