//! A Kubernetes cluster in one process, on this machine only: an API server of version 1.20 that the real `kubectl`
//! works against, over https, and what stands behind it. Every answer is as recorded from a real server; what was not
//! recorded but documented says so where it stands.
//!
//! Start with [`KubernetesEmulator`]. From the inside out: `store` keeps the objects, the one counter of versions and
//! the history; `cluster` is the only way to change them, completes (`defaults`) and refuses (`validate`, `quota`);
//! `jobs`, `collector` and `scheduler` decide from the objects what is to happen; `kubelet` runs containers as processes
//! of this machine (`running`, `container`, `mounts`), and `works` calls them all, again and again; `verbs`, `lists`,
//! `watching` and `logs` answer requests; `dispatch` says who may ask what, and `faults` what goes wrong.

mod access;
mod asked;
mod cluster;
mod collector;
mod container;
mod decode;
mod defaults;
mod dispatch;
mod faults;
mod jobs;
mod kubelet;
mod lists;
mod logs;
mod merge;
mod mounts;
mod quantity;
mod quota;
mod refused;
mod resources;
mod running;
mod scheduler;
mod schema;
mod selectors;
mod shared;
mod store;
mod tables;
mod tls;
mod validate;
mod verbs;
mod watching;
mod wire;
mod works;

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use serde_json::json;
use tempfile::TempDir;

pub use self::access::LAB;
use self::access::Tokens;
use self::cluster::Cluster;
use self::dispatch::Served;
use self::faults::Faults;
use self::logs::LogShelf;
use self::resources::NAMESPACES;
use self::shared::Shared;
use self::tls::{Certificate, TlsListener};
use self::works::Works;
use tpu_system::sys::random::{OsRandom, Random as _};

/// How often the server looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);

/// A cluster that is not running yet. What it keeps on the disk goes with the value.
pub struct KubernetesEmulator {
    listener: TcpListener,
    certificate: Certificate,
    served: Arc<Served>,
    stop: Arc<AtomicBool>,
    kubeconfig: PathBuf,
    _state: TempDir,
}

impl KubernetesEmulator {
    /// Takes a port of this machine, any free one for 0, and writes a kubeconfig. So many nodes run what is placed on
    /// them. It ends soon after `stop` is set.
    pub fn bind(port: u16, nodes: usize, stop: Arc<AtomicBool>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let certificate = Certificate::new()?;
        let tokens = Tokens { admin: OsRandom.hex(16), lab: OsRandom.hex(16) };
        let state = tempfile::Builder::new().prefix("tpu-kubernetes-").tempdir()?;
        let kubeconfig = state.path().join("kubeconfig");
        write_kubeconfig(&kubeconfig, address, &certificate, &tokens)?;
        let shared = Arc::new(Shared::new(first_objects()?));
        let shelf = Arc::new(LogShelf::default());
        let works = Works::new(&shared, &shelf, (state.path(), nodes))?;
        let address = address.to_string();
        let served = Served { shared, tokens, address, shelf, works, faults: Faults::new() };
        Ok(Self {
            listener,
            certificate,
            served: Arc::new(served),
            stop,
            kubeconfig,
            _state: state,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The file that says how to reach it, readable by its owner alone.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Serves until it is to stop. Whoever is connected then is cut off.
    pub fn serve(&self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::scope(|scope| {
            // It ends everything that runs before this returns.
            scope.spawn(|| self.served.works.run(&self.stop));
            let done = runtime.block_on(self.serve_until_stopped());
            self.stop.store(true, Ordering::Relaxed);
            // A slow answer keeps nobody from the end.
            runtime.shutdown_background();
            done
        })
    }

    async fn serve_until_stopped(&self) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.listener.try_clone()?)?;
        let listener = TlsListener::new(listener, &self.certificate)?;
        let router = dispatch::router(Arc::clone(&self.served));
        let serving = tokio::spawn(axum::serve(listener, router).into_future());
        while !self.stop.load(Ordering::Relaxed) {
            tokio::time::sleep(LOOK).await;
        }
        self.served.shared.cut();
        serving.abort();
        Ok(())
    }
}

/// The namespaces that are there from the beginning.
fn first_objects() -> io::Result<Cluster> {
    let mut cluster = Cluster::new();
    for name in ["default", "kube-system", LAB] {
        let namespace =
            json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}});
        cluster
            .create(&NAMESPACES, "", namespace, false)
            .map_err(|refused| io::Error::other(refused.message().to_owned()))?;
    }
    Ok(cluster)
}

fn write_kubeconfig(
    path: &Path,
    address: SocketAddr,
    certificate: &Certificate,
    tokens: &Tokens,
) -> io::Result<()> {
    let trusted = base64::engine::general_purpose::STANDARD.encode(&certificate.pem);
    let context = |user: &str| json!({"name": user, "context": {"cluster": "simulated", "namespace": LAB, "user": user}});
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "admin",
        "clusters": [{
            "name": "simulated",
            "cluster": {"server": format!("https://{address}"), "certificate-authority-data": trusted},
        }],
        "users": [
            {"name": "admin", "user": {"token": tokens.admin}},
            {"name": "lab", "user": {"token": tokens.lab}},
        ],
        "contexts": [context("admin"), context("lab")],
    });
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path)?;
    file.write_all(format!("{config:#}\n").as_bytes())
}
