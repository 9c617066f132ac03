//! Builds the effects of a real run. Tests build their own; nothing else differs.

use std::path::PathBuf;
use std::sync::Arc;

use tpu_core::model::settings::{Layer, SettingOrigin};
use tpu_core::model::target_limit::TargetLimit;
use tpu_engine::kinds::Kinds;
use tpu_system::effects::{Effects, Onlooker, Warnings};
use tpu_system::store::{OsDisk, Paths, Store, Who};
use tpu_system::sys::clock::SystemClock;
use tpu_system::sys::env::Env;
use tpu_system::sys::procs::OsProcesses;
use tpu_system::sys::random::OsRandom;
use tpu_system::sys::threads::OsThreads;
use tpu_system::tmux::oneshot::OneShot;

use crate::Ctx;
use crate::base::setting_layers::Layers;

/// What the effects are built from.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The data file.
    pub data: PathBuf,
    /// Name of the tmux socket; tmux's default server if none.
    pub tmux_socket: Option<String>,
    /// What the process was started with.
    pub env: Env,
    /// The command, for the journal and for those who wait for our lock.
    pub actor: String,
    /// This program, for launchers to call back.
    pub tpu: PathBuf,
    /// Settings above those of data.json, from the weakest to the strongest.
    pub layers: Vec<(SettingOrigin, Layer)>,
    /// Where the lab's own patterns may be.
    pub patterns: Option<PathBuf>,
    /// Where the account keeps its secrets.
    pub secrets: Option<PathBuf>,
    /// The kinds of target of this program.
    pub kinds: Kinds,
}

/// Opens the doors. Nothing is read, started or asked yet.
pub fn open(opening: Opening) -> Ctx {
    let Opening { data, tmux_socket, env, actor, tpu, layers, patterns, secrets, kinds } = opening;
    let clock = Arc::new(SystemClock::new());
    let who = Who { pid: env.pid, host: env.hostname.clone(), command: format!("tpu {actor}") };
    let disk = Arc::new(OsDisk);
    let store = Store::open(Paths::new(data), disk, Arc::<SystemClock>::clone(&clock), who);
    let store = store.signed_by(env.uid);
    let effects = Effects {
        store: Arc::new(store),
        tmux: Arc::new(OneShot::new(tmux_socket.as_deref(), &env)),
        clock,
        random: Arc::new(OsRandom),
        procs: Arc::new(OsProcesses),
        threads: Arc::new(OsThreads),
        env,
        actor,
        tpu,
        tmux_socket,
        warnings: Warnings::default(),
        onlooker: Onlooker::default(),
    };
    Ctx {
        effects,
        layers: Arc::new(Layers::fixed(layers)),
        patterns,
        secrets,
        classifier: Arc::default(),
        kinds,
        providers: Arc::default(),
        insisted: Arc::default(),
        ancestors: Arc::default(),
        seen_lately: Arc::default(),
        only_on: TargetLimit::default(),
    }
}

/// The effects of a test: a data file without users in a directory of its own, no tmux server, this machine as the only target.
#[cfg(test)]
pub(crate) fn for_test(dir: &std::path::Path) -> Ctx {
    use tpu_core::model::data::Data;
    use tpu_engine::kinds::local::Local;
    use tpu_system::sys::procs;

    let env = Env::fixed([("HOME", dir)]);
    let ctx = open(Opening {
        data: dir.join("data.json"),
        tmux_socket: Some("none".to_owned()),
        env: Env { start: procs::start_time(std::process::id()), ..env },
        actor: "test".to_owned(),
        tpu: "/nonexistent/tpu".into(),
        layers: Vec::new(),
        patterns: None,
        secrets: None,
        kinds: Kinds::new(vec![Arc::new(Local)]),
    });
    ctx.store.create(&Data::empty()).unwrap();
    ctx
}
